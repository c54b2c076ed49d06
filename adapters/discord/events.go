package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bwmarrin/discordgo"
)

// event takes one dispatch on the library's reading goroutine, during open with
// the session's lock held: nothing here may call the session or wait, but for a
// place when very much is in flight.
func (l *link) event(_ *discordgo.Session, e *discordgo.Event) {
	if l.dead.Load() {
		return
	}
	a := l.a
	now := time.Now()
	l.heard.Store(now.UnixNano())
	a.state.set(func(s *Status) { s.LastEvent = now })
	defer func() {
		if p := recover(); p != nil { // the library would let it end the process
			a.undecodable(e.Type, fmt.Errorf("panic: %v", p))
		}
	}()
	if err := l.take(e); err != nil {
		a.undecodable(e.Type, err)
	}
}

func (a *Adapter) undecodable(kind string, err error) {
	a.state.set(func(s *Status) { s.Undecodable++ })
	a.log.Warn("event not understood, passed over", "event", kind, "err", err)
}

func (l *link) take(e *discordgo.Event) error {
	a := l.a
	switch e.Type {
	case "READY":
		return l.takeReady(e.RawData)
	case "RESUMED":
		a.state.set(func(s *Status) { s.Connected, s.Err, s.Resumes = true, "", s.Resumes+1 })
		l.ready.Store(true)
	case "GUILD_CREATE":
		return l.takeGuild(e.RawData)
	case "GUILD_UPDATE":
		return l.boostGuild(e.RawData)
	case "GUILD_DELETE":
		return l.loseGuild(e.RawData)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var c channel
		if err := json.Unmarshal(e.RawData, &c); err != nil {
			return err
		}
		a.places.put(c)
		a.moved.clear(c.ID) // it may not be locked any more
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var w message
		if err := json.Unmarshal(e.RawData, &w); err != nil {
			return err
		}
		edit := e.Type == "MESSAGE_UPDATE"
		if w.ID == "" || w.ChannelID == "" || edit && w.Edited == "" || (!edit || w.Author != nil) && !a.means(&w) {
			a.ignored() // an unfurl, a pin, a thread's flags (D3); not a person (D8), the running bubble above all
			return nil
		}
		if !edit {
			a.cursors.hold(w.ChannelID, w.ID, true)
		}
		l.flight.push(w.ChannelID, func(ctx context.Context) {
			if edit {
				a.takeEdit(ctx, &w)
			} else {
				a.takeMessage(ctx, &w)
			}
		})
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		var d struct {
			ID        string   `json:"id"`
			IDs       []string `json:"ids"`
			ChannelID string   `json:"channel_id"`
			GuildID   string   `json:"guild_id"`
		}
		if err := json.Unmarshal(e.RawData, &d); err != nil {
			return err
		}
		if d.ID != "" {
			d.IDs = append(d.IDs, d.ID)
		}
		l.flight.push(d.ChannelID, func(ctx context.Context) { a.takeDeletes(ctx, d.ChannelID, d.GuildID, d.IDs) })
	case "MESSAGE_REACTION_ADD":
		var r reaction
		if err := json.Unmarshal(e.RawData, &r); err != nil {
			return err
		}
		if !a.mayMean(&r) {
			a.ignored()
			return nil
		}
		l.flight.push(r.ChannelID, func(ctx context.Context) { a.takeReaction(ctx, &r) })
	case "INTERACTION_CREATE":
		var i interaction
		if err := json.Unmarshal(e.RawData, &i); err != nil {
			return err
		}
		l.takeInteraction(&i)
	}
	return nil
}

func (a *Adapter) ignored() { a.state.set(func(s *Status) { s.Ignored++ }) }

// takeReady begins a new session. What was missed is put into the lanes here,
// before anything that comes live (D14).
func (l *link) takeReady(raw json.RawMessage) error {
	a := l.a
	var r struct {
		User        user `json:"user"`
		Application struct {
			ID string `json:"id"`
		} `json:"application"`
		Guilds []struct {
			ID string `json:"id"`
		} `json:"guilds"`
	}
	err := json.Unmarshal(raw, &r)
	l.ready.Store(true)
	a.logins.add()
	a.state.set(func(s *Status) {
		s.Connected, s.Err, s.Logins, s.Username = true, "", s.Logins+1, r.User.Username
	})
	if r.Application.ID != "" {
		a.app.Store(&r.Application.ID)
	}
	if r.User.ID != "" && r.User.ID != a.id {
		a.log.Warn("the bot is not the one its token names", "token", a.id, "bot", r.User.ID)
	}
	l.horizon, l.fresh, l.read, l.missing, l.upTo = a.cursors.openGap(), 0, map[string]bool{}, map[string]bool{}, ""
	for _, g := range r.Guilds {
		l.missing[g.ID] = true
	}
	l.told("")
	for _, c := range a.cursors.channels() {
		l.read[c] = true
		l.flight.pushAlways(c, func(ctx context.Context) { a.backfill(ctx, c, "") })
	}
	return err
}
