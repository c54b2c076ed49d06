package telegram

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/bubble"
	"coxswain/adapters/markup"
	"coxswain/session"
	"coxswain/telegramtest"
)

// over is the view of a turn that is over.
func over(tools ...session.ToolView) session.View {
	return session.View{Turn: 17, Step: 3, Done: true, End: session.EndAnswered, Tools: tools}
}

// quoteOf gives what stands in the one folded quote, "" for none, and holds the
// whole to the API's rules.
func quoteOf(t *testing.T, c composed) string {
	t.Helper()
	var ents []telegramtest.Entity
	for _, e := range c.entities {
		ents = append(ents, telegramtest.Entity{Type: string(e.Type), Offset: e.Offset, Length: e.Length})
	}
	if err := telegramtest.CheckEntities(c.text, ents); err != nil {
		t.Error(err)
	}
	if n := markup.Units(c.text); n != c.units || n > textMost {
		t.Errorf("%d units, counted %d; at most %d", n, c.units, textMost)
	}
	quotes := slices.DeleteFunc(slices.Clone(c.entities), func(e models.MessageEntity) bool {
		return e.Type != models.MessageEntityTypeExpandableBlockquote
	})
	switch len(quotes) {
	case 0:
		return ""
	case 1:
		if q := quotes[0]; q.Offset+q.Length != c.units {
			t.Errorf("the quote is %+v of %d units; want it to be the end", q, c.units)
		}
		return cutBefore(c.text, quotes[0].Offset)
	}
	t.Fatalf("%d quotes; want one", len(quotes))
	panic("unreachable")
}

// cutBefore is s from a unit on.
func cutBefore(s string, unit int) string {
	for i := range s {
		if markup.Units(s[:i]) >= unit {
			return s[i:]
		}
	}
	return ""
}

// A bubble that is closed keeps its one line and, folded, all calls with
// outcome, name, short arguments and time. What was still running was cut off.
func TestClosedBubbleKeepsCalls(t *testing.T) {
	v := over(
		session.ToolView{Name: "terminal", Args: "make", State: session.ToolDone, Took: 4.2},
		session.ToolView{Name: "read_file", Args: "a <b>&_c*\nd", State: session.ToolDone, Took: 0.2, Times: 3},
		session.ToolView{Name: "terminal", Args: "make test", State: session.ToolDone, Took: 61, Failed: true},
		session.ToolView{Name: "terminal", Args: "serve", State: session.ToolJob},
		session.ToolView{Name: "terminal", Args: "rm -r x", State: session.ToolSkipped, Failed: true},
		session.ToolView{Name: "wait", Args: "", State: session.ToolRunning, Began: time.Now()},
	)
	v.Notes = []session.NoteView{{N: 1, Step: 2, From: "Ann", Sent: true}}
	c := closingText(v, 90*time.Second)
	want := "✓ terminal make · 4 s\n✓ read_file a <b>&_c* d ×3\n✗ terminal make test · 1 min 1 s\n⇢ terminal serve\n– terminal rm -r x\n✗ wait"
	if got := quoteOf(t, c); got != want {
		t.Errorf("folded:\n%s\nwant\n%s", got, want)
	}
	if head := "✓ 3 steps, 1 min 30 s\n✍️ note from Ann went in at step 2\n"; c.text != head+want {
		t.Errorf("the whole: %q; want %q before what is folded", c.text, head)
	}
	if got := closingText(over(), time.Second); quoteOf(t, got) != "" || got.text != "✓ 3 steps, 1 s" {
		t.Errorf("without calls: %+v", got)
	}
	v.Done = false // it goes on elsewhere
	if got := closingText(v, time.Second); quoteOf(t, got) != "" {
		t.Errorf("not over, and folded: %q", got.text)
	}
}

// Of many calls the newest are kept, in 40 lines and 3,000 units, and those
// before are counted, with all that one stands for.
func TestClosedBubbleIsBounded(t *testing.T) {
	for _, c := range []struct {
		calls, wide, times int
		lines, before      int
	}{
		{calls: 40, lines: 40},
		{calls: 41, lines: 40, before: 2},
		{calls: 500, lines: 40, before: 461},
		{calls: 50, times: 2, lines: 40, before: 22},
		{calls: 40, wide: 200, lines: 35, before: 6},
		{calls: 1, wide: 200, lines: 1},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			var v session.View
			for i := range c.calls {
				v.Tools = append(v.Tools, session.ToolView{Name: "tool", Args: fmt.Sprintf("n%d %s", i+1, strings.Repeat("𝄞", c.wide)), State: session.ToolDone, Times: c.times})
			}
			v = over(v.Tools...)
			for range 9 {
				v.Notes = append(v.Notes, session.NoteView{From: strings.Repeat("n", 99), Sent: true})
			}
			got := quoteOf(t, closingText(v, time.Second))
			lines := strings.Split(got, "\n")
			if n := markup.Units(got); len(lines) != c.lines || n > foldUnits {
				t.Errorf("%d lines of %d units; want %d lines and at most %d units", len(lines), n, c.lines, foldUnits)
			}
			first, isCount := lines[0], strings.HasPrefix(lines[0], "…")
			if want := bubble.Before(c.before); isCount != (c.before > 0) || isCount && first != want {
				t.Errorf("begins with %q; before it are %d", first, c.before)
			}
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, fmt.Sprintf("✓ tool n%d", c.calls)) {
				t.Errorf("ends with %q; want the newest", last)
			}
		})
	}
}

// In a chat that is shown no calls the bubble still says that it works, for how
// long and at which step, whose note went in and why nothing moves, and has its
// buttons; nothing is folded below it in the end.
func TestBubbleWithoutCalls(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		v := view(ann, time.Now(), 1)
		v.Step, v.Waiting, v.Notes = 7, 2, []session.NoteView{{N: 1, Step: 6, From: "Ann", Sent: true}}
		w.a.Show(v)
		w.settle(4*time.Minute + 5*time.Second)
		m := w.api.Messages(ann)[0]
		if want := "Still running, 4 min, step 7/60\n✍️ note from Ann went in at step 6"; m.Text != want {
			t.Errorf("bubble %q; want %q", m.Text, want)
		}
		if fmt.Sprint(m.Keyboard) != "[[{Stop stop:17} {Waiting 2 pending}]]" {
			t.Errorf("buttons %v", m.Keyboard)
		}
		v.Rev, v.Done, v.End = 2, true, session.EndAnswered
		w.a.Show(v)
		w.settle(time.Minute)
		if m := w.api.Messages(ann)[0]; m.Text != "✓ 7 steps, 4 min 5 s\n✍️ note from Ann went in at step 6" || len(m.Entities) != 0 {
			t.Errorf("at the end: %+v", m)
		}
	})
}

// One line stands for several calls of a tool in a row.
func TestBubbleCounts(t *testing.T) {
	v := session.View{Step: 2, Tools: []session.ToolView{{Name: "read_file", Args: "c.go", State: session.ToolRunning, Times: 3}}}
	if got, want := bubbleText(v, 0, time.Now(), false).text, "Step 2 · 0 s\n▸ read_file c.go ×3"; got != want {
		t.Errorf("bubble %q; want %q", got, want)
	}
}

func TestWordsStep(t *testing.T) {
	for _, c := range []struct {
		step, steps int
		d           time.Duration
		want        string
	}{
		{0, 60, 5 * time.Second, "Working · 5 s"},
		{3, 60, 59 * time.Second, "Step 3/60 · 59 s"},
		{3, 0, 59 * time.Second, "Step 3 · 59 s"},
		{0, 60, 2 * time.Minute, "Still running, 2 min"},
		{7, 60, time.Minute, "Still running, 1 min, step 7/60"},
		{7, 0, 4*time.Minute + 30*time.Second, "Still running, 4 min 30 s, step 7"},
	} {
		if got := bubble.Step(c.step, c.steps, c.d); got != c.want {
			t.Errorf("%d/%d after %v: %q; want %q", c.step, c.steps, c.d, got, c.want)
		}
	}
}
