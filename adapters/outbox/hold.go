package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"coxswain/session"
)

// errLate ends a send that another gateway may make by now.
var errLate = errors.New("outbox: not sent in time, another may send it")

// A hold keeps a part this process's for as long as it is being sent. An upload
// or a slow platform may take longer than UnknownAfter, when another gateway
// would take the part over; so the store is told in time that it is still being
// sent. And a process that could not say so, because it was stopped or cannot
// reach the store, must send nothing more once another may: its own clock ends
// the send three quarters of UnknownAfter after it last asked (F7, F13).
type hold struct {
	b     *Outbox
	p     session.Part
	nonce string
	keep  time.Duration
	cut   context.CancelCauseFunc
	gone  chan struct{}

	mu   sync.Mutex
	last time.Time // when what the store last answered was asked for
}

// hold begins one; end must be called. ctx ends when the part may be another's.
func (b *Outbox) hold(p session.Part, nonce string) (ctx context.Context, h *hold) {
	h = &hold{b: b, p: p, nonce: nonce, keep: b.UnknownAfter * 3 / 4, gone: make(chan struct{}), last: p.Asked}
	if h.last.IsZero() {
		h.last = time.Now()
	}
	ctx, h.cut = context.WithCancelCause(b.life)
	go h.run(ctx)
	return ctx, h
}

// late reports whether another may have the part.
func (h *hold) late() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.last) >= h.keep
}

func (h *hold) run(ctx context.Context) {
	defer close(h.gone)
	end := time.AfterFunc(time.Until(h.last.Add(h.keep)), func() { h.cut(errLate) })
	defer end.Stop()
	tick := time.NewTicker(h.keep / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		err := h.b.Store.OutDone(ctx, h.p.Key, h.nonce, session.PartDone{ID: h.p.ID, State: session.PartSending})
		if h.late() { // whatever the answer: it may have been too late
			h.cut(errLate)
			return
		}
		if err == nil {
			h.mu.Lock()
			h.last = asked
			h.mu.Unlock()
			end.Reset(time.Until(asked.Add(h.keep)))
		}
	}
}

// end lets go of it.
func (h *hold) end() {
	h.cut(nil)
	<-h.gone
}
