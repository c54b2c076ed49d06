package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Limits of what is read again after a gap, for each channel (D14).
const (
	backfillPage  = 100 // Discord's limit
	backfillPages = 5
	backfillAge   = 24 * time.Hour
	// freshMost is how many channels in which nobody spoke to the bot so far are
	// read after one gap.
	freshMost = 100
)

// backfill reads what a channel said since its cursor, or since a message if it
// has none, and takes it as if it came live. It runs in the channel's lane,
// ahead of what comes live.
func (a *Adapter) backfill(ctx context.Context, channelID, since string) {
	after := a.cursors.get(channelID)
	if after == "" {
		after = since
	}
	if after == "" {
		return
	}
	if least := idAt(time.Now().Add(-backfillAge)); before(after, least) {
		after = least
	}
	guild, ok := a.guildOf(ctx, channelID)
	if !ok {
		return
	}
	for n := 0; ; n++ {
		if n == backfillPages {
			a.state.set(func(s *Status) { s.Missed++ })
			a.log.Warn("backlog is longer than what is read again", "channel", channelID, "read", n*backfillPage)
			return
		}
		list, ok := a.page(ctx, channelID, after)
		if !ok {
			return
		}
		for i := range list {
			w := &list[i]
			w.ChannelID, w.GuildID = channelID, guild // REST does not say the guild
			if !a.means(w) {
				continue
			}
			a.cursors.hold(channelID, w.ID, false)
			a.guarded("backlog", func() { a.takeMessage(ctx, w) })
			if ctx.Err() != nil {
				return
			}
		}
		if len(list) < backfillPage {
			return
		}
		if after = list[len(list)-1].ID; after == "" {
			return // none of them could be read
		}
	}
}

// page reads the messages next after one, oldest first.
func (a *Adapter) page(ctx context.Context, channelID, after string) ([]message, bool) {
	var raw []json.RawMessage
	path := fmt.Sprintf("channels/%s/messages?limit=%d&after=%s", channelID, backfillPage, after)
	if err := a.fetch(ctx, "read backlog", path, "history:"+channelID, &raw); err != nil {
		if ctx.Err() == nil {
			a.log.Warn("backlog refused, channel forgotten", "channel", channelID, "err", err)
			a.cursors.drop(channelID)
		}
		return nil, false
	}
	list := make([]message, 0, len(raw))
	for _, r := range raw { // one by one: a strange one must not hide the others
		var w message
		if err := json.Unmarshal(r, &w); err != nil {
			a.undecodable("backlog", err)
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(x, y message) int { return byAge(x.ID, y.ID) })
	return list, true
}

// guildOf finds out whether a channel is in a guild. READY comes before the
// guilds tell of their channels, so it may have to be asked for.
func (a *Adapter) guildOf(ctx context.Context, id string) (string, bool) {
	if c, ok := a.places.get(id); ok {
		return c.GuildID, true
	}
	var c channel
	if err := a.fetch(ctx, "look up channel", "channels/"+id, "channel:"+id, &c); err != nil {
		if ctx.Err() == nil {
			a.cursors.drop(id)
		}
		return "", false
	}
	c.ID = id
	a.places.put(c)
	return c.GuildID, true
}

// permanent reports an answer that another try does not change.
func permanent(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.status >= 400 && e.status < 500 && e.status != http.StatusTooManyRequests && e.status != http.StatusUnauthorized
}

// guarded keeps a panic to the one thing that caused it.
func (a *Adapter) guarded(where string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			a.undecodable(where, fmt.Errorf("panic: %v", p))
		}
	}()
	f()
}
