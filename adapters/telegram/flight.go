package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

const (
	// loadsMost is how many files are loaded at a time. Chats are not limited:
	// what else is done for an update is one short write, and a /stop must not
	// wait behind the files of other chats (T12).
	loadsMost = 16
	// shortPoll is how long the poll waits for slow chats before it looks for
	// what else is new.
	shortPoll = 500 * time.Millisecond
)

// An item is one raw update.
type item struct {
	u   update
	raw json.RawMessage
	bad error
	old bool // came while the gateway was away (T31)
	// commented: a forward by the same person is behind it (T6)
	commented bool
}

// A flight holds the updates that were received and are not confirmed: order
// is kept within a chat, chats do not wait for one another. At most as many as
// one poll gives are in it, for a poll gives no update beyond those; or as many
// as Telegram pushes at a time.
//
// add, offset and wait are the poll's, take is the webhook's and may be called
// from any goroutine; each chat with work has a goroutine.
type flight struct {
	a     *Adapter
	lanes sync.WaitGroup

	mu     sync.Mutex
	order  []int64            // ids, as received; only of polled updates
	taken  map[int64]*transit // what is in flight, and polled updates that others hold up
	queues map[int64][]item   // chats with a goroutine, and what waits there
	next   int64              // the id after the last one received
	idle   chan struct{}      // closed when nothing is in flight; nil = nothing is

	ctx    context.Context // of the lanes of pushed updates
	closed bool            // nothing is pushed any more
	gone   chan struct{}   // closed with it
}

// A transit is one update on its way to the door.
type transit struct {
	over  bool
	taken chan struct{} // closed with over
}

func newFlight(a *Adapter) *flight {
	return &flight{a: a, taken: make(map[int64]*transit), queues: make(map[int64][]item), gone: make(chan struct{})}
}

// offset gives the offset that confirms all the door has taken without a gap,
// and reports whether there are others.
func (f *flight) offset() (offset int64, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.order) > 0 && f.taken[f.order[0]].over {
		delete(f.taken, f.order[0])
		f.order = f.order[1:]
	}
	if len(f.order) > 0 {
		return f.order[0], true
	}
	return f.next, false
}

// add takes in a batch and returns how many of it are new. False when ctx ended
// before all were handed on.
func (f *flight) add(ctx context.Context, batch []json.RawMessage) (fresh int, ok bool) {
	if len(batch) > 0 && !f.a.untilDone(ctx, "read when last here", func() error { return f.a.loadAway(ctx) }) {
		return 0, false
	}
	var items []item
	for _, raw := range batch {
		it := f.read(raw)
		f.mu.Lock()
		_, known := f.taken[it.u.ID]
		f.mu.Unlock()
		if known {
			continue
		}
		f.answer(ctx, it)
		items = append(items, it)
	}
	if len(items) == 0 {
		return 0, true
	}
	if !f.know(ctx, items) {
		return 0, false
	}
	// All at once: the lane of a chat sees what is behind an update (T6).
	f.mu.Lock()
	for _, it := range items {
		if it.u.ID == 0 {
			continue
		}
		fresh++
		f.order = append(f.order, it.u.ID)
		f.next = it.u.ID + 1 // the ids of a batch rise; the last confirms all
		f.pushLocked(ctx, it)
	}
	f.mu.Unlock()
	for _, it := range items {
		// What has no id cannot be confirmed, so it is not in flight either.
		if it.u.ID == 0 && !f.a.takeOne(ctx, &it) {
			return fresh, false
		}
	}
	return fresh, ctx.Err() == nil
}

// read decodes an update; what cannot be decoded is an item all the same.
func (f *flight) read(raw json.RawMessage) item {
	it := item{raw: raw, old: f.a.away.backlog()}
	if it.bad = json.Unmarshal(raw, &it.u); it.bad != nil {
		var id struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &id)
		it.u = update{ID: id.ID}
	} else if it.u.ID == 0 {
		it.bad = errors.New("no update_id") // it cannot be confirmed, so it is only kept
	}
	return it
}

// answer answers a press, before anything else is done about it (T32).
func (f *flight) answer(ctx context.Context, it item) {
	if it.u.Callback == nil {
		return
	}
	words := ""
	if it.old {
		words = wordsVoid
	}
	f.a.beside.Go(func() { f.a.answer(ctx, it.u.Callback.ID, words) })
}

// know finds out what must be known before updates are read: where groups have
// gone, in whichever of its two chats one speaks (T16).
func (f *flight) know(ctx context.Context, items []item) bool {
	if !f.a.untilDone(ctx, "read chats", func() error { return f.a.loadAliases(ctx, false) }) {
		return false
	}
	for _, it := range items {
		if !f.a.untilDone(ctx, "store migration", func() error { return f.a.migrated(ctx, it.u.Message) }) {
			return false
		}
	}
	return true
}

// take sees one pushed update through, as add does with polled ones, and
// reports whether the door has taken it before ctx ended. One that has not been
// taken by then goes on; when it comes again it is waited for again.
func (f *flight) take(ctx context.Context, raw json.RawMessage) bool {
	if !f.a.untilDone(ctx, "read when last here", func() error { return f.a.loadAway(ctx) }) {
		return false
	}
	it := f.read(raw)
	if !f.know(ctx, []item{it}) {
		return false
	}
	if it.u.ID == 0 {
		return f.a.takeOne(ctx, &it)
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false
	}
	way := f.taken[it.u.ID]
	if way == nil {
		f.answer(f.ctx, it)
		way = f.pushLocked(f.ctx, it)
	}
	f.mu.Unlock()
	select {
	case <-way.taken:
		return true
	case <-f.gone:
	case <-ctx.Done():
	}
	return false
}

// close ends the pushing: what is not taken comes again, to the next process.
func (f *flight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	close(f.gone)
}

// pushLocked puts an item behind those of its chat.
func (f *flight) pushLocked(ctx context.Context, it item) *transit {
	chat := f.a.aliases.from(it.u.chat()) // both chats of a moved group are one
	way := &transit{taken: make(chan struct{})}
	f.taken[it.u.ID] = way
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	if s, ok := it.u.stopOf(); ok {
		f.a.hurry.comes(s)
	}
	queue, running := f.queues[chat]
	f.queues[chat] = append(queue, it)
	if !running {
		f.lanes.Go(func() { f.lane(ctx, chat) })
	}
	return way
}

// lane sees to one chat until nothing waits there or ctx ends.
func (f *flight) lane(ctx context.Context, chat int64) {
	for {
		f.mu.Lock()
		queue := f.queues[chat]
		if len(queue) == 0 {
			delete(f.queues, chat)
			if len(f.queues) == 0 {
				close(f.idle)
				f.idle = nil
			}
			f.mu.Unlock()
			return
		}
		it := queue[0]
		f.queues[chat] = queue[1:]
		it.commented = len(queue) > 1 && comments(it.u.said(), queue[1].u.said())
		f.mu.Unlock()
		if s, ok := it.u.stopOf(); ok {
			f.a.hurry.taken(s)
		}
		if !f.a.takeOne(ctx, &it) {
			return
		}
		f.mu.Lock()
		way := f.taken[it.u.ID]
		way.over = true
		close(way.taken)
		if f.ctx != nil { // pushed: Telegram keeps the order, no offset does
			delete(f.taken, it.u.ID)
		}
		f.mu.Unlock()
	}
}

// comments reports whether a message is the comment on the forward behind it:
// clients send it first.
func comments(m, next *message) bool {
	return m != nil && next != nil && m.Origin == nil && next.Origin != nil &&
		m.sender() == next.sender() && m.Thread == next.Thread && next.Date-m.Date <= 1
}

// wait returns when nothing is in flight, or after a moment.
func (f *flight) wait(ctx context.Context) {
	f.mu.Lock()
	idle := f.idle
	f.mu.Unlock()
	if idle == nil {
		return
	}
	t := time.NewTimer(shortPoll)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	case <-ctx.Done():
	}
}
