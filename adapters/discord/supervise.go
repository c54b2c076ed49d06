package discord

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

// loginsMost is where connecting becomes slow: Discord resets the token of a
// bot that logs in over 1000 times in a day.
const loginsMost = 800

// loginsLeast are kept for a person who looks into it: below, no session is
// begun.
const loginsLeast = 20

// slowLogin is the wait between logins when the day's are nearly used up.
const slowLogin = 10 * time.Minute

// resumesMost is how often a broken connection is resumed in a row before a
// new session is made.
const resumesMost = 3

// supervise keeps one session open until ctx ends or Discord refuses the bot
// for good. It resumes a session whose connection has ended, and replaces one
// that is stuck, deaf or refused.
func (a *Adapter) supervise(ctx context.Context, f *flight) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait := &backoff{a.timing.least, a.timing.most}
	var l *link
	tries := 0
	for first := true; ctx.Err() == nil; first = false {
		if !first && !pause(ctx, a.rested(wait.next())) {
			break
		}
		if l == nil {
			var err error
			if l, err = a.newLink(ctx, f); err != nil {
				return err
			}
			tries = 0
			if !a.affordable(ctx) {
				break
			}
		}
		err := l.open(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			tries++
			if fatal := fatalError(err); fatal != nil {
				a.state.set(func(s *Status) { s.Connected, s.Err = false, fatal.Error() })
				a.log.Error(fatal.Error(), "err", err)
				l.throw(true)
				return fatal
			}
			a.down(err)
			if !resumable(err) || tries >= resumesMost {
				a.replaced()
				l.throw(true)
				l = nil
			}
			continue
		}
		opened := time.Now()
		if a.registering.CompareAndSwap(false, true) {
			beside.Go(func() { a.register(ctx) })
		}
		end := l.watch(ctx)
		if end == endDone {
			break
		}
		if l.ready.Load() {
			tries = 0
		}
		if time.Since(opened) > a.timing.steady {
			wait = &backoff{a.timing.least, a.timing.most}
		}
		a.state.set(func(s *Status) { s.Connected, s.Err = false, wordsDown })
		if end == endStuck {
			a.log.Warn(wordsStuck)
			a.replaced()
			l.throw(false)
			l = nil
		}
	}
	if l != nil {
		l.leave()
	}
	return nil
}

func (a *Adapter) replaced() { a.state.set(func(s *Status) { s.Replaced++ }) }

// down tells of a failed attempt, once for each reason.
func (a *Adapter) down(err error) {
	told := false
	a.state.set(func(s *Status) {
		told = s.Err == wordsDown
		s.Connected, s.Err = false, wordsDown
	})
	if !told {
		a.log.Warn(wordsDown, "err", a.failed("GET gateway", "gateway", &exchange{}, err))
	}
}

// rested gives the wait before connecting again; long when the day's logins are
// nearly used up (D24).
func (a *Adapter) rested(d time.Duration) time.Duration {
	if a.logins.within(24*time.Hour) < loginsMost {
		return d
	}
	a.log.Warn(wordsBudget)
	return max(d, slowLogin)
}

// affordable asks Discord before a login how many are left today, and waits while
// there are too few: with the last one the token would be reset (D24). Discord's
// count holds for all processes and over restarts. False when ctx ended.
func (a *Adapter) affordable(ctx context.Context) bool {
	for {
		var g struct {
			Limit struct {
				Total, Remaining int64
				ResetAfter       int64 `json:"reset_after"` // ms
			} `json:"session_start_limit"`
		}
		if err := a.call(ctx, http.MethodGet, "gateway/bot", "gateway", nil, &g); err != nil || g.Limit.Total == 0 {
			return ctx.Err() == nil // opening the session says what is wrong
		}
		low := g.Limit.Remaining < loginsLeast
		a.state.set(func(s *Status) {
			if s.LoginsLeft = g.Limit.Remaining; low {
				s.Connected, s.Err = false, wordsNoLogins
			}
		})
		if !low {
			return true
		}
		wait := min(max(time.Duration(g.Limit.ResetAfter)*time.Millisecond, a.timing.least), slowLogin)
		a.log.Error(wordsNoLogins, "left", g.Limit.Remaining, "wait", wait)
		if !pause(ctx, min(wait, a.timing.lowLogins)) {
			return false
		}
	}
}

// fatalError gives the error that ends the platform, nil when trying again may
// help: bad token, wrong shard, version or intents (D24).
func fatalError(err error) error {
	if re, ok := errors.AsType[*discordgo.RESTError](err); ok && re.Response != nil && re.Response.StatusCode == http.StatusUnauthorized {
		return ErrToken
	}
	ce, ok := errors.AsType[*websocket.CloseError](err)
	if !ok {
		return nil
	}
	switch ce.Code {
	case 4004:
		return ErrToken
	case 4013, 4014:
		return ErrIntents
	case 4010, 4011, 4012:
		return ErrRefused
	}
	return nil
}

// resumable reports that nothing was said against the session: the network or
// the way to the gateway failed.
func resumable(err error) bool {
	if errors.Is(err, errStuck) {
		return false
	}
	_, closed := errors.AsType[*websocket.CloseError](err)
	return !closed
}
