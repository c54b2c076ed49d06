package sqlite

import "coxswain/session"

func (c *conn) loadStats() (s session.Stats, err error) {
	v, err := c.row(`SELECT accepted, duplicates, full, consumed, steered, dropped, in_slot, turns, ended,
		recovered, fenced, replayed, out_planned, out_sent, out_unknown, out_dead, sessions FROM stats`, 17)
	if err != nil || v == nil {
		return s, err
	}
	for i, n := range counters(&s) {
		*n = v.int(i)
	}
	return s, nil
}

func (c *conn) saveStats(s session.Stats) error {
	var args []any
	for _, n := range counters(&s) {
		args = append(args, *n)
	}
	_, err := c.exec(`UPDATE stats SET accepted = ?, duplicates = ?, full = ?, consumed = ?, steered = ?, dropped = ?,
		in_slot = ?, turns = ?, ended = ?, recovered = ?, fenced = ?, replayed = ?, out_planned = ?, out_sent = ?,
		out_unknown = ?, out_dead = ?, sessions = ?`, args...)
	return err
}

// counters lists the fields in the order of the columns.
func counters(s *session.Stats) []*int64 {
	return []*int64{
		&s.Accepted, &s.Duplicates, &s.Full, &s.Consumed, &s.Steered, &s.Dropped, &s.InSlot, &s.Turns, &s.Ended,
		&s.Recovered, &s.Fenced, &s.Replayed, &s.OutPlanned, &s.OutSent, &s.OutUnknown, &s.OutDead, &s.Sessions,
	}
}
