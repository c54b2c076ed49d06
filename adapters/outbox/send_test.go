package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/store/storetest"
)

// Parts of a session are sent in order; a session that is slow holds up no
// other (I9).
func TestOrder(t *testing.T) {
	play(t, func(w *world) {
		slow, quick := key("slow"), key("quick")
		w.plat.send = func(_ context.Context, p session.Part) error {
			if p.Key == slow {
				time.Sleep(time.Minute)
			}
			return nil
		}
		w.put(slow, session.PartFinal, "s1", "s2")
		w.out.Nudge(slow, nil)
		w.rest(time.Second)
		w.put(quick, session.PartFinal, "q1", "q2", "q3")
		w.out.Nudge(quick, nil)
		w.rest(time.Second)
		w.put(slow, session.PartReply, "s3")
		w.out.Nudge(slow, nil)
		w.rest(5 * time.Minute)
		w.want("0 s1", "1 q1", "1 q2", "1 q3", "60 s2", "120 s3")
		if n := w.left(slow) + w.left(quick); n != 0 {
			t.Errorf("%d parts are left", n)
		}
	})
}

// The platform's own word on when to try again is kept, however often the
// outbox is nudged, and what is behind waits too.
func TestRetryAfter(t *testing.T) {
	play(t, func(w *world) {
		w.plat.send = inTurn(fail(session.SendNot, 30*time.Second))
		w.put(room, session.PartReply, "a", "b")
		for range 29 {
			w.out.Nudge(room, nil)
			w.rest(time.Second)
		}
		w.want("0 a")
		w.rest(5 * time.Second)
		w.want("0 a", "30 a", "30 b")
	})
}

// Without a word of the platform tries are spread out, up to a minute apart,
// and go on until the part is sent: what was stored arrives (I9).
func TestBackoff(t *testing.T) {
	play(t, func(w *world) {
		const tries = 12
		var at []time.Duration
		w.plat.send = func(context.Context, session.Part) error {
			if at = append(at, time.Since(w.began)); len(at) < tries {
				return fail(session.SendNot, 0)
			}
			return nil
		}
		w.put(room, session.PartNotice, "a")
		w.out.Nudge(room, nil)
		w.rest(20 * time.Minute)
		if len(at) != tries || w.left(room) != 0 {
			t.Fatalf("%d tries, %d parts left; want %d and 0", len(at), w.left(room), tries)
		}
		for i := 1; i < tries; i++ {
			most := min(time.Second<<(i-1), time.Minute)
			if gap := at[i] - at[i-1]; gap < most/2 || gap > most+time.Millisecond {
				t.Errorf("try %d came after %v; want %v to %v", i+1, gap, most/2, most)
			}
		}
	})
}

// A final whose fate is unknown is sent once more after unknown_after, marked
// as a possible repeat, and not a third time; so is a notice, all else is not. What is
// behind goes on (I9).
func TestUnknown(t *testing.T) {
	lost, flood := fail(session.SendUnknown, 0), fail(session.SendNot, 3*time.Second)
	for _, c := range []struct {
		name string
		kind session.PartKind
		errs []error
		want []string
	}{
		{"final", session.PartFinal, []error{lost}, []string{"0 a", "10 a?", "10 b"}},
		{"final, twice", session.PartFinal, []error{lost, lost}, []string{"0 a", "10 a?", "10 b"}},
		{"notice", session.PartNotice, []error{lost}, []string{"0 a", "10 a?", "10 b"}},
		{"say", session.PartSay, []error{lost}, []string{"0 a", "0 b"}},
		{"reply", session.PartReply, []error{lost}, []string{"0 a", "0 b"}},
		// Not sent is no second sending: the mark stays, and so does the bound.
		{"final, then a flood", session.PartFinal, []error{lost, flood}, []string{"0 a", "10 a?", "20 a?", "20 b"}},
		{"final, a flood, lost again", session.PartFinal, []error{lost, flood, lost}, []string{"0 a", "10 a?", "20 a?", "20 b"}},
		{"final, a flood before", session.PartFinal, []error{flood, lost}, []string{"0 a", "3 a", "13 a?", "13 b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plat.send = inTurn(c.errs...)
				w.put(room, c.kind, "a")
				w.put(room, session.PartReply, "b")
				w.out.Nudge(room, nil)
				w.rest(2 * time.Minute)
				w.want(c.want...)
			})
		})
	}
}

// What the last process was sending when it died is unknown too.
func TestTakeover(t *testing.T) {
	play(t, func(w *world) {
		w.put(room, session.PartFinal, "a")
		w.put(room, session.PartNotice, "b", "c")
		if _, ok, _, err := w.store.OutTake(t.Context(), room, "life0/out", unknownAfter); !ok || err != nil {
			t.Fatalf("take: %v, %v", ok, err)
		}
		w.rest(4 * time.Second)
		w.out.Nudge(room, nil)
		w.rest(time.Minute)
		w.want("10 a?", "10 b", "10 c")
	})
	play(t, func(w *world) {
		w.put(room, session.PartReply, "a", "b")
		if _, ok, _, err := w.store.OutTake(t.Context(), room, "life0", unknownAfter); !ok || err != nil {
			t.Fatalf("take: %v, %v", ok, err)
		}
		w.out.Nudge(room, nil)
		w.rest(time.Minute)
		w.want("10 b")
	})
}

// A part that is refused for good, or fails in a way nobody foresaw, is given
// up; the next one goes.
func TestRefused(t *testing.T) {
	play(t, func(w *world) {
		w.plat.send = inTurn(fail(session.SendRefused, time.Hour), errors.New("a bug"), fmt.Errorf("send: %w", fail(session.SendRefused, 0)))
		w.put(room, session.PartFinal, "a", "b", "c", "d")
		w.out.Nudge(room, nil)
		w.rest(time.Second)
		w.want("0 a", "0 b", "0 c", "0 d")
		if s, err := w.store.Stats(t.Context()); err != nil || s.OutDead != 3 || s.OutSent != 1 {
			t.Errorf("%d dead, %d sent, %v; want 3 and 1", s.OutDead, s.OutSent, err)
		}
	})
}

// A part that came with a nudge is sent once, however many look into the
// store at the same moment, and before what is behind it.
func TestTakenPart(t *testing.T) {
	play(t, func(w *world) {
		for round := range 20 {
			k := key(session.ChatID(fmt.Sprint(round)))
			w.put(k, session.PartFinal, "a", "b")
			p, ok, _, err := w.store.OutTake(t.Context(), k, "life1", unknownAfter)
			if !ok || err != nil {
				t.Fatalf("take: %v, %v", ok, err)
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if i == round%8 {
						w.out.Nudge(k, &p)
					} else {
						w.out.Nudge(k, nil)
					}
				})
			}
			wg.Wait()
		}
		w.rest(time.Minute)
		var want []string
		for range 20 {
			want = append(want, "0 a", "0 b")
		}
		slices.Sort(want)
		got := w.plat.calls()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("sent %q; want each part once, at once", got)
		}
	})
}

// While the store is away nothing is lost and nothing is sent twice: a take is
// asked again, and so is the end of one (I9).
func TestStoreAway(t *testing.T) {
	for _, c := range []struct {
		point string
		fault storetest.Fault
	}{
		{"outtake", storetest.Down}, {"outtake", storetest.LostReply}, {"outdone", storetest.Down}, {"outdone", storetest.LostReply},
	} {
		t.Run(c.point+" "+c.fault.String(), func(t *testing.T) {
			play(t, func(w *world) {
				n := 0
				w.hook = func(point string, when storetest.When) storetest.Fault {
					if point != c.point || when != storetest.Before {
						return storetest.None
					}
					if n++; n <= 5 {
						return c.fault
					}
					return storetest.None
				}
				w.put(room, session.PartFinal, "a", "b")
				w.out.Nudge(room, nil)
				w.rest(time.Minute)
				var got []string
				for _, s := range w.plat.calls() {
					got = append(got, s[strings.Index(s, " ")+1:])
				}
				if !slices.Equal(got, []string{"a", "b"}) || w.left(room) != 0 || n < 6 {
					t.Errorf("sent %q, %d left, asked %d times; want a and b once", got, w.left(room), n)
				}
			})
		})
	}
}

// Close waits for what is being sent and leaves the rest for the next process.
func TestClose(t *testing.T) {
	play(t, func(w *world) {
		w.plat.send = func(context.Context, session.Part) error { time.Sleep(3 * time.Second); return nil }
		w.put(room, session.PartFinal, "a", "b")
		w.out.Nudge(room, nil)
		synctest.Wait()
		began := time.Now()
		w.out.Close(time.Minute)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("closed after %v; want 3s", took)
		}
		w.out.Nudge(room, nil)
		w.out.Sign(room, session.Fate{Ticket: 1, Msgs: []session.MessageID{"m"}})
		w.rest(time.Minute)
		w.want("0 a")
		if w.left(room) != 1 || len(w.plat.signed()) != 0 {
			t.Errorf("%d parts left, %d signs; want 1 and 0", w.left(room), len(w.plat.signed()))
		}
	})
	play(t, func(w *world) { // one that does not come back is cut off
		w.plat.send = func(ctx context.Context, _ session.Part) error { <-ctx.Done(); return ctx.Err() }
		w.put(room, session.PartFinal, "a")
		w.out.Nudge(room, nil)
		synctest.Wait()
		began := time.Now()
		w.out.Close(2 * time.Second)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("closed after %v; want 2s", took)
		}
		if w.left(room) != 1 {
			t.Errorf("%d parts left; want the one that was cut off", w.left(room))
		}
	})
	play(t, func(w *world) { // one that waits out a flood is not waited for
		w.plat.send = inTurn(fail(session.SendNot, time.Hour))
		w.put(room, session.PartFinal, "a")
		w.out.Nudge(room, nil)
		synctest.Wait()
		began := time.Now()
		w.out.Close(time.Minute)
		if took := time.Since(began); took != 0 || w.left(room) != 1 {
			t.Errorf("closed after %v, %d left; want at once, 1", took, w.left(room))
		}
	})
}
