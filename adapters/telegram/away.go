package telegram

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/session"
)

// A clock knows how far Telegram's clock is ahead of this machine's. Ages of
// messages are judged by it: on a machine whose clock is hours off, every
// message would count as one of a backlog, and every /stop as stale (T30). The
// zero value is ready; any goroutine.
type clock struct{ ahead atomic.Int64 } // nanoseconds

// skewLeast is what counts as a difference: dates are whole seconds, and an
// answer takes its time.
const skewLeast = 5 * time.Second

// saw takes note of an answer's Date.
func (c *clock) saw(date string) {
	t, err := http.ParseTime(date)
	if err != nil {
		return // a proxy's answer, or none
	}
	d := time.Until(t)
	if d.Abs() < skewLeast {
		d = 0
	}
	c.ahead.Store(int64(d))
}

// local gives a date of Telegram's, in Unix seconds, by this machine's clock.
func (c *clock) local(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).Add(-time.Duration(c.ahead.Load()))
}

const (
	// awayLeast is how long the gateway must have been away for what was pressed
	// meanwhile to be void (T31). A restart is no absence.
	awayLeast = 2 * time.Minute
	// aliveEvery is how often it is stored that the gateway lives: what a crash
	// adds to the time it says it was away.
	aliveEvery = time.Minute
)

// An absence is the time before this process, in which nothing was received.
type absence struct {
	mu     sync.Mutex
	loaded bool
	since  time.Time            // when the process before was last there; zero = it is not known
	over   bool                 // what came meanwhile has been received
	told   map[session.Key]bool // who was told
}

// loadAway finds out since when the gateway was away.
func (a *Adapter) loadAway(ctx context.Context) error {
	a.away.mu.Lock()
	defer a.away.mu.Unlock()
	if a.away.loaded {
		return nil
	}
	data, _, err := a.docs.Doc(ctx, a.docName("alive"))
	if err != nil {
		return err
	}
	if s, err := strconv.ParseInt(string(data), 10, 64); err == nil && time.Since(time.Unix(s, 0)) >= awayLeast {
		a.away.since = time.Unix(s, 0)
	}
	a.away.loaded = true
	return nil
}

// gap takes note that nothing was received since last, this process living or
// not: the network may have been away.
func (s *absence) gap(last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(last) >= awayLeast {
		s.since, s.over, s.told = last, false, nil
	}
}

// forget begins anew: another process was there meanwhile.
func (s *absence) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.since, s.over, s.told = false, time.Time{}, false, nil
}

// backlog reports whether what is received now came while the gateway was
// away.
func (s *absence) backlog() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over && !s.since.IsZero()
}

// end says that all that came meanwhile has been received.
func (s *absence) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// tell says once to a session that the gateway was away. It is a courtesy, not
// a reply: it is sent when it may be, or not at all.
func (a *Adapter) tellAway(ctx context.Context, m session.Message) {
	if !m.Addressed || m.Kind == session.KindEdit || !a.permits(ctx, m) {
		return
	}
	a.away.mu.Lock()
	since, told := a.away.since, a.away.told[m.Key]
	if a.away.told == nil {
		a.away.told = make(map[session.Key]bool)
	}
	a.away.told[m.Key] = true
	a.away.mu.Unlock()
	if !told {
		a.say(ctx, m.Key, "", wordsOffline(since))
	}
}

// permits reports whether the sender of m may talk here, as far as is known
// before the door has judged.
func (a *Adapter) permits(ctx context.Context, m session.Message) bool {
	return a.files == nil || a.files(ctx, m)
}

// say sends a silent word of the adapter's own, if the chat's budget has room
// for it.
func (a *Adapter) say(ctx context.Context, key session.Key, replyTo session.MessageID, words string) {
	t, err := a.target(ctx, key)
	if err != nil || a.chats.isBlocked(t.chat) {
		return
	}
	if t.thread != 0 && a.chats.isClosed(place(t)) {
		return
	}
	wait, ok := a.pace.take(t.chat, 1, true, paceWait)
	if !ok || !pause(ctx, wait) {
		return
	}
	if _, err := a.sendMessage(ctx, t, payload{Text: words, ReplyTo: replyTo, Silent: true}); err != nil {
		a.log.Debug("word not sent", "err", err)
	}
}

// keepAlive stores, now and then, that the gateway is there.
func (a *Adapter) keepAlive(ctx context.Context) {
	if !a.untilDone(ctx, "read when last here", func() error { return a.loadAway(ctx) }) {
		return
	}
	var stored time.Time
	store := func(ctx context.Context) {
		last := a.Status().LastPoll
		if a.hook != nil && !last.IsZero() {
			last = time.Now() // updates come by themselves
		}
		if !last.After(stored) {
			return
		}
		err := a.change(ctx, "alive", func([]byte) ([]byte, error) { return []byte(strconv.FormatInt(last.Unix(), 10)), nil })
		if err != nil {
			a.log.Debug("not stored that we are here", "err", err)
			return
		}
		stored = last
	}
	t := time.NewTicker(aliveEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			store(ctx)
		case <-ctx.Done():
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			store(cleanup)
			return
		}
	}
}
