package storetest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"coxswain/session"
)

// Run is the conformance suite of session.Store: one subtest for each cell of
// operation × state of a lane, and one for each rule of the interface.
//
// open gives a fresh and empty store that reads the time from now; it
// registers its own clean-up with t. Run calls it once per subtest, one after
// another. The clock stands still until the suite moves it, in whole
// milliseconds, and never goes back. Some cases call the store from several
// goroutines at once.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) session.Store) {
	t.Helper()
	for _, c := range suite() {
		t.Run(c.name, func(t *testing.T) {
			clk := newClock()
			for _, f := range c.try(newEnv(t.Context(), open(t, clk.now), clk)) {
				t.Error(f)
			}
		})
	}
}

// A rule is one named demand on a store. It collects what it finds wrong in
// its env and never touches a testing.T, so that the suite can also be turned
// on a store broken on purpose and be seen to object.
type rule struct {
	name string
	run  func(e *env)
}

// suite gives every rule, in a fixed order.
func suite() []rule {
	return slices.Concat(cellRules(), doorRules(), beginRules(), fenceRules(), drainRules(), endRules(),
		slotRules(), stopRules(), outboxRules(), fateRules(), readRules(), raceRules(), meterRules())
}

// try runs the rule and gives what it found wrong. A store that panics has
// broken the rule like one that answers wrong.
func (r rule) try(e *env) (failures []string) {
	defer func() {
		p := recover()
		if _, enough := p.(abandoned); p != nil && !enough {
			e.errorf("panic: %v\n%s", p, debug.Stack())
		}
		failures = e.fails
	}()
	r.run(e)
	e.conserved()
	return nil // set by the deferred call
}

// A failure of one rule says which call was wrong in words a store's author
// can act on.
func (e *env) errorf(format string, args ...any) {
	e.fails = append(e.fails, fmt.Sprintf(format, args...))
}

// abandoned is the panic that leaves a rule which cannot go on.
type abandoned struct{}

func (e *env) fatalf(format string, args ...any) {
	e.errorf(format, args...)
	panic(abandoned{})
}
