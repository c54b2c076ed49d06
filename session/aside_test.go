package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"coxswain/steer"
	"coxswain/store/storetest"
)

// TestQuestionOfAHalfDoneNew: /new ends the answer to a question and gives up before
// it can store that, because the store is away. Delivered again it touches no job;
// the question is asked once more and does not stand there for ever.
func TestQuestionOfAHalfDoneNew(t *testing.T) {
	play(t, set{mode: steer.Steer}, func(w *world) {
		w.agent.slow = time.Minute
		w.deliver(w.says("ann", "ann", "/btw how far?"))
		if n := w.agent.asked.Load(); n != 1 {
			t.Fatalf("asked %d times; want 1", n)
		}
		w.setFaults(func(point string, when storetest.When) storetest.Fault {
			if point == "post" && when == storetest.Before {
				return storetest.Down
			}
			return storetest.None
		})
		reset := w.says("ann", "ann", "/new")
		if err := w.hub.Deliver(w.t.Context(), reset); err == nil {
			t.Fatal("/new was taken while the store was away")
		}
		synctest.Wait()
		if n := w.agent.cut.Load(); n != 1 {
			t.Fatalf("%d answers were ended; want 1", n)
		}
		w.setFaults(nil)
		w.agent.slow = 0
		w.deliver(reset)
		time.Sleep(15 * time.Second)
		if l := w.lane("ann"); len(l.Jobs) != 0 || w.agent.asked.Load() != 2 {
			t.Errorf("asked %d times, %d jobs; want it asked once more and answered", w.agent.asked.Load(), len(l.Jobs))
		}
	})
}

// TestQuestionIsNotAskedTwiceAtOnce: a lane that was read before a question was
// stored looks as if it had been answered. Asked anew at once, the ends of both met
// in what only one could end, and the process died.
func TestQuestionIsNotAskedTwiceAtOnce(t *testing.T) {
	play(t, set{mode: steer.Steer}, func(w *world) {
		old := w.deliver(w.says("ann", "ann", "a task"))
		w.finish("done")
		w.agent.slow, w.agent.lingers = 10*time.Second, time.Second
		w.deliver(w.says("ann", "ann", "/btw another?")) // the session is looked after meanwhile
		w.setFaults(storetest.Nth(1, "accept", storetest.After, storetest.Pause(300*time.Millisecond)))
		again := make(chan error, 1)
		go func() { again <- w.hub.Deliver(w.t.Context(), old) }()
		synctest.Wait() // its lane is read, and comes late
		if err := w.hub.Deliver(w.t.Context(), w.says("ann", "ann", "/btw how far?")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := <-again; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.hub.Wake(key("ann")) // and is read anew
		synctest.Wait()
		if n := w.agent.asked.Load(); n != 2 {
			t.Errorf("asked %d times while the first two have not ended; want 2", n)
		}
		time.Sleep(30 * time.Second)
		if l := w.lane("ann"); len(l.Jobs) != 0 || w.agent.asked.Load() != 3 {
			t.Errorf("asked %d times, %d jobs; want all answered, one asked anew", w.agent.asked.Load(), len(l.Jobs))
		}
	})
}

func (w *world) setFaults(hook storetest.Hook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = hook
}
