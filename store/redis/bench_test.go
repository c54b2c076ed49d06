package redis

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// The benchmarks run on a server that syncs every write, as documented for
// use, alone and with 50 lanes at once. Beside each stands what one plain
// RPUSH of 400 bytes costs the same client there ("rpush-ns").

const benchLanes = 50

// lanes runs f b.N times, from one goroutine or from 50, each with its own
// name and a count from 0.
func lanes(b *testing.B, n int, f func(name string, i int)) time.Duration {
	start := time.Now()
	if n == 1 {
		for i := range b.N {
			f("0", i)
		}
		return time.Since(start)
	}
	var wg sync.WaitGroup
	var done atomic.Int64
	for g := range n {
		wg.Go(func() {
			for i := 0; done.Add(1) <= int64(b.N); i++ {
				f(fmt.Sprint(g), i)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func bench(b *testing.B, f func(s *Store, name string, i int)) {
	for _, n := range []int{1, benchLanes} {
		b.Run(fmt.Sprintf("lanes=%d", n), func(b *testing.B) {
			s := open(b, redistest.Start(b))
			blob := make([]byte, 400)
			raw := lanes(b, n, func(name string, i int) {
				if err := s.client.RPush(b.Context(), "raw:"+name, blob).Err(); err != nil {
					b.Error(err)
				}
			})
			runtime.GC()
			b.ResetTimer()
			lanes(b, n, func(name string, i int) { f(s, name, i) })
			b.ReportMetric(float64(raw.Nanoseconds())/float64(b.N), "rpush-ns")
		})
	}
}

// BenchmarkAccept accepts 400 bytes; a lane gets sixteen.
func BenchmarkAccept(b *testing.B) {
	bench(b, func(s *Store, name string, i int) {
		key := session.Key{Platform: "bench", Chat: session.ChatID(name), Thread: session.ThreadID(fmt.Sprint(i / 16))}
		accept(b, s, key, fmt.Sprint("m:", i), func(r *session.Accept) { r.Data = make([]byte, 400) })
	})
}

// BenchmarkPlainTurn is accept, load, begin, commit and outdone.
func BenchmarkPlainTurn(b *testing.B) {
	bench(b, func(s *Store, name string, i int) {
		turn(b, s, session.Key{Platform: "bench", Chat: session.ChatID(name)}, i)
	})
}

// BenchmarkSweep is what a gateway asks every second: due and outdue over all
// partitions with 1,000 lanes, none of them due.
func BenchmarkSweep(b *testing.B) {
	s := open(b, redistest.Start(b, "appendfsync no"), func(o *Options) { o.Relaxed = true })
	for i := range 1000 {
		key := session.Key{Platform: "bench", Chat: session.ChatID(fmt.Sprint(i))}
		accept(b, s, key, "m:1")
		begin(b, s, key, "b", "n")
	}
	for b.Loop() {
		if due, err := s.Due(b.Context(), 100); err != nil || len(due) != 0 {
			b.Fatal(due, err)
		}
		if due, err := s.OutDue(b.Context(), 100); err != nil || len(due) != 0 {
			b.Fatal(due, err)
		}
	}
}
