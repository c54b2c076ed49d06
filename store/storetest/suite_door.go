package storetest

import (
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// doorRules: Accept.
func doorRules() []rule {
	return []rule{
		{"accept/keeps every field", (*env).acceptFields},
		{"accept/a title is set once", (*env).acceptTitle},
		{"accept/I2 a repeat after the turn, after new", (*env).acceptRepeatLater},
		{"accept/I2 a mark counts for 48 hours", (*env).acceptMarkLife},
		{"seen/I2 says what a mark says, and leaves none", (*env).seen},
		{"accept/I2 marks belong to a lane", (*env).acceptMarkOfLane},
		{"accept/a full slot tells and claims nothing", (*env).acceptFull},
		{"accept/the cap counts what waits and is not held", (*env).acceptCapHeld},
		{"accept/an idle lane is full only for what waits for room", (*env).acceptIdleNeverFull},
		{"accept/T4 a part joins the open entry", (*env).acceptJoins},
		{"accept/a part makes a steer queue", (*env).acceptDemotes},
		{"accept/T5 a part joins nothing else", (*env).acceptJoinsNothingElse},
		{"accept/a part joins a full slot", (*env).acceptJoinsFull},
		{"accept/an entry grows to 64 KiB", (*env).acceptJoinSize},
		{"accept/the answer carries the lane after it", (*env).acceptAnswer},
	}
}

func (e *env) acceptFields() {
	r := session.Accept{
		Key: e.key, Dedupe: "m:1", Want: steer.Interrupt, Turn: 7, Author: bob, Msg: "m1", Data: text("hi"),
		Group: "g", Open: 1500 * time.Millisecond, Title: "hi", Fate: session.FateRunning,
	}
	now := e.clk.now()
	if _, err := e.st.Accept(e.ctx, r); err != nil {
		e.fatalf("accept: %v", err)
	}
	e.clk.step(time.Second)
	l := e.lane()
	e.equal(l.Slot, []session.Entry{{
		Ticket: 1, Version: 1, Want: steer.Interrupt, Turn: 7, Author: bob, Msgs: []session.MessageID{"m1"}, Data: text("hi"),
		Group: "g", Open: now.Add(1500 * time.Millisecond), At: now,
	}}, "slot")
	l.Slot = nil
	e.equal(l, session.Lane{
		Key: e.key, Exists: true, Gen: 1, Tickets: 1, Title: "hi", Touched: now, Now: now.Add(time.Second),
	}, "lane")
	e.equal(e.fate(1), session.Fate{
		Ticket: 1, Msgs: []session.MessageID{"m1"}, State: session.FateRunning, At: now.UnixMilli(), Changed: now.UnixMilli(),
	}, "fate")
	e.equal(e.stats(), session.Stats{Accepted: 1, InSlot: 1, Sessions: 1}, "stats")
}

func (e *env) acceptTitle() {
	e.put(func(a *session.Accept) { a.Title = "" })
	e.put(func(a *session.Accept) { a.Title = "first" })
	e.put(func(a *session.Accept) { a.Title = "second" })
	e.equal(e.lane().Title, "first", "title")
}

func (e *env) acceptRepeatLater() {
	same := func(a *session.Accept) { a.Dedupe = "m:same" }
	t := e.put(same)
	repeat := func(when string) {
		e.unchanged("a repeat "+when, func() {
			a := e.accept(same)
			e.equal(a.Outcome, session.AcceptDup, "outcome "+when)
			e.equal(a.Ticket, t, "ticket "+when)
		})
	}
	l := e.begin(me, t).Lease
	repeat("during its turn")
	e.end(l)
	repeat("after its turn")
	e.reset()
	repeat("after new")
	e.clk.step(20 * time.Hour)
	repeat("next day")
	if got := e.stats().Duplicates; got != 4 {
		e.errorf("duplicates counted: got %d; want 4", got)
	}
}

func (e *env) acceptMarkLife() {
	same := func(a *session.Accept) { a.Dedupe = "m:same" }
	e.put(same)
	e.clk.step(MarkLife - time.Millisecond)
	e.equal(e.accept(same).Outcome, session.AcceptDup, "just before 48 hours")
	e.clk.step(2 * time.Millisecond)
	e.equal(e.accept(same).Outcome, session.AcceptOK, "just after 48 hours")
	e.equal(e.accept(same).Outcome, session.AcceptDup, "the new mark")
}

func (e *env) seen() {
	want := func(key session.Key, dedupe string, want bool, when string) {
		got, err := e.st.Seen(e.ctx, key, dedupe)
		e.must(err, "seen")
		e.equal(got, want, "seen "+when)
	}
	want(e.key, "m:same", false, "in a lane that is not there")
	want(e.key, "m:same", false, "once asked")
	e.equal(e.lane().Exists, false, "the lane exists")
	e.put(func(a *session.Accept) { a.Dedupe = "m:same" })
	want(e.key, "m:same", true, "of a message")
	want(e.key, "m:other", false, "of another message")
	want(e.key, "", false, "of none")
	want(session.Key{Platform: "test", Chat: "2"}, "m:same", false, "in another lane")
	_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Dedupe: "r:same"})
	e.must(err, "post")
	want(e.key, "r:same", true, "of a command")
	before := e.stats().Duplicates
	e.clk.step(MarkLife - time.Millisecond)
	want(e.key, "m:same", true, "just before 48 hours")
	e.clk.step(2 * time.Millisecond)
	want(e.key, "m:same", false, "just after 48 hours")
	e.equal(e.stats().Duplicates, before, "duplicates counted")
}

func (e *env) acceptMarkOfLane() {
	e.put(func(a *session.Accept) { a.Dedupe = "m:same" })
	for _, key := range []session.Key{{Platform: "test", Chat: "2"}, {Platform: "test", Chat: "1", Thread: "1"}, {Platform: "other", Chat: "1"}} {
		a := e.accept(func(a *session.Accept) { a.Dedupe, a.Key = "m:same", key })
		e.equal(a.Outcome, session.AcceptOK, "outcome in lane "+key.String())
		e.equal(a.Ticket, int64(1), "ticket in lane "+key.String())
	}
}

// fill lets entries wait up to the cap.
func (e *env) fill() {
	for n := e.waiting(); n < session.SlotCap; n++ {
		e.put()
	}
}

func (e *env) waiting() int {
	n := 0
	for _, en := range e.lane().Slot {
		if !en.Held {
			n++
		}
	}
	return n
}

func (e *env) acceptFull() {
	l := e.turn()
	e.fill()
	before := e.picture()
	refused := func(a *session.Accept) { a.Dedupe, a.Full = "m:late", e.parts("full", 2) }
	a := e.accept(refused)
	e.equal(a.Outcome, session.AcceptFull, "outcome")
	e.equal(a.Ticket, int64(0), "ticket")
	after := e.picture()
	before.Lane.Out, before.Lane.Touched = 2, after.Lane.Touched // the words of refusal
	before.Stats.OutPlanned, before.Stats.Full = 2, 1
	e.equal(after, before, "what a refusal changes")
	e.commit(l, session.Commit{Op: "take", Seq: e.lane().Seq, Take: takes(e.lane(), e.first()...)})
	e.unchanged("a refused input that comes again when there is room", func() {
		a := e.accept(refused)
		e.equal(a.Outcome, session.AcceptDup, "outcome")
		e.equal(a.Ticket, int64(0), "ticket")
	})
	e.put() // there is room for another
}

func (e *env) acceptCapHeld() {
	e.turn()
	e.fill()
	e.stop()
	for range session.SlotCap {
		e.put()
	}
	e.equal(e.accept().Outcome, session.AcceptFull, "entry 33 that waits")
	e.equal(len(e.lane().Slot), 2*session.SlotCap, "entries")
}

func (e *env) acceptIdleNeverFull() {
	for range session.SlotCap + 3 {
		e.put()
	}
	e.equal(len(e.lane().Slot), session.SlotCap+3, "entries")
	waits := func(a *session.Accept) { a.Turn = -1 }
	e.equal(e.accept(waits).Outcome, session.AcceptFull, "that waits for room")
	e.begin(me, 1)
	e.equal(e.accept().Outcome, session.AcceptFull, "once a turn is open")
}

func (e *env) acceptJoins() {
	e.turn()
	t := e.put(opens("g", time.Second), wants(steer.Interrupt, 1), func(a *session.Accept) { a.Msg, a.Data = "p1", text("one") })
	accepted := e.clk.now()
	e.clk.step(999 * time.Millisecond)
	part := func(a *session.Accept) { a.Msg, a.Data, a.Dedupe = "p2", text("two"), "m:p2" }
	a := e.accept(joins("g", 2*time.Second), wants(steer.Queue, 0), part)
	e.equal(a.Outcome, session.AcceptJoined, "outcome")
	e.equal(a.Ticket, t, "ticket")
	want := session.Entry{
		Ticket: t, Version: 2, Want: steer.Interrupt, Turn: 1, Author: ann, Msgs: []session.MessageID{"p1", "p2"}, Group: "g",
		Open: e.clk.now().Add(2 * time.Second), At: accepted, Data: []byte(string(text("one")) + "\n" + string(text("two"))),
	}
	e.equal(e.entry(t), want, "entry")
	e.equal(e.fate(t).Msgs, want.Msgs, "messages of the fate")
	e.unchanged("the same part again", func() {
		a := e.accept(joins("g", time.Second), part)
		e.equal(a.Outcome, session.AcceptDup, "outcome")
		e.equal(a.Ticket, t, "ticket")
	})
	e.clk.step(2*time.Second - time.Millisecond)
	e.equal(e.put(joins("g", 0)), t, "ticket of the last part, which closes")
	e.equal(e.entry(t).Open, time.Time{}, "open until")
	e.equal(e.entry(t).Version, int64(3), "version")
	if e.put(joins("g", 0)) == t {
		e.errorf("a part joined an entry that was closed")
	}
	e.equal(e.stats().Accepted, int64(3), "accepted") // the turn's, this one, the last
}

// acceptDemotes: a part says that the whole is too long for a note.
func (e *env) acceptDemotes() {
	e.turn()
	t := e.put(opens("g", time.Second), steers(1))
	e.accept(joins("g", time.Second), steers(1))
	e.equal(e.entry(t).Want, steer.Steer, "want after a part that may go in")
	e.equal(e.fate(t).State, session.FatePending, "fate")
	e.accept(joins("g", time.Second), wants(steer.Queue, 1))
	e.equal(e.entry(t).Want, steer.Queue, "want after one that may not")
	e.equal(e.entry(t).Open.IsZero(), false, "closed")
	e.equal(e.fate(t).State, session.FateQueued, "fate")
	e.accept(joins("g", time.Second), steers(1))
	e.equal(e.entry(t).Want, steer.Queue, "want after another part")
}

func (e *env) acceptJoinsNothingElse() {
	open := e.put(opens("g", time.Second))
	apart := func(what string, change ...func(*session.Accept)) {
		if e.put(append(change, joinsOnly)...) == open {
			e.errorf("a part joined %s", what)
		}
	}
	in := func(group string) func(*session.Accept) { return func(a *session.Accept) { a.Group = group } }
	apart("another group", in("h"))
	apart("a part of another person", in("g"), func(a *session.Accept) { a.Author = bob })
	if e.put(in("g")) == open {
		e.errorf("an input that does not continue joined")
	}
	e.put(func(a *session.Accept) { a.Open = time.Second })
	n := len(e.lane().Slot)
	apart("an entry without a group")
	e.equal(len(e.lane().Slot), n+1, "entries after a part without a group")
	e.clk.step(time.Second)
	apart("an entry whose time had come", in("g"))
	open = e.put(opens("k", time.Minute))
	e.stop()
	apart("a held entry", in("k"))
}

// joinsOnly asks for a join and leaves the group as it is.
func joinsOnly(a *session.Accept) { a.Append = true }

func (e *env) acceptJoinsFull() {
	e.turn()
	t := e.put(opens("g", time.Second))
	e.fill()
	a := e.accept(joins("g", 0))
	e.equal(a.Outcome, session.AcceptJoined, "outcome in a full slot")
	e.equal(a.Ticket, t, "ticket")
}

func (e *env) acceptJoinSize() {
	data := func(n int) func(*session.Accept) {
		return func(a *session.Accept) { a.Data = []byte(strings.Repeat("x", n)) }
	}
	t := e.put(opens("g", time.Minute), data(session.EntryMaxBytes-11))
	e.equal(e.accept(joins("g", time.Minute), data(10)).Outcome, session.AcceptJoined, "up to the limit")
	e.equal(len(e.entry(t).Data), session.EntryMaxBytes, "bytes")
	a := e.accept(joins("g", time.Minute), data(0))
	e.equal(a.Outcome, session.AcceptOK, "over the limit by its separator")
	e.equal(a.Ticket, t+1, "ticket over the limit")
}

func (e *env) acceptAnswer() {
	e.turn()
	e.clk.step(time.Second)
	for _, change := range []func(*session.Accept){opens("g", time.Second), joins("g", time.Second)} {
		a := e.accept(change)
		e.equal(a.Lane, e.lane(), "lane in the answer")
	}
	e.fill()
	e.equal(e.accept().Lane, e.lane(), "lane in the answer of a full slot")
	e.equal(e.accept(func(a *session.Accept) { a.Dedupe = "m:1" }).Lane, e.lane(), "lane in the answer of a repeat")
}
