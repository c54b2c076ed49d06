package session

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// What an unlink does to sessions: those that one account has brought from the
// other go back to where they began. What was linked by somebody else would be
// read by them for ever (I13).

// takeHome sends home what lives with an account that its own is not linked with
// any more. It is safe to repeat.
func (h *Hub) takeHome(ctx context.Context, a account, rest []account) error {
	has, err := h.Routes.shelf.get(ctx)
	if err != nil {
		return err
	}
	busy := map[Key]bool{} // chats whose session keeps its place
	for _, k := range h.apart(has, a, rest) {
		l, err := h.Store.Load(ctx, has.current(k.own()))
		if err != nil {
			return fmt.Errorf("load session: %w", err)
		}
		busy[k.own()] = l.Turn != 0 || len(l.Slot) > 0 || len(l.Jobs) > 0
	}
	var gone []Key
	err = h.Routes.shelf.change(ctx, func(has *routes) bool {
		gone = h.apart(has, a, rest)
		for _, k := range gone {
			has.move(k, k.own(), "", time.Now())
			if c := has.chat(k.own()); busy[k.own()] && len(c.Lanes) > 1 {
				c.Lanes[0], c.Lanes[1] = c.Lanes[1], c.Lanes[0]
			}
		}
		return len(gone) > 0
	})
	if err != nil {
		return err
	}
	for _, k := range gone {
		h.Log.InfoContext(ctx, "a session went home", "session", k.String())
		h.showAgain(k)
		h.nudge(k, nil)
	}
	return nil
}

// apart are the sessions of a that live with rest, and the other way round.
func (h *Hub) apart(has *routes, a account, rest []account) (all []Key) {
	for _, c := range has.Chats {
		for _, k := range c.Lanes {
			with := func(o account) bool {
				return h.isOf(k, a) && lives(c.Chat, a, o) || h.isOf(k, o) && lives(c.Chat, o, a)
			}
			if k.own() != c.Chat && slices.ContainsFunc(rest, with) {
				all = append(all, k)
			}
		}
	}
	return all
}

// isOf reports whether a session began in a private chat of an account.
func (h *Hub) isOf(k Key, a account) bool {
	return k.own() == a.Chat || k.Platform == a.Platform && h.Access.policy[a.Platform].Open
}

// lives reports whether a chat to which a session of one was brought is other's.
func lives(chat Key, one, other account) bool {
	return chat == other.Chat || chat.Platform == other.Platform && one.Platform != other.Platform
}
