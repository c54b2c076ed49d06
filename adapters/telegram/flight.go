package telegram

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

const (
	// lanesMost is how many chats are seen to at a time.
	lanesMost = 16
	// shortPoll is how long the poll waits for slow chats before it looks for
	// what else is new.
	shortPoll = 500 * time.Millisecond
)

// An item is one raw update.
type item struct {
	u   update
	raw json.RawMessage
	bad error
}

// A flight holds the updates that were received and are not confirmed: order
// is kept within a chat, chats do not wait for one another. At most as many as
// one poll gives are in it, for a poll gives no update beyond those.
//
// add, offset and wait are the poll's; each chat with work has a goroutine.
type flight struct {
	a      *Adapter
	beside *sync.WaitGroup // of the answers to presses
	lanes  sync.WaitGroup
	places chan struct{}

	mu     sync.Mutex
	order  []int64          // ids, as received
	taken  map[int64]bool   // of them: true when the door has taken it
	queues map[int64][]item // chats with a goroutine, and what waits there
	next   int64            // the id after the last one received
	idle   chan struct{}    // closed when nothing is in flight; nil = nothing is
}

func newFlight(a *Adapter, beside *sync.WaitGroup) *flight {
	return &flight{a: a, beside: beside, places: make(chan struct{}, lanesMost),
		taken: make(map[int64]bool), queues: make(map[int64][]item)}
}

// offset gives the offset that confirms all the door has taken without a gap,
// and reports whether there are others.
func (f *flight) offset() (offset int64, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.order) > 0 && f.taken[f.order[0]] {
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
	var items []item
	for _, raw := range batch {
		it := item{raw: raw}
		if it.bad = json.Unmarshal(raw, &it.u); it.bad != nil {
			var id struct {
				ID int64 `json:"update_id"`
			}
			_ = json.Unmarshal(raw, &id) // without an id it is only kept
			it.u = update{ID: id.ID}
		}
		f.mu.Lock()
		_, known := f.taken[it.u.ID]
		f.mu.Unlock()
		if known {
			continue
		}
		if it.u.Callback != nil {
			f.beside.Go(func() { f.a.answer(ctx, it.u.Callback.ID) })
		}
		items = append(items, it)
	}
	if len(items) == 0 {
		return 0, true
	}
	if !f.a.untilDone(ctx, "read chats", func() error { return f.a.loadAliases(ctx, false) }) {
		return 0, false
	}
	// Where a group has gone must be known before anything of it is read, in
	// whichever of its two chats (T16).
	for _, it := range items {
		if !f.a.untilDone(ctx, "store migration", func() error { return f.a.migrated(ctx, it.u.Message) }) {
			return 0, false
		}
	}
	for _, it := range items {
		if it.u.ID == 0 { // cannot be confirmed, so it is not in flight either
			if !f.a.takeOne(ctx, &it) {
				return fresh, false
			}
			continue
		}
		fresh++
		f.push(ctx, it)
	}
	return fresh, ctx.Err() == nil
}

// push puts an item behind those of its chat.
func (f *flight) push(ctx context.Context, it item) {
	chat := f.a.aliases.from(it.u.chat()) // both chats of a moved group are one
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order = append(f.order, it.u.ID)
	f.taken[it.u.ID] = false
	f.next = it.u.ID + 1 // the ids of a batch rise; the last confirms all
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	queue, running := f.queues[chat]
	f.queues[chat] = append(queue, it)
	if !running {
		f.lanes.Go(func() { f.lane(ctx, chat) })
	}
}

// lane sees to one chat until nothing waits there or ctx ends.
func (f *flight) lane(ctx context.Context, chat int64) {
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-ctx.Done():
		return
	}
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
		f.mu.Unlock()
		if !f.a.takeOne(ctx, &it) {
			return
		}
		f.mu.Lock()
		f.taken[it.u.ID] = true
		f.mu.Unlock()
	}
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
