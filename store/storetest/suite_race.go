package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"coxswain/session"
)

// raceRules: several callers at once. Whatever the order, exactly one wins.
func raceRules() []rule {
	return []rule{
		{"race/F10 one update on many replicas", (*env).raceAccept},
		{"race/F14 claims of one lane", (*env).raceClaim},
		{"race/I4 begins on one lane", (*env).raceBegin},
		{"race/F29 a drop against a drain", (*env).raceDropDrain},
		{"race/F27 a steer against the end", (*env).raceSteerEnd},
		{"race/parts are taken by one", (*env).raceOutTake},
		{"race/documents", (*env).raceDoc},
		{"race/tickets are given once", (*env).raceTickets},
	}
}

const racers = 8

// race runs f(0) … f(racers-1) at once and waits for all.
func race(f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range racers {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// one wants exactly one of n to have won and the others to have had want.
func (e *env) one(errs []error, want error, what string) {
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, want):
			e.errorf("%s: got error %v; want %v", what, err, want)
		}
	}
	if won != 1 {
		e.errorf("%s: %d won; want 1", what, won)
	}
}

func (e *env) raceAccept() {
	got := make([]session.Accepted, racers)
	errs := make([]error, racers)
	race(func(i int) {
		got[i], errs[i] = e.st.Accept(e.ctx, session.Accept{Key: e.key, Dedupe: "m:1", Author: ann, Msg: "1", Data: text("hi"), Fate: session.FateQueued})
	})
	fresh := 0
	for i, a := range got {
		e.must(errs[i], "accept")
		e.equal(a.Ticket, int64(1), "ticket")
		if a.Outcome == session.AcceptOK {
			fresh++
		} else {
			e.equal(a.Outcome, session.AcceptDup, "outcome")
		}
	}
	e.equal(fresh, 1, "new entries")
	e.equal(len(e.lane().Slot), 1, "entries")
}

func nonceOf(i int) string { return "nonce-" + string(rune('a'+i)) }

func (e *env) raceClaim() {
	e.turn()
	e.clk.step(ttl)
	errs := make([]error, racers)
	race(func(i int) { _, errs[i] = e.st.Claim(e.ctx, e.key, nonceOf(i), ttl) })
	e.one(errs, session.ErrHeld, "claims")
	e.equal(e.lane().Attempts, 1, "recoveries")
	e.equal(e.lane().Epoch, int64(2), "epoch")
}

func (e *env) raceBegin() {
	t := e.put()
	rs := make([]session.Begin, racers)
	for i := range rs {
		rs[i] = e.beginning(nonceOf(i), t)
	}
	errs := make([]error, racers)
	race(func(i int) { _, errs[i] = e.st.Begin(e.ctx, rs[i]) })
	e.one(errs, session.ErrHeld, "begins")
	e.equal(len(e.rows(1)), 1, "rows")
	e.equal(e.stats().Consumed, int64(1), "consumed")
}

// raceDropDrain: each steer is dropped or in a row, and who dropped knows it.
func (e *env) raceDropDrain() {
	l := e.batch()
	tickets := make([]int64, racers-1)
	for i := range tickets {
		tickets[i] = e.put(steers(1))
	}
	c := e.step()
	c.Drain = true
	done := make([]session.Amended, racers)
	errs := make([]error, racers)
	var got session.Committed
	race(func(i int) {
		if i == racers-1 {
			got, errs[i] = e.st.Commit(e.ctx, l, c)
			return
		}
		done[i], errs[i] = e.st.Amend(e.ctx, session.Amend{Key: e.key, Dedupe: nonceOf(i), Kind: session.AmendDrop, Ticket: tickets[i]})
	})
	moved := map[int64]bool{}
	for _, r := range got.Steers {
		moved[r.Tick] = true
	}
	for i, t := range tickets {
		e.must(errs[i], "drop")
		if done[i].Done == moved[t] {
			e.errorf("ticket %d: dropped %v, on a row %v; want one of them", t, done[i].Done, moved[t])
		}
	}
	e.must(errs[racers-1], "drain")
	e.equal(len(e.rows(1)), 4+len(moved), "rows")
}

// raceSteerEnd: a steer against the end is never stranded.
func (e *env) raceSteerEnd() {
	l := e.turn()
	c := e.step(endRow())
	c.End = true
	var got session.Committed
	var before atomic.Bool
	errs := make([]error, racers)
	race(func(i int) {
		if i == 0 {
			got, errs[i] = e.st.Commit(e.ctx, l, c)
			return
		}
		a, err := e.st.Accept(e.ctx, session.Accept{
			Key: e.key, Dedupe: nonceOf(i), Want: 2, Turn: 1, Author: ann, Msg: "1", Data: text("hi"), Fate: session.FatePending,
		})
		if errs[i] = err; a.Lane.Turn != 0 {
			before.Store(true) // it was in the slot when the turn ended
		}
	})
	for _, err := range errs {
		e.must(err, "accept or end")
	}
	e.equal(got.More, before.Load(), "more, when a steer was in the slot at the end")
	if lane := e.lane(); (lane.Nonce == "") == got.More {
		e.errorf("holder after the end: got %q; want one only if there is more (%v)", lane.Nonce, got.More)
	}
	if !got.More {
		e.equal(len(e.due(0)), 1, "lanes due")
	}
}

func (e *env) raceOutTake() {
	e.plan(1)
	var taken atomic.Int64
	errs := make([]error, racers)
	race(func(i int) {
		_, ok, _, err := e.st.OutTake(e.ctx, e.key, nonceOf(i), takeover)
		if errs[i] = err; ok {
			taken.Add(1)
		}
	})
	for _, err := range errs {
		e.must(err, "outtake")
	}
	e.equal(taken.Load(), int64(1), "times the part was taken")
}

func (e *env) raceDoc() {
	errs := make([]error, racers)
	race(func(i int) { errs[i] = e.st.PutDoc(e.ctx, "d", 0, []byte(nonceOf(i))) })
	e.one(errs, session.ErrStale, "puts of version 0")
}

func (e *env) raceTickets() {
	var mu sync.Mutex
	seen := map[int64]bool{}
	errs := make([]error, racers)
	race(func(i int) {
		for j := range 4 {
			id := nonceOf(i) + string(rune('0'+j))
			a, err := e.st.Accept(e.ctx, session.Accept{Key: e.key, Dedupe: id, Author: ann, Msg: session.MessageID(id), Data: text(id), Fate: session.FateQueued})
			if err != nil {
				errs[i] = err
				return
			}
			mu.Lock()
			seen[a.Ticket] = true
			mu.Unlock()
		}
	})
	for _, err := range errs {
		e.must(err, "accept")
	}
	e.equal(len(seen), 4*racers, "different tickets")
	e.equal(e.lane().Tickets, int64(4*racers), "newest ticket")
}
