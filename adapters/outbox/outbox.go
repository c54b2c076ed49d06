// Package outbox sends what the store holds for sending. Each session with
// parts has one worker goroutine that takes them strictly in order and ends
// when none is left; sessions do not wait for one another. Signs on people's
// messages go beside it: per session one goroutine, the newest state of an
// input wins. Run waits for all of them.
//
// A part whose sending was cut off is unknown: sent or not. Progress and
// replies are then dropped; a final answer is sent once more, marked as a
// possible repeat (I9).
package outbox

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"coxswain/session"
)

// Store is the part of session.Store that sending needs.
type Store interface {
	OutTake(ctx context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error)
	OutDone(ctx context.Context, key session.Key, nonce string, d session.PartDone) error
	Post(ctx context.Context, r session.Post) (session.Posted, error)
}

// Options are what an Outbox is built from.
type Options struct {
	Store Store
	// Nonce of this process's outbox. It is not the hub's: a part that a commit
	// took for the hub comes by Nudge, and must not come by OutTake as well.
	Nonce    string
	HubNonce string
	// UnknownAfter is how long a final whose outcome is unknown waits before it
	// is sent once more (outbox.unknown_after).
	UnknownAfter time.Duration
	// Routes say in which chat a session lives; nil: each in its own.
	Routes *session.Routes
	Log    *slog.Logger
}

// An Outbox sends. Nudge and Sign may be called from any goroutine and never
// block; Register comes before them.
type Outbox struct {
	Options
	platforms map[session.PlatformName]session.Platform
	life      context.Context
	stop      context.CancelFunc

	mu      sync.Mutex // guards what follows
	workers map[session.Key]*worker
	signers map[session.Key]*signer
	stages  map[signed]shown // the furthest state signed, of recent inputs
	closed  bool
	wg      sync.WaitGroup
}

// signed names an input whose state was shown.
type signed struct {
	key    session.Key
	ticket int64
}

// shown is how far an input was shown to be.
type shown struct {
	turn  int64
	stage int
}

// stagesKept bounds what is remembered of shown states: far more than can be
// on their way at one time.
const stagesKept = 4096

// A worker sends one session's parts.
type worker struct {
	wake  chan struct{} // holds at most one token
	taken *session.Part // guarded by Outbox.mu
	more  bool          // guarded by Outbox.mu: the store may hold parts that were not given

	paced session.Paced // nil: the platform has no budget
	due   time.Time     // of the worker's goroutine: when the send set aside may go; zero = none is
	asked time.Time     // likewise: when a part was first asked for; zero = all was answered
	kept  bool          // likewise: the store keeps the rest of the lane for this process
}

// A signer shows one session's signs.
type signer struct {
	pending []session.Fate // guarded by Outbox.mu, one a ticket, oldest first
}

var _ session.Outbox = (*Outbox)(nil)

// New makes an outbox that works until ctx ends.
func New(ctx context.Context, o Options) *Outbox {
	b := &Outbox{
		Options: o, platforms: map[session.PlatformName]session.Platform{},
		workers: map[session.Key]*worker{}, signers: map[session.Key]*signer{}, stages: map[signed]shown{},
	}
	b.life, b.stop = context.WithCancel(ctx)
	return b
}

// Register adds a platform.
func (b *Outbox) Register(p session.Platform) { b.platforms[p.Name()] = p }

// platform is how a session speaks; nil = the platform of its chat is off.
func (b *Outbox) platform(key session.Key) session.Platform {
	if b.Routes == nil {
		return b.platforms[key.Platform]
	}
	return b.Routes.Platform(key, b.platforms)
}

// Close lets parts that are being sent finish for at most grace, then ends all
// goroutines and waits for them. What is left stays in the store.
func (b *Outbox) Close(grace time.Duration) {
	b.mu.Lock()
	b.closed = true
	for _, w := range b.workers {
		w.poke()
	}
	b.mu.Unlock()
	gone := make(chan struct{})
	go func() { b.wg.Wait(); close(gone) }()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-gone:
	case <-t.C:
	case <-b.life.Done():
	}
	b.stop()
	<-gone
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Room implements session.Outbox. A platform that is not here has none, so its
// parts stay planned.
func (b *Outbox) Room(key session.Key) bool {
	plat := b.platform(key)
	if plat == nil || b.isClosed() {
		return false
	}
	p, ok := plat.(session.Paced)
	if !ok {
		return true
	}
	_, ok = p.Reserve(key, 0)
	return ok
}

// Return implements session.Outbox.
func (b *Outbox) Return(key session.Key) {
	if p, ok := b.platform(key).(session.Paced); ok {
		p.Return(key)
	}
}

// Nudge implements session.Outbox.
func (b *Outbox) Nudge(key session.Key, part *session.Part) {
	plat := b.platform(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || plat == nil || b.life.Err() != nil {
		return
	}
	w := b.workers[key]
	if w == nil {
		w = &worker{wake: make(chan struct{}, 1)}
		w.paced, _ = plat.(session.Paced)
		b.workers[key] = w
		b.wg.Add(1)
		go b.work(key, w)
	}
	if part != nil {
		w.taken = part
	}
	// A part that is alone in the outbox needs no question whether there is more:
	// one command of a plain turn, and no room set aside for nothing.
	w.more = w.more || part == nil || !part.Alone
	w.poke()
}

// leave ends a worker unless it was nudged meanwhile.
func (b *Outbox) leave(key session.Key, w *worker) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.taken != nil || len(w.wake) > 0 && !b.closed {
		return false
	}
	delete(b.workers, key)
	if !w.due.IsZero() {
		w.paced.Return(key)
	}
	return true
}

// work sends a session's parts until none is left.
func (b *Outbox) work(key session.Key, w *worker) {
	defer b.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	errs := 0
	for {
		p, ok, wait, err := b.next(key, w)
		switch {
		case b.life.Err() != nil:
			return
		case err != nil:
			errs++
			wait = min(time.Duration(errs)*50*time.Millisecond, time.Second)
			b.Log.WarnContext(b.life, "take from outbox failed, will retry", "session", key.String(), "err", err)
		case ok:
			errs = 0
			if !b.send(w, p.Part, p.nonce) {
				b.askAgain(w)
			}
			continue
		case wait == 0:
			if b.leave(key, w) {
				b.yield(key, w)
				return
			}
			<-w.wake
			continue
		}
		timer.Reset(wait)
		select {
		case <-b.life.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
		if b.isClosed() && b.leave(key, w) {
			b.yield(key, w)
			return
		}
	}
}

func (b *Outbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// next is the part to send now: the one the hub's commit took, or the head.
func (b *Outbox) next(key session.Key, w *worker) (taken, bool, time.Duration, error) {
	b.mu.Lock()
	given, closed, more := w.taken, b.closed, w.more
	w.taken = nil
	if given == nil {
		w.more = false // a nudge from here on sets it again
	}
	b.mu.Unlock()
	if given != nil {
		return taken{*given, b.HubNonce}, true, 0, nil
	}
	if closed || !more {
		return taken{}, false, 0, nil
	}
	if wait := w.reserve(key); wait > 0 {
		b.askAgain(w)
		return taken{}, false, wait, nil
	}
	if w.asked.IsZero() {
		w.asked = time.Now() // a take whose answer was lost counts from its first asking
	}
	p, ok, wait, err := b.Store.OutTake(b.life, key, b.Nonce, b.UnknownAfter)
	if ok && !p.Alone || wait > 0 || err != nil {
		b.askAgain(w)
	}
	if err == nil {
		p.Asked, w.asked = w.asked, time.Time{}
	}
	switch {
	case ok:
		p.Paced, w.due, w.kept = !w.due.IsZero(), time.Time{}, false
	case wait > 0 && !w.due.IsZero(): // another sends, or it rests: room that nobody uses goes back
		w.paced.Return(key)
		w.due = time.Time{}
	}
	return taken{p, b.Nonce}, ok, wait, err
}

// reserve sets a send aside, once, and says in how long it may go.
func (w *worker) reserve(key session.Key) time.Duration {
	if w.paced == nil {
		return 0
	}
	if w.due.IsZero() {
		wait, _ := w.paced.Reserve(key, math.MaxInt64)
		w.due = time.Now().Add(wait)
	}
	return time.Until(w.due)
}

// askAgain says that the store may still hold parts for w.
func (b *Outbox) askAgain(w *worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.more = true
}

// taken is a part and the nonce that holds it.
type taken struct {
	session.Part
	nonce string
}
