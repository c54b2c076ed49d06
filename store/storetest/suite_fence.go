package storetest

import (
	"time"

	"coxswain/session"
)

// fenceRules: I4 and the memory of a holder's last write.
func fenceRules() []rule {
	return []rule{
		{"fence/F13 an older epoch writes nothing", (*env).fenceEpoch},
		{"fence/F20 the same epoch with another nonce writes nothing", (*env).fenceNonce},
		{"fence/F32 new fences the runner", (*env).fenceReset},
		{"fence/a lease that ran out and nobody took still writes", (*env).fenceLapsed},
		{"fence/the lease is extended by what it writes", (*env).fenceExtends},
		{"fence/refusals are counted", (*env).fenceCounted},
		{"memo/F9 a commit asked again", (*env).memoCommit},
		{"memo/F9 a commit asked again after a takeover", (*env).memoTakeover},
		{"memo/the reply of a drain, of an end, of an outbox head", (*env).memoReplies},
		{"commit/all or nothing", (*env).commitAllOrNothing},
		{"seat/a lease and nothing else", (*env).seat},
	}
}

// refused asks every write of a lease holder and wants it fenced.
func (e *env) refused(l session.Lease) {
	l.TTL = time.Hour // would be seen in Until
	whole := e.step(callRow("z"), toolRow("z"))
	whole.Drain, whole.Outs, whole.Take = true, e.parts("z", 1), takes(e.lane(), e.first()...)
	last := e.step(endRow())
	last.End = true
	for _, c := range []session.Commit{whole, last, {Op: "empty", Seq: e.lane().Seq}} {
		e.unchanged("a fenced commit", func() {
			_, err := e.st.Commit(e.ctx, l, c)
			e.want(err, session.ErrFenced, "commit")
		})
	}
	e.unchanged("a fenced renew", func() {
		_, err := e.st.Renew(e.ctx, l)
		e.want(err, session.ErrFenced, "renew")
	})
	e.unchanged("a fenced release", func() {
		e.want(e.st.Release(e.ctx, l), session.ErrFenced, "release")
	})
}

func (e *env) fenceEpoch() {
	l := e.turn()
	e.write(l, callRow("c1"), toolRow("c1"))
	e.put(steers(1))
	e.clk.step(ttl)
	e.claim(me) // the same process again: the nonce is the same
	e.refused(l)
	l.Epoch += 2
	e.refused(l) // nor an epoch that was never given
}

func (e *env) fenceNonce() {
	l := e.turn()
	e.write(l, callRow("c1"), toolRow("c1"))
	e.put(steers(1))
	for _, nonce := range []string{other, ""} {
		l.Nonce = nonce
		e.refused(l)
	}
	l.Nonce = me
	e.must(e.st.Release(e.ctx, l), "release")
	l.Nonce = ""
	e.refused(l) // nobody holds it: so nobody writes
}

func (e *env) fenceReset() {
	l := e.turn()
	e.put(steers(1))
	e.reset()
	e.refused(l)
	e.begin(me, e.put())
	e.refused(l)
}

func (e *env) fenceLapsed() {
	l := e.turn()
	e.clk.step(10 * ttl)
	e.write(l, callRow("c1"))
	e.equal(e.lane().Until, e.clk.now().Add(ttl), "until")
	e.clk.step(10 * ttl)
	_, err := e.st.Renew(e.ctx, l)
	e.must(err, "renew")
	e.equal(e.lane().Until, e.clk.now().Add(ttl), "until after renew")
}

func (e *env) fenceExtends() {
	l := e.turn()
	e.clk.step(time.Second)
	l.TTL = time.Minute
	_, err := e.st.Renew(e.ctx, l)
	e.must(err, "renew")
	e.equal(e.lane().Until, e.clk.now().Add(time.Minute), "until after renew")
	e.clk.step(time.Second)
	l.TTL = 2 * time.Minute
	e.write(l, callRow("c1"))
	e.equal(e.lane().Until, e.clk.now().Add(2*time.Minute), "until after a commit")
	e.equal(e.lane().Touched, e.clk.now(), "touched by a commit")
}

func (e *env) fenceCounted() {
	l := e.turn()
	l.Epoch--
	_, _ = e.st.Renew(e.ctx, l)
	_, _ = e.st.Commit(e.ctx, l, e.step())
	_ = e.st.Release(e.ctx, l)
	e.equal(e.stats().Fenced, int64(3), "fenced")
}

func (e *env) memoCommit() {
	l := e.turn()
	c := e.step(callRow("c1"))
	c.Outs = e.parts("x", 1)
	c.Jobs = []session.Job{{ID: "j", State: session.JobRunning, Owner: me}}
	first := e.commit(l, c)
	e.put()
	e.clk.step(time.Second)
	e.unchanged("a commit asked again", func() { e.equal(e.commit(l, c), first, "answer") })
	e.equal(e.stats().Replayed, int64(1), "replayed")
	old := c
	e.write(l, toolRow("c1"))
	e.unchanged("a commit before the last", func() {
		_, err := e.st.Commit(e.ctx, l, old)
		e.want(err, session.ErrStale, "commit before the last") // its seq has moved
	})
}

func (e *env) memoTakeover() {
	l := e.turn()
	c := e.step(callRow("c1"))
	first := e.commit(l, c)
	e.clk.step(ttl)
	e.claim(other)
	e.unchanged("a commit asked again after a takeover", func() {
		again, err := e.st.Commit(e.ctx, l, c)
		e.must(err, "commit again")
		e.equal(again, first, "answer")
	})
	_, err := e.st.Commit(e.ctx, l, e.step(toolRow("c1")))
	e.want(err, session.ErrFenced, "the next commit")
}

func (e *env) memoReplies() {
	l := e.turn()
	e.write(l, callRow("c1"))
	e.put(steers(1))
	c := e.step(toolRow("c1"))
	c.Drain, c.Step, c.Outs, c.TakeOut = true, 4, e.parts("x", 2), true
	first := e.commit(l, c)
	e.equal(len(first.Steers), 1, "steers moved")
	e.equal(first.Out != nil, true, "a part taken")
	e.unchanged("a drain asked again", func() { e.equal(e.commit(l, c), first, "answer") })
	e.put()
	c = e.step(endRow())
	c.End = true
	first = e.commit(l, c)
	e.equal(first.More, true, "more")
	e.unchanged("an end asked again", func() { e.equal(e.commit(l, c), first, "answer") })
	e.equal(e.stats().Ended, int64(1), "ended")
}

func (e *env) commitAllOrNothing() {
	l := e.turn()
	e.write(l, callRow("c1"))
	e.put(steers(1))
	broken := map[string]func(*session.Commit){
		"an older seq":    func(c *session.Commit) { c.Seq-- },
		"a later seq":     func(c *session.Commit) { c.Seq++ },
		"a gone entry":    func(c *session.Commit) { c.Take = append(c.Take, session.Take{Ticket: 1, Version: 1}) },
		"an old version":  func(c *session.Commit) { c.Take[0].Version = 0 },
		"a later version": func(c *session.Commit) { c.Take[0].Version = 2 },
	}
	for what, breaks := range broken {
		t := e.put()
		c := e.step(toolRow("c1"))
		c.Take, c.Drain, c.Outs = takes(e.lane(), t), true, e.parts("x", 1)
		c.Jobs, c.Fates = []session.Job{{ID: "j"}}, []session.FateSet{{Ticket: 2, State: session.FateSteered}}
		breaks(&c)
		e.unchanged("a commit with "+what, func() {
			_, err := e.st.Commit(e.ctx, l, c)
			e.want(err, session.ErrStale, "commit with "+what)
		})
		c = session.Commit{Op: c.Op, Seq: e.lane().Seq, Take: takes(e.lane(), t)}
		if got := e.commit(l, c); got.Flags.Waiting != 1 { // the op of a refusal is not remembered
			e.errorf("entries that wait after the same op was asked right: got %d; want 1", got.Flags.Waiting)
		}
	}
}

// seat: a lane that was never written to is made by a claim, is held by one at a
// time, and no list knows it.
func (e *env) seat() {
	e.put() // a session beside it
	key := session.SeatKey("telegram:7")
	claim := func(nonce string, epoch int64, want error) session.Lease {
		b, err := e.st.Claim(e.ctx, key, nonce, ttl)
		e.want(err, want, "claim by "+nonce)
		if want == nil {
			e.equal(b.Lease, session.Lease{Key: key, Epoch: epoch, Nonce: nonce, TTL: ttl}, "lease")
			e.equal(b.Lane.Attempts, 0, "recoveries")
		}
		return b.Lease
	}
	unlisted := func(when string) {
		due, err := e.st.Due(e.ctx, 0)
		e.must(err, "due")
		e.equal(due, []session.Key{e.key}, "due "+when)
		lanes, err := e.st.Sessions(e.ctx, "", 0)
		e.must(err, "sessions")
		e.equal(len(lanes), 1, "sessions "+when)
		e.equal(e.stats().Sessions, int64(1), "count of sessions "+when)
	}
	mine := claim(me, 1, nil)
	claim(other, 0, session.ErrHeld)
	unlisted("while it is held")
	e.clk.step(ttl - time.Millisecond)
	_, err := e.st.Renew(e.ctx, mine)
	e.must(err, "renew")
	e.clk.step(ttl - time.Millisecond)
	claim(other, 0, session.ErrHeld)
	e.clk.step(time.Millisecond)
	unlisted("when it ran out")
	theirs := claim(other, 2, nil)
	_, err = e.st.Renew(e.ctx, mine)
	e.want(err, session.ErrFenced, "renew of a lost one")
	e.must(e.st.Release(e.ctx, theirs), "release")
	unlisted("when it was released")
	claim(me, 3, nil)
	e.clk.step(ttl)
	e.must(e.st.Delete(e.ctx, key), "delete")
	unlisted("when it was deleted")
}
