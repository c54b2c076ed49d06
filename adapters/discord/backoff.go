package discord

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff gives growing waits with jitter, so that what failed together is
// not tried again together.
type backoff struct{ step, most time.Duration }

// next gives a wait between half the step and all of it, and doubles the step.
func (b *backoff) next() time.Duration {
	d := b.step
	b.step = min(2*d, b.most)
	return d/2 + rand.N(d/2+1)
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
