package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
)

const (
	// albumOpen: the parts of an album come as separate updates within a moment
	// (T4).
	albumOpen = 800 * time.Millisecond
	// pasteOpen: clients cut a long paste at 4,096 units and send the pieces
	// within 1.5 s (T5).
	pasteOpen  = 1500 * time.Millisecond
	pasteUnits = 2000
	// forwardOpen: a forward and the comment on it come in one burst (T6).
	forwardOpen = time.Second
	// quoteMost bounds the quoted text of a message replied to, in UTF-16 units.
	quoteMost  = 1024
	pasteGroup = "paste"
)

// read turns an update into what it says, or ok = false when it says nothing
// to the gateway. An error means that it could not be found out now; reading
// again is safe.
func (a *Adapter) read(ctx context.Context, u *update) (m session.Message, ok bool, err error) {
	switch {
	case u.said() != nil:
		return a.readMessage(ctx, u.said())
	case u.edit() != nil:
		return a.readEdit(ctx, u.edit())
	case u.Callback != nil:
		m, ok = a.readPress(u.Callback)
	case u.Stopped != nil:
		m, ok = a.readStopped(u)
	case u.Reaction != nil:
		m, ok = a.readReaction(u)
	case u.Member != nil:
		a.readMember(u.Member)
	}
	return m, ok, nil
}

func (a *Adapter) readMessage(ctx context.Context, w *message) (session.Message, bool, error) {
	m, ok, err := a.readCommon(ctx, w)
	if !ok || err != nil {
		return m, false, err
	}
	m.Dedupe = fmt.Sprintf("m:%d:%d", w.Chat.ID, w.ID)
	m.Sent = a.clock.local(w.Date)
	began := time.Now()
	described, err := a.attach(ctx, w, &m)
	if err != nil {
		return m, false, err
	}
	if m.Text == "" {
		m.Text = described
	}
	if m.Text == "" && len(m.Attachments) == 0 {
		return m, false, nil // a service message
	}
	if m.ReplyTo != "" && m.Text != "" && m.Forwarded == "" && !isCommand(m.Text) && a.shows.bubbleOf(m.Key, w.ReplyTo.ID) {
		// A reply to the running bubble steers, whatever the mode: it is the
		// explicit verb by another gesture (T8).
		m.Text = "/steer " + m.Text
	}
	switch {
	case w.Album != "":
		// The parts that follow are not polled before this one is taken, and
		// load as long as it did.
		m.Group, m.OpenFor = "album:"+w.Album, albumOpen+2*time.Since(began)
	case m.Forwarded != "":
		m.Group, m.OpenFor = pasteGroup, forwardOpen
	case len(m.Attachments) == 0 && !isCommand(m.Text):
		m.Group = pasteGroup
		if markup.Units(m.Text) >= pasteUnits {
			m.OpenFor = pasteOpen
		}
	}
	return m, true, nil
}

// readEdit reads the new wording of a message. Its files stay as they were.
func (a *Adapter) readEdit(ctx context.Context, w *message) (session.Message, bool, error) {
	if a.machine(w) {
		return session.Message{}, false, nil // a bot that streams its answer edits without end (T15)
	}
	hash := wordsHash(w)
	known, ok := a.seen.get(seenKey{w.Chat.ID, w.ID})
	if ok && known.hash == hash {
		return session.Message{}, false, nil // a preview, a reaction (T3)
	}
	if text, _ := w.words(); text == "" && !ok {
		return session.Message{}, false, nil // a live location moves, a picture without words
	}
	m, ok, err := a.readCommon(ctx, w)
	if !ok || err != nil {
		return m, false, err
	}
	m.Kind = session.KindEdit
	m.Dedupe = fmt.Sprintf("e:%d:%d:%d:%s", w.Chat.ID, w.ID, w.EditDate, hash)
	m.Sent = a.clock.local(w.EditDate)
	return m, true, nil
}

// readCommon reads what messages and edits share.
func (a *Adapter) readCommon(ctx context.Context, w *message) (m session.Message, ok bool, err error) {
	from, ok := a.author(w)
	if !ok {
		return m, false, nil
	}
	a.chats.heard(place{w.Chat.ID, w.topic()})
	if w.Chat.IsForum {
		a.chats.isForum(w.Chat.ID)
	}
	m = session.Message{
		Key:      a.key(w.Chat, w.topic(), from.ID),
		ID:       a.messageID(w.Chat.ID, w.ID),
		Kind:     session.KindText,
		From:     from,
		Private:  w.Chat.Type == models.ChatTypePrivate,
		Received: time.Now(),
	}
	text, entities := w.words()
	m.Text = text
	switch {
	case w.Origin != nil && !w.ownPost():
		m.Forwarded = w.Origin.name()
	case w.ViaBot != nil: // another bot's words, sent by the person
		m.Forwarded = "@" + w.ViaBot.Username
	}
	m.ReplyTo, m.ReplyToBot, m.Quote = a.reply(w)
	// A reply from another chat or topic has no message here, but speaks to the
	// bot all the same (T8).
	m.Addressed = m.Private || m.ReplyToBot || w.External != nil && w.External.Origin.from(a.id)
	if m.Forwarded != "" {
		return m, !a.machine(w), nil // data: no command, no mention in it counts (T7)
	}
	ours, other, err := a.address(ctx, &m, entities)
	if err != nil || other {
		return m, false, err // another bot's command (T11)
	}
	if ok, err = a.hears(ctx, w, ours); err != nil || !ok {
		return m, false, err
	}
	m.Addressed = m.Addressed || ours
	return m, true, nil
}

// reply reads what a message answers to. In a topic every message carries the
// topic's first one as its reply.
func (a *Adapter) reply(w *message) (to session.MessageID, bot bool, quoted string) {
	if w.Quote != nil {
		quoted = w.Quote.Text
	}
	r := w.ReplyTo
	if r == nil || bool(r.TopicCreated) || w.IsTopic && r.ID == w.Thread {
		return "", false, quoted
	}
	if quoted == "" {
		quoted, _ = r.words()
	}
	return a.messageID(w.Chat.ID, r.ID), a.isOwn(w.Chat.ID, r), cutUnits(quoted, quoteMost)
}

func (a *Adapter) readPress(c *callback) (session.Message, bool) {
	if c.Message == nil || c.Data == "" || c.From.IsBot {
		return session.Message{}, false // from an inline message or a game: not ours
	}
	from := session.Person{ID: userID(c.From.ID), Name: personName(&c.From)}
	key := a.key(c.Message.Chat, c.Message.topic(), from.ID)
	data := c.Data
	if user, rest, ok := cutOwner(data); ok {
		key.User, data = user, rest
	}
	return session.Message{
		Key: key, ID: a.messageID(c.Message.Chat.ID, c.Message.ID), Kind: session.KindPress, From: from,
		Private: c.Message.Chat.Type == models.ChatTypePrivate, Addressed: true,
		Dedupe: "i:" + c.ID, Button: data, Received: time.Now(), Interaction: c.ID,
	}, true
}

// readStopped reads that the person pressed Stop on a draft, which only a
// private chat has: the same as the button below the bubble (T35).
func (a *Adapter) readStopped(u *update) (session.Message, bool) {
	s := u.Stopped
	f := a.shows.draft(s.Chat.ID, s.Draft)
	if f == nil || s.Chat.Type != models.ChatTypePrivate {
		return session.Message{}, false // that turn is over
	}
	return session.Message{
		Key: f.key, Kind: session.KindPress, Private: true, Addressed: true,
		From:   session.Person{ID: userID(s.Chat.ID), Name: personName(&models.User{FirstName: s.Chat.FirstName, LastName: s.Chat.LastName, Username: s.Chat.Username})},
		Dedupe: "u:" + strconv.FormatInt(u.ID, 10), Button: stopData(f.turn, f.mark), Received: time.Now(),
	}, true
}

// readMember notes when a chat blocks the bot or takes it back (T19).
func (a *Adapter) readMember(m *member) {
	if a.isChannel(m.Chat.ID) {
		a.chats.putIn(m.Chat.ID, isMember(m.New.Status))
	}
	switch {
	case m.New.Status == "kicked" || m.New.Status == "left":
		a.chats.block(m.Chat.ID, 24*time.Hour)
		a.log.Info("chat left", "chat", m.Chat.ID)
	case isMember(m.New.Status):
		a.chats.heard(place{chat: m.Chat.ID})
		a.log.Info("chat entered", "chat", m.Chat.ID)
	}
}

// key gives the session of a message.
func (a *Adapter) key(c models.Chat, topic int, user session.UserID) session.Key {
	k := session.Key{Platform: Name, Chat: session.ChatID(strconv.FormatInt(a.aliases.from(c.ID), 10))}
	if topic != 0 {
		k.Thread = session.ThreadID(strconv.Itoa(topic))
	}
	if a.perUser && c.Type != models.ChatTypePrivate {
		k.User = user
	}
	return k
}

// migratedMark begins the id of a message of a group that has become another
// chat: there ids begin anew, and old ones are dead (T16).
const migratedMark = "s"

func (a *Adapter) messageID(chat int64, id int) session.MessageID {
	s := strconv.Itoa(id)
	if a.aliases.from(chat) != chat {
		s = migratedMark + s
	}
	return session.MessageID(s)
}

// wireID gives the number of a message for calls to chat, or false when the
// chat does not know it.
func (a *Adapter) wireID(chat int64, id session.MessageID) (int, bool) {
	s, moved := strings.CutPrefix(string(id), migratedMark)
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && moved == (a.aliases.from(chat) != chat)
}

func userID(id int64) session.UserID { return session.UserID(strconv.FormatInt(id, 10)) }

// wordsHash identifies what a message says: text, entities and file.
func wordsHash(w *message) string {
	text, entities := w.words()
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(struct {
		T string
		E []models.MessageEntity
		F string
	}{text, entities, fileIdentity(w)})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// cutUnits cuts s to at most most units, ending a cut text with an ellipsis.
func cutUnits(s string, most int) string {
	if len(s) <= most || markup.Units(s) <= most {
		return s
	}
	n := 0
	for i, r := range s {
		if n += utf16.RuneLen(r); n > most-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// firstLine gives the first line that says something.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
