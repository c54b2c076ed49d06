package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of what is read again after a gap, for each channel.
const (
	backfillMost = 100 // Discord's limit of one page
	backfillAge  = 24 * time.Hour
)

// cursorsMost is how many channels have a cursor: those in which somebody spoke
// to the bot, the most recent ones.
const cursorsMost = 200

// cursors are the newest message of each channel before which the door has
// taken everything. They may stand too early, never too late: what is read
// twice is known by its dedupe id.
type cursors struct {
	mu    sync.Mutex
	m     map[string]string // channel → message
	dirty bool
}

// advance moves the cursor of a channel that has one; track gives it one.
func (c *cursors) advance(channel, id string, track bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.m[channel]
	if !ok && !track || ok && !before(old, id) {
		return
	}
	if c.m == nil {
		c.m = make(map[string]string)
	}
	c.m[channel] = id
	c.dirty = true
	for len(c.m) > cursorsMost {
		oldest := channel
		for k, v := range c.m {
			if before(v, c.m[oldest]) {
				oldest = k
			}
		}
		delete(c.m, oldest)
	}
}

func (c *cursors) drop(channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, channel)
	c.dirty = true
}

func (c *cursors) get(channel string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m[channel]
}

func (c *cursors) channels() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.m))
}

// loadMemos reads the documents that Run needs before anything comes in.
func (a *Adapter) loadMemos(ctx context.Context) error {
	data, _, err := a.o.Docs.Doc(ctx, a.docName("cursors"))
	if err != nil {
		return fmt.Errorf("read cursors: %w", err)
	}
	var stored map[string]string
	if len(data) > 0 {
		if err := json.Unmarshal(data, &stored); err != nil {
			a.log.Warn("cursors not understood, begun anew", "err", err)
		}
	}
	for k, v := range stored {
		if isID(k) && isID(v) {
			a.cursors.advance(k, v, true)
		}
	}
	if data, _, err = a.o.Docs.Doc(ctx, a.docName("threads")); err != nil {
		return fmt.Errorf("read threads: %w", err)
	}
	var list []string
	_ = json.Unmarshal(data, &list) // none yet
	a.threads.mu.Lock()
	defer a.threads.mu.Unlock()
	for _, id := range list {
		if !slices.Contains(a.threads.list, id) {
			a.threads.list = append(a.threads.list, id)
		}
	}
	return nil
}

// flushing stores the cursors now and then: a write for each message would cost
// more than reading a few again.
func (a *Adapter) flushing(ctx context.Context) {
	for pause(ctx, a.timing.flush) {
		a.flush(ctx)
	}
}

func (a *Adapter) flush(ctx context.Context) {
	a.cursors.mu.Lock()
	now, dirty := maps.Clone(a.cursors.m), a.cursors.dirty
	a.cursors.dirty = false
	a.cursors.mu.Unlock()
	if !dirty {
		return
	}
	err := a.change(ctx, "cursors", func(old []byte) ([]byte, error) {
		var stored map[string]string
		_ = json.Unmarshal(old, &stored) // none yet, or not ours
		for k, v := range stored {       // another process may be further
			if mine, ok := now[k]; ok && before(mine, v) {
				now[k] = v
			}
		}
		return json.Marshal(now)
	})
	if err != nil {
		a.cursors.mu.Lock()
		a.cursors.dirty = true
		a.cursors.mu.Unlock()
		a.log.Warn("cursors not stored, trying again", "err", err)
	}
}

// backfill reads what a channel said since its cursor and takes it as if it
// came live. It runs in the channel's lane, ahead of what comes live.
func (a *Adapter) backfill(ctx context.Context, channelID string) {
	after := a.cursors.get(channelID)
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
	var list []message
	path := fmt.Sprintf("channels/%s/messages?limit=%d&after=%s", channelID, backfillMost, after)
	if err := a.fetch(ctx, "read backlog", path, "history:"+channelID, &list); err != nil {
		if ctx.Err() == nil {
			a.log.Warn("backlog refused, channel forgotten", "channel", channelID, "err", err)
			a.cursors.drop(channelID)
		}
		return
	}
	if len(list) == backfillMost {
		a.state.set(func(s *Status) { s.Missed++ })
		a.log.Warn("backlog is longer than what is read again", "channel", channelID, "read", backfillMost)
	}
	slices.SortFunc(list, func(x, y message) int {
		if before(x.ID, y.ID) {
			return -1
		}
		return 1
	})
	for i := range list {
		w := &list[i]
		w.ChannelID, w.GuildID = channelID, guild // REST does not say the guild
		if !a.means(w) {
			continue
		}
		a.guarded("backlog", func() { a.takeMessage(ctx, w) })
		if ctx.Err() != nil {
			return
		}
	}
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
