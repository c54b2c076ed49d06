package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"strings"
	"time"

	"coxswain/session"
)

const (
	// ackTime: Discord forgets an interaction that is not answered in 3 s.
	ackTime = 3 * time.Second
	// tokenTime: after 15 minutes the answer can be changed no more.
	tokenTime = 14 * time.Minute
	// Kinds of answers.
	ackDeferred       = 5
	ackDeferredUpdate = 6
)

// takeInteraction answers an interaction from the socket's path, before any
// work, and puts its effect into the channel's lane (D4).
func (l *link) takeInteraction(i *interaction) {
	kind := 0
	switch i.Type {
	case interactionCommand:
		kind = ackDeferred
	case interactionComponent:
		kind = ackDeferredUpdate
	}
	if kind == 0 || i.ID == "" || i.Token == "" || i.ChannelID == "" {
		l.a.ignored()
		return
	}
	began, acked := time.Now(), make(chan bool, 1)
	l.flight.goBeside(func(ctx context.Context) { acked <- l.a.ack(ctx, i, kind) })
	l.flight.push(i.ChannelID, func(ctx context.Context) {
		m, ok := l.a.readInteraction(ctx, i)
		if !ok {
			l.a.ignored()
			return
		}
		if !l.a.deliver(ctx, m) {
			return
		}
		l.a.cursors.advance(i.ChannelID, i.ID, true)
		if i.Type == interactionCommand {
			l.flight.goBeside(func(ctx context.Context) {
				select {
				case ok := <-acked:
					if ok && time.Since(began) < tokenTime {
						l.a.complete(ctx, i)
					}
				case <-ctx.Done():
				}
			})
		}
	})
}

// interactionBucket spreads interactions over a few buckets: the library keeps
// every one it was told of, and makes one call of a bucket at a time.
func interactionBucket(token string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token))
	return fmt.Sprintf("interaction:%d", h.Sum32()%256)
}

// ack answers that something will come, and reports whether Discord knows it.
func (a *Adapter) ack(ctx context.Context, i *interaction, kind int) bool {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	err := a.call(ctx, http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", interactionBucket(i.Token), struct {
		Type int `json:"type"`
	}{kind}, nil)
	if err == nil || codeOf(err) == codeAcked {
		return true
	}
	a.log.Debug("interaction not answered", "err", err) // too late (10062): what it says goes to the channel all the same
	return false
}

// complete ends the waiting sign; the answer itself goes to the channel.
func (a *Adapter) complete(ctx context.Context, i *interaction) {
	app := i.AppID
	if p := a.app.Load(); app == "" && p != nil {
		app = *p
	}
	body := outMessage{Content: wordsDone, Mentions: nobody}
	if err := a.call(ctx, http.MethodPatch, "webhooks/"+app+"/"+i.Token+"/messages/@original", interactionBucket(i.Token), body, nil); err != nil {
		a.log.Debug("interaction not completed", "err", err)
	}
}

func (a *Adapter) readInteraction(ctx context.Context, i *interaction) (session.Message, bool) {
	u := i.User
	if i.Member != nil && i.Member.User != nil {
		u = i.Member.User
	}
	if u == nil || u.ID == "" || u.Bot {
		return session.Message{}, false
	}
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
	from := session.Person{ID: session.UserID(u.ID), Name: personName(u, i.Member)}
	m := session.Message{
		Key: a.key(c, from.ID), From: from, Private: i.GuildID == "", Addressed: true, Dedupe: "i:" + i.ID,
		Sent: idTime(i.ID), Received: time.Now(), Interaction: i.ID,
	}
	if i.Type == interactionComponent {
		if i.Message == nil || i.Data.CustomID == "" {
			return m, false
		}
		m.Kind, m.ID, m.Button = session.KindPress, session.MessageID(i.Message.ID), i.Data.CustomID
		if user, rest, ok := cutOwner(i.Data.CustomID); ok {
			m.Key.User, m.Button = user, rest
		}
		return m, true
	}
	// A slash command is no message: nothing can be put on it.
	m.ID = session.MessageID("i" + i.ID)
	m.Text = "/" + i.Data.Name
	for _, o := range i.Data.Options {
		var text string
		if o.Name == optionName && json.Unmarshal(o.Value, &text) == nil && text != "" {
			m.Text += " " + text
		}
	}
	return m, i.Data.Name != ""
}

// optionName is the one option of every slash command.
const optionName = "text"

type slashCommand struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Type        int           `json:"type"`
	Options     []slashOption `json:"options"`
}

type slashOption struct {
	Type        int    `json:"type"` // 3 = text
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

var slashName = regexp.MustCompile(`^[-_\p{Ll}\p{N}]{1,32}$`)

// register sets the slash commands when they are not what was last set:
// Discord limits how often that may be done, so a restart must not do it again.
func (a *Adapter) register(ctx context.Context) {
	list := []slashCommand{}
	for _, c := range a.o.Commands {
		if slashName.MatchString(c.Name) && strings.TrimSpace(c.Short) != "" && len(list) < 100 { // 100: Discord's limit
			list = append(list, slashCommand{c.Name, cutUnits(c.Short, 100), 1, []slashOption{{3, optionName, wordsOption, false}}})
		}
	}
	app := a.app.Load()
	if len(list) == 0 || app == nil {
		a.registering.Store(app != nil)
		return
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic("discord: commands do not encode: " + err.Error()) // strings always do
	}
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	for wait := (&backoff{2 * time.Second, 5 * time.Minute}); ctx.Err() == nil; {
		have, version, err := a.o.Docs.Doc(ctx, a.docName("commands"))
		if err == nil && string(have) == want {
			return
		}
		if err == nil {
			err = a.call(ctx, http.MethodPut, "applications/"+*app+"/commands", "commands", list, nil)
		}
		if err == nil {
			err = a.o.Docs.PutDoc(ctx, a.docName("commands"), version, []byte(want))
		}
		if err == nil || errors.Is(err, session.ErrStale) {
			return // stale: another replica has set them
		}
		if permanent(err) {
			a.log.Warn("slash commands refused", "err", err)
			return
		}
		d := wait.next()
		if e, ok := errors.AsType[*apiError](err); ok {
			d = max(d, e.wait)
		}
		pause(ctx, d)
	}
}
