package storetest

import (
	"fmt"
	"time"

	"coxswain/session"
)

// fateRules: what becomes of messages.
func fateRules() []rule {
	return []rule{
		{"fates/newest first, at most limit, 256 kept", (*env).fatesKept},
		{"fates/waited stays true", (*env).fatesWaited},
		{"fates/a settle that comes late changes nothing", (*env).fatesLate},
		{"fates/a final state stays", (*env).fatesFinal},
		{"fates/a later turn takes what failed or was stopped again", (*env).fatesAgain},
		{"fates/zero turn and step leave what is there", (*env).fatesLeave},
		{"fates/settle touches nothing else", (*env).fatesSettle},
	}
}

func (e *env) settle(sets ...session.FateSet) {
	e.must(e.st.Settle(e.ctx, e.key, sets), "settle")
}

func (e *env) fatesKept() {
	const n = FatesKept + 3
	var tickets []int64
	for range n {
		tickets = append(tickets, e.put())
	}
	fates, err := e.st.Fates(e.ctx, e.key, 0)
	e.must(err, "fates")
	if len(fates) < FatesKept {
		e.fatalf("fates kept: got %d; want at least %d", len(fates), FatesKept)
	}
	for i := range FatesKept {
		if got, want := fates[i].Ticket, tickets[n-1-i]; got != want {
			e.fatalf("ticket of fate %d: got %d; want %d, newest first", i, got, want)
		}
	}
	few, err := e.st.Fates(e.ctx, e.key, 5)
	e.must(err, "fates")
	e.equal(few, fates[:5], "5 fates")
	none, err := e.st.Fates(e.ctx, session.Key{Platform: "test", Chat: "none"}, 0)
	e.must(err, "fates of no lane")
	e.equal(len(none), 0, "fates of no lane")
}

func (e *env) fatesWaited() {
	first := func(s session.FateState) func(*session.Accept) { return func(a *session.Accept) { a.Fate = s } }
	t := e.put(first(session.FateAccepted))
	e.settle(session.FateSet{Ticket: t, State: session.FateRunning})
	e.equal(e.fate(t).Waited, false, "waited, of one that began at once")
	for _, s := range []session.FateState{session.FateQueued, session.FatePending, session.FateHeld} {
		e.equal(e.fate(e.put(first(s))).Waited, true, "waited, of one "+string(s)+" at the door")
		t := e.put(first(session.FateAccepted))
		e.settle(session.FateSet{Ticket: t, State: s})
		e.equal(e.fate(t).Waited, true, "waited, of one "+string(s)+" later")
		if s == session.FateHeld { // a settle does not move it
			e.amend(session.Amend{Kind: session.AmendSet, Ticket: t, Fate: session.FateRunning})
		}
		e.settle(session.FateSet{Ticket: t, State: session.FateRunning})
		f := e.fate(t)
		e.equal(f.State, session.FateRunning, "fate")
		e.equal(f.Waited, true, "waited once it ran, after "+string(s))
	}
}

// fatesLate: what a settle tells may long be overtaken.
func (e *env) fatesLate() {
	order := []session.FateState{
		session.FateAccepted, session.FateQueued, session.FatePending, session.FateHeld, session.FateRunning, session.FateAttached,
		session.FateSteered, session.FateAnswered, session.FateDropped,
	}
	for _, now := range order {
		for _, late := range order {
			t := e.put(func(a *session.Accept) { a.Fate = now })
			e.settle(session.FateSet{Ticket: t, State: late, Turn: 3, Step: 2})
			want, turn := now, int64(0)
			if now != session.FateHeld && !now.Final() && now.Stage() <= late.Stage() {
				want, turn = late, 3
			}
			f := e.fate(t)
			what := fmt.Sprintf(" of one that was %s, settled as %s", now, late)
			e.equal(f.State, want, "fate"+what)
			e.equal(f.Turn, turn, "turn"+what)
		}
	}
}

func (e *env) fatesFinal() {
	for _, final := range []session.FateState{session.FateAnswered, session.FateFailed, session.FateDropped, session.FateStopped} {
		t := e.put()
		e.settle(session.FateSet{Ticket: t, State: final, Turn: 1})
		want := e.fate(t)
		e.equal(want.State, final, "fate")
		e.clk.step(time.Second)
		e.settle(session.FateSet{Ticket: t, State: session.FateSteered, Turn: 2, Step: 3}, session.FateSet{Ticket: t, State: session.FateFailed})
		e.equal(e.fate(t), want, "a final fate that is set again")
	}
	l := e.batch()
	t := e.put(steers(1))
	e.settle(session.FateSet{Ticket: t, State: session.FateDropped}) // a drain does not move it either
	e.drain(l)
	e.equal(e.fate(t).State, session.FateDropped, "a final fate after a drain")
}

func (e *env) fatesAgain() {
	for _, final := range []session.FateState{session.FateAnswered, session.FateFailed, session.FateDropped, session.FateStopped} {
		t := e.put()
		e.settle(session.FateSet{Ticket: t, State: session.FateAttached, Turn: e.lane().Turns + 1, Step: 4})
		l := e.turn()
		c := e.step(endRow())
		c.End, c.Fates = true, []session.FateSet{{Ticket: t, State: final}}
		e.commit(l, c)
		was := e.fate(t)
		e.clk.step(time.Second)
		b := e.beginning(me, e.put())
		b.Fates = []session.FateSet{{Ticket: t, State: session.FateRunning}}
		r, err := e.st.Begin(e.ctx, b)
		e.must(err, "begin")
		want := was
		if final == session.FateFailed || final == session.FateStopped {
			want.State, want.Turn, want.Step, want.Changed = session.FateRunning, r.Lane.Turn, 0, e.clk.now().UnixMilli()
		}
		e.equal(e.fate(t), want, "fate taken again after "+string(final))
		e.end(r.Lease)
		// Its own turn again, or an earlier one, does not.
		e.settle(session.FateSet{Ticket: t, State: session.FateFailed})
		want = e.fate(t)
		l = e.turn()
		c = e.step()
		c.Fates = []session.FateSet{{Ticket: t, State: session.FateRunning, Turn: want.Turn}, {Ticket: t, State: session.FateRunning}}
		e.commit(l, c)
		e.equal(e.fate(t), want, "fate set by no later turn")
		e.end(l)
	}
}

func (e *env) fatesLeave() {
	t := e.put()
	e.settle(session.FateSet{Ticket: t, State: session.FateAttached, Turn: 3, Step: 4})
	e.clk.step(time.Second)
	e.settle(session.FateSet{Ticket: t, State: session.FateSteered})
	f := e.fate(t)
	e.equal(f.State, session.FateSteered, "fate")
	e.equal([]int64{f.Turn, int64(f.Step), f.Changed}, []int64{3, 4, e.clk.now().UnixMilli()}, "turn, step, time")
}

func (e *env) fatesSettle() {
	e.turn()
	t := e.put(steers(1))
	lane := e.lane()
	e.settle(session.FateSet{Ticket: t, State: session.FateSteered}, session.FateSet{Ticket: 99, State: session.FateFailed})
	e.equal(e.lane(), lane, "lane")
	e.must(e.st.Settle(e.ctx, session.Key{Platform: "test", Chat: "none"}, []session.FateSet{{Ticket: 1, State: session.FateFailed}}), "settle of no lane")
	e.equal(e.stats().Sessions, int64(1), "lanes")
}

// readRules: Due, Rows, Sessions, Delete, documents and counters.
func readRules() []rule {
	return []rule{
		{"due/longest due first, at most limit", (*env).dueOrder},
		{"due/at its time, not before", (*env).dueTimes},
		{"due/a job's end, when no lease is live", (*env).dueJobs},
		{"due/a kept lease that ran out with work left", (*env).dueKept},
		{"rows/pages of one generation", (*env).rowsPages},
		{"sessions/pages in key order", (*env).sessionsPages},
		{"delete/removes the lane and all it has", (*env).deleteAll},
		{"expire/a lane that nobody needs, and no other", (*env).expireIdle},
		{"docs/compare and swap", (*env).docsSwap},
		{"stats/each counter", (*env).statsOfAll},
		{"load/of a lane never written to", (*env).loadNothing},
		{"ping/answers", func(e *env) { e.must(e.st.Ping(e.ctx), "ping") }},
	}
}

func (e *env) in(chat string, f func()) session.Key {
	before := e.key
	e.key.Chat = session.ChatID(chat)
	defer func() { e.key = before }()
	f()
	return e.key
}

func (e *env) due(limit int) []session.Key {
	keys, err := e.st.Due(e.ctx, limit)
	e.must(err, "due")
	return keys
}

func (e *env) dueOrder() {
	queued := e.in("queued", func() { e.put() })
	e.clk.step(time.Second)
	later := e.in("a-later", func() { e.put() })
	lapsed := e.in("b-lapsed", func() { e.turn() })
	open := e.in("c-open", func() { e.put(opens("g", ttl+time.Second)) })
	e.clk.step(ttl + 2*time.Second)
	e.in("d-live", func() { e.turn() })
	want := []session.Key{queued, later, lapsed, open}
	e.equal(e.due(0), want, "due")
	e.equal(e.due(2), want[:2], "two that are due")
	e.equal(e.due(9), want, "nine that are due")
}

func (e *env) dueTimes() {
	e.put(opens("g", time.Second))
	e.put()
	e.clk.step(time.Second - time.Millisecond)
	e.equal(len(e.due(0)), 0, "due before the lowest entry's time")
	e.clk.step(time.Millisecond)
	e.equal(len(e.due(0)), 1, "due at its time")
	l := e.begin(me, 1).Lease
	e.clk.step(ttl - time.Millisecond)
	e.equal(len(e.due(0)), 0, "due before the lease ran out")
	e.clk.step(time.Millisecond)
	e.equal(len(e.due(0)), 1, "due when it ran out")
	_, err := e.st.Renew(e.ctx, l)
	e.must(err, "renew")
	e.equal(len(e.due(0)), 0, "due after renew")
	e.must(e.st.Release(e.ctx, l), "release")
	e.equal(len(e.due(0)), 1, "due after release")
	l = e.claim(me).Lease
	e.equal(len(e.due(0)), 0, "due after claim")
	e.stop()
	e.end(l)
	e.equal(len(e.due(0)), 0, "due with only held entries")
	e.reset()
	e.equal(len(e.due(0)), 0, "due after new")
	e.put()
	e.equal(len(e.due(0)), 1, "due with a new entry")
}

func (e *env) dueJobs() {
	l := e.turn()
	c := e.step(endRow())
	c.End, c.Jobs = true, []session.Job{{ID: "j", State: session.JobRunning, Owner: me}}
	e.commit(l, c)
	e.equal(len(e.due(0)), 0, "due while its process holds the lease")
	e.must(e.st.Release(e.ctx, l), "release")
	e.equal(len(e.due(0)), 1, "due once its process gave up")
	for _, s := range []session.JobState{session.JobEnded, session.JobLost} {
		_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Jobs: []session.Job{{ID: "j", State: s, Owner: me}}})
		e.must(err, "post")
		e.equal(len(e.due(0)), 1, "due with a job "+string(s))
	}
	_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Jobs: []session.Job{{ID: "j", Told: true}}})
	e.must(err, "post")
	e.equal(len(e.due(0)), 0, "due once it was told")
}

func (e *env) dueKept() {
	l := e.turn()
	e.put()
	e.end(l)
	e.equal(len(e.due(0)), 0, "due while the lease is kept")
	e.clk.step(ttl)
	e.equal(len(e.due(0)), 1, "due when it ran out")
}

func (e *env) rowsPages() {
	l := e.turn()
	e.write(l, callRow("a"), toolRow("a"), callRow("b"), toolRow("b"))
	all := e.rows(1)
	e.equal(len(all), 5, "rows")
	for _, c := range []struct {
		gen, after int64
		limit      int
		want       []session.Row
	}{
		{1, 0, 2, all[:2]}, {1, 2, 2, all[2:4]}, {1, 4, 2, all[4:]}, {1, 5, 2, nil}, {1, 9, 0, nil}, {1, 3, 0, all[3:]}, {1, 0, 99, all},
		{2, 0, 0, nil}, {0, 0, 0, nil},
	} {
		got, err := e.st.Rows(e.ctx, e.key, c.gen, c.after, c.limit)
		e.must(err, "rows")
		e.equal(got, c.want, fmt.Sprintf("rows of generation %d after %d, limit %d", c.gen, c.after, c.limit))
	}
	e.reset()
	e.equal(e.rows(1), all, "rows after new")
	got, err := e.st.Rows(e.ctx, session.Key{Platform: "test", Chat: "none"}, 1, 0, 0)
	e.must(err, "rows of no lane")
	e.equal(len(got), 0, "rows of no lane")
}

func (e *env) sessionsPages() {
	for _, key := range []session.Key{
		{Platform: "test", Chat: "b"}, {Platform: "test", Chat: "a", Thread: "9"}, {Platform: "test", Chat: "a"},
		{Platform: "other", Chat: "z"}, {Platform: "test", Chat: "a:b"}, {Platform: "test", Chat: "a", User: "u"},
	} {
		e.put(func(a *session.Accept) { a.Key = key })
	}
	want := []string{"other:z", "test:a", "test:a%3Ab", "test:a:9", "test:a::u", "test:b"}
	for _, limit := range []int{0, 1, 2, 4, 6, 7} {
		var got []string
		after := ""
		for {
			lanes, err := e.st.Sessions(e.ctx, after, limit)
			e.must(err, "sessions")
			for _, l := range lanes {
				got = append(got, l.Key.String())
				e.equal(l, e.laneOf(l.Key), "lane of the list")
			}
			if limit > 0 && len(lanes) > limit {
				e.errorf("sessions: got %d; want at most %d", len(lanes), limit)
			}
			if limit == 0 || len(lanes) < limit {
				break
			}
			after = got[len(got)-1]
		}
		e.equal(got, want, fmt.Sprintf("keys in pages of %d", limit))
	}
}

func (e *env) deleteAll() {
	l := e.batch()
	e.put(func(a *session.Accept) { a.Dedupe = "m:same" })
	e.put()
	c := e.step()
	c.Outs, c.Jobs = e.parts("x", 2), []session.Job{{ID: "j", State: session.JobEnded}}
	e.commit(l, c)
	kept := e.in("kept", func() { e.put() })
	e.reset()
	e.must(e.st.Delete(e.ctx, e.key), "delete")
	p := e.picture()
	e.equal(p.Lane.Exists, false, "the lane exists")
	e.equal([]int{len(e.rows(1)), len(e.rows(2)), len(p.Fates)}, []int{0, 0, 0}, "rows and fates")
	s := p.Stats
	e.equal([]int64{s.Accepted, s.Consumed, s.Dropped, s.InSlot, s.Sessions}, []int64{4, 1, 2, 1, 1}, "accepted, consumed, dropped, in slot, lanes")
	e.equal(e.due(0), []session.Key{kept}, "due")
	keys, err := e.st.OutDue(e.ctx, 0)
	e.must(err, "outdue")
	e.equal(len(keys), 0, "lanes with parts due")
	e.none(me, 0, "of a deleted lane")
	a := e.accept(func(a *session.Accept) { a.Dedupe = "m:same" })
	e.equal(a.Outcome, session.AcceptOK, "outcome in a new lane of that key")
	e.equal([]int64{a.Ticket, a.Lane.Gen, a.Lane.Seq, a.Lane.Turns, a.Lane.Notes}, []int64{1, 1, 0, 0, 0}, "ticket, gen, seq, turns, notes")
}

// expireIdle: a lane goes when its time has come, and never while anything is
// left to be done in it.
func (e *env) expireIdle() {
	const idle = time.Minute
	rest := func(f func()) func() { return func() { f(); e.clk.step(idle) } }
	for name, busy := range map[string]func(){
		"touched since": func() { e.end(e.turn()); e.clk.step(idle - time.Millisecond) },
		"written to":    func() { rest(func() { e.end(e.turn()) })(); e.put() },
		"waits":         rest(func() { e.put() }),
		"held":          rest(func() { e.put(); e.stop() }),
		"an open turn":  rest(func() { e.turn() }),
		"a parked turn": rest(func() { e.must(e.st.Release(e.ctx, e.turn()), "release") }),
		"a job":         rest(func() { e.withJob(session.JobRunning) }),
		"a job's end":   rest(func() { e.withJob(session.JobEnded) }),
		"a part": rest(func() {
			_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Dedupe: e.id("p"), Outs: e.parts("x", 1)})
			e.must(err, "post")
		}),
		"a lease": func() {
			e.end(e.turn())
			e.clk.step(idle)
			e.claim(me)
		},
	} {
		e.in(name, func() {
			busy()
			e.unchanged("expire of a lane with "+name, func() { e.want(e.st.Expire(e.ctx, e.key, idle), session.ErrStale, "expire") })
		})
	}
	e.in("idle", func() {
		rest(func() { e.end(e.turn()) })()
		before := e.stats()
		e.must(e.st.Expire(e.ctx, e.key, idle), "expire")
		e.must(e.st.Expire(e.ctx, e.key, idle), "expire of what is gone")
		before.Sessions--
		e.equal(e.stats(), before, "stats")
		e.equal([]int{len(e.rows(1)), len(e.picture().Fates)}, []int{0, 0}, "rows and fates")
		if e.lane().Exists {
			e.errorf("the lane is there")
		}
	})
}

// withJob ends a turn that leaves a job behind.
func (e *env) withJob(s session.JobState) {
	l := e.turn()
	c := e.step(endRow())
	c.End, c.Jobs = true, []session.Job{{ID: "j", Owner: me, State: s}}
	e.commit(l, c)
}

func (e *env) docsSwap() {
	doc := func(want string, version int64) {
		data, v, err := e.st.Doc(e.ctx, "pair")
		e.must(err, "doc")
		e.equal(string(data), want, "document")
		e.equal(v, version, "version")
	}
	put := func(version int64, data string) error { return e.st.PutDoc(e.ctx, "pair", version, []byte(data)) }
	doc("", 0)
	e.want(put(1, "x"), session.ErrStale, "put of a version that is not there")
	e.must(put(0, "one"), "put")
	doc("one", 1)
	e.want(put(0, "x"), session.ErrStale, "put of version 0 when there is one")
	e.must(put(1, "two\x00\xff"), "put")
	doc("two\x00\xff", 2)
	e.want(put(1, "x"), session.ErrStale, "put of an older version")
	e.want(put(3, "x"), session.ErrStale, "put of a later version")
	doc("two\x00\xff", 2)
	_, v, err := e.st.Doc(e.ctx, "another")
	e.must(err, "doc")
	e.equal(v, int64(0), "version of another document")
}

func (e *env) statsOfAll() {
	e.equal(e.stats(), session.Stats{}, "stats of an empty store")
	l := e.batch() // accept, begin
	e.put(steers(1))
	e.drain(l)
	e.put()
	e.accept(func(a *session.Accept) { a.Dedupe = "m:1" }) // the turn's own, again
	_ = e.amend(session.Amend{Kind: session.AmendDrop, Ticket: 3})
	e.clk.step(ttl)
	e.claim(other)
	_, _ = e.st.Renew(e.ctx, l)
	e.in("2", func() { e.reset(); e.put() })
	got := e.stats()
	want := session.Stats{
		Accepted: 4, Duplicates: 1, Consumed: 1, Steered: 1, Dropped: 1, InSlot: 1,
		Turns: 1, Recovered: 1, Fenced: 1, Sessions: 2,
	}
	e.equal(got, want, "stats")
}

func (e *env) loadNothing() {
	l := e.lane()
	e.equal(l.Exists, false, "exists")
	l.Key, l.Now = session.Key{}, time.Time{}
	if show(l) != show(session.Lane{}) {
		e.errorf("lane: got %s; want the zero lane", show(l))
	}
	e.equal(e.stats(), session.Stats{}, "stats after reading")
}
