package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A clock is the time a store under test is opened on.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock {
	return &clock{t: time.Date(2026, time.March, 1, 9, 30, 0, int(250*time.Millisecond), time.UTC)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// Names the rules use: two processes, the lease time, two people.
const (
	me    = "nonce-me"
	other = "nonce-other"
	ttl   = 5 * time.Second
	ann   = session.UserID("ann")
	bob   = session.UserID("bob")
)

// An env is one fresh store under one rule.
type env struct {
	ctx   context.Context
	st    session.Store
	clk   *clock
	key   session.Key // the lane most rules use
	n     int         // makes ids unique
	fails []string
}

func newEnv(ctx context.Context, st session.Store, clk *clock) *env {
	return &env{ctx: ctx, st: st, clk: clk, key: session.Key{Platform: "test", Chat: "1"}}
}

// id gives a new id that begins with kind.
func (e *env) id(kind string) string {
	e.n++
	return fmt.Sprintf("%s:%d", kind, e.n)
}

// must leaves the rule when err is not nil.
func (e *env) must(err error, what string) {
	if err != nil {
		e.fatalf("%s: got error %v; want none", what, err)
	}
}

// want notes when err is not of the class of want.
func (e *env) want(err, want error, what string) {
	if !errors.Is(err, want) {
		e.errorf("%s: got error %v; want %v", what, err, want)
	}
}

// equal notes where two values differ (see diff).
func (e *env) equal(got, want any, what string) {
	if d := diff(got, want); d != "" {
		e.errorf("%s: %s", what, d)
	}
}

func show(v any) string { return fmt.Sprintf("%+v", v) }

func text(s string) []byte {
	b, _ := json.Marshal(session.Input{From: session.Person{ID: ann}, Parts: []session.InputPart{{ID: "m", Text: s}}})
	return b
}

// put accepts an input of ann's, queued unless changed, and gives its entry's
// ticket.
func (e *env) put(change ...func(*session.Accept)) int64 {
	a := e.accept(change...)
	if a.Outcome != session.AcceptOK && a.Outcome != session.AcceptJoined {
		e.fatalf("accept: got outcome %d; want a new or a joined entry", a.Outcome)
	}
	return a.Ticket
}

// accept accepts an input of ann's, queued unless changed.
func (e *env) accept(change ...func(*session.Accept)) session.Accepted {
	id := e.id("m")
	r := session.Accept{
		Key: e.key, Dedupe: id, Want: steer.Queue, Author: ann, Msg: session.MessageID(id), Data: text(id), Fate: session.FateQueued,
	}
	for _, f := range change {
		f(&r)
	}
	a, err := e.st.Accept(e.ctx, r)
	e.must(err, "accept")
	return a
}

func wants(m steer.Mode, turn int64) func(*session.Accept) {
	return func(a *session.Accept) { a.Want, a.Turn = m, turn }
}

// steers makes an input a steer for the turn.
func steers(turn int64) func(*session.Accept) {
	return func(a *session.Accept) { a.Want, a.Turn, a.Fate = steer.Steer, turn, session.FatePending }
}

// opens keeps an input open for parts of the group.
func opens(group string, d time.Duration) func(*session.Accept) {
	return func(a *session.Accept) { a.Group, a.Open = group, d }
}

// joins makes an input a part of the group's open entry, if there is one.
func joins(group string, d time.Duration) func(*session.Accept) {
	return func(a *session.Accept) { a.Group, a.Open, a.Append = group, d, true }
}

func (e *env) lane() session.Lane { return e.laneOf(e.key) }

func (e *env) laneOf(key session.Key) session.Lane {
	l, err := e.st.Load(e.ctx, key)
	e.must(err, "load")
	return l
}

// entry gives a slot entry; the rule ends if it is not there.
func (e *env) entry(ticket int64) session.Entry {
	for _, en := range e.lane().Slot {
		if en.Ticket == ticket {
			return en
		}
	}
	e.fatalf("entry %d is not in the slot", ticket)
	return session.Entry{}
}

// takes names entries as they are in the lane now.
func takes(l session.Lane, tickets ...int64) []session.Take {
	var t []session.Take
	for _, ticket := range tickets {
		for _, en := range l.Slot {
			if en.Ticket == ticket {
				t = append(t, session.Take{Ticket: ticket, Version: en.Version})
			}
		}
	}
	return t
}

// beginning is a Begin by nonce that takes the tickets, on the lane as it is.
func (e *env) beginning(nonce string, tickets ...int64) session.Begin {
	l := e.lane()
	return session.Begin{
		Op: session.OpID(e.id("op")), Key: e.key, Nonce: nonce, TTL: ttl, Gen: l.Gen, Seq: l.Seq, Owner: ann,
		Phase: steer.PhasePreparing, Take: takes(l, tickets...), Rows: []session.Row{userRow(tickets...)},
	}
}

func (e *env) begin(nonce string, tickets ...int64) session.Begun {
	b, err := e.st.Begin(e.ctx, e.beginning(nonce, tickets...))
	e.must(err, "begin")
	return b
}

// turn opens a turn of me on a new entry.
func (e *env) turn() session.Lease { return e.begin(me, e.put()).Lease }

// step is a Commit on the lane as it is.
func (e *env) step(rows ...session.Row) session.Commit {
	return session.Commit{Op: session.OpID(e.id("op")), Seq: e.lane().Seq, Rows: rows, Phase: steer.PhaseModel}
}

func (e *env) commit(l session.Lease, c session.Commit) session.Committed {
	r, err := e.st.Commit(e.ctx, l, c)
	e.must(err, "commit")
	return r
}

// write commits rows.
func (e *env) write(l session.Lease, rows ...session.Row) session.Committed {
	return e.commit(l, e.step(rows...))
}

// drain commits a drain.
func (e *env) drain(l session.Lease) session.Committed {
	c := e.step()
	c.Drain, c.Step = true, 1
	return e.commit(l, c)
}

// end commits the end of the turn.
func (e *env) end(l session.Lease) session.Committed {
	c := e.step(endRow())
	c.End = true
	return e.commit(l, c)
}

func (e *env) claim(nonce string) session.Begun {
	b, err := e.st.Claim(e.ctx, e.key, nonce, ttl)
	e.must(err, "claim")
	return b
}

func (e *env) stop() session.Stopped {
	s, err := e.st.Stop(e.ctx, session.Stop{Key: e.key, Dedupe: e.id("stop")})
	e.must(err, "stop")
	return s
}

func (e *env) reset() session.Lane {
	l, err := e.st.Reset(e.ctx, session.Reset{Key: e.key, Dedupe: e.id("new")})
	e.must(err, "reset")
	return l
}

func (e *env) rows(gen int64) []session.Row {
	r, err := e.st.Rows(e.ctx, e.key, gen, 0, 0)
	e.must(err, "rows")
	return r
}

// fate gives the fate of a ticket.
func (e *env) fate(ticket int64) session.Fate {
	fates, err := e.st.Fates(e.ctx, e.key, 0)
	e.must(err, "fates")
	for _, f := range fates {
		if f.Ticket == ticket {
			return f
		}
	}
	e.fatalf("ticket %d has no fate", ticket)
	return session.Fate{}
}

func (e *env) stats() session.Stats {
	s, err := e.st.Stats(e.ctx)
	e.must(err, "stats")
	return s
}

// conserved checks the conservation law.
func (e *env) conserved() {
	if s := e.stats(); s.Accepted != s.Consumed+s.Steered+s.Dropped+s.InSlot {
		e.errorf("conservation: accepted %d; consumed %d + steered %d + dropped %d + in slot %d",
			s.Accepted, s.Consumed, s.Steered, s.Dropped, s.InSlot)
	}
}

// unchanged notes when f changed anything that can be read of the lane. The
// counters of refusals and replays may grow.
func (e *env) unchanged(what string, f func()) {
	before := e.picture()
	f()
	if d := diff(e.picture(), before); d != "" {
		e.errorf("%s wrote something (got after, want before):\n%s", what, d)
	}
}

// picture is all that can be read of the lane and the counters of effects,
// without the time and the counters of refusals and replays.
func (e *env) picture() picture {
	p := look(e.ctx, e.st, e.key)
	p.Lane.Now = time.Time{}
	p.Stats.Duplicates, p.Stats.Replayed, p.Stats.Fenced = 0, 0, 0
	return p
}

func userRow(tickets ...int64) session.Row {
	var u session.UserRow
	for _, t := range tickets {
		u.Inputs = append(u.Inputs, session.Input{Ticket: t, From: session.Person{ID: ann}})
	}
	return row(session.RowUser, u)
}

func callRow(calls ...string) session.Row {
	var a session.AssistantRow
	for _, c := range calls {
		a.Calls = append(a.Calls, session.Call{ID: c, Name: "shell", Args: "{}"})
	}
	return row(session.RowAssistant, a)
}

func toolRow(call string) session.Row {
	return row(session.RowTool, session.ToolRow{Call: call, Name: "shell", Body: "done"})
}

func endRow() session.Row {
	return row(session.RowAssistant, session.AssistantRow{Text: "done", End: session.EndAnswered})
}

func row(t session.RowType, data any) session.Row {
	b, _ := json.Marshal(data)
	return session.Row{Type: t, Data: b}
}
