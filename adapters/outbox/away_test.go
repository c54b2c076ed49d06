package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/session"
	"coxswain/store/storetest"
)

// A place is a platform that notes what reached which chat.
type place struct {
	name session.PlatformName
	mu   sync.Mutex
	got  []string
	of   []session.Key // the sessions whose parts were sent
	down bool
	cut  int // so many sends go out and are not answered
}

func (p *place) Name() session.PlatformName { return p.name }
func (p *place) Parts(o session.Outgoing) [][]byte {
	return [][]byte{[]byte(fmt.Sprintf("%s|%s", o.Markdown, o.ReplyTo))}
}
func (p *place) Show(session.View) {}

func (p *place) Send(_ context.Context, part session.Part) (session.MessageID, error) {
	p.mu.Lock()
	down := p.down
	if p.cut--; p.cut >= 0 {
		p.mu.Unlock()
		return "", &session.SendError{Outcome: session.SendUnknown, Err: errors.New("timeout")}
	}
	if part.State == session.PartUnknown && !down {
		part.Data = append([]byte("again? "), part.Data...)
	}
	if !down {
		p.of = append(p.of, part.Session())
	}
	p.mu.Unlock()
	if down {
		return "", &session.SendError{Outcome: session.SendNot, Err: errors.New("no route to host")}
	}
	p.note("%v: %s", part.Key, part.Data)
	return "sent", nil
}

func (p *place) Sign(_ context.Context, k session.Key, f session.Fate) error {
	p.note("%v: %v %s", k, f.Msgs, f.State)
	return nil
}

func (p *place) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, fmt.Sprintf(format, args...))
}

func (p *place) want(t *testing.T, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.got, want) {
		t.Errorf("%s got %q; want %q", p.name, p.got, want)
	}
	p.got = nil
}

// A session that was moved speaks in the chat it lives in; what was made for
// another chat goes there all the same, and signs go where their messages are.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewModel(time.Now)
		routes := session.NewRoutes(st)
		lane, den := session.Key{Platform: "fake", Chat: "room"}, session.Key{Platform: "other", Chat: "den"}
		fake, other := &place{name: "fake"}, &place{name: "other"}
		of := map[session.PlatformName]session.Platform{"fake": fake, "other": other}
		out := outbox.New(t.Context(), outbox.Options{
			Store: st, Nonce: "n/out", HubNonce: "n", UnknownAfter: unknownAfter, Routes: routes, Log: slog.New(slog.DiscardHandler),
		})
		out.Register(fake)
		out.Register(other)
		defer out.Close(0)
		say := func(text string, to session.MessageID) {
			t.Helper()
			var outs []session.PartNew
			for _, data := range routes.Platform(lane, of).Parts(session.Outgoing{Key: lane, Markdown: text, ReplyTo: to}) {
				outs = append(outs, session.PartNew{ID: text, Kind: session.PartFinal, Data: data})
			}
			if _, err := st.Post(t.Context(), session.Post{Key: lane, Outs: outs}); err != nil {
				t.Fatal(err)
			}
		}
		move := func(version int64, doc string) {
			t.Helper()
			if err := st.PutDoc(t.Context(), "routes", version, []byte(doc)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second) // what another process stored is seen then
			if _, err := routes.Lane(t.Context(), den); err != nil {
				t.Fatal(err)
			}
		}
		say("at home", "m1")
		move(0, `{"chats":[{"chat":{"platform":"other","chat":"den"},"lanes":[{"platform":"fake","chat":"room"},{"platform":"other","chat":"den"}]},
			{"chat":{"platform":"fake","chat":"room"},"lanes":[{"platform":"fake","chat":"room","line":1}]}]}`)
		say("away", "")
		move(1, `{}`)
		say("home again", "m1")
		out.Nudge(lane, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		fake.want(t, "fake:room: at home|m1", "fake:room: home again|m1")
		other.want(t, "other:den: away|")

		out.Sign(lane, session.Fate{Ticket: 1, Msgs: []session.MessageID{"m1"}, State: session.FateAnswered})
		synctest.Wait()
		out.Sign(lane, session.Fate{Ticket: 2, Msgs: []session.MessageID{"@other:den@m2", "@other:den@m3"}, State: session.FateQueued})
		synctest.Wait()
		fake.want(t, "fake:room: [m1] answered")
		other.want(t, "other:den: [m2 m3] queued")
	})
}

// A part for a platform that is off is given up and does not hold others up.
func TestAwayIsOff(t *testing.T) {
	play(t, func(w *world) {
		lost := session.PartNew{ID: "lost", Kind: session.PartFinal, Data: []byte("\x00gone:den\x00text")}
		if _, err := w.store.Post(w.t.Context(), session.Post{Key: room, Outs: []session.PartNew{lost}}); err != nil {
			w.t.Fatal(err)
		}
		w.put(room, session.PartFinal, "next")
		w.out.Nudge(room, nil)
		w.rest(time.Minute)
		w.want("0 next")
		if n := w.left(room); n != 0 {
			w.t.Errorf("%d parts are left", n)
		}
	})
}

// A chat that cannot be reached does not hold up what a session says in the one it
// has moved to: what is still for the old chat waits there.
func TestAwayFromAChatThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewModel(time.Now)
		routes := session.NewRoutes(st)
		lane, den := session.Key{Platform: "fake", Chat: "room"}, session.Key{Platform: "other", Chat: "den"}
		fresh := session.Key{Platform: "fake", Chat: "room", Line: 1}
		fake, other := &place{name: "fake", down: true, cut: 1}, &place{name: "other"}
		of := map[session.PlatformName]session.Platform{"fake": fake, "other": other}
		out := outbox.New(t.Context(), outbox.Options{
			Store: st, Nonce: "n/out", HubNonce: "n", UnknownAfter: unknownAfter, Routes: routes, Log: slog.New(slog.DiscardHandler),
		})
		out.Register(fake)
		out.Register(other)
		defer out.Close(0)
		say := func(kind session.PartKind, texts ...string) {
			t.Helper()
			var outs []session.PartNew
			for _, text := range texts {
				for _, data := range routes.Platform(lane, of).Parts(session.Outgoing{Key: lane, Markdown: text}) {
					outs = append(outs, session.PartNew{ID: text, Kind: kind, Data: data})
				}
			}
			if _, err := st.Post(t.Context(), session.Post{Key: lane, Outs: outs}); err != nil {
				t.Fatal(err)
			}
			out.Nudge(lane, nil)
			time.Sleep(time.Second)
		}
		say(session.PartFinal, "first", "second")
		say(session.PartFile, "file")
		err := st.PutDoc(t.Context(), "routes", 0, []byte(`{"chats":[{"chat":{"platform":"other","chat":"den"},"lanes":[{"platform":"fake","chat":"room"}]},
			{"chat":{"platform":"fake","chat":"room"},"lanes":[{"platform":"fake","chat":"room","line":1}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if got, err := routes.Lane(t.Context(), den); err != nil || got != lane {
			t.Fatal(got, err)
		}
		say(session.PartReply, "here it is")
		time.Sleep(time.Minute)
		other.want(t, "other:den: here it is|")
		fake.mu.Lock()
		fake.down = false
		fake.mu.Unlock()
		time.Sleep(2 * time.Minute)
		fake.want(t, "fake:room: again? first|", "fake:room: second|", "fake:room: file|")
		if want := []session.Key{lane, lane, lane}; !slices.Equal(fake.of, want) {
			t.Errorf("parts of %v; want %v, whose files they name", fake.of, want)
		}
		for _, k := range []session.Key{lane, fresh} {
			if p, ok, _, err := st.OutTake(t.Context(), k, "look", 0); ok || err != nil {
				t.Errorf("%v still holds %v, %v", k, p, err)
			}
		}
	})
}
