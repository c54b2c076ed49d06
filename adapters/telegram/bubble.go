package telegram

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
)

const (
	bubbleTools = 4   // calls shown at a time
	bubbleNotes = 5   // newest notes shown
	argsMost    = 80  // units of a call's arguments
	tailMost    = 120 // units of a call's last line
	textTail    = 600 // units of the model's text shown in groups, which have no drafts
)

// A composed text is plain text with entities. Nothing in it can act as markup,
// so nothing is escaped.
type composed struct {
	text     string
	entities []models.MessageEntity
	units    int
}

func (c *composed) add(kind models.MessageEntityType, s string) {
	n := markup.Units(s)
	if kind != "" && n > 0 {
		c.entities = append(c.entities, models.MessageEntity{Type: kind, Offset: c.units, Length: n})
	}
	c.text += s
	c.units += n
}

// append adds what was composed apart.
func (c *composed) append(o composed) {
	for _, e := range o.entities {
		e.Offset += c.units
		c.entities = append(c.entities, e)
	}
	c.add(plain, o.text)
}

// call adds one call in a line: its outcome, name, short arguments, how often
// and how long.
func (c *composed) call(t session.ToolView, now time.Time) {
	c.add(plain, toolSign(t)+" ")
	c.add(models.MessageEntityTypeBold, cutUnits(oneLine(t.Name), argsMost))
	if args := cutUnits(oneLine(t.Args), argsMost); args != "" {
		c.add(plain, " "+args)
	}
	c.add(plain, wordsTimes(t.Times))
	switch {
	case t.State == session.ToolRunning && !t.Began.IsZero():
		c.add(plain, " · "+span(coarse(now.Sub(t.Began))))
	case t.Took >= 1:
		c.add(plain, " · "+span(time.Duration(t.Took*float64(time.Second))))
	}
}

const plain models.MessageEntityType = ""

// bubbleText says where a turn stands.
func bubbleText(v session.View, elapsed time.Duration, now time.Time, group bool) composed {
	var c composed
	c.add(models.MessageEntityTypeBold, wordsStep(v.Step, v.Steps, coarse(elapsed)))
	for _, t := range calls(v.Tools) {
		c.add(plain, "\n")
		c.call(t, now)
		if line := cutUnits(oneLine(lastLine(t.Tail)), tailMost); line != "" && t.State == session.ToolRunning {
			c.add(plain, "\n")
			c.add(models.MessageEntityTypeCode, line)
		}
	}
	for _, n := range v.Notes[max(0, len(v.Notes)-bubbleNotes):] {
		c.add(plain, "\n"+wordsNote(cutUnits(oneLine(n.From), 32), n.Step, n.Sent))
	}
	if v.Notice != "" {
		c.add(plain, "\n"+cutUnits(oneLine(v.Notice), 300))
	}
	if group && v.Text != "" {
		pieces := markup.Split(markup.ParsePartial(v.Text), textTail)
		if len(pieces) > 0 {
			last := pieces[len(pieces)-1]
			c.add(plain, "\n\n")
			c.append(composed{text: last.Plain, entities: entities(last)})
		}
	}
	return c
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

// closingText is what stays of the bubble: one line, whose notes went in, and
// the calls, folded.
func closingText(v session.View, elapsed time.Duration) composed {
	var c composed
	c.add(plain, closingLine(v, elapsed))
	for _, n := range v.Notes[max(0, len(v.Notes)-bubbleNotes):] {
		c.add(plain, "\n"+wordsNote(cutUnits(oneLine(n.From), 32), n.Step, n.Sent))
	}
	if v.Done {
		c.fold(v.Tools)
	}
	return c
}

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

const stopPrefix = "stop:"

func stopData(turn int64) string { return stopPrefix + strconv.FormatInt(turn, 10) }

// pendingData opens the list of what waits.
const pendingData = "pending"

func runningButtons(key session.Key, v session.View) *keyboard {
	list := []session.Button{{Text: wordsStop, Data: stopData(v.Turn)}}
	if v.Waiting > 0 {
		list = append(list, session.Button{Text: wordsWaiting(v.Waiting), Data: pendingData})
	}
	return buttons(key, list)
}

// oneLine makes white space of any kind a single blank.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// signLine is one message in the list that stands for signs.
func signLine(state session.FateState, step int) string {
	switch state {
	case session.FatePending:
		return "👀 goes in at the next step"
	case session.FateQueued:
		return "😴 waits its turn"
	case session.FateHeld:
		return "😴 held by /stop"
	case session.FateSteered:
		if step > 0 {
			return fmt.Sprintf("✍ went in at step %d", step)
		}
		return "✍ went in"
	}
	return ""
}
