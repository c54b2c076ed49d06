package telegram

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/session"
)

const (
	typingAfter = time.Second     // a plain answer comes sooner
	typingEvery = 4 * time.Second // Telegram shows it for 5 s
	draftEvery  = 500 * time.Millisecond
	draftAfter  = 30               // units: a first frame of less says nothing …
	draftSoon   = time.Second      // … unless this long has passed
	draftFresh  = 20 * time.Second // Telegram drops a draft after 30 s without a new one
	bubbleAfter = 3 * time.Second
	bubbleTool  = time.Second // a tool that runs this long shows the bubble at once
	editEvery   = 1500 * time.Millisecond
	frameTime   = 10 * time.Second // of one call that shows progress
)

// shows holds the live views: one follower per session whose turn is shown.
type shows struct {
	mu     sync.Mutex
	ctx    context.Context // of the followers; nil = not running
	cancel context.CancelFunc
	live   map[session.Key]*follower
	wg     sync.WaitGroup
}

// begin makes room for followers. They outlive ctx: turns that are drained
// after the poll has ended are still shown, until close.
func (s *shows) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.live = make(map[session.Key]*follower)
	}
}

func (s *shows) close(ctx context.Context) error {
	s.mu.Lock()
	cancel := s.cancel
	s.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mute ends the drafts of a turn whose final is about to be sent.
func (s *shows) mute(key session.Key, turn int64) {
	s.mu.Lock()
	f := s.live[key]
	s.mu.Unlock()
	if f != nil && f.turn == turn {
		f.mute()
	}
}

// draft finds the follower of a draft by chat and id, nil if its turn is over.
func (s *shows) draft(chat, id int64) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.live {
		if f.turn == id && string(f.key.Chat) == strconv.FormatInt(chat, 10) {
			return f
		}
	}
	return nil
}

// bubbleOf reports whether a message is the bubble of the session's running
// turn.
func (s *shows) bubbleOf(key session.Key, msg int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.live[key]
	return f != nil && f.at.Load() == int64(msg)
}

// shown reports whether a turn is being shown whose Stop has this data.
func (s *shows) shown(key session.Key, data string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.live[key]
	return f != nil && stopData(f.turn, f.mark) == data
}

// Show gives the newest view of a turn. Between Run and Close a turn that is
// not over has one goroutine, which shows the newest view there is when it may;
// at other times views are dropped.
func (a *Adapter) Show(v session.View) {
	s := &a.shows
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	f := s.live[v.Key]
	if f != nil && f.mark != v.Mark && v.Done {
		return // of a session that is not shown here any more
	}
	if f != nil && (f.turn != v.Turn || f.mark != v.Mark) {
		if v.Turn < f.turn && f.mark == v.Mark {
			return
		}
		f.abandon() // the last view of its turn was dropped on the way
		f = nil
	}
	if f == nil {
		if v.Done {
			delete(s.live, v.Key)
			return // nothing of it was ever shown
		}
		f = &follower{a: a, key: v.Key, turn: v.Turn, mark: v.Mark, view: v, began: time.Now(), wake: make(chan struct{}, 1)}
		s.live[v.Key] = f
		ctx := s.ctx
		s.wg.Go(func() {
			f.run(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.live[f.key] == f {
				delete(s.live, f.key)
			}
		})
		return
	}
	f.put(v)
}

// A follower shows one turn: the typing sign, the draft (private chats) and the
// running bubble. Fields above mu are the goroutine's own or never change.
type follower struct {
	a     *Adapter
	key   session.Key
	turn  int64
	mark  string    // of its session: another of the chat counts turns anew
	began time.Time // when its first view came
	wake  chan struct{}

	typed     time.Time // last typing sign
	drafted   time.Time // last draft
	draftText string
	bubble    int       // id of the bubble, 0 = none
	shown     string    // what it says, as compared
	edited    time.Time // last change of it, or try at it
	edits     int

	at atomic.Int64 // the newest bubble's id, for others to compare

	mu       sync.Mutex
	view     session.View
	over     bool // no more views will come
	muted    bool // the final is on its way
	stopCall context.CancelFunc
}

func (f *follower) put(v session.View) {
	f.mu.Lock()
	if v.Rev >= f.view.Rev || v.Done {
		f.view = v
	}
	f.mu.Unlock()
	f.nudge()
}

func (f *follower) abandon() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.nudge()
}

func (f *follower) mute() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.muted = true
	if f.stopCall != nil {
		f.stopCall()
	}
}

func (f *follower) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *follower) latest() (v session.View, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.over || f.view.Done
}

func (f *follower) run(ctx context.Context) {
	t, err := f.a.target(ctx, f.key)
	if err != nil {
		f.a.log.Warn("turn not shown", "err", err)
		return
	}
	if v, _ := f.latest(); v.Resumed {
		f.takeOver(ctx)
	}
	for {
		v, over := f.latest()
		if over || ctx.Err() != nil {
			f.close(ctx, t, v)
			return
		}
		timer := time.NewTimer(f.frame(ctx, t, v))
		select {
		case <-f.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// frame shows what is due and says when to look again if nothing new comes.
func (f *follower) frame(ctx context.Context, t target, v session.View) time.Duration {
	if d := f.a.pace.cooling(t.chat); d > 0 {
		return d // told to slow down: frames are dropped, not kept (T24)
	}
	if f.unseen(t) {
		return time.Minute
	}
	next := f.typing(ctx, t, v)
	// When there is room for one of them only, it is that of the older one.
	if f.drafted.Before(f.edited) {
		next = min(next, f.draft(ctx, t, v))
		return min(next, f.showBubble(ctx, t, v))
	}
	next = min(next, f.showBubble(ctx, t, v))
	return min(next, f.draft(ctx, t, v))
}

// unseen reports whether what is shown would reach nobody: progress goes to no
// other place (T17, T19).
func (f *follower) unseen(t target) bool {
	return f.a.chats.isBlocked(t.chat) || t.thread != 0 && f.a.chats.isClosed(place(t))
}

func (f *follower) elapsed(v session.View) time.Duration {
	now := time.Now()
	if v.Done && !v.Ended.IsZero() {
		now = v.Ended // the last edit may go out later
	}
	d := now.Sub(f.began)
	if !v.Since.IsZero() {
		// By the store's clock, which may be a little ahead of ours.
		d = max(d, now.Sub(v.Since))
	}
	return max(d, 0)
}

// failed sees to what an error of a frame means for the chat. A frame is never
// repeated; the next one says more (I9).
func (f *follower) failed(t target, what string, err error) {
	if err == nil {
		return
	}
	f.a.flooded(t.chat, err)
	if e, ok := errors.AsType[*apiError](err); ok {
		switch {
		case e.code == http.StatusForbidden:
			f.a.chats.block(t.chat, blockedFor)
		case e.topicGone() && t.thread != 0:
			f.a.chats.closeTopic(place(t))
		}
	}
	f.a.log.Debug("frame dropped", "frame", what, "err", err)
}
