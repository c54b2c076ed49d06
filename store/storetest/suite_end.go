package storetest

import (
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// endRules: what a commit does beside its rows, and the end of a turn.
func endRules() []rule {
	return []rule{
		{"commit/writes rows, phase, parts and fates in one step", (*env).commitFields},
		{"commit/a join consumes its entry", (*env).commitJoin},
		{"commit/keeps jobs by id until they are told", (*env).commitJobs},
		{"flags/tell what came in", (*env).flagsTell},
		{"flags/the newest interrupt that waits", (*env).flagsIntr},
		{"end/nothing waits: the lease is given up", (*env).endIdle},
		{"end/F27 something waits: more", (*env).endMore},
		{"end/a held entry is not more", (*env).endHeld},
		{"end/an open entry is more when its time came", (*env).endOpen},
		{"end/a running job keeps the lease of its process", (*env).endJob},
		{"end/what belongs to the turn is cleared", (*env).endClears},
		{"end/hold the rest", (*env).endHoldRest},
	}
}

func (e *env) commitFields() {
	l := e.turn()
	t := e.put(steers(1))
	e.clk.step(time.Second)
	c := e.step(callRow("c1"), toolRow("c1"))
	c.Phase, c.Outs = steer.PhaseTools, e.parts("x", 2)
	c.Fates = []session.FateSet{{Ticket: 1, State: session.FateFailed, Turn: 1, Step: 2}, {Ticket: 99, State: session.FateFailed}}
	got := e.commit(l, c)
	e.equal(got, session.Committed{Seq: 3, Flags: session.Flags{Waiting: 1, Steers: 1}}, "answer")
	lane := e.lane()
	e.equal(lane.Phase, steer.PhaseTools, "phase")
	e.equal(lane.Last, session.RowTool, "type of the newest row")
	e.equal([]int64{lane.Seq, lane.Sent, lane.Turn}, []int64{3, 1, 1}, "seq, sent, turn")
	e.equal(lane.Out, 2, "parts")
	for i, w := range c.Rows {
		w.Seq, w.Turn, w.At = int64(2+i), 1, e.clk.now()
		e.equal(e.rows(1)[1+i], w, "row")
	}
	f := e.fate(1)
	e.equal(f.State, session.FateFailed, "fate")
	e.equal([]int64{f.Turn, int64(f.Step), f.Changed}, []int64{1, 2, e.clk.now().UnixMilli()}, "turn, step and time of the fate")
	e.equal(e.fate(t).State, session.FatePending, "a fate not set")
}

func (e *env) commitJoin() {
	l := e.turn()
	a, b := e.put(), e.put()
	c := e.step(row(session.RowFold, session.UserRow{Inputs: []session.Input{{Ticket: b}}}))
	c.Take = takes(e.lane(), b)
	got := e.commit(l, c)
	e.equal(got.Flags.Waiting, 1, "entries that wait")
	e.equal(e.lane().Slot[0].Ticket, a, "entry left")
	e.equal(e.stats().Consumed, int64(2), "consumed")
}

func (e *env) commitJobs() {
	l := e.turn()
	job := func(id string, s session.JobState) session.Job {
		return session.Job{ID: id, Turn: 1, Owner: me, Name: "make", State: s, Body: "so far", Data: []byte(`{"pid":1}`), At: 1700000000123}
	}
	set := func(jobs ...session.Job) {
		c := e.step()
		c.Jobs = jobs
		e.commit(l, c)
	}
	set(job("j2", session.JobRunning), job("j1", session.JobRunning))
	e.equal(e.lane().Jobs, []session.Job{job("j1", session.JobRunning), job("j2", session.JobRunning)}, "jobs")
	set(job("j2", session.JobEnded))
	e.equal(e.lane().Jobs, []session.Job{job("j1", session.JobRunning), job("j2", session.JobEnded)}, "jobs after one ended")
	set(session.Job{ID: "j2", Told: true}, session.Job{ID: "j9", Told: true})
	e.equal(e.lane().Jobs, []session.Job{job("j1", session.JobRunning)}, "jobs after one was told")
}

func (e *env) flagsTell() {
	l := e.turn()
	e.put()
	e.put(steers(1))
	e.put(steers(2))
	e.put(wants(steer.Interrupt, 1))
	want := session.Flags{Waiting: 4, Steers: 1, Intr: 5}
	e.equal(e.write(l, callRow("c1")).Flags, want, "flags of a commit")
	got, err := e.st.Renew(e.ctx, l)
	e.must(err, "renew")
	e.equal(got, want, "flags of renew")
	e.stop()
	e.put(steers(1))
	want = session.Flags{Stop: true, Waiting: 1, Held: 4, Steers: 1}
	e.equal(e.write(l, toolRow("c1")).Flags, want, "flags of a commit after stop")
	got, err = e.st.Renew(e.ctx, l)
	e.must(err, "renew")
	e.equal(got, want, "flags of renew after stop")
	e.equal(e.end(l).Flags, session.Flags{Waiting: 1, Held: 4}, "flags of the end")
}

func (e *env) flagsIntr() {
	l := e.turn()
	intr := func() int64 {
		f, err := e.st.Renew(e.ctx, l)
		e.must(err, "renew")
		return f.Intr
	}
	a := e.put(wants(steer.Interrupt, 1))
	b := e.put(wants(steer.Interrupt, 1))
	e.equal(intr(), b, "interrupt")
	e.put()
	e.equal(intr(), b, "interrupt with a later queued entry")
	_, err := e.st.Amend(e.ctx, session.Amend{Key: e.key, Dedupe: "d", Kind: session.AmendDrop, Ticket: b})
	e.must(err, "drop")
	e.equal(intr(), a, "interrupt once the newer was dropped")
	c := e.step()
	c.Take = takes(e.lane(), a)
	e.equal(e.commit(l, c).Flags.Intr, int64(0), "interrupt once consumed")
}

func (e *env) endIdle() {
	l := e.turn()
	got := e.end(l)
	e.equal(got.More, false, "more")
	lane := e.lane()
	e.equal(lane.Nonce, "", "holder")
	e.equal(lane.Until, time.Time{}, "until")
	e.equal(lane.Epoch, int64(1), "epoch")
	e.equal(e.stats().Ended, int64(1), "ended")
	e.unchanged("a commit after the end", func() {
		_, err := e.st.Commit(e.ctx, l, e.step())
		e.want(err, session.ErrFenced, "commit after the end")
	})
}

func (e *env) endMore() {
	for _, change := range []func(*session.Accept){wants(steer.Queue, 0), wants(steer.Interrupt, 1), steers(1)} {
		l := e.turn()
		t := e.put(change)
		e.clk.step(time.Second)
		got := e.end(l)
		e.equal(got.More, true, "more")
		lane := e.lane()
		e.equal(lane.Nonce, me, "holder")
		e.equal(lane.Until, e.clk.now().Add(ttl), "until")
		e.equal(lane.Turn, int64(0), "turn")
		_, err := e.st.Commit(e.ctx, l, e.step())
		e.want(err, session.ErrStale, "a commit between turns")
		e.end(e.begin(me, t).Lease)
	}
}

func (e *env) endHeld() {
	l := e.turn()
	e.put()
	e.stop()
	e.equal(e.end(l).More, false, "more")
	e.equal(e.lane().Nonce, "", "holder")
	e.equal(len(e.lane().Slot), 1, "entries")
}

func (e *env) endOpen() {
	l := e.turn()
	t := e.put(opens("g", time.Second))
	e.put()
	e.clk.step(time.Second - time.Millisecond)
	e.equal(e.end(l).More, false, "more before the time of the lowest entry")
	e.equal(e.lane().Nonce, "", "holder")
	l = e.begin(me, t+1).Lease // by an explicit "send now", say
	e.clk.step(time.Millisecond)
	e.equal(e.end(l).More, true, "more at its time")
}

func (e *env) endJob() {
	for _, c := range []struct {
		job  session.Job
		want string
	}{
		{session.Job{ID: "j", Owner: me, State: session.JobRunning}, me},
		{session.Job{ID: "j", Owner: other, State: session.JobRunning}, ""},
		{session.Job{ID: "j", Owner: me, State: session.JobEnded}, ""},
		{session.Job{ID: "j", Owner: me, State: session.JobLost}, ""},
		{session.Job{ID: "j", Owner: me, State: session.JobRunning, Told: true}, ""},
	} {
		l := e.turn()
		end := e.step(endRow())
		end.End, end.Jobs = true, []session.Job{c.job}
		got := e.commit(l, end)
		e.equal(got.More, false, "more with only a job")
		e.equal(e.lane().Nonce, c.want, "holder after the end with job "+show(c.job))
		if c.want != "" { // it runs on, and its process answers for it
			e.clk.step(time.Second)
			_, err := e.st.Renew(e.ctx, l)
			e.must(err, "renew between turns")
		}
		b := e.begin(me)
		end = e.step(endRow())
		end.End, end.Jobs = true, []session.Job{{ID: "j", Told: true}}
		e.commit(b.Lease, end)
	}
}

func (e *env) endClears() {
	e.turn()
	e.clk.step(ttl)
	l := e.claim(me).Lease
	e.stop()
	lane := e.lane()
	e.equal([]int64{lane.Stop, int64(lane.Attempts)}, []int64{1, 1}, "stop and recoveries before")
	c := e.step(endRow())
	c.End, c.Phase = true, steer.PhaseTools
	e.commit(l, c)
	now := e.lane()
	now.Slot = nil
	e.equal(now, session.Lane{
		Key: e.key, Exists: true, Gen: 1, Seq: 2, Sent: 1, Last: session.RowAssistant, Phase: steer.PhaseIdle, Turns: 1,
		Tickets: 1, Epoch: 2, Touched: e.clk.now(), Now: e.clk.now(),
	}, "lane after the end")
	e.put()
	e.equal(e.write(e.begin(me).Lease).Flags.Stop, false, "stop flag in the next turn")
}

func (e *env) endHoldRest() {
	l := e.turn()
	a, b := e.put(), e.put(opens("g", time.Minute))
	c := e.step(endRow())
	c.End, c.HoldRest = true, true
	got := e.commit(l, c)
	e.equal(got.More, false, "more")
	e.equal(got.Flags, session.Flags{Held: 2}, "flags")
	for _, t := range []int64{a, b} {
		e.equal(e.entry(t).Held, true, "held")
		e.equal(e.entry(t).Open, time.Time{}, "open until")
		e.equal(e.fate(t).State, session.FateHeld, "fate")
	}
}
