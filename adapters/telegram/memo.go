package telegram

import (
	"sync"
	"time"

	"coxswain/session"
)

// blockedFor is how long a 403 keeps sends to a chat back when no update says
// that the bot is welcome again.
const blockedFor = 10 * time.Minute

// noSignsFor is how long a refused reaction keeps others from being tried.
const noSignsFor = time.Hour

// topicDeadFor is how long a closed topic is not tried again, unless somebody
// writes in it (T17).
const topicDeadFor = time.Hour

// chatMemo remembers what calls and updates taught about chats, by wire id. It
// saves calls that would fail; losing it costs those calls.
type chatMemo struct {
	mu      sync.Mutex
	blocked map[int64]time.Time // until
	noSigns map[int64]time.Time // until
	dead    map[place]time.Time // closed topics, until
	told    map[place]time.Time // closed topics whose closing was told of, until
	noDraft map[int64]time.Time // until
	forums  map[int64]time.Time // until
	in, out map[int64]time.Time // channels the bot is in, or is not, until
}

// A place is a chat or a topic of it.
type place struct {
	chat   int64
	thread int
}

func mark[K comparable](m *map[K]time.Time, k K, d time.Duration) {
	if *m == nil {
		*m = make(map[K]time.Time)
	}
	now := time.Now()
	if len(*m) > 1000 { // a memo, not a record
		for k, until := range *m {
			if now.After(until) {
				delete(*m, k)
			}
		}
	}
	(*m)[k] = now.Add(d)
}

func marked[K comparable](m map[K]time.Time, k K) bool {
	until, ok := m[k]
	return ok && time.Now().Before(until)
}

func (c *chatMemo) block(chat int64, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark(&c.blocked, chat, d)
}

func (c *chatMemo) isBlocked(chat int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return marked(c.blocked, chat)
}

// heard says that something came from a place: the bot is welcome there.
func (c *chatMemo) heard(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.blocked, p.chat)
	delete(c.dead, p)
	delete(c.told, p)
}

func (c *chatMemo) refuseSigns(chat int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark(&c.noSigns, chat, noSignsFor)
}

func (c *chatMemo) takesSigns(chat int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !marked(c.noSigns, chat)
}

func (c *chatMemo) closeTopic(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark(&c.dead, p, topicDeadFor)
}

func (c *chatMemo) isClosed(p place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return marked(c.dead, p)
}

// toldClosed reports whether the closing of a topic has been told of.
func (c *chatMemo) toldClosed(p place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return marked(c.told, p)
}

func (c *chatMemo) tellClosed(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark(&c.told, p, topicDeadFor)
}

// isForum notes that a chat has topics.
func (c *chatMemo) isForum(chat int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark(&c.forums, chat, 24*time.Hour)
}

func (c *chatMemo) hasTopics(chat int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return marked(c.forums, chat)
}

// putIn notes whether the bot is in a channel.
func (c *chatMemo) putIn(channel int64, in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.in, channel)
	delete(c.out, channel)
	if in {
		mark(&c.in, channel, inFor)
	} else {
		mark(&c.out, channel, inFor)
	}
}

func (c *chatMemo) isIn(channel int64) (in, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in = marked(c.in, channel)
	return in, in || marked(c.out, channel)
}

func (c *chatMemo) refuseDrafts(chat int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark(&c.noDraft, chat, 10*time.Minute)
}

func (c *chatMemo) takesDrafts(chat int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !marked(c.noDraft, chat)
}

// seen remembers the newest messages: what they said, so that an edit that
// changes nothing is known as one (T3), their first words, for lists, and which
// session they are of, for reactions. Two
// generations of seenMost bound it.
type seen struct {
	mu       sync.Mutex
	new, old map[seenKey]seenMessage
}

const seenMost = 4096

type seenKey struct {
	chat int64
	msg  int
}

type seenMessage struct {
	hash  string
	first string
	key   session.Key // its session
}

func (s *seen) put(k seenKey, m seenMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.new) >= seenMost || s.new == nil {
		s.old, s.new = s.new, make(map[seenKey]seenMessage)
	}
	s.new[k] = m
}

func (s *seen) get(k seenKey) (seenMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.new[k]; ok {
		return m, true
	}
	m, ok := s.old[k]
	return m, ok
}

// lacking remembers which methods the server does not know. The zero value is
// ready.
type lacking struct {
	mu      sync.Mutex
	methods map[string]time.Time // until
}

func (l *lacking) note(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark(&l.methods, method, lacksFor)
}

func (l *lacking) has(method string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return marked(l.methods, method)
}
