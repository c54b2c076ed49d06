package session

import (
	"context"
	"fmt"

	"coxswain/steer"
)

// What the actor tells of entries that wait, beside the turn.

// showQueued corrects what people see of an entry that waits for its own turn
// although it was accepted as starting one or steering one.
func (a *actor) showQueued(life context.Context, e Entry) {
	if a.queued[e.Ticket] || e.Want != steer.Steer && e.Turn != 0 {
		return
	}
	a.queued[e.Ticket] = true
	a.settle(life, e.Ticket, e.Msgs, FateQueued, 0, 0, true)
}

// settle records and shows a fate that only tells of something.
func (a *actor) settle(life context.Context, ticket int64, msgs []MessageID, s FateState, turn int64, step int, waited bool) {
	set := FateSet{Ticket: ticket, State: s, Turn: turn, Step: step}
	if err := a.h.Store.Settle(life, a.key, []FateSet{set}); err != nil {
		a.h.note(life, "settle", err)
	}
	a.h.Outbox.Sign(a.key, Fate{Ticket: ticket, Msgs: msgs, State: s, Turn: turn, Step: step, Waited: waited})
}

// writer is whose entry e is, with what its input tells of them. They are not
// the same for a task that an admin sends again.
func writer(e Entry, in Input) Person {
	if in.From.ID != e.Author {
		return Person{ID: e.Author}
	}
	return in.From
}

// refuse drops the entry of somebody who may not talk here any more (I10).
func (a *actor) refuse(life context.Context, e Entry) bool {
	r, err := a.h.Store.Amend(life, Amend{
		Key: a.key, Dedupe: fmt.Sprintf("refuse:%d", e.Ticket), Kind: AmendDrop, Ticket: e.Ticket,
	})
	if err != nil {
		a.h.note(life, "refuse", err)
		return false
	}
	if r.Done {
		a.h.Outbox.Sign(a.key, Fate{Ticket: e.Ticket, Msgs: e.Msgs, State: FateDropped, Waited: true})
	}
	return true
}
