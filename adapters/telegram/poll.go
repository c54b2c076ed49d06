package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"coxswain/session"
)

const (
	// pollWait is how long a poll may stay unanswered. Telegram answers after 50
	// s whatever is asked.
	pollWait = 50 * time.Second
	// pollMost is how many updates a poll asks for, the most there may be.
	pollMost = 100
	// quietWeek: after a week without updates Telegram gives the next one a
	// random id, so an offset from before may hide it. By then everything before
	// is confirmed, and a poll without offset begins at what is not (T27).
	quietWeek = 6 * 24 * time.Hour
)

// allowed is sent with every poll: without it the server keeps what an earlier
// poll asked for. Reactions come only to those who ask for them, and in groups
// only to admins.
var allowed = []string{"message", "edited_message", "channel_post", "edited_channel_post", "callback_query", "my_chat_member", "stopped_message_generation", "message_reaction"}

// poll gets updates until ctx ends or the token is refused. An update is
// confirmed by asking for one after it, and that happens only when the door has
// taken it and all before it (I1). While a slow chat still holds some up, short
// polls go on bringing what is new, so that a /stop elsewhere does not wait for
// a file here (T12).
func (a *Adapter) poll(ctx context.Context) error {
	last := time.Now()
	trouble, conflict := newBackoff(500*time.Millisecond, 30*time.Second), newBackoff(5*time.Second, time.Minute)
	strange := newBackoff(time.Second, time.Minute)
	f := newFlight(a)
	defer f.lanes.Wait()
	for first := true; ; first = false {
		offset, busy := f.offset()
		wait := pollWait
		if busy || first { // the first answer comes at once: it shows that all is well
			wait = 0
		} else if time.Since(last) > quietWeek {
			offset = 0
		}
		most := f.most()
		batch, err := a.updates(ctx, offset, most, wait)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if unauthorized(err) {
				a.state.set(func(s *Status) { s.Connected, s.Err = false, wordsBadToken })
				a.log.Error(wordsBadToken, "err", err)
				return ErrToken
			}
			if e, ok := errors.AsType[*apiError](err); ok && e.foreignHook() && a.takeHookAway(ctx) {
				continue
			}
			if !pause(ctx, a.pollFailed(err, trouble, conflict)) {
				return nil
			}
			continue
		}
		trouble, conflict = newBackoff(500*time.Millisecond, 30*time.Second), newBackoff(5*time.Second, time.Minute)
		if before := a.Status().LastPoll; !before.IsZero() {
			a.away.gap(before)
		}
		fresh, ok := f.add(ctx, batch)
		if !ok {
			return nil // not all were taken: they come again
		}
		if len(batch) < most {
			a.away.end()
		}
		now := time.Now()
		a.state.set(func(s *Status) {
			s.Connected, s.Err, s.LastPoll = true, "", now
			if fresh > 0 {
				s.LastUpdate = now
			}
		})
		if fresh > 0 {
			last, strange = now, newBackoff(time.Second, time.Minute)
		} else if len(batch) > 0 && !busy { // none of them has an id: asking again at once would spin
			if !pause(ctx, strange.next()) {
				return nil
			}
			continue
		}
		f.wait(ctx)
		if a.spares() && !pause(ctx, sparePoll) {
			return nil
		}
	}
}

func (a *Adapter) updates(ctx context.Context, offset int64, most int, wait time.Duration) ([]json.RawMessage, error) {
	var batch []json.RawMessage
	err := a.api.call(ctx, "getUpdates", struct {
		Offset  int64    `json:"offset,omitempty"`
		Limit   int      `json:"limit"`
		Timeout int      `json:"timeout"`
		Allowed []string `json:"allowed_updates"`
	}{offset, most, int(wait / time.Second), allowed}, &batch)
	return batch, err
}

// foreignHook reports that a webhook keeps the bot from being polled.
func (e *apiError) foreignHook() bool { return e.code == http.StatusConflict && e.says("webhook") }

// pollFailed tells of a failed poll and says how long to wait.
func (a *Adapter) pollFailed(err error, trouble, conflict *backoff) time.Duration {
	words, d := wordsUnreachable, time.Duration(0)
	e, ok := errors.AsType[*apiError](err)
	switch {
	case ok && e.code == http.StatusConflict:
		words, d = wordsConflict, conflict.next()
		if e.foreignHook() {
			words = wordsWebhook
		}
	case ok && e.code == http.StatusTooManyRequests:
		d = max(e.retryAfter, time.Second)
	default:
		d = trouble.next()
	}
	told := false
	a.state.set(func(s *Status) {
		told = s.Err == words
		s.Connected, s.Err = false, words
	})
	if !told {
		a.log.Warn(words, "err", err)
	}
	return d
}

func (a *Adapter) migrated(ctx context.Context, m *message) error {
	switch {
	case m == nil:
		return nil
	case m.MigrateTo != 0:
		return a.alias(ctx, m.Chat.ID, m.MigrateTo)
	case m.MigrateFrom != 0:
		return a.alias(ctx, m.MigrateFrom, m.Chat.ID)
	}
	return nil
}

// takeOne sees one update through. False when ctx ended before it was taken.
func (a *Adapter) takeOne(ctx context.Context, it *item) bool {
	var m session.Message
	var says bool
	if it.bad == nil {
		if !a.untilDone(ctx, "read update", func() (err error) {
			defer func() {
				if p := recover(); p != nil { // one strange update must not end the process again and again
					it.bad, err = fmt.Errorf("panic: %v", p), nil
				}
			}()
			m, says, err = a.read(ctx, &it.u)
			return err
		}) {
			return false
		}
	}
	if it.bad != nil {
		a.state.set(func(s *Status) { s.Undecodable++ })
		a.log.Warn("update not understood, kept raw", "update", it.u.ID, "bytes", len(it.raw))
		return a.untilDone(ctx, "keep update", func() error { return a.quarantine(ctx, it.u.ID, it.raw, it.bad) })
	}
	if !says {
		a.state.set(func(s *Status) { s.Ignored++ })
		return true
	}
	if it.commented && m.Group == pasteGroup {
		m.OpenFor = max(m.OpenFor, forwardOpen)
	}
	if it.old {
		a.beside.Go(func() { a.tellAway(ctx, m) })
		if m.Kind == session.KindPress || m.Kind == session.KindReact {
			// What was pressed hours ago may mean something else by now (T31).
			a.state.set(func(s *Status) { s.Ignored++ })
			return true
		}
	}
	running := a.stopsShown(m) // asked first: delivered, it ends the turn
	if !a.untilDone(ctx, "deliver", func() error { return a.door.Deliver(ctx, m) }) {
		return false
	}
	a.state.set(func(s *Status) { s.Delivered++ })
	if it.u.Callback != nil {
		a.pressed(ctx, it.u.Callback, m, running)
	}
	if w := it.u.said(); w != nil {
		a.remember(w, m)
	} else if w := it.u.edit(); w != nil {
		a.remember(w, m)
	}
	return true
}

// firstWords is how much of a message a list shows, in UTF-16 units.
const firstWords = 40

func (a *Adapter) remember(w *message, m session.Message) {
	a.seen.put(seenKey{w.Chat.ID, w.ID}, seenMessage{wordsHash(w), cutUnits(firstLine(m.Text), firstWords), m.Key})
}

// untilDone tries f until it succeeds. False when ctx ended first.
func (a *Adapter) untilDone(ctx context.Context, step string, f func() error) bool {
	for wait := newBackoff(200*time.Millisecond, 10*time.Second); ; {
		err := f()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		a.state.set(func(s *Status) { s.Retries++ })
		d := wait.next()
		a.log.Warn("not taken, trying again", "step", step, "err", err, "in", d.Round(time.Millisecond))
		if !pause(ctx, d) {
			return false
		}
	}
}
