package sqlite

import (
	"bytes"
	"context"
	"slices"
	"time"

	"coxswain/session"
)

// Stop implements session.Store. Durable.
func (s *Store) Stop(ctx context.Context, r session.Stop) (session.Stopped, error) {
	return write(ctx, s, synced, func(t *tx) (session.Stopped, error) { return t.stop(r) })
}

func (t *tx) stop(r session.Stop) (session.Stopped, error) {
	l, err := t.open(r.Key, full)
	if err != nil {
		return session.Stopped{}, err
	}
	if l == nil {
		return session.Stopped{Lane: session.Lane{Key: r.Key, Now: t.now}}, nil
	}
	_, dup, err := t.dup(l, r.Dedupe)
	if err != nil {
		return session.Stopped{}, err
	}
	if dup {
		return session.Stopped{Dup: true, Lane: l.view(t.now)}, nil
	}
	if err := t.mark(l, r.Dedupe, mark{}); err != nil {
		return session.Stopped{}, err
	}
	var st session.Stopped
	if r.Only == 0 || r.Only == l.Turn {
		st.Turn, l.Stop = l.Turn, l.Turn
		if !r.Keep {
			if st.Held, err = t.hold(l); err != nil {
				return session.Stopped{}, err
			}
		}
		if r.Drop {
			st.Held = slices.Clone(l.Slot)
			for _, e := range st.Held {
				if err := t.drop(l, e.Ticket); err != nil {
					return session.Stopped{}, err
				}
			}
		}
	}
	if err := t.plan(l, r.Outs); err != nil {
		return session.Stopped{}, err
	}
	if err := t.save(l); err != nil {
		return session.Stopped{}, err
	}
	st.Lane = l.view(t.now)
	return st, nil
}

// Reset implements session.Store. Durable.
func (s *Store) Reset(ctx context.Context, r session.Reset) (session.Lane, error) {
	return write(ctx, s, synced, func(t *tx) (session.Lane, error) { return t.reset(r) })
}

func (t *tx) reset(r session.Reset) (session.Lane, error) {
	l, err := t.open(r.Key, full)
	if err != nil {
		return session.Lane{}, err
	}
	_, dup, err := t.dup(l, r.Dedupe)
	if err != nil {
		return session.Lane{}, err
	}
	if dup {
		return l.view(t.now), nil
	}
	if l, err = t.make(l, r.Key); err != nil {
		return session.Lane{}, err
	}
	if err := t.mark(l, r.Dedupe, mark{}); err != nil {
		return session.Lane{}, err
	}
	if l.Turn != 0 {
		if err := t.stopFates(l); err != nil {
			return session.Lane{}, err
		}
		t.stats.Ended++
	}
	if _, err := t.hold(l); err != nil {
		return session.Lane{}, err
	}
	l.Gen++
	l.Epoch++
	l.Nonce, l.Until, l.Released = "", time.Time{}, false
	l.Seq, l.Sent, l.Last = 0, 0, 0
	l.closeTurn()
	l.Title = ""
	if err := t.plan(l, r.Outs); err != nil {
		return session.Lane{}, err
	}
	return l.view(t.now), t.save(l)
}

// Post implements session.Store. Durable.
func (s *Store) Post(ctx context.Context, r session.Post) (session.Posted, error) {
	return write(ctx, s, synced, func(t *tx) (session.Posted, error) { return t.post(r) })
}

func (t *tx) post(r session.Post) (session.Posted, error) {
	l, err := t.open(r.Key, full)
	if err != nil {
		return session.Posted{}, err
	}
	_, dup, err := t.dup(l, r.Dedupe)
	if err != nil {
		return session.Posted{}, err
	}
	if dup {
		return session.Posted{Dup: true, Lane: l.view(t.now)}, nil
	}
	if l, err = t.make(l, r.Key); err != nil {
		return session.Posted{}, err
	}
	if err := t.mark(l, r.Dedupe, mark{}); err != nil {
		return session.Posted{}, err
	}
	if r.Prefs != nil {
		l.Prefs = bytes.Clone(r.Prefs)
	}
	if r.Title != "" {
		l.Title = r.Title
	}
	if err := t.setJobs(l, r.Jobs, true); err != nil {
		return session.Posted{}, err
	}
	fresh := slices.DeleteFunc(slices.Clone(r.Add), func(j session.Job) bool {
		return slices.ContainsFunc(l.Jobs, func(o session.Job) bool { return o.ID == j.ID })
	})
	if err := t.setJobs(l, fresh, false); err != nil {
		return session.Posted{}, err
	}
	if err := t.plan(l, r.Outs); err != nil {
		return session.Posted{}, err
	}
	if err := t.save(l); err != nil {
		return session.Posted{}, err
	}
	return session.Posted{Lane: l.view(t.now)}, nil
}

// Delete implements session.Store. Durable. The tables of a lane follow it by
// their foreign keys.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	return s.do(ctx, synced, func(t *tx) error {
		l, err := t.open(key, narrow)
		if err != nil || l == nil {
			return err
		}
		if l.leased(t.now) {
			return session.ErrHeld
		}
		return t.delete(l)
	})
}

func (t *tx) delete(l *lane) error {
	t.stats.Dropped += int64(len(l.Slot))
	t.stats.InSlot -= int64(len(l.Slot))
	if !l.Key.IsSeat() {
		t.stats.Sessions--
	}
	_, err := t.exec(`DELETE FROM lane WHERE id = ?`, l.id)
	return err
}

// Expire implements session.Store. Durable.
func (s *Store) Expire(ctx context.Context, key session.Key, idle time.Duration) error {
	return s.do(ctx, synced, func(t *tx) error {
		l, err := t.open(key, narrow)
		if err != nil || l == nil {
			return err
		}
		if l.Turn != 0 || l.leased(t.now) || len(l.Slot)+len(l.Jobs)+l.Out > 0 || t.now.Sub(l.Touched) < idle {
			return session.ErrStale
		}
		return t.delete(l)
	})
}

// PutDoc implements session.Store. Durable.
func (s *Store) PutDoc(ctx context.Context, name string, version int64, data []byte) error {
	return s.do(ctx, synced, func(t *tx) error {
		v, err := t.row(`SELECT version FROM doc WHERE name = ?`, 1, name)
		if err != nil {
			return err
		}
		var have int64
		if v != nil {
			have = v.int(0)
		}
		if have != version {
			return session.ErrStale
		}
		_, err = t.exec(`INSERT OR REPLACE INTO doc (name, version, data) VALUES (?, ?, ?)`, name, version+1, data)
		return err
	})
}
