package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/steer"
)

// Options are what a Hub is built from. Everything is required unless said.
type Options struct {
	Store  Store
	Agent  Agent
	Outbox Outbox
	Access *Access
	// Routes and Links are shared with whoever else asks; nil: the hub's own.
	Routes *Routes
	Links  *Links
	// Nonce names this life of this process: leases of an earlier life are
	// never taken for its own (I4).
	Nonce string
	// Mode is the configured busy_input_mode of a chat; /busy overrides it.
	Mode       func(Key) steer.Mode
	JoinWindow time.Duration // 0 = follow-ups never join
	StopWords  []string      // a message that is exactly one of them is /stop
	SteerFrom  string        // owner | participants
	Together   bool          // queue.together
	// DeleteStops: deleting what a turn was asked by stops it, while nothing of it
	// was shown (D2).
	DeleteStops bool
	// Notify says what rings in a session; nil: what is important.
	Notify func(Key) Notify
	// Progress says what a session's chat sees of tool calls; nil: all of them.
	Progress func(Key) Progress
	// Observe says how many messages of a chat that do not speak to the bot are
	// kept and told with the next that does; nil: none.
	Observe func(Key) int
	// Spend is what may be used up in a chat; nil: nothing is limited, and no store
	// is asked. Rate is how much may begin in a minute.
	Spend     func(Key) Spend
	Rate      Rate
	LeaseTTL  time.Duration
	JobsOnEnd string // turn | tell | nothing
	// Running is how many turns run at once in this process, and RunningChat how
	// many of them in the sessions of one chat; 0 = no cap.
	Running, RunningChat int
	// HistoryBytes bounds the rows kept in memory of sessions, idle ones too.
	HistoryBytes int64
	Log          *slog.Logger
}

// Notify is what rings (notify).
type Notify string

// What rings. Progress never does.
const (
	NotifyImportant Notify = "important" // answers, failures, questions
	NotifyAll       Notify = "all"       // also answers to commands and what is said between steps
	NotifyNone      Notify = "none"
)

// A Hub is the one door to all sessions of a process, and their owner. Its
// methods may be called from any goroutine; Register and Run's start come
// before the first Deliver.
type Hub struct {
	Options
	platforms map[PlatformName]Platform
	commands  map[string]*Command
	history   *histories
	gate      *gate

	life     context.Context // ends when the process must stop at once
	kill     context.CancelCauseFunc
	draining atomic.Bool
	began    time.Time
	forgot   time.Time // when forgetIdle last looked; Run's

	mu     sync.Mutex // guards what follows
	actors map[Key]*actor
	seats  map[Key]*Seat
	closed bool
	told   map[toldKey]time.Time
	newer  map[Key]bool // sessions left to a newer version
	warned map[toldKey]time.Time
	more   chan struct{}     // closed when a budget may go on; nil: nobody waits
	left   map[Key]time.Time // when the actors of sessions ended that are remembered here
	wg     sync.WaitGroup
	stale  chan struct{} // holds at most one token: sweep at once

	turns, failed atomic.Int64 // ended in this process
	spends        atomic.Int64 // numbers what is taken from meters
	lastErr       atomic.Pointer[string]
}

// Causes of a cancelled turn. Read with context.Cause.
var (
	ErrStopped  = errors.New("stopped by the user")
	ErrReplaced = errors.New("replaced by a newer message")
	ErrParked   = errors.New("the process is shutting down")
	ErrJoined   = errors.New("a follow-up joins the request")
	errKilled   = errors.New("the process ends")
)

// NewHub makes a hub. It does nothing until Run. ctx lives as long as the
// process; its end is Kill.
func NewHub(ctx context.Context, o Options) *Hub {
	if o.Routes == nil {
		o.Routes = NewRoutes(o.Store)
	}
	if o.Links == nil {
		o.Links = NewLinks(o.Store)
	}
	h := &Hub{
		Options: o, platforms: map[PlatformName]Platform{}, actors: map[Key]*actor{}, left: map[Key]time.Time{}, newer: map[Key]bool{},
		history: newHistories(o.HistoryBytes), began: time.Now(), stale: make(chan struct{}, 1), seats: map[Key]*Seat{},
		gate: newGate(o.Running, o.RunningChat),
	}
	h.commands = registry()
	h.life, h.kill = context.WithCancelCause(ctx)
	return h
}

// Register adds a platform, before Run.
func (h *Hub) Register(p Platform) { h.platforms[p.Name()] = p }

// sweepEvery is how often the store is asked what is due: what a lost nudge
// costs at most (F31).
const sweepEvery = time.Second

// Run looks for work until ctx ends, then drains: running turns are parked at
// their next safe point, or killed when drain has passed, and Run returns when
// every goroutine of the hub is gone. What is left runs in the next process.
func (h *Hub) Run(ctx context.Context, drain time.Duration) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		h.resign(h.life)
	}()
	if w, ok := WakerOf(h.Store); ok {
		ear, deaf := context.WithCancel(h.life) // turns that are drained still hear
		var listens sync.WaitGroup
		listens.Go(func() { h.listen(ear, w) })
		defer listens.Wait()
		defer deaf()
	}
	for {
		h.sweep(h.life)
		h.forgetIdle(time.Now())
		select {
		case <-h.stale:
		case <-ctx.Done():
			h.park(drain)
			return nil
		case <-h.life.Done():
			h.park(0)
			return context.Cause(h.life)
		case <-tick.C:
		}
	}
}

// Kill ends everything at once, as a crash would: nothing more is written.
func (h *Hub) Kill() { h.kill(errKilled) }

// Draining reports whether the hub has begun to stop.
func (h *Hub) Draining() bool { return h.draining.Load() }

// resignAge is how far back the signs of an earlier life are shown again: a
// sign that died with its process is seen by somebody who still waits.
const resignAge = 10 * time.Minute

// resign shows the signs again that a process which died may have owed. The
// states themselves are in the store; showing one twice changes nothing.
func (h *Hub) resign(ctx context.Context) {
	if err := h.persist(ctx, "read routes", func(ctx context.Context) error { _, err := h.Routes.shelf.get(ctx); return err }); err != nil {
		return
	}
	for after := ""; ; {
		lanes, err := h.Store.Sessions(ctx, after, 200)
		if err != nil {
			h.note(ctx, "list sessions", err)
			return
		}
		for _, l := range lanes {
			after = l.Key.String()
			if l.Now.Sub(l.Touched) > resignAge || h.platform(l.Key) == nil {
				continue
			}
			fates, err := h.Store.Fates(ctx, l.Key, 32)
			if err != nil {
				h.note(ctx, "read fates", err)
				return
			}
			for _, f := range fates {
				if f.Waited && l.Now.UnixMilli()-f.Changed < resignAge.Milliseconds() {
					h.Outbox.Sign(l.Key, f)
				}
			}
		}
		if len(lanes) < 200 || ctx.Err() != nil {
			return
		}
	}
}

// park stops every actor: politely, and after drain at once.
func (h *Hub) park(drain time.Duration) {
	h.draining.Store(true)
	h.mu.Lock()
	h.closed = true
	for _, a := range h.actors {
		a.poke(nil)
	}
	h.mu.Unlock()
	gone := make(chan struct{})
	go func() { h.wg.Wait(); close(gone) }()
	late := time.NewTimer(drain)
	defer late.Stop()
	select {
	case <-gone:
	case <-h.life.Done():
	case <-late.C:
		h.hurry()
		hard := time.NewTimer(hardStop)
		defer hard.Stop()
		select {
		case <-gone:
		case <-hard.C:
		case <-h.life.Done():
		}
	}
	h.kill(errKilled)
	<-gone
}

// hardStop is how long a turn may take to write its last rows after its tools
// were killed at the end of the drain.
const hardStop = 2 * time.Second

// hurry cancels the turns that reached no safe point in time.
func (h *Hub) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.actors {
		a.hurry()
	}
}

// nudge makes sure that key's actor looks at its lane; lane may be what a
// store call just returned. It never blocks. False: nobody will look here.
func (h *Hub) nudge(key Key, lane *Lane) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.actors[key]
	if a == nil {
		if h.closed || h.life.Err() != nil {
			return false // the next process sees it: the store says that it is due
		}
		if h.platform(key) == nil {
			return false // its platform is off: it waits in the store
		}
		a = newActor(h, key)
		h.actors[key] = a
		h.wg.Add(1)
		go func() {
			defer h.wg.Done()
			a.run(h.life)
		}()
	}
	a.poke(lane)
	return true
}

// leave removes a from the hub unless it was nudged meanwhile.
func (h *Hub) leave(a *actor) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(a.wake) > 0 {
		return false
	}
	delete(h.actors, a.key)
	h.left[a.key] = time.Now()
	return true
}

// actorOf gives the running actor of key, or nil.
func (h *Hub) actorOf(key Key) *actor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.actors[key]
}

// persist repeats a store write until it has an answer. The write must carry
// an OpID or Dedupe, so that a lost reply is answered from memory. What it
// returns is a decision of the store (fenced, stale, gone, held) or the end of
// ctx.
func (h *Hub) persist(ctx context.Context, what string, f func(context.Context) error) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := f(ctx)
		switch {
		case err == nil, errors.Is(err, ErrFenced), errors.Is(err, ErrStale), errors.Is(err, ErrGone), errors.Is(err, ErrHeld), errors.Is(err, ErrNewer):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case h.life.Err() != nil:
			return context.Cause(h.life)
		}
		h.note(ctx, what, err)
		t := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

// note logs a failed store call and remembers it for status.
func (h *Hub) note(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	text := fmt.Sprintf("%s: %v", what, err)
	h.lastErr.Store(&text)
	h.Log.WarnContext(ctx, "store call failed, will retry", "call", what, "err", err)
}

// reply stores a command's answer for sending; dedupe makes a redelivered
// command answer once (I2, I9). It concerns only who asked.
func (h *Hub) reply(ctx context.Context, m Message, text string, buttons ...Button) error {
	return h.post(ctx, m, Outgoing{Markdown: text, Buttons: buttons, Alone: true}, Post{})
}

// announce is reply with what others in the chat must see too: that something
// has changed for them.
func (h *Hub) announce(ctx context.Context, m Message, text string, buttons ...Button) error {
	return h.post(ctx, m, Outgoing{Markdown: text, Buttons: buttons}, Post{})
}

// post stores p with o as its answer. Nothing is stored twice.
func (h *Hub) post(ctx context.Context, m Message, o Outgoing, p Post) error {
	p.Key = m.Key
	p.Dedupe = "r:" + m.Dedupe
	if o.Markdown != "" {
		o.Key, o.Kind, o.Silent, o.ReplyTo, o.Interaction = m.Key, PartReply, true, replyTo(m), m.Interaction
		p.Outs = h.parts(o, 0, "r:"+m.Dedupe)
	}
	_, err := h.Store.Post(ctx, p)
	if err != nil {
		return fmt.Errorf("store reply: %w", err)
	}
	h.Outbox.Nudge(m.Key, nil)
	return nil
}

// replyTo is the message an answer hangs on: in a group people must see whose
// question is answered.
func replyTo(m Message) MessageID {
	if m.Private || m.Kind != KindText {
		return ""
	}
	return m.ID
}
