package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

const (
	ann   = int64(7001)
	bob   = int64(7002)
	group = int64(-1001234567890)
	basic = int64(-4321)
)

// A world is an adapter, the fake API and what it is plugged into.
type world struct {
	t    *testing.T
	api  *telegramtest.Server
	door *door
	docs *docs
	save *inbox
	logs *logs
	a    *Adapter
	ctx  context.Context
	stop func() // ends Run and waits
	err  error  // of Run, after stop
}

// play runs f in a bubble with a running adapter. Unless f has said so, the
// client must have given the server nothing to complain of.
func play(t *testing.T, o Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		w.run()
		f(w)
		w.stop()
		w.close()
		if p := w.api.Problems(); len(p) > 0 {
			t.Errorf("the API would have forgiven: %q", p)
		}
	})
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{t: t, api: telegramtest.New(), door: &door{}, docs: &docs{}, save: &inbox{}, logs: &logs{}, ctx: t.Context()}
	w.api.AddUser(telegramtest.User{ID: ann, FirstName: "Ann", LastName: "Lee"})
	w.api.AddUser(telegramtest.User{ID: bob, FirstName: "Bob"})
	o.Docs = w.docs
	w.remake(o)
	return w
}

// remake makes the adapter, as at the start of a process.
func (w *world) remake(o Options) {
	w.t.Helper()
	o.Token = func() string { return telegramtest.Token }
	o.Door, o.Save = w.door, w.save.save
	if o.HTTPClient == nil {
		o.HTTPClient = w.api.Client()
	}
	o.Log = slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if w.a, err = New(o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run() {
	w.start()
	synctest.Wait()
}

// start begins Run, also outside a bubble.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.err = w.a.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-done
	}
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	if err := w.a.Close(ctx); err != nil {
		w.t.Errorf("Close: %v", err)
	}
}

// settle lets what is under way finish, and time pass.
func (w *world) settle(d time.Duration) {
	w.t.Helper()
	time.Sleep(d) // fake time
	synctest.Wait()
}

// got gives what the door has taken since the last got.
func (w *world) got() []session.Message {
	synctest.Wait()
	return w.door.drain()
}

// byID is got in the order of message ids: chats are delivered side by side.
func (w *world) byID() []session.Message {
	ms := w.got()
	slices.SortFunc(ms, func(a, b session.Message) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return ms
}

// one gives the one message the door has taken.
func (w *world) one() session.Message {
	w.t.Helper()
	ms := w.got()
	if len(ms) != 1 {
		w.t.Fatalf("door took %d messages; want 1: %+v", len(ms), ms)
	}
	return ms[0]
}

// golden queues the updates of a file, or those of it whose numbers are given.
func (w *world) golden(name string, only ...int) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		w.t.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	var raws []string
	for i, raw := range list {
		if len(only) == 0 || slices.Contains(only, i) {
			raws = append(raws, string(raw))
		}
	}
	w.api.Update(raws...)
}

func (w *world) send(p session.Part) (session.MessageID, error) { return w.a.Send(w.ctx, p) }

// part makes the one part of a text.
func (w *world) part(chat int64, md string) session.Part {
	w.t.Helper()
	key := session.Key{Platform: Name, Chat: session.ChatID(fmt.Sprint(chat))}
	list := w.a.Parts(session.Outgoing{Key: key, Kind: session.PartFinal, Markdown: md})
	if len(list) != 1 {
		w.t.Fatalf("%d parts; want 1", len(list))
	}
	return session.Part{PartNew: session.PartNew{ID: "p1", Kind: session.PartFinal, Turn: 1, Data: list[0]}, Key: key, State: session.PartSending, Attempt: 1}
}

// A door records what it takes.
type door struct {
	mu    sync.Mutex
	took  []session.Message
	past  []session.Message // all ever taken
	all   int
	full  func(all int)                 // told of every message taken
	fail  func(m session.Message) error // asked before taking
	hold  chan struct{}                 // not nil: taking waits for it
	next  Door                          // not nil: takes it in the end
	enter func()                        // told when one comes
}

func (d *door) Deliver(ctx context.Context, m session.Message) error {
	d.mu.Lock()
	fail, hold, next, enter := d.fail, d.hold, d.next, d.enter
	d.mu.Unlock()
	if enter != nil {
		enter()
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fail != nil {
		if err := fail(m); err != nil {
			return err
		}
	}
	if next != nil {
		if err := next.Deliver(ctx, m); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.took, d.past = append(d.took, m), append(d.past, m)
	d.all++
	if d.full != nil {
		d.full(d.all)
	}
	return nil
}

func (d *door) drain() []session.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.took
	d.took = nil
	return out
}

func (d *door) count() int { return len(d.everything()) }

func (d *door) everything() []session.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.past)
}

func (d *door) set(f func(*door)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// docs are documents in memory.
type docs struct {
	mu   sync.Mutex
	data map[string][]byte
	ver  map[string]int64
	fail error
}

func (d *docs) Doc(_ context.Context, name string) ([]byte, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, 0, d.fail
	}
	return slices.Clone(d.data[name]), d.ver[name], nil
}

func (d *docs) PutDoc(_ context.Context, name string, version int64, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	if d.ver[name] != version {
		return session.ErrStale
	}
	if d.data == nil {
		d.data, d.ver = make(map[string][]byte), make(map[string]int64)
	}
	d.data[name] = slices.Clone(data)
	d.ver[name]++
	return nil
}

func (d *docs) get(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.data[fmt.Sprintf("telegram:%d:%s", telegramtest.BotID, name)])
}

// An inbox keeps saved files.
type inbox struct {
	mu    sync.Mutex
	files map[string]string
}

func (b *inbox) save(_ context.Context, _ session.Key, name string, r io.Reader) (string, int64, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files == nil {
		b.files = make(map[string]string)
	}
	b.files[name] = string(data)
	return "inbox/" + name, int64(len(data)), nil
}

// logs are everything that was logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func outcome(t *testing.T, err error) *session.SendError {
	t.Helper()
	e, ok := errors.AsType[*session.SendError](err)
	if !ok {
		t.Fatalf("error is %v; want a *session.SendError", err)
	}
	return e
}
