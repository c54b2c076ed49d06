package main

import (
	"context"
	"log/slog"
	"time"

	"coxswain/session"
)

// A sweeper drops sessions that nobody used for store.retention. It goes round
// over all of them, a page a minute, so that its work does not grow with them: ten
// thousand take three hours. Over Redis each replica has one; whoever comes first
// drops a session, the others find nothing.
type sweeper struct {
	store session.Store
	drop  func(ctx context.Context, key session.Key, idle time.Duration, now time.Time) (bool, error)
	idle  time.Duration
	log   *slog.Logger
	after string // where it stands; it begins anew with the process
}

const (
	retainEvery = time.Minute
	retainPage  = 50
)

func newSweeper(a *admin, retention time.Duration, log *slog.Logger) *sweeper {
	// A mark that still counts must not go with its session: a message that the
	// platform delivers again would run twice (I2).
	return &sweeper{store: a.store, drop: a.expire, idle: max(retention, session.MarkLife+time.Second), log: log}
}

func (s *sweeper) run(ctx context.Context) error {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "drop old sessions, will retry", "err", err)
		}
	}
}

// pass looks at one page.
func (s *sweeper) pass(ctx context.Context) error {
	lanes, err := s.store.Sessions(ctx, s.after, retainPage)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		s.after = l.Key.String() // whatever becomes of this one: it must not hold up the others
		if idle := l.Now.Sub(l.Touched); idle >= s.idle {
			done, err := s.drop(ctx, l.Key, s.idle, time.Now())
			if done {
				s.log.InfoContext(ctx, "session dropped: not used for long", "session", l.Key.String(), "idle", idle.Round(time.Minute), "retention", s.idle)
			}
			if err != nil {
				return err
			}
		}
	}
	if len(lanes) < retainPage {
		s.after = ""
	}
	return nil
}
