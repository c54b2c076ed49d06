package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"

	"coxswain/session"
)

var _ session.Archive = (*Store)(nil)

// Identity implements session.Archive. It is drawn when it is first asked for.
func (s *Store) Identity(ctx context.Context) (string, error) {
	return write(ctx, s, synced, func(t *tx) (string, error) {
		b := make([]byte, 16)
		rand.Read(b)
		if _, err := t.exec(`INSERT OR IGNORE INTO meta (name, value) VALUES ('id', ?)`, hex.EncodeToString(b)); err != nil {
			return "", err
		}
		v, err := t.row(`SELECT value FROM meta WHERE name = 'id'`, 1)
		if err != nil {
			return "", err
		}
		return "sqlite:" + v.text(0), nil
	})
}

// TakeOver implements session.Archive: the lock has done it.
func (s *Store) TakeOver(context.Context) error { return nil }

// Dump implements session.Archive.
func (s *Store) Dump(ctx context.Context, key session.Key) (session.LaneDump, error) {
	return read(ctx, s, func(c *conn) (d session.LaneDump, err error) {
		l, err := c.lane(key)
		if err != nil || l == nil {
			return d, err
		}
		if err := c.fill(l, full); err != nil {
			return d, err
		}
		next := l.outNext
		d.Lane = l.view(s.now())
		d.Lane.Nonce, d.Lane.Until = "", time.Time{}
		v, err := c.row(`SELECT state, attempt, since FROM part WHERE lane = ? ORDER BY n LIMIT 1`, 3, l.id)
		if err != nil {
			return d, err
		}
		if v != nil {
			d.Head = session.Head{State: session.PartState(v.text(0)), Attempt: int(v.int(1)), Next: at(next)}
			switch d.Head.State {
			case session.PartSending:
				d.Head.State, d.Head.Since, d.Head.Next = session.PartUnknown, at(v.int(2)), time.Time{}
			case session.PartUnknown:
				d.Head.Since = at(v.int(2))
			}
		}
		if err := c.each(`SELECT key, at, ticket, done FROM seen WHERE lane = ? ORDER BY key`, 4, func(v values) error {
			d.Marks = append(d.Marks, session.Mark{Key: v.text(0), At: at(v.int(1)), Ticket: v.int(2), Done: v.bool(3)})
			return nil
		}, l.id); err != nil {
			return d, err
		}
		v, err = c.row(`SELECT op, begun, reply FROM memo WHERE lane = ?`, 3, l.id)
		if err != nil || v == nil {
			return d, err
		}
		d.Memo.Op = session.OpID(v.text(0))
		if v.bool(1) {
			d.Memo.Begun = new(session.Begun)
			return d, json.Unmarshal(v.blob(2), d.Memo.Begun)
		}
		d.Memo.Committed = new(session.Committed)
		return d, json.Unmarshal(v.blob(2), d.Memo.Committed)
	})
}

// Parts implements session.Archive.
func (s *Store) Parts(ctx context.Context, key session.Key, after int64, limit int) ([]session.PartNew, error) {
	return read(ctx, s, func(c *conn) (parts []session.PartNew, err error) {
		l, err := c.row(`SELECT id FROM lane WHERE key = ?`, 1, key.String())
		if err != nil || l == nil {
			return nil, err
		}
		err = c.each(`SELECT id, kind, turn, data FROM part WHERE lane = ? ORDER BY n LIMIT ? OFFSET ?`, 4, func(v values) error {
			parts = append(parts, session.PartNew{ID: v.text(0), Kind: session.PartKind(v.text(1)), Turn: v.int(2), Data: v.blob(3)})
			return nil
		}, l.int(0), bound(limit), after)
		return parts, err
	})
}

// DocNames implements session.Archive.
func (s *Store) DocNames(ctx context.Context) ([]string, error) {
	return read(ctx, s, func(c *conn) (names []string, err error) {
		err = c.each(`SELECT name FROM doc ORDER BY name`, 1, func(v values) error {
			names = append(names, v.text(0))
			return nil
		})
		return names, err
	})
}

// Import implements session.Archive.
func (s *Store) Import(ctx context.Context, p session.LanePage) error {
	return s.do(ctx, synced, func(t *tx) error {
		if p.First {
			// The tables of a lane follow it by their foreign keys.
			if _, err := t.exec(`DELETE FROM lane WHERE key = ?`, p.Key.String()); err != nil {
				return err
			}
			// Counted at the end; what is here meanwhile counts for nobody.
			before := *t.stats
			_, err := t.make(nil, p.Key)
			*t.stats = before
			if err != nil {
				return err
			}
		}
		l, err := t.lane(p.Key)
		if err != nil {
			return err
		}
		if l == nil {
			return session.ErrStale // its first page is not here
		}
		if err := t.importPage(l, p); err != nil || p.Last == nil {
			return err
		}
		return t.importLane(l, p)
	})
}

const importRow = `INSERT OR REPLACE INTO line (lane, gen, seq, turn, type, onto, note, tick, at, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (t *tx) importPage(l *lane, p session.LanePage) error {
	for _, r := range p.Rows {
		if _, err := t.exec(importRow,
			l.id, p.Gen, r.Seq, r.Turn, int64(r.Type), r.On, r.N, r.Tick, ms(r.At), r.Data); err != nil {
			return err
		}
	}
	for _, m := range p.Marks {
		if _, err := t.exec(`INSERT OR REPLACE INTO seen (lane, key, at, ticket, done) VALUES (?, ?, ?, ?, ?)`,
			l.id, m.Key, ms(m.At), m.Ticket, m.Done); err != nil {
			return err
		}
	}
	for i, part := range p.Parts {
		if _, err := t.exec(`INSERT OR REPLACE INTO part (lane, n, id, kind, turn, state, attempt, since, tried, data) VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, ?)`,
			l.id, p.After+int64(i)+1, part.ID, string(part.Kind), part.Turn, planned, ms(t.now), part.Data); err != nil {
			return err
		}
	}
	return nil
}

// importLane writes what a lane is apart from its pages.
func (t *tx) importLane(old *lane, p session.LanePage) error {
	l := &lane{Lane: p.Last.Lane, id: old.id, outN: int64(p.Last.Lane.Out), outNext: ms(p.Last.Head.Next)}
	l.Key, l.Nonce, l.Until = p.Key, "", time.Time{}
	if l.Out > 0 {
		h := p.Last.Head
		if _, err := t.exec(`UPDATE part SET state = ?, attempt = ?, since = ? WHERE lane = ? AND n = 1`,
			string(h.State), h.Attempt, ms(h.Since), l.id); err != nil {
			return err
		}
	}
	for _, e := range l.Slot {
		msgs, err := msgsText(e.Msgs)
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT OR REPLACE INTO slot (lane, ticket, version, want, turn, held, open, grp, author, at, msgs, data)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			l.id, e.Ticket, e.Version, e.Want.String(), e.Turn, e.Held, ms(e.Open), e.Group, string(e.Author), ms(e.At), msgs, e.Data); err != nil {
			return err
		}
	}
	for _, f := range p.Fates {
		msgs, err := msgsText(f.Msgs)
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT OR REPLACE INTO fate (lane, ticket, state, final, turn, step, waited, at, changed, msgs)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			l.id, f.Ticket, string(f.State), f.State.Final(), f.Turn, f.Step, f.Waited, f.At, f.Changed, msgs); err != nil {
			return err
		}
	}
	jobs := l.Jobs
	l.Jobs = nil // setJobs adds them
	if err := t.setJobs(l, jobs, false); err != nil {
		return err
	}
	if err := t.importMemo(l, p.Last.Memo); err != nil {
		return err
	}
	return t.save(l)
}

func (t *tx) importMemo(l *lane, m session.Memo) error {
	switch {
	case m.Begun != nil:
		return t.remember(l, m.Op, true, m.Begun)
	case m.Committed != nil:
		return t.remember(l, m.Op, false, m.Committed)
	}
	return nil
}

// ImportDoc implements session.Archive.
func (s *Store) ImportDoc(ctx context.Context, name string, version int64, data []byte) error {
	return s.do(ctx, synced, func(t *tx) error {
		_, err := t.exec(`INSERT OR REPLACE INTO doc (name, version, data) VALUES (?, ?, ?)`, name, version, data)
		return err
	})
}

// ImportStats implements session.Archive.
func (s *Store) ImportStats(ctx context.Context, st session.Stats) error {
	return s.do(ctx, synced, func(t *tx) error {
		v, err := t.row(`SELECT (SELECT count(*) FROM slot), (SELECT count(*) FROM lane)`, 2)
		if err != nil {
			return err
		}
		st.InSlot, st.Sessions = v.int(0), v.int(1)
		*t.stats = st
		return nil
	})
}
