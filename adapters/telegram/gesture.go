package telegram

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/session"
)

// readReaction reads a reaction as a gesture on a message that waits; what it
// means is the hub's to say. One that was only taken back says nothing.
//
// A reaction names no topic: which session a message belongs to is remembered.
// After a restart a gesture in a topic is not understood until its message is
// seen again.
func (a *Adapter) readReaction(u *update) (session.Message, bool) {
	r := u.Reaction
	if r.User == nil || r.User.IsBot || !r.added() {
		return session.Message{}, false
	}
	m := session.Message{
		Key: a.key(r.Chat, 0, userID(r.User.ID)), ID: a.messageID(r.Chat.ID, r.Message), Kind: session.KindReact,
		From:    session.Person{ID: userID(r.User.ID), Name: personName(r.User)},
		Private: r.Chat.Type == models.ChatTypePrivate, Addressed: true,
		Dedupe: "u:" + strconv.FormatInt(u.ID, 10), Received: time.Now(),
	}
	if known, ok := a.seen.get(seenKey{r.Chat.ID, r.Message}); ok {
		m.Key = known.key
	}
	return m, true
}

// hearTime bounds the transcription of one voice message; what was said later
// in the chat waits for it, but for a /stop.
const hearTime = 20 * time.Second

// listen puts what was said in a voice or video note into words, if somebody can
// (T33). The file stays; without words the message goes as a file.
func (a *Adapter) listen(ctx context.Context, w *message, m *session.Message, at session.Attachment) {
	if a.hear == nil || a.open == nil {
		return
	}
	within, end := a.hurry.begin(ctx, w.sender())
	defer end()
	within, cancel := context.WithTimeout(within, hearTime)
	defer cancel()
	key := m.Key
	if a.session != nil {
		key = a.session(key)
	}
	r, _, err := a.open(within, key, at.Path)
	if err != nil {
		a.log.Warn("voice not opened", "err", err)
		return
	}
	defer r.Close()
	words, err := a.hear(within, at.Name, r)
	words = strings.TrimSpace(words)
	if err != nil || words == "" {
		a.log.Warn("voice not understood", "err", err)
		return
	}
	if strings.HasPrefix(words, "/") {
		words = " " + words // nobody speaks a command
	}
	if m.Text != "" {
		words = m.Text + "\n" + words
	}
	m.Text = words
}
