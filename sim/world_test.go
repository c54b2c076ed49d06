package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A world is one simulated machine: what outlives the process (the store, the
// chat network, the model's provider, effects of tools) and the process.
type world struct {
	t     testing.TB
	began time.Time
	conf  config

	store *storetest.Model
	plat  *platform
	model *model
	box   *toolbox
	tools loop.Toolbox                      // box, unless a mutation breaks it
	wrap  func(session.Store) session.Store // puts a broken store between
	hook  storetest.Hook                    // puts faults between

	life   int // of the process, from 1
	faulty *storetest.Faulty
	hub    *session.Hub // of the running process
	out    *outbox.Outbox
	run    context.CancelFunc // asks the process to stop
	dead   chan struct{}      // closed when the process is dead
	gone   chan struct{}      // closed when its Run has returned
	wg     sync.WaitGroup     // tools

	missed []session.Message // written while no process ran

	mu    sync.Mutex
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
	cut      int // how long a part may be; 0 = any
	observe  int // messages of the room that do not speak to the bot
}

func defaults() config {
	return config{
		mode: steer.Steer, join: time.Second, yield: 5 * time.Second, skip: true, deletes: true, from: "owner", onEnd: "turn",
		drain: 20 * time.Second, steps: 60, time: time.Hour, ttl: 5 * time.Second,
	}
}

func newWorld(t testing.TB, c config) *world {
	w := &world{t: t, began: time.Now(), conf: c, store: storetest.NewModel(time.Now), texts: map[string]bool{}}
	w.plat = newPlatform(w)
	w.model = &model{w: w, out: map[string]int{}}
	w.box = &toolbox{w: w, effects: map[string]int{}, jobs: map[string]*running{}, ended: map[string]string{}}
	w.tools = w.box
	return w
}

// start starts the process.
func (w *world) start() {
	w.life++
	w.dead, w.gone = make(chan struct{}), make(chan struct{})
	var st session.Store = w.store
	if w.wrap != nil {
		st = w.wrap(st)
	}
	dead := w.dead
	w.faulty = &storetest.Faulty{Store: st, Hook: func(point string, when storetest.When) storetest.Fault {
		select {
		case <-dead:
			return storetest.Crash // a dead process stores nothing
		default:
		}
		if w.hook != nil {
			return w.hook(point, when)
		}
		return storetest.None
	}}
	st = w.faulty
	nonce := fmt.Sprintf("life%d", w.life)
	log := slog.New(slog.DiscardHandler)
	ctx := context.Background()
	w.out = outbox.New(ctx, outbox.Options{Store: st, Nonce: nonce + "/out", HubNonce: nonce, UnknownAfter: 10 * time.Second, Log: log})
	var hub *session.Hub
	l, err := loop.New(loop.Options{
		Profile: loop.Profile{Model: w.model, System: "You help.", Hosted: true}, Tools: w.tools, YieldAfter: w.conf.yield,
		SkipUnstarted: w.conf.skip, Steps: w.conf.steps, Time: w.conf.time, CacheBytes: 1 << 20,
		JobEnded: func(key session.Key, j session.Job) { hub.JobEnded(ctx, key, j) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	hub = session.NewHub(ctx, session.Options{
		Store: st, Agent: l, Outbox: w.out,
		Access: session.NewAccess(st, map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"*"}, Admins: []string{"root"}}}),
		Nonce:  nonce, Mode: func(session.Key) steer.Mode { return w.conf.mode }, JoinWindow: w.conf.join,
		StopWords: []string{"stop", "halt", "cancel"}, SteerFrom: w.conf.from, Together: w.conf.together, DeleteStops: w.conf.deletes,
		Observe:  func(session.Key) int { return w.conf.observe },
		LeaseTTL: w.conf.ttl, JobsOnEnd: w.conf.onEnd, HistoryBytes: 1 << 20, Log: log,
	})
	hub.Register(w.plat)
	w.out.Register(w.plat)
	w.hub = hub
	run, stop := context.WithCancel(ctx)
	w.run = stop
	gone := w.gone
	go func() {
		defer close(gone)
		if err := hub.Run(run, w.conf.drain); err != nil && !w.isDead() {
			w.t.Errorf("hub: %v", err)
		}
	}()
}

func (w *world) isDead() bool {
	select {
	case <-w.dead:
		return true
	default:
		return false
	}
}

// crash kills the process, as SIGKILL would: no more of it is stored or sent.
func (w *world) crash() {
	if w.isDead() {
		return
	}
	close(w.dead)
	w.hub.Kill()
	w.out.Close(0)
	<-w.gone
	w.wg.Wait()
}

// stop asks the process to stop and waits for it.
func (w *world) stop() {
	w.run()
	<-w.gone
	w.out.Close(2 * time.Second)
	if !w.isDead() {
		close(w.dead)
	}
	w.wg.Wait()
}

// restart starts a new process on the same machine.
func (w *world) restart() {
	w.store.Forget()
	w.start()
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
func (w *world) logRequest(n int) {
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
		w.logIn(key, "model%s is asked again", in)
		return
	}
	for _, raw := range req.msgs[same:] {
		m := decodeMsg(raw)
		if m.Role == "assistant" && len(m.Calls) > 0 {
			continue // its own words
		}
		w.logIn(key, "model%s gets %s: %s", in, m.Role, oneLine(showNote(m.Content)))
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
