// Package bubble says in words where a running turn stands, for platforms that show
// one message per turn and edit it: what of its calls is shown, how the lines read,
// and how often they change. A platform puts them into its own markup; here is plain
// text, and nothing of what tools and people wrote.
//
// Its functions are pure and may be called from any goroutine.
package bubble

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"coxswain/session"
)

// How much of a turn a bubble shows.
const (
	Tools    = 4   // calls that run, at a time
	Notes    = 5   // notes, the newest
	ArgsMost = 80  // UTF-16 units of a call's arguments
	TailMost = 120 // units of a call's last line
	TextTail = 600 // units of the model's text
)

// Calls picks what to show of a turn's calls: those that run, else the newest one.
func Calls(all []session.ToolView) []session.ToolView {
	var out []session.ToolView
	for _, t := range all {
		if t.State == session.ToolRunning {
			out = append(out, t)
		}
	}
	if len(out) == 0 && len(all) > 0 {
		return all[len(all)-1:]
	}
	return out[max(0, len(out)-Tools):]
}

// Mark is the sign of a call's state.
func Mark(t session.ToolView) string {
	switch {
	case t.State == session.ToolRunning:
		return "▸"
	case t.State == session.ToolJob:
		return "⇢"
	case t.State == session.ToolSkipped:
		return "–"
	case t.Failed:
		return "✗"
	}
	return "✓"
}

// Took is how long a call has run, or ran, behind its line; "" when it is no
// matter.
func Took(t session.ToolView, now time.Time) string {
	switch {
	case t.State == session.ToolRunning && !t.Began.IsZero():
		return " · " + Span(Coarse(now.Sub(t.Began)))
	case t.Took >= 1:
		return " · " + Span(time.Duration(t.Took*float64(time.Second)))
	}
	return ""
}

// Coarse rounds a running time down, the more the longer it is: each change is an
// edit, and edits are limited.
func Coarse(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return d.Truncate(2 * time.Second)
	case d < time.Minute:
		return d.Truncate(5 * time.Second)
	case d < 10*time.Minute:
		return d.Truncate(30 * time.Second)
	}
	return d.Truncate(time.Minute)
}

// LastLine gives the last line that says something.
func LastLine(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Closing is the one line that stays of a bubble.
func Closing(v session.View, elapsed time.Duration) string {
	took := Steps(v.Step) + ", " + Span(elapsed)
	switch {
	case !v.Done:
		return "… " + took
	case v.End == session.EndStopped:
		return "■ stopped · " + took
	case v.End == session.EndReplaced:
		return "↺ replaced by what you wrote next · " + took
	case v.End == session.EndFailed:
		return "✗ failed · " + took
	case v.End == session.EndMoved:
		return "→ goes on in another chat · " + took
	}
	return "✓ " + took
}

// Step is the first line of a running turn's bubble.
func Step(step, steps int, d time.Duration) string {
	at := fmt.Sprint(step)
	if steps > 0 {
		at += fmt.Sprintf("/%d", steps)
	}
	switch {
	case d >= time.Minute && step == 0:
		return "Still running, " + Span(d)
	case d >= time.Minute:
		return "Still running, " + Span(d) + ", step " + at
	case step == 0:
		return "Working · " + Span(d)
	}
	return "Step " + at + " · " + Span(d)
}

// Steps counts steps.
func Steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}

// Times says how many calls in a row a line stands for.
func Times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" ×%d", n)
}

// Before counts the calls that are not listed.
func Before(n int) string { return fmt.Sprintf("… and %d before", n) }

// NoteLines say whose notes went in at which step, those that went in together in one
// line. name writes a name as the platform does; "" = nobody has one.
func NoteLines(v session.View, name func(string) string) []string {
	var lines []string
	notes := v.Notes[max(0, len(v.Notes)-Notes):]
	for i := 0; i < len(notes); {
		n, many := notes[i], 0
		for ; i < len(notes) && notes[i].From == n.From && notes[i].Step == n.Step && notes[i].Sent == n.Sent; i++ {
			many++
		}
		lines = append(lines, note(name(n.From), n, many))
	}
	return lines
}

func note(from string, n session.NoteView, many int) string {
	if from == "" {
		from = "someone"
	}
	what, went := "note", "went in"
	if many > 1 {
		what = fmt.Sprintf("%d notes", many)
	}
	switch {
	case !n.Sent && many > 1:
		went = "go in"
	case !n.Sent:
		went = "goes in"
	}
	return fmt.Sprintf("✍️ %s from %s %s at step %d", what, from, went, n.Step)
}

// Fate is an input's state in the list that stands for signs; "" for one that does
// not wait and was not steered in.
func Fate(state session.FateState, step int) string {
	switch state {
	case session.FatePending, session.FateAttached:
		return "👀 goes in at the next step"
	case session.FateQueued:
		return "😴 waits its turn"
	case session.FateHeld:
		return "😴 held by /stop"
	case session.FateSteered:
		if step > 0 {
			return fmt.Sprintf("✍️ went in at step %d", step)
		}
		return "✍️ went in"
	}
	return ""
}

// Waiting is the button that lists what waits.
func Waiting(n int) string { return fmt.Sprintf("Waiting %d", n) }

// Span says a time for people: seconds up to a minute, then minutes, then hours.
func Span(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600 && s%60 != 0:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}
