package bubble

import (
	"fmt"
	"testing"
	"time"

	"coxswain/session"
)

func TestCalls(t *testing.T) {
	call := func(name string, s session.ToolState) session.ToolView { return session.ToolView{Name: name, State: s} }
	names := func(all []session.ToolView) (out string) {
		for _, c := range all {
			out += c.Name
		}
		return out
	}
	for _, c := range []struct {
		all  []session.ToolView
		want string
	}{
		{nil, ""},
		{[]session.ToolView{call("a", session.ToolDone), call("b", session.ToolSkipped)}, "b"},
		{[]session.ToolView{call("a", session.ToolRunning), call("b", session.ToolDone), call("c", session.ToolRunning)}, "ac"},
		{[]session.ToolView{call("a", session.ToolRunning), call("b", session.ToolRunning), call("c", session.ToolRunning), call("d", session.ToolRunning), call("e", session.ToolRunning)}, "bcde"},
	} {
		if got := names(Calls(c.all)); got != c.want {
			t.Errorf("of %v: %s; want %s", c.all, got, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	now := time.Unix(1000, 0)
	name := func(s string) string { return s }
	for _, c := range []struct{ got, want string }{
		{Step(0, 0, 3*time.Second), "Working · 3 s"},
		{Step(2, 60, 3*time.Second), "Step 2/60 · 3 s"},
		{Step(7, 0, 4*time.Minute), "Still running, 4 min, step 7"},
		{Step(0, 60, 61*time.Second), "Still running, 1 min 1 s"},
		{Span(59*time.Second + 600*time.Millisecond), "1 min"},
		{Span(2*time.Hour + 5*time.Minute), "2 h 5 min"},
		{Coarse(9*time.Second).String() + Coarse(44*time.Second).String() + Coarse(119*time.Second).String() + Coarse(11*time.Minute+59*time.Second).String(), "8s40s1m30s11m0s"},
		{Took(session.ToolView{State: session.ToolRunning, Began: now.Add(-7 * time.Second)}, now), " · 6 s"},
		{Took(session.ToolView{State: session.ToolDone, Took: 0.9}, now) + Took(session.ToolView{State: session.ToolDone, Took: 61}, now), " · 1 min 1 s"},
		{fmt.Sprint(NoteLines(session.View{Notes: []session.NoteView{{Step: 3}}}, name)), "[✍️ note from someone goes in at step 3]"},
		{fmt.Sprint(NoteLines(session.View{Notes: []session.NoteView{
			{From: "Ann", Step: 3, Sent: true}, {From: "Ann", Step: 3, Sent: true}, {From: "Bob", Step: 3, Sent: true}, {From: "Ann", Step: 4}, {From: "Ann", Step: 4},
		}}, name)), "[✍️ 2 notes from Ann went in at step 3 ✍️ note from Bob went in at step 3 ✍️ 2 notes from Ann go in at step 4]"},
		{Times(1) + Times(3), " ×3"},
		{LastLine("a\nb\n \n"), "b"},
		{Closing(session.View{Step: 1}, time.Second), "… 1 step, 1 s"},
		{Closing(session.View{Step: 2, Done: true, End: session.EndMoved}, time.Second), "→ goes on in another chat · 2 steps, 1 s"},
		{Closing(session.View{Step: 2, Done: true, End: session.EndAnswered}, time.Second), "✓ 2 steps, 1 s"},
		{fmt.Sprint(Fate(session.FateAttached, 0), Fate(session.FateSteered, 2), Fate(session.FateAnswered, 2)), "👀 goes in at the next step✍️ went in at step 2"},
	} {
		if c.got != c.want {
			t.Errorf("got %q; want %q", c.got, c.want)
		}
	}
	seen := map[string]session.FateState{}
	for _, s := range []session.FateState{session.FatePending, session.FateQueued, session.FateHeld, session.FateSteered} {
		if other, ok := seen[Fate(s, 1)]; ok {
			t.Errorf("%s reads as %s", s, other)
		}
		seen[Fate(s, 1)] = s
	}
}
