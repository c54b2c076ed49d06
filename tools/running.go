package tools

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// A Running is one call that has been started. Waiting for it and running it are apart, so
// any call can be left to run on as a job (Jobs.Adopt). All methods may be called from any
// goroutine.
type Running struct {
	call    Call
	started time.Time
	done    chan struct{}
	cancel  context.CancelCauseFunc // ends the call's own context
	caller  func() error            // the starter's ctx.Err: asked when adopting

	mu      sync.Mutex
	tail    string
	killed  bool
	ended   bool
	result  Result
	adopted func(Result) // set by adopt; runs once after done is closed
}

// Start runs the call in its own goroutine and returns at once. When ctx ends the call is
// killed with ctx's cause, unless it was adopted as a job before. Done is closed in every
// case: also for an unknown tool, a panic, a closed Set.
func (s *Set) Start(ctx context.Context, c Call) *Running {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &Running{call: c, started: time.Now(), done: make(chan struct{}), cancel: cancel, caller: ctx.Err}

	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		cancel(ErrShutdown)
		r.finish(s.finish(c, output{text: wordShuttingDown, failed: true}))
		return r
	}
	s.live[r] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()

	shown := c.Progress
	c.Progress = func(tail string) {
		r.mu.Lock()
		r.tail = tail
		r.mu.Unlock()
		if shown != nil {
			shown(tail)
		}
	}
	unhook := context.AfterFunc(ctx, func() { r.callerEnded(context.Cause(ctx)) })
	go func() {
		defer s.wg.Done()
		res := s.call(run, c)
		unhook()
		cancel(nil)
		s.mu.Lock()
		delete(s.live, r)
		s.mu.Unlock()
		r.finish(res)
	}()
	return r
}

// call runs the tool and keeps a panic to its call: one bad tool must not end every session.
func (s *Set) call(ctx context.Context, c Call) (res Result) {
	defer func() {
		if p := recover(); p != nil {
			s.opt.Log.Error("tool panicked", "tool", c.Name, "panic", p, "stack", string(debug.Stack()))
			res = s.finish(c, failf(wordCrashed, quote(c.Name)))
		}
	}()
	t, ok := s.lookup(c.Name)
	if !ok {
		return s.finish(c, failf(wordNoTool, quote(c.Name)))
	}
	return t.Run(ctx, c)
}

// Done is closed when the result is there.
func (r *Running) Done() <-chan struct{} { return r.done }

// Result is valid after Done. A caller whose call was adopted leaves it to OnEnd.
func (r *Running) Result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// Tail is the last output so far, at most 2 kB of clean text; it may be a tenth of a second
// old. Empty for tools that report no progress.
func (r *Running) Tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail
}

// Started is when the call began.
func (r *Running) Started() time.Time { return r.started }

// Kill ends the call, adopted or not, and does not wait: Done is closed within milliseconds.
func (r *Running) Kill(cause error) {
	r.mu.Lock()
	r.killed = true
	r.mu.Unlock()
	r.cancel(cause)
}

func (r *Running) callerEnded(cause error) {
	r.mu.Lock()
	if r.adopted != nil {
		r.mu.Unlock()
		return
	}
	r.killed = true
	r.mu.Unlock()
	r.cancel(cause)
}

// adopt takes the result away from the caller. It fails when the call has ended, is being
// killed, or its caller's context has ended: then the caller gets the result.
func (r *Running) adopt(end func(Result)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.killed || r.adopted != nil || r.caller() != nil {
		return false
	}
	r.adopted = end
	return true
}

// finish is the other side of adopt: under the same lock, exactly one of them comes first.
func (r *Running) finish(res Result) {
	r.mu.Lock()
	r.ended, r.result = true, res
	end := r.adopted
	r.mu.Unlock()
	close(r.done)
	if end != nil {
		end(res)
	}
}

// state is a consistent look for the registry.
func (r *Running) state() (ended bool, tail string, res Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended, r.tail, r.result
}
