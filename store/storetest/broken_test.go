package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"coxswain/session"
)

// A broken store is a Model with hooks that change what it is asked, what it
// answers, and what it holds. before and after get the lane (nil if there is
// none), the request and the answer by pointer, under the model's lock.
type broken struct {
	*Model
	mu     sync.Mutex // makes a call with its hooks one step
	before func(l *lane, request any)
	after  func(l *lane, request, answer any, err error)
}

// A leased is a request of a lease holder.
type leased struct {
	lease  session.Lease
	commit session.Commit // of Commit
}

// claimed is the request of Claim, taking of OutTake.
type (
	claimed struct{ nonce string }
	taking  struct{ nonce string }
	taken   struct {
		part session.Part
		ok   bool
	}
	releasing struct{ leased }
	settling  struct{ sets []session.FateSet }
	deleting  struct{}
	expiring  struct{ idle time.Duration }
)

func hooked[R, A any](b *broken, key session.Key, r *R, call func() (A, error)) (A, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.before != nil {
		b.Model.mu.Lock()
		b.before(b.find(key), r)
		b.Model.mu.Unlock()
	}
	a, err := call()
	if b.after != nil {
		b.Model.mu.Lock()
		b.after(b.find(key), r, &a, err)
		b.Model.mu.Unlock()
	}
	return a, err
}

func (b *broken) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	return hooked(b, r.Key, &r, func() (session.Accepted, error) { return b.Model.Accept(ctx, r) })
}

func (b *broken) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	r.Take = slices.Clone(r.Take)
	return hooked(b, r.Key, &r, func() (session.Begun, error) { return b.Model.Begin(ctx, r) })
}

func (b *broken) Claim(ctx context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	return hooked(b, key, &claimed{nonce}, func() (session.Begun, error) { return b.Model.Claim(ctx, key, nonce, ttl) })
}

func (b *broken) Renew(ctx context.Context, l session.Lease) (session.Flags, error) {
	r := leased{lease: l}
	return hooked(b, l.Key, &r, func() (session.Flags, error) { return b.Model.Renew(ctx, r.lease) })
}

func (b *broken) Commit(ctx context.Context, l session.Lease, c session.Commit) (session.Committed, error) {
	r := leased{l, c}
	return hooked(b, l.Key, &r, func() (session.Committed, error) { return b.Model.Commit(ctx, r.lease, r.commit) })
}

func (b *broken) Release(ctx context.Context, l session.Lease) error {
	r := releasing{leased{lease: l}}
	_, err := hooked(b, l.Key, &r, func() (any, error) { return nil, b.Model.Release(ctx, r.lease) })
	return err
}

func (b *broken) Amend(ctx context.Context, r session.Amend) (session.Amended, error) {
	return hooked(b, r.Key, &r, func() (session.Amended, error) { return b.Model.Amend(ctx, r) })
}

func (b *broken) Stop(ctx context.Context, r session.Stop) (session.Stopped, error) {
	return hooked(b, r.Key, &r, func() (session.Stopped, error) { return b.Model.Stop(ctx, r) })
}

func (b *broken) Reset(ctx context.Context, r session.Reset) (session.Lane, error) {
	return hooked(b, r.Key, &r, func() (session.Lane, error) { return b.Model.Reset(ctx, r) })
}

func (b *broken) Post(ctx context.Context, r session.Post) (session.Posted, error) {
	return hooked(b, r.Key, &r, func() (session.Posted, error) { return b.Model.Post(ctx, r) })
}

func (b *broken) OutTake(ctx context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error) {
	var wait time.Duration
	t, err := hooked(b, key, &taking{nonce}, func() (t taken, err error) {
		t.part, t.ok, wait, err = b.Model.OutTake(ctx, key, nonce, takeover)
		return t, err
	})
	return t.part, t.ok, wait, err
}

func (b *broken) Settle(ctx context.Context, key session.Key, f []session.FateSet) error {
	_, err := hooked(b, key, &settling{f}, func() (any, error) { return nil, b.Model.Settle(ctx, key, f) })
	return err
}

func (b *broken) Delete(ctx context.Context, key session.Key) error {
	_, err := hooked(b, key, &deleting{}, func() (any, error) { return nil, b.Model.Delete(ctx, key) })
	return err
}

func (b *broken) Expire(ctx context.Context, key session.Key, idle time.Duration) error {
	r := &expiring{idle}
	_, err := hooked(b, key, r, func() (any, error) { return nil, b.Model.Expire(ctx, key, r.idle) })
	return err
}

// TestSuiteCatches turns the suite and the streams on stores broken on purpose:
// each must be caught by the rules that guard what it breaks, and by a stream.
func TestSuiteCatches(t *testing.T) {
	streams := rapid.Custom(drawStream)
	t.Run("unbroken", func(t *testing.T) { // the hooks themselves break nothing
		b := breakage{do: func(*broken) {}}
		for _, r := range suite() {
			clk := newClock()
			for _, f := range r.try(newEnv(t.Context(), b.open(clk.now), clk)) {
				t.Errorf("%s: %s", r.name, f)
			}
		}
		for seed := range 20 {
			clk := newClock()
			if wrong := play(t.Context(), clk, []side{{"unbroken", b.open(clk.now)}}, streams.Example(seed), newTally()); wrong != "" {
				t.Error(wrong)
			}
		}
	})
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for _, r := range suite() {
				if !strings.HasPrefix(r.name, b.by) {
					continue
				}
				clk := newClock()
				if fails := r.try(newEnv(t.Context(), b.open(clk.now), clk)); len(fails) > 0 {
					t.Logf("%s:\n%s", r.name, fails[0])
					failed++
				}
			}
			if failed == 0 {
				t.Errorf("no rule %s… objects", b.by)
			}
			for seed := range 400 {
				clk := newClock()
				if play(t.Context(), clk, []side{{"broken", b.open(clk.now)}}, streams.Example(seed), newTally()) != "" {
					t.Logf("stream %d differs", seed)
					return
				}
			}
			t.Error("no stream of 400 differs")
		})
	}
}

func (b breakage) open(now func() time.Time) session.Store {
	s := &broken{Model: NewModel(now)}
	b.do(s)
	return s
}
