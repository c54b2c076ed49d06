package discord

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/adapters/bubble"
	"coxswain/session"
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
// after Run has ended are still shown, until close.
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
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Unlock()
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

// bubbleOf reports whether a message is the bubble of the session's running
// turn.
func (s *shows) bubbleOf(key session.Key, msg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.live[key]
	return f != nil && msg != "" && f.at.Load() == msg
}

// Show gives the newest view of a turn. Between Run and Close a turn that is
// not over has one goroutine, which shows the newest view there is when it may;
// at other times views are dropped.
func (a *Adapter) Show(v session.View) {
	s := &a.shows
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil || target(v.Key) == "" {
		return
	}
	f := s.live[v.Key]
	if f != nil && f.mark != v.Mark && v.Done {
		return // of a session that is not shown here any more
	}
	if f != nil && f.mark == v.Mark && v.Turn < f.turn {
		return
	}
	if f != nil && (f.turn != v.Turn || f.mark != v.Mark) {
		f.put(session.View{}, true) // the last view of its turn was dropped on the way
		f = nil
	}
	if f != nil {
		f.put(v, false)
		return
	}
	if v.Done {
		delete(s.live, v.Key)
		return // nothing of it was ever shown
	}
	f = &follower{a: a, to: target(v.Key), turn: v.Turn, mark: v.Mark, view: v, began: time.Now(), wake: make(chan struct{}, 1)}
	f.at.Store("")
	s.live[v.Key] = f
	ctx := s.ctx
	s.wg.Go(func() {
		f.run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.live[v.Key] == f {
			delete(s.live, v.Key)
		}
	})
}

// A follower shows one turn: the typing sign and the running bubble. Fields
// above mu are the goroutine's own or never change.
type follower struct {
	a     *Adapter
	to    string
	turn  int64
	mark  string    // of its session: another of the chat counts turns anew
	began time.Time // when its first view came
	wake  chan struct{}

	typed  time.Time // last typing sign
	bubble string    // id of the bubble, empty = none
	shown  string    // what it says, as compared
	edited time.Time // last change of it, or try at it
	edits  int

	at bubbleID // the newest bubble's id, for others to compare

	mu   sync.Mutex
	view session.View
	over bool // no more views will come
}

type bubbleID struct{ v atomic.Value }

func (b *bubbleID) Store(id string) { b.v.Store(id) }
func (b *bubbleID) Load() string    { return b.v.Load().(string) }

func (f *follower) put(v session.View, over bool) {
	f.mu.Lock()
	if over {
		f.over = true
	} else if v.Rev >= f.view.Rev || v.Done {
		f.view = v
	}
	f.mu.Unlock()
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
	for {
		v, over := f.latest()
		if over || ctx.Err() != nil {
			f.close(ctx)
			return
		}
		timer := time.NewTimer(f.frame(ctx, v))
		select {
		case <-f.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// frame shows what is due and says when to look again if nothing new comes. A
// frame that fails is dropped; the next one says more (I9).
func (f *follower) frame(ctx context.Context, v session.View) time.Duration {
	if f.a.barred(f.to) != nil {
		return f.a.timing.barred // a closed channel or one that is out shows nothing
	}
	return max(min(f.typing(ctx), f.showBubble(ctx, v)), time.Millisecond)
}

func (f *follower) typing(ctx context.Context) time.Duration {
	t, now := f.a.timing, time.Now()
	if d := f.began.Add(t.typingAfter).Sub(now); d > 0 {
		return d
	}
	if d := f.typed.Add(t.typingEvery).Sub(now); !f.typed.IsZero() && d > 0 {
		return d
	}
	f.typed = now
	f.failed("typing", f.a.call(ctx, http.MethodPost, "channels/"+f.to+"/typing", "typing:"+f.to, nil, nil))
	return t.typingEvery
}

func (f *follower) failed(what string, err error) {
	switch codeOf(err) {
	case codeNoAccess, codeNoDM, codeNoPermission, codeUnknownChannel:
		f.a.shut.set(f.to, shutFor) // the answer, which must arrive, tells of it
	}
	if err != nil {
		f.a.log.Debug("frame dropped", "frame", what, "err", err)
	}
}

func (f *follower) elapsed(v session.View) time.Duration {
	d := time.Since(f.began)
	if !v.Since.IsZero() {
		d = max(d, time.Since(v.Since)) // by the store's clock, which may be a little ahead of ours
	}
	return d
}

// showBubble sends the running bubble when the turn has lasted, and edits it
// when it says something else.
func (f *follower) showBubble(ctx context.Context, v session.View) time.Duration {
	now, t := time.Now(), f.a.timing
	if d := f.began.Add(t.bubbleAfter).Sub(now); f.bubble == "" && d > 0 {
		return d
	}
	if d := f.edited.Add(f.rhythm()).Sub(now); !f.edited.IsZero() && d > 0 {
		return d
	}
	text := bubbleText(v, f.elapsed(v), now)
	same := text + "\x00" + strconv.Itoa(v.Waiting)
	if same == f.shown && f.bubble != "" {
		return t.editEvery // the clock moves on
	}
	f.edited = now
	if f.bubble != "" {
		if f.edit(ctx, text, runningButtons(v)) {
			f.shown = same
		}
		return f.rhythm()
	}
	p := payload{Text: text, Rows: runningButtons(v), Silent: true, ReplyTo: v.Asked}
	// Its nonce makes a second try give the first one's message (D19).
	id, err := f.a.post(ctx, f.to, p, nonceOf(v.Key, "bubble:"+strconv.FormatInt(f.turn, 10)+":"+strconv.Itoa(f.edits)))
	f.failed("bubble", err)
	if err == nil {
		f.bubble, f.shown = id, same
		f.at.Store(id)
	}
	return f.rhythm()
}

// rhythm is the least time between changes of the bubble. It slows down with
// their number.
func (f *follower) rhythm() time.Duration {
	switch {
	case f.edits < 20:
		return f.a.timing.editEvery
	case f.edits < 80:
		return 2 * f.a.timing.editEvery
	}
	return 4 * f.a.timing.editEvery
}

// edit changes the bubble, and reports whether it need not be tried again.
func (f *follower) edit(ctx context.Context, text string, rows []row) bool {
	f.edits++
	if rows == nil {
		rows = []row{}
	}
	body := outMessage{Content: text, Mentions: nobody, Components: rows}
	path := "channels/" + f.to + "/messages/" + f.bubble
	err := f.a.call(ctx, http.MethodPatch, path, "edit:"+f.to, body, nil)
	if codeOf(err) == codeArchived && f.a.unarchive(ctx, f.to) { // D6
		err = f.a.call(ctx, http.MethodPatch, path, "edit:"+f.to, body, nil)
	}
	if codeOf(err) == codeUnknownMessage {
		f.bubble, f.shown = "", "" // someone deleted it: a new one, if there is more to show
		f.at.Store("")
		return true
	}
	f.failed("edit", err)
	return err == nil || permanent(err)
}

// unarchive opens an archived thread, and reports whether it could.
func (a *Adapter) unarchive(ctx context.Context, thread string) bool {
	return a.call(ctx, http.MethodPatch, "channels/"+thread, "channel:"+thread, map[string]bool{"archived": false}, nil) == nil
}

// closeTries is how often the last edit of a bubble is tried; it takes the
// buttons away.
const closeTries = 6

// close turns the bubble into one line. When the adapter closes it has one
// quick try.
func (f *follower) close(ctx context.Context) {
	line := func() string {
		v, over := f.latest()
		if !over {
			return wordsRestarting
		}
		return bubble.Closing(v, f.elapsed(v))
	}
	wait := &backoff{f.a.timing.editEvery, time.Minute}
	for n := 0; n < closeTries && f.bubble != "" && ctx.Err() == nil; n++ {
		pause(ctx, f.a.pace.wait("edit:"+f.to))
		if f.edit(ctx, line(), nil) {
			return
		}
		pause(ctx, wait.next())
	}
	if ctx.Err() != nil && f.bubble != "" {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		f.edit(cleanup, line(), nil)
	}
}
