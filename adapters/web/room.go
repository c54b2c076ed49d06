package web

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/session"
)

// What is kept in memory.
const (
	keepReplies = 100      // of a conversation, and as many messages typed in it
	keepSaid    = 2 << 10  // bytes of a typed message
	keepReply   = 64 << 10 // bytes of a reply
	keepRooms   = 64       // conversations that no page has open
	fatesMost   = 512      // fates a slow stream may owe; beyond, its page reads all again
)

// An item is something shown in a conversation that is not a row: a reply, or
// a message as it was typed, for those that never become a row.
type item struct {
	N       int64             `json:"n,omitempty"` // grows over all conversations of this process
	Kind    string            `json:"kind"`
	ID      string            `json:"id"`
	Text    string            `json:"text,omitempty"`
	ReplyTo session.MessageID `json:"reply_to,omitempty"`
	Buttons []session.Button  `json:"buttons,omitempty"`
	Silent  bool              `json:"silent,omitempty"`
	Files   []session.File    `json:"files,omitempty"`
	Lane    session.Key       `json:"lane,omitzero"` // with files: whose they are
	Turn    int64             `json:"turn,omitempty"`
	State   session.FateState `json:"state,omitempty"` // of a typed message that was dropped
	At      int64             `json:"at"`              // Unix ms

	known bool // typed: the store has had it as an input
	kept  bool // typed: only the memo has its text
	rest  session.Rest
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *item) UnmarshalJSON(b []byte) error {
	type plain item
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v item) MarshalJSON() ([]byte, error) {
	type plain item
	return v.rest.Encode(plain(v))
}

// kindSaid marks a typed message; other kinds are those of parts.
const kindSaid = "said"

// A room is one conversation as its open pages share it.
type room struct {
	door chan struct{} // holds a token while a message of it is being delivered
	n    *atomic.Int64 // the process's counter of items

	mu      sync.Mutex // guards what follows; never held over I/O
	subs    map[*sub]bool
	said    []item
	replies []item
	held    []item // commands at the door
	waiting []item // the slot as last read
	asks    map[string]chan item
	version int64 // of the stored memo as last read
	gen     int64 // how far a reading came
	seq     int64
	seen    shape
	used    time.Time
}

// shape is what of a view goes with new rows.
type shape struct {
	turn           int64
	step, over     int
	notes, carried int
	done           bool
}

func shapeOf(v session.View) shape {
	s := shape{turn: v.Turn, step: v.Step, notes: len(v.Notes), done: v.Done}
	for _, t := range v.Tools {
		if t.State != session.ToolRunning {
			s.over++
		}
	}
	for _, n := range v.Notes {
		if n.Sent {
			s.carried++
		}
	}
	return s
}

// A sub is what one stream still owes its page. Guarded by the room's mutex.
type sub struct {
	wake  chan struct{} // holds at most one token
	rows  bool
	state bool
	fates map[int64]session.Fate // newest by ticket
	after int64                  // newest reply sent
}

func (s *sub) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// news is what a stream has to write.
type news struct {
	rows, state bool
	fates       []session.Fate
	replies     []item
}

// rooms are all conversations this process has heard of lately.
type rooms struct {
	n    atomic.Int64
	mu   sync.Mutex
	open map[session.Key]*room
}

// forget drops the room of a conversation that was deleted.
func (rs *rooms) forget(key session.Key) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.open, key)
}

// changed says that the pages of a conversation should read again; the zero key:
// all pages.
func (rs *rooms) changed(key session.Key) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.open[key]; r != nil {
		r.changed()
	}
	if key == (session.Key{}) {
		for _, r := range rs.open {
			r.changed()
		}
	}
}

// of gives the room of key.
func (rs *rooms) of(key session.Key) *room {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.ofLocked(key)
}

// join opens a stream of key that has every reply up to after.
func (rs *rooms) join(key session.Key, after int64) (*room, *sub) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.ofLocked(key) // joined before it can be forgotten
	return r, r.join(after)
}

// ofLocked forgets the room longest unused when there are too many.
func (rs *rooms) ofLocked(key session.Key) *room {
	r := rs.open[key]
	if r == nil {
		if rs.open == nil {
			rs.open = map[session.Key]*room{}
		}
		r = &room{door: make(chan struct{}, 1), n: &rs.n, subs: map[*sub]bool{}, asks: map[string]chan item{}}
		rs.open[key] = r
	}
	r.touch()
	if len(rs.open) > keepRooms {
		rs.forgetLocked()
	}
	return r
}

func (rs *rooms) forgetLocked() {
	var oldest session.Key
	var at time.Time
	idle := 0
	for k, r := range rs.open {
		used, busy := r.lastUse()
		if busy {
			continue
		}
		if idle++; at.IsZero() || used.Before(at) {
			oldest, at = k, used
		}
	}
	if idle > keepRooms {
		delete(rs.open, oldest)
	}
}

func (r *room) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = time.Now()
}

func (r *room) lastUse() (used time.Time, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, len(r.subs) > 0 || len(r.door) > 0 || len(r.asks) > 0
}

// join opens a stream that has every reply up to after.
func (r *room) join(after int64) *sub {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sub{wake: make(chan struct{}, 1), fates: map[int64]session.Fate{}, after: after, rows: true, state: true}
	r.subs[s] = true
	s.poke()
	return s
}

func (r *room) leave(s *sub) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subs, s)
}

// take gives what s owes and clears it.
func (r *room) take(s *sub) news {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := news{rows: s.rows, state: s.state, replies: newer(r.replies, s.after)}
	for _, ticket := range slices.Sorted(maps.Keys(s.fates)) {
		n.fates = append(n.fates, s.fates[ticket])
	}
	clear(s.fates)
	s.rows, s.state = false, false
	if k := len(n.replies); k > 0 {
		s.after = n.replies[k-1].N
	}
	return n
}

// eachLocked lets f note something for every open stream.
func (r *room) eachLocked(f func(*sub)) {
	for s := range r.subs {
		f(s)
		s.poke()
	}
}

// changed says that a page should read again.
func (r *room) changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eachLocked(func(s *sub) { s.rows = true })
}

func (r *room) show(v session.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := shapeOf(v)
	rows := now != r.seen
	r.seen = now
	r.eachLocked(func(s *sub) { s.state, s.rows = true, s.rows || rows })
}

func (r *room) sign(f session.Fate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range f.Msgs {
		if it := r.saidLocked(string(id)); it != nil {
			it.known = true
		}
	}
	r.eachLocked(func(s *sub) {
		if len(s.fates) >= fatesMost {
			clear(s.fates) // the page reads them from the store
		}
		s.fates[f.Ticket] = f
		s.rows = true
	})
}

func (r *room) reply(it item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.Text = clip(it.Text, keepReply)
	if r.keepLocked(&r.replies, it) {
		r.eachLocked(func(s *sub) { s.rows = true })
	}
}

// spoke keeps a typed message.
func (r *room) spoke(it item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.Text = clip(it.Text, keepSaid)
	r.keepLocked(&r.said, it)
	r.eachLocked(func(s *sub) { s.rows = true })
}

// keepLocked numbers and adds an item unless it is there; false if it was.
func (r *room) keepLocked(list *[]item, it item) bool {
	if slices.ContainsFunc(*list, func(old item) bool { return old.ID == it.ID }) {
		return false
	}
	it.N = r.n.Add(1)
	*list = append(*list, it)
	if len(*list) > keepReplies {
		oldest := 0 // what came from the store stands behind newer ones
		for i, old := range *list {
			if old.At < (*list)[oldest].At {
				oldest = i
			}
		}
		*list = slices.Delete(*list, oldest, oldest+1)
	}
	return true
}

// await opens an ear for the answer to a question; done closes it.
func (r *room) await(id string) (answer <-chan item, done func()) {
	c := make(chan item, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks[id] = c
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asks, id)
	}
}

// answer gives an answer to whoever asked, if they still wait.
func (r *room) answer(id string, it item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.asks[id] <- it:
	default: // nobody waits, or the answer came before
	}
}

// memo gives what is kept beyond n, oldest first, and the newest number.
func (r *room) memo(n int64) ([]item, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append(newer(r.said, n), newer(r.replies, n)...)
	slices.SortFunc(all, func(x, y item) int { return int(x.N - y.N) })
	if k := len(all); k > 0 {
		n = all[k-1].N
	}
	return all, n
}

// newer are the items beyond n, in a slice of their own.
func newer(list []item, n int64) []item {
	var out []item
	for _, it := range list {
		if it.N > n {
			out = append(out, it)
		}
	}
	return out
}
