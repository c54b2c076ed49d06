package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
)

// paceWait is how long Send waits for its turn; a longer wait is the outbox's,
// which keeps it over a restart.
const paceWait = 3 * time.Second

var (
	errBlocked = errors.New("telegram: the chat has blocked the bot or left")
	errPaced   = errors.New("telegram: the chat's budget is used up")
)

// A target is where a session's messages go on the wire.
type target struct {
	chat   int64
	thread int
}

func (t target) group() bool { return t.chat < 0 }

// target gives the chat and topic of a key.
func (a *Adapter) target(ctx context.Context, key session.Key) (target, error) {
	chat, err := strconv.ParseInt(string(key.Chat), 10, 64)
	if err != nil || key.Platform != Name {
		return target{}, &session.SendError{Outcome: session.SendRefused, Err: fmt.Errorf("telegram: %q is no chat here", key)}
	}
	var t target
	if key.Thread != "" {
		if t.thread, err = strconv.Atoi(string(key.Thread)); err != nil {
			return target{}, &session.SendError{Outcome: session.SendRefused, Err: fmt.Errorf("telegram: %q is no topic here", key)}
		}
	}
	if err := a.loadAliases(ctx, false); err != nil {
		return target{}, &session.SendError{Outcome: session.SendNot, Err: err}
	}
	t.chat = a.aliases.to(chat)
	return t, nil
}

// Send sends one part. It waits up to three seconds for the chat's budget and
// returns the id of the message; that of the first when the part had to be cut.
//
// What Telegram refuses for a reason that can be cured is sent again, cured,
// once for each reason: formatting it cannot parse (T21), a closed topic (T17),
// a group that has moved (T16), a text that is too long after all (T20).
func (a *Adapter) Send(ctx context.Context, p session.Part) (session.MessageID, error) {
	var pl payload
	if err := json.Unmarshal(p.Data, &pl); err != nil || pl.Text == "" && pl.File == nil {
		return "", &session.SendError{Outcome: session.SendRefused, Err: fmt.Errorf("telegram: part %s holds no message", p.ID)}
	}
	t, err := a.target(ctx, p.Key)
	if err != nil {
		return "", sendError(err)
	}
	if p.State == session.PartUnknown {
		pl = prefixed(wordsRepeat, pl)
	}
	if p.Kind == session.PartFinal {
		a.shows.mute(p.Key, p.Turn) // a draft after the answer would hide it
	}
	s := sending{a: a, t: t, files: p.Session(), paced: p.Paced}
	ids, err := s.send(ctx, pl)
	if len(ids) > 0 && err != nil {
		// A piece of it stands in the chat: repeating it must be said to be so.
		se := *sendError(err)
		if se.Outcome == session.SendNot {
			se.Outcome = session.SendUnknown
		}
		err = &se
	}
	if err != nil {
		return "", sendError(err)
	}
	if s.gone.thread != 0 {
		a.chats.tellClosed(s.gone) // now it is told of
	}
	return a.messageID(s.t.chat, ids[0]), nil
}

// A sending is one Send with what it has tried.
type sending struct {
	a       *Adapter
	t       target
	files   session.Key // whose files it names
	plain   bool        // formatting was refused
	general bool        // the topic is closed
	opened  bool        // it was opened again
	gone    place       // the topic whose closing this message tells of
	moved   bool        // the group has moved
	bare    bool        // the reply was refused
	poor    bool        // the rich text was refused
	paced   bool        // the outbox has set room for one call aside
}

// send sends a payload, cured as the answers ask, and returns the ids of what
// now stands in the chat, also beside an error.
func (s *sending) send(ctx context.Context, p payload) ([]int, error) {
	if !s.general && s.t.thread != 0 && s.a.chats.isClosed(place(s.t)) {
		p = s.toGeneral(p)
	}
	for {
		id, err := s.once(ctx, p)
		if err == nil {
			return []int{id}, nil
		}
		if e, ok := errors.AsType[*fileError](err); ok {
			s.a.log.Warn("file not sent", "err", err)
			p = asWords(p, e.words)
			continue
		}
		e, ok := errors.AsType[*apiError](err)
		if !ok {
			return nil, err
		}
		if e.says("message is too long", "message_too_long", "caption is too long", "caption_too_long") && markup.Units(p.Text) > 64 {
			return s.halves(ctx, p)
		}
		cured, err := s.cure(ctx, p, e)
		if err != nil {
			return nil, err
		}
		p = cured
	}
}

// cure gives what to send instead of p, which was refused with e; once for each
// reason. The error is e's when there is no cure.
func (s *sending) cure(ctx context.Context, p payload, e *apiError) (payload, error) {
	switch {
	case e.migrateTo != 0 && !s.moved:
		s.moved = true
		if err := s.a.alias(ctx, s.t.chat, e.migrateTo); err != nil {
			return p, &session.SendError{Outcome: session.SendNot, Err: err}
		}
		s.t.chat = e.migrateTo
	case e.topicGone() && !s.general && s.t.thread != 0:
		if e.says("closed") && !s.opened && s.a.reopen(ctx, s.t) {
			s.opened = true
			return p, nil
		}
		s.a.chats.closeTopic(place(s.t))
		p = s.toGeneral(p)
	case e.says("message to be replied not found", "replied message not found", "reply message not found", "reply_message_id_invalid") && !s.bare && p.ReplyTo != "":
		s.bare = true
	case e.code == http.StatusForbidden:
		s.a.chats.block(s.t.chat, blockedFor)
		return p, e
	case p.Rich != "" && !s.poor && (e.code == http.StatusBadRequest || unknownMethod(e)):
		s.poor = true
	case e.says("can't parse entities", "entity_", "entities_") && !s.plain && len(p.Entities) > 0:
		s.plain = true
		s.a.log.Warn("formatting refused, sent without", "err", e, "entities", spanList(p.Entities))
	case p.File != nil && e.code == http.StatusRequestEntityTooLarge:
		p = asWords(p, wordsFileRefused(p.File.Name))
	case p.File != nil && e.code == http.StatusBadRequest:
		return s.asDocument(p, e)
	default:
		return p, e
	}
	return p, nil
}

// asDocument sends a file that is not taken as what it was to be (a picture
// with odd measures, a voice message where they are forbidden) as a document.
func (s *sending) asDocument(p payload, e *apiError) (payload, error) {
	if p.File == nil || p.File.Kind == "document" {
		return p, e
	}
	f := *p.File
	f.Kind = "document"
	p.File = &f
	return p, nil
}

// spanList writes entities without the words they stand on (T21, I13).
func spanList(list []models.MessageEntity) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s %d+%d ", e.Type, e.Offset, e.Length)
	}
	return b.String()
}

// halves sends a text that is too long as two, each cut again if need be. The
// pieces lose the formatting that cannot be recut from entities alone.
func (s *sending) halves(ctx context.Context, p payload) ([]int, error) {
	var ids []int
	if p.File != nil { // the file, and its text behind it
		text := p
		p.Text, p.Entities, p.Keyboard, text.File, text.ReplyTo = "", nil, nil, nil, ""
		for _, part := range []payload{p, text} {
			got, err := s.send(ctx, part)
			ids = append(ids, got...)
			if err != nil {
				return ids, err
			}
		}
		return ids, nil
	}
	pieces := markup.Split(markup.Text{Plain: p.Text}, markup.Units(p.Text)/2+1)
	if len(pieces) < 2 {
		return nil, &session.SendError{Outcome: session.SendRefused, Err: errors.New("telegram: a text that cannot be cut is too long")}
	}
	for i, t := range pieces {
		part := payload{Text: t.Plain, Silent: p.Silent}
		if i == 0 {
			part.ReplyTo = p.ReplyTo
		}
		if i == len(pieces)-1 {
			part.Keyboard = p.Keyboard
		}
		got, err := s.send(ctx, part)
		ids = append(ids, got...)
		if err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// once makes one call within the chat's budget.
func (s *sending) once(ctx context.Context, p payload) (int, error) {
	if s.a.chats.isBlocked(s.t.chat) {
		return 0, &session.SendError{Outcome: session.SendRefused, Err: errBlocked}
	}
	if err := s.room(ctx); err != nil {
		return 0, err
	}
	if s.plain {
		p.Entities = nil
	}
	if s.bare {
		p.ReplyTo = ""
	}
	switch {
	case p.File != nil:
		return s.a.sendFile(ctx, s.t, s.files, p)
	case p.Rich != "" && !s.poor && !s.a.lacks.has("sendRichMessage"):
		return s.a.sendRich(ctx, s.t, p)
	}
	return s.a.sendMessage(ctx, s.t, p)
}

// sendMessage is the call itself.
func (a *Adapter) sendMessage(ctx context.Context, t target, p payload) (int, error) {
	params := &bot.SendMessageParams{
		ChatID: t.chat, MessageThreadID: t.thread, Text: p.Text, Entities: p.Entities,
		LinkPreviewOptions: noPreview, DisableNotification: p.Silent,
	}
	if id, ok := a.wireID(t.chat, p.ReplyTo); ok {
		// The message may be gone by now (T9).
		params.ReplyParameters = &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
	}
	if p.Keyboard != nil {
		params.ReplyMarkup = p.Keyboard
	}
	var sent struct {
		ID int `json:"message_id"`
	}
	err := a.api.call(ctx, "sendMessage", params, &sent)
	a.flooded(t.chat, err)
	a.stands(t.chat, sent.ID)
	return sent.ID, err
}

var noPreview = &models.LinkPreviewOptions{IsDisabled: bot.True()}

// flooded honours a 429 for the whole chat.
func (a *Adapter) flooded(chat int64, err error) {
	if e, ok := errors.AsType[*apiError](err); ok && e.code == http.StatusTooManyRequests {
		a.pace.cool(chat, max(e.retryAfter, time.Second))
		a.log.Warn("told to slow down", "chat", chat, "wait", e.retryAfter)
	}
}
