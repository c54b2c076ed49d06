package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// resumable is a session that can be brought to the chat in which one asks.
type resumable struct {
	lane Lane
	home Key
}

// tag names a session for people and buttons. It is no authority.
func (k Key) tag() string {
	sum := sha256.Sum256([]byte(k.String()))
	return hex.EncodeToString(sum[:4])
}

// resumeMost bounds the list.
const resumeMost = 8

// cmdResume lists the sessions that can go on here, or brings one: with its
// running turn, what waits, its files and its jobs. The chat it leaves is told.
func (h *Hub) cmdResume(ctx context.Context, p Principal, m Message, args string) error {
	w := m.written(p)
	has, err := h.Routes.shelf.get(ctx)
	if err != nil {
		return err
	}
	if c := has.chat(w.Key); c != nil && c.By == w.Dedupe {
		return h.resumed(ctx, w, c) // its answer may not have been stored
	}
	if args == "" && !m.Private && m.Interaction == "" {
		return h.reply(ctx, m, textResumePrivate) // titles are for their owner
	}
	all, err := h.resumables(ctx, p, w)
	if err != nil {
		return err
	}
	found := all
	if want := strings.ToLower(strings.TrimSpace(args)); want != "" {
		found = slices.DeleteFunc(slices.Clone(all), func(r resumable) bool {
			return r.lane.Key.tag() != want && !strings.Contains(strings.ToLower(r.lane.Title), want)
		})
	}
	switch {
	case len(found) == 0 && args != "":
		return h.reply(ctx, m, textNoResume)
	case len(found) == 1 && args != "":
		return h.resume(ctx, m, w, found[0])
	case args != "" && !m.Private && m.Interaction == "":
		return h.reply(ctx, m, textResumePrivate)
	}
	return h.listResumable(ctx, m, found)
}

// resumables are the sessions of a person that may go on in chat: those that live or
// began in their linked accounts' private chats, and those that sleep in it. A
// group's own session is nobody's to take away.
func (h *Hub) resumables(ctx context.Context, p Principal, w Message) ([]resumable, error) {
	has, err := h.Routes.shelf.get(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := h.Links.accounts(ctx, me(p, w.Key))
	if err != nil {
		return nil, err
	}
	var keys []Key
	add := func(lanes []Key) {
		for _, k := range lanes {
			if !slices.Contains(keys, k) && k != has.current(w.Key) {
				keys = append(keys, k)
			}
		}
	}
	if w.Private {
		add(has.lanes(w.Key))
	}
	for _, a := range accounts {
		if a.Chat == w.Key && !w.Private {
			continue // not linked: what is known of them is where they write
		}
		add(has.lanes(a.Chat))
		for _, c := range has.Chats { // began there, and was brought elsewhere
			for _, k := range c.Lanes {
				if k.own() == a.Chat {
					add([]Key{k})
				}
			}
		}
		if pol, ok := h.Access.policy[a.Platform]; !ok || !pol.Open {
			continue
		}
		// A platform whose people are one (web): all of its sessions are theirs.
		list, err := h.List(ctx, a.Platform)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			add(has.lanes(l.Key))
		}
	}
	var all []resumable
	for _, k := range keys {
		lane, err := h.Store.Load(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("load session: %w", err)
		}
		if lane.Exists && lane.Tickets > 0 {
			all = append(all, resumable{lane, has.home(k)})
		}
	}
	slices.SortStableFunc(all, func(a, b resumable) int {
		if d := boolInt(b.lane.Turn != 0) - boolInt(a.lane.Turn != 0); d != 0 {
			return d // what runs first
		}
		return b.lane.Touched.Compare(a.lane.Touched)
	})
	return all, nil
}

func (h *Hub) listResumable(ctx context.Context, m Message, all []resumable) error {
	if len(all) == 0 {
		return h.reply(ctx, m, textResumeNone)
	}
	var b strings.Builder
	var buttons []Button
	b.WriteString(textResumeList)
	for i, r := range all[:min(len(all), resumeMost)] {
		b.WriteString("\n" + textResumable(i+1, r))
		buttons = append(buttons, Button{Text: fmt.Sprintf("Resume %d", i+1), Data: "resume:" + r.lane.Key.tag(), Row: true})
	}
	return h.reply(ctx, m, b.String(), buttons...)
}

// resume brings a session to the chat in which w was written. The session that was
// spoken to there sleeps from then on; while it works or something waits in it, it
// stays.
func (h *Hub) resume(ctx context.Context, m, w Message, r resumable) error {
	here, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if here.Turn != 0 || len(here.Slot) > 0 || len(here.Jobs) > 0 {
		return h.reply(ctx, m, textResumeBusy)
	}
	c, err := h.move(ctx, r, w)
	if err != nil {
		return fmt.Errorf("store the move: %w", err)
	}
	return h.resumed(ctx, w, c)
}

// move stores the move.
func (h *Hub) move(ctx context.Context, r resumable, w Message) (c *chatRoute, err error) {
	lane, chat := r.lane.Key, w.Key
	if a := h.actorOf(lane); a != nil { // what is shown in the old chat has been, or goes to the new one
		a.place.Lock()
		defer a.place.Unlock()
	}
	err = h.Routes.shelf.change(ctx, func(has *routes) bool {
		if c = has.chat(chat); c != nil && c.By == w.Dedupe {
			return false // the reply of the store was lost
		}
		has.move(lane, chat, w.Dedupe, time.Now())
		c = has.chat(chat)
		return true
	})
	if err != nil {
		return nil, err
	}
	h.Log.InfoContext(ctx, "a session was moved", "session", lane.String(), "from", r.home.String(), "to", chat.String())
	return c, nil
}

// resumed says in both chats that a session has moved. It is safe to repeat.
func (h *Hub) resumed(ctx context.Context, w Message, c *chatRoute) error {
	lane := c.Lanes[0]
	if c.Lane != lane { // this comes again, and it has gone on since
		return h.reply(ctx, w.to(lane), textResumeGone)
	}
	l, err := h.Store.Load(ctx, lane)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if c.From != c.Chat {
		h.showAgain(lane)
		if err := h.notice(ctx, h.Routes.Current(c.From), "moved:"+w.Dedupe, textMovedAway(c.Chat.Platform)); err != nil {
			return err
		}
	}
	if err := h.announce(ctx, w.to(lane), textResumed(l)); err != nil {
		return err
	}
	h.nudge(lane, nil) // it shows itself where it lives now
	return nil
}

// showAgain shows a session's running turn where it lives now, if it runs here.
func (h *Hub) showAgain(lane Key) {
	a := h.actorOf(lane)
	if a == nil {
		return
	}
	a.mu.Lock()
	t := a.active
	a.mu.Unlock()
	if t != nil {
		t.Show(func(*View) {})
	}
}

// leaveChat ends what is shown of a session's running turn in the chat it left.
func (h *Hub) leaveChat(v View, chat Key) {
	plat := h.platforms[chat.Platform]
	if plat == nil {
		return
	}
	lane := v.Key
	v.Key, v.Mark, v.Asked = chat, markOf(lane, chat), here(lane, chat, v.Asked)
	v.Tools, v.Notes = slices.Clone(v.Tools), slices.Clone(v.Notes)
	v.Done, v.End, v.Ended = true, EndMoved, time.Now()
	plat.Show(v.reduced(h.progressOf(chat)))
}
