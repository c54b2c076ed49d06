package sqlite

import (
	"context"
	"encoding/json"

	"coxswain/session"
)

// Settle implements session.Store. Not synced.
func (s *Store) Settle(ctx context.Context, key session.Key, f []session.FateSet) error {
	return s.do(ctx, unsynced, func(t *tx) error {
		v, err := t.row(`SELECT id FROM lane WHERE key = ?`, 1, key.String())
		if err != nil || v == nil {
			return err
		}
		l := &lane{id: v.int(0)}
		for _, set := range f {
			cur, err := t.row(`SELECT state FROM fate WHERE lane = ? AND ticket = ?`, 1, l.id, set.Ticket)
			if err != nil {
				return err
			}
			if cur == nil {
				continue
			}
			// It may come late: what is held, or further on, stays.
			if was := session.FateState(cur.text(0)); was == session.FateHeld || was.Stage() > set.State.Stage() {
				continue
			}
			if err := t.setFate(l, set); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	fateColumns = `SELECT ticket, state, turn, step, waited, at, changed, msgs FROM fate WHERE lane = ?`
	fateWidth   = 8
)

func fateOf(v values) (session.Fate, error) {
	f := session.Fate{
		Ticket: v.int(0), State: session.FateState(v.text(1)), Turn: v.int(2), Step: int(v.int(3)),
		Waited: v.bool(4), At: v.int(5), Changed: v.int(6),
	}
	return f, json.Unmarshal([]byte(v.text(7)), &f.Msgs)
}

// fateMsg adds a message to the fate of a ticket, if that is still kept.
func (t *tx) fateMsg(l *lane, ticket int64, msg session.MessageID) error {
	v, err := t.row(fateColumns+` AND ticket = ?`, fateWidth, l.id, ticket)
	if err != nil || v == nil {
		return err
	}
	f, err := fateOf(v)
	if err != nil {
		return err
	}
	msgs, err := msgsText(append(f.Msgs, msg))
	if err != nil {
		return err
	}
	_, err = t.exec(`UPDATE fate SET msgs = ? WHERE lane = ? AND ticket = ?`, msgs, l.id, ticket)
	return err
}

// stopFates ends the fates of the open turn that are not final.
func (t *tx) stopFates(l *lane) error {
	_, err := t.exec(`UPDATE fate SET state = ?, final = 1, changed = ? WHERE lane = ? AND turn = ? AND final = 0`,
		string(session.FateStopped), ms(t.now), l.id, l.Turn)
	return err
}
