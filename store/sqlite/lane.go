package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A lane is what one operation works on: the lane as read, changed in memory,
// then saved. Slot and Jobs are filled by fill.
type lane struct {
	session.Lane
	id      int64
	outN    int64
	outNext int64
	outOwn  string
}

// How much of a slot entry to read.
type depth bool

const (
	narrow depth = false // Data stays nil and its pages unread
	full   depth = true
)

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

const (
	laneColumns = `id, key, gen, seq, sent, last, phase, turn, turns, turn_at, owner, attempts, stop, released,
		tickets, notes, epoch, nonce, until, touched, outs, out_n, out_next, out_own, title, prefs`
	laneWidth = 26
	laneByKey = `SELECT ` + laneColumns + ` FROM lane WHERE key = ?`
	laneByID  = `SELECT ` + laneColumns + ` FROM lane WHERE id = ?`
	laneAfter = `SELECT ` + laneColumns + ` FROM lane WHERE key > ? AND key NOT GLOB 'seat:*' ORDER BY key LIMIT ?`

	slotNarrow = `SELECT ticket, version, want, turn, held, open, grp, author, at, NULL, NULL FROM slot WHERE lane = ? ORDER BY ticket`
	slotFull   = `SELECT ticket, version, want, turn, held, open, grp, author, at, msgs, data FROM slot WHERE lane = ? ORDER BY ticket`
	slotWidth  = 11

	jobsOf   = `SELECT id, turn, owner, name, state, at, body, data FROM job WHERE lane = ? ORDER BY id`
	jobWidth = 8
)

func laneOf(v values) (*lane, error) {
	l := &lane{id: v.int(0)}
	var err error
	if l.Key, err = session.ParseKey(v.text(1)); err != nil {
		return nil, err
	}
	if l.Phase, err = steer.ParsePhase(v.text(6)); err != nil {
		return nil, fmt.Errorf("lane %d: %w", l.id, err)
	}
	l.Exists = true
	l.Gen, l.Seq, l.Sent, l.Last = v.int(2), v.int(3), v.int(4), session.RowType(v.int(5))
	l.Turn, l.Turns, l.TurnAt = v.int(7), v.int(8), at(v.int(9))
	l.Owner, l.Attempts, l.Stop, l.Released = session.UserID(v.text(10)), int(v.int(11)), v.int(12), v.bool(13)
	l.Tickets, l.Notes = v.int(14), v.int(15)
	l.Epoch, l.Nonce, l.Until = v.int(16), v.text(17), at(v.int(18))
	l.Touched, l.Out = at(v.int(19)), int(v.int(20))
	l.outN, l.outNext, l.outOwn = v.int(21), v.int(22), v.text(23)
	l.Title, l.Prefs = v.text(24), v.blob(25)
	return l, nil
}

// lane reads the lane of key without slot and jobs; nil if there is none.
func (c *conn) lane(key session.Key) (*lane, error) {
	v, err := c.row(laneByKey, laneWidth, key.String())
	if err != nil || v == nil {
		return nil, err
	}
	return laneOf(v)
}

// fill reads what waits and the jobs.
func (c *conn) fill(l *lane, d depth) error {
	q := slotNarrow
	if d == full {
		q = slotFull
	}
	err := c.each(q, slotWidth, func(v values) error {
		e := session.Entry{
			Ticket: v.int(0), Version: v.int(1), Turn: v.int(3), Held: v.bool(4), Open: at(v.int(5)),
			Group: v.text(6), Author: session.UserID(v.text(7)), At: at(v.int(8)),
		}
		var err error
		if e.Want, err = steer.ParseMode(v.text(2)); err != nil {
			return fmt.Errorf("ticket %d: %w", e.Ticket, err)
		}
		if d == full {
			if err := json.Unmarshal([]byte(v.text(9)), &e.Msgs); err != nil {
				return fmt.Errorf("ticket %d: %w", e.Ticket, err)
			}
			e.Data = v.blob(10)
		}
		l.Slot = append(l.Slot, e)
		return nil
	}, l.id)
	if err != nil {
		return err
	}
	return c.each(jobsOf, jobWidth, func(v values) error {
		l.Jobs = append(l.Jobs, session.Job{
			ID: v.text(0), Turn: v.int(1), Owner: v.text(2), Name: v.text(3),
			State: session.JobState(v.text(4)), At: v.int(5), Body: v.text(6), Data: v.blob(7),
		})
		return nil
	}, l.id)
}

// view reads the lane of key whole; the zero Lane if there is none.
func (c *conn) view(key session.Key, now time.Time) (session.Lane, error) {
	l, err := c.lane(key)
	if err != nil {
		return session.Lane{}, err
	}
	if l == nil {
		return session.Lane{Key: key, Now: now}, nil
	}
	if err := c.fill(l, full); err != nil {
		return session.Lane{}, err
	}
	return l.view(now), nil
}

// view is the lane as callers get it. The operation is over: nothing is copied.
func (l *lane) view(now time.Time) session.Lane {
	l.Now = now
	return l.Lane
}

func (l *lane) entry(ticket int64) *session.Entry {
	for i := range l.Slot {
		if l.Slot[i].Ticket == ticket {
			return &l.Slot[i]
		}
	}
	return nil
}

func (l *lane) leased(now time.Time) bool { return l.Nonce != "" && now.Before(l.Until) }

// first is the lowest entry that waits, or nil.
func (l *lane) first() *session.Entry {
	for i := range l.Slot {
		if !l.Slot[i].Held {
			return &l.Slot[i]
		}
	}
	return nil
}

func (l *lane) waiting() int {
	n := 0
	for i := range l.Slot {
		if !l.Slot[i].Held {
			n++
		}
	}
	return n
}

// ready reports whether the lowest waiting entry may run now.
func (l *lane) ready(now time.Time) bool {
	e := l.first()
	return e != nil && !e.IsOpen(now)
}

func (l *lane) flags() session.Flags {
	f := session.Flags{Stop: l.Turn != 0 && l.Stop == l.Turn}
	for i := range l.Slot {
		e := &l.Slot[i]
		if e.Held {
			f.Held++
			continue
		}
		f.Waiting++
		if e.Want == steer.Interrupt {
			f.Intr = e.Ticket
		}
		if e.Want == steer.Steer && e.Turn == l.Turn && l.Turn != 0 {
			f.Steers++
		}
	}
	return f
}

// due is when the lane wants a look, nil = never, as of a seat: the end of the lease while
// one is held, else at once for an open turn or a job, else when the first
// entry may run.
func (l *lane) due() any {
	switch e := l.first(); {
	case l.Key.IsSeat():
		return nil
	case l.Turn != 0 || l.Nonce != "":
		return ms(l.Until)
	case len(l.Jobs) > 0:
		return int64(0)
	case e == nil:
		return nil
	case !e.Open.IsZero():
		return ms(e.Open)
	default:
		return ms(e.At)
	}
}
