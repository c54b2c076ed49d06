package session

import (
	"context"
	"time"
)

// What is remembered of a session in memory is true only while the session
// lives: one that is deleted and begins anew counts from 1 again. A process that
// deletes one forgets it at once. All others, which do not hear of it, have
// forgotten whatever they did not use for idleMost; no session is dropped by
// retention that early.

const (
	// idleMost is half of MarkLife, before which no session is dropped.
	idleMost = MarkLife / 2
	// forgetEvery is how often it is looked for.
	forgetEvery = time.Hour
)

// Forget drops what this process remembers of a session that was deleted.
func (h *Hub) Forget(key Key) {
	h.forget(key)
	chat := h.Routes.Home(key)
	if p, ok := h.platforms[chat.Platform].(Forgetful); ok && h.Routes.Current(chat) == key {
		p.Forget(chat)
	}
}

func (h *Hub) forget(key Key) {
	h.history.drop(key)
	h.Agent.Forget(key)
	h.Outbox.Forget(key)
}

// forgetIdle drops what was not used for long. It is called by Run alone.
func (h *Hub) forgetIdle(now time.Time) {
	if now.Sub(h.forgot) < forgetEvery {
		return
	}
	h.forgot = now
	var idle []Key
	h.mu.Lock()
	for k, at := range h.left {
		if h.actors[k] == nil && now.Sub(at) > idleMost {
			idle = append(idle, k)
			delete(h.left, k)
		}
	}
	h.mu.Unlock()
	for _, k := range idle {
		h.forget(k)
	}
}

// ForgetAsleep drops the route of a session that was dropped, unless it is spoken
// to: in that chat it begins anew.
func (r *Routes) ForgetAsleep(ctx context.Context, lane Key) error {
	return r.shelf.change(ctx, func(has *routes) bool {
		c := has.chat(has.home(lane))
		return c != nil && c.Lanes[0] != lane && has.forget(lane)
	})
}

// ForgetObservedBefore lets go what was said in a chat before a time.
func ForgetObservedBefore(ctx context.Context, st Store, key Key, before time.Time) error {
	return changeObserved(ctx, st, key, func(d *observed) bool {
		n := len(d.Kept)
		for i := n - 1; i >= 0; i-- {
			if d.Kept[i].Sent < before.UnixMilli() {
				d.remove(i)
			}
		}
		return len(d.Kept) != n
	})
}
