package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf16"

	"coxswain/adapters/markup"
	"coxswain/session"
)

const (
	// quoteMost bounds the quoted text of a message replied to, in UTF-16 units.
	quoteMost = 1024
	// forwardOpen: a forward and the comment on it come in one burst (T6).
	forwardOpen = time.Second
	burst       = "burst"
)

// means reports whether a message is a person's: not a system message, a
// webhook's or a bot's, its own among them (D8, D9).
func (a *Adapter) means(w *message) bool {
	return (w.Type == typeDefault || w.Type == typeReply) && w.WebhookID == "" && w.Author != nil && w.Author.ID != "" &&
		!w.Author.Bot && w.Author.ID != a.id
}

// takeMessage sees one message through to the door. It returns when the door
// has it, or ctx has ended.
func (a *Adapter) takeMessage(ctx context.Context, w *message) {
	if a.seen.taken(w.ID) {
		return // read again by a backfill, or replayed
	}
	m, ok := a.readMessage(ctx, w)
	if ctx.Err() != nil {
		return
	}
	if !ok {
		a.ignored()
	} else if !a.deliver(ctx, m) {
		return
	}
	a.remember(w, m)
	a.cursors.advance(w.ChannelID, w.ID, ok && m.Addressed)
}

func (a *Adapter) deliver(ctx context.Context, m session.Message) bool {
	if !a.untilDone(ctx, "deliver", func() error { return a.o.Door.Deliver(ctx, m) }) {
		return false
	}
	a.state.set(func(s *Status) { s.Delivered++ })
	return true
}

func (a *Adapter) readMessage(ctx context.Context, w *message) (session.Message, bool) {
	m, ok := a.readCommon(ctx, w)
	if !ok {
		return m, false
	}
	m.Dedupe = "m:" + w.ChannelID + ":" + w.ID
	m.Sent = idTime(w.ID)
	m.Attachments = a.attach(ctx, w, &m)
	if m.Text == "" {
		m.Text = describe(w)
	}
	if m.Text == "" && len(m.Attachments) == 0 {
		if w.GuildID != "" && len(w.Embeds) == 0 && len(w.Components) == 0 {
			a.warnOnce.Do(func() { a.log.Warn(wordsNoContent) }) // D15
		}
		return m, false
	}
	if m.ReplyTo != "" && m.Forwarded == "" && m.Text != "" && !isCommand(m.Text) && a.shows.bubbleOf(m.Key, string(m.ReplyTo)) {
		m.Text = "/steer " + m.Text // a reply to the running bubble steers in every mode
	}
	switch {
	case m.Forwarded != "":
		m.Group, m.OpenFor = burst, forwardOpen
	case len(m.Attachments) == 0 && !isCommand(m.Text):
		m.Group = burst
	}
	return m, true
}

// takeEdit hands on what a person's message says now. Later updates of an
// edited message carry its time of edit again: the words decide (D3, D13).
func (a *Adapter) takeEdit(ctx context.Context, w *message) {
	if w.Author == nil { // a partial update
		var full message
		err := a.fetch(ctx, "read edited message", "channels/"+w.ChannelID+"/messages/"+w.ID, "get:"+w.ChannelID, &full)
		if err != nil {
			return
		}
		full.GuildID, full.Edited = w.GuildID, w.Edited
		w = &full
	}
	hash := wordsHash(w)
	known, ok := a.seen.get(w.ID)
	if !a.means(w) || w.Content == "" || ok && known.hash == hash {
		a.ignored()
		return
	}
	m, ok := a.readCommon(ctx, w)
	if ctx.Err() != nil {
		return
	}
	if !ok || m.Text == "" {
		a.ignored()
		return
	}
	m.Kind = session.KindEdit
	m.Dedupe = fmt.Sprintf("e:%s:%s:%s:%s", w.ChannelID, w.ID, w.Edited, hash)
	m.Sent, _ = time.Parse(time.RFC3339, w.Edited)
	if a.deliver(ctx, m) {
		a.remember(w, m)
	}
}

func (a *Adapter) remember(w *message, m session.Message) {
	first, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
	a.seen.put(w.ID, seenMessage{wordsHash(w), w.Author.ID, cutUnits(first, firstWords)})
}

// takeDeletes hands on that messages are gone (D1). Who wrote them is known of
// recent ones only; the author is empty for others.
func (a *Adapter) takeDeletes(ctx context.Context, channelID, guildID string, ids []string) {
	c, ok := a.place(ctx, channelID, guildID)
	if !ok {
		return
	}
	for _, id := range ids {
		known, _ := a.seen.get(id)
		if known.author == "" && a.perUser && guildID != "" {
			a.ignored() // whose session it was in is not known
			continue
		}
		m := session.Message{
			Key: a.key(c, session.UserID(known.author)), ID: session.MessageID(id), Kind: session.KindDelete,
			From: session.Person{ID: session.UserID(known.author)}, Private: guildID == "", Addressed: true,
			Dedupe: "d:" + channelID + ":" + id, Received: time.Now(),
		}
		if !a.deliver(ctx, m) {
			return
		}
	}
}

// readCommon reads what messages and edits share.
func (a *Adapter) readCommon(ctx context.Context, w *message) (m session.Message, ok bool) {
	c, ok := a.place(ctx, w.ChannelID, w.GuildID)
	if !ok {
		return m, false
	}
	a.shut.clear(c.ID) // the bot hears from it: it may be welcome again
	from := session.Person{ID: session.UserID(w.Author.ID), Name: personName(w.Author, w.Member)}
	m = session.Message{
		Key: a.key(c, from.ID), ID: session.MessageID(w.ID), From: from, Private: w.GuildID == "",
		Text: w.Content, Received: time.Now(),
	}
	if forwarded(w) {
		m.Forwarded, m.Text = wordsForwarded, w.Snapshots[0].Message.Content
		m.Addressed = m.Private || a.inThread(c) || !a.o.RequireMention
		return m, true // data: no mention in it counts (T7)
	}
	if w.Reference != nil && w.Reference.MessageID != "" {
		m.ReplyTo = session.MessageID(w.Reference.MessageID)
	}
	if r := w.Referenced; r != nil {
		m.Quote = cutUnits(r.Content, quoteMost)
		m.ReplyToBot = r.Author != nil && r.Author.ID == a.id
	}
	mentioned := false
	for _, u := range w.Mentions {
		mentioned = mentioned || u.ID == a.id
	}
	m.Text = a.stripMention(m.Text)
	if mentioned && c.thread() {
		a.enterThread(ctx, c.ID)
	}
	m.Addressed = m.Private || mentioned || m.ReplyToBot || a.inThread(c) || !a.o.RequireMention
	return m, true
}

func forwarded(w *message) bool {
	return w.Reference != nil && w.Reference.Type == refForward && len(w.Snapshots) > 0
}

var mentionAtStart = regexp.MustCompile(`^\s*<@!?(\d+)>[\s,:]*`)

// stripMention takes the bot's own mention off the start. A message that is
// nothing else stays as it is.
func (a *Adapter) stripMention(text string) string {
	rest := text
	for {
		g := mentionAtStart.FindStringSubmatch(rest)
		if g == nil || g[1] != a.id {
			break
		}
		rest = rest[len(g[0]):]
	}
	if rest == "" {
		return text
	}
	return rest
}

// key gives the session of a channel: a thread is one within its parent.
func (a *Adapter) key(c channel, user session.UserID) session.Key {
	k := session.Key{Platform: Name, Chat: session.ChatID(c.ID)}
	if c.thread() && c.ParentID != "" {
		k.Chat, k.Thread = session.ChatID(c.ParentID), session.ThreadID(c.ID)
	}
	if a.perUser && c.GuildID != "" {
		k.User = user
	}
	return k
}

// place finds out what a channel is. It asks Discord about one that no event
// has told of, until it knows; one it may not see counts as a plain channel.
// False when ctx ended.
func (a *Adapter) place(ctx context.Context, id, guild string) (channel, bool) {
	if guild == "" {
		return channel{ID: id, Type: typeDM}, true
	}
	if c, ok := a.places.get(id); ok {
		return c, true
	}
	c := channel{ID: id, GuildID: guild}
	err := a.fetch(ctx, "look up channel", "channels/"+id, "channel:"+id, &c)
	if ctx.Err() != nil {
		return c, false
	}
	c.ID, c.GuildID = id, guild
	if err == nil {
		a.places.put(c)
	}
	return c, true
}

// fetch reads something, again until it is there. An error is a refusal or that
// of ctx.
func (a *Adapter) fetch(ctx context.Context, step, path, bucket string, out any) error {
	var refused error
	if !a.untilDone(ctx, step, func() error {
		err := a.call(ctx, http.MethodGet, path, bucket, nil, out)
		if permanent(err) {
			refused, err = err, nil
		}
		return err
	}) {
		return ctx.Err()
	}
	return refused
}

func personName(u *user, m *member) string {
	switch {
	case m != nil && m.Nick != "":
		return m.Nick
	case u.GlobalName != "":
		return u.GlobalName
	}
	return u.Username
}

func isCommand(text string) bool { return strings.HasPrefix(text, "/") }

// wordsHash identifies what a message says.
func wordsHash(w *message) string {
	sum := sha256.Sum256([]byte(w.Content))
	return hex.EncodeToString(sum[:8])
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
