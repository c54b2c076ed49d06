package outbox

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff grows from one second to a minute, with jitter.
func backoff(attempt int) time.Duration {
	d := min(time.Second<<min(max(attempt-1, 0), 6), time.Minute)
	return d/2 + rand.N(d/2)
}

// pause waits; false means that ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
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
