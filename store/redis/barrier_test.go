package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// pair is a primary and its replica.
func pair(t *testing.T) (primary, replica *redistest.Server) {
	t.Helper()
	primary = redistest.Start(t)
	return primary, redistest.Replica(t, primary.Addr)
}

// TestBarrier: with its replica silent, nothing is acknowledged that someone
// would be told of, and reads and what is liveness only go on as before.
func TestBarrier(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	s := openWaiting(t, primary.URL, 1)
	begun(t, s)
	replica.Stop()
	t.Cleanup(replica.Continue)
	var passed []string
	for _, o := range opsOf(s) {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		err := o.do(ctx)
		cancel()
		switch {
		case err == nil || errors.Is(err, session.ErrStale) || errors.Is(err, session.ErrFenced):
			passed = append(passed, o.name)
		case !errors.Is(err, errNotDurable) && !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("%s: got %v; want it not durable", o.name, err)
		}
	}
	want := []string{
		"claim", "doc", "due", "expire", "fates", "load", "outdone", "outdue", "release", "renew", "rows", "seen", "sessions", "settle", "stats",
	}
	slices.Sort(passed)
	if !slices.Equal(passed, want) {
		t.Errorf("done without the replica: got %v; want %v", passed, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := s.Ping(ctx); !errors.Is(err, errNotDurable) || !strings.Contains(err.Error(), "0 of the 1 replicas") {
		t.Errorf("ping: got %v; want the missing replica named", err)
	}
}

// TestBarrierRepeats: a call that was not confirmed goes out again under its
// name until it is, on whichever connection: each try waits for what the first
// wrote, though it writes nothing of its own, and it is done once.
func TestBarrierRepeats(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	s := openWaiting(t, primary.URL, 1)
	replica.Stop()
	t.Cleanup(replica.Continue)
	done := make(chan session.Accepted, 1)
	go func() {
		a, err := s.Accept(t.Context(), session.Accept{Key: lane1, Dedupe: "m:1", Data: []byte("{}")})
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	before := waitsOf(primary)
	redistest.Until(t, 20*time.Second, "a third try", func() bool { return waitsOf(primary) >= before+3 })
	select {
	case a := <-done:
		t.Errorf("acknowledged without the replica: %+v", a)
	default:
	}
	replica.Continue()
	select {
	case a := <-done:
		if a.Outcome != session.AcceptOK || a.Ticket != 1 {
			t.Errorf("got outcome %d, ticket %d; want OK, 1", a.Outcome, a.Ticket)
		}
	case <-within(t, 20*time.Second).Done():
		t.Fatal("not acknowledged with the replica back")
	}
	if st := stats(t, s); st.Accepted != 1 {
		t.Errorf("accepted: got %d; want 1", st.Accepted)
	}
}

// waitsOf is how many WAITs a server has got.
func waitsOf(srv *redistest.Server) (n int) {
	for line := range strings.Lines(calls(srv)) {
		fmt.Sscanf(line, "wait calls=%d", &n)
	}
	return n
}

// TestBarrierCost: WAIT rides behind its script. A plain turn is as many round
// trips as without, and without replicas to wait for nothing is sent for it.
func TestBarrierCost(t *testing.T) {
	primary, _ := pair(t)
	for replicas, want := range map[int]int{0: 0, 1: 3} { // accept, begin, commit; not load, nor outdone
		s := openAt(t, primary.URL, func(o *Options) { o.Wait.Replicas = replicas })
		turn(t, s, lane1, 0)
		primary.Do("CONFIG", "RESETSTAT")
		turn(t, s, lane1, 1)
		if got := waitsOf(primary); got != want {
			t.Errorf("%d replicas: got %d WAITs; want %d", replicas, got, want)
		}
	}
}

// TestTooFewReplicas: start refuses what could never be confirmed, relaxed or not.
func TestTooFewReplicas(t *testing.T) {
	primary, _ := pair(t)
	for _, relaxed := range []bool{false, true} {
		_, err := Open(t.Context(), primary.URL, Options{Prefix: redistest.Prefix(t), Relaxed: relaxed, Wait: Wait{Replicas: 2}})
		for _, word := range []string{primary.Addr, "store.wait.replicas", "the 1 connected", "attach a replica"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("relaxed %v: got %v; want %q in it", relaxed, err, word)
			}
		}
	}
}
