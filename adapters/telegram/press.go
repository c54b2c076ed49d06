package telegram

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"

	"coxswain/session"
)

// What becomes of a pressed button (T32). A press is answered before it is seen
// to; once the door has taken it, the row that it used up is taken away. Rows are
// progress: a row that could not be taken away says, pressed again, that it is
// out of date.

// answer ends the waiting sign on a pressed button. It is sent at once, before
// the press is seen to; one that comes too late is no error.
func (a *Adapter) answer(ctx context.Context, id, words string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := a.api.call(ctx, "answerCallbackQuery", &bot.AnswerCallbackQueryParams{CallbackQueryID: id, Text: words}, nil); err != nil {
		a.log.Debug("button press not answered", "err", err)
	}
}

// stopsShown reports whether m presses the Stop of a turn that is being shown.
func (a *Adapter) stopsShown(m session.Message) bool {
	return strings.HasPrefix(m.Button, stopPrefix) && a.shows.shown(m.Key, m.Button)
}

// pressed sees to the buttons of a message when the door has taken a press of
// one of them. Those of a bubble whose turn was running have a life of their own.
func (a *Adapter) pressed(ctx context.Context, c *callback, m session.Message, running bool) {
	told := a.presses.told(c.ID)
	switch {
	case running || m.Button == pendingData:
	case strings.HasPrefix(m.Button, stopPrefix):
		// No turn of it is shown any more: a process that died has left them.
		a.beside.Go(func() { a.takeRow(ctx, c, nil) })
	case told && !m.Private && !asksFor(c, m):
		// Words were the answer: the button is out of date, or not this person's to
		// press. In a group it may still be somebody's.
	default:
		a.beside.Go(func() {
			if a.permits(ctx, m) { // else nothing was done
				a.useRow(ctx, c)
			}
		})
	}
}

// morePrefix begins the data of the button that gives a budget as much again.
const morePrefix = "more:"

// asksFor reports whether a message with buttons is there for who pressed one:
// it answers their message, or their session is one of their own. What asks for
// more of a budget is there for admins, whoever has the session.
func asksFor(c *callback, m session.Message) bool {
	r := c.Message.ReplyTo
	return !strings.HasPrefix(m.Button, morePrefix) && (m.Key.User == m.From.ID || r != nil && r.From != nil && r.From.ID == c.From.ID)
}

// presses remember what a press needs from one step to the next: which were
// answered in words, and which rows are used up. The zero value is ready; any
// goroutine.
type presses struct {
	mu    sync.Mutex
	words map[string]time.Time // by the query's id, until
	used  map[seenKey]*usedRows
}

// pressFor bounds how long a press is remembered: its steps follow one another.
const pressFor = time.Minute

// tell notes that a press was answered in words.
func (p *presses) tell(query string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark(&p.words, query, pressFor)
}

// told reports whether a press was answered in words, and forgets it.
func (p *presses) told(query string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := marked(p.words, query)
	delete(p.words, query)
	return told
}

// usedRows are the rows of one message that are used up. Its calls go one after
// another, or an older one would bring a row back.
type usedRows struct {
	turn  chan struct{} // holds a token while a call is made
	data  []string      // of the buttons pressed; whose turn it is has it
	since time.Time     // of the last press; presses.mu
}

func (p *presses) rowsOf(k seenKey) *usedRows {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	u := p.used[k]
	if u == nil {
		if p.used == nil {
			p.used = make(map[seenKey]*usedRows)
		}
		for old, o := range p.used { // what is pressed later shows the rows as they are
			if now.Sub(o.since) > pressFor {
				delete(p.used, old)
			}
		}
		u = &usedRows{turn: make(chan struct{}, 1)}
		p.used[k] = u
	}
	u.since = now
	return u
}

// useRow takes the row of the pressed button off its message. The press brings
// the buttons as they were: of a message too old to see there are none.
func (a *Adapter) useRow(ctx context.Context, c *callback) {
	rows := c.Message.rows()
	if !slices.ContainsFunc(rows, func(r wireRow) bool { return r.has(c.Data) }) {
		return
	}
	u := a.presses.rowsOf(seenKey{c.Message.Chat.ID, c.Message.ID})
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return
	}
	u.data = append(u.data, c.Data)
	// Rows pressed a moment ago may still have stood there at this press.
	left := slices.DeleteFunc(rows, func(r wireRow) bool { return slices.ContainsFunc(u.data, r.has) })
	a.takeRow(ctx, c, left)
}

// takeRow leaves a message the rows given, within the chat's budget, or does not
// when there is no room for it.
func (a *Adapter) takeRow(ctx context.Context, c *callback, left []wireRow) {
	chat := c.Message.Chat.ID
	if a.chats.isBlocked(chat) {
		return
	}
	wait, ok := a.pace.take(chat, 1, true, paceWait)
	if !ok || !pause(ctx, wait) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	p := &bot.EditMessageReplyMarkupParams{ChatID: chat, MessageID: c.Message.ID}
	if len(left) > 0 {
		p.ReplyMarkup = struct {
			Rows []wireRow `json:"inline_keyboard"`
		}{left}
	}
	// Whatever Telegram says no with, the message is gone or has no such row.
	if err := a.api.call(ctx, "editMessageReplyMarkup", p, nil); err != nil {
		a.flooded(chat, err)
		a.log.Debug("buttons not taken away", "err", err)
	}
}

// A wireRow is a row of buttons as Telegram gave it: it goes back unchanged.
type wireRow []json.RawMessage

// has reports whether a button of the row sends data.
func (r wireRow) has(data string) bool {
	return slices.ContainsFunc(r, func(raw json.RawMessage) bool {
		var b button
		return json.Unmarshal(raw, &b) == nil && b.Data == data
	})
}

// rows gives the rows of buttons below a message.
func (m *message) rows() []wireRow {
	var k struct {
		Rows []wireRow `json:"inline_keyboard"`
	}
	if json.Unmarshal(m.Markup, &k) != nil {
		return nil // there are none, or of a kind that came later
	}
	return k.Rows
}
