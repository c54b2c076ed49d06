package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Seat is the right to do what only one process may do at a time: to poll a
// bot's updates, to be its one connection. It is held by a lease of the store. A
// nil Seat belongs to a process that has the store to itself: it always sits.
// Any goroutine; Hold by one at a time.
type Seat struct {
	h    *Hub
	key  Key
	wake chan struct{} // holds at most one token: it may be free
	here atomic.Bool
}

// Seat gives the seat of that name, nil when no other process can share the
// store.
func (h *Hub) Seat(name string) *Seat {
	if _, shared := WakerOf(h.Store); !shared {
		return nil
	}
	s := &Seat{h: h, key: SeatKey(name), wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seats[s.key] = s
	return s
}

// Here reports whether this process sits.
func (s *Seat) Here() bool { return s == nil || s.here.Load() }

// errUnseated is the cause of the end of what ran on a seat that was lost.
var errUnseated = errors.New("another process may have the seat")

// Hold waits for the seat and runs run on it, until ctx ends or run returns; it
// gives run's error. The context of run ends when the seat is lost or cannot be
// made sure of, by this machine's own clock: before another process can have it.
// Then Hold waits for run to return, and for the seat again. run must return
// soon: what it does after its context has ended, another may do as well.
//
// At the end the seat is given up, so that another process need not wait for the
// lease to run out.
func (s *Seat) Hold(ctx context.Context, run func(context.Context) error) error {
	if s == nil {
		return run(ctx)
	}
	for {
		lease, since, ok := s.sit(ctx)
		if !ok {
			return nil
		}
		s.here.Store(true)
		lost, err := s.keep(ctx, lease, since, run)
		s.here.Store(false)
		if !lost {
			s.leave(ctx, lease)
			return err
		}
		s.h.Log.WarnContext(ctx, "seat lost", "seat", string(s.key.Chat))
	}
}

// sit waits until the seat is free and takes it. since is when it was asked for:
// the lease is at least as old.
func (s *Seat) sit(ctx context.Context) (l Lease, since time.Time, ok bool) {
	ttl := s.h.LeaseTTL
	for ctx.Err() == nil {
		since = time.Now()
		ask, stop := context.WithTimeout(ctx, ttl)
		b, err := s.h.Store.Claim(ask, s.key, s.h.Nonce, ttl)
		stop()
		if err == nil && time.Since(since) < ttl/2 { // else it is nearly over: it is asked for again
			return b.Lease, since, true
		}
		if err != nil && !errors.Is(err, ErrHeld) {
			s.h.note(ctx, "claim seat", err)
		}
		t := time.NewTimer(ttl/5 - rand.N(ttl/20))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-t.C:
		}
		t.Stop()
	}
	return Lease{}, since, false
}

// keep runs run while the lease is good, and renews it. lost means that run was
// ended, and has returned, because it is not.
func (s *Seat) keep(ctx context.Context, l Lease, since time.Time, run func(context.Context) error) (lost bool, err error) {
	sitting, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := make(chan error, 1)
	go func() { over <- run(sitting) }()
	// A quarter is left for run to return in.
	good := func() time.Duration { return time.Until(since.Add(l.TTL - l.TTL/4)) }
	late := time.NewTimer(good())
	defer late.Stop()
	renew := time.NewTicker(l.TTL / 3)
	defer renew.Stop()
	for {
		select {
		case err := <-over:
			return false, err
		case <-renew.C:
			asked := time.Now()
			// Also when ctx has ended: run may still be at work.
			ask, stop := context.WithTimeout(context.WithoutCancel(ctx), min(good(), l.TTL/4))
			_, err := s.h.Store.Renew(ask, l)
			stop()
			switch {
			case err == nil:
				since = asked
				late.Reset(good())
				continue
			case !errors.Is(err, ErrFenced):
				s.h.note(ctx, "renew seat", err)
				continue
			}
		case <-late.C:
			if good() > 0 {
				late.Reset(good())
				continue
			}
		}
		if ctx.Err() != nil {
			return false, <-over
		}
		end(errUnseated)
		<-over
		return true, nil
	}
}

// leaveTime bounds giving a seat up: it also ends by itself.
const leaveTime = 2 * time.Second

func (s *Seat) leave(ctx context.Context, l Lease) {
	cleanup, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer stop()
	if err := s.h.Store.Release(cleanup, l); err != nil && !errors.Is(err, ErrFenced) {
		s.h.note(cleanup, "release seat", err)
	}
}

// mayBeFree makes a seat that waits ask at once.
func (s *Seat) mayBeFree() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
