package telegram

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// chairs is a Seat: each context that comes is one sitting.
func chairs(sit <-chan context.Context) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, intake func(context.Context) error) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case on := <-sit:
				sitting, end := context.WithCancel(ctx)
				stop := context.AfterFunc(on, end)
				err := intake(sitting)
				stop()
				end()
				if err != nil {
					return err
				}
			}
		}
	}
}

// TestSeat: without the seat nothing is polled and all else is done; what another
// process polled meanwhile is no absence of this one, and what it learned is known.
func TestSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sit := make(chan context.Context)
		w := newWorld(t, Options{Seat: chairs(sit)})
		name := func(what string) string { return fmt.Sprintf("telegram:%d:%s", telegramtest.BotID, what) }
		store := func(what, text string) {
			_, version, _ := w.docs.Doc(t.Context(), name(what))
			if err := w.docs.PutDoc(t.Context(), name(what), version, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		polled := func() int { return len(w.api.Calls("getUpdates")) }
		said := func() (n int) {
			for _, m := range w.api.Messages(ann) {
				n += map[bool]int{true: 1}[m.FromBot]
			}
			return n
		}
		store("alive", fmt.Sprint(time.Now().Add(-time.Hour).Unix()))
		w.run()
		w.api.Say(ann, ann, "one")
		w.settle(10 * time.Minute)
		if got := w.got(); len(got) > 0 || polled() > 0 || w.a.Status().Connected {
			t.Errorf("without the seat: %d polls, %d messages, %+v", polled(), len(got), w.a.Status())
		}
		if name := w.a.Status().Username; name == "" {
			t.Error("without the seat the bot's name is not known")
		}
		if _, err := w.send(w.part(ann, "hello")); err != nil || said() != 1 {
			t.Errorf("without the seat %d messages are sent, %v; want 1", said(), err)
		}
		w.a.Show(session.View{Key: session.Key{Platform: Name, Chat: session.ChatID(fmt.Sprint(bob))}, Turn: 1, Rev: 1})
		w.settle(10 * time.Second)
		if n := len(w.api.Calls("sendChatAction")); n == 0 {
			t.Error("without the seat a turn is not shown")
		}
		if err := w.a.loadAliases(t.Context(), false); err != nil {
			t.Fatal(err)
		}

		for i, text := range []string{"one", "two"} {
			store("alive", fmt.Sprint(time.Now().Unix())) // by who polled
			store("chats", fmt.Sprintf(`{"%d":%d}`, basic, group-int64(i)))
			on, stand := context.WithCancel(t.Context())
			sit <- on
			if m := w.one(); m.Text != text || !w.a.Status().Connected {
				t.Errorf("on the seat came %q, %+v; want %q", m.Text, w.a.Status(), text)
			}
			if err := w.a.loadAliases(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if to := w.a.aliases.to(basic); to != group-int64(i) {
				t.Errorf("a group that moved is %d; want %d, as another process stored", to, group-int64(i))
			}
			stand()
			synctest.Wait()
			n := polled()
			w.api.Say(ann, ann, "two")
			w.settle(10 * time.Minute)
			if polled() != n || w.a.Status().Connected || len(w.got()) > 0 {
				t.Errorf("after the seat was lost: %d polls, %+v", polled()-n, w.a.Status())
			}
		}
		if said() != 1 {
			t.Errorf("it said that it was away: %+v", w.api.Messages(ann))
		}
		w.stop()
		w.close()
		if w.err != nil {
			t.Error(w.err)
		}
	})
}
