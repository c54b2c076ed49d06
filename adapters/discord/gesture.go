package discord

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"coxswain/session"
)

// The commands of a message's menu, as people see them.
const (
	menuSteer = "Steer with this"
	menuQueue = "Queue"
	menuDrop  = "Drop"
	menuWhy   = "What became of this"
)

var menuNames = []string{menuSteer, menuQueue, menuDrop, menuWhy}

// HowTo says where the commands of a message's menu are.
func (a *Adapter) HowTo(command string) string {
	switch command {
	case "why":
		return wordsApps(menuWhy)
	case "cancel":
		return wordsApps(menuDrop)
	case "help":
		return wordsMenus(menuNames)
	}
	return ""
}

// A waiting is what is known of a message whose input waits: its ticket, and the
// message as the hub knows it.
type waiting struct {
	ticket int64
	msg    session.MessageID
}

// noteWaiting keeps which messages' inputs wait, for the gestures made on them.
// shown is the message that stands for a slash command's input.
func (a *Adapter) noteWaiting(f session.Fate, shown string) {
	note := func(id string, msg session.MessageID) {
		if f.State.Waits() {
			a.waits.put(id, waiting{f.Ticket, msg})
		} else {
			a.waits.drop(id)
		}
	}
	for _, id := range f.Msgs {
		note(string(id), id)
	}
	if shown != "" {
		note(shown, f.Msgs[0])
	}
}

// takeReaction reads a reaction to a message whose input waits, or of which this
// process knows nothing. What it means is the hub's to say: its author's drops
// it, that of the owner of the running turn lets it in.
func (a *Adapter) takeReaction(ctx context.Context, r *reaction) {
	c, ok := a.place(ctx, r.ChannelID, r.GuildID)
	if !ok {
		return
	}
	m := session.Message{
		ID: session.MessageID(r.MessageID), Kind: session.KindReact, From: session.Person{ID: session.UserID(r.UserID)},
		Private: r.GuildID == "", Addressed: true, Received: time.Now(),
		Dedupe: fmt.Sprintf("r:%s:%s:%s", r.ChannelID, r.MessageID, r.UserID),
	}
	author := session.UserID(r.AuthorID)
	if known, ok := a.seen.get(r.MessageID); ok {
		author = known.author.ID
	}
	if w, ok := a.waits.get(r.MessageID); ok && w.msg != m.ID {
		m.ID, author = w.msg, "" // the answer that stands for a slash command
		if i, _ := askOf(w.msg); i != "" {
			if k, ok := a.asks.get(i); ok {
				author = session.UserID(k.user)
			}
		}
	}
	m.Key = a.sessionOf(c, r.MessageID, author)
	if r.Member != nil && r.Member.User != nil {
		m.From = personOf(r.Member.User, r.Member)
	}
	a.deliver(ctx, m)
}

// mayMean reports whether a reaction can mean something: the bot's own, other
// bots' and those on messages that are known not to wait do not.
func (a *Adapter) mayMean(r *reaction) bool {
	if r.ChannelID == "" || r.UserID == "" || r.UserID == a.id || r.Member != nil && r.Member.User != nil && r.Member.User.Bot {
		return false
	}
	_, waits := a.waits.get(r.MessageID)
	_, seen := a.seen.get(r.MessageID)
	return waits || !seen && r.AuthorID != a.id
}

// readMenu reads a command used on a message. What Steer and Queue make is the
// message itself, with the mark it has when it speaks to the bot: used once more
// they mean the same input (I2).
func (a *Adapter) readMenu(ctx context.Context, c channel, i *interaction, m session.Message) (session.Message, bool) {
	w := i.Data.Resolved.Messages[i.Data.Target]
	if w == nil || w.ID == "" || w.Author == nil {
		return m, false
	}
	w.ChannelID, w.GuildID = i.ChannelID, i.GuildID
	m.Key = a.sessionOf(c, w.ID, m.From.ID)
	id, mark := session.MessageID(w.ID), messageMark(w)
	if w.Asked != nil && w.Author.ID == a.id { // it stands for a slash command
		id, mark = session.MessageID(askMark+w.Asked.ID), askDedupe(w.Asked.ID)
	}
	switch i.Data.Name {
	case menuDrop:
		m.Text = "/cancel"
	case menuWhy:
		m.Text = "/why"
	case menuSteer:
		m.Text = "/steer "
	case menuQueue:
		m.Text = "/queue "
	default:
		return m, false
	}
	own := w.Author.ID == string(m.From.ID)
	takes := i.Data.Name == menuSteer || i.Data.Name == menuQueue
	if !takes || !own {
		m.ReplyTo, m.ReplyToBot = id, w.Author.ID == a.id
	}
	if !takes {
		return m, true
	}
	m.ID, m.MsgDedupe = id, mark
	a.menus.put(string(id), i.ID)
	if !own {
		// Somebody else's words are quoted, and never the asker's own (I7).
		if m.Quote = cutUnits(w.Content, quoteMost); m.Quote == "" {
			m.Quote = describe(w)
		}
		m.Text += wordsUseQuoted
		return m, m.Quote != ""
	}
	text := cmp.Or(w.Content, describe(w))
	if len(w.Attachments) > 0 {
		files := a.attachments(ctx, w, &m)
		if _, waits := a.waits.get(w.ID); !waits { // else it has them
			m.Attachments = append(m.Attachments, a.loadAll(ctx, m, files)...)
		}
		text = cmp.Or(text, wordsFiles(w.Attachments))
	}
	m.Text += text
	return m, text != ""
}

// tellMenus says to who used a command on a message what became of it.
func (a *Adapter) tellMenus(ctx context.Context, f session.Fate) {
	for _, id := range f.Msgs {
		if i, ok := a.menus.get(string(id)); ok {
			if _, err := a.echo(ctx, i, f); err != nil {
				a.log.Debug("state not told", "err", err) // its sign says it
			}
		}
	}
}
