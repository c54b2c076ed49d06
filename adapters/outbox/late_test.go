package outbox_test

import (
	"context"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/storetest"
)

// The right to send that comes late is given back (F13, I9): whoever took the part
// over meanwhile has sent it, and else it is taken anew.
func TestLateReply(t *testing.T) {
	give := func(w *world) session.Part {
		w.put(room, session.PartFinal, "a", "b")
		p, ok, _, err := w.store.OutTake(t.Context(), room, "life1", unknownAfter)
		if !ok || err != nil {
			t.Fatalf("take: %v, %v", ok, err)
		}
		p.Asked = time.Now()
		return p
	}
	t.Run("nobody took it over", func(t *testing.T) {
		play(t, func(w *world) {
			p := give(w)
			w.rest(unknownAfter - 2*time.Second)
			w.out.Nudge(room, &p)
			w.rest(time.Minute)
			w.want("8 a", "8 b")
		})
	})
	t.Run("another process sent it", func(t *testing.T) {
		play(t, func(w *world) {
			p := give(w)
			w.rest(unknownAfter + time.Second)
			if q, ok, _, err := w.store.OutTake(t.Context(), room, "other", unknownAfter); !ok || err != nil || q.State != session.PartUnknown {
				t.Fatalf("take over: %v, %v, %v", q.State, ok, err)
			}
			w.out.Nudge(room, &p)
			w.rest(time.Second)
			if err := w.store.OutDone(t.Context(), room, "other", session.PartDone{ID: "a", State: session.PartSent}); err != nil {
				t.Fatal(err)
			}
			w.rest(time.Minute)
			w.want("21 b") // asked again when the other's try is too old to be trusted
		})
	})
	t.Run("replies are lost", func(t *testing.T) {
		play(t, func(w *world) {
			w.hook = func(point string, when storetest.When) storetest.Fault {
				if point == "outtake" && when == storetest.After && time.Since(w.began) < unknownAfter-time.Second {
					return storetest.LostReply
				}
				return storetest.None
			}
			w.plat.send = func(context.Context, session.Part) error { time.Sleep(3 * time.Second); return nil }
			w.put(room, session.PartFinal, "a")
			w.out.Nudge(room, nil)
			w.rest(unknownAfter + time.Second)
			w.want("9 a")
			// What is under way must not look as old as the first call that asked for it.
			if _, ok, wait, err := w.store.OutTake(t.Context(), room, "other", unknownAfter); ok || wait < unknownAfter/2 || err != nil {
				t.Errorf("another process: %v, wait %v, %v; want it to wait", ok, wait, err)
			}
		})
	})
	t.Run("the store is slow", func(t *testing.T) {
		play(t, func(w *world) {
			w.hook = storetest.Nth(1, "outtake", storetest.After, storetest.Pause(unknownAfter-time.Second))
			w.put(room, session.PartFinal, "a", "b")
			w.out.Nudge(room, nil)
			w.rest(time.Minute)
			w.want("9 a", "9 b")
		})
	})
}
