package openai

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"coxswain/loop"

	goopenai "github.com/sashabaranov/go-openai"
)

const (
	// silenceStep is how often people are told that nothing comes.
	silenceStep = 5 * time.Second
	// finishGrace is how long to wait, once the answer has its finish_reason, for
	// the usage and the end of the stream. Some servers leave the connection open.
	finishGrace = 2 * time.Second
	// waitCap bounds a wait that the endpoint asks for.
	waitCap = 60 * time.Second
	// backoffFirst and backoffMost bound our own waits: full jitter below
	// 1, 2, 4 … 30 s, so that the sessions of one gateway do not return at once.
	backoffFirst = time.Second
	backoffMost  = 30 * time.Second
	// keepAliveMost: an endpoint that for so many times the idle limit sends
	// keep-alives and nothing else is as good as silent.
	keepAliveMost = 10
)

// Stream sends one request; see loop.Model. A cancelled ctx gives what is
// shown at that moment as Reply.Text, beside the cause. A filtered answer is a
// reply with FinishFilter, no calls, and as text only a refusal that the model
// wrote; what had been shown of it is reset.
//
// Every failed try that is repeated is announced by a Delta that carries only
// Attempt and Attempts.
func (c *Client) Stream(ctx context.Context, r loop.Request, on func(loop.Delta), accepted func()) (loop.Reply, error) {
	if on == nil {
		on = func(loop.Delta) {}
	}
	s := &run{c: c, on: on, accepted: accepted, life: time.Now(), model: r.Model}
	if s.model == "" {
		s.model = c.o.Name
	}
	s.body = &body{req: r, traits: traits(c.traits.Load())}
	return s.loop(ctx)
}

// run is one call of Stream. The caller's goroutine owns it.
type run struct {
	c        *Client
	model    string
	body     *body
	on       func(loop.Delta)
	accepted func() // nil once called

	try   int
	shown strings.Builder // what the person sees of this reply
	stale bool            // shown is of an earlier try
	life  time.Time       // when the endpoint last gave a sign of life, or the start
	told  time.Duration   // the silence people were last told of; 0 = none
}

func (s *run) loop(ctx context.Context) (loop.Reply, error) {
	empty := false
	for s.try = 1; ; s.try++ {
		reply, err := s.attempt(ctx)
		if err == nil {
			if s.stale || reply.Finish == loop.FinishFilter {
				s.reset()
			}
			return reply, nil
		}
		if ctx.Err() != nil {
			return loop.Reply{Text: s.shown.String()}, context.Cause(ctx)
		}
		me := classify(err)
		if s.adapt(me) {
			s.try--
			continue
		}
		if me.Kind == loop.ErrFiltered {
			s.reset() // filtered text is no part of the conversation
		}
		wait, again := s.next(me, empty)
		s.c.log.WarnContext(ctx, "model request failed", "model", s.c.Name(), "try", s.try, "says", me.Public,
			"status", me.Status, "again", again, "wait", wait)
		s.c.log.DebugContext(ctx, "model request failed", "err", me.Err)
		if !again {
			me.Partial = s.shown.String()
			return loop.Reply{}, me
		}
		empty = empty || me.Kind == loop.ErrEmpty
		s.stale = s.shown.Len() > 0
		s.on(loop.Delta{Attempt: s.try + 1, Attempts: s.c.o.Attempts})
		if err := s.pause(ctx, wait); err != nil {
			return loop.Reply{Text: s.shown.String()}, err
		}
	}
}

// next says whether and after how long to try again. An empty answer is asked
// for again once, and at once.
func (s *run) next(me *loop.ModelError, emptyBefore bool) (time.Duration, bool) {
	if !me.Retryable || s.try >= s.c.o.Attempts {
		return 0, false
	}
	if me.Kind == loop.ErrEmpty {
		return 0, !emptyBefore
	}
	var ae *answerError
	if errors.As(me.Err, &ae) && ae.hasRetry {
		return ae.retryAfter, true
	}
	most := min(backoffFirst<<min(s.try-1, 5), backoffMost)
	return rand.N(most) + time.Millisecond, true
}

// pause waits, and tells of the silence meanwhile.
func (s *run) pause(ctx context.Context, d time.Duration) error {
	until := time.Now().Add(d)
	for {
		now := time.Now()
		left := until.Sub(now)
		if left <= 0 {
			return nil
		}
		t := time.NewTimer(min(left, s.untilTold(now)))
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
			s.tell(time.Now(), s.try+1)
		}
	}
}

// untilTold is the time to the next report of silence.
func (s *run) untilTold(now time.Time) time.Duration {
	return max(s.life.Add(s.told+silenceStep).Sub(now), time.Millisecond)
}

// tell reports silence, if it has grown by a step, or its end.
func (s *run) tell(now time.Time, try int) {
	silent := now.Sub(s.life).Truncate(silenceStep)
	switch {
	case silent > s.told:
		s.told = silent
		s.on(loop.Delta{Silent: silent, Attempt: try, Attempts: s.c.o.Attempts})
	case silent < s.told:
		s.told = silent
		s.on(loop.Delta{Attempt: try, Attempts: s.c.o.Attempts})
	}
}

// show gives text to the person. The first text of a later try takes the
// place of what an earlier one showed.
func (s *run) show(text string) {
	if s.stale {
		s.reset()
	}
	s.told = 0
	s.shown.WriteString(text)
	s.on(loop.Delta{Text: text})
}

func (s *run) reset() {
	s.stale = false
	if s.shown.Len() > 0 {
		s.shown.Reset()
		s.on(loop.Delta{Reset: true, Attempt: s.try, Attempts: s.c.o.Attempts})
	}
}

// event is what the reading goroutine has to tell: the 2xx head, a frame, or
// the end.
type event struct {
	head  bool
	frame []byte
	err   error
}

// attempt sends the request once and reads the answer. It returns only after
// its goroutine has ended.
func (s *run) attempt(parent context.Context) (loop.Reply, error) {
	ctx, cancel := context.WithCancel(parent)
	beat := &pulse{start: time.Now()}
	events := make(chan event, 16)
	go s.read(ctx, beat, events)
	defer func() {
		cancel()
		for range events { // closed by read when it ends
		}
	}()

	w := watch{last: beat.start, progress: beat.start}
	var a answer
	timer := time.NewTimer(s.wake(&w, &a))
	defer timer.Stop()
	for ; ; timer.Reset(s.wake(&w, &a)) {
		select {
		case <-parent.Done():
			return loop.Reply{}, context.Cause(parent)
		case e := <-events:
			if parent.Err() != nil {
				return loop.Reply{}, context.Cause(parent)
			}
			done, err := s.take(e, &w, &a)
			if err != nil {
				return loop.Reply{}, err
			}
			if done {
				return a.reply(s.body.req.MaxTokens)
			}
		case <-timer.C:
			now := time.Now()
			if at, ok := beat.last(); ok && at.After(w.last) {
				w.last, s.life = at, at
			}
			if now.Before(w.limit(s.c.o, &a)) {
				s.tell(now, s.try)
				continue
			}
			if a.finish != finishNone {
				return a.reply(s.body.req.MaxTokens)
			}
			return loop.Reply{}, errSilent
		}
	}
}

// pulse is when the last byte of an answer came. One goroutine beats, any may
// look. It keeps the monotonic clock, which no change of the time of day moves.
type pulse struct {
	start time.Time
	since atomic.Int64 // nanoseconds after start; 0 = none yet
}

func (p *pulse) beat() { p.since.Store(max(int64(time.Since(p.start)), 1)) }

func (p *pulse) last() (time.Time, bool) {
	d := p.since.Load()
	return p.start.Add(time.Duration(d)), d > 0
}

// watch holds the times by which one try is judged silent.
type watch struct {
	last     time.Time // last byte of the answer, as far as looked, or the start
	progress time.Time // last frame that brought something, or the start
	begun    bool      // something came
}

// limit is when the try counts as silent if nothing more comes.
func (w *watch) limit(o Options, a *answer) time.Time {
	if a.finish != finishNone {
		return w.progress.Add(finishGrace)
	}
	allowed := o.Idle
	if !w.begun {
		allowed = max(o.FirstToken, o.Idle)
	}
	end := w.last.Add(allowed)
	if most := w.progress.Add(max(keepAliveMost*o.Idle, allowed)); most.Before(end) {
		return most
	}
	return end
}

// wake is when to look next: at a limit, or to tell of silence.
func (s *run) wake(w *watch, a *answer) time.Duration {
	now := time.Now()
	return max(min(w.limit(s.c.o, a).Sub(now), s.untilTold(now)), time.Millisecond)
}

// take handles one event; done reports that the answer is complete.
func (s *run) take(e event, w *watch, a *answer) (done bool, err error) {
	now := time.Now()
	switch {
	case e.head:
		s.life, w.last = now, now
		if s.accepted != nil {
			s.accepted()
			s.accepted = nil
		}
		return false, nil
	case e.err != nil:
		if e.err == io.EOF || a.finish != finishNone {
			// The end of the stream, since a connection that failed comes wrapped;
			// or a failure behind a finished answer.
			return true, nil
		}
		return false, e.err
	}
	text, alive, err := a.add(e.frame)
	if err != nil {
		return false, err
	}
	s.life, w.last = now, now
	if alive || a.finish != finishNone {
		w.begun, w.progress = true, now
	}
	if text != "" {
		s.show(text)
	} else if s.told > 0 {
		s.tell(now, s.try)
	}
	return false, nil
}

// read runs one try's connection. It closes events when it has ended.
func (s *run) read(ctx context.Context, beat *pulse, events chan<- event) {
	defer close(events)
	send := func(e event) bool {
		select {
		case events <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	key := s.c.o.APIKey()
	cfg := goopenai.DefaultConfig(key)
	cfg.BaseURL = s.c.base
	cfg.HTTPClient = &doer{http: s.c.http, key: key, body: s.body, beat: beat}
	stream, err := goopenai.NewClientWithConfig(cfg).CreateChatCompletionStream(ctx, s.body.small(s.model))
	if err != nil {
		send(event{err: err})
		return
	}
	defer stream.Close()
	if !send(event{head: true}) {
		return
	}
	for {
		frame, err := stream.RecvRaw()
		if !send(event{frame: frame, err: err}) || err != nil {
			return
		}
	}
}
