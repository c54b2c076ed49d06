package discord

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"coxswain/discordtest"
	"coxswain/session"
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

// TestSeat: without the seat nothing connects and all else is done. Who sits
// down reads what came since the one before, and forgets what it knew.
func TestSeat(t *testing.T) {
	sit := make(chan context.Context)
	w := newWorld(t, Options{Seat: chairs(sit)})
	w.run()
	if _, err := w.a.Send(w.ctx, w.part(dm, "hello")); err != nil || len(w.api.Bot(dm)) != 1 || w.api.Dials() != 0 {
		t.Fatalf("without the seat: sent %d, %v, dialled %d times; want 1 and never", len(w.api.Bot(dm)), err, w.api.Dials())
	}
	// A thread that the bot opened on a message: the message stands in its channel.
	first := w.api.Say(room, ann, "a task")
	thread := w.api.Thread(room, first, discordtest.BotID, "a task", "")
	key := session.Key{Platform: Name, Chat: room, Thread: session.ThreadID(thread)}
	fate := session.Fate{Ticket: 1, Msgs: []session.MessageID{session.MessageID(first)}, State: session.FateQueued, Waited: true}
	if err := w.a.Sign(w.ctx, key, fate); err != nil {
		t.Fatal(err)
	}
	if m := w.api.Messages(room); len(m[0].Reactions) != 1 {
		t.Errorf("without the seat the sign is not on the message: %+v", m[0])
	}

	on, stand := context.WithCancel(w.ctx)
	sit <- on
	w.connected()
	w.api.Say(dm, ann, "one")
	if m := w.next(); m.Text != "one" {
		t.Errorf("on the seat came %q; want one", m.Text)
	}
	w.api.Outage(guild, true)
	w.until("out", func() bool { out, _ := w.a.guilds.get(guild); return out })
	w.door.failing(func(session.Message) error { return errors.New("the store is away") })
	w.api.Say(dm, ann, "not taken")
	w.until("tried", func() bool { return w.a.Status().Retries > 0 })
	stand()
	w.until("off", func() bool { return !w.a.Status().Connected && w.api.Connected() == 0 })
	w.api.Outage(guild, false) // nobody tells this one
	if _, err := w.a.Send(w.ctx, w.part(room, "back")); err != nil {
		t.Errorf("after the seat was lost a guild stays out: %v", err)
	}
	dials := w.api.Dials()

	// Another process took two and three; four came when nobody sat.
	w.api.Say(dm, ann, "two")
	last := w.api.Say(dm, ann, "three")
	err := w.a.change(w.ctx, "cursors", func([]byte) ([]byte, error) {
		return []byte(`{"` + dm + `":"` + last + `","newest":"` + last + `"}`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.door.failing(nil)
	four := w.api.Say(dm, ann, "four")
	on, stand = context.WithCancel(w.ctx)
	defer stand()
	sit <- on
	w.connected()
	if n := w.api.Dials() - dials; n != 1 {
		t.Errorf("from the loss of the seat to the next one it dialled %d times; want once, on the seat", n)
	}
	if m := w.next(); m.Text != "four" {
		t.Errorf("on the seat again came %q; want four, for others were taken", m.Text)
	}
	w.until("the cursor moves", func() bool { // what this process did not take was for the other one
		data, _, _ := w.docs.Doc(w.ctx, w.a.docName("cursors"))
		var stored map[string]string
		return json.Unmarshal(data, &stored) == nil && stored[dm] == four
	})
	w.end()
}
