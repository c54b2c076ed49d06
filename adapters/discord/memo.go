package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"coxswain/session"
)

// places remembers what channels are. Losing it costs a call each.
type places struct {
	mu sync.Mutex
	m  map[string]channel
}

const placesMost = 20000 // of the biggest servers; then begun anew

func (p *places) put(c channel) {
	if c.ID == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m == nil || len(p.m) >= placesMost {
		p.m = make(map[string]channel)
	}
	p.m[c.ID] = c
}

func (p *places) get(id string) (channel, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.m[id]
	return c, ok
}

// threads are those the bot was mentioned in: there it needs no mention.
type threads struct {
	mu   sync.Mutex
	list []string // oldest first
}

const threadsMost = 500

// inThread reports whether everything in a channel speaks to the bot: a thread
// that it opened or was mentioned in.
func (a *Adapter) inThread(c channel) bool {
	if !c.thread() {
		return false
	}
	a.threads.mu.Lock()
	defer a.threads.mu.Unlock()
	return c.OwnerID == a.id || slices.Contains(a.threads.list, c.ID)
}

// enterThread remembers a thread, also over a restart if the store is there.
func (a *Adapter) enterThread(ctx context.Context, id string) {
	a.threads.mu.Lock()
	known := slices.Contains(a.threads.list, id)
	if !known {
		a.threads.list = append(a.threads.list, id)
		a.threads.list = a.threads.list[max(0, len(a.threads.list)-threadsMost):]
	}
	a.threads.mu.Unlock()
	if known {
		return
	}
	err := a.change(ctx, "threads", func(old []byte) ([]byte, error) {
		var list []string
		_ = json.Unmarshal(old, &list) // none yet, or not ours: begin anew
		if slices.Contains(list, id) {
			return nil, nil
		}
		list = append(list, id)
		return json.Marshal(list[max(0, len(list)-threadsMost):])
	})
	if err != nil {
		a.log.Warn("thread not remembered", "thread", id, "err", err)
	}
}

func (a *Adapter) docName(what string) string { return "discord:" + a.id + ":" + what }

// change rewrites a document with f, again when another wrote in between; f
// gives nil to leave it.
func (a *Adapter) change(ctx context.Context, what string, f func(old []byte) ([]byte, error)) error {
	for {
		old, version, err := a.o.Docs.Doc(ctx, a.docName(what))
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		data, err := f(old)
		if err != nil || data == nil {
			return err
		}
		err = a.o.Docs.PutDoc(ctx, a.docName(what), version, data)
		if !errors.Is(err, session.ErrStale) {
			return err
		}
	}
}

// A recent remembers the newest things told of it, by id. Two generations of
// recentMost bound it. Safe from any goroutine; the zero value is ready.
type recent[V any] struct {
	mu       sync.Mutex
	new, old map[string]V
}

const recentMost = 4096

func (r *recent[V]) put(id string, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.new) >= recentMost || r.new == nil {
		r.old, r.new = r.new, make(map[string]V)
	}
	r.new[id] = v
}

func (r *recent[V]) get(id string) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.new[id]; ok {
		return v, true
	}
	v, ok := r.old[id]
	return v, ok
}

func (r *recent[V]) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.new, id)
	delete(r.old, id)
}

// A seenMessage is one that was taken: what it said, who wrote it and its first
// words.
type seenMessage struct {
	hash   string
	author session.Person
	first  string
}

// firstWords is how much of a message a list shows, in UTF-16 units.
const firstWords = 40

// marks remember for a while what calls taught. Losing them costs those calls.
type marks struct {
	mu sync.Mutex
	m  map[string]time.Time // until
}

func (k *marks) set(id string, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.m == nil {
		k.m = make(map[string]time.Time)
	}
	if len(k.m) > 1000 {
		for id, until := range k.m {
			if now.After(until) {
				delete(k.m, id)
			}
		}
	}
	k.m[id] = now.Add(d)
}

func (k *marks) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	until, ok := k.m[id]
	return ok && time.Now().Before(until)
}

func (k *marks) clear(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.m, id)
}

// firsts remember when a send of a part was first lost.
type firsts struct {
	mu sync.Mutex
	m  map[string]time.Time
}

// note remembers t for a part unless an earlier time is known, and gives the
// earliest.
func (f *firsts) note(id string, t time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.m[id]; ok && old.Before(t) {
		return old
	}
	if f.m == nil {
		f.m = make(map[string]time.Time)
	}
	if len(f.m) > 1000 {
		for id, t := range f.m {
			if time.Since(t) > time.Hour {
				delete(f.m, id)
			}
		}
	}
	f.m[id] = t
	return t
}

func (f *firsts) get(id string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.m[id]
}

func (f *firsts) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.m, id)
}
