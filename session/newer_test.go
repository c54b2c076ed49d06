package session_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// ahead is a store in which a newer version works too: one session is of its form.
type ahead struct {
	session.Store
	key   session.Key
	loads *atomic.Int64
}

func (s ahead) form(l session.Lane) session.Lane {
	if l.Key == s.key {
		l.Form = session.Form + 1
	}
	return l
}

func (s ahead) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	l, err := s.Store.Load(ctx, key)
	if key == s.key {
		s.loads.Add(1)
	}
	return s.form(l), err
}

func (s ahead) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	a, err := s.Store.Accept(ctx, r)
	a.Lane = s.form(a.Lane)
	return a, err
}

func (s ahead) Due(context.Context, int) ([]session.Key, error) { return nil, nil } // as over Redis

func (s ahead) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	if r.Key == s.key {
		return session.Begun{}, session.ErrNewer
	}
	return s.Store.Begin(ctx, r)
}

// TestLeftToNewer: a session of a newer form is left to the version that knows it:
// a message for it is taken and waits, status says so, and nothing spins (F35).
func TestLeftToNewer(t *testing.T) {
	var loads atomic.Int64
	play(t, set{wrap: func(st session.Store) session.Store { return ahead{st, key(den), &loads} }}, func(w *world) {
		w.deliver(w.says("ann", den, "go on"))
		lane, err := w.store.Load(t.Context(), key(den))
		if err != nil || len(lane.Slot) != 1 || lane.Turn != 0 {
			t.Errorf("turn %d, %d entries, %v; want one that waits", lane.Turn, len(lane.Slot), err)
		}
		before := loads.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := loads.Load() - before; n > 0 {
			t.Errorf("it was read %d times in a minute; want never", n)
		}
		o, err := w.hub.Overview(t.Context())
		if err != nil || o.Newer != 1 || o.Active != 0 {
			t.Errorf("left to a newer version: %d, active %d, %v; want 1 and 0", o.Newer, o.Active, err)
		}
		w.deliver(w.says("ann", lobby, "hello")) // others are served
		if w.agent.turn.Load() == nil {
			t.Error("another session's turn did not begin")
		}
		w.finish("hello")
		if strings.Contains(o.LastErr, "newer") {
			t.Errorf("last error %q", o.LastErr)
		}
	})
}
