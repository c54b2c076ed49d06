package outbox_test

import (
	"context"
	"testing"
	"time"

	"coxswain/session"
)

// budget is a platform with room for one send every ten seconds.
type budget struct {
	*platform
	next     time.Time
	returned int
}

func (b *budget) Reserve(_ session.Key, most time.Duration) (time.Duration, bool) {
	wait := max(time.Until(b.next), 0)
	if wait > most {
		return wait, false
	}
	b.next = time.Now().Add(wait + 10*time.Second)
	return wait, true
}

func (b *budget) Return(session.Key) {
	b.returned++
	b.next = b.next.Add(-10 * time.Second)
}

func playPaced(t *testing.T, f func(w *world, b *budget)) {
	play(t, func(w *world) {
		b := &budget{platform: w.plat}
		w.out.Register(b)
		f(w, b)
	})
}

// A part is taken only when it may go: one that waits for the platform's pace
// is planned, not unknown, if the process dies meanwhile (I9).
func TestRoomBeforeTake(t *testing.T) {
	playPaced(t, func(w *world, b *budget) {
		var paced []bool
		w.plat.send = func(_ context.Context, p session.Part) error {
			paced = append(paced, p.Paced)
			return nil
		}
		other := key("other")
		w.put(room, session.PartFinal, "a")
		w.put(other, session.PartFinal, "b")
		w.out.Nudge(room, nil)
		w.rest(time.Second)
		w.out.Nudge(other, nil)
		w.rest(time.Second)
		// Another process may take it: nothing holds it here.
		p, ok, _, err := w.store.OutTake(t.Context(), other, "another/out", unknownAfter)
		if err != nil || !ok || p.State != session.PartSending {
			t.Fatalf("taken %+v, %v, %v; want b, that nobody had", p, ok, err)
		}
		if err := w.store.OutDone(t.Context(), other, "another/out", session.PartDone{ID: "b", State: session.PartPlanned}); err != nil {
			t.Fatal(err)
		}
		w.rest(30 * time.Second)
		w.want("0 a", "10 b")
		if len(paced) != 2 || !paced[0] || !paced[1] {
			t.Errorf("paced %v; want both", paced)
		}
		// What is set aside to learn that nothing is there goes back.
		w.out.Nudge(room, nil)
		w.rest(time.Second)
		if left := time.Until(b.next); b.returned == 0 || left > 0 {
			t.Errorf("%d returned, the next may go in %v; want one returned and room now", b.returned, left)
		}
	})
}

// The hub is told that there is room only once while there is room for one, and
// never for a platform that is not here.
func TestRoomForTheHub(t *testing.T) {
	playPaced(t, func(w *world, b *budget) {
		if !w.out.Room(room) || w.out.Room(key("other")) {
			t.Error("want room for one send")
		}
		w.out.Return(room)
		if !w.out.Room(key("other")) {
			t.Error("what went back is not free again")
		}
		if w.out.Room(session.Key{Platform: "off", Chat: "1"}) {
			t.Error("a platform that is not here has room")
		}
		w.out.Return(session.Key{Platform: "off", Chat: "1"})
	})
}

// A flood between the reservation and the send costs a new reservation, not
// the part.
func TestRoomLost(t *testing.T) {
	playPaced(t, func(w *world, b *budget) {
		w.plat.send = inTurn(fail(session.SendNot, 5*time.Second))
		w.put(room, session.PartFinal, "a")
		w.out.Nudge(room, nil)
		w.rest(time.Minute)
		w.want("0 a", "10 a")
	})
}
