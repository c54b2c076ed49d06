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
	specs map[string]ToolSpec
	names []string
	tools []byte // wire bytes
	print string // of the head this build and configuration would render

	printTail []byte // how such a head ends, as stored

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
	tools, err := toolBytes(specs)
	if err != nil {
		return nil, err
	}
	l := &Loop{
		Options: o, specs: map[string]ToolSpec{}, tools: tools,
		print: printOf(o.System, tools, o.Model.Name(), o.Hosted),
		cache: map[session.Key]*list.Element{}, order: list.New(),
	}
	l.printTail = fmt.Appendf(nil, `"print":%q}`, l.print)
	for _, s := range specs {
		if _, twice := l.specs[s.Name]; twice {
			return nil, fmt.Errorf("two tools are named %q", s.Name)
		}
		l.specs[s.Name] = s
		l.names = append(l.names, s.Name)
	}
	return l, nil
}

// ModelName is the model that answers, for status.
func (l *Loop) ModelName() string { return l.Model.Name() }

// take gives the session's transcript to one turn; put gives it back.
func (l *Loop) take(key session.Key) *transcript {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.cache[key]
	if e == nil {
		return &transcript{}
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
