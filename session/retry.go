package session

import (
	"context"
	"fmt"
	"slices"
)

// A retry sends the inputs of a turn that failed or was stopped again, its
// steers among them, as the beginning of a new turn. What that turn did stays
// where it is in the transcript: no call is run again by it, and rows are not
// rewritten. It is an entry like any other, so it waits, is listed and dropped
// like one; a turn is sent again once, however often it is asked for.

func (h *Hub) cmdRetry(ctx context.Context, p Principal, m Message, _ string) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if lane.Turn != 0 {
		return h.reply(ctx, m, textRetryBusy)
	}
	return h.retry(ctx, p, m, lane, lane.Turns)
}

// retryRows is how far back a retry looks at first, in rows: what a chat shows
// of itself. A turn of more rows makes it read them all.
const retryRows = transcriptRows

func (h *Hub) retry(ctx context.Context, p Principal, m Message, lane Lane, turn int64) error {
	rows, err := h.Store.Rows(ctx, m.Key, lane.Gen, max(0, lane.Seq-retryRows), 0)
	if err == nil && lane.Seq > retryRows && (len(rows) == 0 || rows[0].Turn >= turn) {
		rows, err = h.Store.Rows(ctx, m.Key, lane.Gen, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	fates, err := h.Store.Fates(ctx, m.Key, 0)
	if err != nil {
		return fmt.Errorf("read fates: %w", err)
	}
	// A button of a turn that was sent again already means the newest try.
	again := unanswered(rows, turn)
	for again != nil {
		by := takenBy(fates, again)
		if by == turn {
			break
		}
		if by == 0 {
			return h.reply(ctx, m, textNoRetry) // too long ago to know
		}
		if by < turn || unanswered(rows, by) == nil {
			return h.reply(ctx, m, textRetried)
		}
		turn, again = by, unanswered(rows, by)
	}
	if again == nil {
		return h.reply(ctx, m, textNoRetry)
	}
	if p.ID != again.owner.ID && !p.Admin {
		return h.reply(ctx, m, textNotYours)
	}
	for _, e := range lane.Slot {
		if decodeInput(e).Retry == turn {
			return h.reply(ctx, m, map[bool]string{true: textRetryHeld, false: textRetryWaits}[e.Held])
		}
	}
	r := Accept{
		// It stays the task of whose it was, whoever sends it again.
		Key: m.Key, Dedupe: m.Dedupe, Turn: lane.Turn, Author: again.owner.ID, Msg: m.ID,
		Fate: FateAccepted,                                                                                           // Want is queue: it never goes into a running turn
		Full: h.parts(Outgoing{Key: m.Key, Kind: PartNotice, Markdown: textFull, Silent: true}, 0, "full:"+m.Dedupe), // made in any case: no answer to the press yet
		Data: encodeInput(Input{From: again.owner, Shared: !m.Private, Explicit: "queue", Retry: turn, Parts: []InputPart{{ID: m.ID}}}),
	}
	if lane.Turn != 0 && lane.Stop != lane.Turn {
		r.Fate = FateQueued
	} else {
		r.Turn = 0
	}
	a, err := h.Store.Accept(ctx, r)
	if err != nil {
		return fmt.Errorf("store retry: %w", err)
	}
	return h.accepted(ctx, m, r, a, "")
}

// unansweredTurn is what a turn that failed or was stopped was asked.
type unansweredTurn struct {
	owner  Person
	inputs []Input // of the user row, and those that joined
	notes  []Input // steered in
}

// unanswered reads a turn in rows; nil if it is not there, or was answered, or
// nobody asked it (a job's end did).
func unanswered(rows []Row, turn int64) *unansweredTurn {
	var t unansweredTurn
	var owner UserID
	over := false
	for _, r := range rows {
		if r.Turn != turn || turn == 0 {
			continue
		}
		switch r.Type {
		case RowUser, RowFold:
			u := DecodeUser(r)
			if r.Type == RowUser {
				owner = u.Owner
			}
			t.inputs = slices.Concat(t.inputs, u.Again, u.Inputs)
			t.notes = append(t.notes, u.AgainNotes...)
		case RowSteer:
			t.notes = append(t.notes, decodeRowInput(r))
		case RowAssistant:
			end := DecodeAssistant(r).End
			over = end == EndFailed || end == EndStopped
		}
	}
	// A retry that failed is not sent again itself: what it sent again is.
	t.inputs = slices.DeleteFunc(t.inputs, func(in Input) bool { return in.Retry != 0 })
	if !over || len(t.inputs) == 0 {
		return nil
	}
	t.owner = t.inputs[0].From
	for _, in := range t.inputs {
		if in.From.ID == owner {
			t.owner = in.From
		}
	}
	return &t
}

// takenBy is the newest turn that took the inputs, as their fates tell; 0 if
// they are too old to be known.
func takenBy(fates []Fate, t *unansweredTurn) (turn int64) {
	for _, f := range fates {
		if f.Ticket == t.inputs[0].Ticket {
			turn = f.Turn
		}
	}
	return turn
}

// takeAgain puts the inputs of a turn that failed into a new one, those of
// people who may still talk here (I10). false means that there is nothing to
// take: another turn has taken them meanwhile (I6), or they are of another
// conversation.
func (a *actor) takeAgain(life context.Context, rows []Row, turn int64, row *UserRow, r *Begin) (bool, error) {
	again := unanswered(rows, turn)
	if again == nil {
		return false, nil
	}
	fates, err := a.h.Store.Fates(life, a.key, 0)
	if err != nil {
		return false, err
	}
	if takenBy(fates, again) != turn {
		return false, nil
	}
	for _, part := range []struct {
		from []Input
		to   *[]Input
	}{{again.inputs, &row.Again}, {again.notes, &row.AgainNotes}} {
		for _, in := range part.from {
			may, _, err := a.h.Access.Still(life, a.key, in.From)
			if err != nil {
				return false, err
			}
			if may {
				*part.to = append(*part.to, in)
				r.Fates = append(r.Fates, FateSet{Ticket: in.Ticket, State: FateRunning})
			}
		}
	}
	return len(row.Again) > 0, nil
}
