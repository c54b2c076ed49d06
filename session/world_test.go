package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A world is one hub over the model store, with an agent that does nothing
// until it is told to end.
type world struct {
	t      *testing.T
	store  *storetest.Model
	mu     sync.Mutex
	faults storetest.Hook // of what the hub asks of the store; nil = none
	access *session.Access
	hub    *session.Hub
	agent  *agent
	other  *agent // of the second process (playTwo)
	out    *signs
	kills  bool // the second process is killed
	n      int  // messages written
}

const lobby, den = session.ChatID("lobby"), session.ChatID("den")

// set is what a test changes of the set-up.
type set struct {
	policy map[session.PlatformName]session.Policy
	mode   steer.Mode
	notify session.Notify
	// What chats see of calls, and a platform instead of one that shows nothing.
	progress session.Progress
	shows    session.Platform
	views    *views // of all platforms; nil: what is shown is forgotten

	observe int                               // messages of the chat
	wrap    func(session.Store) session.Store // between the hub and the store; nil = nothing

	together bool
	deletes  bool          // DeleteStops
	join     time.Duration // JoinWindow
	hook     storetest.Hook

	running, chat int           // limits.running and limits.running_chat
	takes         time.Duration // what a turn takes; 0: until it is told to end
}

// everyone lets everybody talk; root is an admin.
var everyone = map[session.PlatformName]session.Policy{
	"fake": {AllowUsers: []string{"*"}, Admins: []string{"root"}, Pairing: session.PairingOff},
}

// play runs f with a hub in a bubble.
func play(t *testing.T, s set, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if s.policy == nil {
			s.policy = everyone
		}
		w := &world{t: t, store: storetest.NewModel(time.Now), out: &signs{}}
		w.agent = &agent{end: make(chan session.Outcome), takes: s.takes}
		inner := session.Store(w.store)
		if s.wrap != nil {
			inner = s.wrap(inner)
		}
		w.access = session.NewAccess(inner, s.policy)
		st := &storetest.Faulty{Store: inner, Hook: func(point string, when storetest.When) storetest.Fault {
			w.mu.Lock()
			hook := w.faults
			w.mu.Unlock()
			if s.hook != nil {
				hook = s.hook
			}
			if hook == nil {
				return storetest.None
			}
			return hook(point, when) // it may call the hub
		}}
		w.hub = session.NewHub(t.Context(), session.Options{
			Store: st, Agent: w.agent, Outbox: w.out, Access: w.access, Nonce: "life1",
			Mode: func(session.Key) steer.Mode { return s.mode }, Notify: func(session.Key) session.Notify { return s.notify },
			Progress: func(session.Key) session.Progress { return s.progress }, StopWords: []string{"stop", "halt"}, SteerFrom: "owner", Together: s.together, DeleteStops: s.deletes, JoinWindow: s.join,
			Observe:  func(session.Key) int { return s.observe },
			LeaseTTL: 5 * time.Second, JobsOnEnd: "turn", HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler), Running: s.running, RunningChat: s.chat,
		})
		for name := range s.policy {
			if s.views != nil {
				w.hub.Register(showing{platform(name), s.views})
				continue
			}
			w.hub.Register(platform(name))
		}
		if s.shows != nil {
			w.hub.Register(s.shows)
		}
		run, stop := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if err := w.hub.Run(run, time.Second); err != nil {
				t.Errorf("hub: %v", err)
			}
		}()
		defer func() { stop(); <-gone }()
		f(w)
	})
}

// key is the session of a chat.
func key(chat session.ChatID) session.Key { return session.Key{Platform: "fake", Chat: chat} }

// says is a message of a person: in a private chat if the chat is theirs.
func (w *world) says(who session.UserID, chat session.ChatID, text string) session.Message {
	w.n++
	return session.Message{
		Key: key(chat), ID: session.MessageID(fmt.Sprintf("m%d", w.n)), From: session.Person{ID: who, Name: "Name of " + string(who)},
		Private: string(chat) == string(who), Addressed: true, Dedupe: fmt.Sprintf("m:%s:%d", chat, w.n), Text: text,
		Sent: time.Now(), Received: time.Now(),
	}
}

// deliver hands m to the door and waits until nothing moves.
func (w *world) deliver(m session.Message) session.Message {
	w.t.Helper()
	if err := w.hub.Deliver(w.t.Context(), m); err != nil {
		w.t.Fatalf("deliver %q: %v", m.Text, err)
	}
	synctest.Wait()
	return m
}

// press presses a button.
func (w *world) press(who session.UserID, chat session.ChatID, button string) {
	w.t.Helper()
	m := w.says(who, chat, "")
	m.Kind, m.Button, m.Dedupe = session.KindPress, button, "i:"+m.Dedupe
	w.deliver(m)
}

// lane is the stored state.
func (w *world) lane(chat session.ChatID) session.Lane {
	w.t.Helper()
	l, err := w.store.Load(w.t.Context(), key(chat))
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// entry is the one entry that waits in a chat.
func (w *world) entry(chat session.ChatID) session.Entry {
	w.t.Helper()
	l := w.lane(chat)
	if len(l.Slot) != 1 {
		w.t.Fatalf("got %d entries in the slot; want 1", len(l.Slot))
	}
	return l.Slot[0]
}

// sent takes what waits in a chat's outbox and says it was sent.
func (w *world) sent(chat session.ChatID) []session.Outgoing {
	w.t.Helper()
	return w.sentOn(key(chat))
}

func (w *world) sentOn(k session.Key) []session.Outgoing {
	w.t.Helper()
	var all []session.Outgoing
	for {
		p, ok, _, err := w.store.OutTake(w.t.Context(), k, "life1", time.Hour)
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return all
		}
		var o session.Outgoing
		if err := json.Unmarshal(p.Data, &o); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, o)
		if err := w.store.OutDone(w.t.Context(), k, "life1", session.PartDone{ID: p.ID, State: session.PartSent}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// said is the one text that was sent to a chat since last asked; "" for none.
func (w *world) said(chat session.ChatID) string {
	w.t.Helper()
	all := w.sent(chat)
	if len(all) > 1 {
		w.t.Fatalf("got %d messages sent; want at most 1: %+v", len(all), all)
	}
	if len(all) == 0 {
		return ""
	}
	return all[0].Markdown
}

// wantSaid checks that exactly one text was sent and what is in it; "" for
// nothing at all.
func (w *world) wantSaid(chat session.ChatID, part string) {
	w.t.Helper()
	got := w.said(chat)
	if part == "" && got != "" || !strings.Contains(got, part) {
		w.t.Errorf("sent %q; want %q in it", got, part)
	}
}

// inputs are the texts the newest turn began with.
func (w *world) inputs(chat session.ChatID) []string {
	w.t.Helper()
	l := w.lane(chat)
	rows, err := w.store.Rows(w.t.Context(), key(chat), l.Gen, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var texts []string
	for _, r := range rows {
		if r.Type == session.RowUser && r.Turn == l.Turns {
			for _, in := range session.DecodeUser(r).Inputs {
				texts = append(texts, in.Text())
			}
		}
	}
	return texts
}

// platform sends nothing: parts stay in the store's outbox.
type platform session.PlatformName

func (p platform) Name() session.PlatformName { return session.PlatformName(p) }

func (platform) Parts(o session.Outgoing) [][]byte {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return [][]byte{data}
}

func (platform) Send(context.Context, session.Part) (session.MessageID, error) {
	panic("the outbox sends")
}
func (platform) Show(session.View)                                     {}
func (platform) Sign(context.Context, session.Key, session.Fate) error { return nil }

// showing is a platform that remembers what was shown.
type showing struct {
	platform
	views *views
}

func (s showing) Show(v session.View) { s.views.add(s.Name(), v) }

type views struct {
	mu  sync.Mutex
	all []session.View
	bad []string
}

func (s *views) add(on session.PlatformName, v session.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, v)
	if v.Key.Platform != on || v.Key.Line != 0 {
		s.bad = append(s.bad, fmt.Sprintf("%v shown on %s", v.Key, on))
	}
}

// last is the newest view of a chat.
func (s *views) last(chat session.Key) (v session.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.all {
		if o.Key == chat {
			v = o
		}
	}
	return v
}

// signs remembers the newest state shown of each message.
type signs struct {
	mu   sync.Mutex
	last map[session.MessageID]session.FateState
	full bool // the platform's budget is spent
	// What was set aside for sends, and what came back.
	rooms, returned int
}

func (s *signs) Room(session.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full {
		s.rooms++
	}
	return !s.full
}

func (s *signs) Return(session.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned++
}

func (s *signs) Nudge(session.Key, *session.Part) {}

func (s *signs) Sign(_ session.Key, f session.Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[session.MessageID]session.FateState{}
	}
	for _, m := range f.Msgs {
		s.last[m] = f.State
	}
}

func (s *signs) of(m session.Message) session.FateState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[m.ID]
}

// agent holds every turn open until it is cancelled or told to end.
type agent struct {
	end   chan session.Outcome
	stops atomic.Int32 // times its jobs were ended
	turn  atomic.Pointer[session.Turn]
	// killed is the job that was ended last.
	killed  atomic.Pointer[string]
	asked   atomic.Int32          // questions beside turns
	slow    time.Duration         // what one takes
	lingers time.Duration         // and what it takes to end
	cut     atomic.Int32          // of them: those that were ended
	fell    atomic.Pointer[error] // why the last turn ended by none of its own

	takes time.Duration // what a turn takes; 0: until it is told to end
	mu    sync.Mutex
	now   int // running
	most  int // at once
	began []session.Key
	times []time.Time // of began
}

func (*agent) Head(_ context.Context, _ session.Key, cur []byte) ([]byte, error) {
	if cur == nil {
		return []byte("{}"), nil
	}
	return nil, nil
}

func (a *agent) Run(ctx context.Context, t *session.Turn) session.Outcome {
	a.turn.Store(t)
	defer a.runs(t.Key())()
	var over <-chan time.Time
	if a.takes > 0 {
		over = time.After(a.takes)
	}
	for {
		select {
		case out := <-a.end:
			return out
		case <-over:
			return session.Outcome{End: session.EndAnswered, Text: "done"}
		case <-t.Bell():
			if t.Parking() {
				return session.Outcome{Parked: true}
			}
		case <-ctx.Done():
			switch err := context.Cause(ctx); err {
			case session.ErrStopped:
				return session.Outcome{End: session.EndStopped}
			case session.ErrReplaced:
				return session.Outcome{End: session.EndReplaced}
			case session.ErrParked:
				return session.Outcome{Parked: true}
			default:
				a.fell.Store(&err)
				return session.Outcome{Err: err}
			}
		}
	}
}

// runs notes that a turn runs, until what it gives is called.
func (a *agent) runs(k session.Key) (over func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.times = append(a.began, k), append(a.times, time.Now())
	a.now++
	a.most = max(a.most, a.now)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.now--
	}
}

// order is which sessions have begun turns since it was last asked.
func (a *agent) order() []session.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	order := a.began
	a.began, a.times = nil, nil
	return order
}

func (a *agent) Aside(ctx context.Context, _ session.Key, _ []session.Row, _ string, _ session.Input, _ session.Payer) (string, error) {
	a.asked.Add(1)
	if a.slow > 0 {
		select {
		case <-time.After(a.slow):
		case <-ctx.Done():
			a.cut.Add(1)
			time.Sleep(a.lingers)
			return "", ctx.Err()
		}
	}
	return "aside", nil
}
func (a *agent) Keep(context.Context, session.Key, *session.Input) {}
func (a *agent) StopJobs(context.Context, session.Key)             { a.stops.Add(1) }
func (a *agent) KillJob(_ context.Context, _ session.Key, id string) {
	a.killed.Store(&id)
}
func (*agent) Forget(session.Key) {}

// finish ends the running turn with an answer.
func (w *world) finish(text string) {
	w.agent.end <- session.Outcome{End: session.EndAnswered, Text: text}
	synctest.Wait()
}

func (*signs) Forget(session.Key) {}
