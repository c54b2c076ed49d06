package telegram

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
	"coxswain/steer"
)

// typing shows that the bot is at work. It ends with the follower, so it cannot
// outlive its turn.
func (f *follower) typing(ctx context.Context, t target, v session.View) time.Duration {
	if v.Phase == steer.PhaseAsking || f.a.isChannel(t.chat) {
		return time.Hour // it is the person's turn, or nobody is there to see it: channels have no such sign
	}
	now := time.Now()
	if d := f.began.Add(typingAfter).Sub(now); d > 0 {
		return d
	}
	if d := f.typed.Add(typingEvery).Sub(now); !f.typed.IsZero() && d > 0 {
		return d
	}
	f.typed = now
	call, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	thread := t.thread
	if thread == 0 && f.a.chats.hasTopics(t.chat) {
		thread = generalTopic // a sign without it is shown nowhere in a forum (T18)
	}
	p := &bot.SendChatActionParams{ChatID: t.chat, MessageThreadID: thread, Action: models.ChatActionTyping}
	f.failed(t, "typing", f.a.api.call(call, "sendChatAction", p, nil))
	return typingEvery
}

// draft streams the model's text in a private chat.
func (f *follower) draft(ctx context.Context, t target, v session.View) time.Duration {
	if t.group() || v.Text == "" || !f.a.chats.takesDrafts(t.chat) {
		return time.Hour
	}
	now := time.Now()
	since := now.Sub(f.drafted)
	changed := v.Text != f.draftText
	switch {
	case !changed && since < draftFresh:
		return draftFresh - since
	case changed && since < draftEvery:
		return draftEvery - since
	case f.drafted.IsZero() && markup.Units(v.Text) < draftAfter && now.Sub(f.began) < draftSoon:
		return f.began.Add(draftSoon).Sub(now)
	}
	if wait := f.a.pace.look(t.chat, draftCost); wait > 0 {
		return wait
	}
	pieces := markup.Split(markup.ParsePartial(v.Text), textMost)
	if len(pieces) == 0 {
		return time.Hour
	}
	f.mu.Lock()
	if f.muted {
		f.mu.Unlock()
		return time.Hour
	}
	call, cancel := context.WithTimeout(ctx, frameTime)
	f.stopCall = cancel
	f.mu.Unlock()
	defer cancel()
	if wait, ok := f.a.pace.take(t.chat, draftCost, true, 0); !ok {
		return wait
	}
	last := pieces[len(pieces)-1] // of a text over the limit, the end
	ents := entities(last)
	f.drafted, f.draftText = now, v.Text
	// The library's parameters have the id as a string, which Telegram refuses,
	// and know no can_stop.
	err := f.a.api.call(call, "sendMessageDraft", struct {
		Chat     int64                  `json:"chat_id"`
		Thread   int                    `json:"message_thread_id,omitempty"`
		Draft    int64                  `json:"draft_id"`
		Text     string                 `json:"text"`
		Entities []models.MessageEntity `json:"entities,omitempty"`
		CanStop  bool                   `json:"can_stop"`
	}{t.chat, t.thread, f.turn, last.Plain, ents[:min(len(ents), entitiesMost)], true}, nil)
	if e, ok := errors.AsType[*apiError](err); ok && e.code >= 400 && e.code < 500 && e.code != http.StatusTooManyRequests {
		f.a.chats.refuseDrafts(t.chat) // this chat or server has none
	}
	f.failed(t, "draft", err)
	return draftFresh
}
