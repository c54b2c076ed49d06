package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"coxswain/steer"
	"coxswain/store/storetest"
)

// A runner that lost its lease before the end of a failed turn was stored has told
// nobody. Who ends the turn after it, in the same process too, says why it failed,
// not that it failed again for the reason given before.
func TestFailureOfALostRunnerIsNotTold(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		w.mu.Lock()
		w.faults = func(point string, _ storetest.When) storetest.Fault {
			if point == "renew" || point == "commit.end" {
				return storetest.Down
			}
			return storetest.None
		}
		w.mu.Unlock()
		w.fails()
		time.Sleep(20 * time.Second) // its lease runs out
		if _, err := w.store.Claim(t.Context(), key("ann"), "another", time.Second); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.faults = nil
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if l := w.lane("ann"); l.Turn != 1 || l.Attempts == 0 {
			t.Fatalf("turn %d, taken over %d times; want turn 1 to go on", l.Turn, l.Attempts)
		}
		w.fails()
		w.wantSaid("ann", "The model is away.")
		w.deliver(w.says("ann", "ann", "another task"))
		w.fails()
		w.wantSaid("ann", "Failed again") // within a minute
	})
}
