package telegram

import (
	"context"
	"strconv"
	"time"

	"coxswain/session"
)

var _ session.Paced = (*Adapter)(nil)

// room uses what the outbox has set aside for the first call; others wait for
// their turn.
func (s *sending) room(ctx context.Context) error {
	wait, ok := time.Duration(0), true
	if s.paced {
		s.paced = false
		wait = s.a.pace.cooling(s.t.chat) // a flood since then
		ok = wait == 0
	} else {
		wait, ok = s.a.pace.take(s.t.chat, 1, false, paceWait)
	}
	if !ok {
		return &session.SendError{Outcome: session.SendNot, Wait: wait, Err: errPaced}
	}
	if !pause(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

// Reserve implements session.Paced.
func (a *Adapter) Reserve(key session.Key, most time.Duration) (time.Duration, bool) {
	chat, err := strconv.ParseInt(string(key.Chat), 10, 64)
	if err != nil {
		return 0, true // Send refuses it
	}
	return a.pace.take(a.aliases.to(chat), 1, false, most)
}

// Return implements session.Paced.
func (a *Adapter) Return(key session.Key) {
	if chat, err := strconv.ParseInt(string(key.Chat), 10, 64); err == nil {
		a.pace.giveBack(a.aliases.to(chat))
	}
}
