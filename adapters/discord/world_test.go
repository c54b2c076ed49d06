package discord

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"coxswain/discordtest"
	"coxswain/session"
)

// The library cannot be made to let go of a lock it waits for itself: those
// goroutines are what Status.Leaked counts (D23). All others must end.
func TestMain(m *testing.M) {
	// The library sleeps a second whenever it closes: tests wait side by side, the
	// 100 bots of the soak among them.
	_ = flag.Set("test.parallel", "128")
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/bwmarrin/discordgo.(*Session).CloseWithCode"))
}

const (
	ann    = "7001000000000000001"
	bob    = "7002000000000000002"
	dm     = "8001000000000000001"
	room   = "8002000000000000002" // a text channel
	topic  = "8003000000000000003" // a thread in it
	opened = "8004000000000000004" // a thread the bot opened
	forum  = "8005000000000000005"
	post   = "8006000000000000006" // a thread of the forum
	guild  = "9001000000000000001"
	me     = "<@" + discordtest.BotID + ">"
)

// patience is how long a test waits for what must come; never how long it
// takes.
const patience = 20 * time.Second

// A world is an adapter, the fake Discord and what it is plugged into.
type world struct {
	t    testing.TB
	api  *discordtest.Server
	door *door
	docs *docs
	save *inbox
	logs *logs
	o    Options
	a    *Adapter
	ctx  context.Context
	stop func() // ends Run and waits
	err  error  // of Run, after stop
}

func newWorld(t testing.TB, o Options) *world {
	if p, ok := t.(interface{ Parallel() }); ok {
		p.Parallel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &world{t: t, api: discordtest.New(), door: newDoor(), docs: &docs{}, save: &inbox{}, logs: &logs{}, ctx: ctx}
	w.api.AddUser(discordtest.User{ID: ann, Username: "ann", GlobalName: "Ann Lee"})
	w.api.AddUser(discordtest.User{ID: bob, Username: "bob"})
	w.api.AddChannel(discordtest.Channel{ID: dm, Type: discordtest.TypeDM})
	w.api.AddChannel(discordtest.Channel{ID: room, Guild: guild})
	w.api.AddChannel(discordtest.Channel{ID: topic, Guild: guild, Type: discordtest.TypeThread, Parent: room, Owner: ann})
	w.api.AddChannel(discordtest.Channel{ID: opened, Guild: guild, Type: discordtest.TypeThread, Parent: room, Owner: discordtest.BotID})
	w.api.AddChannel(discordtest.Channel{ID: forum, Guild: guild, Type: discordtest.TypeForum})
	w.api.AddChannel(discordtest.Channel{ID: post, Guild: guild, Type: discordtest.TypeThread, Parent: forum, Owner: ann, Hidden: true})
	url, stop := w.api.Start()
	t.Cleanup(stop)
	o.Token = func() string { return discordtest.Token }
	o.APIURL, o.Door, o.Docs, o.Save = url, w.door, w.docs, w.save.save
	o.RequireMention = true
	o.Log = slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.o = o
	w.fresh()
	return w
}

// fresh makes a new adapter on the same store: a restart.
func (w *world) fresh() {
	w.t.Helper()
	a, err := New(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	a.timing.least, a.timing.most, a.timing.retry = 5*time.Millisecond, 50*time.Millisecond, 5*time.Millisecond
	a.timing.flush, a.timing.grace = 20*time.Millisecond, time.Minute
	w.t.Cleanup(func() { a.files.CloseIdleConnections() })
	w.a = a
}

// play runs f with a running adapter. The client must have given the server
// nothing to complain of.
func play(t testing.TB, o Options, f func(w *world)) {
	t.Helper()
	w := newWorld(t, o)
	w.run()
	w.connected()
	f(w)
	w.end()
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	a := w.a
	go func() {
		defer close(done)
		w.err = a.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-done
	}
}

func (w *world) end() {
	w.t.Helper()
	w.stop()
	if w.err != nil {
		w.t.Errorf("Run: %v", w.err)
	}
	if err := w.a.Close(w.ctx); err != nil {
		w.t.Errorf("Close: %v", err)
	}
	if p := w.api.Problems(); len(p) > 0 {
		w.t.Errorf("Discord would have forgiven: %q", p)
	}
}

func (w *world) connected() {
	w.t.Helper()
	w.until("connected", func() bool { return w.a.Status().Connected })
}

// until waits for something the server or the adapter does. The server tells of
// its changes; the rest is looked at now and then.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("%s: never; status %+v\n%s", what, w.a.Status(), w.logs)
		}
	}
}

// next gives the next message the door takes.
func (w *world) next() session.Message {
	w.t.Helper()
	select {
	case m := <-w.door.took:
		return m
	case <-w.ctx.Done():
		w.t.Fatalf("the door took nothing; status %+v\n%s", w.a.Status(), w.logs)
		panic("unreachable")
	}
}

// nothing checks that nothing more has come to the door: a private text is the
// next.
func (w *world) nothing() {
	w.t.Helper()
	w.api.Say(dm, ann, "barrier")
	if m := w.next(); m.Text != "barrier" {
		w.t.Errorf("door took %+v; want nothing", m)
	}
}

// once checks that nothing came to the door a second time: files would be
// loaded twice.
func (w *world) once() {
	w.t.Helper()
	w.door.mu.Lock()
	defer w.door.mu.Unlock()
	for dedupe, n := range w.door.seen {
		if n > 1 {
			w.t.Errorf("%s came %d times", dedupe, n)
		}
	}
}

func (w *world) part(chat, md string) session.Part {
	w.t.Helper()
	key := session.Key{Platform: Name, Chat: session.ChatID(chat)}
	list := w.a.Parts(session.Outgoing{Key: key, Kind: session.PartFinal, Markdown: md})
	if len(list) != 1 {
		w.t.Fatalf("%d parts; want 1", len(list))
	}
	return session.Part{PartNew: session.PartNew{ID: "p1", Kind: session.PartFinal, Turn: 1, Data: list[0]}, Key: key,
		State: session.PartSending, Attempt: 1, Since: time.Now()}
}

// A door records what it takes, and takes each event once, as the store does.
type door struct {
	mu   sync.Mutex
	seen map[string]int
	msgs map[string]session.Message // as given last, by dedupe id
	took chan session.Message
	fail func(m session.Message) error
}

func newDoor() *door {
	return &door{seen: map[string]int{}, msgs: map[string]session.Message{}, took: make(chan session.Message, 1000)}
}

func (d *door) Deliver(_ context.Context, m session.Message) error {
	d.mu.Lock()
	fail := d.fail
	d.mu.Unlock()
	if fail != nil {
		if err := fail(m); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.msgs[m.Dedupe] = m
	if d.seen[m.Dedupe]++; d.seen[m.Dedupe] == 1 {
		d.took <- m
	}
	return nil
}

func (d *door) failing(f func(m session.Message) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = f
}

func (d *door) last(dedupe string) session.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.msgs[dedupe]
}

// docs are documents in memory.
type docs struct {
	mu   sync.Mutex
	data map[string][]byte
	ver  map[string]int64
}

func (d *docs) Doc(_ context.Context, name string) ([]byte, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.data[name]), d.ver[name], nil
}

func (d *docs) PutDoc(_ context.Context, name string, version int64, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
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

// put makes a document what it was: a process that ended before it wrote.
func (d *docs) put(name, data string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = "discord:" + discordtest.BotID + ":" + name
	if d.ver[name] > 0 {
		d.data[name] = []byte(data)
	}
}

func (d *docs) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.data, "discord:"+discordtest.BotID+":"+name)
}

func (d *docs) get(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.data["discord:"+discordtest.BotID+":"+name])
}

// An inbox keeps saved files.
type inbox struct {
	before func(context.Context) // of every save; set while nothing is saved
	mu     sync.Mutex
	files  map[string]string
}

func (b *inbox) save(ctx context.Context, _ session.Key, name string, r io.Reader) (string, int64, error) {
	if b.before != nil {
		b.before(ctx)
	}
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

func outcome(t testing.TB, err error) *session.SendError {
	t.Helper()
	e, ok := errors.AsType[*session.SendError](err)
	if !ok {
		t.Fatalf("error is %v; want a *session.SendError", err)
	}
	return e
}

func texts(list []discordtest.Message) string {
	var out []string
	for _, m := range list {
		out = append(out, m.Content)
	}
	return strings.Join(out, " | ")
}

func keyOf(chat, thread string) session.Key {
	return session.Key{Platform: Name, Chat: session.ChatID(chat), Thread: session.ThreadID(thread)}
}

var errDown = fmt.Errorf("the store is away")
