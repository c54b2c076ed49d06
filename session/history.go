package session

import (
	"container/list"
	"sync"
)

// histories keeps the rows of sessions in memory after their actors have
// ended, so that a turn reads only what it does not know (I12). The least
// recently used go first when the bound is passed. Safe for any goroutine; a
// session's own entry is used by its actor alone.
type histories struct {
	mu    sync.Mutex
	most  int64 // bytes
	size  int64
	order *list.List // of *history, newest use first
	byKey map[Key]*list.Element
}

type history struct {
	key  Key
	gen  int64
	rows []Row
	size int64
}

// rowOverhead is what a row costs in memory beside its data.
const rowOverhead = 120

func newHistories(most int64) *histories {
	return &histories{most: most, order: list.New(), byKey: map[Key]*list.Element{}}
}

// get gives the rows known of a generation: a prefix of it, maybe empty.
func (h *histories) get(key Key, gen int64) []Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byKey[key]
	if e == nil || e.Value.(*history).gen != gen {
		return nil
	}
	h.order.MoveToFront(e)
	return e.Value.(*history).rows
}

// put remembers rows, which begin a generation and are not changed any more
// (more may be appended behind them).
func (h *histories) put(key Key, gen int64, rows []Row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byKey[key]
	if e == nil {
		e = h.order.PushFront(&history{key: key})
		h.byKey[key] = e
	}
	v := e.Value.(*history)
	known := len(v.rows)
	if v.gen != gen || known > len(rows) {
		h.size -= v.size
		v.size, known = 0, 0
	}
	for _, r := range rows[known:] {
		v.size += int64(len(r.Data)) + rowOverhead
		h.size += int64(len(r.Data)) + rowOverhead
	}
	v.gen, v.rows = gen, rows
	h.order.MoveToFront(e)
	for h.size > h.most && h.order.Len() > 1 {
		last := h.order.Back()
		h.size -= last.Value.(*history).size
		delete(h.byKey, last.Value.(*history).key)
		h.order.Remove(last)
	}
}

// drop forgets a session.
func (h *histories) drop(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.byKey[key]; e != nil {
		h.size -= e.Value.(*history).size
		delete(h.byKey, key)
		h.order.Remove(e)
	}
}
