package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// memoryLeast is the smallest bound: at rest a gateway takes about half of it.
const memoryLeast = 64 << 20

const (
	// memoryEvery is how often memory is looked at: reading two numbers.
	memoryEvery = 200 * time.Millisecond
	// memoryAgain is how often, while it is short, a collection is asked for that
	// would tell when it is not: nothing else may make one.
	memoryAgain = 2 * time.Second
)

// A pressure watches what the process holds against limits.memory. What counts is
// what lives: the heap that the last collection kept, and stacks. The runtime is
// given the same bound, so it collects, and this is fresh, when the bound is near.
// Methods may be called from any goroutine but run.
type pressure struct {
	most  uint64 // 0 = no bound
	tell  func(short bool)
	read  func() (live, cycles uint64)
	short atomic.Bool
	live  atomic.Uint64
	times atomic.Int64 // it was short
}

func newPressure(most Size, tell func(bool)) *pressure {
	return &pressure{most: uint64(max(most, 0)), tell: tell, read: readMemory}
}

// readMemory gives the bytes that live, and how many collections there were.
func readMemory() (live, cycles uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64(), s[2].Value.Uint64()
}

// run looks until ctx ends.
func (p *pressure) run(ctx context.Context) error {
	if p.most == 0 {
		return nil
	}
	if os.Getenv("GOMEMLIMIT") == "" && p.most < math.MaxInt64 { // else its operator has chosen
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(p.most)))
	}
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	asked, seen := time.Now(), uint64(0)
	for {
		live, cycles := p.read()
		p.live.Store(live)
		p.judge(live)
		switch {
		case cycles != seen:
			asked, seen = time.Now(), cycles
		case p.short.Load() && time.Since(asked) >= memoryAgain:
			runtime.GC()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// judge begins the shortage at three quarters and ends it under five eighths, so
// that it does not come and go with each turn.
func (p *pressure) judge(live uint64) {
	was := p.short.Load()
	now := live >= p.most/4*3 || was && live >= p.most/8*5
	if now == was {
		return
	}
	p.short.Store(now)
	if now {
		p.times.Add(1)
	}
	p.tell(now)
}

// Short reports whether memory is short.
func (p *pressure) Short() bool { return p.short.Load() }

// reason says for /readyz that memory is short; "" when it is not.
func (p *pressure) reason() string {
	if !p.Short() {
		return ""
	}
	return fmt.Sprintf(textShort, p.live.Load()>>20, p.most>>20)
}

// memoryStatus is the memory of the process in its status.
type memoryStatus struct {
	Live  uint64 `json:"live_bytes"`
	Most  uint64 `json:"most_bytes"`
	Short bool   `json:"short"`
	Times int64  `json:"short_times"`
}

func (p *pressure) status() memoryStatus {
	return memoryStatus{p.live.Load(), p.most, p.Short(), p.times.Load()}
}
