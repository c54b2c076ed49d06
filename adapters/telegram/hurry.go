package telegram

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// errHurry ends the loading of a file because its sender wants to stop.
var errHurry = errors.New("a stop came")

// A hurry lets a /stop be seen to at once although a file of the same person
// is being loaded before it: the loading ends, the message goes without its file
// and the order stays (T12). The zero value is ready; any goroutine.
type hurry struct {
	mu      sync.Mutex
	stops   map[sender]int // that wait their turn
	loading map[sender]context.CancelCauseFunc
}

type sender struct{ chat, user int64 }

// stopOf gives whose stop an update is, or false when it is none.
func (u *update) stopOf() (sender, bool) {
	switch {
	case u.said() != nil && u.said().Origin == nil:
		m := u.said()
		return m.sender(), commandAtStart(m.Entities) && strings.HasPrefix(strings.ToLower(m.Text), "/stop")
	case u.Callback != nil && u.Callback.Message != nil:
		_, data, _ := cutOwner(u.Callback.Data)
		return sender{u.Callback.Message.Chat.ID, u.Callback.From.ID}, strings.HasPrefix(data, stopPrefix)
	case u.Stopped != nil:
		return sender{u.Stopped.Chat.ID, u.Stopped.Chat.ID}, true
	}
	return sender{}, false
}

// comes says that a stop has come in.
func (h *hurry) comes(s sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stops == nil {
		h.stops = make(map[sender]int)
	}
	h.stops[s]++
	if cancel := h.loading[s]; cancel != nil {
		cancel(errHurry)
	}
}

// taken says that a stop had its turn.
func (h *hurry) taken(s sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stops[s]--; h.stops[s] <= 0 {
		delete(h.stops, s)
	}
}

// begin gives the context of loading a file; end must be called.
func (h *hurry) begin(ctx context.Context, s sender) (within context.Context, end func()) {
	within, cancel := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loading == nil {
		h.loading = make(map[sender]context.CancelCauseFunc)
	}
	h.loading[s] = cancel
	if h.stops[s] > 0 {
		cancel(errHurry)
	}
	return within, func() {
		h.mu.Lock()
		delete(h.loading, s)
		h.mu.Unlock()
		cancel(nil)
	}
}
