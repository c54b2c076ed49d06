package main

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPressure: memory is short from three quarters on and until under five eighths.
func TestPressure(t *testing.T) {
	var told []bool
	p := newPressure(800, func(short bool) { told = append(told, short) })
	for _, c := range []struct {
		live  uint64
		short bool
	}{{599, false}, {600, true}, {500, true}, {599, true}, {499, false}, {599, false}, {900, true}, {0, false}} {
		p.live.Store(c.live)
		p.judge(c.live)
		if p.Short() != c.short || (p.reason() != "") != c.short {
			t.Errorf("at %d of 800: short %v, %q; want %v", c.live, p.Short(), p.reason(), c.short)
		}
	}
	if want := []bool{true, false, true, false}; !slices.Equal(told, want) || p.status().Times != 2 {
		t.Errorf("told %v, %d times; want %v", told, p.status().Times, want)
	}
}

// TestPressureMeasured: it is the live heap that counts, as measured, and the end of
// a shortage is seen though nothing more is allocated.
func TestPressureMeasured(t *testing.T) {
	base, _ := readMemory()
	told := make(chan bool, 8)
	p := newPressure(Size(base+128<<20), func(short bool) { told <- short })
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- p.run(ctx) }()
	defer func() { stop(); <-gone }()
	next := func(want bool) {
		t.Helper()
		late := time.NewTimer(time.Minute)
		defer late.Stop()
		select {
		case got := <-told:
			if got != want {
				t.Fatalf("told %v; want %v", got, want)
			}
		case <-late.C:
			t.Fatalf("not told %v in a minute; live %d of %d", want, p.live.Load(), p.most)
		}
	}
	for range 20 { // garbage does not count
		runtime.KeepAlive(make([]byte, 16<<20))
	}
	var ballast [][]byte
	for range 10 {
		ballast = append(ballast, make([]byte, 12<<20))
	}
	runtime.GC()
	next(true)
	if why := p.reason(); !strings.Contains(why, "MiB") {
		t.Errorf("the reason is %q", why)
	}
	runtime.KeepAlive(ballast)
	ballast = nil
	next(false)
}
