package discord

import (
	"strconv"
	"strings"
	"time"

	"coxswain/adapters/bubble"
	"coxswain/adapters/markup"
	"coxswain/session"
)

// bubbleText says where a turn stands, in Discord's Markdown. What comes from
// tools and people stands in code or is escaped.
func bubbleText(v session.View, elapsed time.Duration, now time.Time) string {
	var b strings.Builder
	b.WriteString("**" + bubble.Step(v.Step, v.Steps, bubble.Coarse(elapsed)) + "**")
	for _, t := range bubble.Calls(v.Tools) {
		b.WriteString("\n" + bubble.Mark(t) + " " + code(t.Name, bubble.ArgsMost))
		if args := code(t.Args, bubble.ArgsMost); args != "" {
			b.WriteString(" " + args)
		}
		b.WriteString(bubble.Times(t.Times))
		b.WriteString(bubble.Took(t, now))
		if line := code(bubble.LastLine(t.Tail), bubble.TailMost); line != "" && t.State == session.ToolRunning {
			b.WriteString("\n" + line)
		}
	}
	for _, line := range bubble.NoteLines(v, func(name string) string { return plain(name, 32) }) {
		b.WriteString("\n" + line)
	}
	if v.Notice != "" {
		b.WriteString("\n" + plain(v.Notice, 300))
	}
	if v.Text != "" {
		if pieces := markup.DiscordPartial(v.Text, bubble.TextTail); len(pieces) > 0 {
			b.WriteString("\n\n" + pieces[len(pieces)-1])
		}
	}
	return b.String()
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

func runningButtons(v session.View) []row {
	list := []session.Button{{Text: wordsStop, Data: "stop:" + strconv.FormatInt(v.Turn, 10) + v.Mark}}
	if v.Waiting > 0 {
		list = append(list, session.Button{Text: bubble.Waiting(v.Waiting), Data: "pending"})
	}
	return buttons(v.Key, list)
}
