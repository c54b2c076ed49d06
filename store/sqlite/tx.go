package sqlite

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A tx is one request inside the writer's transaction. Its methods run on the
// writer's goroutine; an error of theirs undoes all the request wrote.
type tx struct {
	*conn
	now   time.Time // to the millisecond
	stats *session.Stats
	sweep *sweep
}

// markLife is how long a dedupe mark counts: Telegram keeps updates for 24 h,
// twice that is kept here.
const markLife = 48 * time.Hour

// fatesKept is how many fates a lane keeps, the newest.
const fatesKept = 256

// open reads the lane of key for a change; nil if there is none.
func (t *tx) open(key session.Key, d depth) (*lane, error) {
	l, err := t.lane(key)
	if err != nil || l == nil {
		return nil, err
	}
	return l, t.fill(l, d)
}

// make gives l touched, or a new lane of key when l is nil.
func (t *tx) make(l *lane, key session.Key) (*lane, error) {
	if l == nil {
		r, err := t.exec(`INSERT INTO lane (key, gen, seq, sent, last, phase, turn, turns, turn_at, owner, attempts, stop, released,
			tickets, notes, epoch, nonce, until, touched, outs, out_n, out_next, out_own, title)
			VALUES (?, 1, 0, 0, 0, ?, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0, '', '')`,
			key.String(), steer.PhaseIdle.String())
		if err != nil {
			return nil, err
		}
		l = &lane{}
		if l.id, err = r.LastInsertId(); err != nil {
			return nil, err
		}
		l.Key, l.Exists, l.Gen = key, true, 1
		if !key.IsSeat() {
			t.stats.Sessions++
		}
	}
	l.Touched = t.now
	return l, nil
}

// save writes the lane's own columns; what is not read must not be needed for
// them, so l was filled.
func (t *tx) save(l *lane) error {
	_, err := t.exec(`UPDATE lane SET gen = ?, seq = ?, sent = ?, last = ?, phase = ?, turn = ?, turns = ?, turn_at = ?,
		owner = ?, attempts = ?, stop = ?, released = ?, tickets = ?, notes = ?, epoch = ?, nonce = ?, until = ?,
		touched = ?, due = ?, outs = ?, out_n = ?, out_next = ?, out_own = ?, title = ?, prefs = ? WHERE id = ?`,
		l.Gen, l.Seq, l.Sent, int64(l.Last), l.Phase.String(), l.Turn, l.Turns, ms(l.TurnAt),
		string(l.Owner), l.Attempts, l.Stop, l.Released, l.Tickets, l.Notes, l.Epoch, l.Nonce, ms(l.Until),
		ms(l.Touched), l.due(), l.Out, l.outN, l.outNext, l.outOwn, l.Title, l.Prefs, l.id)
	return err
}

// saveOutbox writes the columns of the outbox alone; the rest may be unread.
func (t *tx) saveOutbox(l *lane) error {
	_, err := t.exec(`UPDATE lane SET outs = ?, out_n = ?, out_next = ?, out_own = ? WHERE id = ?`,
		l.Out, l.outN, l.outNext, l.outOwn, l.id)
	return err
}

// A mark is what a dedupe key remembers: the first answer.
type mark struct {
	ticket int64
	done   bool
}

// dup looks a dedupe key up. A mark older than markLife counts as absent.
func (t *tx) dup(l *lane, key string) (m mark, seen bool, err error) {
	if l == nil || key == "" {
		return mark{}, false, nil
	}
	v, err := t.row(`SELECT at, ticket, done FROM seen WHERE lane = ? AND key = ?`, 3, l.id, key)
	if err != nil || v == nil || t.now.Sub(at(v.int(0))) > markLife {
		return mark{}, false, err
	}
	t.stats.Duplicates++
	return mark{ticket: v.int(1), done: v.bool(2)}, true, nil
}

// mark remembers a dedupe key, and looks at a few others whether they are too
// old.
func (t *tx) mark(l *lane, key string, m mark) error {
	if key == "" {
		return nil
	}
	_, err := t.exec(`INSERT OR REPLACE INTO seen (lane, key, at, ticket, done) VALUES (?, ?, ?, ?, ?)`,
		l.id, key, ms(t.now), m.ticket, m.done)
	if err != nil {
		return err
	}
	return t.sweep.step(t)
}

// A sweep goes round and round over the marks and removes old ones, a few for
// each new one: so the table stays near the size of what counts, at a constant
// price and without an index by time. It belongs to the writer. Where it
// stands is not stored; it begins anew with the process.
type sweep struct {
	lane int64
	key  string
}

// sweepStep is how many marks are looked at for one that is made. With 4 the
// table holds at most a third more than what counts.
const sweepStep = 4

func (w *sweep) step(t *tx) error {
	var old []sweep
	n := 0
	if err := t.each(`SELECT lane, key, at FROM seen WHERE (lane, key) > (?, ?) ORDER BY lane, key LIMIT ?`, 3, func(v values) error {
		n++
		w.lane, w.key = v.int(0), v.text(1)
		if t.now.Sub(at(v.int(2))) > markLife {
			old = append(old, *w)
		}
		return nil
	}, w.lane, w.key, sweepStep); err != nil {
		return err
	}
	if n < sweepStep {
		*w = sweep{}
	}
	for _, o := range old {
		if _, err := t.exec(`DELETE FROM seen WHERE lane = ? AND key = ?`, o.lane, o.key); err != nil {
			return err
		}
	}
	return nil
}

func msgsText(m []session.MessageID) (string, error) {
	b, err := json.Marshal(m)
	return string(b), err
}

// insert stores a new entry and its fate.
func (t *tx) insert(l *lane, e session.Entry, fate session.FateState) error {
	msgs, err := msgsText(e.Msgs)
	if err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO slot (lane, ticket, version, want, turn, held, open, grp, author, at, msgs, data)
		VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)`,
		l.id, e.Ticket, e.Version, e.Want.String(), e.Turn, ms(e.Open), e.Group, string(e.Author), ms(e.At), msgs, e.Data); err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO fate (lane, ticket, state, final, turn, step, waited, at, changed, msgs)
		VALUES (?, ?, ?, ?, 0, 0, ?, ?, ?, ?)`,
		l.id, e.Ticket, string(fate), fate.Final(), fate.Waits(), ms(t.now), ms(t.now), msgs); err != nil {
		return err
	}
	if e.Ticket > fatesKept {
		if _, err := t.exec(`DELETE FROM fate WHERE lane = ? AND ticket <= ?`, l.id, e.Ticket-fatesKept); err != nil {
			return err
		}
	}
	l.Slot = append(l.Slot, e)
	return nil
}

// update writes an entry that changed.
func (t *tx) update(l *lane, e *session.Entry) error {
	msgs, err := msgsText(e.Msgs)
	if err != nil {
		return err
	}
	_, err = t.exec(`UPDATE slot SET version = ?, want = ?, turn = ?, held = ?, open = ?, msgs = ?, data = ? WHERE lane = ? AND ticket = ?`,
		e.Version, e.Want.String(), e.Turn, e.Held, ms(e.Open), msgs, e.Data, l.id, e.Ticket)
	return err
}

// remove takes an entry out of the slot; the caller counts why.
func (t *tx) remove(l *lane, ticket int64) error {
	_, err := t.exec(`DELETE FROM slot WHERE lane = ? AND ticket = ?`, l.id, ticket)
	l.Slot = slices.DeleteFunc(l.Slot, func(e session.Entry) bool { return e.Ticket == ticket })
	return err
}

// take consumes entries, or says ErrStale.
func (t *tx) take(l *lane, takes []session.Take) error {
	for _, k := range takes {
		e := l.entry(k.Ticket)
		if e == nil || e.Version != k.Version {
			return session.ErrStale
		}
	}
	for _, k := range takes {
		if err := t.remove(l, k.Ticket); err != nil {
			return err
		}
		t.stats.Consumed++
		t.stats.InSlot--
	}
	return nil
}

// hold holds all that waits and closes open entries; it gives what it held.
func (t *tx) hold(l *lane) ([]session.Entry, error) {
	var held []session.Entry
	for i := range l.Slot {
		e := &l.Slot[i]
		if e.Held {
			continue
		}
		e.Held, e.Open = true, time.Time{}
		e.Version++ // a Begin that read it before must not run it
		if err := t.setFate(l, session.FateSet{Ticket: e.Ticket, State: session.FateHeld}); err != nil {
			return nil, err
		}
		held = append(held, *e)
	}
	if held == nil {
		return nil, nil
	}
	_, err := t.exec(`UPDATE slot SET held = 1, open = 0, version = version + 1 WHERE lane = ? AND held = 0`, l.id)
	return held, err
}

// setFate moves a fate that is not final.
func (t *tx) setFate(l *lane, s session.FateSet) error {
	if s.State == "" {
		return nil
	}
	_, err := t.exec(`UPDATE fate SET state = ?, final = ?, changed = ?, waited = waited OR ?,
		turn = CASE WHEN ?5 = 0 THEN turn ELSE ?5 END, step = CASE WHEN ?6 = 0 AND final = 0 THEN step ELSE ?6 END
		WHERE lane = ?7 AND ticket = ?8 AND (final = 0 OR state IN ('failed', 'stopped') AND ?1 = 'running' AND ?5 > turn)`,
		string(s.State), s.State.Final(), ms(t.now), s.State.Waits(), s.Turn, s.Step, l.id, s.Ticket)
	return err
}

func (t *tx) setFates(l *lane, sets []session.FateSet) error {
	for _, s := range sets {
		if err := t.setFate(l, s); err != nil {
			return err
		}
	}
	return nil
}

const appendRow = `INSERT INTO line (lane, gen, seq, turn, type, onto, note, tick, at, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// append adds rows to the transcript and gives the last one as stored.
func (t *tx) append(l *lane, rows ...session.Row) (session.Row, error) {
	var last session.Row
	for _, r := range rows {
		l.Seq++
		r.Seq, r.Turn, r.At = l.Seq, l.Turn, t.now
		if _, err := t.exec(appendRow, l.id, l.Gen, r.Seq, r.Turn, int64(r.Type), r.On, r.N, r.Tick, ms(r.At), r.Data); err != nil {
			return last, err
		}
		l.Last, last = r.Type, r
	}
	return last, nil
}

// setJobs inserts or replaces jobs and removes told ones; known keeps to jobs
// that are there.
func (t *tx) setJobs(l *lane, jobs []session.Job, known bool) error {
	for _, j := range jobs {
		i := slices.IndexFunc(l.Jobs, func(o session.Job) bool { return o.ID == j.ID })
		if i < 0 && known {
			continue
		}
		if j.Told {
			if err := t.forgetJob(l, j.ID); err != nil {
				return err
			}
			continue
		}
		if _, err := t.exec(`INSERT OR REPLACE INTO job (lane, id, turn, owner, name, state, at, body, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			l.id, j.ID, j.Turn, j.Owner, j.Name, string(j.State), j.At, j.Body, []byte(j.Data)); err != nil {
			return err
		}
		if i >= 0 {
			l.Jobs[i] = j
			continue
		}
		i, _ = slices.BinarySearchFunc(l.Jobs, j, func(a, b session.Job) int { return strings.Compare(a.ID, b.ID) })
		l.Jobs = slices.Insert(l.Jobs, i, j)
	}
	return nil
}

func (t *tx) forgetJob(l *lane, id string) error {
	_, err := t.exec(`DELETE FROM job WHERE lane = ? AND id = ?`, l.id, id)
	l.Jobs = slices.DeleteFunc(l.Jobs, func(j session.Job) bool { return j.ID == id })
	return err
}

// plan adds parts to the outbox.
func (t *tx) plan(l *lane, outs []session.PartNew) error {
	for _, p := range outs {
		l.outN++
		l.Out++
		if _, err := t.exec(`INSERT INTO part (lane, n, id, kind, turn, state, attempt, since, tried, data) VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, ?)`,
			l.id, l.outN, p.ID, string(p.Kind), p.Turn, string(session.PartPlanned), ms(t.now), p.Data); err != nil {
			return err
		}
		t.stats.OutPlanned++
	}
	return nil
}
