package discord

import (
	"slices"
	"sync"
	"time"
)

// How often a bot or webhook that may speak is heard in a channel before it has
// to rest: two bots that answer one another would go on for ever (D8, T15).
const (
	loopMost = 20
	loopTime = time.Minute
	loopRest = 10 * time.Minute
)

// loops count what bots say, by channel and bot.
type loops struct {
	mu sync.Mutex
	m  map[string]*talker
}

type talker struct {
	at   []time.Time
	rest time.Time // it is not heard until then
}

// pass counts one message and reports whether it is heard; first is true for
// the one at which it is not heard any more.
func (l *loops) pass(channel, bot string) (ok, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, id := time.Now(), channel+":"+bot
	h := l.m[id]
	if h == nil {
		if l.m == nil || len(l.m) > 1000 {
			l.m = make(map[string]*talker)
		}
		h = &talker{}
		l.m[id] = h
	}
	if now.Before(h.rest) {
		return false, false
	}
	for len(h.at) > 0 && now.Sub(h.at[0]) > loopTime {
		h.at = h.at[1:]
	}
	if h.at = append(h.at, now); len(h.at) <= loopMost {
		return true, false
	}
	h.at, h.rest = nil, now.Add(loopRest)
	return false, true
}

// means reports whether a message may mean something here: a person's, or that
// of a bot or webhook that is named in Bots; never a system message or the
// bot's own (D8, D9).
func (a *Adapter) means(w *message) bool {
	return (w.Type == typeDefault || w.Type == typeReply) && w.Author != nil && w.Author.ID != "" && w.Author.ID != a.id &&
		(!w.machine() || slices.Contains(a.o.Bots, w.Author.ID) || w.WebhookID != "" && slices.Contains(a.o.Bots, w.WebhookID))
}

// machine reports whether a webhook or bot wrote it; the author of a webhook's
// may look like a person.
func (w *message) machine() bool { return w.WebhookID != "" || w.Author.Bot }

// hears reports whether a message of a bot that may speak is heard: it must
// mention this one, and not too often.
func (a *Adapter) hears(w *message) bool {
	if !w.machine() {
		return true
	}
	if !a.mentioned(w) {
		return false
	}
	ok, first := a.loops.pass(w.ChannelID, w.Author.ID)
	if first {
		a.log.Warn(wordsLoop, "channel", w.ChannelID, "bot", w.Author.ID)
	}
	return ok
}
