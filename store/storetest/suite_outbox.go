package storetest

import (
	"fmt"
	"time"

	"coxswain/session"
)

// outboxRules: the parts to be sent (I9).
func outboxRules() []rule {
	return []rule{
		{"outbox/sends in order, one at a time", (*env).outOrder},
		{"outbox/keeps what it was given", (*env).outFields},
		{"outbox/planned again after a wait", (*env).outAgain},
		{"outbox/F9 its sender asks again", (*env).outAskedAgain},
		{"outbox/F7 unknown is given again as unknown", (*env).outUnknown},
		{"outbox/F6 another takes over, and knows nothing", (*env).outTakeover},
		{"outbox/F7 one that is still being sent is taken over later", (*env).outStill},
		{"outbox/the rest is kept for who sends", (*env).outKept},
		{"outbox/F43 a dead part lets the next go", (*env).outDead},
		{"outbox/ending what one does not hold changes nothing", (*env).outDoneWrong},
		{"outbox/a commit takes the head of an empty outbox", (*env).outCommitTakes},
		{"outbox/each lane has its own", (*env).outLanes},
		{"outbox/due", (*env).outDue},
	}
}

const takeover = 10 * time.Second

func (e *env) plan(n int) []session.PartNew {
	p := e.parts("p", n)
	_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Outs: p})
	e.must(err, "post")
	return p
}

// take gives the head part, which must be there.
func (e *env) take(nonce string) session.Part {
	p, ok, wait, err := e.st.OutTake(e.ctx, e.key, nonce, takeover)
	e.must(err, "outtake")
	if !ok || wait != 0 {
		e.fatalf("outtake by %s: got ok %v, wait %v; want a part now", nonce, ok, wait)
	}
	return p
}

// none wants no part to be given, and the wait.
func (e *env) none(nonce string, want time.Duration, when string) {
	e.unchanged("an outtake that gives nothing", func() {
		p, ok, wait, err := e.st.OutTake(e.ctx, e.key, nonce, takeover)
		e.must(err, "outtake")
		if ok || wait != want {
			e.errorf("outtake by %s %s: got part %q, ok %v, wait %v; want none, wait %v", nonce, when, p.ID, ok, wait, want)
		}
	})
}

// again wants a sender to get the part that it holds once more, as it was first
// given: its reply was lost.
func (e *env) again(nonce string, want session.Part) {
	e.unchanged("an outtake asked again", func() { e.equal(e.take(nonce), want, "part asked for again by its sender") })
}

func (e *env) done(nonce string, d session.PartDone) {
	e.must(e.st.OutDone(e.ctx, e.key, nonce, d), "outdone")
}

func (e *env) outOrder() {
	e.none(me, 0, "of no lane")
	parts := e.plan(2)
	_, err := e.st.Stop(e.ctx, session.Stop{Key: e.key, Outs: e.parts("q", 1)})
	e.must(err, "stop")
	var got []string
	for range 3 {
		p := e.take(me)
		e.again(me, p)
		got = append(got, p.ID)
		e.done(me, session.PartDone{ID: p.ID, State: session.PartSent, Msg: "x"})
	}
	e.equal(got[:2], []string{parts[0].ID, parts[1].ID}, "order")
	e.none(me, 0, "of an empty outbox")
	s := e.stats()
	e.equal([]int64{s.OutPlanned, s.OutSent, int64(e.lane().Out)}, []int64{3, 3, 0}, "planned, sent, left")
}

func (e *env) outFields() {
	p := session.PartNew{ID: "t1/0", Kind: session.PartFinal, Turn: 4, Data: []byte("{\"text\":\"\\u0000 é\"}\x00\xff")}
	_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Outs: []session.PartNew{p}})
	e.must(err, "post")
	e.clk.step(time.Second)
	e.equal(e.take(me), session.Part{PartNew: p, Key: e.key, State: session.PartSending, Attempt: 1, Since: e.clk.now(), Alone: true}, "part")
}

func (e *env) outAgain() {
	p := e.plan(2)
	e.take(me)
	e.clk.step(time.Second)
	e.done(me, session.PartDone{ID: p[0].ID, State: session.PartPlanned, Wait: 3 * time.Second})
	e.none(me, 3*time.Second, "before the wait is over")
	e.clk.step(2 * time.Second)
	e.none(other, time.Second, "before the wait is over")
	e.clk.step(time.Second)
	got := e.take(other)
	e.equal(got, session.Part{PartNew: p[0], Key: e.key, State: session.PartSending, Attempt: 2, Since: e.clk.now()}, "part")
	e.done(other, session.PartDone{ID: p[0].ID, State: session.PartSent})
	next := e.take(me)
	e.equal(next.ID, p[1].ID, "the next, at once")
	e.equal(next.Alone, true, "the last one is alone")
	e.plan(1)
	next.Alone = false
	e.again(me, next)
}

func (e *env) outAskedAgain() {
	p := e.plan(1)
	first := e.take(me)
	for range 3 {
		e.clk.step(takeover)
		e.again(me, first)
	}
	e.done(me, session.PartDone{ID: p[0].ID, State: session.PartPlanned})
	e.equal(e.take(me).Attempt, 2, "attempt once the first has ended")
}

func (e *env) outUnknown() {
	p := e.plan(1)
	tried := e.take(me).Since
	e.clk.step(time.Second)
	unknown := session.PartDone{ID: p[0].ID, State: session.PartUnknown, Wait: takeover}
	e.done(me, unknown)
	e.equal(e.stats().OutUnknown, int64(1), "unknown")
	e.none(me, takeover, "before the wait is over")
	e.clk.step(takeover)
	again := e.clk.now()
	want := session.Part{PartNew: p[0], Key: e.key, State: session.PartUnknown, Attempt: 2, Since: tried, Alone: true}
	e.equal(e.take(me), want, "part")
	e.none(other, takeover, "while another is sending")
	e.clk.step(time.Second)
	e.again(me, want)
	e.done(me, unknown)
	e.clk.step(takeover)
	want.Attempt, want.Since = 3, again
	e.equal(e.take(other), want, "part, unknown twice")
	e.done(other, session.PartDone{ID: p[0].ID, State: session.PartSent})
	s := e.stats()
	e.equal([]int64{s.OutPlanned, s.OutUnknown, s.OutSent}, []int64{1, 2, 1}, "planned, unknown, sent")
}

func (e *env) outTakeover() {
	p := e.plan(2)
	mine := e.take(me)
	tried := mine.Since
	e.clk.step(takeover - time.Millisecond)
	e.none(other, time.Millisecond, "1 ms before takeover")
	e.clk.step(time.Millisecond)
	e.again(me, mine) // late as it is, it is still the sender's
	e.equal(e.take(other), session.Part{PartNew: p[0], Key: e.key, State: session.PartUnknown, Attempt: 2, Since: tried}, "part")
	e.unchanged("the end of an attempt that was taken over", func() {
		e.done(me, session.PartDone{ID: p[0].ID, State: session.PartSent})
	})
	e.done(other, session.PartDone{ID: p[0].ID, State: session.PartSent})
	e.equal(e.take(other).State, session.PartSending, "state of the next part")
}

// outStill: who says in time that it is still sending is not taken over.
func (e *env) outStill() {
	p := e.plan(1)
	still := session.PartDone{ID: p[0].ID, State: session.PartSending}
	e.unchanged("a part that nobody sends, said to be sent still", func() { e.done(me, still) })
	want := e.take(me)
	for range 3 {
		e.clk.step(takeover - time.Second)
		e.done(me, still)
		want.Since = e.clk.now()
	}
	e.again(me, want)
	e.done(other, still) // it does not hold it
	e.none(other, takeover, "when it was just said to be sent still")
	e.clk.step(takeover)
	e.equal(e.take(other), session.Part{PartNew: p[0], Key: e.key, State: session.PartUnknown, Attempt: 2, Since: want.Since, Alone: true}, "part")
	tried := e.clk.now()
	e.clk.step(time.Second)
	e.unchanged("a part that was taken over, said to be sent still", func() { e.done(me, still) })
	e.done(other, still)
	unknown := e.take(other)
	e.equal([]any{unknown.State, unknown.Since}, []any{session.PartUnknown, want.Since}, "an unknown part asked for again")
	e.none(me, takeover, "when it was just said to be sent still")
	e.clk.step(takeover)
	e.equal(e.take(me).Since, tried.Add(time.Second), "when the sender last said so")
}

// outKept: between two parts the lane stays its sender's for a while.
func (e *env) outKept() {
	p := e.plan(4)
	kept := func(i int) session.PartDone {
		return session.PartDone{ID: p[i].ID, State: session.PartSent, Wait: 3 * time.Second, For: me}
	}
	due := func() int {
		keys, err := e.st.OutDue(e.ctx, 0)
		e.must(err, "outdue")
		return len(keys)
	}
	e.take(other)
	e.done(other, kept(0)) // for another nonce of its process
	e.none(other, 3*time.Second, "what is kept for another")
	e.equal(due(), 0, "lanes due while the rest is kept")
	e.equal(e.take(me).ID, p[1].ID, "next, by who it is kept for")
	e.done(me, session.PartDone{ID: p[1].ID, State: session.PartDead, Wait: 3 * time.Second, For: me})
	e.clk.step(2 * time.Second)
	e.none(other, time.Second, "what is kept for another")
	e.clk.step(time.Second)
	e.equal(due(), 1, "lanes due when it is kept no more")
	e.equal(e.take(other).ID, p[2].ID, "next, by another in time")
	e.done(other, kept(2))
	e.unchanged("another gives up what is kept", func() { e.done(other, session.PartDone{State: session.PartPlanned}) })
	e.done(me, session.PartDone{State: session.PartPlanned})
	e.equal(due(), 1, "lanes due when it was given up")
	got := e.take(other)
	e.equal([]any{got.ID, got.State, got.Attempt}, []any{p[3].ID, session.PartSending, 1}, "next, at once")
	e.unchanged("one that sends gives up nothing", func() { e.done(other, session.PartDone{State: session.PartPlanned}) })
	e.done(other, session.PartDone{ID: p[3].ID, State: session.PartSent, Wait: time.Hour, For: me})
	e.plan(1)
	e.equal(e.take(other).Attempt, 1, "attempt of a part that came when nothing was left to be kept")
}

func (e *env) outDead() {
	p := e.plan(2)
	e.take(me)
	e.done(me, session.PartDone{ID: p[0].ID, State: session.PartDead, Wait: time.Hour})
	e.equal(e.take(me).ID, p[1].ID, "next")
	s := e.stats()
	e.equal([]int64{s.OutDead, s.OutSent, int64(e.lane().Out)}, []int64{1, 0, 1}, "dead, sent, left")
}

func (e *env) outDoneWrong() {
	p := e.plan(2)
	sent := func(id string) session.PartDone { return session.PartDone{ID: id, State: session.PartSent} }
	nothing := func(nonce, id, what string) {
		e.unchanged("the end of "+what, func() { e.done(nonce, sent(id)) })
	}
	nothing(me, p[0].ID, "a part nobody took")
	e.take(me)
	nothing(other, p[0].ID, "a part another is sending")
	nothing(me, p[1].ID, "a part that is not the head")
	e.done(me, sent(p[0].ID))
	nothing(me, p[0].ID, "a part that has ended")
	e.equal(e.take(me).ID, p[1].ID, "next")
	e.must(e.st.OutDone(e.ctx, session.Key{Platform: "test", Chat: "none"}, me, sent("x")), "outdone of no lane")
}

func (e *env) outCommitTakes() {
	l := e.turn()
	c := e.step()
	c.TakeOut = true
	e.equal(e.commit(l, c).Out == nil, true, "no part without parts")
	c = e.step()
	c.Outs, c.TakeOut = e.parts("x", 2), true
	got := e.commit(l, c)
	want := session.Part{PartNew: c.Outs[0], Key: e.key, State: session.PartSending, Attempt: 1, Since: e.clk.now()}
	if got.Out == nil {
		e.fatalf("commit gave no part; want %s", c.Outs[0].ID)
	}
	e.equal(*got.Out, want, "part")
	e.none(other, takeover, "while another is sending")
	e.clk.step(time.Millisecond)
	e.again(me, want)
	c = e.step()
	c.Outs, c.TakeOut = e.parts("y", 1), true
	e.equal(e.commit(l, c).Out == nil, true, "no part when the outbox was not empty")
	e.done(me, session.PartDone{ID: want.ID, State: session.PartSent})
	e.equal(e.take(other).Attempt, 1, "attempt of the next")
}

func (e *env) outLanes() {
	first := e.key
	for i := range 3 {
		e.key.Chat = session.ChatID(fmt.Sprint(i))
		e.plan(1)
		e.take(me) // none waits for another lane
	}
	e.key = first
}

func (e *env) outDue() {
	due := func(limit int) int {
		keys, err := e.st.OutDue(e.ctx, limit)
		e.must(err, "outdue")
		return len(keys)
	}
	e.turn()
	e.equal(due(0), 0, "lanes due without parts")
	e.key.Chat = "2"
	p := e.plan(1)
	keys, err := e.st.OutDue(e.ctx, 0)
	e.must(err, "outdue")
	e.equal(keys, []session.Key{e.key}, "lanes due")
	e.take(me)
	e.equal(due(0), 1, "lanes due while sending: its sender may be dead")
	e.done(me, session.PartDone{ID: p[0].ID, State: session.PartPlanned, Wait: time.Second})
	e.equal(due(0), 0, "lanes due during a wait")
	e.clk.step(time.Second)
	e.equal(due(0), 1, "lanes due after a wait")
	for _, chat := range []session.ChatID{"3", "4"} {
		e.key.Chat = chat
		e.plan(1)
	}
	e.equal([]int{due(2), due(0), due(9)}, []int{2, 3, 3}, "lanes due under a limit")
	e.key.Chat = "2"
	e.take(me)
	e.done(me, session.PartDone{ID: p[0].ID, State: session.PartSent})
	e.equal(due(0), 2, "lanes due after the last part of one")
}
