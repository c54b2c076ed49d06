package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A faultBed is a model with a lane in each state that some write needs, and
// every write as one request that can be asked again.
type faultBed struct {
	m    *Model
	asks map[string]func(ctx context.Context, st session.Store) error
}

func newFaultBed(ctx context.Context) *faultBed {
	clk := newClock()
	b := &faultBed{m: NewModel(clk.now)}
	e := newEnv(ctx, b.m, clk)
	lease := e.turn()
	entry := e.put()
	p := e.plan(1)
	e.take(me)
	c := e.step
	var idle session.Begin
	idleKey := e.in("idle", func() { idle = e.beginning(me, e.put()) })
	claimKey := e.in("claim", func() { e.put() })
	deleteKey := e.in("delete", func() { e.put() })
	expireKey := e.in("expire", func() { e.end(e.turn()) })
	partKey := e.in("part", func() { e.plan(1) })
	e.reserve("o0", 3, day("day", 9)...)
	spentWindow := e.reserve("", 0, day("day", 9)...).Meters[0].Window
	clk.step(time.Second) // so that renew changes something
	commit := func(r session.Commit) func(ctx context.Context, st session.Store) error {
		return func(ctx context.Context, st session.Store) error { _, err := st.Commit(ctx, lease, r); return err }
	}
	amend := func(kind session.AmendKind) func(ctx context.Context, st session.Store) error {
		return func(ctx context.Context, st session.Store) error {
			_, err := st.Amend(ctx, session.Amend{Key: e.key, Dedupe: "e", Kind: kind, Ticket: entry, Data: text("x"), Want: steer.Steer, Turn: 1})
			return err
		}
	}
	drain, end, join, state := c(), c(endRow()), c(row(session.RowFold, session.UserRow{})), c()
	drain.Drain, end.End, join.Take, state.Phase = true, true, takes(e.lane(), entry), steer.PhaseTools
	drain.Jobs = []session.Job{{ID: "j"}} // a drain of nothing cannot be seen
	b.asks = map[string]func(ctx context.Context, st session.Store) error{
		"accept": func(ctx context.Context, st session.Store) error {
			_, err := st.Accept(ctx, session.Accept{Key: e.key, Dedupe: "m", Author: ann, Msg: "m", Data: text("x"), Fate: session.FateQueued})
			return err
		},
		"begin": func(ctx context.Context, st session.Store) error { _, err := st.Begin(ctx, idle); return err },
		"claim": func(ctx context.Context, st session.Store) error {
			_, err := st.Claim(ctx, claimKey, me, ttl)
			return err
		},
		"renew":            func(ctx context.Context, st session.Store) error { _, err := st.Renew(ctx, lease); return err },
		"commit.assistant": commit(c(callRow("c"))),
		"commit.tool":      commit(c(toolRow("c"))),
		"commit.drain":     commit(drain), "commit.join": commit(join), "commit.end": commit(end), "commit.state": commit(state),
		"release":    func(ctx context.Context, st session.Store) error { return st.Release(ctx, lease) },
		"amend.edit": amend(session.AmendEdit), "amend.drop": amend(session.AmendDrop), "amend.set": amend(session.AmendSet),
		"stop": func(ctx context.Context, st session.Store) error {
			_, err := st.Stop(ctx, session.Stop{Key: e.key, Dedupe: "s"})
			return err
		},
		"reset": func(ctx context.Context, st session.Store) error {
			_, err := st.Reset(ctx, session.Reset{Key: e.key, Dedupe: "n"})
			return err
		},
		"post": func(ctx context.Context, st session.Store) error {
			_, err := st.Post(ctx, session.Post{Key: idleKey, Dedupe: "p", Title: "t"})
			return err
		},
		"outtake": func(ctx context.Context, st session.Store) error {
			_, _, _, err := st.OutTake(ctx, partKey, me, takeover)
			return err
		},
		"outdone": func(ctx context.Context, st session.Store) error {
			return st.OutDone(ctx, e.key, me, session.PartDone{ID: p[0].ID, State: session.PartSent})
		},
		"settle": func(ctx context.Context, st session.Store) error {
			return st.Settle(ctx, e.key, []session.FateSet{{Ticket: 1, State: session.FateSteered}})
		},
		"putdoc": func(ctx context.Context, st session.Store) error { return st.PutDoc(ctx, "d", 0, []byte("x")) },
		"delete": func(ctx context.Context, st session.Store) error { return st.Delete(ctx, deleteKey) },
		"expire": func(ctx context.Context, st session.Store) error { return st.Expire(ctx, expireKey, 0) },
		"reserve": func(ctx context.Context, st session.Store) error {
			_, err := st.Reserve(ctx, session.Reserve{Op: "o1", Meters: day("faulty", 9), Amount: 2})
			return err
		},
		"spent": func(ctx context.Context, st session.Store) error { return st.Spent(ctx, "o0", 1) },
		"grant": func(ctx context.Context, st session.Store) error {
			_, err := st.Grant(ctx, session.Grant{Meter: "day", Window: spentWindow, Extra: 5, Mark: "g"})
			return err
		},
	}
	return b
}

// state is all the model holds, the counters of refusals and replays apart.
func (b *faultBed) state(ctx context.Context) string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b.m.lanes)) {
		l := b.m.lanes[name]
		p := look(ctx, b.m, l.Key)
		p.Stats = session.Stats{}
		fmt.Fprintf(&s, "%+v\n", p)
		for _, part := range l.out {
			fmt.Fprintf(&s, "%+v\n", *part)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.m.meters)) {
		fmt.Fprintf(&s, "%s %+v\n", name, *b.m.meters[name])
	}
	return fmt.Sprint(s.String(), b.m.docs)
}

// TestFaultyPoints strikes every write with every fault on both sides, and
// wants the write done or not, the error, and the hit counted.
func TestFaultyPoints(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(newFaultBed(t.Context()).asks)), slices.Sorted(slices.Values(Points())); !slices.Equal(got, want) {
		t.Fatalf("points tried: got %v; want %v", got, want)
	}
	for _, c := range []struct {
		fault Fault
		when  When
		done  bool
		want  error
	}{
		{None, Before, true, nil}, {None, After, true, nil},
		{Crash, Before, false, ErrCrashed}, {Crash, After, true, ErrCrashed},
		{LostReply, Before, true, ErrLostReply}, {LostReply, After, true, ErrLostReply},
		{Down, Before, false, ErrDown}, {Down, After, true, ErrLostReply},
		{Pause(time.Nanosecond), Before, true, nil}, {Pause(time.Nanosecond), After, true, nil},
	} {
		for _, point := range Points() {
			t.Run(fmt.Sprintf("%s/%s/%s", c.fault, c.when, point), func(t *testing.T) {
				b := newFaultBed(t.Context())
				f := &Faulty{Store: b.m, Hook: Nth(1, point, c.when, c.fault)}
				before := b.state(t.Context())
				if err := b.asks[point](t.Context(), f); !errors.Is(err, c.want) {
					t.Errorf("got error %v; want %v", err, c.want)
				}
				after := b.state(t.Context())
				if done := after != before; done != c.done {
					t.Errorf("the write was done: %v; want %v", done, c.done)
				}
				if got := f.Hits()[Hit{point, c.when, c.fault.String()}]; got != 1 {
					t.Errorf("hits: got %d; want 1\n%s", got, f.Report())
				}
				err := b.asks[point](t.Context(), f) // the product asks again
				switch {
				case c.fault == Crash:
					if !errors.Is(err, ErrCrashed) || b.state(t.Context()) != after {
						t.Errorf("a dead process asked: got error %v; want %v and nothing done", err, ErrCrashed)
					}
					select {
					case <-f.Crashed():
					default:
						t.Error("Crashed is not closed")
					}
				case c.done && b.state(t.Context()) != after:
					t.Error("asked again, the write was done twice")
				case !c.done && b.state(t.Context()) == before:
					t.Error("asked again, the write was not done")
				}
			})
		}
	}
}

// TestFaultyReads: reads have points too, and answer through the wrapper as
// they do without.
func TestFaultyReads(t *testing.T) {
	m, l := talk(t)
	var met []string
	f := &Faulty{Store: m, Hook: func(point string, when When) Fault {
		if when == Before {
			met = append(met, point)
		}
		return None
	}}
	ctx := t.Context()
	if err := m.PutDoc(ctx, "d", 0, []byte("x")); err != nil {
		t.Fatal(err)
	}
	type doc struct {
		data    []byte
		version int64
	}
	reads := map[string]func(st session.Store) (any, error){
		"load":     func(st session.Store) (any, error) { return st.Load(ctx, l.Key) },
		"rows":     func(st session.Store) (any, error) { return st.Rows(ctx, l.Key, 1, 2, 3) },
		"due":      func(st session.Store) (any, error) { return st.Due(ctx, 0) },
		"outdue":   func(st session.Store) (any, error) { return st.OutDue(ctx, 0) },
		"fates":    func(st session.Store) (any, error) { return st.Fates(ctx, l.Key, 2) },
		"sessions": func(st session.Store) (any, error) { return st.Sessions(ctx, "", 0) },
		"doc":      func(st session.Store) (any, error) { d, v, err := st.Doc(ctx, "d"); return doc{d, v}, err },
		"stats":    func(st session.Store) (any, error) { return st.Stats(ctx) },
		"ping":     func(st session.Store) (any, error) { return nil, st.Ping(ctx) },
	}
	names := slices.Sorted(maps.Keys(reads))
	for _, name := range names {
		want, _ := reads[name](m)
		got, err := reads[name](f)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: got %+v, error %v; want %+v", name, got, err, want)
		}
	}
	if !slices.Equal(met, names) {
		t.Errorf("points met: got %v; want %v", met, names)
	}
	f.Hook = func(string, When) Fault { return Down }
	for _, name := range names {
		if _, err := reads[name](f); !errors.Is(err, ErrDown) {
			t.Errorf("%s of a store that is down: got error %v; want %v", name, err, ErrDown)
		}
	}
}

// TestFaultyAnswers: a write through the wrapper gives the store's own answer,
// and its refusals.
func TestFaultyAnswers(t *testing.T) {
	for _, r := range suite() {
		clk := newClock()
		for _, f := range r.try(newEnv(t.Context(), &Faulty{Store: NewModel(clk.now)}, clk)) {
			t.Errorf("%s: %s", r.name, f)
		}
	}
}

func TestFaultyPauseOnFakeTime(t *testing.T) {
	for _, when := range []When{Before, After} {
		synctest.Test(t, func(t *testing.T) {
			f := &Faulty{Store: NewModel(time.Now), Hook: Nth(1, "putdoc", when, Pause(time.Hour))}
			start := time.Now()
			if err := f.PutDoc(t.Context(), "d", 0, nil); err != nil {
				t.Error(err)
			}
			if got := time.Since(start); got != time.Hour {
				t.Errorf("%s: took %v; want 1h", when, got)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			m := NewModel(time.Now)
			f := &Faulty{Store: m, Hook: Nth(1, "putdoc", when, Pause(time.Hour))}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			err := f.PutDoc(ctx, "d", 0, nil)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("%s: got error %v after %v; want the deadline after 1m", when, err, time.Since(start))
			}
			if _, v, _ := m.Doc(t.Context(), "d"); (v == 1) != (when == After) {
				t.Errorf("%s: version %d of the document", when, v)
			}
		})
	}
}

// TestFaultyCrashIsFinal: of many goroutines of a process none writes, or hears
// of a write, after the crash.
func TestFaultyCrashIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewModel(time.Now)
		f := &Faulty{Store: m, Hook: Nth(4, "putdoc", Before, Crash)}
		var heard atomic.Int64
		for i := range 8 {
			go func() {
				for n := range 5 {
					if f.PutDoc(t.Context(), fmt.Sprint(i), int64(n), nil) == nil {
						heard.Add(1)
					}
				}
			}()
		}
		<-f.Crashed()
		synctest.Wait()
		done := int64(0)
		for i := range 8 {
			_, v, _ := m.Doc(t.Context(), fmt.Sprint(i))
			done += v
		}
		if heard.Load() > done || done > 3+7 { // 3 before it, and one under way in each other goroutine
			t.Errorf("heard of %d writes, %d done; want at most 10 done", heard.Load(), done)
		}
		if err := f.Close(); !errors.Is(err, ErrCrashed) {
			t.Errorf("close: got error %v; want %v", err, ErrCrashed)
		}
	})
}

func TestCommitPoint(t *testing.T) {
	take := []session.Take{{Ticket: 1}}
	for _, c := range []struct {
		want string
		r    session.Commit
	}{
		{"commit.end", session.Commit{End: true, Take: take, Rows: []session.Row{toolRow("c")}, Drain: true}},
		{"commit.join", session.Commit{Take: take, Rows: []session.Row{toolRow("c")}, Drain: true}},
		{"commit.join", session.Commit{Rows: []session.Row{row(session.RowFold, nil)}, Drain: true}},
		{"commit.tool", session.Commit{Rows: []session.Row{toolRow("c"), callRow("d")}, Drain: true}},
		{"commit.assistant", session.Commit{Rows: []session.Row{callRow("d"), toolRow("c")}, Drain: true}},
		{"commit.drain", session.Commit{Drain: true, HoldRest: true}},
		{"commit.state", session.Commit{Phase: steer.PhaseTools}},
	} {
		if got := commitPoint(c.r); got != c.want {
			t.Errorf("got %s; want %s for %+v", got, c.want, c.r)
		}
	}
}
