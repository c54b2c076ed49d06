package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Routes know which session lives in which chat. As a rule that is the one whose
// key is the chat's own; /resume moves a session to another chat, also of another
// platform. Its key stays what it is: rows, slot, lease, files and jobs are where
// they were. Outside of the session package chats have keys with Line 0, and only
// those are seen there.
//
// All of it is one small document of the store, so a move is one atomic step. It
// is read at most shelfFresh late: until then another process may take a message
// for the session that lived in the chat before. All methods may be called from
// any goroutine; those without a context do no I/O.
type Routes struct{ shelf shelf[routes] }

// routes is the stored document: the chats that are not as a rule.
type routes struct {
	Chats []*chatRoute `json:"chats,omitempty"`

	rest Rest

	once  sync.Once // of a value that is only read
	chats map[Key]*chatRoute
	homes map[Key]Key
}

// A chatRoute is one chat with the sessions that live in it. A session lives in
// one chat only.
type chatRoute struct {
	Chat  Key    `json:"chat"`
	Lanes []Key  `json:"lanes"`          // the one that is spoken to first; the others sleep
	Made  int    `json:"made,omitempty"` // Lines given out
	By    string `json:"by,omitempty"`   // the command that brought a session last
	Lane  Key    `json:"lane,omitzero"`  // which one
	From  Key    `json:"from,omitzero"`  // and where it had lived
	Past  []past `json:"past,omitempty"` // those that were spoken to before, oldest first

	rest Rest
}

// A past is a session that was spoken to in a chat: what it accepted there may be
// delivered again.
type past struct {
	Lane Key   `json:"lane"`
	Till int64 `json:"till"` // Unix s

	rest Rest
}

const (
	// pastLife is how long a message may come again: as long as stores keep marks.
	pastLife = 48 * time.Hour
	pastMost = 8
)

// NewRoutes makes the routes kept in a store.
func NewRoutes(st Store) *Routes {
	return &Routes{shelf: shelf[routes]{store: st, name: "routes"}}
}

// own is the chat whose key a session carries.
func (k Key) own() Key {
	k.Line = 0
	return k
}

func (r *routes) chat(k Key) *chatRoute {
	for _, c := range r.Chats {
		if c.Chat == k {
			return c
		}
	}
	return nil
}

// home is the chat in which a session lives.
func (r *routes) home(lane Key) Key {
	for _, c := range r.Chats {
		if slices.Contains(c.Lanes, lane) {
			return c.Chat
		}
	}
	return lane.own()
}

// current is the session that is spoken to in a chat.
func (r *routes) current(chat Key) Key {
	if c := r.chat(chat); c != nil {
		return c.Lanes[0]
	}
	return chat
}

// lanes are the sessions that live in a chat, the one spoken to first.
func (r *routes) lanes(chat Key) []Key {
	if c := r.chat(chat); c != nil {
		return c.Lanes
	}
	return []Key{chat}
}

// index makes a value that is only read quick to read.
func (r *routes) index() *routes {
	r.once.Do(func() {
		r.chats, r.homes = make(map[Key]*chatRoute, len(r.Chats)), make(map[Key]Key, len(r.Chats))
		for _, c := range r.Chats {
			r.chats[c.Chat] = c
			for _, k := range c.Lanes {
				r.homes[k] = c.Chat
			}
		}
	})
	return r
}

// open gives the route of a chat for a change.
func (r *routes) open(chat Key) *chatRoute {
	c := r.chat(chat)
	if c == nil {
		c = &chatRoute{Chat: chat, Lanes: []Key{chat}}
		r.Chats = append(r.Chats, c)
	}
	return c
}

// was notes who is spoken to before that changes.
func (c *chatRoute) was(now time.Time) {
	c.Past = slices.DeleteFunc(c.Past, func(p past) bool { return p.Till < now.Unix() || p.Lane == c.Lanes[0] })
	c.Past = append(c.Past, past{Lane: c.Lanes[0], Till: now.Add(pastLife).Unix()})
	if n := len(c.Past); n > pastMost {
		c.Past = c.Past[n-pastMost:]
	}
}

// move makes lane the session that is spoken to in chat. The chat it leaves gets
// the one that slept there, else a new one.
func (r *routes) move(lane, chat Key, by string, now time.Time) {
	from, to := r.open(r.home(lane)), r.open(chat)
	to.was(now)
	if from != to && from.Lanes[0] == lane {
		from.was(now)
	}
	from.leave(lane)
	to.Lanes = append([]Key{lane}, to.Lanes...)
	to.By, to.Lane, to.From = by, lane, from.Chat
	r.fill(from)
}

func (c *chatRoute) leave(lane Key) {
	c.Lanes = slices.DeleteFunc(c.Lanes, func(k Key) bool { return k == lane })
}

// fill gives a chat whose last session has left its own one, or a new one if that
// lives elsewhere.
func (r *routes) fill(c *chatRoute) {
	if len(c.Lanes) > 0 {
		return
	}
	fresh := c.Chat
	if slices.ContainsFunc(r.Chats, func(o *chatRoute) bool { return slices.Contains(o.Lanes, fresh) }) {
		c.Made++
		fresh.Line = c.Made
	}
	c.Lanes = []Key{fresh}
}

// forget drops a session that was deleted.
func (r *routes) forget(lane Key) bool {
	c := r.chat(r.home(lane))
	if c == nil {
		return false
	}
	c.leave(lane)
	r.fill(c)
	return true
}

// Home is the chat in which a session lives: where what it says is sent, and whose
// settings it has.
func (r *Routes) Home(lane Key) Key {
	if has := r.shelf.last(); has != nil && len(has.Chats) > 0 {
		if chat, ok := has.index().homes[lane]; ok {
			return chat
		}
	}
	return lane.own()
}

// Current is the session that is spoken to in a chat.
func (r *Routes) Current(chat Key) Key {
	if has := r.shelf.last(); has != nil && len(has.Chats) > 0 {
		if c := has.index().chats[chat]; c != nil {
			return c.Lanes[0]
		}
	}
	return chat
}

// Lane is Current, as the store has it.
func (r *Routes) Lane(ctx context.Context, chat Key) (Key, error) {
	has, err := r.shelf.get(ctx)
	if err != nil {
		return Key{}, err
	}
	return has.current(chat), nil
}

// Forget drops a session that was deleted.
func (r *Routes) Forget(ctx context.Context, lane Key) error {
	return r.shelf.change(ctx, func(has *routes) bool { return has.forget(lane) })
}
