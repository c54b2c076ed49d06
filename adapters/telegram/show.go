package telegram

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"

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
	if f != nil && f.turn != v.Turn {
		if v.Turn < f.turn {
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
		f = &follower{a: a, key: v.Key, turn: v.Turn, view: v, began: time.Now(), wake: make(chan struct{}, 1)}
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
	if f.a.chats.isBlocked(t.chat) {
		return time.Minute
	}
	next := f.typing(ctx, t, v)
	next = min(next, f.showBubble(ctx, t, v))
	return min(next, f.draft(ctx, t, v))
}

func (f *follower) elapsed(v session.View) time.Duration {
	d := time.Since(f.began)
	if !v.Since.IsZero() {
		// By the store's clock, which may be a little ahead of ours.
		d = max(d, time.Since(v.Since))
	}
	return d
}

// failed sees to what an error of a frame means for the chat. A frame is never
// repeated; the next one says more (I9).
func (f *follower) failed(t target, what string, err error) {
	if err == nil {
		return
	}
	f.a.flooded(t.chat, err)
	if e, ok := errors.AsType[*apiError](err); ok && e.code == http.StatusForbidden {
		f.a.chats.block(t.chat, blockedFor)
	}
	f.a.log.Debug("frame dropped", "frame", what, "err", err)
}

// showBubble sends the running bubble when the turn has lasted, and edits it
// when it says something else.
func (f *follower) showBubble(ctx context.Context, t target, v session.View) time.Duration {
	now, elapsed := time.Now(), f.elapsed(v)
	if f.bubble == 0 {
		wait := bubbleAfter - now.Sub(f.began)
		for _, c := range v.Tools {
			if c.State == session.ToolRunning && !c.Began.IsZero() {
				wait = min(wait, bubbleTool-now.Sub(c.Began))
			}
		}
		if v.Notice != "" {
			wait = min(wait, typingAfter-now.Sub(f.began))
		}
		if wait > 0 {
			return wait
		}
	}
	if d := f.edited.Add(f.rhythm()).Sub(now); !f.edited.IsZero() && d > 0 {
		return d
	}
	c := bubbleText(v, elapsed, now, t.group())
	k := runningButtons(f.key, v)
	if same := c.text + "\x00" + strconv.Itoa(v.Waiting); same == f.shown && f.bubble != 0 {
		return editEvery // the clock moves on
	} else if wait, ok := f.a.pace.take(t.chat, 1, true, 0); !ok {
		return wait
	} else {
		f.shown = same
	}
	f.edited = now
	call, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	if f.bubble == 0 {
		p := payload{Text: c.text, Entities: c.entities, Keyboard: k, Silent: true}
		if t.group() {
			p.ReplyTo = v.Asked
		}
		id, err := f.a.sendMessage(call, t, p)
		f.bubble = id
		f.at.Store(int64(id))
		f.failed(t, "bubble", err)
		if err != nil {
			f.edits += 10 // it may stand there all the same: do not send many
		}
		return f.rhythm()
	}
	f.edit(call, t, c, k)
	return f.rhythm()
}

// rhythm is the least time between changes of the bubble. It slows down:
// hundreds of edits in one turn get a bot banned for minutes.
func (f *follower) rhythm() time.Duration {
	switch {
	case f.edits < 10:
		return editEvery
	case f.edits < 40:
		return 2 * editEvery
	case f.edits < 100:
		return 4 * editEvery
	}
	return 8 * editEvery
}

// edit changes the bubble, and reports whether it need not be tried again.
func (f *follower) edit(ctx context.Context, t target, c composed, k *keyboard) bool {
	if f.bubble == 0 {
		return true
	}
	f.edits++
	p := &bot.EditMessageTextParams{ChatID: t.chat, MessageID: f.bubble, Text: c.text, Entities: c.entities, LinkPreviewOptions: noPreview}
	if k != nil {
		p.ReplyMarkup = k
	}
	err := f.a.api.call(ctx, "editMessageText", p, nil)
	e, ok := errors.AsType[*apiError](err)
	switch {
	case err == nil || ok && e.says("message is not modified"): // as it should be (T22)
		return true
	case ok && e.says("message to edit not found", "message can't be edited", "message_id_invalid"):
		f.bubble = 0 // someone deleted it: a new one, if there is more to show (T23)
		return true
	}
	f.failed(t, "edit", err)
	return ok && e.code >= 400 && e.code < 500 && e.code != http.StatusTooManyRequests
}

// closeTries is how often the last edit of a bubble is tried; it takes the
// buttons away.
const closeTries = 6

// close turns the bubble into one line. When the adapter closes it has one
// quick try.
func (f *follower) close(ctx context.Context, t target, v session.View) {
	line := func() composed {
		if _, over := f.latest(); !over {
			return composed{text: wordsRestarting}
		}
		return composed{text: closingLine(v, f.elapsed(v))}
	}
	for wait, n := newBackoff(editEvery, time.Minute), 0; n < closeTries && f.bubble != 0 && ctx.Err() == nil; {
		if d, ok := f.a.pace.take(t.chat, 1, true, 0); !ok {
			pause(ctx, d)
			continue
		}
		n++
		call, cancel := context.WithTimeout(ctx, frameTime)
		done := f.edit(call, t, line(), nil)
		cancel()
		if done {
			return
		}
		pause(ctx, wait.next())
	}
	if ctx.Err() != nil && f.bubble != 0 {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		f.edit(cleanup, t, line(), nil)
	}
}
