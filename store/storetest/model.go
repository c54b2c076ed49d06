// Package storetest holds what every store is measured with: Model, the store
// as an executable specification in memory; Run, the suite a store must pass;
// and Faulty, which fails, loses or delays the n-th call of an operation.
//
// Model is safe for use from any goroutine; one mutex makes each operation
// atomic, which is the ordering every store promises per lane. It starts no
// goroutines.
package storetest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// Model is the store in memory, written to be read: where a sentence of
// session.Store leaves a detail open, Model decides. It outlives the
// simulated processes of a test, as a file would.
type Model struct {
	mu    sync.Mutex
	now   func() time.Time
	lanes map[string]*lane
	docs  map[string]doc
	stats session.Stats

	meters map[string]*meter
	ops    map[string]*meterOp
}

type doc struct {
	data    []byte
	version int64
}

// A lane is one session key's whole state.
type lane struct {
	session.Lane                          // Slot, Jobs, Out, Now are filled by view
	slot         map[int64]*session.Entry // by ticket
	jobs         map[string]session.Job
	rows         map[int64][]session.Row // by generation
	seen         map[string]mark
	out          []*session.Part
	outOwner     string       // nonce that is sending the head, or that the rest is kept for until outNext
	outGiven     session.Part // as it was given to outOwner
	outNext      time.Time
	ttl          time.Duration  // of the lease
	fates        []session.Fate // by ticket
	memoOp       session.OpID
	memoBegun    session.Begun
	memo         session.Committed
}

// A mark is what a dedupe key remembers: the first answer.
type mark struct {
	at     time.Time
	ticket int64
	done   bool
}

// Limits every store shares.
const (
	// MarkLife is how long a dedupe mark counts: Telegram keeps updates for
	// 24 h, twice that is kept here.
	MarkLife = 48 * time.Hour
	// FarAhead is how far ahead a time in Due and OutDue may lie: one that lies
	// further was written before the clock was set back, mostly, and somebody
	// looks (F38). A flood's wait may be longer, which costs a look.
	FarAhead = time.Minute
	// FatesKept is how many fates a lane keeps, the newest.
	FatesKept = 256
)

// NewModel makes an empty store on the given clock.
func NewModel(now func() time.Time) *Model {
	return &Model{now: now, lanes: map[string]*lane{}, docs: map[string]doc{}, meters: map[string]*meter{}, ops: map[string]*meterOp{}}
}

var _ session.Store = (*Model)(nil)

func (m *Model) clock() time.Time { return m.now().Truncate(time.Millisecond) }

// find gives the lane of key, or nil.
func (m *Model) find(key session.Key) *lane { return m.lanes[key.String()] }

// make gives the lane of key, made if it does not exist.
func (m *Model) make(key session.Key) *lane {
	l := m.find(key)
	if l == nil {
		l = &lane{
			slot: map[int64]*session.Entry{}, jobs: map[string]session.Job{},
			rows: map[int64][]session.Row{}, seen: map[string]mark{},
		}
		l.Key, l.Exists, l.Gen = key, true, 1
		m.lanes[key.String()] = l
	}
	l.Touched = m.clock()
	return l
}

// view is the lane as callers see it: a copy.
func (l *lane) view(now time.Time) session.Lane {
	v := l.Lane
	v.Prefs = bytes.Clone(l.Prefs)
	v.Slot, v.Jobs = nil, nil
	for _, t := range slices.Sorted(maps.Keys(l.slot)) {
		e := *l.slot[t]
		e.Msgs = slices.Clone(e.Msgs)
		e.Data = bytes.Clone(e.Data)
		v.Slot = append(v.Slot, e)
	}
	for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
		v.Jobs = append(v.Jobs, l.jobs[id])
	}
	v.Out, v.Now = len(l.out), now
	return v
}

// dup looks a dedupe key up and, if it is new, leaves the caller to set it.
func (l *lane) dup(now time.Time, key string) (mark, bool) {
	if l == nil || key == "" {
		return mark{}, false
	}
	k, ok := l.seen[key]
	if !ok || now.Sub(k.at) > MarkLife {
		return mark{}, false
	}
	return k, true
}

func (l *lane) mark(now time.Time, key string, k mark) {
	if key != "" {
		k.at = now
		l.seen[key] = k
	}
}

// waiting gives the tickets that wait and are not held, in order.
func (l *lane) waiting() []int64 {
	var w []int64
	for _, t := range slices.Sorted(maps.Keys(l.slot)) {
		if !l.slot[t].Held {
			w = append(w, t)
		}
	}
	return w
}

// ready reports whether the lowest waiting entry may run now.
func (l *lane) ready(now time.Time) bool {
	w := l.waiting()
	return len(w) > 0 && !l.slot[w[0]].IsOpen(now)
}

func (l *lane) flags() session.Flags {
	f := session.Flags{Stop: l.Turn != 0 && l.Stop == l.Turn}
	for _, t := range slices.Sorted(maps.Keys(l.slot)) {
		e := l.slot[t]
		if e.Held {
			f.Held++
			continue
		}
		f.Waiting++
		if e.Want == steer.Interrupt {
			f.Intr = t
		}
		if e.Want == steer.Steer && e.Turn == l.Turn && l.Turn != 0 {
			f.Steers++
		}
	}
	return f
}

func (m *Model) plan(l *lane, outs []session.PartNew, now time.Time) {
	for _, o := range outs {
		o.Data = bytes.Clone(o.Data)
		l.out = append(l.out, &session.Part{PartNew: o, Key: l.Key, State: session.PartPlanned, Since: now})
		m.stats.OutPlanned++
	}
}

func (l *lane) fate(ticket int64) *session.Fate {
	i, ok := slices.BinarySearchFunc(l.fates, ticket, func(f session.Fate, t int64) int { return cmp.Compare(f.Ticket, t) })
	if !ok {
		return nil
	}
	return &l.fates[i]
}

func (l *lane) setFate(now time.Time, s session.FateSet) {
	f := l.fate(s.Ticket)
	if f == nil || s.State == "" || f.State.Final() && !f.Again(s) {
		return
	}
	if f.State.Final() {
		f.Step = 0 // it went in at a step of the turn before
	}
	f.State, f.Changed = s.State, now.UnixMilli()
	f.Waited = f.Waited || s.State.Waits()
	if s.Turn != 0 {
		f.Turn = s.Turn
	}
	if s.Step != 0 {
		f.Step = s.Step
	}
}

func (l *lane) setFates(now time.Time, sets []session.FateSet) {
	for _, s := range sets {
		l.setFate(now, s)
	}
}

func (l *lane) append(now time.Time, rows []session.Row) {
	for _, r := range rows {
		l.Seq++
		r.Seq, r.Turn, r.At = l.Seq, l.Turn, now
		r.Data = bytes.Clone(r.Data)
		l.rows[l.Gen] = append(l.rows[l.Gen], r)
		l.Last = r.Type
	}
}

// takeAll consumes entries, or changes nothing and says ErrStale.
func (m *Model) takeAll(l *lane, takes []session.Take) error {
	for _, t := range takes {
		if e := l.slot[t.Ticket]; e == nil || e.Version != t.Version {
			return session.ErrStale
		}
	}
	for _, t := range takes {
		delete(l.slot, t.Ticket)
		m.stats.Consumed++
	}
	return nil
}

// leased: an end far ahead was written before the clock was set back, and the lease
// is over (F38).
func (l *lane) leased(now time.Time) bool {
	return l.Nonce != "" && now.Before(l.Until) && l.Until.Sub(now) <= 2*l.ttl
}

func (l *lane) lease(now time.Time, ttl time.Duration) { l.Until, l.ttl = now.Add(ttl), ttl }

func (m *Model) fence(le session.Lease) (*lane, error) {
	l := m.find(le.Key)
	if l == nil || l.Epoch != le.Epoch || l.Nonce != le.Nonce || l.Nonce == "" {
		m.stats.Fenced++
		return nil, session.ErrFenced
	}
	return l, nil
}

// Accept implements session.Store.
func (m *Model) Accept(_ context.Context, r session.Accept) (session.Accepted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	if k, dup := m.find(r.Key).dup(now, r.Dedupe); dup {
		m.stats.Duplicates++
		return session.Accepted{Outcome: session.AcceptDup, Ticket: k.ticket, Lane: m.find(r.Key).view(now)}, nil
	}
	l := m.make(r.Key)
	if l.Title == "" {
		l.Title = r.Title
	}
	var open time.Time
	if r.Open > 0 {
		open = now.Add(r.Open)
	}
	if r.Append && r.Group != "" {
		for _, t := range l.waiting() {
			e := l.slot[t]
			if e.Group == r.Group && e.Author == r.Author && e.IsOpen(now) &&
				len(e.Data)+1+len(r.Data) <= session.EntryMaxBytes {
				e.Data = append(append(e.Data, '\n'), r.Data...)
				e.Msgs = append(e.Msgs, r.Msg)
				e.Open, e.Version = open, e.Version+1
				if f := l.fate(t); f != nil {
					f.Msgs = append(f.Msgs, r.Msg)
				}
				if e.Want == steer.Steer && r.Want == steer.Queue {
					e.Want = steer.Queue
					l.setFate(now, session.FateSet{Ticket: t, State: session.FateQueued})
				}
				l.mark(now, r.Dedupe, mark{ticket: t})
				return session.Accepted{Outcome: session.AcceptJoined, Ticket: t, Lane: l.view(now)}, nil
			}
		}
	}
	if (l.Turn != 0 || r.Turn < 0) && len(l.waiting()) >= session.SlotCap {
		l.mark(now, r.Dedupe, mark{})
		m.plan(l, r.Full, now)
		m.stats.Full++
		return session.Accepted{Outcome: session.AcceptFull, Lane: l.view(now)}, nil
	}
	l.Tickets++
	l.slot[l.Tickets] = &session.Entry{
		Ticket: l.Tickets, Version: 1, Want: r.Want, Turn: r.Turn, Open: open, Group: r.Group,
		Author: r.Author, Msgs: []session.MessageID{r.Msg}, At: now, Data: bytes.Clone(r.Data),
	}
	l.fates = append(l.fates, session.Fate{
		Ticket: l.Tickets, Msgs: []session.MessageID{r.Msg}, State: r.Fate, Waited: r.Fate.Waits(),
		At: now.UnixMilli(), Changed: now.UnixMilli(),
	})
	if len(l.fates) > FatesKept {
		l.fates = slices.Clone(l.fates[len(l.fates)-FatesKept:])
	}
	l.mark(now, r.Dedupe, mark{ticket: l.Tickets})
	m.stats.Accepted++
	return session.Accepted{Outcome: session.AcceptOK, Ticket: l.Tickets, Lane: l.view(now)}, nil
}

// Load implements session.Store.
func (m *Model) Load(_ context.Context, key session.Key) (session.Lane, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.find(key)
	if l == nil {
		return session.Lane{Key: key, Now: m.clock()}, nil
	}
	return l.view(m.clock()), nil
}

// Begin implements session.Store.
func (m *Model) Begin(_ context.Context, r session.Begin) (session.Begun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	l := m.find(r.Key)
	if l == nil {
		return session.Begun{}, session.ErrStale
	}
	if l.memoOp == r.Op && r.Op != "" {
		m.stats.Replayed++
		return l.memoBegun, nil
	}
	if l.leased(now) && l.Nonce != r.Nonce {
		return session.Begun{}, session.ErrHeld
	}
	if l.Turn != 0 || l.Gen != r.Gen || l.Seq != r.Seq {
		return session.Begun{}, session.ErrStale
	}
	for _, id := range r.Jobs {
		if _, ok := l.jobs[id]; !ok {
			return session.Begun{}, session.ErrStale
		}
	}
	if err := m.takeAll(l, r.Take); err != nil {
		return session.Begun{}, err
	}
	for _, id := range r.Jobs {
		delete(l.jobs, id)
	}
	l.Epoch++
	l.Nonce = r.Nonce
	l.lease(now, r.TTL)
	l.Turns++
	l.Turn, l.TurnAt, l.Owner, l.Phase = l.Turns, now, r.Owner, r.Phase
	l.Attempts, l.Stop, l.Released = 0, 0, false
	l.append(now, r.Rows)
	l.Sent = l.Seq
	for _, f := range r.Fates {
		if f.Turn == 0 {
			f.Turn = l.Turn
		}
		l.setFate(now, f)
	}
	m.plan(l, r.Outs, now)
	m.stats.Turns++
	b := session.Begun{
		Lease: session.Lease{Key: l.Key, Epoch: l.Epoch, Nonce: r.Nonce, TTL: r.TTL},
		Lane:  l.view(now),
	}
	l.memoOp, l.memoBegun = r.Op, b
	return b, nil
}

// Claim implements session.Store.
func (m *Model) Claim(_ context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	l := m.find(key)
	if l == nil && key.IsSeat() {
		l = m.make(key)
	}
	if l == nil {
		return session.Begun{}, session.ErrGone
	}
	if l.leased(now) && l.Nonce != nonce {
		return session.Begun{}, session.ErrHeld
	}
	if !l.leased(now) {
		l.Epoch++
		l.Nonce = nonce
		if l.Turn != 0 && !l.Released {
			l.Attempts++
			m.stats.Recovered++
		}
		l.Released = false
	}
	l.lease(now, ttl)
	return session.Begun{
		Lease: session.Lease{Key: key, Epoch: l.Epoch, Nonce: nonce, TTL: ttl},
		Lane:  l.view(now),
	}, nil
}

// Renew implements session.Store.
func (m *Model) Renew(_ context.Context, le session.Lease) (session.Flags, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.fence(le)
	if err != nil {
		return session.Flags{}, err
	}
	l.lease(m.clock(), le.TTL)
	return l.flags(), nil
}

// Commit implements session.Store.
func (m *Model) Commit(_ context.Context, le session.Lease, r session.Commit) (session.Committed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	if l := m.find(le.Key); l != nil && r.Op != "" && l.memoOp == r.Op {
		m.stats.Replayed++
		return l.memo, nil
	}
	l, err := m.fence(le)
	if err != nil {
		return session.Committed{}, err
	}
	if l.Turn == 0 || l.Seq != r.Seq {
		return session.Committed{}, session.ErrStale
	}
	if err := m.takeAll(l, r.Take); err != nil {
		return session.Committed{}, err
	}
	l.append(now, r.Rows)
	var c session.Committed
	if r.Drain {
		c.Steers = m.drain(l, now, r.Step)
	}
	for _, j := range r.Jobs {
		if j.Told {
			delete(l.jobs, j.ID)
		} else {
			l.jobs[j.ID] = j
		}
	}
	wasEmpty := len(l.out) == 0
	m.plan(l, r.Outs, now)
	l.setFates(now, r.Fates)
	if r.HoldRest {
		m.hold(l, now)
	}
	l.lease(now, le.TTL)
	l.Phase = r.Phase
	if r.End {
		c.More = m.end(l, now)
	}
	if r.TakeOut && wasEmpty && len(l.out) > 0 {
		c.Out = l.take(now, le.Nonce)
	}
	l.Touched = now
	c.Seq, c.Flags = l.Seq, l.flags()
	l.memoOp, l.memo = r.Op, c
	return c, nil
}

// drain is the one drain point of session.Commit (I5).
func (m *Model) drain(l *lane, now time.Time, step int) []session.Row {
	var moved []session.Row
	if l.Last == session.RowTool && l.Seq > l.Sent && l.Stop != l.Turn {
		on := l.Seq
		for _, t := range l.waiting() {
			e := l.slot[t]
			if e.IsOpen(now) {
				break
			}
			if e.Want != steer.Steer || e.Turn != l.Turn {
				continue
			}
			if len(moved) == 0 {
				l.Notes++
			}
			l.append(now, []session.Row{{Type: session.RowSteer, On: on, N: l.Notes, Tick: t, Data: e.Data}})
			moved = append(moved, l.rows[l.Gen][len(l.rows[l.Gen])-1])
			l.setFate(now, session.FateSet{Ticket: t, State: session.FateAttached, Turn: l.Turn, Step: step})
			delete(l.slot, t)
			m.stats.Steered++
		}
	}
	l.Sent = l.Seq
	return moved
}

// hold holds all that waits and closes open entries.
func (m *Model) hold(l *lane, now time.Time) []session.Entry {
	var held []session.Entry
	for _, t := range l.waiting() {
		e := l.slot[t]
		e.Held, e.Open = true, time.Time{}
		e.Version++ // a Begin that read it before must not run it
		l.setFate(now, session.FateSet{Ticket: t, State: session.FateHeld})
		held = append(held, *e)
	}
	return held
}

// end closes the turn and tells whether entries may run now.
func (m *Model) end(l *lane, now time.Time) bool {
	l.Turn, l.Stop, l.Attempts, l.Phase, l.Owner, l.TurnAt = 0, 0, 0, steer.PhaseIdle, "", time.Time{}
	m.stats.Ended++
	more := l.ready(now)
	keep := more
	for _, j := range l.jobs {
		keep = keep || j.State == session.JobRunning && j.Owner == l.Nonce
	}
	if !keep {
		l.Nonce, l.Until = "", time.Time{}
	}
	return more
}
