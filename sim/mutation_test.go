package sim

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

	"coxswain/loop"
	"coxswain/session"
)

// A mutation breaks one promise on purpose; the seeds must see it.
type mutation struct {
	name    string
	breakIt func(*world)
	want    string // in one of the violations
	draw    drawer // nil: one process
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
	unfenced  bool // I4: who lost the lease writes on
	generous  bool // I4: a lease that another holds is given all the same
	early     bool // I9: a part that another sends now is given, as if nobody did

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

func (b *broken) Claim(ctx context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	c, err := b.Store.Claim(ctx, key, nonce, ttl)
	if b.generous && errors.Is(err, session.ErrHeld) {
		return session.Begun{Lease: session.Lease{Key: key, Epoch: 1, Nonce: nonce, TTL: ttl}}, nil
	}
	return c, err
}

func (b *broken) Renew(ctx context.Context, l session.Lease) (session.Flags, error) {
	f, err := b.Store.Renew(ctx, l)
	if b.unfenced && errors.Is(err, session.ErrFenced) {
		return f, nil
	}
	return f, err
}

func (b *broken) OutTake(ctx context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error) {
	p, ok, wait, err := b.Store.OutTake(ctx, key, nonce, takeover)
	if b.early && !ok && wait > 0 {
		p, ok, wait, err = b.Store.OutTake(ctx, key, nonce, 0)
		p.State = session.PartSending
	}
	return p, ok, wait, err
}

func (b *broken) Commit(ctx context.Context, l session.Lease, r session.Commit) (session.Committed, error) {
	if b.unfenced {
		if lane, err := b.Load(ctx, l.Key); err == nil && lane.Turn != 0 {
			l.Epoch, l.Nonce, r.Seq = lane.Epoch, lane.Nonce, lane.Seq
		}
	}
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
		{"I1 accept without storing", store(func(b *broken) { b.lateAck = true }), "I1", nil},
		{"I2 no dedupe", store(func(b *broken) { b.noDedupe = true }), "I2", nil},
		{"I3 turns begin newest first", store(func(b *broken) { b.shuffled = true }), "I3", nil},
		{"I5 a drained steer does not reach the request", store(func(b *broken) { b.loseSteer = true }), "", nil},
		{"I6 calls run again after a crash", func(w *world) { w.tools = func(b loop.Toolbox) loop.Toolbox { return forgetful{b} } }, "I6", nil},
		{"I9 a sent part stays in the outbox", store(func(b *broken) { b.deafOut = true }), "I9", nil},
		{"I14 open calls are not paired", store(func(b *broken) { b.dropRows = true }), "I14", nil},
		{"I8 the key is not cut out", func(w *world) { w.model.dirty = true }, "I7", nil},
		{"I11 the head changes within an epoch", func(w *world) { w.model.restless = true }, "I5", nil},
		{"I4 who lost the lease writes on", store(func(b *broken) { b.unfenced = true }), "", newFleet},
		{"I4 two take one seat", store(func(b *broken) { b.generous = true }), "polls while", newFleet},
		{"I9 two send one part", store(func(b *broken) { b.early = true }), "I9", newFleet},
	}
}

// TestMutations breaks the invariants one by one and lists the seed that saw
// it. A mutation that no seed sees is a hole in the simulator.
func TestMutations(t *testing.T) {
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			hit := newReached()
			for seed := uint64(1); seed <= 3000; seed++ {
				bad := playBroken(t, seed, hit, m)
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
func playBroken(t *testing.T, seed uint64, hit *reached, m mutation) (bad []string) {
	quiet := &collector{TB: t}
	synctest.Test(t, func(t *testing.T) {
		draw := m.draw
		if draw == nil {
			draw = newSchedule
		}
		s := draw(quiet, seed, hit)
		m.breakIt(s.w)
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
