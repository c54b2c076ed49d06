package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"coxswain/session"
)

// Faulty is a store as one process sees it on a bad day: a wrapper whose calls
// crash the process, lose their replies, are refused or are slow where Hook
// says so. Wrap the one shared store once for each simulated process.
//
// It is safe for concurrent use, starts no goroutine, and waits by timers, so
// that it works on the fake time of a synctest bubble.
type Faulty struct {
	// Store does the work.
	Store session.Store
	// Hook is asked before and after each call, from the goroutine of the
	// caller and with no lock held; nil means no faults. Set it before the
	// first call.
	Hook Hook

	mu    sync.Mutex
	dead  bool
	death chan struct{} // made by Crashed
	hits  map[Hit]int
}

var _ session.Store = (*Faulty)(nil)

// Unwrap is the store that does the work: what it can do besides is not faulty.
func (f *Faulty) Unwrap() session.Store { return f.Store }

// A Hook chooses the fault at a point: one of Points, or the name of a read
// (load, rows, due, outdue, fates, seen, sessions, doc, stats, ping).
type Hook func(point string, when When) Fault

// When is the side of the call a hook is asked on.
type When uint8

// Before the store is called, and after it has answered.
const (
	Before When = iota
	After
)

func (w When) String() string { return [...]string{"before", "after"}[w] }

// A Fault is what happens to one call. Faults are comparable.
type Fault struct {
	kind  faultKind
	pause time.Duration
}

type faultKind string

// The faults. A lost reply, and Down asked after the call, leave the caller
// not knowing: the write is done, and it must be asked again with the same OpID
// or Dedupe.
var (
	None      = Fault{}              // the call goes through
	Crash     = Fault{kind: "crash"} // the process dies here: this call and all later ones give ErrCrashed and, before, do nothing
	LostReply = Fault{kind: "lost"}  // done; the caller gets ErrLostReply
	Down      = Fault{kind: "down"}  // before: not done, ErrDown; after: as LostReply
)

// Pause delays the call (before) or its reply (after) by d, or until the
// context ends, which then is the error.
func Pause(d time.Duration) Fault { return Fault{kind: "pause", pause: d} }

// String names the fault, without the length of a pause.
func (f Fault) String() string {
	if f.kind == "" {
		return "none"
	}
	return string(f.kind)
}

// Errors that only a Faulty gives.
var (
	ErrCrashed   = errors.New("storetest: the process crashed at this call")
	ErrLostReply = errors.New("storetest: the reply was lost")
	ErrDown      = errors.New("storetest: the store is down")
)

// Points are all writes, by name. A commit is named by its content: end, then
// join (it takes entries, or its first row is a fold), then assistant or tool
// by its first row, then drain; state is one that moves only phase, jobs,
// parts or fates.
func Points() []string {
	return []string{
		"accept", "begin", "claim", "renew", "commit.assistant", "commit.tool", "commit.drain", "commit.join", "commit.end",
		"commit.state", "release", "amend.edit", "amend.drop", "amend.set", "stop", "reset", "post", "outtake", "outdone",
		"settle", "putdoc", "delete", "expire", "reserve", "spent", "grant",
	}
}

// A Hit is a fault at a point.
type Hit struct {
	Point string
	When  When
	Fault string // Fault.String
}

// Hits gives how often each fault, None among them, struck at each point.
func (f *Faulty) Hits() map[Hit]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.hits)
}

// Report is Hits as text, one line for each point.
func (f *Faulty) Report() string {
	lines := map[string][]string{}
	for h, n := range f.Hits() {
		lines[h.Point] = append(lines[h.Point], fmt.Sprintf("%s %s %d", h.When, h.Fault, n))
	}
	var b strings.Builder
	for _, point := range slices.Sorted(maps.Keys(lines)) {
		slices.Sort(lines[point])
		fmt.Fprintf(&b, "%s: %s\n", point, strings.Join(lines[point], ", "))
	}
	return b.String()
}

// Crashed is closed when a Crash strikes: the simulator ends the process then.
func (f *Faulty) Crashed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.death == nil {
		f.death = make(chan struct{})
		if f.dead {
			close(f.death)
		}
	}
	return f.death
}

// Nth is a hook that strikes once: the n-th time, from 1, that the point is
// met on that side.
func Nth(n int, point string, when When, fault Fault) Hook {
	var mu sync.Mutex
	return func(p string, w When) Fault {
		if p != point || w != when {
			return None
		}
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			return fault
		}
		return None
	}
}

// ask gives the fault and counts it.
func (f *Faulty) ask(point string, when When) Fault {
	fault := None
	if f.Hook != nil {
		fault = f.Hook(point, when)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hits == nil {
		f.hits = map[Hit]int{}
	}
	f.hits[Hit{point, when, fault.String()}]++
	if fault == Crash && !f.dead {
		f.dead = true
		if f.death != nil {
			close(f.death)
		}
	}
	return fault
}

// alive is nil until the process crashed: a dead process asks nothing and
// hears nothing.
func (f *Faulty) alive() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return ErrCrashed
	}
	return nil
}

// call makes one call with its faults.
func call[A any](ctx context.Context, f *Faulty, point string, do func() (A, error)) (A, error) {
	var none A
	if err := f.alive(); err != nil {
		return none, err
	}
	before := f.ask(point, Before)
	switch before.kind {
	case Down.kind:
		return none, ErrDown
	case "pause":
		if err := pause(ctx, before.pause); err != nil {
			return none, err
		}
	}
	if err := f.alive(); err != nil { // by this fault, or another call's meanwhile
		return none, err
	}
	a, err := do()
	after := before
	if before != LostReply {
		after = f.ask(point, After)
	}
	if dead := f.alive(); dead != nil {
		return none, dead
	}
	switch {
	case after == LostReply, after == Down:
		return none, ErrLostReply
	case after.kind == "pause" && after != before:
		if late := pause(ctx, after.pause); late != nil {
			return none, late
		}
		if dead := f.alive(); dead != nil {
			return none, dead
		}
	}
	return a, err
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
