package storetest

import (
	"encoding/json"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// slotRules: Amend, Reset and Post.
func slotRules() []rule {
	return []rule{
		{"edit/replaces the words and nothing else", (*env).editFields},
		{"edit/of another version is stale", (*env).editStale},
		{"drop/is gone, counted, and said", (*env).dropFields},
		{"set/sends a held entry now", (*env).setFields},
		{"amend/F29 too late is said once and for all", (*env).amendTooLate},
		{"amend/parts go out only when done", (*env).amendOuts},
		{"amend/a lane that is not there", (*env).amendNoLane},
		{"post/replaces preferences and title", (*env).postFields},
		{"post/knows only known jobs", (*env).postJobs},
		{"post/adds a job once", (*env).postAdd},
		{"reset/F32 opens a generation and fences", (*env).resetFields},
		{"reset/what belongs to the lane stays", (*env).resetKeeps},
		{"reset/ends the fates of the open turn", (*env).resetFates},
		{"reset/makes a lane", (*env).resetMakes},
	}
}

func (e *env) amend(r session.Amend) session.Amended {
	r.Key = e.key
	if r.Dedupe == "" {
		r.Dedupe = e.id("e")
	}
	a, err := e.st.Amend(e.ctx, r)
	e.must(err, "amend")
	return a
}

func (e *env) editFields() {
	e.turn()
	t := e.put(steers(1), opens("g", time.Minute))
	want, fate := e.entry(t), e.fate(t)
	e.clk.step(time.Second)
	a := e.amend(session.Amend{Kind: session.AmendEdit, Ticket: t, Version: 1, Data: text("new"), Want: steer.Queue, Fate: session.FateQueued})
	want.Data, want.Version = text("new"), 2
	e.equal(a.Lane.Slot[0], want, "entry in the answer")
	e.equal(e.entry(t), want, "entry")
	e.equal(e.fate(t), fate, "fate")
}

func (e *env) editStale() {
	t := e.put()
	for _, kind := range []session.AmendKind{session.AmendEdit, session.AmendDrop, session.AmendSet} {
		r := session.Amend{Key: e.key, Dedupe: e.id("e"), Kind: kind, Ticket: t, Version: e.entry(t).Version - 1, Outs: e.parts("x", 1)}
		if r.Version == 0 {
			r.Version = 7
		}
		e.unchanged("an amend of another version", func() {
			_, err := e.st.Amend(e.ctx, r)
			e.want(err, session.ErrStale, "amend")
		})
		if kind == session.AmendEdit { // no mark was left: asked right, it is done
			r.Version = 0
			a, err := e.st.Amend(e.ctx, r)
			e.must(err, "amend")
			e.equal([]bool{a.Done, a.Dup}, []bool{true, false}, "done and dup of the same event, asked right")
		}
	}
}

func (e *env) dropFields() {
	t, u := e.put(), e.put()
	a := e.amend(session.Amend{Kind: session.AmendDrop, Ticket: t, Dedupe: "d"})
	e.equal(len(a.Lane.Slot), 1, "entries in the answer")
	e.equal(e.lane().Slot[0].Ticket, u, "entry left")
	e.equal(e.fate(t).State, session.FateDropped, "fate")
	e.equal(e.stats().Dropped, int64(1), "dropped")
	e.unchanged("the same drop again", func() {
		a := e.amend(session.Amend{Kind: session.AmendDrop, Ticket: t, Dedupe: "d"})
		e.equal([]bool{a.Done, a.Dup}, []bool{true, true}, "done and dup") // M7: not "too late"
	})
	e.equal(e.amend(session.Amend{Kind: session.AmendDrop, Ticket: t}).Done, false, "done, asked by another event")
}

func (e *env) setFields() {
	e.turn()
	t := e.put(opens("g", time.Minute))
	u := e.put()
	e.amend(session.Amend{Kind: session.AmendSet, Ticket: t, Want: steer.Interrupt, Turn: 1, Fate: session.FateQueued})
	e.equal(e.entry(t).Open, time.Time{}, "open until")
	e.stop()
	want := e.entry(t)
	want.Want, want.Turn, want.Held, want.Version = steer.Steer, 1, false, want.Version+1
	e.clk.step(time.Second)
	a := e.amend(session.Amend{Kind: session.AmendSet, Ticket: t, Want: steer.Steer, Turn: 1, Fate: session.FatePending, Data: text("not looked at")})
	e.equal(a.Lane.Slot[0], want, "entry in the answer")
	e.equal(e.entry(t), want, "entry")
	e.equal(e.fate(t).State, session.FatePending, "fate")
	e.equal(e.fate(t).Changed, e.clk.now().UnixMilli(), "time of the fate")
	e.equal(e.entry(u).Held, true, "the other is held")
	e.amend(session.Amend{Kind: session.AmendSet, Ticket: t, Want: steer.Queue})
	e.equal(e.fate(t).State, session.FatePending, "fate when none is given")
}

func (e *env) amendTooLate() {
	l := e.batch()
	t := e.put(steers(1))
	e.drain(l)
	late := session.Amend{Key: e.key, Dedupe: "late", Kind: session.AmendDrop, Ticket: t}
	for i := range 2 {
		e.unchanged("a drop too late", func() {
			a := e.amend(late)
			e.equal([]bool{a.Done, a.Dup}, []bool{false, i > 0}, "done and dup")
			e.equal(a.Lane, e.lane(), "lane in the answer")
		})
	}
	e.equal(e.fate(t).State, session.FateAttached, "fate")
	e.equal(e.stats().Dropped, int64(0), "dropped")
}

func (e *env) amendOuts() {
	t := e.put()
	e.amend(session.Amend{Kind: session.AmendEdit, Ticket: t, Data: text("x"), Outs: e.parts("a", 1)})
	e.amend(session.Amend{Kind: session.AmendDrop, Ticket: t, Outs: e.parts("b", 1)})
	e.equal(e.lane().Out, 2, "parts")
	e.amend(session.Amend{Kind: session.AmendDrop, Ticket: t, Outs: e.parts("c", 1)})
	e.equal(e.lane().Out, 2, "parts after one that came too late")
}

func (e *env) amendNoLane() {
	a := e.amend(session.Amend{Kind: session.AmendDrop, Ticket: 1, Outs: e.parts("a", 1)})
	e.equal([]bool{a.Done, a.Lane.Exists}, []bool{false, false}, "done and exists")
	e.equal(e.lane().Exists, false, "the lane exists")
}

func (e *env) postFields() {
	post := func(p session.Post) session.Lane {
		p.Key = e.key
		got, err := e.st.Post(e.ctx, p)
		e.must(err, "post")
		e.equal(got.Dup, false, "dup")
		return got.Lane
	}
	prefs := func(p string, title string) session.Post {
		return session.Post{Dedupe: e.id("p"), Prefs: []byte(p), Title: title}
	}
	l := post(prefs(`{"mode":"queue"}`, "one"))
	e.equal(l, e.lane(), "lane in the answer")
	e.equal(l.Exists, true, "the lane exists")
	l = post(session.Post{Dedupe: e.id("p"), Outs: e.parts("x", 1)})
	e.equal([]string{string(l.Prefs), l.Title}, []string{`{"mode":"queue"}`, "one"}, "preferences and title left alone")
	e.equal(l.Out, 1, "parts")
	e.clk.step(time.Second)
	again := prefs(`{}`, "two")
	l = post(again)
	e.equal([]string{string(l.Prefs), l.Title}, []string{`{}`, "two"}, "preferences and title replaced")
	e.equal(l.Touched, e.clk.now(), "touched")
	post(prefs(`{"mode":"steer"}`, "three"))
	e.unchanged("a post seen before", func() {
		again.Key = e.key
		got, err := e.st.Post(e.ctx, again)
		e.must(err, "post")
		e.equal(got.Dup, true, "dup")
	})
	for range 2 { // without a dedupe each counts
		l = post(session.Post{Outs: e.parts("y", 1)})
	}
	e.equal(l.Out, 3, "parts of posts without a mark")
}

// postAdd: a job that is added stays as it was first told, and makes the lane
// due.
func (e *env) postAdd() {
	j := session.Job{ID: "btw:1", Name: "btw", State: session.JobRunning, Owner: "n1", Data: json.RawMessage(`{"q":1}`), At: 7}
	again := j
	again.Body = "other"
	for _, add := range []session.Job{j, again} {
		p, err := e.st.Post(e.ctx, session.Post{Key: e.key, Dedupe: e.id("add"), Add: []session.Job{add}})
		e.must(err, "post")
		e.equal(p.Lane.Jobs, []session.Job{j}, "jobs in the answer")
		e.equal(e.lane().Jobs, []session.Job{j}, "jobs")
		e.equal(p.Dup, false, "dup")
	}
	due, err := e.st.Due(e.ctx, 0)
	e.must(err, "due")
	e.equal(due, []session.Key{e.key}, "due")
	j.Told = true
	_, err = e.st.Post(e.ctx, session.Post{Key: e.key, Dedupe: e.id("add"), Jobs: []session.Job{j}})
	e.must(err, "post")
	e.equal(len(e.lane().Jobs), 0, "jobs when told")
}

func (e *env) postJobs() {
	l := e.turn()
	c := e.step()
	c.Jobs = []session.Job{{ID: "a", State: session.JobRunning, Owner: me}, {ID: "b", State: session.JobRunning, Owner: me}}
	e.commit(l, c)
	ended := session.Job{ID: "a", State: session.JobEnded, Owner: me, Body: "out"}
	p, err := e.st.Post(e.ctx, session.Post{Key: e.key, Jobs: []session.Job{ended, {ID: "b", Told: true}, {ID: "unknown", State: session.JobEnded}}})
	e.must(err, "post")
	e.equal(p.Lane.Jobs, []session.Job{ended}, "jobs")
}

func (e *env) resetFields() {
	l := e.batch()
	t := e.put(steers(1), opens("g", time.Minute))
	e.put(func(a *session.Accept) { a.Title = "talk" })
	e.clk.step(time.Second)
	old := e.rows(1)
	r := session.Reset{Key: e.key, Dedupe: "new", Outs: e.parts("new", 1)}
	got, err := e.st.Reset(e.ctx, r)
	e.must(err, "reset")
	e.equal(got, e.lane(), "lane in the answer")
	for _, en := range got.Slot {
		e.equal(en.Held, true, "held")
		e.equal(en.Open, time.Time{}, "open until")
		e.equal(e.fate(en.Ticket).State, session.FateHeld, "fate")
	}
	got.Slot, got.Title = nil, ""
	e.equal(got, session.Lane{
		Key: e.key, Exists: true, Gen: 2, Phase: steer.PhaseIdle, Turns: 1, Tickets: 3, Epoch: 2, Out: 1,
		Touched: e.clk.now(), Now: e.clk.now(),
	}, "lane")
	e.equal(e.rows(1), old, "rows of the old generation")
	e.equal(len(e.rows(2)), 0, "rows of the new generation")
	e.equal(e.stats().Ended, int64(1), "ended")
	e.refused(l)
	e.amend(session.Amend{Kind: session.AmendSet, Ticket: t, Want: steer.Queue, Fate: session.FateQueued}) // "run"
	b := e.begin(other, t)
	e.equal(b.Lane.Epoch, int64(3), "epoch of the next turn")
	e.equal(b.Lane.Seq, int64(1), "seq of the next turn")
	e.equal(e.rows(2)[0].Seq, int64(1), "seq of its first row")
}

func (e *env) resetKeeps() {
	l := e.turn()
	e.put(func(a *session.Accept) { a.Dedupe = "m:kept" })
	c := e.step()
	c.Outs, c.Jobs = e.parts("x", 2), []session.Job{{ID: "j", State: session.JobRunning, Owner: me}}
	e.commit(l, c)
	_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Prefs: []byte(`{"mode":"queue"}`)})
	e.must(err, "post")
	before := e.lane()
	after := e.reset()
	e.equal(after.Jobs, before.Jobs, "jobs")
	e.equal(after.Prefs, before.Prefs, "preferences")
	e.equal(after.Out, before.Out, "parts")
	e.equal(e.accept(func(a *session.Accept) { a.Dedupe = "m:kept" }).Outcome, session.AcceptDup, "a repeat")
}

func (e *env) resetFates() {
	l := e.turn()
	a, b := e.put(), e.put()
	c := e.step()
	c.Take = takes(e.lane(), a, b)
	c.Fates = []session.FateSet{
		{Ticket: 1, State: session.FateRunning, Turn: 1}, {Ticket: a, State: session.FateRunning, Turn: 1},
		{Ticket: b, State: session.FateAnswered, Turn: 1},
	}
	e.commit(l, c)
	waits := e.put()
	e.clk.step(time.Second)
	e.reset()
	e.equal(e.fate(1).State, session.FateStopped, "fate of what ran")
	e.equal(e.fate(1).Changed, e.clk.now().UnixMilli(), "time of the fate")
	e.equal(e.fate(a).State, session.FateStopped, "fate of what joined")
	e.equal(e.fate(b).State, session.FateAnswered, "a fate that was final")
	e.equal(e.fate(waits).State, session.FateHeld, "fate of what waits")
}

func (e *env) resetMakes() {
	l := e.reset()
	e.equal([]bool{l.Exists, e.lane().Exists}, []bool{true, true}, "the lane exists")
	b := e.begin(me, e.put())
	e.equal(b.Lane.Gen, l.Gen, "generation of the first turn")
}
