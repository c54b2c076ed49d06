package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"coxswain/session"
	"coxswain/store/storetest"
)

// A bus tells replicas what the others have written, at most once and now and
// then not at all (F31).
type bus struct {
	mu     sync.Mutex
	ears   map[*process]chan session.Key
	lose   func() bool // asked for each word
	lost   int
	held   int        // claims that found a live lease (F14)
	reset  time.Time  // the newest /new
	full   time.Time  // until then the store takes nothing (F39)
	sits   []*process // who polls now
	badSat []string
}

func newBus(lose func() bool) *bus { return &bus{ears: map[*process]chan session.Key{}, lose: lose} }

// tell says that p wrote to a lane.
func (b *bus) tell(p *process, key session.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, ear := range b.ears {
		if other == p {
			continue
		}
		if b.lose() || other.link.cut() {
			b.lost++
			continue
		}
		select {
		case ear <- key:
		default:
			b.lost++
		}
	}
}

// longest is how long a link stays broken at most.
const longest = 12 * time.Second

// wasReset reports a /new that somebody may not have heard of yet.
func (b *bus) wasReset() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.reset.IsZero() && time.Since(b.reset) < longest
}

// sit holds the seat of the one that polls, and sees that no two do.
func (b *bus) sit(ctx context.Context, p *process) {
	_ = p.hub.Seat("poll").Hold(ctx, func(ctx context.Context) error {
		b.mu.Lock()
		for _, other := range b.sits {
			if !other.isDead() && !p.w.jumping() {
				b.badSat = append(b.badSat, "I4: "+p.nonce+" polls while "+other.nonce+" does")
			}
		}
		b.sits = append(b.sits, p)
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		b.sits = slices.DeleteFunc(b.sits, func(o *process) bool { return o == p })
		b.mu.Unlock()
		return nil
	})
}

// shared is the store as one of several processes has it: a session.Waker.
type shared struct {
	session.Store
	bus *bus
	p   *process
}

// Subscribe implements session.Waker.
func (s *shared) Subscribe(ctx context.Context, wake func(session.Key)) error {
	ear := make(chan session.Key, 16)
	s.bus.mu.Lock()
	s.bus.ears[s.p] = ear
	s.bus.mu.Unlock()
	defer func() {
		s.bus.mu.Lock()
		defer s.bus.mu.Unlock()
		delete(s.bus.ears, s.p)
	}()
	wake(session.Key{})
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case k := <-ear:
			wake(k)
		}
	}
}

// told is one write, which the others hear of.
func told[A any](s *shared, key session.Key, write func() (A, error)) (a A, err error) {
	s.bus.mu.Lock()
	full := time.Now().Before(s.bus.full)
	s.bus.mu.Unlock()
	if full {
		return a, session.ErrFull
	}
	if a, err = write(); err == nil {
		s.bus.tell(s.p, key)
	}
	return a, err
}

func (s *shared) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	return told(s, r.Key, func() (session.Accepted, error) { return s.Store.Accept(ctx, r) })
}

func (s *shared) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	return told(s, r.Key, func() (session.Begun, error) { return s.Store.Begin(ctx, r) })
}

func (s *shared) Claim(ctx context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	b, err := s.Store.Claim(ctx, key, nonce, ttl)
	if errors.Is(err, session.ErrHeld) && !key.IsSeat() {
		s.bus.mu.Lock()
		s.bus.held++
		s.bus.mu.Unlock()
	}
	return b, err
}

func (s *shared) Commit(ctx context.Context, l session.Lease, r session.Commit) (session.Committed, error) {
	return told(s, l.Key, func() (session.Committed, error) { return s.Store.Commit(ctx, l, r) })
}

func (s *shared) Release(ctx context.Context, l session.Lease) error {
	_, err := told(s, l.Key, func() (struct{}, error) { return struct{}{}, s.Store.Release(ctx, l) })
	return err
}

func (s *shared) Amend(ctx context.Context, r session.Amend) (session.Amended, error) {
	return told(s, r.Key, func() (session.Amended, error) { return s.Store.Amend(ctx, r) })
}

func (s *shared) Stop(ctx context.Context, r session.Stop) (session.Stopped, error) {
	return told(s, r.Key, func() (session.Stopped, error) { return s.Store.Stop(ctx, r) })
}

func (s *shared) Reset(ctx context.Context, r session.Reset) (session.Lane, error) {
	return told(s, r.Key, func() (session.Lane, error) {
		s.bus.mu.Lock()
		s.bus.reset = time.Now()
		s.bus.mu.Unlock()
		return s.Store.Reset(ctx, r)
	})
}

func (s *shared) Post(ctx context.Context, r session.Post) (session.Posted, error) {
	return told(s, r.Key, func() (session.Posted, error) { return s.Store.Post(ctx, r) })
}

// A link is the way between a process and the store.
type link struct {
	mu    sync.Mutex
	kind  linkKind
	until time.Time
}

type linkKind uint8

const (
	linkWhole  linkKind = iota
	linkCut             // nothing arrives
	linkDeaf            // calls arrive, replies do not (F26)
	linkSlow            // each reply takes a while (F15)
	linkFrozen          // the process itself stands still (F13)
)

func (l *link) set(k linkKind, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kind, l.until = k, time.Now().Add(d)
}

func (l *link) state() (linkKind, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := time.Until(l.until); left > 0 {
		return l.kind, left
	}
	return linkWhole, 0
}

// cut reports whether the process hears nothing now.
func (l *link) cut() bool {
	k, _ := l.state()
	return k != linkWhole && k != linkSlow
}

// fault is what the link does to a call now.
func (l *link) fault(when storetest.When) storetest.Fault {
	k, left := l.state()
	switch {
	case k == linkCut && when == storetest.Before:
		return storetest.Down
	case k == linkDeaf && when == storetest.After:
		return storetest.LostReply
	case k == linkSlow && when == storetest.After:
		return storetest.Pause(700 * time.Millisecond)
	case k == linkFrozen:
		return storetest.Pause(left)
	}
	return storetest.None
}
