package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// An answer is taken for sending with the turn's end only if the platform has
// room for it now: one that waits for the pace is planned, so a crash does not
// make it unknown (I9). Room that no part used goes back.
func TestAnswerTakenWhenThereIsRoom(t *testing.T) {
	for _, full := range []bool{false, true} {
		play(t, set{}, func(w *world) {
			w.out.full = full
			w.deliver(w.says("ann", "ann", "compute"))
			w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "done"}
			synctest.Wait()
			p, ok, _, err := w.store.OutTake(t.Context(), key("ann"), "another", time.Hour)
			if err != nil || ok != full {
				t.Errorf("full %v: another took %+v, %v, %v", full, p, ok, err)
			}
			if w.out.returned != 0 {
				t.Errorf("full %v: %d returned; want none", full, w.out.returned)
			}
			// The second answer stands behind the first: it is not taken.
			w.deliver(w.says("ann", "ann", "and more"))
			w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "done too"}
			synctest.Wait()
			if want := w.out.rooms - 1; !full && w.out.returned != want {
				t.Errorf("%d set aside, %d returned; want all but one", w.out.rooms, w.out.returned)
			}
		})
	}
}
