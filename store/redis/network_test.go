package redis

import (
	"math/rand/v2"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// TestBadNetwork is F25: the server pauses, connections are reset every 50 ms,
// replies take 200 ± 200 ms, or come at 10 kB/s. Nothing is lost or done twice,
// and a lease of 10 s that is renewed every 2 s is never lost.
func TestBadNetwork(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := newProxy(t, srv.Addr)
	s := openAt(t, p.url())
	accept(t, s, lane1, "m:lease")
	b := begin(t, s, lane1, "b", "n1")
	lease := b.Lease
	lease.TTL = 10 * time.Second
	w := startWriters(t, s, 4)
	for name, fault := range map[string]func(end <-chan time.Time){
		"pause": func(<-chan time.Time) { srv.Do("CLIENT", "PAUSE", 1500, "ALL") },
		"resets": func(end <-chan time.Time) {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-end:
					return
				case <-tick.C:
					p.reset()
				}
			}
		},
		"latency": func(end <-chan time.Time) {
			p.slow(func(int) time.Duration { return rand.N(400 * time.Millisecond) })
			<-end
		},
		"10 kB/s": func(end <-chan time.Time) {
			p.slow(func(n int) time.Duration { return time.Duration(n) * time.Second / 10_000 })
			<-end
		},
	} {
		before := w.n.Load()
		fault(time.After(1500 * time.Millisecond))
		p.slow(nil)
		if _, err := s.Renew(t.Context(), lease); err != nil {
			t.Errorf("%s: renew: %v", name, err)
		}
		w.more(20)
		t.Logf("%s: %d acknowledged", name, w.n.Load()-before)
	}
	if _, err := s.Commit(t.Context(), lease, session.Commit{Op: "c", Seq: b.Lane.Seq}); err != nil {
		t.Errorf("the turn goes on: %v", err)
	}
	if lost, doubled := w.end(); lost != 0 || doubled != 0 {
		t.Errorf("got %d lost, %d doubled; want none", lost, doubled)
	}
}
