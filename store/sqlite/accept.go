package sqlite

import (
	"bytes"
	"context"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// Accept implements session.Store. Durable.
func (s *Store) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	return write(ctx, s, synced, func(t *tx) (session.Accepted, error) { return t.accept(r) })
}

func (t *tx) accept(r session.Accept) (session.Accepted, error) {
	l, err := t.open(r.Key, full)
	if err != nil {
		return session.Accepted{}, err
	}
	m, dup, err := t.dup(l, r.Dedupe)
	if err != nil {
		return session.Accepted{}, err
	}
	if dup {
		return session.Accepted{Outcome: session.AcceptDup, Ticket: m.ticket, Lane: l.view(t.now)}, nil
	}
	if l, err = t.make(l, r.Key); err != nil {
		return session.Accepted{}, err
	}
	if l.Title == "" {
		l.Title = r.Title
	}
	a, err := t.place(l, r)
	if err != nil {
		return session.Accepted{}, err
	}
	if err := t.mark(l, r.Dedupe, mark{ticket: a.Ticket}); err != nil {
		return session.Accepted{}, err
	}
	if err := t.save(l); err != nil {
		return session.Accepted{}, err
	}
	a.Lane = l.view(t.now)
	return a, nil
}

// place joins the input to an open entry, refuses it, or makes it a new one.
func (t *tx) place(l *lane, r session.Accept) (session.Accepted, error) {
	var open time.Time
	if r.Open > 0 {
		open = t.now.Add(r.Open)
	}
	if e := l.joinable(r, t.now); e != nil {
		e.Data = append(append(bytes.Clone(e.Data), '\n'), r.Data...)
		e.Msgs = append(e.Msgs, r.Msg)
		e.Open, e.Version = open, e.Version+1
		demoted := e.Want == steer.Steer && r.Want == steer.Queue
		if demoted {
			e.Want = steer.Queue
		}
		if err := t.update(l, e); err != nil {
			return session.Accepted{}, err
		}
		if err := t.fateMsg(l, e.Ticket, r.Msg); err != nil {
			return session.Accepted{}, err
		}
		if demoted {
			if err := t.setFate(l, session.FateSet{Ticket: e.Ticket, State: session.FateQueued}); err != nil {
				return session.Accepted{}, err
			}
		}
		return session.Accepted{Outcome: session.AcceptJoined, Ticket: e.Ticket}, nil
	}
	if (l.Turn != 0 || r.Turn < 0) && l.waiting() >= session.SlotCap {
		t.stats.Full++
		return session.Accepted{Outcome: session.AcceptFull}, t.plan(l, r.Full)
	}
	l.Tickets++
	t.stats.Accepted++
	t.stats.InSlot++
	return session.Accepted{Outcome: session.AcceptOK, Ticket: l.Tickets}, t.insert(l, session.Entry{
		Ticket: l.Tickets, Version: 1, Want: r.Want, Turn: r.Turn, Open: open, Group: r.Group,
		Author: r.Author, Msgs: []session.MessageID{r.Msg}, At: t.now, Data: bytes.Clone(r.Data),
	}, r.Fate)
}

// joinable is the open entry that r is a part of, or nil.
func (l *lane) joinable(r session.Accept, now time.Time) *session.Entry {
	if !r.Append || r.Group == "" {
		return nil
	}
	for i := range l.Slot {
		e := &l.Slot[i]
		if !e.Held && e.Group == r.Group && e.Author == r.Author && e.IsOpen(now) &&
			len(e.Data)+1+len(r.Data) <= session.EntryMaxBytes {
			return e
		}
	}
	return nil
}

// Amend implements session.Store. Durable.
func (s *Store) Amend(ctx context.Context, r session.Amend) (session.Amended, error) {
	switch r.Kind {
	case session.AmendEdit, session.AmendDrop, session.AmendSet:
	default:
		panic("unknown amend kind")
	}
	return write(ctx, s, synced, func(t *tx) (session.Amended, error) { return t.amend(r) })
}

func (t *tx) amend(r session.Amend) (session.Amended, error) {
	l, err := t.open(r.Key, full)
	if err != nil {
		return session.Amended{}, err
	}
	if l == nil {
		return session.Amended{Lane: session.Lane{Key: r.Key, Now: t.now}}, nil
	}
	m, dup, err := t.dup(l, r.Dedupe)
	if err != nil {
		return session.Amended{}, err
	}
	if dup {
		return session.Amended{Dup: true, Done: m.done, Lane: l.view(t.now)}, nil
	}
	e := l.entry(r.Ticket)
	if e != nil && r.Version != 0 && e.Version != r.Version {
		return session.Amended{}, session.ErrStale
	}
	if err := t.mark(l, r.Dedupe, mark{ticket: r.Ticket, done: e != nil}); err != nil {
		return session.Amended{}, err
	}
	if e == nil {
		return session.Amended{Lane: l.view(t.now)}, nil
	}
	if err := t.change(l, e, r); err != nil {
		return session.Amended{}, err
	}
	if err := t.plan(l, r.Outs); err != nil {
		return session.Amended{}, err
	}
	if err := t.save(l); err != nil {
		return session.Amended{}, err
	}
	return session.Amended{Done: true, Lane: l.view(t.now)}, nil
}

func (t *tx) change(l *lane, e *session.Entry, r session.Amend) error {
	switch r.Kind {
	case session.AmendEdit:
		e.Data = bytes.Clone(r.Data)
		e.Version++
		return t.update(l, e)
	case session.AmendSet:
		e.Want, e.Turn, e.Held, e.Open = r.Want, r.Turn, false, time.Time{}
		e.Version++
		if err := t.update(l, e); err != nil {
			return err
		}
		return t.setFate(l, session.FateSet{Ticket: r.Ticket, State: r.Fate})
	default: // AmendDrop
		return t.drop(l, r.Ticket)
	}
}

// drop removes an entry for good.
func (t *tx) drop(l *lane, ticket int64) error {
	if err := t.remove(l, ticket); err != nil {
		return err
	}
	t.stats.Dropped++
	t.stats.InSlot--
	return t.setFate(l, session.FateSet{Ticket: ticket, State: session.FateDropped})
}
