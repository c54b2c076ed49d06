package sqlite

import (
	"encoding/json"

	"coxswain/session"
)

// remember keeps the answer to the newest write of a lease holder. It is stored
// with the write, so a retry after a restart finds it too.
func (t *tx) remember(l *lane, op session.OpID, begun bool, answer any) error {
	reply, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT OR REPLACE INTO memo (lane, op, begun, reply) VALUES (?, ?, ?, ?)`, l.id, string(op), begun, reply)
	return err
}

// recall fills answer if op was the lane's newest write.
func (t *tx) recall(l *lane, op session.OpID, begun bool, answer any) (bool, error) {
	if op == "" {
		return false, nil
	}
	v, err := t.row(`SELECT reply FROM memo WHERE lane = ? AND op = ? AND begun = ?`, 1, l.id, string(op), begun)
	if err != nil || v == nil {
		return false, err
	}
	if err := json.Unmarshal(v.blob(0), answer); err != nil {
		return false, err
	}
	t.stats.Replayed++
	return true, nil
}
