package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"coxswain/session"
	"coxswain/steer"
)

// A screen is a platform that keeps what it is shown.
type screen struct {
	platform
	mu    sync.Mutex
	views []session.View
}

func (s *screen) Show(v session.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views = append(s.views, v)
}

// all is everything that was shown, and last the newest of it.
func (s *screen) all(t *testing.T) (all string, last session.View) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := json.Marshal(s.views)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), s.views[len(s.views)-1]
}

// A page is a screen that has room for every call.
type page struct{ *screen }

func (page) ShowsEveryCall() {}

// What a platform is shown of calls is what progress says, but for one that
// shows every call; the hub's own view has them all. Notes, steps and what waits
// are shown in any case.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		progress session.Progress
		page     bool
		want     string // the calls, newest last
	}{
		{"", false, "secret-name a.c, secret-name b.c, other make"},
		{session.ProgressAll, false, "secret-name a.c, secret-name b.c, other make"},
		{session.ProgressNew, false, "secret-name b.c ×2, other make"},
		{session.ProgressOff, false, ""},
		{session.ProgressOff, true, "secret-name a.c, secret-name b.c, other make"},
	} {
		t.Run(fmt.Sprintf("%s %v", c.progress, c.page), func(t *testing.T) {
			s := &screen{platform: "fake"}
			var plat session.Platform = s
			if c.page {
				plat = page{s}
			}
			play(t, set{progress: c.progress, shows: plat}, func(w *world) {
				w.deliver(w.says("ann", "ann", "a task"))
				w.agent.turn.Load().Show(func(v *session.View) {
					v.Step, v.Notice, v.Text = 3, "why", "so far"
					v.Tools = []session.ToolView{
						{Call: "secret-1", Name: "secret-name", Args: "a.c", State: session.ToolDone},
						{Call: "secret-2", Name: "secret-name", Args: "b.c", State: session.ToolDone},
						{Call: "secret-3", Name: "other", Args: "make", State: session.ToolRunning, Tail: "secret-tail"},
					}
					v.Notes = []session.NoteView{{N: 1, Step: 3, From: "Ann", Call: "secret-2"}}
				})
				all, v := s.all(t)
				if got := callsOf(v); got != c.want {
					t.Errorf("shown: %s; want %s", got, c.want)
				}
				if c.want == "" && strings.Contains(all, "secret") {
					t.Errorf("something of the calls was shown: %s", all)
				}
				if v.Step != 3 || v.Notice != "why" || v.Text != "so far" || len(v.Notes) != 1 || v.Notes[0].From != "Ann" {
					t.Errorf("the rest is missing: %+v", v)
				}
				if own, _ := w.hub.View(key("ann")); len(own.Tools) != 3 || own.Notes[0].Call != "secret-2" {
					t.Errorf("the hub's view has %s; want every call", callsOf(own))
				}
				w.finish("done")
				if _, v := s.all(t); !v.Done || callsOf(v) != c.want {
					t.Errorf("at the end: %s; want %s", callsOf(v), c.want)
				}
			})
		})
	}
}

// Of calls in a row of the same tool one is shown: the newest, or the newest
// that still runs; another tool between begins a new row.
func TestProgressNewCounts(t *testing.T) {
	const on, off = session.ToolRunning, session.ToolDone
	call := func(name, args string, state session.ToolState) session.ToolView {
		return session.ToolView{Name: name, Args: args, State: state}
	}
	for _, c := range []struct {
		name string
		all  []session.ToolView
		want string
	}{
		{"none", nil, ""},
		{"one", []session.ToolView{call("a", "1", off)}, "a 1"},
		{"newest", []session.ToolView{call("a", "1", off), call("a", "2", off), call("a", "3", on)}, "a 3 ×3"},
		{"running before ended", []session.ToolView{call("a", "1", on), call("a", "2", off)}, "a 1 ×2"},
		{"newest running", []session.ToolView{call("a", "1", on), call("a", "2", on), call("a", "3", off)}, "a 2 ×3"},
		{"rows", []session.ToolView{call("a", "1", off), call("b", "2", off), call("a", "3", off), call("a", "4", off)}, "a 1, b 2, a 4 ×2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &screen{platform: "fake"}
			play(t, set{progress: session.ProgressNew, shows: s}, func(w *world) {
				w.deliver(w.says("ann", "ann", "a task"))
				w.agent.turn.Load().Show(func(v *session.View) { v.Tools = c.all })
				if _, v := s.all(t); callsOf(v) != c.want {
					t.Errorf("shown: %s; want %s", callsOf(v), c.want)
				}
				w.finish("done")
			})
		})
	}
}

func callsOf(v session.View) string {
	var calls []string
	for _, c := range v.Tools {
		s := c.Name + " " + c.Args
		if c.Times != 0 {
			s += fmt.Sprintf(" ×%d", c.Times)
		}
		calls = append(calls, s)
	}
	return strings.Join(calls, ", ")
}

// What is said between steps is a message of its own: below the calls of the step it
// would stand twice.
func TestSaidIsNotShownTwice(t *testing.T) {
	var shown views
	play(t, set{views: &shown}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		turn := w.agent.turn.Load()
		turn.ShowText(true, "I look first.")
		if v := shown.last(key("ann")); v.Text != "I look first." {
			w.t.Fatalf("shown %q", v.Text)
		}
		if _, err := turn.Commit(w.t.Context(), session.Step{Phase: steer.PhaseTools, Say: "I look first."}); err != nil {
			w.t.Fatal(err)
		}
		if v := shown.last(key("ann")); v.Text != "" {
			w.t.Errorf("below its calls stands %q", v.Text)
		}
		w.wantSaid("ann", "I look first.")
		w.finish("done")
	})
}
