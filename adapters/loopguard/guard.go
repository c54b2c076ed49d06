// Package loopguard keeps two bots that answer one another from going on for
// ever (T15, D8): it counts what a bot says in a chat and gives it a rest when
// that is too much.
//
// It counts in the order of the calls and remembers nothing over a restart. It
// has no goroutine of its own.
package loopguard

import (
	"sync"
	"time"
)

// How often a bot or webhook that may speak is heard in a chat before it has to
// rest.
const (
	Most = 20
	Span = time.Minute
	Rest = 10 * time.Minute
)

// chatsMost bounds what is counted; only bots that are named in the
// configuration are, so it is hardly ever reached.
const chatsMost = 1000

// A Guard counts what bots say, by chat and bot. The zero value is ready; any
// goroutine may call it.
type Guard struct {
	mu sync.Mutex
	m  map[string]*talker
}

type talker struct {
	at   []time.Time
	rest time.Time // it is not heard until then
}

// Pass counts one message and reports whether it is heard; first is true for
// the one at which it is not heard any more.
func (g *Guard) Pass(chat, bot string) (ok, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, id := time.Now(), chat+":"+bot
	h := g.m[id]
	if h == nil {
		if g.m == nil || len(g.m) > chatsMost {
			g.m = make(map[string]*talker)
		}
		h = &talker{}
		g.m[id] = h
	}
	if now.Before(h.rest) {
		return false, false
	}
	for len(h.at) > 0 && now.Sub(h.at[0]) > Span {
		h.at = h.at[1:]
	}
	if h.at = append(h.at, now); len(h.at) <= Most {
		return true, false
	}
	h.at, h.rest = nil, now.Add(Rest)
	return false, true
}
