package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"coxswain/session"
	"coxswain/steer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeHub is a hub whose conversations the test writes by hand.
type fakeHub struct {
	mu      sync.Mutex
	lanes   map[session.Key]*session.Transcript
	views   map[session.Key]session.View
	got     []session.Message
	asked   []session.Key // of Identify
	read    [][2]int64    // gen and after of each Read
	refuse  bool
	fault   error
	arrived chan session.Message
	deliver func(context.Context, session.Message) error
	slow    chan struct{} // while not nil, readings wait for it
}

func newFakeHub() *fakeHub {
	return &fakeHub{
		lanes: map[session.Key]*session.Transcript{}, views: map[session.Key]session.View{},
		arrived: make(chan session.Message, 256),
	}
}

func (h *fakeHub) Deliver(ctx context.Context, m session.Message) error {
	h.mu.Lock()
	f, fault := h.deliver, h.fault
	h.mu.Unlock()
	if f != nil {
		if err := f(ctx, m); err != nil {
			return err
		}
	}
	if fault != nil {
		return fault
	}
	h.mu.Lock()
	h.got = append(h.got, m)
	h.mu.Unlock()
	h.arrived <- m
	return nil
}

func (h *fakeHub) Identify(_ context.Context, key session.Key, who session.Person, private bool) (session.Principal, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, key)
	if !private || who.ID != "web" {
		return session.Principal{}, false, nil
	}
	return session.Principal{Platform: key.Platform, ID: who.ID}, !h.refuse, h.fault
}

func (h *fakeHub) Read(_ context.Context, _ session.Principal, key session.Key, gen, after int64) (session.Transcript, error) {
	h.mu.Lock()
	slow := h.slow
	h.mu.Unlock()
	if slow != nil {
		<-slow
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read = append(h.read, [2]int64{gen, after})
	l := h.lanes[key]
	if l == nil {
		return session.Transcript{Key: key, Now: time.Now()}, nil
	}
	t := *l
	t.Now = time.Now()
	if gen != t.Gen {
		after = 0
	}
	t.After = after
	t.Rows = nil
	for _, r := range l.Rows {
		if r.Seq > after {
			t.Rows = append(t.Rows, r)
		}
	}
	t.Slot, t.Fates = slices.Clone(l.Slot), slices.Clone(l.Fates)
	t.Status.Messages = int64(len(l.Rows))
	t.Status.Turn = t.Turn
	if v, ok := h.views[key]; ok && t.Turn != 0 {
		t.Status.Phase, t.Status.Step, t.Status.Elapsed = v.Phase.String(), v.Step, time.Since(v.Since).Seconds()
	}
	return t, nil
}

func (h *fakeHub) List(_ context.Context, platform session.PlatformName) ([]session.Listing, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []session.Listing
	for k, l := range h.lanes {
		if k.Platform == platform {
			all = append(all, session.Listing{Key: k, Title: l.Title, Turn: l.Turn, Waiting: len(l.Slot), Touched: l.Now})
		}
	}
	return all, nil
}

func (h *fakeHub) View(key session.Key) (session.View, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.views[key]
	return v, ok
}

// fakeStore keeps documents as a store does.
type fakeStore struct {
	mu      sync.Mutex
	docs    map[string][]byte
	version map[string]int64
	fault   error
	before  func() // called before each write, outside of the lock
	reads   int
	writes  int
}

func newFakeStore() *fakeStore {
	return &fakeStore{docs: map[string][]byte{}, version: map[string]int64{}}
}

func (s *fakeStore) Doc(_ context.Context, name string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return slices.Clone(s.docs[name]), s.version[name], s.fault
}

func (s *fakeStore) PutDoc(_ context.Context, name string, version int64, data []byte) error {
	if s.before != nil {
		s.before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fault != nil:
		return s.fault
	case s.version[name] != version:
		return session.ErrStale
	}
	s.writes++
	s.docs[name], s.version[name] = slices.Clone(data), version+1
	return nil
}

func (s *fakeStore) setFault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// edit changes a conversation.
func (h *fakeHub) edit(key session.Key, f func(*session.Transcript, *session.View)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lanes[key]
	if l == nil {
		l = &session.Transcript{Key: key, Gen: 1, Now: time.Now(), Status: session.Status{Session: key.String(), Mode: "steer", Phase: "idle"}}
		h.lanes[key] = l
	}
	v := h.views[key]
	f(l, &v)
	if v.Turn != 0 {
		v.Key = key
		v.Rev++
		h.views[key] = v
	} else {
		delete(h.views, key)
	}
}

func (h *fakeHub) setDeliver(f func(context.Context, session.Message) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deliver = f
}

func (h *fakeHub) messages() []session.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

func addRow(t *session.Transcript, typ session.RowType, data any) *session.Row {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	t.Rows = append(t.Rows, session.Row{Seq: int64(len(t.Rows)) + 1, Turn: t.Turn, Type: typ, Data: raw, At: time.Now()})
	return &t.Rows[len(t.Rows)-1]
}

func inputOf(ticket int64, id, text string) session.Input {
	return session.Input{Ticket: ticket, From: person, Admin: true, Parts: []session.InputPart{{ID: session.MessageID(id), Text: text}}}
}

func entryFor(ticket int64, id, text string, want steer.Mode, turn int64) session.Entry {
	data, err := json.Marshal(inputOf(0, id, text))
	if err != nil {
		panic(err)
	}
	return session.Entry{Ticket: ticket, Want: want, Turn: turn, Author: person.ID, Msgs: []session.MessageID{session.MessageID(id)}, At: time.Now(), Data: data}
}

func setFate(t *session.Transcript, f session.Fate) {
	f.Changed = time.Now().UnixMilli()
	for i := range t.Fates {
		if t.Fates[i].Ticket == f.Ticket {
			f.At, f.Waited = t.Fates[i].At, t.Fates[i].Waited || f.Waited
			if f.Step == 0 {
				f.Step = t.Fates[i].Step
			}
			t.Fates[i] = f
			return
		}
	}
	f.At = f.Changed
	t.Fates = append([]session.Fate{f}, t.Fates...)
}

var testKey = session.Key{Platform: Name, Chat: "chat-one"}

const testToken = "0123456789abcdef0123456789abcdef-token"

func newTestAdapter(t *testing.T, hub Hub, token string) *Adapter {
	t.Helper()
	return newStoredAdapter(t, hub, nil, token)
}

func newStoredAdapter(t *testing.T, hub Hub, st Store, token string) *Adapter {
	t.Helper()
	a, err := New(Options{
		Listen: "127.0.0.1:0", Token: token, Hub: hub, Store: st, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Commands: []Command{{Name: "status", Help: "what the session is doing"}, {Name: "steer", Args: "TEXT", Help: "send TEXT into the running task"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask makes a request as a browser on the page would.
func ask(a *Adapter, method, path, body string, head ...string) *httptest.ResponseRecorder {
	// A stream that should have been refused must end the test, not hang it.
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	ctx, stop := context.WithTimeout(r.Context(), 12*time.Second)
	defer stop()
	r = r.WithContext(ctx)
	r.Host = "127.0.0.1:8080"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1:8080")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(head); i += 2 {
		switch {
		case head[i] == "Host":
			r.Host = head[i+1]
		case head[i+1] == "":
			r.Header.Del(head[i])
		default:
			r.Header.Set(head[i], head[i+1])
		}
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	return w
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return v
}
