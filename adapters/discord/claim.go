package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"coxswain/session"
)

// A thread that the bot opens on a message has the message's id, so the session
// it will land in is known before it exists. Which one a message goes to must be
// decided once, whatever fails and whoever tries again (D10): claims keep that,
// and the first decision stands.

// threadCommand asks for a thread of its own for a task.
const threadCommand = "thread"

// What a claim says.
const (
	claimOpening = "opening" // somebody tries, or tried
	claimThread  = "thread"
	claimChannel = "channel" // there can be none: the task stays in the channel
)

// claimsMost is how many claims are kept, the newest messages'. An older one is
// found out anew: Discord knows whether there is a thread.
const claimsMost = 500

// claim notes what becomes of a message unless that is decided, and gives what
// stands: for claimOpening what stood before.
func (a *Adapter) claim(ctx context.Context, id, want string) (stands string, err error) {
	err = a.change(ctx, "claims", func(old []byte) ([]byte, error) {
		claims := map[string]string{}
		_ = json.Unmarshal(old, &claims) // none yet, or not ours
		stands = claims[id]
		if stands == claimThread || stands == claimChannel || stands == want {
			return nil, nil
		}
		if claims[id] = want; want != claimOpening {
			stands = want
		}
		for len(claims) > claimsMost {
			oldest := id
			for k := range claims {
				if before(k, oldest) {
					oldest = k
				}
			}
			delete(claims, oldest)
		}
		return json.Marshal(claims)
	})
	return stands, err
}

// openThread gives the thread on a message, opened now if there is none, and
// false if there can be none. False too when ctx has ended.
func (a *Adapter) openThread(ctx context.Context, c channel, id, name string) bool {
	var stands string
	if !a.untilDone(ctx, "claim thread", func() (err error) {
		stands, err = a.claim(ctx, id, claimOpening)
		return err
	}) {
		return false
	}
	if stands != claimThread && stands != claimChannel {
		want := claimChannel
		if stands == claimOpening && a.threadStands(ctx, id) || a.makeThread(ctx, c.ID, id, name) {
			want = claimThread
		}
		if ctx.Err() != nil || !a.untilDone(ctx, "decide thread", func() (err error) {
			stands, err = a.claim(ctx, id, want)
			return err
		}) {
			return false
		}
	}
	if stands != claimThread {
		return false
	}
	a.places.put(channel{ID: id, Type: 11, GuildID: c.GuildID, ParentID: c.ID, OwnerID: a.id, Name: name})
	return true
}

// threadTries is how often opening a thread is tried while Discord answers
// nothing; the channel's next messages wait meanwhile.
const threadTries = 4

// makeThread opens a thread on a message, and reports whether there is one then.
// An answer that was lost, or says no, is not believed before Discord was asked.
func (a *Adapter) makeThread(ctx context.Context, channelID, id, name string) bool {
	body := map[string]any{"name": name, "auto_archive_duration": 1440} // a day
	there, tries := true, 0
	a.untilDone(ctx, "open thread", func() error {
		err := a.call(ctx, http.MethodPost, "channels/"+channelID+"/messages/"+id+"/threads", "threads:"+channelID, body, nil)
		if err == nil || codeOf(err) == codeHasThread || a.threadStands(ctx, id) {
			return nil
		}
		if tries++; permanent(err) || tries == threadTries {
			a.log.Warn(wordsNoThread, "channel", channelID, "err", err)
			there, err = false, nil
		}
		return err
	})
	return there && ctx.Err() == nil
}

// threadStands asks Discord whether there is a thread.
func (a *Adapter) threadStands(ctx context.Context, id string) bool {
	var t channel
	return a.fetch(ctx, "look for thread", "channels/"+id, "channel:"+id, &t) == nil && t.thread()
}

// threadName makes a thread's name of what it is about.
func threadName(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if name := cutUnits(strings.TrimSpace(first), 90); name != "" { // 100 is Discord's limit
		return name
	}
	return wordsTask
}

// wantsThread reports whether a message is to get a thread of its own: by
// /thread, or by configuration for what mentions the bot and is no command. text
// is what is left to do there.
func (a *Adapter) wantsThread(c channel, m *session.Message, mentioned bool) (text string, ok bool) {
	if m.Kind != session.KindText || m.Forwarded != "" || !m.Addressed {
		return "", false
	}
	if rest, ok := strings.CutPrefix(m.Text, "/"+threadCommand+" "); ok && strings.TrimSpace(rest) != "" {
		return strings.TrimSpace(rest), true
	}
	return m.Text, a.o.Threads && mentioned && !m.ReplyToBot && !isCommand(m.Text) && a.mayThread(c)
}

// mayThread reports whether a channel has threads on messages.
func (a *Adapter) mayThread(c channel) bool {
	return c.GuildID != "" && (c.Type == typeText || c.Type == typeNews)
}

// threadFor moves a message into a thread of its own if it is to have one. Only
// for who may put load on the gateway: others could fill a channel with threads.
func (a *Adapter) threadFor(ctx context.Context, w *message, m *session.Message) {
	c, ok := a.place(ctx, w.ChannelID, w.GuildID)
	if !ok {
		return
	}
	text, wants := a.wantsThread(c, m, a.mentioned(w))
	if !wants || a.o.Files != nil && !a.o.Files(ctx, *m) {
		return
	}
	m.Text = text
	if a.mayThread(c) && a.openThread(ctx, c, w.ID, threadName(text)) {
		m.Key = a.sessionOf(c, w.ID, m.From.ID)
		m.Group, m.OpenFor = "", 0
	}
}

// threadForAsk is threadFor of a slash command: the thread hangs on its answer,
// which shows to everybody what was asked for.
func (a *Adapter) threadForAsk(ctx context.Context, k *ask, i *interaction, m *session.Message) {
	c, ok := a.place(ctx, i.ChannelID, i.GuildID)
	if !ok {
		return
	}
	text, wants := a.wantsThread(c, m, false)
	if !wants || a.o.Files != nil && !a.o.Files(ctx, *m) {
		return
	}
	m.Text = text
	if !a.mayThread(c) || !k.taken(ctx) {
		return
	}
	k.mu.Lock()
	id, _, err := a.say(ctx, k, wordsEcho(text), nil, false)
	k.mu.Unlock()
	if err != nil || k.private {
		a.log.Debug("thread not opened", "err", err)
		return
	}
	if a.openThread(ctx, c, id, threadName(text)) {
		m.Key = a.sessionOf(c, id, m.From.ID)
	}
}

// sessionOf gives the session of a message: that of the thread the bot opened on
// it, else that of its channel.
func (a *Adapter) sessionOf(c channel, id string, user session.UserID) session.Key {
	if t, ok := a.places.get(id); ok && t.thread() && t.ParentID == c.ID && t.OwnerID == a.id {
		return a.key(t, user)
	}
	return a.key(c, user)
}

// home is the channel a message of a session stands in: the one on which the bot
// opened a thread is not in it.
func (a *Adapter) home(ctx context.Context, key session.Key, msg string) string {
	if msg == string(key.Thread) && a.look(ctx, msg).OwnerID == a.id {
		return string(key.Chat)
	}
	return target(key)
}
