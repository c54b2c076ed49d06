package screens

import (
	"html/template"
	"slices"
	"strings"
	"testing"
	"time"
)

// A message is one message of a chat as it is drawn.
type message struct {
	ID      string
	Mine    bool // of the person whose screen it is
	Name    string
	Text    string        // as the platform has it
	HTML    template.HTML // as people see it
	Reply   *message
	Buttons [][]string
	Signs   []string
	Edited  bool
	Clock   string // empty = not drawn
	Follows bool   // the one before is of the same author
}

// A network is a fake platform with a gateway behind it.
type network interface {
	say(text string) (id string)
	chat() []message
	// pass lets time go by where it costs none; until waits for cond.
	pass(d time.Duration)
	until(what string, cond func() bool)
}

const (
	asks  = "Build the sales report and check its totals."
	notes = "use the March data, please"
)

// play plays the story, and gives the chat in the middle and at the end.
func play(t testing.TB, n network, b *box) (middle, end []message) {
	t.Helper()
	next := func() *run {
		t.Helper()
		var r *run
		n.until("a call", func() bool {
			select {
			case r = <-b.runs:
				return true
			default:
				return false
			}
		})
		return r
	}
	has := func(parts ...string) func() bool {
		return func() bool {
			return slices.ContainsFunc(n.chat(), func(m message) bool {
				return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(m.Text, p) })
			})
		}
	}
	n.say(asks)
	building := next()
	n.until("the bubble", has("make report", "Step 2"))
	n.pass(2 * time.Second)
	note := n.say(notes)
	n.until("the note is seen", func() bool { return signed(n.chat(), note, "👀") })
	n.pass(time.Second)
	building.end()
	building = next()
	n.until("the note is in", func() bool { return signed(n.chat(), note, "✍") && has("MONTH=03", "went in")() })
	n.pass(6 * time.Second)
	middle = n.chat()
	building.end()
	checking := next()
	n.pass(2 * time.Second)
	checking.end()
	n.until("the answer", func() bool {
		return has("March report is built")() && has("✓ 5 steps")() && signed(n.chat(), note, "👍")
	})
	return middle, n.chat()
}

// signed reports whether a message has a sign.
func signed(chat []message, id, sign string) bool {
	return slices.ContainsFunc(chat, func(m message) bool {
		return m.ID == id && slices.ContainsFunc(m.Signs, func(s string) bool { return strings.HasPrefix(s, sign) })
	})
}

// linked puts replies in and says which messages follow one of their author.
func linked(chat []message, replies map[string]string) []message {
	for i := range chat {
		for _, m := range chat {
			if m.ID == replies[chat[i].ID] {
				chat[i].Reply = &message{Name: m.Name, HTML: m.HTML, Text: m.Text}
			}
		}
		chat[i].Follows = i > 0 && chat[i-1].Name == chat[i].Name && chat[i].Reply == nil
	}
	return chat
}
