package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// TestTakeOver: from then on every other process is refused, at whatever step this
// one dies; the next that opens the store goes on with it, and nothing is lost.
func TestTakeOver(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	prefix := redistest.Prefix(t)
	own := func(o *Options) { o.Prefix, o.Partitions, o.Relaxed = prefix, 4, true }
	refused := 0
	for steps := 0; ; steps++ {
		served, taker := open(t, srv, own), open(t, srv, own)
		mark := fmt.Sprint("before", steps)
		accept(t, served, lane1, mark)
		was := taker.id
		ctx, stop := context.WithCancel(t.Context())
		taker.client.AddHook(&cutHook{left: steps, stop: stop})
		whole := taker.TakeOver(ctx) == nil
		stop()
		next := open(t, srv, own)
		if whole && next.id == was {
			t.Error("the data kept their id")
		}
		_, err := served.Accept(t.Context(), session.Accept{Key: lane1, Dedupe: "late" + mark})
		if next.id != was {
			refused++
		}
		if (next.id != was) != errors.Is(err, ErrWiped) {
			t.Errorf("after %d steps, a process that had the store open: got %v", steps, err)
		}
		if a := accept(t, next, lane1, mark); a.Outcome != session.AcceptDup {
			t.Errorf("after %d steps: what was there is not there: %v", steps, a.Outcome)
		}
		if whole {
			break
		}
	}
	if refused < 5 { // announced, four partitions
		t.Errorf("%d cuts left another id; want one for each step", refused)
	}
}

// A cutHook ends the process, as its server sees it, after some commands.
type cutHook struct {
	left int
	stop context.CancelFunc
}

func (h *cutHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *cutHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.left--; h.left < 0 {
			h.stop()
			cmd.SetErr(context.Canceled)
			return context.Canceled
		}
		return next(ctx, cmd)
	}
}
func (h *cutHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestExisting: a Redis without a store is refused and left as it is.
func TestExisting(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	if _, err := Open(t.Context(), srv.URL, Options{Relaxed: true, Existing: true}); err == nil || !strings.Contains(err.Error(), wordsNone) {
		t.Errorf("got %v", err)
	}
	if n := srv.Do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys were made", n)
	}
}
