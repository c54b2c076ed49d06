package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"coxswain/steer"
)

// deliverTime bounds one delivery: a store that does not answer is an error to
// the platform, which delivers again, and no silence.
const deliverTime = 5 * time.Second

// Deliver is the one door (I10). It authorises the message, stores it and only
// then returns nil: from there on no crash can lose it, and the platform may
// be told that it was received (I1). The same event delivered again, by
// whatever route, changes nothing and returns nil (I2). An error means that
// nothing is promised: deliver it again. Messages of one chat must be
// delivered one after another, in order.
func (h *Hub) Deliver(ctx context.Context, m Message) error {
	ctx, stop := context.WithTimeout(ctx, deliverTime)
	defer stop()
	if m.Kind == KindDelete {
		if found, err := h.unobserve(ctx, m); found || err != nil {
			return err
		}
		if m.From.ID == "" {
			// The platform says that a message is gone, not who took it away. It can
			// only drop what waits of that very message (D1), or stop the turn that was
			// asked for by it and by nothing else while that has shown nothing (D2): a
			// question that nobody can read any more.
			_, m, took, err := h.in(ctx, Principal{}, m)
			if err != nil || took {
				return err
			}
			return h.deliverDelete(ctx, Principal{}, m)
		}
	}
	p, v, err := h.Access.authorize(ctx, m)
	if err != nil {
		return err
	}
	if v == ignored {
		return nil
	}
	who, written := p, m // as the chat knows them
	p, m, took, err := h.in(ctx, p, m)
	if err != nil || took {
		return err
	}
	if v == stranger {
		return h.deliverStranger(ctx, written, m)
	}
	switch m.Kind {
	case KindEdit:
		if found, err := h.observeEdit(ctx, who, written); found || err != nil {
			return err
		}
		return h.deliverEdit(ctx, p, m)
	case KindDelete:
		return h.deliverDelete(ctx, p, m)
	case KindPress:
		return h.deliverPress(ctx, p, m)
	case KindReact:
		return h.deliverReact(ctx, p, m)
	}
	if !m.Addressed {
		return h.observe(ctx, who, written)
	}
	if m.Forwarded == "" { // a forwarded command is somebody else's text (T7)
		if name, args, ok := parseCommand(m.Text); ok {
			return h.deliverCommand(ctx, p, m, name, args)
		}
		if h.isStopWord(m.Text) {
			return h.deliverStopWord(ctx, p, m)
		}
	}
	return h.accept(ctx, p, m, nil)
}

// deliverStranger answers somebody who is not allowed: with a pairing code, or
// not at all. The one-time admin link comes in here. to is m as the session of
// that chat has it.
func (h *Hub) deliverStranger(ctx context.Context, m, to Message) error {
	if m.Kind != KindText {
		return nil
	}
	if name, args, ok := parseCommand(m.Text); ok && name == "start" && args != "" {
		done, err := h.Access.redeem(ctx, m.Key.Platform, m.From, m.Private, args)
		if err != nil {
			return err
		}
		if done {
			h.Log.WarnContext(ctx, "somebody became an admin by the one-time link", "platform", m.Key.Platform, "user", m.From.ID)
			return h.reply(ctx, to, textAdminNow)
		}
	}
	code, err := h.Access.pair(ctx, m)
	if err != nil || code == "" {
		return err
	}
	h.Log.InfoContext(ctx, "a stranger was given a pairing code; gateway pair lists it", "platform", m.Key.Platform, "user", m.From.ID)
	return h.reply(ctx, to, textPair(code))
}

// accept stores a person's input. explicit is the verb of a command, or nil.
func (h *Hub) accept(ctx context.Context, p Principal, m Message, explicit *steer.Mode) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	in := Input{From: p.person(), Admin: p.Admin, Shared: !m.Private, Edited: m.Kind == KindEdit, Parts: []InputPart{partOf(m)}}
	if explicit == nil && !m.Sent.IsZero() && m.Received.Sub(m.Sent) > backlogAge {
		// Written while the gateway was away: one input per author (T31).
		in.Late, m.Group, m.OpenFor = true, "backlog", backlogOpen
	}
	want := h.mode(m.Key, lane)
	if explicit != nil {
		want, in.Explicit = *explicit, explicit.String()
	}
	size := len(m.Text)
	if e, ok := openEntry(lane, m, p.ID); ok { // one input: its first part said what it wants
		want, size = e.Want, size+len(decodeInput(e).text())+1
	}
	if lane.Stop == lane.Turn {
		lane.Turn = 0 // stopped: what is written now is not of that turn
	}
	r := Accept{
		Key: m.Key, Dedupe: cmp.Or(m.MsgDedupe, m.Dedupe), Turn: lane.Turn, Author: p.ID, Msg: m.ID,
		Group: m.Group, Open: m.OpenFor, Append: m.Group != "", Title: CleanLine(m.Text, 60), Fate: FateAccepted,
	}
	say := ""
	if lane.Turn != 0 {
		may := h.maySteer(lane.Owner, p.ID, p.Admin)
		switch {
		case want != steer.Queue && !may:
			want = steer.Queue
			if explicit != nil {
				say = textNotSteer
			}
		case want == steer.Steer && size > SteerMaxBytes:
			want, say = steer.Queue, textLongSteer
		}
		r.Fate = FateQueued
		if want == steer.Steer {
			r.Fate = FatePending
		}
	} else if h.gate.full(m.Key, h.crowd(m.Key)) {
		r.Turn, r.Fate = noTurn, FateQueued
	}
	r.Want = want
	r.Full = h.parts(Outgoing{Key: m.Key, Kind: PartNotice, Markdown: textFull, ReplyTo: m.ID, Silent: true, Interaction: m.Interaction, Alone: true}, 0, "full:"+m.Dedupe)
	if r.Data = encodeInput(in); len(r.Data) > EntryMaxBytes {
		return h.reply(ctx, m, textTooLong)
	}
	a, err := h.Store.Accept(ctx, r)
	if err != nil {
		return fmt.Errorf("store message: %w", err)
	}
	if m.MsgDedupe != "" && a.Outcome == AcceptDup {
		return h.takenBefore(ctx, m, r, a, say)
	}
	return h.accepted(ctx, m, r, a, say)
}

// A message this old when it is received is part of a backlog; the next one
// follows within backlogOpen, for the platform hands them over at once.
const (
	backlogAge  = 2 * time.Minute
	backlogOpen = 1500 * time.Millisecond
)

// accepted follows up what the store has accepted; all of it is repeatable.
func (h *Hub) accepted(ctx context.Context, m Message, r Accept, a Accepted, say string) error {
	switch a.Outcome {
	case AcceptFull:
		h.Outbox.Nudge(m.Key, nil)
		return nil
	case AcceptOK:
		h.Outbox.Sign(m.Key, Fate{Ticket: a.Ticket, Msgs: []MessageID{m.ID}, State: r.Fate, Waited: r.Fate.Waits()})
	case AcceptDup, AcceptJoined:
	}
	h.nudge(m.Key, &a.Lane)
	if say != "" && a.Outcome != AcceptDup {
		return h.reply(ctx, m, say)
	}
	return nil
}

// openEntry is the open entry that m is a further part of, as far as lane knows.
func openEntry(lane Lane, m Message, author UserID) (Entry, bool) {
	for _, e := range lane.Slot {
		if m.Group != "" && e.Group == m.Group && e.Author == author && !e.Held && e.IsOpen(lane.Now) {
			return e, true
		}
	}
	return Entry{}, false
}

func partOf(m Message) InputPart {
	p := InputPart{ID: m.ID, Text: m.Text, Forwarded: cleanName(m.Forwarded), Quote: m.Quote, Attachments: m.Attachments}
	if !m.Sent.IsZero() {
		p.Sent = m.Sent.UnixMilli()
	}
	return p
}

// mode is the busy input mode of a lane: /busy, else as configured.
func (h *Hub) mode(key Key, lane Lane) steer.Mode {
	if own := decodePrefs(lane.Prefs).Mode; own != "" {
		if m, err := steer.ParseMode(own); err == nil {
			return m
		}
	}
	return h.Mode(h.Routes.Home(key))
}

// isStopWord reports whether a message is exactly one of input.stop_words.
func (h *Hub) isStopWord(text string) bool {
	text = strings.TrimSpace(text)
	for _, w := range h.StopWords {
		if strings.EqualFold(text, w) {
			return true
		}
	}
	return false
}

// deliverStopWord is /stop when the turn's owner says it while something runs,
// and a message like any other when not.
func (h *Hub) deliverStopWord(ctx context.Context, p Principal, m Message) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if lane.Turn == 0 || lane.Owner != p.ID {
		return h.accept(ctx, p, m, nil)
	}
	return h.stop(ctx, p, m, false)
}

// entryOf finds the entry that holds a platform message.
func entryOf(lane Lane, id MessageID) (Entry, bool) {
	for _, e := range lane.Slot {
		for _, msg := range e.Msgs {
			if msg == id {
				return e, true
			}
		}
	}
	return Entry{}, false
}

// drop takes an entry out of the slot for good.
func (h *Hub) drop(ctx context.Context, m Message, e Entry) (bool, error) {
	r, err := h.Store.Amend(ctx, Amend{Key: m.Key, Dedupe: m.Dedupe, Kind: AmendDrop, Ticket: e.Ticket})
	if err != nil {
		return false, fmt.Errorf("store drop: %w", err)
	}
	if r.Done && !r.Dup {
		h.Outbox.Sign(m.Key, Fate{Ticket: e.Ticket, Msgs: e.Msgs, State: FateDropped, Waited: true})
	}
	h.nudge(m.Key, nil)
	return r.Done, nil
}

// noTurn is the turn of an entry that people saw wait in an idle session, for room
// or because it was re-routed: it belongs to no turn.
const noTurn = -1

// reroute gives an entry another way: now (steer), queue, or run (unhold).
func (h *Hub) reroute(ctx context.Context, m Message, lane Lane, e Entry, want steer.Mode) (bool, error) {
	state, turn := FateQueued, lane.Turn
	if want == steer.Steer && lane.Turn != 0 {
		state = FatePending
	}
	if turn == 0 {
		turn = noTurn
	}
	r, err := h.Store.Amend(ctx, Amend{
		Key: m.Key, Dedupe: m.Dedupe, Kind: AmendSet, Ticket: e.Ticket, Want: want, Turn: turn, Fate: state,
	})
	if err != nil {
		return false, fmt.Errorf("store change: %w", err)
	}
	if r.Done && !r.Dup {
		h.Outbox.Sign(m.Key, Fate{Ticket: e.Ticket, Msgs: e.Msgs, State: state, Waited: true})
	}
	h.nudge(m.Key, nil)
	return r.Done, nil
}
