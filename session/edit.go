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
