package storetest

import (
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// beginRules: Begin and Claim.
func beginRules() []rule {
	return []rule{
		{"begin/opens a turn in one step", (*env).beginFields},
		{"begin/all or nothing", (*env).beginAllOrNothing},
		{"begin/F29 an edit between reading and beginning", (*env).beginAfterEdit},
		{"begin/F9 the first answer again later", (*env).beginReplay},
		{"begin/a kept lease begins the next turn", (*env).beginKept},
		{"begin/turn, ticket and note numbers never start again", (*env).beginNumbers},
		{"begin/tells job ends", (*env).beginJobs},
		{"claim/F1 counts recoveries", (*env).claimCounts},
		{"claim/F33 a released turn is no recovery", (*env).claimReleased},
		{"claim/the holder gets its lease again", (*env).claimAgain},
		{"claim/the lease ends at its time", (*env).claimBoundary},
	}
}

func (e *env) beginFields() {
	e.turn() // an earlier turn, so that numbers differ
	e.end(session.Lease{Key: e.key, Epoch: 1, Nonce: me, TTL: ttl})
	a, b, c := e.put(), e.put(), e.put(steers(0))
	e.clk.step(time.Second)
	r := e.beginning(me, a, c)
	r.Owner, r.TTL, r.Phase = bob, 7*time.Second, steer.PhaseModel
	r.Rows = []session.Row{row(session.RowHead, "head"), userRow(a, c), row(session.RowFold, session.UserRow{Event: "x"})}
	r.Fates = []session.FateSet{{Ticket: a, State: session.FateRunning}, {Ticket: c, State: session.FateRunning, Turn: 9, Step: 3}}
	r.Outs = e.parts("sign", 1)
	got, err := e.st.Begin(e.ctx, r)
	e.must(err, "begin")
	now := e.clk.now()
	e.equal(got.Lease, session.Lease{Key: e.key, Epoch: 2, Nonce: me, TTL: 7 * time.Second}, "lease")
	l := e.lane()
	e.equal(got.Lane, l, "lane in the answer")
	e.equal(len(l.Slot), 1, "entries left")
	e.equal(l.Slot[0].Ticket, b, "entry left")
	l.Slot = nil
	e.equal(l, session.Lane{
		Key: e.key, Exists: true, Gen: 1, Seq: 5, Sent: 5, Last: session.RowFold, Phase: steer.PhaseModel, Turn: 2, Turns: 2,
		TurnAt: now, Owner: bob, Tickets: 4, Epoch: 2, Nonce: me, Until: now.Add(7 * time.Second),
		Touched: now.Add(-time.Second), Out: 1, Now: now,
	}, "lane")
	for i, w := range r.Rows {
		w.Seq, w.Turn, w.At = int64(3+i), 2, now
		e.equal(e.rows(1)[2+i], w, "row")
	}
	e.equal(e.fate(a).State, session.FateRunning, "fate")
	e.equal(e.fate(a).Turn, int64(2), "turn of a fate set without one")
	e.equal([]int64{e.fate(c).Turn, int64(e.fate(c).Step)}, []int64{9, 3}, "turn and step of a fate set with them")
	e.equal(e.stats(), session.Stats{Accepted: 4, Consumed: 3, InSlot: 1, Turns: 2, Ended: 1, OutPlanned: 1, Sessions: 1}, "stats")
}

func (e *env) beginAllOrNothing() {
	a, b := e.put(), e.put()
	drop := session.Amend{Key: e.key, Dedupe: "d", Kind: session.AmendDrop, Ticket: b}
	broken := map[string]func(*session.Begin){
		"an entry that is gone": func(r *session.Begin) { r.Take = append(r.Take, session.Take{Ticket: b, Version: 1}) },
		"a ticket never given":  func(r *session.Begin) { r.Take = append(r.Take, session.Take{Ticket: 99, Version: 1}) },
		"an older version":      func(r *session.Begin) { r.Take[0].Version-- },
		"a later version":       func(r *session.Begin) { r.Take[0].Version++ },
		"another generation":    func(r *session.Begin) { r.Gen++ },
		"another seq":           func(r *session.Begin) { r.Seq++ },
		"an unknown job":        func(r *session.Begin) { r.Jobs = []string{"nojob"} },
	}
	_, err := e.st.Amend(e.ctx, drop)
	e.must(err, "drop")
	for what, breaks := range broken {
		r := e.beginning(me, a)
		r.Outs, r.Fates = e.parts("x", 1), []session.FateSet{{Ticket: a, State: session.FateRunning}}
		breaks(&r)
		e.unchanged("a begin with "+what, func() {
			_, err := e.st.Begin(e.ctx, r)
			e.want(err, session.ErrStale, "begin with "+what)
		})
	}
	e.begin(me, a) // nothing of it was left behind
}

func (e *env) beginAfterEdit() {
	t := e.put()
	r := e.beginning(me, t)
	_, err := e.st.Amend(e.ctx, session.Amend{Key: e.key, Dedupe: "e", Kind: session.AmendEdit, Ticket: t, Data: text("new words")})
	e.must(err, "edit")
	e.unchanged("a begin that read the old words", func() {
		_, err := e.st.Begin(e.ctx, r)
		e.want(err, session.ErrStale, "begin")
	})
	open := e.put(opens("g", time.Minute))
	r = e.beginning(me, t, open)
	e.put(joins("g", time.Minute))
	_, err = e.st.Begin(e.ctx, r)
	e.want(err, session.ErrStale, "begin after a part joined")
}

func (e *env) beginReplay() {
	r := e.beginning(me, e.put())
	first, err := e.st.Begin(e.ctx, r)
	e.must(err, "begin")
	e.put()
	e.clk.step(2 * ttl)
	e.claim(other) // even so: the answer was lost, not the effect
	e.unchanged("a begin asked again", func() {
		again, err := e.st.Begin(e.ctx, r)
		e.must(err, "begin again")
		e.equal(again, first, "answer")
	})
	e.equal(e.stats().Replayed, int64(1), "replayed")
}

func (e *env) beginKept() {
	l := e.turn()
	a, b := e.put(), e.put()
	e.end(l)
	r := e.beginning(other, a)
	e.unchanged("a begin of another while the lease is kept", func() {
		_, err := e.st.Begin(e.ctx, r)
		e.want(err, session.ErrHeld, "begin of another")
	})
	l = e.begin(me, a).Lease
	e.equal(l.Epoch, int64(2), "epoch")
	e.end(l)
	e.clk.step(ttl)
	e.equal(e.begin(other, b).Lease.Epoch, int64(3), "epoch of another's, after the kept lease ran out")
}

func (e *env) beginNumbers() {
	l := e.turn()
	e.write(l, callRow("c1"), toolRow("c1"))
	e.put(steers(1))
	e.drain(l)
	e.end(l)
	e.reset()
	t := e.put()
	e.equal(t, int64(3), "ticket after new")
	b := e.begin(me, t)
	e.equal(b.Lane.Turn, int64(2), "turn after new")
	e.equal(b.Lane.Seq, int64(1), "seq after new")
	e.write(b.Lease, callRow("c2"), toolRow("c2"))
	e.put(steers(2))
	e.equal(e.drain(b.Lease).Steers[0].N, int64(2), "note number after new")
}

func (e *env) beginJobs() {
	l := e.turn()
	c := e.step(endRow())
	c.End, c.Jobs = true, []session.Job{{ID: "j1", State: session.JobEnded}, {ID: "j2", State: session.JobLost}, {ID: "j3", State: session.JobRunning}}
	e.commit(l, c)
	r := e.beginning(me)
	r.Jobs = []string{"j1", "j2"}
	b, err := e.st.Begin(e.ctx, r)
	e.must(err, "begin")
	e.equal(b.Lane.Jobs, []session.Job{{ID: "j3", State: session.JobRunning}}, "jobs left")
}

func (e *env) claimCounts() {
	e.turn()
	for i := 1; i <= 3; i++ {
		e.clk.step(ttl)
		b := e.claim(other)
		e.equal(b.Lease, session.Lease{Key: e.key, Epoch: int64(1 + i), Nonce: other, TTL: ttl}, "lease")
		e.equal(b.Lane.Attempts, i, "recoveries")
		e.equal(b.Lane.Until, e.clk.now().Add(ttl), "until")
		e.equal(b.Lane, e.lane(), "lane in the answer")
	}
	e.equal(e.stats().Recovered, int64(3), "recovered")
	e.end(e.claim(other).Lease)
	e.equal(e.lane().Attempts, 0, "recoveries after the end")
	e.clk.step(ttl)
	e.claim(me)
	e.equal(e.lane().Attempts, 0, "recoveries of an idle lane")
	e.equal(e.stats().Recovered, int64(3), "recovered in all")
}

func (e *env) claimReleased() {
	l := e.turn()
	e.must(e.st.Release(e.ctx, l), "release")
	got := e.lane()
	e.equal(got.Released, true, "released")
	e.equal(got.Nonce, "", "holder")
	e.equal(got.Until, time.Time{}, "until")
	e.equal(got.Turn, int64(1), "turn")
	b := e.claim(other)
	e.equal(b.Lease.Epoch, int64(2), "epoch")
	e.equal(b.Lane.Attempts, 0, "recoveries")
	e.equal(b.Lane.Released, false, "released after the claim")
	e.clk.step(ttl)
	e.equal(e.claim(me).Lane.Attempts, 1, "recoveries after a crash of the next")
}

func (e *env) claimAgain() {
	l := e.turn()
	e.clk.step(ttl - time.Millisecond)
	b := e.claim(me)
	e.equal(b.Lease, l, "lease")
	e.equal(b.Lane.Attempts, 0, "recoveries")
	e.clk.step(ttl)
	b = e.claim(me)
	e.equal(b.Lease.Epoch, int64(2), "epoch once it had run out")
	e.equal(b.Lane.Attempts, 1, "recoveries once it had run out")
}

func (e *env) claimBoundary() {
	e.turn()
	e.clk.step(ttl - time.Millisecond)
	e.unchanged("a claim of a live lease", func() {
		_, err := e.st.Claim(e.ctx, e.key, other, ttl)
		e.want(err, session.ErrHeld, "claim 1 ms early")
	})
	e.clk.step(time.Millisecond)
	e.equal(e.claim(other).Lease.Nonce, other, "holder at the time")
}
