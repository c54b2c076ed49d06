package loop

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"coxswain/session"
)

// A Loop runs the turns of all sessions; it implements session.Agent. Its
// methods may be called from any goroutine.
type Loop struct {
	Options
	std   *profile
	named map[string]*profile

	mu    sync.Mutex // guards the cache, not what is in an entry
	cache map[session.Key]*list.Element
	order *list.List // of *cached, newest use first
	size  int64
}

// cached is a session's transcript between turns.
type cached struct {
	key  session.Key
	tr   *transcript
	size int64
}

var _ session.Agent = (*Loop)(nil)

// New makes a loop. It fails when a tool's schema does not encode.
func New(o Options) (*Loop, error) {
	specs := o.Tools.Specs()
	std, err := o.ready(specs)
	if err != nil {
		return nil, err
	}
	l := &Loop{Options: o, std: std, named: map[string]*profile{}, cache: map[session.Key]*list.Element{}, order: list.New()}
	for name, p := range o.Profiles {
		if l.named[name], err = p.ready(specs); err != nil {
			return nil, fmt.Errorf("profile %s: %w", name, err)
		}
	}
	return l, nil
}

// ModelName is the model that answers in a session, for status.
func (l *Loop) ModelName(key session.Key) string { return l.of(key).Model.Name() }

// take gives the session's transcript to one turn; put gives it back.
func (l *Loop) take(key session.Key) *transcript {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.cache[key]
	if e == nil {
		return &transcript{p: l.of(key), key: key}
	}
	c := e.Value.(*cached)
	l.size -= c.size
	l.order.Remove(e)
	delete(l.cache, key)
	return c.tr
}

func (l *Loop) put(key session.Key, tr *transcript) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.cache[key]; e != nil {
		l.size -= e.Value.(*cached).size
		l.order.Remove(e)
	}
	l.cache[key] = l.order.PushFront(&cached{key: key, tr: tr, size: tr.size})
	l.size += tr.size
	for l.size > l.CacheBytes && l.order.Len() > 1 {
		last := l.order.Back()
		c := last.Value.(*cached)
		l.size -= c.size
		delete(l.cache, c.key)
		l.order.Remove(last)
	}
}

// Forget implements session.Agent.
func (l *Loop) Forget(key session.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.cache[key]; e != nil {
		l.size -= e.Value.(*cached).size
		l.order.Remove(e)
		delete(l.cache, key)
	}
}

// StopJobs implements session.Agent.
func (l *Loop) StopJobs(_ context.Context, key session.Key) { l.Tools.KillAll(key) }

// KillJob implements session.Agent.
func (l *Loop) KillJob(_ context.Context, key session.Key, id string) { l.Tools.Kill(key, id) }
