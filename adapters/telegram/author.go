package telegram

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/session"
)

// ChatUser is the author that a chat is: a group whose admins are anonymous, a
// channel. No person and no bot has such an id.
func ChatUser(id int64) session.UserID {
	return session.UserID("chat:" + strconv.FormatInt(id, 10))
}

// author gives who wrote, or false for what nobody wrote who could be let in:
// posts of channels that are not named in Channels, what Telegram forwards of
// them, people writing as one, bots that are not named in Bots (T14, T15).
func (a *Adapter) author(w *message) (session.Person, bool) {
	switch {
	case w.Chat.Type == models.ChatTypeChannel:
		return a.channelAuthor(&w.Chat) // a post need not say which admin wrote it
	case w.From == nil:
		return session.Person{}, false
	case w.From.ID == idSendAsChannel, w.From.ID == idChannelForwarder && w.AutoForward:
		return a.channelAuthor(w.SenderChat)
	case w.From.ID == idChannelForwarder, w.AutoForward:
		return session.Person{}, false
	case w.From.ID == idAnonymousAdmin:
		if w.SenderChat == nil || w.SenderChat.ID != w.Chat.ID {
			return session.Person{}, false
		}
		// All anonymous admins of a group are one author, whose id can stand in
		// no list of people (T13).
		name := w.Chat.Title
		if w.Signature != "" {
			name = w.Signature
		}
		return session.Person{ID: ChatUser(w.Chat.ID), Name: name}, true
	case w.From.IsBot && !a.machine(w):
		return session.Person{}, false
	}
	return session.Person{ID: userID(w.From.ID), Name: personName(w.From)}, true
}

// channelAuthor is a channel as an author; c may be nil.
func (a *Adapter) channelAuthor(c *models.Chat) (session.Person, bool) {
	if c == nil || !a.isChannel(c.ID) {
		return session.Person{}, false
	}
	name := c.Title
	if name == "" {
		name = "unknown"
	}
	return session.Person{ID: ChatUser(c.ID), Name: name}, true
}

func (a *Adapter) isChannel(chat int64) bool { return slices.Contains(a.channels, chat) }

// machine reports whether a message is that of a bot that may speak.
func (a *Adapter) machine(w *message) bool {
	return w.Chat.Type != models.ChatTypeChannel && w.From != nil && w.From.IsBot && slices.Contains(a.bots, w.From.ID)
}

// hears reports whether a message is heard at all, once its author may speak.
// ours: it names this bot.
//
// A bot must name this one, and not too often: two that reply to one another
// would go on for ever (T15). Of what Telegram forwards from a channel no command
// counts, for it was meant for where it was written; and nothing does when the
// bot is in the channel itself. There it has heard the post already, and what it
// answers there comes into the group as the channel's words too (I2, I8).
func (a *Adapter) hears(ctx context.Context, w *message, ours bool) (bool, error) {
	switch {
	case a.machine(w):
		if !ours {
			return false, nil
		}
		chat, bot := strconv.FormatInt(w.Chat.ID, 10), strconv.FormatInt(w.From.ID, 10)
		ok, first := a.loops.Pass(chat, bot)
		if first {
			a.log.Warn(wordsLoop, "chat", chat, "bot", bot)
		}
		return ok, nil
	case w.AutoForward && ours:
		_, entities := w.words()
		if commandAtStart(entities) {
			return false, nil
		}
		in, err := a.isIn(ctx, w.SenderChat.ID)
		return !in, err
	}
	return true, nil
}

// inFor is how long it counts whether the bot is in a channel. Changes are told
// of at once, but for those that come while the gateway is away.
const inFor = 10 * time.Minute

// isIn reports whether the bot is in a channel.
func (a *Adapter) isIn(ctx context.Context, channel int64) (bool, error) {
	if in, known := a.chats.isIn(channel); known {
		return in, nil
	}
	var m struct {
		Status string `json:"status"`
	}
	err := a.api.call(ctx, "getChatMember", struct {
		Chat int64 `json:"chat_id"`
		User int64 `json:"user_id"`
	}{channel, a.id}, &m)
	e, ok := errors.AsType[*apiError](err)
	switch {
	case ok && (e.code == http.StatusBadRequest || e.code == http.StatusForbidden):
		m.Status = "left" // who is not in a channel may not ask who is
	case err != nil:
		return false, err
	}
	in := isMember(m.Status)
	a.chats.putIn(channel, in)
	return in, nil
}

// isMember reports whether a status is that of somebody in a chat.
func isMember(status string) bool {
	return slices.Contains([]string{"member", "administrator", "creator", "restricted"}, status)
}

// stands takes note of a message that was sent to a channel: a reply to it shows
// a post of the channel, not that the bot sent it.
func (a *Adapter) stands(chat int64, id int) {
	if id != 0 && a.isChannel(chat) {
		a.own.put(seenKey{chat, id}, seenMessage{})
	}
}

// isOwn reports whether the bot sent a message. Of one in a channel it is known
// until the process ends.
func (a *Adapter) isOwn(chat int64, m *message) bool {
	if m.From != nil {
		return m.From.ID == a.id
	}
	_, ok := a.own.get(seenKey{chat, m.ID})
	return ok
}
