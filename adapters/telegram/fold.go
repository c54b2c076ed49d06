package telegram

import (
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/bubble"
	"coxswain/adapters/markup"
	"coxswain/session"
)

// What the fold below a closed bubble holds at most, so that the whole stays
// well under the 4,096 units and 100 entities of a message.
const (
	foldLines = 40
	foldUnits = 3000
)

// fold adds the calls of a turn that is over, newest last, in a quote that
// Telegram shows folded. Of many the newest are kept. on: the turn goes on elsewhere,
// and what runs does.
func (c *composed) fold(tools []session.ToolView, on bool) {
	if len(tools) == 0 {
		return
	}
	first, units := len(tools), 0
	var lines []composed // newest first
	for first > 0 {
		var line composed
		t := tools[first-1]
		if !on {
			t = ended(t)
		}
		t.Began = time.Time{} // no time goes on here
		line.call(t, time.Time{})
		head := 0
		if first > 1 { // room for the line that counts those before
			head = 1 + markup.Units(bubble.Before(countCalls(tools[:first-1])))
		}
		if len(lines)+1+min(head, 1) > foldLines || units+1+line.units+head > foldUnits {
			break
		}
		lines = append(lines, line)
		units += 1 + line.units
		first--
	}
	c.add(plain, "\n")
	start, at := c.units, len(c.entities)
	if first > 0 {
		c.add(plain, bubble.Before(countCalls(tools[:first])))
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if c.units > start {
			c.add(plain, "\n")
		}
		c.append(lines[i])
	}
	quote := models.MessageEntity{Type: models.MessageEntityTypeExpandableBlockquote, Offset: start, Length: c.units - start}
	c.entities = append(c.entities[:at], append([]models.MessageEntity{quote}, c.entities[at:]...)...)
}

// ended is a call as it stands when its turn is over: one that was still
// running was cut off with it.
func ended(t session.ToolView) session.ToolView {
	if t.State == session.ToolRunning {
		t.State, t.Failed = session.ToolDone, true
	}
	return t
}

// countCalls counts calls, those too that another stands for.
func countCalls(tools []session.ToolView) int {
	n := 0
	for _, t := range tools {
		n += max(t.Times, 1)
	}
	return n
}
