package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// model is a Model that answers by a rule and keeps what it was asked.
type model struct {
	name string
	rule func(n int, r Request, on func(Delta)) (Reply, error)
	// refuse: no request is taken.
	refuse bool

	mu   sync.Mutex
	reqs []Request
}

func (m *model) Name() string { return m.name }

func (m *model) Encode(w Wire) (json.RawMessage, error) { return json.Marshal(w) }

func (m *model) Stream(_ context.Context, r Request, on func(Delta), accepted func()) (Reply, error) {
	m.mu.Lock()
	m.reqs = append(m.reqs, r)
	n := len(m.reqs)
	m.mu.Unlock()
	if !m.refuse {
		accepted()
	}
	return m.rule(n, r, on)
}

// keyIn is the note key the request's system prompt gave.
func keyIn(r Request) string {
	_, after, _ := strings.Cut(string(r.System), "[[end-gateway-note key=")
	return after[:len("000000-000000-000000-000000")]
}

// wires decodes messages that model encoded.
func wires(msgs []json.RawMessage) []Wire {
	ws := make([]Wire, len(msgs))
	for i, raw := range msgs {
		if err := json.Unmarshal(raw, &ws[i]); err != nil {
			panic(err)
		}
	}
	return ws
}

// toolbox runs each call at once by a rule.
type toolbox struct {
	specs []ToolSpec
	rule  func(c ToolCall) ToolResult

	mu  sync.Mutex
	ran []string // arguments
}

func (b *toolbox) Specs() []ToolSpec { return b.specs }

func (b *toolbox) Start(_ context.Context, c ToolCall) Running {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran = append(b.ran, c.Call.Args)
	return over(b.rule(c))
}

func (*toolbox) Adopt(session.Key, string, int64, Running, func(ToolResult, bool)) bool { return false }
func (*toolbox) Kill(session.Key, string)                                               {}
func (*toolbox) KillAll(session.Key)                                                    {}

// over is a call that has ended.
type over ToolResult

func (over) Done() <-chan struct{} { c := make(chan struct{}); close(c); return c }
func (o over) Result() ToolResult  { return ToolResult(o) }
func (over) Tail() string          { return "" }

var look = ToolSpec{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`), Pure: true}

func newLoop(t testing.TB, m Model, b Toolbox, change func(*Options)) *Loop {
	t.Helper()
	o := Options{Profile: Profile{Model: m, System: "You help.", Hosted: true}, Tools: b, Steps: 60, Time: time.Hour, CacheBytes: 1 << 20}
	if change != nil {
		change(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A stage is one session over the model store, from the door to the outbox.
type stage struct {
	t     *testing.T
	store *storetest.Model
	hub   *session.Hub
	mu    sync.Mutex
	views []session.View
}

var room = session.Key{Platform: "fake", Chat: "ann"}

func play(t *testing.T, m *model, b *toolbox, change func(*Options), f func(s *stage)) {
	t.Helper()
	playSpending(t, m, b, change, session.Spend{}, f)
}

// playSpending is play where something may be used up.
func playSpending(t *testing.T, m *model, b *toolbox, change func(*Options), spend session.Spend, f func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, store: storetest.NewModel(time.Now)}
		s.hub = session.NewHub(t.Context(), session.Options{
			Store: s.store, Agent: newLoop(t, m, b, change), Outbox: quiet{}, Nonce: "life1",
			Access: session.NewAccess(s.store, map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"*"}}}),
			Mode:   func(session.Key) steer.Mode { return steer.Steer }, LeaseTTL: 5 * time.Second, HistoryBytes: 1 << 20,
			Spend: func(session.Key) session.Spend { return spend },
			Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		s.hub.Register(s)
		run, stop := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if err := s.hub.Run(run, time.Second); err != nil {
				t.Errorf("hub: %v", err)
			}
		}()
		defer func() { stop(); <-gone }()
		f(s)
	})
}

// says delivers a message and waits until nothing moves.
func (s *stage) says(text string) {
	s.t.Helper()
	id := fmt.Sprintf("m%d", time.Now().UnixNano())
	err := s.hub.Deliver(s.t.Context(), session.Message{
		Key: room, ID: session.MessageID(id), From: session.Person{ID: "ann"}, Private: true, Addressed: true,
		Dedupe: "m:" + id, Text: text,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

// rows are the stored rows of the session.
func (s *stage) rows() []session.Row {
	s.t.Helper()
	rows, err := s.store.Rows(s.t.Context(), room, 1, 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

// end is the row that closed the newest turn.
func (s *stage) end() session.AssistantRow {
	s.t.Helper()
	rows := s.rows()
	return session.DecodeAssistant(rows[len(rows)-1])
}

// everything is all that is stored and shown but the head, as one text.
func (s *stage) everything() string {
	var b strings.Builder
	for _, r := range s.rows() {
		if r.Type != session.RowHead {
			b.Write(r.Data)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		data, err := json.Marshal(v)
		if err != nil {
			s.t.Fatal(err)
		}
		b.Write(data)
	}
	return b.String()
}

func (s *stage) Name() session.PlatformName        { return "fake" }
func (s *stage) FileMost(session.Key) int64        { return 4242 }
func (s *stage) Parts(o session.Outgoing) [][]byte { return [][]byte{[]byte(o.Markdown)} }
func (s *stage) Send(context.Context, session.Part) (session.MessageID, error) {
	panic("the outbox sends")
}
func (s *stage) Sign(context.Context, session.Key, session.Fate) error { return nil }

func (s *stage) Show(v session.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views = append(s.views, v)
}

type quiet struct{}

func (quiet) Room(session.Key) bool            { return true }
func (quiet) Return(session.Key)               {}
func (quiet) Nudge(session.Key, *session.Part) {}
func (quiet) Sign(session.Key, session.Fate)   {}

func (quiet) Forget(session.Key) {}
