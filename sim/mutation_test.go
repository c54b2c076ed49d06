package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/loop"
	"coxswain/session"
)

// A mutation breaks one promise on purpose; the seeds must see it.
type mutation struct {
	name    string
	breakIt func(*world)
	want    string // in one of the violations
}

// broken is a store that breaks promises; each field is one.
type broken struct {
	session.Store
	noDedupe  bool // I2: every delivery is new
	lateAck   bool // I1: accepts without storing, now and then
	shuffled  bool // I3: entries come newest first
	deafOut   bool // I9: a sent part is not taken out
	loseSteer bool // I5: a drained steer is not given back to the loop
	dropRows  bool // I14: results of calls that were not run are not stored

	mu sync.Mutex
	n  int
}

func (b *broken) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	return b.n
}

func (b *broken) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	if b.noDedupe {
		r.Dedupe = fmt.Sprintf("x:%d", b.count())
	}
	if b.lateAck && b.count()%5 == 0 {
		lane, err := b.Load(ctx, r.Key)
		return session.Accepted{Outcome: session.AcceptOK, Ticket: lane.Tickets + 1, Lane: lane}, err
	}
	return b.Store.Accept(ctx, r)
}

func (b *broken) Commit(ctx context.Context, l session.Lease, r session.Commit) (session.Committed, error) {
	if b.dropRows && r.End && len(r.Rows) > 1 {
		r.Rows = r.Rows[len(r.Rows)-1:]
	}
	c, err := b.Store.Commit(ctx, l, r)
	if b.loseSteer && len(c.Steers) > 0 {
		c.Steers = c.Steers[:0]
	}
	return c, err
}

func (b *broken) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	l, err := b.Store.Load(ctx, key)
	if b.shuffled {
		slices.Reverse(l.Slot)
	}
	return l, err
}

func (b *broken) OutDone(ctx context.Context, key session.Key, nonce string, d session.PartDone) error {
	if b.deafOut && d.State == session.PartSent && b.count()%7 == 0 {
		d.State, d.Wait = session.PartPlanned, time.Second
	}
	return b.Store.OutDone(ctx, key, nonce, d)
}

// forgetful tools run a call of a dead process again (I6).
type forgetful struct{ loop.Toolbox }

func (f forgetful) Specs() []loop.ToolSpec {
	specs := slices.Clone(f.Toolbox.Specs())
	for i := range specs {
		specs[i].Pure = true
	}
	return specs
}

func mutations() []mutation {
	store := func(set func(*broken)) func(*world) {
		return func(w *world) {
			w.wrap = func(st session.Store) session.Store {
				b := &broken{Store: st}
				set(b)
				return b
			}
		}
	}
	return []mutation{
		{"I1 accept without storing", store(func(b *broken) { b.lateAck = true }), "I1"},
		{"I2 no dedupe", store(func(b *broken) { b.noDedupe = true }), "I2"},
		{"I3 turns begin newest first", store(func(b *broken) { b.shuffled = true }), "I3"},
		{"I5 a drained steer does not reach the request", store(func(b *broken) { b.loseSteer = true }), ""},
		{"I6 calls run again after a crash", func(w *world) { w.tools = func(b loop.Toolbox) loop.Toolbox { return forgetful{b} } }, "I6"},
		{"I9 a sent part stays in the outbox", store(func(b *broken) { b.deafOut = true }), "I9"},
		{"I14 open calls are not paired", store(func(b *broken) { b.dropRows = true }), "I14"},
		{"I8 the key is not cut out", func(w *world) { w.model.dirty = true }, "I7"},
		{"I11 the head changes within an epoch", func(w *world) { w.model.restless = true }, "I5"},
	}
}

// TestMutations breaks the invariants one by one and lists the seed that saw
// it. A mutation that no seed sees is a hole in the simulator.
func TestMutations(t *testing.T) {
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			hit := newReached()
			for seed := uint64(1); seed <= 3000; seed++ {
				bad := playBroken(t, seed, hit, m.breakIt)
				for _, v := range bad {
					if strings.Contains(v, m.want) {
						t.Logf("caught by seed %d: %s", seed, v)
						return
					}
				}
			}
			t.Errorf("no seed saw it")
		})
	}
}

// playBroken plays a seed in a world that is broken; what goes wrong in it
// fails nothing but is given back.
func playBroken(t *testing.T, seed uint64, hit *reached, breakIt func(*world)) (bad []string) {
	quiet := &collector{TB: t}
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(quiet, seed, hit)
		breakIt(s.w)
		bad = s.play()
	})
	return append(bad, quiet.errs...)
}

// collector keeps errors instead of failing.
type collector struct {
	testing.TB
	mu   sync.Mutex
	errs []string
}

func (c *collector) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, fmt.Sprintf(format, args...))
}
