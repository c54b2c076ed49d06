package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"time"

	"coxswain/session"
)

// Kinds of answers to an interaction: one that will come, as a message or as a
// change of the message with the button.
const (
	ackDeferred       = 5
	ackDeferredUpdate = 6
)

// everybodys are the slash commands whose answers may concern everybody in a
// channel; those of all others are seen by who asked alone. That is decided before
// the hub is asked, which says it of each answer (session.Outgoing.Alone).
var everybodys = []string{"stop", "new", "busy", "steer", "queue", "interrupt", threadCommand, "undo", "retry", "compact", "resume", "title"}

// takeInteraction answers an interaction from the socket's path, before any
// work, and puts its effect into the channel's lane (D4).
func (l *link) takeInteraction(i *interaction) {
	a := l.a
	k := a.askFor(i)
	if k == nil {
		a.ignored()
		return
	}
	if _, known := a.asks.get(i.ID); known {
		a.ignored() // replayed (D13); its effect has the same dedupe id
		return
	}
	a.asks.put(i.ID, k)
	kind := ackDeferred
	if k.press {
		kind = ackDeferredUpdate
	}
	l.flight.goBeside(func(ctx context.Context) {
		k.good = a.ack(ctx, i, kind, k.private)
		close(k.acked)
	})
	a.cursors.hold(i.ChannelID, i.ID, true)
	l.flight.push(i.ChannelID, func(ctx context.Context) {
		defer func() {
			if ctx.Err() == nil {
				a.cursors.release(i.ChannelID, i.ID)
			}
		}()
		m, ok := a.readInteraction(ctx, i)
		if ctx.Err() != nil {
			return
		}
		if !ok {
			a.ignored()
		} else {
			a.threadForAsk(ctx, k, i, &m)
			if ctx.Err() != nil || !a.deliver(ctx, m) {
				return
			}
			a.cursors.advance(i.ChannelID, i.ID, true)
			if k.press {
				a.fade(k, i, m)
			}
		}
		if !k.press {
			l.flight.goBeside(func(ctx context.Context) { a.finish(ctx, k) })
		}
	})
}

// askFor begins an ask, nil for what is none or not understood.
func (a *Adapter) askFor(i *interaction) *ask {
	u := i.person()
	if u == nil || i.ID == "" || i.Token == "" || i.ChannelID == "" {
		return nil
	}
	now := time.Now()
	k := &ask{id: i.ID, token: i.Token, app: i.AppID, user: u.ID, began: now, till: now.Add(tokenTime), acked: make(chan struct{}), echo: i.text(), dm: i.GuildID == "",
		menu: i.Type == interactionCommand && i.Data.Type == commandMessage}
	if p := a.app.Load(); k.app == "" && p != nil {
		k.app = *p
	}
	switch {
	case i.Type == interactionComponent:
		k.press, k.private = true, !k.dm
	case i.Type != interactionCommand:
		return nil
	case !k.dm: // a private chat keeps its answers
		k.private = k.menu || !slices.Contains(everybodys, i.Data.Name)
	}
	return k
}

// person is who caused an interaction: in a guild a member, else a user.
func (i *interaction) person() *user {
	u := i.User
	if i.Member != nil && i.Member.User != nil {
		u = i.Member.User
	}
	if u == nil || u.ID == "" || u.Bot {
		return nil
	}
	return u
}

// text is the one option of a slash command.
func (i *interaction) text() string {
	for _, o := range i.Data.Options {
		var text string
		if o.Name == optionName && json.Unmarshal(o.Value, &text) == nil {
			return text
		}
	}
	return ""
}

// interactionBucket spreads interactions over a few buckets: the library keeps
// every one it was told of, and makes one call of a bucket at a time.
func interactionBucket(token string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token))
	return fmt.Sprintf("%s%d", interactions, h.Sum32()%256)
}

// ack answers that something will come, and reports whether Discord knows it.
func (a *Adapter) ack(ctx context.Context, i *interaction, kind int, private bool) bool {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	type data struct {
		Flags int `json:"flags"`
	}
	body := struct {
		Type int   `json:"type"`
		Data *data `json:"data,omitempty"`
	}{Type: kind}
	if private && kind == ackDeferred {
		body.Data = &data{flagEphemeral}
	}
	err := a.call(ctx, http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", interactionBucket(i.Token), body, nil)
	if err == nil || codeOf(err) == codeAcked {
		return true
	}
	a.log.Debug("interaction not answered", "err", err) // too late (10062): what it says goes to the channel all the same
	return false
}

func (a *Adapter) readInteraction(ctx context.Context, i *interaction) (session.Message, bool) {
	if i.Channel != nil && i.Channel.ID == i.ChannelID && i.GuildID != "" {
		c := *i.Channel
		c.GuildID = i.GuildID
		if old, ok := a.places.get(c.ID); ok && c.OwnerID == "" {
			c.OwnerID = old.OwnerID
		}
		a.places.put(c)
	}
	c, ok := a.place(ctx, i.ChannelID, i.GuildID)
	if !ok {
		return session.Message{}, false
	}
	a.heard(c)
	u := i.person()
	from := personOf(u, i.Member)
	m := session.Message{
		Key: a.key(c, from.ID), From: from, Private: i.GuildID == "", Addressed: true, Dedupe: askDedupe(i.ID),
		Sent: idTime(i.ID), Received: time.Now(), Interaction: i.ID,
		// It is no message: nothing can be put on it but by its answer.
		ID: session.MessageID(askMark + i.ID),
	}
	switch {
	case i.Type == interactionComponent:
		return a.readPress(i, m)
	case i.Data.Type == commandMessage:
		return a.readMenu(ctx, c, i, m)
	}
	m.Text = "/" + i.Data.Name
	if text := i.text(); text != "" {
		m.Text += " " + text
	}
	return m, i.Data.Name != ""
}

// readPress reads a button that was pressed, or the choice from a menu.
func (a *Adapter) readPress(i *interaction, m session.Message) (session.Message, bool) {
	data := i.id()
	if i.Message == nil || data == "" {
		return m, false
	}
	m.Kind, m.ID, m.Button = session.KindPress, session.MessageID(i.Message.ID), data
	if user, rest, ok := cutOwner(data); ok {
		m.Key.User, m.Button = user, rest
	}
	return m, true
}
