package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"coxswain/session"
)

// Equivalence drives the stores and a Model side by side on one clock with
// drawn streams of commands, and compares each reply, the class of each error
// and, after each command, all that can be read. Several stores are held equal
// to the model and so to each other.
//
// Each open gives a fresh and empty store, as for Run; it is called once per
// stream, within a subtest that ends with the stream. -rapid.checks sets the
// number of streams; -v prints how often each outcome of each operation was
// met. With at least 60 streams an outcome that was never met fails the test:
// a comparison that did not happen proves nothing.
func Equivalence(t *testing.T, stores map[string]func(t *testing.T, now func() time.Time) session.Store) {
	t.Helper()
	met := newTally()
	streams, left := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		stream := drawStream(rt)
		streams++
		played, wrong := false, ""
		passed := t.Run("stream", func(t *testing.T) {
			clk := newClock()
			var sides []side
			for _, name := range slices.Sorted(maps.Keys(stores)) {
				sides = append(sides, side{name, stores[name](t, clk.now)})
			}
			played, wrong = true, play(t.Context(), clk, sides, stream, met)
		})
		left = left || passed && !played
		switch {
		case wrong != "":
			rt.Fatal(wrong)
		case !passed:
			rt.Fatal("a store could not be opened, or failed while it was closed: see its subtest")
		}
	})
	t.Log(met)
	if left {
		t.Log("-run left the subtests of the streams out")
		return
	}
	if streams >= 60 {
		for _, never := range met.missing() {
			t.Errorf("never met: %s", never)
		}
	}
}

// A side is a store held against the model.
type side struct {
	name string
	st   session.Store
}

// A tally counts outcomes of operations.
type tally map[string]map[string]int

// outcomes are all that must be met, by operation.
const outcomes = `
accept:  ok dup full joined
begin:   ok replay stale held
claim:   ok again held gone
renew:   ok fenced
commit:  ok replay drained joined end more part stale fenced
release: ok fenced
seat:    claimed held renewed released fenced
amend:   dup stale
edit:    ok missed
drop:    ok missed
set:     ok missed
stop:    ok other dup
stopall: ok other
stopkeep: ok other
reset:   ok dup
post:    ok dup
outtake: sending unknown again wait none
outdone: sent dead unknown planned sending given_up
settle:  ok
delete:  ok held
expire:  ok stale
putdoc:  ok stale
doc:     ok
rows:    some
fates:   some
due:     some none
outdue:  some none
sessions: some none
reserve: ok refused again read
spent:   ok
grant:   ok dup gone
`

func newTally() tally {
	t := tally{}
	for line := range strings.Lines(strings.TrimSpace(outcomes)) {
		op, words, _ := strings.Cut(line, ":")
		t[op] = map[string]int{}
		for _, w := range strings.Fields(words) {
			t[op][w] = 0
		}
	}
	return t
}

func (t tally) add(op, outcome string) { t[op][outcome]++ }

func (t tally) missing() []string {
	var never []string
	for _, op := range slices.Sorted(maps.Keys(t)) {
		for _, o := range slices.Sorted(maps.Keys(t[op])) {
			if t[op][o] == 0 {
				never = append(never, op+" "+o)
			}
		}
	}
	return never
}

// String is a table: one line for each operation.
func (t tally) String() string {
	var b strings.Builder
	b.WriteString("outcomes met:")
	for _, op := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "\n%9s", op)
		for _, o := range slices.Sorted(maps.Keys(t[op])) {
			fmt.Fprintf(&b, "  %s %d", o, t[op][o])
		}
	}
	return b.String()
}

// A player plays one stream.
type player struct {
	ctx   context.Context
	clk   *clock
	model *Model
	sides []side
	lanes []*played
	ids   int
	docs  int64 // version of the document

	spends  []string        // ops of Reserve
	windows []session.Grant // meters as they were met
	granted session.Grant   // the last that was asked for

	met   tally
	log   []string // what was asked, and the model's answer
	wrong []string
}

// A played lane remembers what was asked of it, so that it can be asked again.
type played struct {
	key    session.Key
	marks  []string // dedupe keys of inputs
	edits  []string // dedupe keys of amends
	begin  session.Begin
	began  bool // begin was the last write of a holder
	commit session.Commit
	lease  session.Lease // of commit
	part   session.Part
	nonce  string // that took part
}

// play gives "" or what differed, with the stream that led there. A store that
// panics differs.
func play(ctx context.Context, clk *clock, sides []side, stream []command, met tally) (wrong string) {
	p := newPlayer(ctx, clk, sides, met)
	return p.judge(func() { p.play(stream) })
}

func newPlayer(ctx context.Context, clk *clock, sides []side, met tally) *player {
	p := &player{ctx: ctx, clk: clk, model: NewModel(clk.now), sides: sides, met: met}
	for _, key := range []session.Key{{Platform: "test", Chat: "1"}, {Platform: "test", Chat: "2", Thread: "a:b", User: "u"}, {Platform: "p", Chat: "3"}} {
		p.lanes = append(p.lanes, &played{key: key})
	}
	return p
}

// judge runs f and gives what was wrong in it.
func (p *player) judge(f func()) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			p.wrong = append(p.wrong, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
		if len(p.wrong) > 0 {
			wrong = strings.Join(p.log, "\n") + "\n\n" + strings.Join(p.wrong, "\n")
		}
	}()
	f()
	return "" // set by the deferred call
}

// play plays a stream until something is wrong, and looks at everything at its
// end.
func (p *player) play(stream []command) {
	for i, c := range stream {
		p.log = append(p.log, fmt.Sprintf("%3d +%v lane %d", i, p.clk.now().Sub(newClock().now()), c.Lane))
		l := p.lanes[c.Lane]
		verbs[c.Op](p, l, c)
		p.compare(l.key)
		if len(p.wrong) > 0 {
			return
		}
	}
	p.log = append(p.log, "at the end")
	for _, l := range p.lanes {
		p.compare(l.key)
	}
	p.askSessions(command{})
	p.askDue(command{})
	p.askOutDue(command{})
}

// note ends the newest line of the log.
func (p *player) note(op, outcome string) {
	p.met.add(op, outcome)
	p.log[len(p.log)-1] += ": " + op + " " + outcome
}

// class names an error by what a caller may do about it.
func class(err error) string {
	if err == nil {
		return ""
	}
	for _, word := range slices.Sorted(maps.Keys(refusals)) {
		if errors.Is(err, refusals[word]) {
			return word
		}
	}
	return "error: " + err.Error()
}

// both asks the model and every side and compares; it gives the model's answer.
func both[A any](p *player, request any, ask func(st session.Store) (A, error)) (A, string) {
	want, err := ask(p.model)
	refused := class(err)
	for _, s := range p.sides {
		got, err := ask(s.st)
		d := ""
		if c := class(err); c != refused {
			d = fmt.Sprintf("got error %q; want %q", c, refused)
		} else if err == nil {
			d = diff(got, want)
		}
		if d != "" {
			p.wrong = append(p.wrong, fmt.Sprintf("%s was asked %T%+v\nand its reply differs:\n%s", s.name, request, request, d))
		}
	}
	return want, refused
}

// compare compares all that can be read of a lane, and the counters.
func (p *player) compare(key session.Key) {
	want := look(p.ctx, p.model, key)
	if s := want.Stats; s.Accepted != s.Consumed+s.Steered+s.Dropped+s.InSlot {
		p.wrong = append(p.wrong, fmt.Sprintf("conservation: %+v", s))
	}
	for _, s := range p.sides {
		if d := diff(look(p.ctx, s.st, key), want); d != "" {
			p.wrong = append(p.wrong, fmt.Sprintf("%s differs in what is read of %s:\n%s", s.name, key, d))
		}
	}
}

// askDue compares by the time a lane is due, since lanes due at one time may
// come in any order.
func (p *player) askDue(c command) {
	limit := c.Pick
	p.model.mu.Lock()
	at := map[session.Key]time.Time{}
	for _, l := range p.model.lanes {
		if t, ok := l.due(); ok {
			at[l.Key] = t
		}
	}
	p.model.mu.Unlock()
	times := func(st session.Store) ([]time.Time, error) {
		keys, err := st.Due(p.ctx, limit)
		var ts []time.Time
		seen := map[session.Key]bool{}
		for _, k := range keys {
			t, ok := at[k]
			if !ok || seen[k] {
				return nil, fmt.Errorf("lane %s is not due, or twice", k)
			}
			seen[k] = true
			ts = append(ts, t)
		}
		return ts, err
	}
	want, _ := both(p, limit, times)
	p.some("due", len(want))
}

// askOutDue compares how many lanes come, and that all are among those due.
func (p *player) askOutDue(c command) {
	limit := c.Pick
	all, _ := p.model.OutDue(p.ctx, 0)
	want, _ := both(p, limit, func(st session.Store) (int, error) {
		keys, err := st.OutDue(p.ctx, limit)
		for i, k := range keys {
			if !slices.Contains(all, k) || slices.Contains(keys[:i], k) {
				return 0, fmt.Errorf("lane %s is not due, or twice", k)
			}
		}
		return len(keys), err
	})
	p.some("outdue", want)
}

func (p *player) askSessions(c command) {
	after := ""
	if c.N > 0 {
		after = p.lanes[c.N-1].key.String()
	}
	want, _ := both(p, after, func(st session.Store) ([]session.Lane, error) { return st.Sessions(p.ctx, after, c.Pick) })
	p.some("sessions", len(want))
}

func (p *player) some(op string, n int) {
	if n > 0 {
		p.note(op, "some")
	} else {
		p.note(op, "none")
	}
}
