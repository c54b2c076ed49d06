package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"coxswain/session"
)

// A meter is one window of a session.Meter.
type meter struct {
	window int64 // when it began, Unix ms
	ends   time.Time
	used   int64
	extra  int64
	marks  map[string]bool
}

// A meterOp is what Reserve remembers of what it took.
type meterOp struct {
	ends   time.Time
	amount int64
	spent  bool
	names  []string
	answer session.Reserved
}

// meter gives the meter's present window, as yet unused if there is none. It is
// not kept.
func (m *Model) meter(now time.Time, c session.Meter) *meter {
	window, ends := int64(0), now.Add(session.MeterIdle)
	if p := c.Period.Milliseconds(); p > 0 {
		window = now.UnixMilli() / p * p
		ends = time.UnixMilli(window + p)
	}
	k := m.meters[c.Name]
	if k == nil || k.window != window || !now.Before(k.ends) {
		return &meter{window: window, ends: ends, marks: map[string]bool{}}
	}
	return &meter{window: window, ends: ends, used: k.used, extra: k.extra, marks: k.marks}
}

func (k *meter) state(limit int64) session.MeterState {
	return session.MeterState{Used: k.used, Limit: limit + k.extra, Grants: int64(len(k.marks)), Window: k.window}
}

// Reserve implements session.Store.
func (m *Model) Reserve(_ context.Context, r session.Reserve) (session.Reserved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	maps.DeleteFunc(m.ops, func(_ string, o *meterOp) bool { return !now.Before(o.ends) })
	maps.DeleteFunc(m.meters, func(_ string, k *meter) bool { return !now.Before(k.ends) })
	if o := m.ops[r.Op]; o != nil && r.Amount > 0 {
		a := o.answer
		a.Meters = slices.Clone(a.Meters)
		return a, nil
	}
	var a session.Reserved
	var have []*meter
	for _, c := range r.Meters {
		k := m.meter(now, c)
		have = append(have, k)
		if r.Amount > 0 && a.Refused == "" && k.used+r.Amount > c.Limit+k.extra {
			a.Refused = c.Name
			if c.Period > 0 {
				a.Wait = k.ends.Sub(now)
			}
		}
	}
	take := r.Amount > 0 && a.Refused == ""
	op := &meterOp{amount: r.Amount, ends: now}
	for i, c := range r.Meters {
		k := have[i]
		if take {
			k.used += r.Amount
			m.meters[c.Name] = k
			op.names = append(op.names, c.Name)
			if k.ends.After(op.ends) {
				op.ends = k.ends
			}
		}
		a.Meters = append(a.Meters, k.state(c.Limit))
	}
	if take {
		op.answer = a
		op.answer.Meters = slices.Clone(a.Meters)
		m.ops[r.Op] = op
	}
	return a, nil
}

// Spent implements session.Store.
func (m *Model) Spent(_ context.Context, op string, actual int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	o := m.ops[op]
	if o == nil || !now.Before(o.ends) || o.spent {
		return nil
	}
	o.spent = true
	if kept := now.Add(session.SpentKept); kept.Before(o.ends) {
		o.ends = kept
	}
	for i, name := range o.names {
		if k := m.meters[name]; k != nil && now.Before(k.ends) && k.window == o.answer.Meters[i].Window {
			k.used = max(0, k.used+max(0, actual)-o.amount)
		}
	}
	return nil
}

// Grant implements session.Store.
func (m *Model) Grant(_ context.Context, g session.Grant) (session.Granted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.meters[g.Meter]
	switch {
	case k == nil || k.window != g.Window || !m.clock().Before(k.ends):
		return session.Granted{Outcome: session.GrantGone}, nil
	case k.marks[g.Mark]:
		return session.Granted{Outcome: session.GrantDup}, nil
	}
	k.marks[g.Mark] = true
	k.extra += g.Extra
	return session.Granted{}, nil
}

// Meters is what each meter that is not over has counted, in the order of their
// names.
func (m *Model) Meters() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var used []int64
	for _, name := range slices.Sorted(maps.Keys(m.meters)) {
		if k := m.meters[name]; m.clock().Before(k.ends) {
			used = append(used, k.used)
		}
	}
	return used
}

// stayBehind forgets what no copy of a store carries: budgets, which begin anew,
// and seats, which are claimed anew.
func (m *Model) stayBehind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.meters)
	clear(m.ops)
	maps.DeleteFunc(m.lanes, func(_ string, l *lane) bool { return l.Key.IsSeat() })
}
