package sqlite

import (
	"context"
	"errors"
	"time"

	"coxswain/session"
)

// States of a part as stored.
const (
	planned = string(session.PartPlanned)
	sending = string(session.PartSending)
	unknown = string(session.PartUnknown)
)

// A part is a row of the outbox.
type part struct {
	session.Part
	n     int64
	tried time.Time // sending, but given as unknown: Since of the attempt before
}

// given is the part as its sender gets it.
func (p part) given(l *lane) session.Part {
	g := p.Part
	g.Alone = l.Out == 1
	if !p.tried.IsZero() {
		g.State, g.Since = session.PartUnknown, p.tried
	}
	return g
}

// outbox reads the lane of key with the columns of its outbox alone; nil if
// there is none or nothing is in it.
func (t *tx) outbox(key session.Key) (*lane, error) {
	v, err := t.row(`SELECT id, outs, out_n, out_next, out_own FROM lane WHERE key = ?`, 5, key.String())
	if err != nil || v == nil || v.int(1) == 0 {
		return nil, err
	}
	l := &lane{id: v.int(0), outN: v.int(2), outNext: v.int(3), outOwn: v.text(4)}
	l.Key, l.Out = key, int(v.int(1))
	return l, nil
}

// head reads the first part of the lane's outbox.
func (t *tx) head(l *lane) (part, error) {
	v, err := t.row(`SELECT n, id, kind, turn, state, attempt, since, data, tried FROM part WHERE lane = ? ORDER BY n LIMIT 1`, 9, l.id)
	if err != nil || v == nil {
		return part{}, err
	}
	p := part{n: v.int(0), tried: at(v.int(8))}
	p.ID, p.Kind, p.Turn, p.Data = v.text(1), session.PartKind(v.text(2)), v.int(3), v.blob(7)
	p.Key, p.State, p.Attempt, p.Since = l.Key, session.PartState(v.text(4)), int(v.int(5)), at(v.int(6))
	return p, nil
}

func (t *tx) savePart(l *lane, p part) error {
	_, err := t.exec(`UPDATE part SET state = ?, attempt = ?, since = ?, tried = ? WHERE lane = ? AND n = ?`,
		string(p.State), p.Attempt, ms(p.Since), ms(p.tried), l.id, p.n)
	return err
}

// takeOut marks the head as being sent by nonce; the caller saves l.
func (t *tx) takeOut(l *lane, p part, nonce string) (session.Part, error) {
	p.Attempt++
	p.tried = time.Time{}
	if p.State != session.PartPlanned {
		p.tried = p.Since
	}
	p.State, p.Since = session.PartSending, t.now
	l.outOwn, l.outNext = nonce, 0
	return p.given(l), t.savePart(l, p)
}

type taken struct {
	part session.Part
	ok   bool
	wait time.Duration
}

// OutTake implements session.Store. Not synced.
func (s *Store) OutTake(ctx context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error) {
	k, err := write(ctx, s, unsynced, func(t *tx) (taken, error) {
		l, err := t.outbox(key)
		if err != nil || l == nil {
			return taken{}, err
		}
		p, err := t.head(l)
		if err != nil {
			return taken{}, err
		}
		if back := p.Since.Sub(t.now); back > 0 { // copied from a store whose clock was ahead: what is left to wait stays
			p.Since = t.now
			l.outNext -= min(l.outNext, back.Milliseconds())
			if err := errors.Join(t.savePart(l, p), t.saveOutbox(l)); err != nil {
				return taken{}, err
			}
		}
		if p.State == session.PartSending {
			if l.outOwn == nonce { // the reply was lost
				return taken{part: p.given(l), ok: true}, nil
			}
		}
		wait := at(l.outNext).Sub(t.now)
		switch {
		case p.State != session.PartPlanned:
			wait = max(wait, p.Since.Add(takeover).Sub(t.now))
		case l.outOwn == nonce:
			wait = 0 // kept for it
		}
		if wait > 0 {
			return taken{wait: wait}, nil
		}
		given, err := t.takeOut(l, p, nonce)
		if err != nil {
			return taken{}, err
		}
		return taken{part: given, ok: true}, t.saveOutbox(l)
	})
	return k.part, k.ok, k.wait, err
}

// OutDone implements session.Store. Not synced.
func (s *Store) OutDone(ctx context.Context, key session.Key, nonce string, d session.PartDone) error {
	switch d.State {
	case session.PartSent, session.PartDead, session.PartUnknown, session.PartPlanned, session.PartSending:
	default:
		panic("a part cannot end as " + string(d.State))
	}
	return s.do(ctx, unsynced, func(t *tx) error {
		l, err := t.outbox(key)
		if err != nil || l == nil {
			return err
		}
		p, err := t.head(l)
		if err != nil {
			return err
		}
		if d.ID == "" && p.State == session.PartPlanned && l.outOwn == nonce {
			l.outOwn, l.outNext = "", 0
			return t.saveOutbox(l)
		}
		if p.ID != d.ID || p.State != session.PartSending || l.outOwn != nonce {
			return nil
		}
		if d.State == session.PartSending {
			p.Since = t.now
			return t.savePart(l, p)
		}
		l.outOwn = ""
		if err := t.endPart(l, p, d); err != nil {
			return err
		}
		return t.saveOutbox(l)
	})
}

func (t *tx) endPart(l *lane, p part, d session.PartDone) error {
	switch d.State {
	case session.PartSent, session.PartDead:
		if d.State == session.PartSent {
			t.stats.OutSent++
		} else {
			t.stats.OutDead++
		}
		l.Out--
		if l.Out > 0 && d.For != "" && d.Wait > 0 {
			l.outOwn, l.outNext = d.For, ms(t.now.Add(d.Wait))
		}
		_, err := t.exec(`DELETE FROM part WHERE lane = ? AND n = ?`, l.id, p.n)
		return err
	case session.PartUnknown:
		t.stats.OutUnknown++
		p.State = session.PartUnknown // Since stays: when it was tried
	default: // PartPlanned
		p.State, p.Since = session.PartPlanned, t.now
	}
	l.outNext = ms(t.now.Add(d.Wait))
	return t.savePart(l, p)
}
