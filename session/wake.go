package session

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Waker is a store that several processes share and that tells each of them
// which lanes the others have written to.
type Waker interface {
	// Subscribe calls wake with the key of each lane that another process wrote
	// to, from one goroutine, until ctx ends or it can go on no more, and returns
	// why. Keys are hints: one may come late, twice or never. The zero key means
	// that hints may have been lost: look at everything (F31).
	Subscribe(ctx context.Context, wake func(Key)) error
}

// WakerOf is st as a Waker, also if st wraps one; ok is false for a store that
// one process has to itself.
func WakerOf(st Store) (w Waker, ok bool) {
	if w, ok = st.(Waker); ok {
		return w, true
	}
	if u, wraps := st.(interface{ Unwrap() Store }); wraps {
		return WakerOf(u.Unwrap())
	}
	return nil, false
}

// Waits between subscriptions that end at once.
const (
	listenLeast = 100 * time.Millisecond
	listenMost  = 5 * time.Second
)

// listen hears what other processes write, until ctx ends. While it cannot, the
// sweep and the flags of renewals do its work, later.
func (h *Hub) listen(ctx context.Context, w Waker) {
	for wait := listenLeast; ctx.Err() == nil; wait = min(2*wait, listenMost) {
		heard := false
		err := w.Subscribe(ctx, func(k Key) {
			heard = true
			h.Wake(k)
		})
		if ctx.Err() != nil {
			return
		}
		h.note(ctx, "hear of writes", err)
		if heard {
			wait = listenLeast
		}
		t := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			t.Stop()
		case <-t.C:
		}
	}
}

// Wake says that another process wrote to a lane: whoever looks after it here
// looks again, and who reads it is told. It starts nobody, for who wrote has seen
// to that, and the sweep sees to what is forgotten. The zero key means every lane.
// It never blocks; any goroutine.
func (h *Hub) Wake(key Key) {
	chat := key
	if key != (Key{}) {
		chat = h.Routes.Home(key)
	}
	for name, p := range h.platforms {
		if r, ok := p.(Reader); ok && (chat == Key{} || chat.Platform == name) {
			r.Changed(chat)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if key == (Key{}) || key.Platform == meterPlatform {
		h.wakeSpendersLocked()
	}
	if key == (Key{}) {
		h.wakeAllLocked()
		return
	}
	if a := h.actors[key]; a != nil {
		a.poke(nil)
	}
	if s := h.seats[key]; s != nil {
		s.mayBeFree()
	}
}

func (h *Hub) wakeAllLocked() {
	for _, a := range h.actors {
		a.poke(nil)
	}
	for _, s := range h.seats {
		s.mayBeFree()
	}
	select {
	case h.stale <- struct{}{}:
	default: // a sweep is to come already
	}
}

const (
	// sweepMost is how many sessions are looked at anew in one sweep.
	sweepMost = 256
	// lineMost is how many that stand in line a sweep looks behind, so that what it
	// reads has an end.
	lineMost = 10_000
)

// sweep finds what is due, whoever stored it.
func (h *Hub) sweep(ctx context.Context) {
	if _, err := h.Routes.shelf.get(ctx); err != nil { // without them nothing goes where it belongs
		h.note(ctx, "read routes", err)
		return
	}
	// Those that stand in line here are due as well, and may be the first of all.
	keys, err := h.Store.Due(ctx, sweepMost+min(h.gate.state().Waiting, lineMost))
	if err != nil {
		h.note(ctx, "sweep", err)
		return
	}
	for _, k := range keys {
		if !h.gate.stands(k) { // else it is looked at when there is room
			h.nudge(k, nil)
		}
	}
	keys, err = h.Store.OutDue(ctx, sweepMost)
	if err != nil {
		h.note(ctx, "sweep outbox", err)
		return
	}
	for _, k := range keys {
		h.Outbox.Nudge(k, nil)
	}
}
