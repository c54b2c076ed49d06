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

// takeMessage sees one message through to the door and lets go of its channel's
// cursor. It returns when the door has it, or ctx has ended.
func (a *Adapter) takeMessage(ctx context.Context, w *message) {
	defer func() {
		if ctx.Err() == nil { // else the next process reads it again
			a.cursors.release(w.ChannelID, w.ID)
		}
	}()
	if _, taken := a.seen.get(w.ID); taken {
		return // read again by a backfill, or replayed (D13)
	}
	m, files, ok := a.readMessage(ctx, w)
	if ctx.Err() != nil {
		return
	}
	if !ok {
		a.ignored()
	} else {
		a.threadFor(ctx, w, &m)
		if m.Addressed {
			a.spoke.put(target(m.Key), w.Author.ID)
		}
		if m.Addressed && !a.cursors.written(w.ChannelID) {
			a.flush(ctx, false) // else a crash could forget that there is such a channel
		}
		if ctx.Err() != nil || !a.deliver(ctx, m) {
			return
		}
		a.loadLater(ctx, w, m, files)
	}
	a.remember(w, m)
	a.cursors.advance(w.ChannelID, w.ID, ok && m.Addressed)
}

// messageMark is the dedupe mark of a message.
func messageMark(w *message) string { return "m:" + w.ChannelID + ":" + w.ID }

func (a *Adapter) deliver(ctx context.Context, m session.Message) bool {
	if !a.untilDone(ctx, "deliver", func() error { return a.o.Door.Deliver(ctx, m) }) {
		return false
	}
	a.state.set(func(s *Status) { s.Delivered++ })
	return true
}

// readMessage reads a new message; files are those that are to be loaded once
// the door has the rest of it.
func (a *Adapter) readMessage(ctx context.Context, w *message) (m session.Message, files []attachment, ok bool) {
	if !a.hears(w) {
		return m, nil, false
	}
	m, ok = a.readCommon(ctx, w)
	if !ok {
		return m, nil, false
	}
	m.Dedupe = messageMark(w)
	m.Sent = idTime(w.ID)
	files = a.attachments(ctx, w, &m)
	if m.Text == "" {
		m.Text = describe(w)
	}
	if m.Text == "" && len(m.Attachments)+len(files) == 0 {
		if w.GuildID != "" && len(w.Embeds) == 0 && len(w.Components) == 0 {
			a.warnOnce.Do(func() { a.log.Warn(wordsNoContent) }) // D15
		}
		return m, nil, false
	}
	if m.ReplyTo != "" && m.Forwarded == "" && m.Text != "" && !isCommand(m.Text) && a.shows.bubbleOf(m.Key, string(m.ReplyTo)) {
		m.Text = "/steer " + m.Text // a reply to the running bubble steers in every mode
	}
	switch {
	case len(files) > 0 && (isCommand(m.Text) || m.Forwarded != ""):
		// A command is no entry that could be open: it is given with its files.
		m.Attachments, files = append(m.Attachments, a.loadAll(ctx, m, files)...), nil
		if m.Forwarded != "" {
			m.Group, m.OpenFor = burst, forwardOpen
		}
	case len(files) > 0:
		m.Group, m.OpenFor = filesGroup+w.ID, fileTime+fileSlack
		if m.Text == "" {
			m.Text = wordsFiles(files)
		}
	case m.Forwarded != "":
		m.Group, m.OpenFor = burst, forwardOpen
	case len(m.Attachments) == 0 && !isCommand(m.Text):
		m.Group = burst
	}
	return m, files, true
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
	if w.Author == nil {
		a.ignored() // still nobody's
		return
	}
	hash := wordsHash(w)
	known, ok := a.seen.get(w.ID)
	if !a.means(w) || w.machine() || w.Content == "" || ok && known.hash == hash {
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
	a.seen.put(w.ID, seenMessage{wordsHash(w), personOf(w.Author, w.Member), cutUnits(first, firstWords)})
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
		if known.author.ID == "" && a.perUser && guildID != "" && (a.o.Observes == nil || !a.o.Observes(a.key(c, ""))) {
			a.ignored() // whose session it was in is not known, and what the channel said is not kept
			continue
		}
		m := session.Message{
			Key: a.sessionOf(c, id, known.author.ID), ID: session.MessageID(id), Kind: session.KindDelete,
			From: known.author, Private: guildID == "", Addressed: true,
			Dedupe: "d:" + channelID + ":" + id, Received: time.Now(),
		}
		if !a.deliver(ctx, m) {
			return
		}
	}
}

// heard notes that something is heard from a channel: the bot may be welcome
// again where it was not.
func (a *Adapter) heard(c channel) {
	a.shut.clear(c.ID)
	a.moved.clear(c.ID)
}

// mentioned reports whether a message mentions the bot. The platform's own list
// counts: a name in code or of another is in none.
func (a *Adapter) mentioned(w *message) bool {
	for _, u := range w.Mentions {
		if u.ID == a.id {
			return true
		}
	}
	return false
}

// readCommon reads what messages and edits share.
func (a *Adapter) readCommon(ctx context.Context, w *message) (m session.Message, ok bool) {
	c, ok := a.place(ctx, w.ChannelID, w.GuildID)
	if !ok {
		return m, false
	}
	a.heard(c)
	from := personOf(w.Author, w.Member)
	m = session.Message{
		Key: a.sessionOf(c, w.ID, from.ID), ID: session.MessageID(w.ID), From: from, Private: w.GuildID == "",
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
		if m.ReplyToBot = r.Author != nil && r.Author.ID == a.id; m.ReplyToBot && r.Asked != nil {
			m.ReplyTo = session.MessageID(askMark + r.Asked.ID) // the answer stands for the slash command
		}
	}
	mentioned := a.mentioned(w)
	m.Text = a.stripMention(m.Text)
	if w.ID == c.ID && c.Name != "" && !isCommand(m.Text) {
		m.Text = strings.TrimSpace(c.Name + "\n\n" + m.Text) // a forum post begins with its title (D11)
	}
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

// look is what a channel is, asked once of Discord if no event has told of it:
// another process may have the connection. One that is not known is the zero
// channel.
func (a *Adapter) look(ctx context.Context, id string) channel {
	c, ok := a.places.get(id)
	if ok {
		return c
	}
	if err := a.call(ctx, http.MethodGet, "channels/"+id, "channel:"+id, nil, &c); err != nil {
		a.log.Debug("channel not looked up", "channel", id, "err", err)
		return channel{}
	}
	a.places.put(c)
	return c
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

// personOf gives the person a user is, with the roles of a member.
func personOf(u *user, m *member) session.Person {
	p := session.Person{ID: session.UserID(u.ID), Name: u.Username}
	if u.GlobalName != "" {
		p.Name = u.GlobalName
	}
	if m != nil && m.Nick != "" {
		p.Name = m.Nick
	}
	if m != nil {
		p.Roles = m.Roles
	}
	return p
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
