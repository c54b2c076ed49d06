package storetest

import (
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// drainRules: the one drain point (I5).
func drainRules() []rule {
	return []rule{
		{"drain/steers go onto the newest tool row", (*env).drainMoves},
		{"drain/F4 after a takeover", (*env).drainTakeover},
		{"drain/only onto a tool row", (*env).drainOnlyTool},
		{"drain/F5 never onto a row a request has carried", (*env).drainNotSent},
		{"drain/sent moves with every drain and no other commit", (*env).drainSent},
		{"drain/only steers of this turn", (*env).drainOnlyTurn},
		{"drain/never what is held", (*env).drainHeld},
		{"drain/stops at the first open entry", (*env).drainOpen},
		{"drain/a steer passes what is queued", (*env).drainPasses},
		{"drain/numbers its note once", (*env).drainNumbers},
		{"drain/with its row and its take in one commit", (*env).drainOneCommit},
		{"drain/F27 a steer too late waits for the next turn", (*env).drainLate},
	}
}

// batch opens a turn and writes a call and its result, not yet sent.
func (e *env) batch() session.Lease {
	l := e.turn()
	e.write(l, callRow("c1", "c2"), toolRow("c1"), toolRow("c2"))
	return l
}

func (e *env) drainMoves() {
	l := e.batch()
	a := e.put(steers(1))
	b := e.put(steers(1), opens("g", time.Second))
	e.put(joins("g", 0), wants(steer.Steer, 0))
	e.clk.step(time.Second)
	slot := e.lane().Slot
	c := e.step()
	c.Drain, c.Step, c.Phase = true, 6, steer.PhaseModel
	got := e.commit(l, c)
	now := e.clk.now()
	want := []session.Row{
		{Seq: 5, Turn: 1, Type: session.RowSteer, On: 4, N: 1, Tick: a, Data: slot[0].Data, At: now},
		{Seq: 6, Turn: 1, Type: session.RowSteer, On: 4, N: 1, Tick: b, Data: slot[1].Data, At: now},
	}
	e.equal(got.Steers, want, "steers in the answer")
	e.equal(got.Seq, int64(6), "seq in the answer")
	e.equal(got.Flags, session.Flags{}, "flags in the answer")
	e.equal(e.rows(1)[4:], want, "rows")
	lane := e.lane()
	e.equal([]int64{lane.Seq, lane.Sent, lane.Notes}, []int64{6, 6, 1}, "seq, sent, notes")
	e.equal(lane.Last, session.RowSteer, "type of the newest row")
	e.equal(len(lane.Slot), 0, "entries left")
	for _, t := range []int64{a, b} {
		f := e.fate(t)
		e.equal(f.State, session.FateAttached, "fate")
		e.equal([]int64{f.Turn, int64(f.Step), f.Changed}, []int64{1, 6, now.UnixMilli()}, "turn, step and time of the fate")
	}
	e.equal(e.stats().Steered, int64(2), "steered")
}

func (e *env) drainTakeover() {
	e.batch()
	t := e.put(steers(1))
	e.clk.step(ttl)
	got := e.drain(e.claim(other).Lease)
	e.equal(len(got.Steers), 1, "steers moved")
	e.equal(got.Steers[0].Tick, t, "ticket")
}

// nothing wants a drain to move no steer, and Sent to be where Seq is.
func (e *env) nothing(l session.Lease, when string) {
	seq := e.lane().Seq
	slot := e.lane().Slot
	got := e.drain(l)
	e.equal(len(got.Steers), 0, "steers moved "+when)
	lane := e.lane()
	e.equal([]int64{lane.Seq, lane.Sent}, []int64{seq, seq}, "seq and sent of a drain "+when)
	e.equal(lane.Slot, slot, "slot after a drain "+when)
}

func (e *env) drainOnlyTool() {
	l := e.turn()
	e.put(steers(1))
	e.nothing(l, "on a user row")
	e.write(l, callRow("c1"))
	e.nothing(l, "on an assistant row")
	e.write(l, toolRow("c1"), row(session.RowFold, session.UserRow{Event: "x"}))
	e.nothing(l, "on a fold after a tool row")
}

func (e *env) drainNotSent() {
	l := e.batch()
	e.nothing(l, "with nothing to steer")
	e.put(steers(1))
	e.nothing(l, "on a tool row a request has carried")
	e.clk.step(ttl)
	l = e.claim(other).Lease
	e.nothing(l, "on it after a takeover")
	e.write(l, callRow("c3"), toolRow("c3"))
	e.equal(len(e.drain(l).Steers), 1, "steers moved onto the next tool row")
	e.put(steers(1))
	e.nothing(l, "right after one that moved")
}

func (e *env) drainSent() {
	l := e.turn()
	e.equal(e.lane().Sent, int64(1), "sent by the begin")
	e.write(l, callRow("c1"))
	e.write(l, toolRow("c1"))
	e.put(steers(1))
	c := e.step()
	c.Take = takes(e.lane(), 2)
	e.commit(l, c)
	e.equal(e.lane().Sent, int64(1), "sent after commits without a drain")
	e.drain(l)
	e.equal(e.lane().Sent, int64(3), "sent after a drain")
	e.end(l)
	e.equal(e.lane().Sent, int64(3), "sent after the end")
}

func (e *env) drainOnlyTurn() {
	l := e.batch()
	e.put(steers(0))
	e.put(steers(2))
	e.put(wants(steer.Queue, 1))
	e.put(wants(steer.Interrupt, 1))
	e.nothing(l, "with steers of other turns and other modes")
	set := session.Amend{Key: e.key, Dedupe: "now", Kind: session.AmendSet, Ticket: 2, Want: steer.Steer, Turn: 1}
	_, err := e.st.Amend(e.ctx, set)
	e.must(err, "send now")
	e.write(l, callRow("c3"), toolRow("c3"))
	e.equal(e.drain(l).Steers[0].Tick, int64(2), "ticket of the steer sent now")
}

func (e *env) drainHeld() {
	l := e.batch()
	t := e.put(steers(1))
	c := e.step()
	c.HoldRest = true
	e.commit(l, c)
	u := e.put(steers(1))
	got := e.drain(l)
	e.equal(len(got.Steers), 1, "steers moved")
	e.equal(got.Steers[0].Tick, u, "ticket of the one not held")
	e.equal(e.entry(t).Held, true, "the other is held")
}

func (e *env) drainOpen() {
	for _, mode := range []steer.Mode{steer.Steer, steer.Queue} {
		l := e.batch()
		turn := e.lane().Turn
		a := e.put(steers(turn))
		open := e.put(wants(mode, turn), opens("g", time.Second))
		b := e.put(steers(turn))
		e.clk.step(time.Second - time.Millisecond)
		got := e.drain(l)
		if len(got.Steers) != 1 || got.Steers[0].Tick != a {
			e.errorf("steers moved: got %s; want only ticket %d, the one below the open entry", show(got.Steers), a)
		}
		e.write(l, callRow("c3"), toolRow("c3"))
		e.clk.step(time.Millisecond) // its time comes: it goes as it is
		want := []int64{open, b}
		if mode != steer.Steer {
			want = want[1:]
		}
		var ticks []int64
		for _, r := range e.drain(l).Steers {
			ticks = append(ticks, r.Tick)
		}
		e.equal(ticks, want, "tickets moved when the open entry's time came")
		e.end(l)
		e.reset()
	}
}

func (e *env) drainPasses() {
	l := e.batch()
	q := e.put()
	s := e.put(steers(1))
	got := e.drain(l)
	e.equal(got.Steers[0].Tick, s, "ticket")
	e.equal(got.Flags.Waiting, 1, "entries that wait")
	e.equal(e.lane().Slot[0].Ticket, q, "entry left")
}

func (e *env) drainNumbers() {
	l := e.batch()
	e.nothing(l, "with nothing to steer")
	for n := int64(1); n <= 3; n++ {
		e.write(l, callRow("c"), toolRow("c"))
		on := e.lane().Seq
		e.put(steers(1))
		e.put(steers(1))
		for _, r := range e.drain(l).Steers {
			e.equal([]int64{r.N, r.On}, []int64{n, on}, "note number and tool row")
		}
		e.nothing(l, "again")
	}
	e.equal(e.lane().Notes, int64(3), "notes")
}

func (e *env) drainOneCommit() {
	l := e.turn()
	e.write(l, callRow("c1"))
	taken, t := e.put(steers(1)), e.put(steers(1))
	c := e.step(toolRow("c1"))
	c.Drain, c.Take = true, takes(e.lane(), taken)
	c.Fates = []session.FateSet{{Ticket: t, State: session.FateSteered}, {Ticket: taken, State: session.FateRunning}}
	got := e.commit(l, c)
	if len(got.Steers) != 1 || got.Steers[0].Tick != t || got.Steers[0].On != 3 {
		e.errorf("steers moved: got %s; want ticket %d on row 3", show(got.Steers), t)
	}
	e.equal(e.fate(t).State, session.FateSteered, "a fate set in the same commit comes after the drain's")
	s := e.stats()
	e.equal([]int64{s.Consumed, s.Steered}, []int64{2, 1}, "consumed and steered")
}

func (e *env) drainLate() {
	l := e.batch()
	e.drain(l)
	t := e.put(steers(1))
	got := e.end(l)
	e.equal(got.More, true, "more")
	e.equal(e.entry(t).Turn, int64(1), "turn the steer was meant for")
	b := e.begin(me, t)
	e.equal(b.Lane.Turn, int64(2), "turn")
	e.equal(len(b.Lane.Slot), 0, "entries left")
}
