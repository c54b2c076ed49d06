package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"coxswain/steer"
)

// lookIdle begins the next turn, if there is one.
func (a *actor) lookIdle(life context.Context, lane Lane) time.Duration {
	if left, held := lane.heldByOther(a.h.Nonce, a.h.LeaseTTL); held {
		return left + time.Millisecond
	}
	if !a.jobsLost(life, lane) {
		return 100 * time.Millisecond
	}
	waiting := make([]steer.Waiting, 0, len(lane.Slot))
	wait := never
	for _, e := range lane.Slot {
		open := e.IsOpen(lane.Now)
		if open && !e.Held && wait == never {
			wait = e.Open.Sub(lane.Now)
		}
		waiting = append(waiting, steer.Waiting{Ticket: e.Ticket, Want: e.Want, Author: string(e.Author), Open: open, Held: e.Held})
	}
	take := steer.Take(waiting, a.h.Together)
	if len(take) > 0 {
		if !a.h.gate.enter(a.key, a.h.crowd(a.key), false, false) {
			return a.waitForRoom(life, lane)
		}
		return a.begin(life, lane, take)
	}
	if wait != never {
		a.h.gate.forgo(a.key)
		return wait
	}
	var running, over []Job
	for _, j := range lane.Jobs {
		switch {
		case j.Name == asideJob:
		case j.State == JobRunning:
			running = append(running, j)
		default:
			over = append(over, j)
		}
	}
	if len(over) > 0 {
		if a.h.JobsOnEnd == "turn" && !a.h.gate.enter(a.key, a.h.crowd(a.key), false, false) {
			return a.waitForRoom(life, lane)
		}
		return a.tellJobs(life, lane, over)
	}
	a.h.gate.forgo(a.key)
	if len(running) > 0 {
		return a.keepForJobs(life)
	}
	a.unpace(life)
	if len(a.asides) > 0 {
		return onWake
	}
	a.held = false
	return never
}

// keepForJobs holds the lease of an idle session while its jobs run here.
func (a *actor) keepForJobs(life context.Context) time.Duration {
	if a.held {
		return onWake
	}
	b, err := a.h.Store.Claim(life, a.key, a.h.Nonce, a.h.LeaseTTL)
	if err != nil {
		if !errors.Is(err, ErrHeld) {
			a.h.note(life, "claim for jobs", err)
		}
		return 100 * time.Millisecond
	}
	a.lease, a.held = b.Lease, true
	return onWake
}

// begin opens a turn with these tickets.
func (a *actor) begin(life context.Context, lane Lane, tickets []int64) time.Duration {
	if wait, ok := a.paced(life, lane, tickets); ok {
		return wait
	}
	r := Begin{Take: nil}
	var asker Person
	var row UserRow
	rows, err := a.rows(life, lane)
	if err != nil {
		a.h.note(life, "read rows", err)
		return 100 * time.Millisecond
	}
	for _, e := range lane.Slot {
		if !slices.Contains(tickets, e.Ticket) {
			continue
		}
		in := decodeInput(e)
		may, admin, err := a.h.Access.Still(life, a.key, writer(e, in))
		if err != nil {
			a.h.note(life, "read access", err)
			return 100 * time.Millisecond
		}
		if may && in.Retry != 0 {
			if may, err = a.takeAgain(life, rows, in.Retry, &row, &r); err != nil {
				a.h.note(life, "read what to take again", err)
				return 100 * time.Millisecond
			}
		}
		if !may {
			if !a.refuse(life, e) {
				return 100 * time.Millisecond
			}
			continue
		}
		in.Admin = admin
		a.h.Agent.Keep(life, a.key, &in)
		row.Inputs = append(row.Inputs, in)
		r.Take = append(r.Take, Take{Ticket: e.Ticket, Version: e.Version})
		r.Fates = append(r.Fates, FateSet{Ticket: e.Ticket, State: FateRunning})
		// The turn is whose message decided that it begins: the interrupt's, or
		// the first one's.
		if r.Owner == "" || e.Want == steer.Interrupt {
			r.Owner, asker = e.Author, writer(e, in)
		}
	}
	if len(r.Take) == 0 {
		return time.Millisecond // all were refused: look again
	}
	if wait, ok := a.mayBegin(life, lane, firstOf(lane, tickets), asker); !ok {
		return wait
	}
	if err := a.tell(life, rows, &row); err != nil {
		a.h.note(life, "read what the chat said", err)
		return 100 * time.Millisecond
	}
	row.Owner = r.Owner
	return a.open(life, lane, r, row, rows)
}

// open writes the turn's first rows behind rows and starts it.
func (a *actor) open(life context.Context, lane Lane, r Begin, row UserRow, rows []Row) time.Duration {
	head, err := a.h.Agent.Head(life, a.key, lastHead(rows))
	if err != nil {
		a.h.note(life, "make head", err)
		return time.Second
	}
	if head != nil {
		r.Rows = append(r.Rows, Row{Type: RowHead, Data: head})
	}
	data, err := json.Marshal(row)
	if err != nil {
		a.h.Log.ErrorContext(life, "user row does not encode", "session", a.key.String(), "err", err)
		return time.Second
	}
	r.Rows = append(r.Rows, Row{Type: RowUser, Data: data})
	a.ops++
	r.Op = OpID(fmt.Sprintf("b:%s:%d:%d", a.h.Nonce, lane.Turns+1, a.ops))
	r.Key, r.Nonce, r.TTL = a.key, a.h.Nonce, a.h.LeaseTTL
	r.Gen, r.Seq, r.Phase = lane.Gen, lane.Seq, steer.PhasePreparing
	var b Begun
	asked := time.Now()
	err = a.h.persist(life, "begin", func(ctx context.Context) error {
		var err error
		b, err = a.h.Store.Begin(ctx, r)
		return err
	})
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrGone), errors.Is(err, ErrNewer):
		return time.Millisecond // an edit or a drop came between: look again
	case errors.Is(err, ErrHeld):
		return 100 * time.Millisecond
	case err != nil:
		return never
	}
	now := b.Lane.Now
	for i := range r.Rows {
		r.Rows[i].Seq, r.Rows[i].Turn, r.Rows[i].At = lane.Seq+int64(i)+1, b.Lane.Turn, now
	}
	rows = append(rows, r.Rows...)
	a.h.history.put(a.key, lane.Gen, rows)
	maps.DeleteFunc(a.queued, func(ticket int64, _ bool) bool { // taken before
		return !slices.ContainsFunc(lane.Slot, func(e Entry) bool { return e.Ticket == ticket })
	})
	waited := map[int64]bool{}
	for _, in := range slices.Concat(row.Again, row.AgainNotes) {
		waited[in.Ticket] = true // people see that it failed
		a.sign(in, FateRunning, b.Lane.Turn, true)
	}
	for _, in := range row.Inputs {
		waited[in.Ticket] = a.waited(lane, in.Ticket)
		if in.Retry != 0 && !waited[in.Ticket] {
			continue // it stands for messages that have signs of their own
		}
		a.sign(in, FateRunning, b.Lane.Turn, waited[in.Ticket])
	}
	return a.start(life, newTurn(life, a, b, asked, rows, false), b.Lane, waited)
}

// waited reports whether people saw the entry wait.
func (a *actor) waited(lane Lane, ticket int64) bool {
	for _, e := range lane.Slot {
		if e.Ticket == ticket {
			return e.Turn != 0 || e.Held || a.queued[ticket]
		}
	}
	return false
}

func (a *actor) sign(in Input, s FateState, turn int64, waited bool) {
	a.h.Outbox.Sign(a.key, Fate{Ticket: in.Ticket, Msgs: in.msgs(), State: s, Turn: turn, Waited: waited})
}

// lastHead is the newest head of a transcript, nil if it has none.
func lastHead(rows []Row) []byte {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Type == RowHead {
			return rows[i].Data
		}
	}
	return nil
}

// jobsLost marks jobs whose process is gone; false means try again.
func (a *actor) jobsLost(life context.Context, lane Lane) bool {
	var lost []Job
	for i, j := range lane.Jobs {
		if j.State == JobRunning && j.Owner != a.h.Nonce && j.Name != asideJob {
			j.State, j.Body = JobLost, jobLostBody
			lane.Jobs[i] = j
			lost = append(lost, j)
		}
	}
	if len(lost) == 0 {
		return true
	}
	if _, err := a.h.Store.Post(life, Post{Key: a.key, Jobs: lost}); err != nil {
		a.h.note(life, "mark jobs lost", err)
		return false
	}
	return true
}

// tellJobs gives an idle session the ends of its jobs: as one turn behind
// everything people wrote, as a message, or not at all (jobs.on_end).
func (a *actor) tellJobs(life context.Context, lane Lane, over []Job) time.Duration {
	if a.h.JobsOnEnd == "turn" {
		r := Begin{}
		var row UserRow
		for _, j := range over {
			r.Jobs = append(r.Jobs, j.ID)
			row.Asker = jobAsker(j)
			r.Owner = row.Asker.ID
			row.Event += jobEvent(j)
		}
		rows, err := a.rows(life, lane)
		if err != nil {
			a.h.note(life, "read rows", err)
			return 100 * time.Millisecond
		}
		return a.open(life, lane, r, row, rows)
	}
	p := Post{Key: a.key}
	for _, j := range over {
		j.Told = true
		p.Jobs = append(p.Jobs, j)
		if a.h.JobsOnEnd == "tell" {
			p.Dedupe += "job:" + j.ID
			p.Outs = append(p.Outs, a.h.parts(Outgoing{
				Key: a.key, Kind: PartNotice, Markdown: jobToldText(j),
			}, 0, fmt.Sprintf("job:%d:%s", j.Turn, j.ID))...)
		}
	}
	if _, err := a.h.Store.Post(life, p); err != nil {
		a.h.note(life, "tell jobs", err)
		return 100 * time.Millisecond
	}
	a.h.Outbox.Nudge(a.key, nil)
	return time.Millisecond
}
