package sim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A world is what outlives processes (the store, the chat network, the model's
// provider, effects of tools), and the processes: one, or replicas that share
// the store.
type world struct {
	t     testing.TB
	began time.Time
	conf  config

	store  *storetest.Model
	plat   *platform
	model  *model
	box    *toolbox
	tools  func(loop.Toolbox) loop.Toolbox                                        // what a mutation makes of them
	wrap   func(session.Store) session.Store                                      // puts a broken store between
	hook   storetest.Hook                                                         // puts faults between
	struck func(p *process, point string, when storetest.When, f storetest.Fault) // hears what hook said
	skew   atomic.Int64                                                           // of the store's clock, in ns

	*process            // the running one; of several, the one that hears what comes next
	procs    []*process // in their places
	lives    int        // how many processes there were
	breaks   int        // how often a process was cut off from the store
	bus      *bus       // between replicas; nil: there is one process

	missed []session.Message // written while no process ran

	mu    sync.Mutex
	jumps []time.Time // of the store's clock
	lines []logged
	shows []string
	texts map[string]bool // all that people wrote
}

type line struct {
	at   time.Duration
	text string
}

type logged struct {
	line
	key string // the session's, where that matters for the order
}

// config is what a transcript or a seed sets.
type config struct {
	mode     steer.Mode
	join     time.Duration
	yield    time.Duration
	skip     bool
	together bool
	deletes  bool // stop
	from     string
	onEnd    string
	drain    time.Duration
	steps    int
	time     time.Duration // of a turn
	ttl      time.Duration
	cut      int           // how long a part may be; 0 = any
	observe  int           // messages of the room that do not speak to the bot
	replicas int           // processes at once
	spend    session.Spend // nothing = not limited
}

func defaults() config {
	return config{
		mode: steer.Steer, join: time.Second, yield: 5 * time.Second, skip: true, deletes: true, from: "owner", onEnd: "turn",
		drain: 20 * time.Second, steps: 60, time: time.Hour, ttl: 5 * time.Second, replicas: 1,
	}
}

func newWorld(t testing.TB, c config) *world {
	w := &world{t: t, began: time.Now(), conf: c, texts: map[string]bool{}}
	w.store = storetest.NewModel(func() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) })
	w.plat = newPlatform(w)
	w.model = &model{w: w, out: map[string]int{}, outBy: map[*process]int{}}
	w.box = &toolbox{w: w, effects: map[string]int{}, jobs: map[string]*running{}, ended: map[string]string{}, by: map[*process]int{}}
	w.tools = func(b loop.Toolbox) loop.Toolbox { return b }
	return w
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, logged{line{time.Since(w.began), contract(fmt.Sprintf(format, args...))}, ""})
}

// logIn logs what belongs to a session.
func (w *world) logIn(key session.Key, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, logged{line{time.Since(w.began), contract(fmt.Sprintf(format, args...))}, where(key)})
}

func (w *world) logSent(s sent) {
	var b strings.Builder
	switch s.kind {
	case session.PartFinal:
		b.WriteString("bot answers")
	case session.PartSay, session.PartNotice:
		b.WriteString("bot says")
	case session.PartReply:
		b.WriteString("bot replies")
	}
	b.WriteString(where(s.key))
	if s.reply != "" {
		fmt.Fprintf(&b, " to %s", s.reply)
	}
	if s.repeat {
		b.WriteString(" (possible repeat)")
	}
	fmt.Fprintf(&b, ": %s", oneLine(s.text))
	for _, btn := range s.buttons {
		fmt.Fprintf(&b, " [%s]", btn.Text)
	}
	w.logIn(s.key, "%s", b.String())
}

// logRequest writes what a request adds to the one before it in its session.
func (w *world) logRequest(n int, proc *process) {
	w.model.mu.Lock()
	req := w.model.reqs[n]
	var before []string
	for i := n - 1; i >= 0; i-- {
		if w.model.reqs[i].session == req.session {
			for _, m := range w.model.reqs[i].msgs {
				before = append(before, string(m))
			}
			break
		}
	}
	w.model.mu.Unlock()
	key, err := session.ParseKey(req.session)
	if err != nil {
		w.t.Errorf("request of session %q: %v", req.session, err)
	}
	in := where(key)
	same := 0
	for same < len(before) && same < len(req.msgs) && before[same] == string(req.msgs[same]) {
		same++
	}
	if same == len(req.msgs) && same == len(before) {
		w.logIn(key, "model%s is asked again%s", in, proc.at())
		return
	}
	for _, raw := range req.msgs[same:] {
		m := decodeMsg(raw)
		if m.Role == "assistant" && len(m.Calls) > 0 {
			continue // its own words
		}
		w.logIn(key, "model%s gets %s%s: %s", in, m.Role, proc.at(), oneLine(showNote(m.Content)))
	}
	if req.noTools {
		w.logIn(key, "model%s may use no tools", in)
	}
}

// showNote shortens the lines of a note for reading.
func showNote(s string) string {
	open := strings.Index(s, "[[gateway-note key=")
	end := strings.LastIndex(s, "[[end-gateway-note key=")
	if open < 0 || end < open {
		return s
	}
	inner := s[open:end]
	head, inner, _ := strings.Cut(inner, "\n")
	n := head[strings.Index(head, " n=")+1 : strings.Index(head, " |")]
	return s[:open] + "«" + n + ": " + strings.TrimSpace(inner) + "»"
}

// start starts the process.
func (w *world) start() {
	w.procs = nil
	for place := range w.conf.replicas {
		w.procs = append(w.procs, w.spawn(place))
	}
	w.process = w.procs[0]
}

// restart starts a new process on the same machine.
func (w *world) restart() {
	w.store.Forget()
	w.start()
}

// deliver hands an event to the door as an adapter does: until it is accepted.
func (w *world) deliver(m session.Message) {
	for {
		err := w.hub.Deliver(context.Background(), m)
		if err == nil {
			return
		}
		if w.isDead() {
			return // the platform delivers it again to the next process
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// key of the chat everybody writes in.
var room = session.Key{Platform: "fake", Chat: "room"}
