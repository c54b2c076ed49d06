package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

func fate(ticket int64, s session.FateState) session.Fate {
	return session.Fate{Ticket: ticket, Msgs: []session.MessageID{session.MessageID(fmt.Sprint(ticket))}, State: s}
}

func (w *world) wantSigns(want ...string) {
	w.t.Helper()
	if got := w.plat.signed(); !slices.Equal(got, want) {
		w.t.Errorf("signs %q; want %q", got, want)
	}
}

// The newest state of an input wins: those it overtook are not shown.
func TestSignLatestWins(t *testing.T) {
	play(t, func(w *world) {
		w.plat.sign = func(f session.Fate) error {
			if f.Ticket == 1 {
				time.Sleep(time.Second)
			}
			return nil
		}
		w.out.Sign(room, fate(1, session.FateQueued))
		synctest.Wait()
		w.out.Sign(room, fate(2, session.FatePending))
		w.out.Sign(room, fate(1, session.FateRunning))
		w.out.Sign(room, fate(2, session.FateAttached))
		w.out.Sign(room, fate(2, session.FateSteered))
		w.out.Sign(room, session.Fate{Ticket: 3, State: session.FateQueued}) // no message to sign
		w.out.Sign(session.Key{Platform: "off", Chat: "x"}, fate(4, session.FateQueued))
		w.rest(10 * time.Second)
		w.wantSigns("0 1 queued", "1 2 steered", "1 1 running")
	})
}

// A sign never goes back: two goroutines may tell of two steps in either
// order, and what was consumed does not wait again. Among states of waiting
// any change is shown. Inputs of another session are others.
func TestSignNeverGoesBack(t *testing.T) {
	play(t, func(w *world) {
		for _, s := range []session.FateState{
			session.FatePending, session.FateAccepted, session.FateHeld, session.FateQueued, session.FateAttached, session.FatePending,
			session.FateSteered, session.FateRunning, session.FateAnswered, session.FateSteered, session.FateQueued,
		} {
			w.out.Sign(room, fate(1, s))
			w.rest(time.Second)
		}
		w.out.Sign(key("other"), fate(1, session.FateQueued))
		synctest.Wait()
		w.wantSigns("0 1 pending", "2 1 held", "3 1 queued", "4 1 attached", "6 1 steered", "8 1 answered", "11 1 queued")
	})
}

// A sign is tried three times at most, where another try may help; the next
// one is shown whatever became of it.
func TestSignTries(t *testing.T) {
	wait := fail(session.SendNot, 5*time.Second)
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"flood", wait, []string{"0 1 queued", "5 1 queued", "10 1 queued", "10 2 queued"}},
		{"unknown", fail(session.SendUnknown, 5*time.Second), []string{"0 1 queued", "5 1 queued", "10 1 queued", "10 2 queued"}},
		{"refused", fail(session.SendRefused, 5*time.Second), []string{"0 1 queued", "0 2 queued"}},
		{"no signs here", session.ErrNoSigns, []string{"0 1 queued", "0 2 queued"}},
		{"a bug", errors.New("a bug"), []string{"0 1 queued", "0 2 queued"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plat.sign = func(f session.Fate) error {
					if f.Ticket == 1 {
						return c.err
					}
					return nil
				}
				w.out.Sign(room, fate(1, session.FateQueued))
				w.out.Sign(room, fate(2, session.FateQueued))
				w.rest(time.Minute)
				w.wantSigns(c.want...)
			})
		})
	}
	play(t, func(w *world) { // what is newer takes the place of what is tried again
		first := true
		w.plat.sign = func(session.Fate) error {
			if first {
				first = false
				return wait
			}
			return nil
		}
		w.out.Sign(room, fate(1, session.FateQueued))
		w.rest(time.Second)
		w.out.Sign(room, fate(1, session.FateRunning))
		w.rest(time.Minute)
		w.wantSigns("0 1 queued", "5 1 running")
	})
}

// Signs wait for no message, and messages for no sign.
func TestSignsBeside(t *testing.T) {
	play(t, func(w *world) {
		w.plat.sign = func(session.Fate) error { time.Sleep(time.Minute); return nil }
		w.out.Sign(room, fate(1, session.FateQueued))
		w.put(room, session.PartFinal, "a")
		w.out.Nudge(room, nil)
		w.rest(time.Second)
		w.want("0 a")
		w.out.Close(time.Hour)
		if took := time.Since(w.began); took != time.Minute {
			t.Errorf("closed after %v; want when the sign was shown", took)
		}
	})
}

// A turn that takes an input again begins its life anew; what is still told of
// the turn before it comes too late.
func TestSignOfLaterTurn(t *testing.T) {
	play(t, func(w *world) {
		of := func(turn int64, s session.FateState) session.Fate {
			f := fate(1, s)
			f.Turn = turn
			return f
		}
		for _, f := range []session.Fate{
			fate(1, session.FateAccepted), of(3, session.FateRunning), of(3, session.FateFailed), of(5, session.FateRunning),
			of(3, session.FateStopped), fate(1, session.FateQueued), of(5, session.FateAnswered), of(5, session.FateRunning),
		} {
			w.out.Sign(room, f)
			w.rest(time.Second)
		}
		w.wantSigns("0 1 accepted", "1 1 running", "2 1 failed", "3 1 running", "6 1 answered")
	})
}

// A chat whose session was deleted begins at ticket 1 again, and its signs are
// shown.
func TestSignsAfterDelete(t *testing.T) {
	play(t, func(w *world) {
		of := func(turn int64, s session.FateState) session.Fate {
			f := fate(1, s)
			f.Turn = turn
			return f
		}
		w.out.Sign(room, of(3, session.FateAnswered))
		w.out.Sign(key("other"), of(3, session.FateAnswered))
		w.rest(time.Second)
		w.out.Forget(room)
		for _, f := range []session.Fate{fate(1, session.FatePending), of(1, session.FateSteered)} {
			w.out.Sign(room, f)
			w.out.Sign(key("other"), f)
			w.rest(time.Second)
		}
		if got := w.plat.signed(); len(got) != 4 {
			t.Errorf("signs %q; want both of the first life and both of the second", got)
		}
	})
}
