package discord

import (
	"context"
	"sync"
	"sync/atomic"
)

const (
	// lanesMost is how many channels are seen to at a time.
	lanesMost = 16
	// flightMost is how many events wait in lanes before the socket is read no
	// further. A store that is away for minutes does not reach it in most chats.
	flightMost = 1024
)

// A flight holds the events that have come and are not taken: order is kept
// within a channel, channels do not wait for one another. push is the reading
// goroutine's; each channel with work has a goroutine.
type flight struct {
	a      *Adapter
	ctx    context.Context
	lanes  sync.WaitGroup
	beside sync.WaitGroup // of answers to interactions
	active chan struct{}  // a place for each lane that works
	room   chan struct{}  // a place for each event
	full   atomic.Bool    // push waits for room

	mu     sync.Mutex
	queues map[string][]func(context.Context) // channels with a goroutine, and what waits there
}

func newFlight(a *Adapter, ctx context.Context) *flight {
	return &flight{a: a, ctx: ctx, active: make(chan struct{}, lanesMost), room: make(chan struct{}, flightMost),
		queues: make(map[string][]func(context.Context))}
}

// wait waits for all work. Call it after ctx has ended.
func (f *flight) wait() {
	f.mu.Lock() // whoever saw ctx alive has started its goroutine
	left := len(f.queues)
	f.mu.Unlock()
	if left > 0 {
		f.a.log.Debug("stopping with events that are not taken", "channels", left)
	}
	f.lanes.Wait()
	f.beside.Wait()
}

// push puts work behind that of its channel. It waits while very much is in
// flight.
func (f *flight) push(channel string, work func(context.Context)) {
	select {
	case f.room <- struct{}{}:
	default:
		f.full.Store(true)
		defer f.full.Store(false)
		select {
		case f.room <- struct{}{}:
		case <-f.ctx.Done():
			return
		}
	}
	f.pushAlways(channel, func(ctx context.Context) {
		defer func() { <-f.room }()
		work(ctx)
	})
}

// pushAlways is push without a place of its own.
func (f *flight) pushAlways(channel string, work func(context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return // wait may have begun
	}
	queue, running := f.queues[channel]
	f.queues[channel] = append(queue, work)
	if !running {
		f.lanes.Go(func() { f.lane(channel) })
	}
}

// goBeside runs work beside the lanes.
func (f *flight) goBeside(work func(context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() == nil {
		f.beside.Go(func() { f.a.guarded("beside", func() { work(f.ctx) }) })
	}
}

// lane sees to one channel until nothing waits there or ctx ends.
func (f *flight) lane(channel string) {
	select {
	case f.active <- struct{}{}:
		defer func() { <-f.active }()
	case <-f.ctx.Done():
		return
	}
	for f.ctx.Err() == nil {
		f.mu.Lock()
		queue := f.queues[channel]
		if len(queue) == 0 {
			delete(f.queues, channel)
			f.mu.Unlock()
			return
		}
		work := queue[0]
		f.queues[channel] = queue[1:]
		f.mu.Unlock()
		f.a.guarded("lane", func() { work(f.ctx) })
	}
}
