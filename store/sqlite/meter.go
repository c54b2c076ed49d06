package sqlite

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"coxswain/session"
)

//go:embed meter.sql
var meterSchema string

// meterSweep is how many rows of each kind that are over a write removes at most:
// more than it adds, so they come to an end, and few, for a day ends at once for
// all.
const meterSweep = 8

// A meter is one window of a session.Meter.
type meter struct {
	window, ends, used, extra int64
	marks                     []string
}

// storedMeter reads a meter of the file that is not over; nil if there is none.
func (t *tx) storedMeter(name string) (*meter, error) {
	v, err := t.row(`SELECT window, ends, used, extra, marks FROM meter WHERE name = ?`, 5, name)
	if err != nil || v == nil || v.int(1) <= ms(t.now) {
		return nil, err
	}
	k := &meter{window: v.int(0), ends: v.int(1), used: v.int(2), extra: v.int(3)}
	return k, json.Unmarshal([]byte(v.text(4)), &k.marks)
}

// meter gives the present window of c, as yet unused if there is none.
func (t *tx) meter(c session.Meter) (*meter, error) {
	now := ms(t.now)
	fresh := meter{ends: now + session.MeterIdle.Milliseconds(), marks: []string{}}
	if p := c.Period.Milliseconds(); p > 0 {
		fresh.window = now / p * p
		fresh.ends = fresh.window + p
	}
	k, err := t.storedMeter(c.Name)
	if err != nil || k == nil || k.window != fresh.window {
		return &fresh, err
	}
	k.ends = fresh.ends
	return k, nil
}

func (t *tx) saveMeter(name string, k *meter) error {
	marks, err := json.Marshal(k.marks)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT OR REPLACE INTO meter (name, window, ends, used, extra, marks) VALUES (?, ?, ?, ?, ?, ?)`,
		name, k.window, k.ends, k.used, k.extra, string(marks))
	return err
}

// Reserve implements session.Store. Not synced: a kill -9 loses nothing, and what
// a power cut may lose is the newest call of each turn, for the turn's next step
// is synced and takes with it all that was written before.
func (s *Store) Reserve(ctx context.Context, r session.Reserve) (session.Reserved, error) {
	return write(ctx, s, unsynced, func(t *tx) (session.Reserved, error) { return t.reserve(r) })
}

func (t *tx) reserve(r session.Reserve) (a session.Reserved, err error) {
	if r.Amount > 0 {
		v, err := t.row(`SELECT ends, reply FROM spend WHERE op = ?`, 2, r.Op)
		if err != nil {
			return a, err
		}
		if v != nil && v.int(0) > ms(t.now) {
			return a, json.Unmarshal([]byte(v.text(1)), &a)
		}
	}
	have := make([]*meter, len(r.Meters))
	for i, c := range r.Meters {
		if have[i], err = t.meter(c); err != nil {
			return a, err
		}
		if k := have[i]; r.Amount > 0 && a.Refused == "" && k.used+r.Amount > c.Limit+k.extra {
			a.Refused = c.Name
			if c.Period > 0 {
				a.Wait = time.Duration(k.ends-ms(t.now)) * time.Millisecond
			}
		}
	}
	take := r.Amount > 0 && a.Refused == ""
	ends, names := int64(0), make([]string, len(r.Meters))
	for i, c := range r.Meters {
		k := have[i]
		if names[i] = c.Name; take {
			k.used += r.Amount
			ends = max(ends, k.ends)
			if err := t.saveMeter(c.Name, k); err != nil {
				return a, err
			}
		}
		a.Meters = append(a.Meters, session.MeterState{Used: k.used, Limit: c.Limit + k.extra, Grants: int64(len(k.marks)), Window: k.window})
	}
	if !take {
		return a, nil
	}
	reply, err := json.Marshal(a)
	if err != nil {
		return a, err
	}
	on, err := json.Marshal(names)
	if err != nil {
		return a, err
	}
	if _, err := t.exec(`INSERT OR REPLACE INTO spend (op, ends, amount, spent, names, reply) VALUES (?, ?, ?, 0, ?, ?)`,
		r.Op, ends, r.Amount, string(on), string(reply)); err != nil {
		return a, err
	}
	return a, t.sweepMeters()
}

// sweepMeters removes some of what is over.
func (t *tx) sweepMeters() error {
	for _, q := range []string{
		`DELETE FROM spend WHERE op IN (SELECT op FROM spend WHERE ends <= ? LIMIT ?)`,
		`DELETE FROM meter WHERE name IN (SELECT name FROM meter WHERE ends <= ? LIMIT ?)`,
	} {
		if _, err := t.exec(q, ms(t.now), int64(meterSweep)); err != nil {
			return err
		}
	}
	return nil
}

// Spent implements session.Store. Not synced.
func (s *Store) Spent(ctx context.Context, op string, actual int64) error {
	return s.do(ctx, unsynced, func(t *tx) error {
		v, err := t.row(`SELECT ends, amount, names, reply FROM spend WHERE op = ? AND spent = 0 AND ends > ?`, 4, op, ms(t.now))
		if err != nil || v == nil {
			return err
		}
		var names []string
		var a session.Reserved
		if err := json.Unmarshal([]byte(v.text(2)), &names); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(v.text(3)), &a); err != nil {
			return err
		}
		for i, name := range names {
			k, err := t.storedMeter(name)
			if err != nil {
				return err
			}
			if k == nil || k.window != a.Meters[i].Window {
				continue
			}
			k.used = max(0, k.used+max(0, actual)-v.int(1))
			if err := t.saveMeter(name, k); err != nil {
				return err
			}
		}
		_, err = t.exec(`UPDATE spend SET spent = 1, ends = ? WHERE op = ?`, min(v.int(0), ms(t.now.Add(session.SpentKept))), op)
		return err
	})
}

// Grant implements session.Store. Durable: people are told that it goes on.
func (s *Store) Grant(ctx context.Context, g session.Grant) (session.Granted, error) {
	return write(ctx, s, synced, func(t *tx) (session.Granted, error) {
		k, err := t.storedMeter(g.Meter)
		switch {
		case err != nil:
			return session.Granted{}, err
		case k == nil || k.window != g.Window:
			return session.Granted{Outcome: session.GrantGone}, nil
		case slices.Contains(k.marks, g.Mark):
			return session.Granted{Outcome: session.GrantDup}, nil
		}
		k.marks = append(k.marks, g.Mark)
		k.extra += g.Extra
		return session.Granted{}, t.saveMeter(g.Meter, k)
	})
}
