//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
)

// BenchmarkThousandRunning is one gateway over Redis with 10,000 stored sessions
// and 1,000 turns running, each in a tool that waits: its memory, and from the
// accept of a steer to the drain that moves it onto a row, 50 a second. A call that
// has run for yield_after makes way for a steer. Promised: 300 MB, p99 20 ms.
func BenchmarkThousandRunning(b *testing.B) {
	const stored, running, steers = 10_000, 1024, 1000 // running is a multiple of soakLanes
	var asked atomic.Int64
	s := newSoak(b, "redis", running, 64, func(w http.ResponseWriter, r *http.Request) { waitModel(w, r, &asked) })
	todo := make(chan int)
	var wg sync.WaitGroup
	for range soakLanes {
		wg.Go(func() {
			for i := range todo {
				if err := seedSession(b, s.parts.store, i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range stored {
		todo <- i
	}
	close(todo)
	wg.Wait()
	report(b, float64(residentBytes(b))/1e6, "stored-MB")
	for lane := range soakLanes {
		wg.Go(func() {
			for n := lane; n < s.sessions; n += soakLanes {
				s.deliver(n, "wait for the report")
			}
		})
	}
	wg.Wait()
	for late := time.Now().Add(benchWait); asked.Load() < int64(s.sessions); quiet(b.Context(), 5*time.Millisecond) {
		if time.Now().After(late) {
			b.Fatalf("%d turns run; want %d", asked.Load(), s.sessions)
		}
	}
	quiet(b.Context(), 1500*time.Millisecond) // yield_after is a second, and a follow-up within one would join
	report(b, float64(residentBytes(b))/1e6, "running-MB")

	var mu sync.Mutex
	at, took, drained := map[session.Key]time.Time{}, []time.Duration{}, make(chan struct{}, steers)
	s.on = func(what string, key session.Key) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if what == "accept" {
			at[key] = now
			return
		}
		took = append(took, now.Sub(at[key]))
		drained <- struct{}{}
	}
	var raw []time.Duration
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	version := int64(0)
	for i := range steers {
		<-tick.C
		s.deliver(i%s.sessions, "use the March data")
		if i%10 == 0 {
			began := time.Now()
			if err := s.parts.store.PutDoc(b.Context(), "raw", version, []byte("a durable commit")); err != nil {
				b.Fatal(err)
			}
			raw, version = append(raw, time.Since(began)), version+1
		}
	}
	late := time.NewTimer(benchWait)
	defer late.Stop()
	for i := range steers {
		select {
		case <-drained:
		case <-late.C:
			b.Fatalf("%d steers went in; want %d", i, steers)
		}
	}
	report(b, ms(percentile(took, 50)), "p50-ms")
	report(b, ms(percentile(took, 99)), "p99-ms")
	report(b, ms(percentile(raw, 50)), "commit-ms")
	report(b, ms(percentile(raw, 99)), "commit-p99-ms")
	report(b, float64(residentBytes(b))/1e6, "steered-MB")
}

// waitModel calls the timer for a minute, again and again.
func waitModel(w http.ResponseWriter, r *http.Request, asked *atomic.Int64) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the gateway has ended
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var out bytes.Buffer
	fmt.Fprintf(&out, benchFrame, fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_%d","type":"function",`+
		`"function":{"name":"wait","arguments":"{\"seconds\":60}"}}]}`, asked.Add(1)), "null")
	fmt.Fprintf(&out, benchFrame, `{}`, `"tool_calls"`)
	out.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(out.Bytes()) // a gateway that has gone reads no more
}
