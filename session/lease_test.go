package session_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

const leaseTTL = 5 * time.Second // of the hubs of playTwo

// away makes each call of the first process to the store end as fault says, until
// back is called.
func (w *world) away(fault func() storetest.Fault) (back func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = func(_ string, when storetest.When) storetest.Fault {
		if when == storetest.Before {
			return fault()
		}
		return storetest.None
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faults = nil
	}
}

// fallen is why the first process's turn ended by none of its own.
func (w *world) fallen() error {
	if err := w.agent.fell.Load(); err != nil {
		return *err
	}
	return nil
}

// F13: a process that was stopped for longer than its lease and goes on writes
// nothing more, and knows within a renewal that its turn is another's.
func TestOwnerStopped(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Queue}, func(w *world, _ *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		turn := w.agent.turn.Load()
		cont := make(chan struct{})
		back := w.away(func() storetest.Fault { <-cont; return storetest.None })
		time.Sleep(leaseTTL + 2*time.Second)
		synctest.Wait()
		l := w.lane("ann")
		if l.Nonce != "life2" || l.Epoch != 2 || l.Attempts != 1 {
			t.Fatalf("the lease is %q's, epoch %d, after %d recoveries; want life2, 2, 1", l.Nonce, l.Epoch, l.Attempts)
		}
		before := w.fenced()
		back()
		close(cont)
		if _, err := turn.Commit(w.t.Context(), session.Step{Rows: []session.Row{{Type: session.RowAssistant, Data: []byte("{}")}}}); !errors.Is(err, session.ErrFenced) {
			t.Errorf("its write: %v; want to be fenced", err)
		}
		time.Sleep(leaseTTL / 3)
		synctest.Wait()
		if err := w.fallen(); !errors.Is(err, session.ErrFenced) {
			t.Errorf("its turn ended with %v; want to be fenced within a renewal", err)
		}
		if now := w.lane("ann"); now.Seq != l.Seq || now.Nonce != "life2" || now.Turn != l.Turn {
			t.Errorf("rows up to %d, the lease is %q's; want %d and life2", now.Seq, now.Nonce, l.Seq)
		}
		if n := w.fenced() - before; n == 0 {
			t.Error("no write was refused")
		}
	})
}

func (w *world) fenced() int64 {
	s, err := w.store.Stats(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Fenced
}

// F15: a process for which the store is slower than its lease starts no further
// call once half of that has passed without a renewal, and is fenced when it hears
// of the store again.
func TestStoreSlowForOwner(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Queue}, func(w *world, _ *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		turn := w.agent.turn.Load()
		back := w.away(func() storetest.Fault { return storetest.Down })
		guard := func() chan error {
			over := make(chan error, 1)
			go func() { over <- turn.Guard(w.t.Context()) }()
			synctest.Wait()
			return over
		}
		if err := <-guard(); err != nil {
			t.Errorf("a call with a fresh lease: %v", err)
		}
		time.Sleep(leaseTTL/2 + time.Second)
		late := guard()
		if len(late) > 0 {
			t.Errorf("a call may start though the lease was not renewed: %v", <-late)
		}
		time.Sleep(leaseTTL) // it is the other's by now
		synctest.Wait()
		if len(late) > 0 || w.lane("ann").Nonce != "life2" {
			t.Errorf("the lease is %q's and the call may start: %v; want life2's, and not", w.lane("ann").Nonce, len(late) > 0)
		}
		back()
		if err := <-late; !errors.Is(err, session.ErrFenced) {
			t.Errorf("the call, once the store answers: %v; want to be fenced", err)
		}
		time.Sleep(leaseTTL / 3)
		synctest.Wait()
		if err := w.fallen(); !errors.Is(err, session.ErrFenced) {
			t.Errorf("its turn ended with %v; want to be fenced", err)
		}
	})
}
