package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A gate says which turns may run in this process (limits.running). A session that
// finds no room stands in line, as a key and nothing more: its actor ends, and what
// it waits with is in the store. A full process claims nothing, so any other one
// with room can run it; if one has, that is seen here when its time comes.
//
// Who is next: turns taken over from a dead process before new ones; then one chat
// after another, and of a chat the session that stands longest. So a chat with
// hundreds of sessions keeps another waiting for about one turn (F44).
//
// After a shortage of memory not all of the line begins at once: what turns take is
// seen only when they have run for a while, so the line would bring the next and a
// worse one. A quarter of what ran when it began may run, and one more with each
// turn that ends, until memory is short again or the cap is reached.
//
// Nobody who may have room stands in line: whoever makes room gets the keys of those
// who may begin now, and has them look. Any goroutine.
type gate struct {
	most, chatMost int // 0 = no cap

	mu    sync.Mutex
	short bool        // of memory: one turn at a time
	few   int         // how many may run since it was; 0 = most
	in    map[Key]Key // sessions with room, and the chat that each counts for
	chats map[Key]int // how many sessions of a chat have room
	stand map[Key]standing
	lines [2]line // by standing.fresh: those taken over come first
}

// A standing is the place of a session in line.
type standing struct {
	chat  Key
	fresh int // 0 = a turn to be taken over, 1 = a new one
}

// A line has a queue for each chat.
type line struct {
	ring   []Key         // chats with a queue, the next one first
	queues map[Key][]Key // who stands longest first
}

func newGate(most, chatMost int) *gate {
	g := &gate{most: most, chatMost: chatMost, in: map[Key]Key{}, chats: map[Key]int{}, stand: map[Key]standing{}}
	for i := range g.lines {
		g.lines[i].queues = map[Key][]Key{}
	}
	return g
}

// enter gives a session room, or false and it stands in line. over: its turn was
// begun by a process that died. anyway: it gets room though there is none.
func (g *gate) enter(key, chat Key, over, anyway bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.in[key]; ok {
		return true
	}
	if anyway || g.roomLocked(chat) {
		g.dropLocked(key)
		g.admitLocked(key, chat)
		return true
	}
	want := standing{chat, 1 - boolInt(over)}
	if s, ok := g.stand[key]; ok && s == want {
		return false
	}
	g.dropLocked(key) // it was moved, or begun and left open by another process
	g.stand[key] = want
	l := &g.lines[want.fresh]
	if len(l.queues[chat]) == 0 {
		l.ring = append(l.ring, chat)
	}
	l.queues[chat] = append(l.queues[chat], key)
	return false
}

// leave gives a session's room back, and the keys of those who may begin by it.
func (g *gate) leave(key Key) []Key {
	g.mu.Lock()
	defer g.mu.Unlock()
	chat, ok := g.in[key]
	if !ok {
		return nil
	}
	delete(g.in, key)
	if g.few > 0 && !g.short {
		if g.few++; g.most > 0 && g.few >= g.most {
			g.few = 0
		}
	}
	if g.chats[chat]--; g.chats[chat] == 0 {
		delete(g.chats, chat)
	}
	return g.callLocked()
}

// forgo takes a session out of the line: it has nothing to begin.
func (g *gate) forgo(key Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropLocked(key)
}

// spare says whether memory is short, and gives the keys of those who may begin
// now.
func (g *gate) spare(short bool) []Key {
	g.mu.Lock()
	defer g.mu.Unlock()
	if short && !g.short {
		g.few = max(1, len(g.in)/4)
	}
	g.short = short
	return g.callLocked()
}

// full reports whether a session that wants to begin a turn would stand in line.
func (g *gate) full(key, chat Key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, in := g.in[key]
	return !in && !g.roomLocked(chat)
}

// stands reports whether a session stands in line.
func (g *gate) stands(key Key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.stand[key]
	return ok
}

func (g *gate) state() Room {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Room{Used: len(g.in), Most: g.mostLocked(), Waiting: len(g.stand), Short: g.short}
}

func (g *gate) roomLocked(chat Key) bool {
	return g.openLocked() && (g.chatMost == 0 || g.chats[chat] < g.chatMost)
}

func (g *gate) openLocked() bool {
	if g.short {
		return len(g.in) == 0 // never none: what is there must get done
	}
	most := g.mostLocked()
	return most == 0 || len(g.in) < most
}

// mostLocked is how many may run when memory is not short.
func (g *gate) mostLocked() int {
	if g.few > 0 {
		return g.few
	}
	return g.most
}

func (g *gate) admitLocked(key, chat Key) {
	g.in[key] = chat
	g.chats[chat]++
}

// callLocked gives room to as many as there is room for.
func (g *gate) callLocked() (keys []Key) {
	for i := range g.lines {
		for g.openLocked() {
			key, chat, ok := g.lines[i].next(g.roomLocked)
			if !ok {
				break
			}
			delete(g.stand, key)
			g.admitLocked(key, chat)
			keys = append(keys, key)
		}
	}
	return keys
}

// next takes the one whose turn it is out of the line. Chats that may not have more
// are passed over; those are few, for each has its share of the room.
func (l *line) next(may func(chat Key) bool) (key, chat Key, ok bool) {
	for i, chat := range l.ring {
		if !may(chat) {
			continue
		}
		l.ring = slices.Delete(l.ring, i, i+1)
		q := l.queues[chat]
		key, q[0] = q[0], Key{}
		if q = q[1:]; len(q) == 0 {
			delete(l.queues, chat)
		} else {
			l.queues[chat] = q
			l.ring = append(l.ring, chat)
		}
		return key, chat, true
	}
	return Key{}, Key{}, false
}

// dropLocked takes a session out of the line, if it stands there.
func (g *gate) dropLocked(key Key) {
	s, ok := g.stand[key]
	if !ok {
		return
	}
	delete(g.stand, key)
	l := &g.lines[s.fresh]
	same := func(k Key) bool { return k == key }
	if l.queues[s.chat] = slices.DeleteFunc(l.queues[s.chat], same); len(l.queues[s.chat]) == 0 {
		delete(l.queues, s.chat)
		l.ring = slices.DeleteFunc(l.ring, func(k Key) bool { return k == s.chat })
	}
}

// keepRoom is the longest wait for a further look in which a session keeps the
// room that it was given for a turn: something came between.
const keepRoom = 100 * time.Millisecond

// crowd is the chat that a session counts for: with all its threads and people. A
// platform whose people are one (web) is one chat.
func (h *Hub) crowd(lane Key) Key {
	chat := h.Routes.Home(lane)
	if h.Access.policy[chat.Platform].Open {
		return Key{Platform: chat.Platform}
	}
	return Key{Platform: chat.Platform, Chat: chat.Chat}
}

// call has sessions look that were given room.
func (h *Hub) call(keys []Key) {
	for len(keys) > 0 {
		key := keys[0]
		keys = keys[1:]
		if !h.nudge(key, nil) { // its platform is off, or this process ends
			keys = append(keys, h.gate.leave(key)...)
		}
	}
}

// Spare says whether the process is short of memory. While it is, one turn runs at
// a time beside those that run; what waits stays in the store.
func (h *Hub) Spare(short bool) { h.call(h.gate.spare(short)) }

// waitForRoom shows that what waits does so and lets the session go: it stands in
// line. Only one with jobs of this process stays here, by its lease.
func (a *actor) waitForRoom(life context.Context, lane Lane) time.Duration {
	for _, e := range lane.Slot {
		switch {
		case e.Held || e.IsOpen(lane.Now):
		case e.Turn == 0:
			a.showWaits(life, e)
		default:
			a.showQueued(life, e)
		}
	}
	if slices.ContainsFunc(lane.Jobs, func(j Job) bool { return j.Name != asideJob && j.State == JobRunning }) {
		return a.keepForJobs(life)
	}
	if a.held {
		a.held = false
		if err := a.h.Store.Release(life, a.lease); err != nil && !errors.Is(err, ErrFenced) {
			a.h.note(life, "release", err) // its lease runs out by itself
		}
	}
	return never
}

// showWaits notes in the store that people see an entry wait, so that whoever
// begins it, here or elsewhere, shows that it does. The door has done so with those
// that came when there was no room.
func (a *actor) showWaits(life context.Context, e Entry) {
	r, err := a.h.Store.Amend(life, Amend{
		Key: a.key, Dedupe: fmt.Sprintf("room:%d:%d", e.Ticket, e.Version), Kind: AmendSet, Ticket: e.Ticket, Version: e.Version,
		Want: e.Want, Turn: noTurn, Fate: FateQueued,
	})
	switch {
	case err != nil && !isStale(err):
		a.h.note(life, "show that it waits", err)
	case err == nil && r.Done:
		a.h.Outbox.Sign(a.key, Fate{Ticket: e.Ticket, Msgs: e.Msgs, State: FateQueued, Waited: true})
	}
}

// waitsForRoom reports whether something could begin, or go on, and does not: as
// far as the store tells, also when it stands in line elsewhere.
func (h *Hub) waitsForRoom(lane Lane) bool {
	if lane.Turn != 0 {
		return h.gate.stands(lane.Key) && (lane.Nonce == "" || !lane.Now.Before(lane.Until))
	}
	return slices.ContainsFunc(lane.Slot, func(e Entry) bool {
		return !e.Held && e.Turn == noTurn && !e.IsOpen(lane.Now)
	})
}
