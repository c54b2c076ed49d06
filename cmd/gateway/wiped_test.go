//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"coxswain/store/redis/redistest"
)

// TestWipedEnds is F18: when Redis comes back empty, a gateway stops polling,
// writes nothing there and ends with a code of its own.
func TestWipedEnds(t *testing.T) {
	f := newFleet(t)
	srv := redistest.Start(t)
	f.redis = srv.URL
	s := f.start("a", "telegram")
	f.polled("a", time.Now())
	srv.Flush()
	select {
	case <-s.gone:
	case <-time.After(20 * time.Second):
		t.Fatal("the gateway goes on without its store")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != exitWiped || !strings.Contains(s.stderr.String(), "gateway: store: the store was wiped") {
		t.Errorf("got exit code %d; want %d, and that the store was wiped", code, exitWiped)
	}
	if n := srv.Do("DBSIZE"); n != int64(0) {
		t.Errorf("got %v keys; want none, for nothing begins anew", n)
	}
}
