package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"coxswain/steer"
)

// A command that is used on a message (Message.MsgDedupe) makes that message an
// input, under its own id and mark. So the same command once more makes no second
// one (I2), and another verb gives the one that waits another way.

// again does a command on a message that is an input: one that waits goes another
// way, as by a button under it; of any other it is said what became of it. false if
// the message is none, as far as is known. It will be told of as an input then, and
// not beside it as something that the group said.
func (h *Hub) again(ctx context.Context, p Principal, m Message, mode steer.Mode) (bool, error) {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return false, fmt.Errorf("load session: %w", err)
	}
	if e, ok := entryOf(lane, m.ID); ok && mode != steer.Interrupt { // no button says that
		verb := "queue"
		switch {
		case mode == steer.Steer && lane.Turn != 0:
			verb = "now"
		case mode == steer.Steer:
			verb = "run"
		}
		return true, h.change(ctx, p, m, lane, e, verb)
	}
	fates, err := h.Store.Fates(ctx, m.Key, 0)
	if err != nil {
		return false, fmt.Errorf("read fates: %w", err)
	}
	if slices.ContainsFunc(fates, func(f Fate) bool { return slices.Contains(f.Msgs, m.ID) }) {
		h.nudge(m.Key, &lane)
		m.ReplyTo = m.ID
		return true, h.cmdWhy(ctx, p, m, "")
	}
	_, err = h.unobserve(ctx, m.written(p))
	return false, err
}

// takenBefore answers for a message of which nothing is known but its mark. One that
// was refused, or ran as a command, was no input: it is taken now, under the mark of
// the event. Any other was one, too long ago.
func (h *Hub) takenBefore(ctx context.Context, m Message, r Accept, a Accepted, say string) (err error) {
	if a.Ticket != 0 {
		return h.reply(ctx, m, textNoFate)
	}
	r.Dedupe = m.Dedupe
	if a, err = h.Store.Accept(ctx, r); err != nil {
		return fmt.Errorf("store message: %w", err)
	}
	return h.accepted(ctx, m, r, a, say)
}

// tookMessage is the session that took a message in a chat: one that was spoken to
// there before, if it has the message's mark, else the one that is.
func (h *Hub) tookMessage(ctx context.Context, c *chatRoute, mark string) (Key, error) {
	for _, was := range c.Past {
		if was.Lane == c.Lanes[0] || was.Till < time.Now().Unix() {
			continue
		}
		took, err := h.Store.Seen(ctx, was.Lane, awayDedupe(was.Lane, c.Chat, mark))
		if err != nil || took {
			return was.Lane, err
		}
	}
	return c.Lanes[0], nil
}
