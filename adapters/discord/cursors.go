package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// cursorsMost is how many channels have a cursor: those in which somebody spoke
// to the bot, the most recent ones.
const cursorsMost = 200

// newestKey is where the document of cursors keeps the newest message of all;
// it is no channel's id.
const newestKey = "newest"

// cursors are the newest message of each channel before which the door has
// taken everything. They may stand too early, never too late: what is read
// twice is known by its dedupe id.
type cursors struct {
	mu     sync.Mutex
	m      map[string]string   // channel → message
	held   map[string][]string // channel → messages that the door has not taken all of
	newest string              // of all channels
	// gap is the newest message before a session began of whose guilds not all
	// have told yet what was said meanwhile; empty = none. Channels without a
	// cursor are read from there.
	gap  string
	lazy int // flushes since newest was stored

	writing sync.Mutex // held over a flush: an older one must not be the last to write

	stored       map[string]string // as the document has them
	storedNewest string
}

// forget drops all that is not stored.
func (c *cursors) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m, c.held, c.stored = nil, nil, nil
	c.newest, c.gap, c.storedNewest, c.lazy = "", "", "", 0
}

// hold keeps the stored cursor of a channel before a message until release,
// also that of a channel without one: nothing that has come is passed over by a
// process that ends now (I1). It may be held more than once.
//
// live says that the gateway told of it. Only then is it the newest: what REST
// shows while the socket is down is newer than messages of other channels that
// nobody has told of.
func (c *cursors) hold(channel, id string, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = make(map[string][]string)
	}
	c.held[channel] = append(c.held[channel], id)
	if live {
		c.noteLocked(id)
	}
}

func (c *cursors) noteLocked(id string) {
	if isID(id) && before(c.newest, id) {
		c.newest = id
	}
}

// written reports whether the document has a cursor of a channel.
func (c *cursors) written(channel string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.stored[channel]
	return ok
}

func (c *cursors) release(channel, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.held[channel]
	if at := slices.Index(list, id); at >= 0 {
		list = slices.Delete(list, at, at+1)
	}
	if c.held[channel] = list; len(list) == 0 {
		delete(c.held, channel)
	}
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

// openGap begins to find out what was missed, and gives the newest message
// before that: of an earlier session, if it ended before it was found out.
func (c *cursors) openGap() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gap == "" {
		c.gap = c.newest
	}
	return c.gap
}

func (c *cursors) latest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// closeGap notes that all that was missed up to a message is being read: it is
// held, or behind a cursor.
func (c *cursors) closeGap(upTo string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap = ""
	c.noteLocked(upTo)
}

// newestLazy is how many flushes pass before the newest message alone is worth
// a write.
const newestLazy = 15

// due gives the cursors to store, nil if the document has them.
func (c *cursors) due(last bool) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make(map[string]string, len(c.m)+1)
	maps.Copy(now, c.m)
	for channel, list := range c.held {
		least := just(slices.MinFunc(list, byAge))
		if have, ok := now[channel]; !ok || before(least, have) {
			now[channel] = least
		}
	}
	newest := c.newest
	if c.gap != "" {
		newest = c.gap
	}
	if maps.Equal(now, c.stored) {
		if newest == c.storedNewest {
			return nil
		}
		if c.lazy++; c.lazy < newestLazy && !last && c.storedNewest != "" {
			return nil
		}
	}
	if newest != "" {
		now[newestKey] = newest
	}
	return now
}

func (c *cursors) wrote(now map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored, c.storedNewest, c.lazy = maps.Clone(now), now[newestKey], 0
	delete(c.stored, newestKey)
}

// byAge orders ids.
func byAge(a, b string) int {
	switch {
	case a == b:
		return 0
	case before(a, b):
		return -1
	}
	return 1
}

// just gives the id before an id.
func just(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n == 0 {
		return "0"
	}
	return strconv.FormatUint(n-1, 10)
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
	a.cursors.closeGap(stored[newestKey])
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
		a.flush(ctx, false)
	}
}

// flush stores the cursors if they have moved; the last one of a process stores
// the newest message too.
func (a *Adapter) flush(ctx context.Context, last bool) {
	a.cursors.writing.Lock()
	defer a.cursors.writing.Unlock()
	now := a.cursors.due(last)
	if now == nil {
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
		a.log.Warn("cursors not stored, trying again", "err", err)
		return
	}
	a.cursors.wrote(now)
}
