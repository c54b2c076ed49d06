package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"coxswain/session"
)

// outageWait is how long a send waits before it is tried again while its guild
// is out.
const outageWait = 20 * time.Second

// guilds are those of which something is to be known: the ones that are out for
// a while (everything of theirs is kept), the ones that threw the bot out (D21),
// and how far the others are boosted.
type guilds struct {
	mu    sync.Mutex
	lost  map[string]lostGuild
	tiers map[string]int // premium_tier, those above 0
}

// A lostGuild is one that nothing is heard from.
type lostGuild struct {
	out   bool   // for a while; else the bot is not in it any more
	since string // the newest message before
}

// lose notes that a guild is lost; what it was lost with first stands.
func (g *guilds) lose(id string, l lostGuild) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost == nil {
		g.lost = make(map[string]lostGuild)
	}
	if old, ok := g.lost[id]; ok {
		l.since = old.since
	}
	g.lost[id] = l
}

// find notes that a guild is there, and tells how it was lost.
func (g *guilds) find(id string) (l lostGuild, was bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, was = g.lost[id]
	delete(g.lost, id)
	return l, was
}

// forget drops what is known of all.
func (g *guilds) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = nil
}

func (g *guilds) get(id string) (out, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.lost[id]
	return ok && l.out, ok && !l.out
}

// boost notes a guild's boost level.
func (g *guilds) boost(id string, tier int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tiers == nil {
		g.tiers = make(map[string]int)
	}
	if g.tiers[id] = tier; tier == 0 {
		delete(g.tiers, id)
	}
}

func (g *guilds) tier(id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tiers[id]
}

// boostGuild reads what has changed of a guild.
func (l *link) boostGuild(raw json.RawMessage) error {
	var g struct {
		ID   string `json:"id"`
		Tier *int   `json:"premium_tier"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return err
	}
	if g.Tier != nil {
		l.a.guilds.boost(g.ID, *g.Tier)
	}
	return nil
}

// takeGuild reads a guild that is there: at the start, after an outage, after
// the bot was let in. What was said meanwhile in channels that have no cursor is
// read from the newest message there was before (D14).
func (l *link) takeGuild(raw json.RawMessage) error {
	a := l.a
	var g struct {
		ID          string    `json:"id"`
		Unavailable bool      `json:"unavailable"`
		Channels    []channel `json:"channels"`
		Threads     []channel `json:"threads"`
		Tier        int       `json:"premium_tier"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return err
	}
	if g.Unavailable {
		return l.loseGuild(raw)
	}
	a.guilds.boost(g.ID, g.Tier)
	lost, was := a.guilds.find(g.ID)
	since := l.horizon
	if was && lost.since != "" && (since == "" || before(lost.since, since)) {
		since = lost.since
	}
	for _, c := range append(g.Channels, g.Threads...) {
		c.GuildID = g.ID
		a.places.put(c)
		if was && !lost.out {
			a.shut.clear(c.ID)
		}
		if before(l.upTo, c.Last) {
			l.upTo = c.Last
		}
		// Whether it has a cursor now does not matter: it may have got it from a
		// message that was on its way when this session began. At the first start of
		// all nothing was missed.
		if since != "" && (was || !l.read[c.ID]) && before(since, c.Last) {
			l.readFresh(c.ID, since)
		}
	}
	l.told(g.ID)
	return nil
}

// told notes that a guild has told what there is to read. After the last one no
// later session needs to look behind this one's beginning.
func (l *link) told(guild string) {
	if delete(l.missing, guild); len(l.missing) == 0 {
		l.a.cursors.closeGap(l.upTo)
	}
}

// readFresh reads a channel that READY could not know was to be read.
func (l *link) readFresh(id, since string) {
	if l.fresh++; l.fresh > freshMost {
		l.a.state.set(func(s *Status) { s.Missed++ })
		return
	}
	l.a.cursors.hold(id, since, false) // a process that ends before it is read leaves it to the next
	l.flight.pushAlways(id, func(ctx context.Context) {
		if l.a.backfill(ctx, id, since); ctx.Err() == nil {
			l.a.cursors.release(id, since)
		}
	})
}

// loseGuild notes that a guild is out, or that the bot is not in it any more.
func (l *link) loseGuild(raw json.RawMessage) error {
	var g struct {
		ID          string `json:"id"`
		Unavailable bool   `json:"unavailable"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return err
	}
	l.a.guilds.lose(g.ID, lostGuild{g.Unavailable, l.a.cursors.latest()})
	l.told(g.ID) // one that is out is read when it is back
	l.a.log.Warn(wordsGuildGone(g.Unavailable), "guild", g.ID)
	return nil
}

// barred says why nothing can be sent to a channel now, nil if it can.
func (a *Adapter) barred(to string) error {
	if a.shut.has(to) {
		return &session.SendError{Outcome: session.SendRefused, Err: errShut}
	}
	c, ok := a.places.get(to)
	if !ok || c.GuildID == "" {
		return nil
	}
	switch out, gone := a.guilds.get(c.GuildID); {
	case gone:
		return &session.SendError{Outcome: session.SendRefused, Err: errShut}
	case out:
		return &session.SendError{Outcome: session.SendNot, Wait: outageWait, Err: errOut}
	}
	return nil
}

// shutChannel keeps sends to a channel that refused one back for a while, and
// tells the person who spoke to the bot there, once a day (D7). A private
// channel that is closed is just closed (D22).
func (a *Adapter) shutChannel(ctx context.Context, to string, err error) {
	if a.shut.has(to) {
		return
	}
	a.shut.set(to, shutFor)
	a.log.Warn(wordsClosedChan, "channel", to, "err", err)
	owner, ok := a.spoke.get(to)
	c, known := a.places.get(to)
	if !ok || !known || c.GuildID == "" || a.told.has(to) {
		return
	}
	a.told.set(to, 24*time.Hour)
	if err := a.tellPrivately(ctx, owner, wordsTellClosed(to), nonceOf(session.Key{Platform: Name, Chat: session.ChatID(to)}, "closed")); err != nil {
		a.log.Debug("owner not told", "err", err)
	}
}

// tellPrivately sends a person a private message.
func (a *Adapter) tellPrivately(ctx context.Context, user, text, nonce string) error {
	dm, err := a.dmOf(ctx, user)
	if err != nil {
		return err
	}
	_, err = a.post(ctx, dm, payload{Text: text}, nonce)
	return err
}

// dmOf gives the private channel with a person.
func (a *Adapter) dmOf(ctx context.Context, user string) (string, error) {
	var dm channel
	err := a.call(ctx, http.MethodPost, "users/@me/channels", "dm", map[string]string{"recipient_id": user}, &dm)
	return dm.ID, err
}
