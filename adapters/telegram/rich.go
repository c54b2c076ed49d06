package telegram

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
)

// lacksFor is how long a method that the server does not know is not tried.
const lacksFor = time.Hour

// richMost bounds a rich message in UTF-16 units. Telegram takes 32,768, but
// clients were seen to show only the beginning of long ones.
const richMost = partMost

// richText gives the Markdown to send as a rich message (Bot API 10.1), empty
// when entities do as well or better. Tables are what entities lack. A text with
// raw HTML or a formula's sign in it, or one that a server could mean by them, is
// not sent so: escaping it for a parser that is not at hand could mangle it.
func richText(md string, pieces []markup.Text) string {
	if len(pieces) != 1 || markup.Units(md) > richMost || strings.ContainsAny(md, "<$&") || !hasTable(md) {
		return ""
	}
	return md
}

// hasTable reports whether the Markdown has a line of a table's rule.
func hasTable(md string) bool {
	rows := 0
	for line := range strings.Lines(md) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "|") && strings.Contains(line, "--") && strings.Trim(line, "|-: ") == "" && rows > 0 {
			return true
		}
		rows = 0
		if strings.Contains(line, "|") {
			rows = 1
		}
	}
	return false
}

// sendRich is the call of sendRichMessage, which the library does not know.
func (a *Adapter) sendRich(ctx context.Context, t target, p payload) (int, error) {
	type text struct {
		Markdown string `json:"markdown"`
		Plain    bool   `json:"skip_entity_detection"`
	}
	params := struct {
		Chat     int64                   `json:"chat_id"`
		Thread   int                     `json:"message_thread_id,omitempty"`
		Text     text                    `json:"rich_message"`
		Silent   bool                    `json:"disable_notification,omitempty"`
		Reply    *models.ReplyParameters `json:"reply_parameters,omitempty"`
		Keyboard *keyboard               `json:"reply_markup,omitempty"`
	}{Chat: t.chat, Thread: t.thread, Text: text{p.Rich, true}, Silent: p.Silent, Keyboard: p.Keyboard}
	if id, ok := a.wireID(t.chat, p.ReplyTo); ok {
		params.Reply = &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
	}
	var sent struct {
		ID int `json:"message_id"`
	}
	err := a.api.call(ctx, "sendRichMessage", params, &sent)
	a.flooded(t.chat, err)
	a.stands(t.chat, sent.ID)
	if unknownMethod(err) {
		a.lacks.note("sendRichMessage")
	}
	return sent.ID, err
}

// unknownMethod reports that the server is older than the method.
func unknownMethod(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.code == http.StatusNotFound && e.says("method not found")
}
