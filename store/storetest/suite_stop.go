package storetest

import (
	"errors"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// stopRules: Stop.
func stopRules() []rule {
	return []rule{
		{"stop/holds all that waits", (*env).stopHolds},
		{"stop/the same again holds nothing more", (*env).stopRepeat},
		{"stop/only another turn does nothing", (*env).stopOnly},
		{"stop/all drops what waits and what is held", (*env).stopAll},
		{"stop/does not reach the next turn", (*env).stopNextTurn},
		{"stop/what is written after it runs", (*env).stopAfter},
		{"stop/one that keeps stops the turn alone", (*env).stopKeeps},
		{"stop/makes no lane", (*env).stopNoLane},
		{"stop/F28 a begin that read before it runs nothing", (*env).stopBegin},
		{"stop/F28 a stopped turn takes no steer", (*env).stopDrain},
		{"stop/F28 a steer after it is held only by another", (*env).stopSteer},
	}
}

func (e *env) stopWith(r session.Stop) session.Stopped {
	r.Key = e.key
	if r.Dedupe == "" {
		r.Dedupe = e.id("stop")
	}
	s, err := e.st.Stop(e.ctx, r)
	e.must(err, "stop")
	return s
}

// stopBegin: /stop comes between the reading of the slot and the Begin.
func (e *env) stopBegin() {
	t := e.put()
	before := e.lane()
	e.stopWith(session.Stop{})
	_, err := e.st.Begin(e.ctx, session.Begin{
		Op: "late", Key: e.key, Nonce: "n1", TTL: time.Minute, Gen: before.Gen, Seq: before.Seq, Owner: "u",
		Take: []session.Take{{Ticket: t, Version: before.Slot[0].Version}}, Rows: []session.Row{{Type: session.RowUser, Data: []byte("{}")}},
	})
	if !errors.Is(err, session.ErrStale) {
		e.errorf("begin after stop: got %v; want ErrStale", err)
	}
	e.equal(e.entry(t).Held, true, "still held")
}

// stopDrain: what is written after /stop does not go into the turn that it
// stopped, also when that turn is taken over before it has ended.
func (e *env) stopDrain() {
	l := e.batch()
	e.stopWith(session.Stop{})
	t := e.put(steers(1))
	c := e.drain(l)
	e.equal(len(c.Steers), 0, "steers moved")
	e.equal(e.entry(t).Held, false, "held")
	e.end(l)
	e.equal(e.lane().Slot[0].Ticket, t, "what waits after the end")
}

func (e *env) stopHolds() {
	e.turn()
	a, b := e.put(), e.put(steers(1), opens("g", time.Minute))
	want := e.lane().Slot
	e.clk.step(time.Second)
	got := e.stopWith(session.Stop{Outs: e.parts("x", 1)})
	for i := range want {
		want[i].Held, want[i].Open = true, time.Time{}
		want[i].Version++ // a Begin that read it before is stale
	}
	e.equal(got.Turn, int64(1), "turn stopped")
	e.equal(got.Held, want, "entries held, in the answer")
	e.equal(got.Lane, e.lane(), "lane in the answer")
	e.equal(got.Lane.Slot, want, "slot")
	e.equal([]int64{got.Lane.Stop, got.Lane.Turn, int64(got.Lane.Out)}, []int64{1, 1, 1}, "stop, turn, parts")
	for _, t := range []int64{a, b} {
		f := e.fate(t)
		e.equal(f.State, session.FateHeld, "fate")
		e.equal(f.Changed, e.clk.now().UnixMilli(), "time of the fate")
	}
	e.equal(e.fate(1).State, session.FateQueued, "fate of what runs is not the store's to say")
}

func (e *env) stopRepeat() {
	e.turn()
	e.put()
	e.stopWith(session.Stop{Dedupe: "s"})
	e.put()
	e.unchanged("a stop seen before", func() {
		got := e.stopWith(session.Stop{Dedupe: "s", Outs: e.parts("x", 1)})
		e.equal(got.Dup, true, "dup")
		e.equal(len(got.Held), 0, "entries held by it")
	})
	got := e.stopWith(session.Stop{Dedupe: "another"})
	e.equal(len(got.Held), 1, "entries held by another stop")
}

func (e *env) stopOnly() {
	l := e.turn()
	t := e.put()
	got := e.stopWith(session.Stop{Only: 2, Drop: true})
	e.equal(got.Turn, int64(0), "turn stopped")
	e.equal(len(got.Held), 0, "entries held")
	e.equal(e.entry(t).Held, false, "held")
	e.equal(e.lane().Stop, int64(0), "stop")
	got = e.stopWith(session.Stop{Only: 1})
	e.equal(got.Turn, int64(1), "turn stopped when it is the one")
	e.equal(len(got.Held), 1, "entries held when it is the one")
	e.end(l)
	u := e.put()
	e.stopWith(session.Stop{Only: 1}) // a press that came late
	e.equal(e.entry(u).Held, false, "held by a stop of a turn that ended")
}

// stopKeeps: what waits, is open or is held stays as it is, and runs after the
// turn; a steer goes into it no more.
func (e *env) stopKeeps() {
	l := e.batch()
	held := e.put()
	e.stop()
	e.end(l)
	l = e.batch()
	waits, open := e.put(steers(2)), e.put(opens("g", time.Minute))
	want := e.lane().Slot
	got := e.stopWith(session.Stop{Only: 2, Keep: true, Dedupe: "gone"})
	e.equal(got.Turn, int64(2), "turn stopped")
	e.equal(len(got.Held), 0, "entries held")
	e.equal(got.Lane.Slot, want, "slot")
	e.equal(got.Lane, e.lane(), "lane in the answer")
	e.equal(e.fate(waits).State.Waits() && e.fate(waits).State != session.FateHeld, true, "it waits")
	e.unchanged("the same again", func() { e.equal(e.stopWith(session.Stop{Keep: true, Dedupe: "gone"}).Dup, true, "dup") })
	c := e.drain(l)
	e.equal([]bool{c.Flags.Stop, len(c.Steers) == 0}, []bool{true, true}, "stop flag, no steers moved")
	e.equal(e.end(l).More, true, "more")
	b := e.begin(me, waits)
	var left []int64
	for _, en := range b.Lane.Slot {
		left = append(left, en.Ticket)
	}
	e.equal(left, []int64{held, open}, "entries left")
	e.equal(b.Lane.Stop, int64(0), "stop in the next turn")
}

func (e *env) stopAll() {
	e.turn()
	held := e.put()
	e.stop()
	waits := e.put()
	got := e.stopWith(session.Stop{Drop: true, Dedupe: "all"})
	var tickets []int64
	for _, en := range got.Held {
		tickets = append(tickets, en.Ticket)
	}
	e.equal(tickets, []int64{held, waits}, "tickets dropped")
	e.equal(len(got.Lane.Slot), 0, "entries left")
	for _, t := range tickets {
		e.equal(e.fate(t).State, session.FateDropped, "fate")
	}
	e.equal(e.stats().Dropped, int64(2), "dropped")
	e.put()
	e.unchanged("the same again", func() { e.stopWith(session.Stop{Drop: true, Dedupe: "all"}) })
}

func (e *env) stopNextTurn() {
	l := e.turn()
	e.stop()
	e.end(l)
	l = e.turn()
	e.equal(e.lane().Stop, int64(0), "stop in the next turn")
	e.equal(e.write(l).Flags.Stop, false, "stop flag in the next turn")
	e.end(l)
	e.stopWith(session.Stop{}) // nothing is open
	l = e.turn()
	e.equal(e.write(l).Flags.Stop, false, "stop flag of a stop while idle")
}

func (e *env) stopAfter() {
	l := e.turn()
	old := e.put()
	e.stop()
	t := e.put()
	e.equal(e.entry(t).Held, false, "held")
	e.equal(e.end(l).More, true, "more")
	b := e.begin(me, t) // I3: before the lower, held ticket
	e.equal(b.Lane.Slot[0].Ticket, old, "entry left")
}

func (e *env) stopNoLane() {
	got := e.stopWith(session.Stop{Outs: e.parts("x", 1)})
	e.equal([]bool{got.Dup, got.Lane.Exists, e.lane().Exists}, []bool{false, false, false}, "dup, exists, exists")
	e.equal(e.stats(), session.Stats{}, "stats")
}

func (e *env) stopSteer() {
	l := e.batch()
	e.stop()
	t := e.put(steers(1))
	e.equal(e.write(l).Flags, session.Flags{Stop: true, Waiting: 1, Steers: 1}, "flags")
	e.stop()
	e.equal(e.entry(t).Held, true, "held by a second stop")
	e.equal(e.entry(t).Want, steer.Steer, "mode")
}
