package telegram

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/bubble"
	"coxswain/adapters/markup"
	"coxswain/session"
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
	c.add(plain, bubble.Mark(t)+" ")
	c.add(models.MessageEntityTypeBold, cutUnits(oneLine(t.Name), bubble.ArgsMost))
	if args := cutUnits(oneLine(t.Args), bubble.ArgsMost); args != "" {
		c.add(plain, " "+args)
	}
	c.add(plain, bubble.Times(t.Times))
	c.add(plain, bubble.Took(t, now))
}

const plain models.MessageEntityType = ""

// bubbleText says where a turn stands.
func bubbleText(v session.View, elapsed time.Duration, now time.Time, group bool) composed {
	var c composed
	c.add(models.MessageEntityTypeBold, bubble.Step(v.Step, v.Steps, bubble.Coarse(elapsed)))
	for _, t := range bubble.Calls(v.Tools) {
		c.add(plain, "\n")
		c.call(t, now)
		if line := cutUnits(oneLine(bubble.LastLine(t.Tail)), bubble.TailMost); line != "" && t.State == session.ToolRunning {
			c.add(plain, "\n")
			c.add(models.MessageEntityTypeCode, line)
		}
	}
	for _, line := range bubble.NoteLines(v, noteName) {
		c.add(plain, "\n"+line)
	}
	if v.Notice != "" {
		c.add(plain, "\n"+cutUnits(oneLine(v.Notice), 300))
	}
	if group && v.Text != "" {
		pieces := markup.Split(markup.ParsePartial(v.Text), bubble.TextTail)
		if len(pieces) > 0 {
			last := pieces[len(pieces)-1]
			c.add(plain, "\n\n")
			c.append(composed{text: last.Plain, entities: entities(last)})
		}
	}
	return c
}

// closingText is what stays of the bubble: one line, whose notes went in, and
// the calls, folded.
func closingText(v session.View, elapsed time.Duration) composed {
	var c composed
	c.add(plain, bubble.Closing(v, elapsed))
	for _, line := range bubble.NoteLines(v, noteName) {
		c.add(plain, "\n"+line)
	}
	if v.Done {
		c.fold(v.Tools, v.End == session.EndMoved)
	}
	return c
}

const stopPrefix = "stop:"

func stopData(turn int64, mark string) string { return stopPrefix + strconv.FormatInt(turn, 10) + mark }

// pendingData opens the list of what waits.
const pendingData = "pending"

func runningButtons(key session.Key, v session.View) *keyboard {
	list := []session.Button{{Text: wordsStop, Data: stopData(v.Turn, v.Mark)}}
	if v.Waiting > 0 {
		list = append(list, session.Button{Text: bubble.Waiting(v.Waiting), Data: pendingData})
	}
	return buttons(key, list)
}

// noteName is a name in the line of a note.
func noteName(name string) string { return cutUnits(oneLine(name), 32) }

// oneLine makes white space of any kind a single blank.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
