package telegram

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"coxswain/adapters/bubble"
	"coxswain/session"
)

// reactions are the signs of states: one each, no two alike but queued and
// held, which both wait, and failed and stopped, which both ended without an
// answer. States without one change nothing. All are in the set Telegram lets
// bots use.
var reactions = map[session.FateState]string{
	session.FatePending:  "👀",
	session.FateQueued:   "😴",
	session.FateHeld:     "😴",
	session.FateSteered:  "✍",
	session.FateAnswered: "👍",
	session.FateDropped:  "👎",
	session.FateFailed:   "💔",
	session.FateStopped:  "🫡",
}

// signs are the status bubbles of sessions in chats that refuse reactions.
type signs struct {
	mu   sync.Mutex
	list map[session.Key]*signList
}

// A signList is one silent message that lists what became of messages. mu is
// held over its calls: they go one after another.
type signList struct {
	mu     sync.Mutex
	lines  []signed
	bubble int
	shown  string
}

type signed struct {
	msg   session.MessageID
	first string // its first words
	state session.FateState
	step  int
}

// Sign reacts to the first message of an input. An input that did not wait
// needs no sign.
func (a *Adapter) Sign(ctx context.Context, key session.Key, f session.Fate) error {
	emoji := reactions[f.State]
	if emoji == "" || len(f.Msgs) == 0 || !f.Waited && !f.State.Waits() {
		return nil
	}
	t, err := a.target(ctx, key)
	if err != nil {
		return sendError(err)
	}
	msg := f.Msgs[0]
	id, ok := a.wireID(t.chat, msg)
	if !ok {
		return nil // from before the group moved: it can be reached no more (T16)
	}
	if a.chats.isBlocked(t.chat) {
		return &session.SendError{Outcome: session.SendRefused, Err: errBlocked}
	}
	if !a.chats.takesSigns(t.chat) {
		return a.list(ctx, key, t, msg, id, f)
	}
	if d := a.pace.cooling(t.chat); d > 0 {
		return &session.SendError{Outcome: session.SendNot, Wait: d, Err: errPaced}
	}
	err = a.api.call(ctx, "setMessageReaction", &bot.SetMessageReactionParams{ChatID: t.chat, MessageID: id, Reaction: []models.ReactionType{{
		Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Type: models.ReactionTypeTypeEmoji, Emoji: emoji},
	}}}, nil)
	if err == nil {
		return nil
	}
	a.flooded(t.chat, err)
	e, ok := errors.AsType[*apiError](err)
	switch {
	case ok && e.says("reaction_invalid", "reaction_not_allowed", "reactions_", "not enough rights", "chat_admin_required"):
		a.chats.refuseSigns(t.chat)
		return a.list(ctx, key, t, msg, id, f)
	case ok && e.says("message is not modified"):
		return nil
	case ok && e.code == http.StatusForbidden:
		a.chats.block(t.chat, blockedFor)
	}
	return sendError(err)
}

// list shows the states in one silent message of the session, and answers
// ErrNoSigns when it stands there.
func (a *Adapter) list(ctx context.Context, key session.Key, t target, msg session.MessageID, id int, f session.Fate) error {
	a.signs.mu.Lock()
	l := a.signs.list[key]
	if l == nil {
		if a.signs.list == nil {
			a.signs.list = make(map[session.Key]*signList)
		}
		l = &signList{}
		a.signs.list[key] = l
	}
	a.signs.mu.Unlock()

	l.mu.Lock()
	defer l.mu.Unlock()
	first := wordsEarlier
	if m, ok := a.seen.get(seenKey{t.chat, id}); ok && m.first != "" {
		first = m.first
	}
	l.set(signed{msg, first, f.State, f.Step})
	text := l.text()
	if text == l.shown || text == wordsNothing && l.bubble == 0 {
		return session.ErrNoSigns
	}
	if wait, ok := a.pace.take(t.chat, 1, true, 0); !ok {
		return &session.SendError{Outcome: session.SendNot, Wait: wait, Err: errPaced}
	}
	if err := a.showList(ctx, t, l, text); err != nil {
		a.flooded(t.chat, err)
		return sendError(err)
	}
	l.shown = text
	if text == wordsNothing {
		// What waits next is listed further down, in a new message.
		l.bubble, l.shown = 0, ""
	}
	return session.ErrNoSigns
}

func (a *Adapter) showList(ctx context.Context, t target, l *signList, text string) error {
	if l.bubble != 0 {
		err := a.api.call(ctx, "editMessageText", &bot.EditMessageTextParams{ChatID: t.chat, MessageID: l.bubble, Text: text, LinkPreviewOptions: noPreview}, nil)
		e, ok := errors.AsType[*apiError](err)
		if err == nil || ok && e.says("message is not modified") {
			return nil
		}
		if !ok || !e.says("message to edit not found", "message can't be edited") {
			return err
		}
		l.bubble = 0
		if text == wordsNothing {
			return nil
		}
	}
	id, err := a.sendMessage(ctx, t, payload{Text: text, Silent: true})
	l.bubble = id
	return err
}

// signMost bounds the list: the slot holds no more than this.
const signMost = session.SlotCap

// set puts a state on the list. Messages that are done with leave it.
func (l *signList) set(s signed) {
	at := len(l.lines)
	for i := range l.lines {
		if l.lines[i].msg == s.msg {
			at = i
		}
	}
	switch {
	case s.state.Final() && at < len(l.lines):
		l.lines = append(l.lines[:at], l.lines[at+1:]...)
	case s.state.Final():
	case at < len(l.lines):
		l.lines[at] = s
	default:
		l.lines = append(l.lines, s)
		l.lines = l.lines[max(0, len(l.lines)-signMost):]
	}
}

func (l *signList) text() string {
	if len(l.lines) == 0 {
		return wordsNothing
	}
	var b strings.Builder
	b.WriteString(wordsWaitingHead)
	for _, s := range l.lines {
		b.WriteString("\n“" + s.first + "” " + bubble.Fate(s.state, s.step))
	}
	return b.String()
}
