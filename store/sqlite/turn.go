package sqlite

import (
	"context"
	"slices"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// Begin implements session.Store. Durable.
func (s *Store) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	return write(ctx, s, synced, func(t *tx) (session.Begun, error) { return t.begin(r) })
}

func (t *tx) begin(r session.Begin) (session.Begun, error) {
	l, err := t.lane(r.Key)
	if err != nil {
		return session.Begun{}, err
	}
	if l == nil {
		return session.Begun{}, session.ErrStale
	}
	var b session.Begun
	if ok, err := t.recall(l, r.Op, true, &b); ok || err != nil {
		return b, err
	}
	if l.leased(t.now) && l.Nonce != r.Nonce {
		return session.Begun{}, session.ErrHeld
	}
	if l.Turn != 0 || l.Gen != r.Gen || l.Seq != r.Seq {
		return session.Begun{}, session.ErrStale
	}
	if err := t.fill(l, full); err != nil {
		return session.Begun{}, err
	}
	for _, id := range r.Jobs {
		if !slices.ContainsFunc(l.Jobs, func(j session.Job) bool { return j.ID == id }) {
			return session.Begun{}, session.ErrStale
		}
	}
	if err := t.take(l, r.Take); err != nil {
		return session.Begun{}, err
	}
	for _, id := range r.Jobs {
		if err := t.forgetJob(l, id); err != nil {
			return session.Begun{}, err
		}
	}
	return t.openTurn(l, r)
}

// openTurn writes the turn, all guards passed.
func (t *tx) openTurn(l *lane, r session.Begin) (session.Begun, error) {
	l.Epoch++
	l.Nonce, l.Until = r.Nonce, t.now.Add(r.TTL)
	l.Turns++
	l.Turn, l.TurnAt, l.Owner, l.Phase = l.Turns, t.now, r.Owner, r.Phase
	l.Attempts, l.Stop, l.Released = 0, 0, false
	if _, err := t.append(l, r.Rows...); err != nil {
		return session.Begun{}, err
	}
	l.Sent = l.Seq
	for _, f := range r.Fates {
		if f.Turn == 0 {
			f.Turn = l.Turn
		}
		if err := t.setFate(l, f); err != nil {
			return session.Begun{}, err
		}
	}
	if err := t.plan(l, r.Outs); err != nil {
		return session.Begun{}, err
	}
	t.stats.Turns++
	if err := t.save(l); err != nil {
		return session.Begun{}, err
	}
	b := session.Begun{Lease: l.lease(r.Nonce, r.TTL), Lane: l.view(t.now)}
	return b, t.remember(l, r.Op, true, b)
}

func (l *lane) lease(nonce string, ttl time.Duration) session.Lease {
	return session.Lease{Key: l.Key, Epoch: l.Epoch, Nonce: nonce, TTL: ttl}
}

// Claim implements session.Store. Durable.
func (s *Store) Claim(ctx context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	return write(ctx, s, synced, func(t *tx) (session.Begun, error) {
		l, err := t.open(key, full)
		if err != nil {
			return session.Begun{}, err
		}
		if l == nil && key.IsSeat() {
			l, err = t.make(nil, key)
		}
		if err != nil {
			return session.Begun{}, err
		}
		if l == nil {
			return session.Begun{}, session.ErrGone
		}
		if l.leased(t.now) && l.Nonce != nonce {
			return session.Begun{}, session.ErrHeld
		}
		if !l.leased(t.now) {
			l.Epoch++
			l.Nonce = nonce
			if l.Turn != 0 && !l.Released {
				l.Attempts++
				t.stats.Recovered++
			}
			l.Released = false
		}
		l.Until = t.now.Add(ttl)
		if err := t.save(l); err != nil {
			return session.Begun{}, err
		}
		return session.Begun{Lease: l.lease(nonce, ttl), Lane: l.view(t.now)}, nil
	})
}

// fence reads the lane of a lease, ErrFenced unless the lease is current (I4).
func (t *tx) fence(le session.Lease) (*lane, error) {
	l, err := t.lane(le.Key)
	if err != nil {
		return nil, err
	}
	if l == nil || l.Epoch != le.Epoch || l.Nonce != le.Nonce || l.Nonce == "" {
		return nil, session.ErrFenced // counted by Store.one
	}
	return l, nil
}

// Renew implements session.Store. Not synced.
func (s *Store) Renew(ctx context.Context, le session.Lease) (session.Flags, error) {
	return write(ctx, s, unsynced, func(t *tx) (session.Flags, error) {
		l, err := t.fence(le)
		if err != nil {
			return session.Flags{}, err
		}
		if err := t.fill(l, narrow); err != nil {
			return session.Flags{}, err
		}
		l.Until = t.now.Add(le.TTL)
		return l.flags(), t.save(l)
	})
}

// Release implements session.Store. Durable.
func (s *Store) Release(ctx context.Context, le session.Lease) error {
	return s.do(ctx, synced, func(t *tx) error {
		l, err := t.fence(le)
		if err != nil {
			return err
		}
		if err := t.fill(l, narrow); err != nil {
			return err
		}
		l.Nonce, l.Until = "", time.Time{}
		l.Released = l.Turn != 0
		return t.save(l)
	})
}

// Commit implements session.Store. Durable.
func (s *Store) Commit(ctx context.Context, le session.Lease, r session.Commit) (session.Committed, error) {
	return write(ctx, s, synced, func(t *tx) (session.Committed, error) { return t.commit(le, r) })
}

func (t *tx) commit(le session.Lease, r session.Commit) (session.Committed, error) {
	l, err := t.lane(le.Key)
	if err != nil {
		return session.Committed{}, err
	}
	if l != nil {
		var c session.Committed
		if ok, err := t.recall(l, r.Op, false, &c); ok || err != nil {
			return c, err
		}
	}
	if l, err = t.fence(le); err != nil {
		return session.Committed{}, err
	}
	if l.Turn == 0 || l.Seq != r.Seq {
		return session.Committed{}, session.ErrStale
	}
	if err := t.fill(l, narrow); err != nil {
		return session.Committed{}, err
	}
	if err := t.take(l, r.Take); err != nil {
		return session.Committed{}, err
	}
	c, err := t.step(l, le, r)
	if err != nil {
		return session.Committed{}, err
	}
	l.Touched = t.now
	if err := t.save(l); err != nil {
		return session.Committed{}, err
	}
	c.Seq, c.Flags = l.Seq, l.flags()
	return c, t.remember(l, r.Op, false, c)
}

// step does the writes of a commit in their order, all guards passed.
func (t *tx) step(l *lane, le session.Lease, r session.Commit) (c session.Committed, err error) {
	if _, err := t.append(l, r.Rows...); err != nil {
		return c, err
	}
	if r.Drain {
		if c.Steers, err = t.drain(l, r.Step); err != nil {
			return c, err
		}
	}
	if err := t.setJobs(l, r.Jobs, false); err != nil {
		return c, err
	}
	wasEmpty := l.Out == 0
	if err := t.plan(l, r.Outs); err != nil {
		return c, err
	}
	if err := t.setFates(l, r.Fates); err != nil {
		return c, err
	}
	if r.HoldRest {
		if _, err := t.hold(l); err != nil {
			return c, err
		}
	}
	l.Until = t.now.Add(le.TTL)
	l.Phase = r.Phase
	if r.End {
		c.More = t.end(l)
	}
	if r.TakeOut && wasEmpty && l.Out > 0 {
		p, err := t.head(l)
		if err != nil {
			return c, err
		}
		out, err := t.takeOut(l, p, le.Nonce)
		if err != nil {
			return c, err
		}
		c.Out = &out
	}
	return c, nil
}

// drain is the one drain point of session.Commit (I5): it moves steers from the
// slot onto the newest tool row, if no request has carried that row yet.
func (t *tx) drain(l *lane, step int) ([]session.Row, error) {
	var moved []session.Row
	if l.Last == session.RowTool && l.Seq > l.Sent && l.Stop != l.Turn {
		on := l.Seq
		for _, e := range slices.Clone(l.Slot) {
			if e.Held {
				continue
			}
			if e.IsOpen(t.now) {
				break
			}
			if e.Want != steer.Steer || e.Turn != l.Turn {
				continue
			}
			v, err := t.row(`SELECT data FROM slot WHERE lane = ? AND ticket = ?`, 1, l.id, e.Ticket)
			if err != nil {
				return nil, err
			}
			if len(moved) == 0 {
				l.Notes++
			}
			row, err := t.append(l, session.Row{Type: session.RowSteer, On: on, N: l.Notes, Tick: e.Ticket, Data: v.blob(0)})
			if err != nil {
				return nil, err
			}
			moved = append(moved, row)
			if err := t.setFate(l, session.FateSet{Ticket: e.Ticket, State: session.FateAttached, Turn: l.Turn, Step: step}); err != nil {
				return nil, err
			}
			if err := t.remove(l, e.Ticket); err != nil {
				return nil, err
			}
			t.stats.Steered++
			t.stats.InSlot--
		}
	}
	l.Sent = l.Seq
	return moved, nil
}

// end closes the turn and tells whether entries may run now.
func (t *tx) end(l *lane) bool {
	l.closeTurn()
	t.stats.Ended++
	more := l.ready(t.now)
	if !more && !slices.ContainsFunc(l.Jobs, func(j session.Job) bool {
		return j.State == session.JobRunning && j.Owner == l.Nonce
	}) {
		l.Nonce, l.Until = "", time.Time{}
	}
	return more
}

func (l *lane) closeTurn() {
	l.Turn, l.Stop, l.Attempts, l.Phase, l.Owner, l.TurnAt = 0, 0, 0, steer.PhaseIdle, "", time.Time{}
}
