package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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

// retryRows is how far back a retry looks for its turn, in rows: what a chat
// shows of itself.
const retryRows = transcriptRows

func (h *Hub) retry(ctx context.Context, p Principal, m Message, lane Lane, turn int64) error {
	rows, err := h.Store.Rows(ctx, m.Key, lane.Gen, max(0, lane.Seq-retryRows), 0)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	again := unanswered(rows, turn)
	if len(again) == 0 {
		return h.reply(ctx, m, textNoRetry)
	}
	taken, err := h.takenAgain(ctx, m, again[0].Ticket, turn)
	if err != nil {
		return err
	}
	if taken {
		return h.reply(ctx, m, textRetried)
	}
	author := again[0].From.ID
	own := slices.ContainsFunc(again, func(in Input) bool { return in.From.ID == p.ID })
	switch {
	case own:
		author = p.ID
	case !p.Admin:
		return h.reply(ctx, m, textNotYours)
	}
	r := Accept{
		Key: m.Key, Dedupe: "retry:" + strconv.FormatInt(turn, 10), Turn: lane.Turn, Author: author, Msg: m.ID,
		Fate: FateAccepted, // Want is queue: it never goes into a running turn
		Full: h.parts(Outgoing{Key: m.Key, Kind: PartNotice, Markdown: textFull, Silent: true}, 0, "full:"+m.Dedupe),
		Data: encodeInput(Input{
			From: p.person(), Admin: p.Admin, Shared: !m.Private, Explicit: "queue", Retry: turn,
			Parts: []InputPart{{ID: m.ID}},
		}),
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

// takenAgain reports whether a later turn has taken an input of turn again; the
// mark of the retry itself may be forgotten by then.
func (h *Hub) takenAgain(ctx context.Context, m Message, ticket, turn int64) (bool, error) {
	fates, err := h.Store.Fates(ctx, m.Key, 0)
	if err != nil {
		return false, fmt.Errorf("read fates: %w", err)
	}
	for _, f := range fates {
		if f.Ticket == ticket {
			return f.Turn != turn, nil
		}
	}
	return true, nil // too long ago to know
}

// unanswered are the inputs of a turn in rows, if it failed or was stopped.
func unanswered(rows []Row, turn int64) []Input {
	var all []Input
	over := false
	for _, r := range rows {
		if r.Turn != turn || turn == 0 {
			continue
		}
		if r.Type == RowUser {
			all = nil
		}
		all = append(all, rowInputs(r)...)
		if r.Type == RowAssistant {
			end := DecodeAssistant(r).End
			over = end == EndFailed || end == EndStopped
		}
	}
	if !over {
		return nil
	}
	// A retry that failed is not sent again itself: what it sent again is.
	return slices.DeleteFunc(all, func(in Input) bool { return in.Retry != 0 })
}

// takeAgain puts the inputs of a turn that failed into a new one; false means
// that the turn is not in this conversation any more.
func takeAgain(rows []Row, turn int64, row *UserRow, r *Begin) bool {
	again := unanswered(rows, turn)
	for _, in := range again {
		row.Again = append(row.Again, in)
		r.Fates = append(r.Fates, FateSet{Ticket: in.Ticket, State: FateRunning})
	}
	return len(again) > 0
}
