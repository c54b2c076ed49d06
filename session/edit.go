package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coxswain/steer"
)

// deliverEdit handles an edited message: one that waits is replaced, one of
// the running turn becomes a steer, anything older is history (T1-T3).
func (h *Hub) deliverEdit(ctx context.Context, p Principal, m Message) error {
	if name, args, ok := parseCommand(m.Text); ok {
		// An edit never runs a command, not even again (T3). One that only says
		// what a waiting message wants is that message's text.
		c := h.commands[name]
		if c == nil || args == "" || c.Name != "queue" && c.Name != "steer" && c.Name != "interrupt" {
			return nil
		}
		lane, err := h.Store.Load(ctx, m.Key)
		if err != nil {
			return fmt.Errorf("load session: %w", err)
		}
		if _, waits := entryOf(lane, m.ID); !waits {
			return nil
		}
		m.Text = args
	}
	for range 5 {
		lane, err := h.Store.Load(ctx, m.Key)
		if err != nil {
			return fmt.Errorf("load session: %w", err)
		}
		e, ok := entryOf(lane, m.ID)
		if !ok {
			return h.editRunning(ctx, p, m, lane)
		}
		if e.Author != p.ID {
			return nil
		}
		if e.Want == steer.Steer && len(m.Text) > SteerMaxBytes {
			return h.reply(ctx, m, textLongEdit)
		}
		in := decodeInput(e)
		in.Ticket = 0
		part := partOf(m)
		if in.Edited {
			part.Text = editedMark + part.Text // it tells of an edit: the newest one
		}
		for i := range in.Parts {
			if in.Parts[i].ID == m.ID {
				part.rest = in.Parts[i].rest
				in.Parts[i] = part
			}
		}
		data := encodeInput(in)
		if len(data) > EntryMaxBytes {
			return h.reply(ctx, m, textTooLong)
		}
		r, err := h.Store.Amend(ctx, Amend{
			Key: m.Key, Dedupe: m.Dedupe, Kind: AmendEdit, Ticket: e.Ticket, Version: e.Version, Data: data,
		})
		if err == nil && (r.Done || r.Dup) {
			h.nudge(m.Key, nil)
			return nil
		}
		if err != nil && !isStale(err) {
			return fmt.Errorf("store edit: %w", err)
		}
	}
	return fmt.Errorf("store edit: %w", ErrStale)
}

// editedMark begins the steer that tells of an edit of the running turn's own
// message.
const editedMark = "edited: "

// editRunning turns an edit of the running turn's own message into one steer.
func (h *Hub) editRunning(ctx context.Context, p Principal, m Message, lane Lane) error {
	fates, err := h.Store.Fates(ctx, m.Key, 64)
	if err != nil {
		return fmt.Errorf("read fates: %w", err)
	}
	for _, f := range fates {
		if (f.State == FateFailed || f.State == FateStopped) && slices.Contains(f.Msgs, m.ID) && m.Private {
			return h.reply(ctx, m, textLateEdit) // a Retry would ask what was written first
		}
	}
	if lane.Turn == 0 || lane.Owner != p.ID {
		return nil
	}
	for _, f := range fates {
		if f.Turn != lane.Turn || f.State.Final() {
			continue
		}
		for _, id := range f.Msgs {
			if id == m.ID {
				// The same edit may have been applied while the message waited: its
				// mark says so. If there is none, this leaves one.
				r, err := h.Store.Amend(ctx, Amend{Key: m.Key, Dedupe: m.Dedupe, Kind: AmendEdit, Ticket: f.Ticket, Version: -1})
				if err != nil {
					return fmt.Errorf("look for the edit: %w", err)
				}
				if r.Done {
					return nil
				}
				same, err := h.reads(ctx, lane, m)
				if err != nil || same {
					return err // a link preview, or words the adapter had forgotten (T2)
				}
				m.Text = editedMark + m.Text
				m.Dedupe += ":late" // the edit's own mark may say that it came too late
				m.Group, m.OpenFor = "", 0
				return h.accept(ctx, p, m, nil)
			}
		}
	}
	return nil
}

// reads reports whether a message of the running turn reads as m does already, by
// the newest of what the turn was told of it.
func (h *Hub) reads(ctx context.Context, lane Lane, m Message) (bool, error) {
	rows, err := h.Store.Rows(ctx, m.Key, lane.Gen, max(0, lane.Seq-transcriptRows), 0)
	if err != nil {
		return false, fmt.Errorf("read rows: %w", err)
	}
	same := false
	for _, r := range rows {
		if r.Turn != lane.Turn {
			continue
		}
		for _, in := range rowInputs(r) {
			for _, p := range in.Parts {
				if p.ID == m.ID {
					same = strings.TrimPrefix(p.Text, editedMark) == m.Text
				}
			}
		}
	}
	return same, nil
}

// deliverDelete drops a message that waits (D1). One that the running turn was
// asked by stops it, if the person was shown nothing yet: they took the question
// back (D2).
func (h *Hub) deliverDelete(ctx context.Context, p Principal, m Message) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if e, ok := entryOf(lane, m.ID); ok {
		if m.From.ID != "" && e.Author != p.ID {
			return nil
		}
		if done, err := h.drop(ctx, m, e); err != nil || done {
			return err
		}
		if lane, err = h.Store.Load(ctx, m.Key); err != nil { // it was taken in this moment
			return fmt.Errorf("load session: %w", err)
		}
	}
	return h.takeBack(ctx, p, m, lane)
}

// takeBack stops the running turn because the messages it was asked by are
// deleted. What waits is not held by it: nobody pressed /stop. It is judged by
// the process that runs the turn, for no other knows what was shown; where that
// is not known the turn goes on.
func (h *Hub) takeBack(ctx context.Context, p Principal, m Message, lane Lane) error {
	if !h.DeleteStops || lane.Turn == 0 || m.From.ID != "" && lane.Owner != p.ID {
		return nil
	}
	asked, folds, err := h.askedBy(ctx, lane)
	if err != nil || !slices.Contains(asked, m.ID) {
		return err
	}
	if !h.untold(lane, m.ID, asked, folds) {
		return nil
	}
	// Its own mark: that of the event may say that the message was on its way
	// from the slot into the turn.
	if _, err := h.Store.Stop(ctx, Stop{Key: m.Key, Dedupe: m.Dedupe + ":turn", Only: lane.Turn, Keep: true}); err != nil {
		return fmt.Errorf("store stop: %w", err)
	}
	h.nudge(m.Key, nil)
	return nil
}

// askedBy are the messages that the open turn was asked by; folds counts the
// follow-ups among them that joined it.
func (h *Hub) askedBy(ctx context.Context, lane Lane) (asked []MessageID, folds int, err error) {
	rows, err := h.Store.Rows(ctx, lane.Key, lane.Gen, max(0, lane.Seq-transcriptRows), 0)
	if err != nil {
		return nil, 0, fmt.Errorf("read rows: %w", err)
	}
	for _, r := range rows {
		if r.Turn != lane.Turn || r.Type != RowUser && r.Type != RowFold {
			continue
		}
		folds += boolInt(r.Type == RowFold)
		for _, in := range rowInputs(r) {
			if in.Retry == 0 { // a retry stands for the messages it sends again
				asked = append(asked, in.msgs()...)
			}
		}
	}
	return asked, folds, nil
}

// untold stops the open turn here if all that it was asked by is gone now and
// nothing of it was shown, and reports whether it is to be stopped.
func (h *Hub) untold(lane Lane, gone MessageID, asked []MessageID, folds int) bool {
	a := h.actorOf(lane.Key)
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active == nil || a.active.number < lane.Turn {
		// Begun in this moment: the actor reads in the store that it is stopped.
		return lane.Nonce == h.Nonce && lane.Attempts == 0 && len(asked) == 1
	}
	return a.active.number == lane.Turn && a.active.takeBack(gone, asked, folds)
}

// takeBack notes that a message the turn was asked by is gone. When all are, no
// other is about to join and nothing of an answer was shown or sent, the turn is
// cancelled, its calls with it. Any goroutine.
func (t *Turn) takeBack(gone MessageID, asked []MessageID, folds int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone == nil {
		t.gone = map[MessageID]bool{}
	}
	t.gone[gone] = true
	for _, id := range asked {
		if !t.gone[id] {
			return false
		}
	}
	if t.spoke || len(t.joins) > 0 || t.folds != folds {
		return false
	}
	t.cancel(ErrStopped)
	return true
}
