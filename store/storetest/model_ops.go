package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// Release implements session.Store.
func (m *Model) Release(_ context.Context, le session.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.fence(le)
	if err != nil {
		return err
	}
	l.Nonce, l.Until = "", time.Time{}
	l.Released = l.Turn != 0
	return nil
}

// Amend implements session.Store.
func (m *Model) Amend(_ context.Context, r session.Amend) (session.Amended, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	l := m.find(r.Key)
	if l == nil {
		return session.Amended{Lane: session.Lane{Key: r.Key, Now: now}}, nil
	}
	if k, dup := l.dup(now, r.Dedupe); dup {
		m.stats.Duplicates++
		return session.Amended{Dup: true, Done: k.done, Lane: l.view(now)}, nil
	}
	e := l.slot[r.Ticket]
	if e == nil {
		l.mark(now, r.Dedupe, mark{ticket: r.Ticket})
		return session.Amended{Lane: l.view(now)}, nil
	}
	if r.Version != 0 && e.Version != r.Version {
		return session.Amended{}, session.ErrStale
	}
	switch r.Kind {
	case session.AmendEdit:
		e.Data = bytes.Clone(r.Data)
		e.Version++
	case session.AmendDrop:
		delete(l.slot, r.Ticket)
		m.stats.Dropped++
		l.setFate(now, session.FateSet{Ticket: r.Ticket, State: session.FateDropped})
	case session.AmendSet:
		e.Want, e.Turn, e.Held, e.Open = r.Want, r.Turn, false, time.Time{}
		e.Version++
		l.setFate(now, session.FateSet{Ticket: r.Ticket, State: r.Fate})
	default:
		panic("unknown amend kind")
	}
	l.mark(now, r.Dedupe, mark{ticket: r.Ticket, done: true})
	m.plan(l, r.Outs, now)
	return session.Amended{Done: true, Lane: l.view(now)}, nil
}

// Stop implements session.Store.
func (m *Model) Stop(_ context.Context, r session.Stop) (session.Stopped, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	l := m.find(r.Key)
	if l == nil {
		return session.Stopped{Lane: session.Lane{Key: r.Key, Now: now}}, nil
	}
	if _, dup := l.dup(now, r.Dedupe); dup {
		m.stats.Duplicates++
		return session.Stopped{Dup: true, Lane: l.view(now)}, nil
	}
	l.mark(now, r.Dedupe, mark{})
	var s session.Stopped
	if r.Only == 0 || r.Only == l.Turn {
		s.Turn, l.Stop = l.Turn, l.Turn
		if !r.Keep {
			s.Held = m.hold(l, now)
		}
		if r.Drop {
			s.Held = nil
			for _, t := range slices.Sorted(maps.Keys(l.slot)) {
				s.Held = append(s.Held, *l.slot[t])
				delete(l.slot, t)
				m.stats.Dropped++
				l.setFate(now, session.FateSet{Ticket: t, State: session.FateDropped})
			}
		}
	}
	m.plan(l, r.Outs, now)
	s.Lane = l.view(now)
	return s, nil
}

// Reset implements session.Store.
func (m *Model) Reset(_ context.Context, r session.Reset) (session.Lane, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	if _, dup := m.find(r.Key).dup(now, r.Dedupe); dup {
		m.stats.Duplicates++
		return m.find(r.Key).view(now), nil
	}
	l := m.make(r.Key)
	l.mark(now, r.Dedupe, mark{})
	if l.Turn != 0 {
		for _, f := range l.fates {
			if f.Turn == l.Turn {
				l.setFate(now, session.FateSet{Ticket: f.Ticket, State: session.FateStopped})
			}
		}
		m.stats.Ended++
	}
	m.hold(l, now)
	l.Gen++
	l.Epoch++
	l.Nonce, l.Until, l.Released = "", time.Time{}, false
	l.Seq, l.Sent, l.Last = 0, 0, 0
	l.Turn, l.Stop, l.Attempts, l.Phase, l.Owner, l.TurnAt = 0, 0, 0, steer.PhaseIdle, "", time.Time{}
	l.Title = ""
	m.plan(l, r.Outs, now)
	return l.view(now), nil
}

// Post implements session.Store.
func (m *Model) Post(_ context.Context, r session.Post) (session.Posted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	if _, dup := m.find(r.Key).dup(now, r.Dedupe); dup {
		m.stats.Duplicates++
		return session.Posted{Dup: true, Lane: m.find(r.Key).view(now)}, nil
	}
	l := m.make(r.Key)
	l.mark(now, r.Dedupe, mark{})
	if r.Prefs != nil {
		l.Prefs = bytes.Clone(r.Prefs)
	}
	if r.Title != "" {
		l.Title = r.Title
	}
	for _, j := range r.Jobs {
		if _, ok := l.jobs[j.ID]; !ok {
			continue
		}
		if j.Told {
			delete(l.jobs, j.ID)
		} else {
			l.jobs[j.ID] = j
		}
	}
	for _, j := range r.Add {
		if _, ok := l.jobs[j.ID]; !ok {
			l.jobs[j.ID] = j
		}
	}
	m.plan(l, r.Outs, now)
	return session.Posted{Lane: l.view(now)}, nil
}

// Rows implements session.Store.
func (m *Model) Rows(_ context.Context, key session.Key, gen, after int64, limit int) ([]session.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.find(key)
	if l == nil {
		return nil, nil
	}
	rows := l.rows[gen]
	if after >= int64(len(rows)) {
		return nil, nil
	}
	rows = rows[max(after, 0):]
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	return slices.Clone(rows), nil
}

// due is when a lane wants a look; ok is false if never.
func (l *lane) due() (at time.Time, ok bool) {
	if l.Key.IsSeat() {
		return time.Time{}, false
	}
	if l.Turn != 0 || l.Nonce != "" {
		return l.Until, true // an open turn without a lease has Until zero: now
	}
	for _, j := range l.jobs {
		if j.State != session.JobRunning {
			return time.Time{}, true
		}
		return time.Time{}, true // its owner is gone
	}
	if w := l.waiting(); len(w) > 0 {
		e := l.slot[w[0]]
		if !e.Open.IsZero() {
			return e.Open, true
		}
		return e.At, true
	}
	return time.Time{}, false
}

// Due implements session.Store.
func (m *Model) Due(_ context.Context, limit int) ([]session.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	type want struct {
		at time.Time
		l  *lane
	}
	var due []want
	for _, name := range slices.Sorted(maps.Keys(m.lanes)) {
		l := m.lanes[name]
		if at, ok := l.due(); ok && (!now.Before(at) || at.Sub(now) > FarAhead) {
			due = append(due, want{at, l})
		}
	}
	slices.SortStableFunc(due, func(a, b want) int { return a.at.Compare(b.at) })
	var keys []session.Key
	for _, d := range due {
		if limit > 0 && len(keys) == limit {
			break
		}
		keys = append(keys, d.l.Key)
	}
	return keys, nil
}

// take marks the head as being sent by nonce.
func (l *lane) take(now time.Time, nonce string) *session.Part {
	p := l.out[0]
	first := *p
	p.Attempt++
	first.Attempt = p.Attempt
	if p.State == session.PartPlanned {
		first.State, first.Since = session.PartSending, now
	} else {
		first.State = session.PartUnknown // Since stays: when it was tried
	}
	p.State, p.Since = session.PartSending, now
	first.Alone = len(l.out) == 1
	l.outOwner, l.outNext, l.outGiven = nonce, time.Time{}, first
	return &first
}

// OutTake implements session.Store.
func (m *Model) OutTake(_ context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	l := m.find(key)
	if l == nil || len(l.out) == 0 {
		return session.Part{}, false, 0, nil
	}
	p := l.out[0]
	if back := p.Since.Sub(now); back > 0 { // the clock was set back: what is left to wait stays (F38)
		p.Since = now
		if !l.outNext.IsZero() {
			l.outNext = l.outNext.Add(-back)
		}
	}
	if p.State == session.PartSending {
		if l.outOwner == nonce {
			again := l.outGiven
			again.Alone = len(l.out) == 1
			return again, true, 0, nil
		}
	}
	wait := l.outNext.Sub(now)
	switch {
	case p.State != session.PartPlanned:
		wait = max(wait, p.Since.Add(takeover).Sub(now))
	case l.outOwner == nonce:
		wait = 0 // kept for it
	}
	if wait > 0 {
		return session.Part{}, false, wait, nil
	}
	return *l.take(now, nonce), true, 0, nil
}

// OutDone implements session.Store.
func (m *Model) OutDone(_ context.Context, key session.Key, nonce string, d session.PartDone) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	l := m.find(key)
	if l == nil || len(l.out) == 0 {
		return nil
	}
	p := l.out[0]
	if d.ID == "" && p.State == session.PartPlanned && l.outOwner == nonce {
		l.outOwner, l.outNext = "", time.Time{}
	}
	if p.ID != d.ID || p.State != session.PartSending || l.outOwner != nonce {
		return nil
	}
	if d.State == session.PartSending {
		p.Since = now
		if l.outGiven.State == session.PartSending {
			l.outGiven.Since = now
		}
		return nil
	}
	l.outOwner = ""
	switch d.State {
	case session.PartSent:
		m.stats.OutSent++
		l.over(d, now)
	case session.PartDead:
		m.stats.OutDead++
		l.over(d, now)
	case session.PartUnknown:
		m.stats.OutUnknown++
		p.State, l.outNext = session.PartUnknown, now.Add(d.Wait) // Since stays: when it was tried
	case session.PartPlanned:
		p.State, p.Since, l.outNext = session.PartPlanned, now, now.Add(d.Wait)
	default:
		panic("a part cannot end as " + string(d.State))
	}
	return nil
}

// over removes the head and keeps the rest for a sender, if so asked.
func (l *lane) over(d session.PartDone, now time.Time) {
	l.out = l.out[1:]
	if len(l.out) > 0 && d.For != "" && d.Wait > 0 {
		l.outOwner, l.outNext = d.For, now.Add(d.Wait)
	}
}

// OutDue implements session.Store.
func (m *Model) OutDue(_ context.Context, limit int) ([]session.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	var keys []session.Key
	for _, name := range slices.Sorted(maps.Keys(m.lanes)) {
		l := m.lanes[name]
		if len(l.out) == 0 || l.outNext.After(now) && l.outNext.Sub(now) <= FarAhead {
			continue
		}
		if limit > 0 && len(keys) == limit {
			break
		}
		keys = append(keys, l.Key)
	}
	return keys, nil
}

// Fates implements session.Store.
func (m *Model) Fates(_ context.Context, key session.Key, limit int) ([]session.Fate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.find(key)
	if l == nil {
		return nil, nil
	}
	var fates []session.Fate
	for i := len(l.fates) - 1; i >= 0; i-- {
		if limit > 0 && len(fates) == limit {
			break
		}
		f := l.fates[i]
		f.Msgs = slices.Clone(f.Msgs)
		fates = append(fates, f)
	}
	return fates, nil
}

// Seen implements session.Store.
func (m *Model) Seen(_ context.Context, key session.Key, dedupe string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, seen := m.find(key).dup(m.clock(), dedupe)
	return seen, nil
}

// Settle implements session.Store.
func (m *Model) Settle(_ context.Context, key session.Key, f []session.FateSet) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.find(key); l != nil {
		for _, s := range f {
			if cur := l.fate(s.Ticket); cur != nil && cur.State != session.FateHeld && cur.State.Stage() <= s.State.Stage() {
				l.setFate(m.clock(), s)
			}
		}
	}
	return nil
}

// Sessions implements session.Store.
func (m *Model) Sessions(_ context.Context, after string, limit int) ([]session.Lane, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []session.Lane
	for _, name := range slices.Sorted(maps.Keys(m.lanes)) {
		if name <= after || m.lanes[name].Key.IsSeat() {
			continue
		}
		if limit > 0 && len(all) == limit {
			break
		}
		all = append(all, m.lanes[name].view(m.clock()))
	}
	return all, nil
}

// Delete implements session.Store.
func (m *Model) Delete(_ context.Context, key session.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.find(key)
	if l == nil {
		return nil
	}
	if l.leased(m.clock()) {
		return session.ErrHeld
	}
	m.stats.Dropped += int64(len(l.slot))
	delete(m.lanes, key.String())
	return nil
}

// Expire implements session.Store.
func (m *Model) Expire(_ context.Context, key session.Key, idle time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.find(key)
	if l == nil {
		return nil
	}
	if l.Turn != 0 || l.leased(m.clock()) || len(l.slot)+len(l.jobs)+len(l.out) > 0 || m.clock().Sub(l.Touched) < idle {
		return session.ErrStale
	}
	delete(m.lanes, key.String())
	return nil
}

// Doc implements session.Store.
func (m *Model) Doc(_ context.Context, name string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.docs[name]
	return bytes.Clone(d.data), d.version, nil
}

// PutDoc implements session.Store.
func (m *Model) PutDoc(_ context.Context, name string, version int64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.docs[name].version != version {
		return session.ErrStale
	}
	m.docs[name] = doc{data: bytes.Clone(data), version: version + 1}
	return nil
}

// Stats implements session.Store.
func (m *Model) Stats(context.Context) (session.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	for _, l := range m.lanes {
		if !l.Key.IsSeat() {
			s.Sessions++
		}
		s.InSlot += int64(len(l.slot))
	}
	return s, nil
}

// Ping implements session.Store.
func (m *Model) Ping(context.Context) error { return nil }

// Close implements session.Store. The model keeps its data: a simulated
// process closes it, the next one opens it again.
func (m *Model) Close() error { return nil }

// Forget clears every lease and marks parts being sent as unknown, as a store
// does that knows the process which held them is dead.
func (m *Model) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lanes {
		l.Nonce, l.Until = "", time.Time{}
		if len(l.out) > 0 && l.out[0].State == session.PartSending {
			l.out[0].State = session.PartUnknown
			l.outOwner, l.outNext = "", time.Time{}
		}
	}
}
