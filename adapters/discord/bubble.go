package discord

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"coxswain/adapters/markup"
	"coxswain/session"
)

const (
	bubbleTools = 4   // calls shown at a time
	bubbleNotes = 5   // newest notes shown
	argsMost    = 80  // units of a call's arguments
	tailMost    = 120 // units of a call's last line
	textTail    = 600 // units of the model's text shown
)

// bubbleText says where a turn stands, in Discord's Markdown. What comes from
// tools and people stands in code or is escaped.
func bubbleText(v session.View, elapsed time.Duration, now time.Time) string {
	var b strings.Builder
	b.WriteString("**" + wordsStep(v.Step, v.Steps, coarse(elapsed)) + "**")
	for _, t := range calls(v.Tools) {
		b.WriteString("\n" + toolSign(t) + " " + code(t.Name, argsMost))
		if args := code(t.Args, argsMost); args != "" {
			b.WriteString(" " + args)
		}
		b.WriteString(wordsTimes(t.Times))
		switch {
		case t.State == session.ToolRunning && !t.Began.IsZero():
			b.WriteString(" · " + span(coarse(now.Sub(t.Began))))
		case t.Took >= 1:
			b.WriteString(" · " + span(time.Duration(t.Took*float64(time.Second))))
		}
		if line := code(lastLine(t.Tail), tailMost); line != "" && t.State == session.ToolRunning {
			b.WriteString("\n" + line)
		}
	}
	for _, n := range v.Notes[max(0, len(v.Notes)-bubbleNotes):] {
		b.WriteString("\n" + wordsNote(n.N, plain(n.From, 32), n.Step, n.Sent))
	}
	if v.Notice != "" {
		b.WriteString("\n" + plain(v.Notice, 300))
	}
	if v.Text != "" {
		if pieces := markup.DiscordPartial(v.Text, textTail); len(pieces) > 0 {
			b.WriteString("\n\n" + pieces[len(pieces)-1])
		}
	}
	return b.String()
}

// calls picks what to show: the calls that run, else the newest one.
func calls(all []session.ToolView) []session.ToolView {
	var out []session.ToolView
	for _, t := range all {
		if t.State == session.ToolRunning {
			out = append(out, t)
		}
	}
	if len(out) == 0 && len(all) > 0 {
		return all[len(all)-1:]
	}
	return out[max(0, len(out)-bubbleTools):]
}

func toolSign(t session.ToolView) string {
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

// code shows s as it is, on one line. In code nothing of it acts as markup.
func code(s string, most int) string {
	s = cutUnits(strings.Join(strings.Fields(s), " "), most)
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}

// plain shows s as it is, on one line, by a backslash before what could act.
func plain(s string, most int) string {
	var b strings.Builder
	for _, r := range cutUnits(strings.Join(strings.Fields(s), " "), most) {
		if strings.ContainsRune("\\`*_~|<>@#[]()-", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// lastLine gives the last line that says something.
func lastLine(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// coarse rounds a running time down, the more the longer it is: each change is
// an edit, and edits are limited.
func coarse(d time.Duration) time.Duration {
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

// closingLine is what stays of the bubble.
func closingLine(v session.View, elapsed time.Duration) string {
	took := wordsSteps(v.Step) + ", " + span(elapsed)
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

func runningButtons(v session.View) []row {
	list := []session.Button{{Text: wordsStop, Data: "stop:" + strconv.FormatInt(v.Turn, 10)}}
	if v.Waiting > 0 {
		list = append(list, session.Button{Text: wordsWaiting(v.Waiting), Data: "pending"})
	}
	return buttons(v.Key, list)
}
