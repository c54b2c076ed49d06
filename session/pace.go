package session

import (
	"context"
	"fmt"
	"time"
)

// A pace is why an idle session's next turn waits: too many began in this minute
// (limits.rate). The session's lease is held meanwhile: then it is due again only
// when this process dies, and sweeps of all processes leave it alone.
type pace struct {
	ticket int64 // the turn's first entry; 0 = nothing waits
	till   time.Time
}

// paced reports how long a turn must wait that these tickets would begin, as far
// as is known without asking.
func (a *actor) paced(life context.Context, lane Lane, tickets []int64) (time.Duration, bool) {
	left := time.Until(a.pace.till)
	if a.pace.ticket != tickets[0] || left <= 0 {
		return 0, false
	}
	a.showWaiting(life, lane)
	return left, true
}

// mayBegin takes the turn that begins with this entry from the minute's meters, or
// gives how long it must wait. Asked again for the same entry, it is taken once.
func (a *actor) mayBegin(life context.Context, lane Lane, first Entry, who Person) (time.Duration, bool) {
	meters := a.h.paces(bill{lane: a.key, who: who}, "turns", a.h.Rate.PersonTurns, a.h.Rate.ChatTurns)
	if len(meters) == 0 {
		return 0, true
	}
	op := fmt.Sprintf("turn:%s:%d:%d", a.key, first.Ticket, first.At.UnixMilli())
	r, err := a.h.Store.Reserve(life, Reserve{Op: op, Meters: meters, Amount: 1})
	if err != nil {
		a.h.note(life, "reserve a turn", err)
		return 100 * time.Millisecond, false
	}
	if r.Refused == "" {
		a.pace = pace{}
		return 0, true
	}
	if wait := a.keepForJobs(life); wait != onWake {
		return wait, false
	}
	a.pace = pace{ticket: first.Ticket, till: time.Now().Add(r.Wait + time.Millisecond)}
	a.showWaiting(life, lane)
	return time.Until(a.pace.till), false
}

// showWaiting shows of what waits in an idle session that it does.
func (a *actor) showWaiting(life context.Context, lane Lane) {
	for _, e := range lane.Slot {
		if !e.Held {
			a.showQueued(life, e)
		}
	}
}

// unpace gives up the lease that was held for a turn that waited, if there is one.
func (a *actor) unpace(life context.Context) {
	if a.pace.ticket == 0 {
		return
	}
	a.pace = pace{}
	if !a.held || a.turn != nil {
		return
	}
	a.held = false
	if err := a.h.Store.Release(life, a.lease); err != nil {
		a.h.note(life, "release", err) // it runs out by itself
	}
}

// firstOf is the entry of the lowest of these tickets.
func firstOf(lane Lane, tickets []int64) Entry {
	for _, e := range lane.Slot {
		if e.Ticket == tickets[0] {
			return e
		}
	}
	panic("a ticket that is to be taken is not in the slot")
}
