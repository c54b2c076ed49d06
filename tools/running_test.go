package tools

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// held is a tool that ends when it is told to: a long call of any kind.
type held struct {
	release chan struct{}
	begun   chan struct{}
}

func newHeld() *held {
	return &held{release: make(chan struct{}), begun: make(chan struct{}, 1000)}
}

func (h *held) tool() Tool {
	return Tool{Name: "held", Run: func(ctx context.Context, c Call) Result {
		c.Progress("working")
		h.begun <- struct{}{}
		select {
		case <-h.release:
			return Result{Body: "finished"}
		case <-ctx.Done():
			return Result{Body: "cause: " + context.Cause(ctx).Error(), Failed: true}
		}
	}}
}

type endEvent struct {
	session, id string
	turn        int64
	res         Result
	polled      bool
}

func withEnds(o Options) (Options, chan endEvent) {
	ends := make(chan endEvent, 1000)
	o.OnEnd = func(session, id string, turn int64, r Result, polled bool) {
		ends <- endEvent{session, id, turn, r, polled}
	}
	return o, ends
}

// next returns the next end; none may come that is not asked for (see noEnd).
func next(t *testing.T, ends chan endEvent) endEvent {
	t.Helper()
	select {
	case e := <-ends:
		return e
	case <-time.After(waitLimit):
		t.Fatal("no OnEnd")
		return endEvent{}
	}
}

// noEnd is called after Close, when every OnEnd has run.
func noEnd(t *testing.T, ends chan endEvent) {
	t.Helper()
	select {
	case e := <-ends:
		t.Errorf("one OnEnd too many: %+v", e)
	default:
	}
}

func TestStartedCalls(t *testing.T) {
	h := newHeld()
	var log bytes.Buffer
	s := newSet(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Extra: []Tool{h.tool(),
		{Name: "panics", Run: func(context.Context, Call) Result { panic("boom") }},
		{Name: "dirty", Run: func(context.Context, Call) Result { return Result{Body: "a\x1b[2Jb\xff"} }},
	}})
	ctx, cancel := context.WithCancelCause(t.Context())
	shown := make(chan string, 1)
	r := s.Start(ctx, Call{Name: "held", Progress: func(tail string) { shown <- tail }})
	<-h.begun
	if got := <-shown; got != "working" || r.Tail() != "working" {
		t.Errorf("got progress %q, tail %q; want working", got, r.Tail())
	}
	select {
	case <-r.Done():
		t.Error("done before the tool returned")
	default:
	}
	cancel(errStop)
	wait(t, r.Done(), "the cancelled call")
	if got := r.Result(); got.Body != "cause: stop" || !got.Failed {
		t.Errorf("got %+v; want the caller's cause", got)
	}

	for name, want := range map[string]string{
		"dirty":    "ab\uFFFD",
		"panics":   fmt.Sprintf(wordCrashed, `"panics"`),
		"no\nsuch": fmt.Sprintf(wordNoTool, `"no\nsuch"`),
	} {
		r := s.Start(t.Context(), Call{Name: name})
		wait(t, r.Done(), name)
		if got := r.Result(); got.Body != want || got.Failed != (name != "dirty") {
			t.Errorf("%q: got %+v; want %q", name, got, want)
		}
	}
	if !strings.Contains(log.String(), "boom") {
		t.Errorf("the panic is not in the log: %q", log.String())
	}
}

// TestJobOutlivesTurn: an adopted call goes on when its turn's context ends, is not started
// anew, and its end is told once.
func TestJobOutlivesTurn(t *testing.T) { synctest.Test(t, jobOutlivesTurn) }

func jobOutlivesTurn(t *testing.T) {
	h := newHeld()
	o, ends := withEnds(Options{Extra: []Tool{h.tool()}})
	s := newSet(t, o)
	ctx, cancel := context.WithCancelCause(t.Context())
	r := s.Start(ctx, Call{Name: "held", Session: "s", Person: "telegram:1"})
	<-h.begun
	if !s.Jobs().Adopt("s", "7", 42, r) {
		t.Fatal("not adopted")
	}
	if s.Jobs().Adopt("s", "8", 42, r) {
		t.Error("adopted twice")
	}
	cancel(errStop)
	synctest.Wait() // all that the cancel sets off has happened
	st, ok := s.Jobs().Poll("s", "7")
	if !ok || !st.Running || st.Seen || st.Tail != "working" || st.Tool != "held" || st.Turn != 42 || st.Person != "telegram:1" {
		t.Errorf("got %+v, %v; want a running job", st, ok)
	}
	if _, ok := s.Jobs().Poll("other", "7"); ok {
		t.Error("another session sees the job (I13)")
	}
	close(h.release)
	e := next(t, ends)
	if want := (endEvent{"s", "7", 42, Result{Body: "finished"}, false}); !reflect.DeepEqual(e, want) {
		t.Errorf("got %+v; want %+v", e, want)
	}
	if got := s.Jobs().List("s"); len(got) != 1 || got[0].Running {
		t.Errorf("got %+v; want one job with an unseen end", got)
	}
	if s.Jobs().Seen("s", "7") {
		t.Error("seen before it was polled")
	}
	if st, ok = s.Jobs().Poll("s", "7"); !ok || st.Running || !st.Seen || st.Result.Body != "finished" {
		t.Errorf("got %+v, %v; want the result", st, ok)
	}
	if !s.Jobs().Seen("s", "7") || len(s.Jobs().List("s")) != 0 {
		t.Error("not seen after a poll")
	}
	if s.Jobs().Kill("s", "7") {
		t.Error("an ended job was killed")
	}
	s.Close(t.Context())
	noEnd(t, ends)
}

// TestAdoptRefused: a call that ended, or whose caller is gone, stays the caller's.
func TestAdoptRefused(t *testing.T) {
	h := newHeld()
	o, ends := withEnds(Options{Extra: []Tool{h.tool()}})
	s := newSet(t, o)

	ctx, cancel := context.WithCancelCause(t.Context())
	r := s.Start(ctx, Call{Name: "held"})
	<-h.begun
	cancel(errStop)
	if s.Jobs().Adopt("s", "1", 1, r) { // whether or not the cancel has arrived at the tool
		t.Error("adopted after its context ended")
	}
	wait(t, r.Done(), "the call")

	r = s.Start(t.Context(), Call{Name: "held"})
	<-h.begun
	r.Kill(errStop)
	if s.Jobs().Adopt("s", "1", 1, r) {
		t.Error("adopted while being killed")
	}
	wait(t, r.Done(), "the call")

	first, second := s.Start(t.Context(), Call{Name: "held"}), s.Start(t.Context(), Call{Name: "held"})
	if !s.Jobs().Adopt("s", "2", 1, first) || s.Jobs().Adopt("s", "2", 1, second) {
		t.Error("a job id was given twice, or not once")
	}
	close(h.release)
	wait(t, second.Done(), "the call")
	if s.Jobs().Adopt("s", "3", 1, second) {
		t.Error("adopted after its end")
	}
	if e := next(t, ends); e.id != "2" {
		t.Errorf("got %+v; want the end of job 2", e)
	}
	s.Close(t.Context())
	noEnd(t, ends)
}

// TestAdoptRaces plays completion, cancel and adoption against each other: whatever wins, the
// caller has the result or OnEnd has, never both and never neither; and what /stop kills is
// either no job or a killed one.
func TestAdoptRaces(t *testing.T) {
	const rounds = 400
	h := newHeld()
	var got sync.Map
	var count atomic.Int64
	s := newSet(t, Options{Extra: []Tool{h.tool(),
		{Name: "quick", Run: func(ctx context.Context, _ Call) Result {
			select {
			case <-ctx.Done():
			case <-h.release:
			}
			return Result{Body: "x"}
		}}},
		OnEnd: func(_, id string, _ int64, _ Result, _ bool) {
			if _, twice := got.LoadOrStore(id, true); twice {
				t.Errorf("job %s ended twice", id)
			}
			count.Add(1)
		}})
	adopted := 0
	for i := range rounds {
		id := fmt.Sprint(i)
		end := make(chan struct{})
		h.release = end
		ctx, cancel := context.WithCancelCause(t.Context())
		r := s.Start(ctx, Call{Name: "quick", Session: "s"})
		var wg sync.WaitGroup
		var took bool
		wg.Go(func() { took = s.Jobs().Adopt("s", id, 1, r) })
		if i%2 == 0 {
			wg.Go(func() { close(end) })
		} else {
			wg.Go(func() { cancel(errStop); s.Jobs().KillAll("s") })
		}
		wg.Wait()
		wait(t, r.Done(), "the call")
		if took {
			adopted++
		} else if got := r.Result(); got.Body != "x" {
			t.Errorf("not adopted, and the caller has %+v", got)
		}
		cancel(nil)
	}
	s.Close(t.Context())
	if int64(adopted) != count.Load() {
		t.Errorf("%d adopted, %d ends", adopted, count.Load())
	}
	t.Logf("%d of %d adopted", adopted, rounds)
}

// TestStopEndsJobs: /stop's KillAll takes this session's jobs, real processes included, and
// wakes nobody.
func TestStopEndsJobs(t *testing.T) {
	h := newHeld()
	o, ends := withEnds(Options{Extra: []Tool{h.tool()}})
	s, dir := newSet(t, o), t.TempDir()
	shell := s.Start(t.Context(), Call{Name: "terminal", Session: "s", Dir: dir, Admin: true,
		Args: args(t, "command", trees[1].command)})
	tree := pids(t, dir, 3)
	other := s.Start(t.Context(), Call{Name: "held", Session: "s"})
	foreign := s.Start(t.Context(), Call{Name: "held", Session: "t"})
	for i, r := range []*Running{shell, other} {
		if !s.Jobs().Adopt("s", fmt.Sprint(i+1), 9, r) {
			t.Fatal("not adopted")
		}
	}
	if !s.Jobs().Adopt("t", "1", 9, foreign) {
		t.Fatal("not adopted")
	}
	if got := fmt.Sprint(s.Jobs().KillAll("s")); got != "[1 2]" {
		t.Errorf("killed %s; want [1 2]", got)
	}
	for range 2 {
		if e := next(t, ends); e.session != "s" || !e.polled || !e.res.Failed {
			t.Errorf("got %+v; want a failed end of session s that wakes nobody", e)
		}
	}
	for _, pid := range tree {
		if alive(pid) {
			t.Errorf("pid %d is alive", pid)
		}
	}
	if got := s.Jobs().KillAll("s"); len(got) != 0 {
		t.Errorf("killed %v again", got)
	}
	if st, ok := s.Jobs().Poll("t", "1"); !ok || !st.Running {
		t.Errorf("the other session's job: got %+v, %v; want it running", st, ok)
	}
}

// TestEndedJobsBounded: the registry keeps the last ends only, and never drops a running one.
func TestEndedJobsBounded(t *testing.T) {
	h, forever := newHeld(), newHeld()
	close(h.release)
	stay := forever.tool()
	stay.Name = "stay"
	gate := make(chan struct{})
	s := newSet(t, Options{Extra: []Tool{stay, {Name: "gated", Run: func(context.Context, Call) Result {
		<-gate
		return Result{Body: "x"}
	}}}})
	r := s.Start(t.Context(), Call{Name: "stay"})
	if !s.Jobs().Adopt("s", "stay", 1, r) {
		t.Fatal("not adopted")
	}
	for i := range endedKept + 3 {
		r := s.Start(t.Context(), Call{Name: "gated"})
		if !s.Jobs().Adopt("s", fmt.Sprint(i), 1, r) {
			t.Fatal("not adopted")
		}
		gate <- struct{}{}
		eventually(t, "the end", func() bool {
			s.jobs.mu.Lock()
			defer s.jobs.mu.Unlock()
			return len(s.jobs.ended) == min(i+1, endedKept)
		})
		wait(t, r.Done(), "the call")
	}
	eventually(t, "the last end", func() bool { _, ok := s.Jobs().Poll("s", "2"); return !ok })
	if _, ok := s.Jobs().Poll("s", "3"); !ok {
		t.Error("a job within the bound is gone")
	}
	if st, ok := s.Jobs().Poll("s", "stay"); !ok || !st.Running {
		t.Errorf("got %+v, %v; want the running job kept", st, ok)
	}
}

func TestJobTool(t *testing.T) {
	h := newHeld()
	o, ends := withEnds(Options{Extra: []Tool{h.tool()}})
	s := newSet(t, o)
	job := func(admin bool, person string, pairs ...any) Result {
		t.Helper()
		r := s.Start(t.Context(), Call{Name: "job", Session: "s", Admin: admin, Person: person, Args: args(t, pairs...)})
		wait(t, r.Done(), "job")
		return r.Result()
	}
	check := func(what string, got Result, want string, failed bool) {
		t.Helper()
		if got.Body != want || got.Failed != failed {
			t.Errorf("%s: got %+v; want %q, failed %v", what, got, want, failed)
		}
	}
	check("empty list", job(false, "p:1", "action", "list"), wordJobNone, false)
	check("unknown action", job(false, "p:1", "action", "start"), fmt.Sprintf(wordJobAction, `"start"`), true)
	check("no id", job(false, "p:1", "action", "poll"), wordJobNeedsID, true)
	check("unknown id", job(false, "p:1", "action", "poll", "id", "9"), fmt.Sprintf(wordJobUnknown, `"9"`), true)
	check("unknown kill", job(false, "p:1", "action", "kill", "id", "9"), fmt.Sprintf(wordJobUnknown, `"9"`), true)

	for _, id := range []string{"1", "2"} {
		r := s.Start(t.Context(), Call{Name: "held", Session: "s", Person: "p:1"})
		<-h.begun
		if !s.Jobs().Adopt("s", id, 5, r) {
			t.Fatal("not adopted")
		}
	}
	if got := job(false, "p:2", "action", "poll", "id", "1"); got.Failed || !strings.HasPrefix(got.Body, "job 1 (held) has been running for ") ||
		!strings.HasSuffix(got.Body, "so far:\nworking") {
		t.Errorf("running: got %+v", got)
	}
	check("foreign kill", job(false, "p:2", "action", "kill", "id", "1"), fmt.Sprintf(wordJobForeign, `"1"`), true)
	check("own kill", job(false, "p:1", "action", "kill", "id", "1"), fmt.Sprintf(wordJobKilled, "1", "held", "cause: tools: job killed"), false)
	if e := next(t, ends); e.id != "1" || !e.polled {
		t.Errorf("got %+v; want the end of 1, polled", e)
	}
	close(h.release)
	if e := next(t, ends); e.id != "2" || e.polled {
		t.Errorf("got %+v; want the end of 2, not polled", e)
	}
	check("list", job(false, "p:1", "action", "list"), fmt.Sprintf(wordJobRowEnd, "2", "held"), false)
	check("ended", job(false, "p:1", "action", "poll", "id", "2"), fmt.Sprintf(wordJobEnded, "2", "held", "finished"), false)
	check("late kill", job(true, "p:3", "action", "kill", "id", "2"), fmt.Sprintf(wordJobEnded, "2", "held", "finished"), false)
	check("seen", job(false, "p:1", "action", "list"), wordJobNone, false)
}
