//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"coxswain/adapters/web"
	"coxswain/session"
	"coxswain/store/redis/redistest"
)

var (
	soakTurns    = flag.Int("soak", 1000, "how many turns TestSoak runs, on each store")
	soakSessions = flag.Int("soaksessions", 0, "over how many sessions TestSoak runs its turns; 0: one for each hundred")
)

// TestSoak runs many turns over many sessions, one in eight of them with a tool
// call, and looks at rest between them: what a turn leaves in memory, goroutines
// and open files is nothing (issue 4, leaks). `make soak` is the long form.
//
// The whole gateway runs in this process, beside a model that keeps nothing, so
// that a collection can be asked for: of a few thousand turns resident memory
// says nothing, live memory does.
func TestSoak(t *testing.T) {
	for _, kind := range []string{"sqlite", "redis"} {
		t.Run(kind, func(t *testing.T) {
			// The caches are full before the first third is over: 64 MiB at a million.
			s := newSoak(t, kind, cmp.Or(*soakSessions, *soakTurns/100), min(64, max(1, *soakTurns/15_000)), soakModel)
			for range soakWindows {
				s.window(*soakTurns / soakWindows)
			}
			s.judge()
		})
	}
}

// soakWindows is how often a soak is looked at.
const soakWindows = 20

// A soak is a gateway at work and what was seen of it.
type soak struct {
	t        testing.TB
	redis    *redistest.Server // nil with SQLite
	parts    *parts
	sessions int
	size     func() (stored, log int64) // bytes of the store
	seen     []soaked
	began    []int           // by session: its messages so far
	ends     []chan struct{} // by session: a token for each answer that was sent
	next     [soakLanes]int  // by lane: its turns so far
	ran      int
	on       func(what string, key session.Key) // not nil: hears of accepts and of drains that moved a steer
}

// soaked is what is seen at rest.
type soaked struct {
	turns      int
	rate       float64
	rss, heap  int64 // bytes; heap is what lives after a collection
	goroutines int64
	files      int64
	store, log int64 // bytes: the database file or the server's memory, and its log
}

// soakStore says when answers were sent.
type soakStore struct {
	session.Store
	s *soak
}

func (w soakStore) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	a, err := w.Store.Accept(ctx, r)
	if err == nil && w.s.on != nil {
		w.s.on("accept", r.Key)
	}
	return a, err
}

func (w soakStore) Commit(ctx context.Context, l session.Lease, r session.Commit) (session.Committed, error) {
	c, err := w.Store.Commit(ctx, l, r)
	if err == nil && len(c.Steers) > 0 && w.s.on != nil {
		w.s.on("drain", l.Key)
	}
	return c, err
}

func (w soakStore) OutDone(ctx context.Context, k session.Key, nonce string, d session.PartDone) error {
	err := w.Store.OutDone(ctx, k, nonce, d)
	if n, bad := strconv.Atoi(string(k.Chat)); err == nil && bad == nil {
		w.s.ends[n] <- struct{}{}
	}
	return err
}

// Unwrap lets the hub find what the store can besides.
func (w soakStore) Unwrap() session.Store { return w.Store }

// soakModel answers at once and keeps nothing.
func soakModel(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway has ended
	}
	delta, reason := `{"role":"assistant","content":"Done. It is the March data now, as you asked."}`, `"stop"`
	asked := body[max(0, bytes.LastIndex(body, []byte(`"role":"user"`))):]
	if bytes.Contains(asked, []byte("list the files")) && !bytes.Contains(asked, []byte(`"role":"tool"`)) {
		delta, reason = `{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"list_files","arguments":"{}"}}]}`, `"tool_calls"`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var out bytes.Buffer
	fmt.Fprintf(&out, benchFrame, delta, "null")
	fmt.Fprintf(&out, benchFrame, `{}`, reason)
	out.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(out.Bytes()) // a gateway that has gone reads no more
}

// newSoak starts a gateway for about so many sessions, with its caches of rows
// bounded to so many MiB.
func newSoak(t testing.TB, kind string, sessions, cache int, model http.HandlerFunc) *soak {
	t.Helper()
	s := &soak{t: t, sessions: max(soakLanes, sessions/soakLanes*soakLanes)}
	s.began, s.ends = make([]int, s.sessions), make([]chan struct{}, s.sessions)
	for i := range s.ends {
		s.ends[i] = make(chan struct{}, 8)
	}
	dir := t.TempDir()
	db := filepath.Join(dir, "data", "gateway.db")
	url := "sqlite:" + db
	s.size = func() (stored, log int64) { return fileSize(t, db), fileSize(t, db+"-wal") }
	if kind == "redis" {
		// Its file is rewritten as it grows; its memory is what must be paid for.
		srv := redistest.Start(t)
		s.redis, url = srv, srv.URL
		s.size = func() (stored, log int64) {
			return infoNumber(t, srv, "memory", "used_memory"), infoNumber(t, srv, "persistence", "aof_current_size")
		}
	}
	llm := httptest.NewServer(model)
	t.Cleanup(llm.Close)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	// No cap on running turns: the web chat is one chat, and may have 64 of them.
	conf := fmt.Sprintf(`
platforms: {web: {listen: "127.0.0.1:0"}}
model: {base_url: %q, api_key: key, name: soak, context_window: 1000000}
store: {url: %q}
workspace: {dir: %q}
limits: {history_cache: %dMiB, drain: 1s, running: 0, running_chat: 0}
steer: {yield_after: 1s}
ops: {listen: ""}
`, llm.URL+"/v1", url, filepath.Join(dir, "data", "workspace"), cache)
	if err := os.WriteFile(config, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(config)
	return s
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	f, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return f.Size()
}

// infoNumber reads a number of INFO.
func infoNumber(t testing.TB, srv *redistest.Server, section, name string) int64 {
	t.Helper()
	for line := range strings.Lines(srv.Do("INFO", section).(string)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("redis does not tell %s", name)
	return 0
}

func (s *soak) run(config string) {
	s.t.Helper()
	c, err := loadConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	base, kill := context.WithCancel(context.WithoutCancel(s.t.Context()))
	p, err := build(base, c, slog.New(slog.DiscardHandler))
	if err != nil {
		kill()
		s.t.Fatal(err)
	}
	w := soakStore{p.store, s}
	p.hub.Store, p.outbox.Store = w, w
	ctx, stop := context.WithCancel(base)
	over := make(chan error, 1)
	go func() { over <- p.serve(ctx, base, io.Discard) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			s.t.Error(err)
		}
		kill()
	})
	s.parts = p
}

// soakLanes is how many sessions are spoken to at once.
const soakLanes = 32

// window runs n turns, session after session, and looks.
func (s *soak) window(n int) {
	s.t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for lane := range soakLanes {
		wg.Go(func() {
			for range n / soakLanes { // each has sessions of its own: a follow-up would join
				s.turn(lane + soakLanes*(s.next[lane]%(s.sessions/soakLanes)))
				s.next[lane]++
			}
		})
	}
	wg.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
	n -= n % soakLanes
	s.ran += n
	took := time.Since(began)
	s.rest()
	o := soaked{turns: s.ran, rate: float64(n) / took.Seconds(), rss: residentBytes(s.t), goroutines: int64(runtime.NumGoroutine())}
	o.store, o.log = s.size()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		s.t.Fatal(err)
	}
	o.files = int64(len(fds))
	var m runtime.MemStats
	runtime.GC() // twice: what pools kept goes with the second
	runtime.GC()
	runtime.ReadMemStats(&m)
	o.heap = int64(m.HeapAlloc)
	s.seen = append(s.seen, o)
	s.t.Logf("%8d turns %5.0f/s  rss %6.1f MB  heap %6.2f MB  goroutines %3d  files %3d  store %7.1f MB, %5.0f B/turn, its log %5.1f MB",
		o.turns, o.rate, float64(o.rss)/1e6, float64(o.heap)/1e6, o.goroutines, o.files, float64(o.store)/1e6, float64(o.store-s.seen[0].store)/float64(max(1, o.turns-s.seen[0].turns)), float64(o.log)/1e6)
}

// turn is one of the soak's own, for a session.
func (s *soak) turn(n int) {
	text := "please use the March data of row " + strconv.Itoa(s.began[n]+1)
	if (n+s.began[n])%8 == 0 {
		text = "please list the files for row " + strconv.Itoa(s.began[n]+1)
	}
	s.say(n, text)
}

// say says text to a session and waits until an answer was sent.
func (s *soak) say(n int, text string) {
	id := s.deliver(n, text)
	late := time.NewTimer(benchWait)
	defer late.Stop()
	select {
	case <-s.ends[n]:
	case <-late.C:
		s.t.Errorf("session %d, message %s: no answer within %v", n, id, benchWait)
	}
}

// deliver says text to a session; it is stored then.
func (s *soak) deliver(n int, text string) (id string) {
	s.began[n]++
	id = strconv.Itoa(s.began[n])
	err := s.parts.hub.Deliver(s.t.Context(), session.Message{
		Key: session.Key{Platform: web.Name, Chat: session.ChatID(strconv.Itoa(n))}, ID: session.MessageID(id),
		From: session.Person{ID: "web", Name: "you"}, Private: true, Addressed: true, Dedupe: "m:" + id, Text: text, Received: time.Now(),
	})
	if err != nil {
		s.t.Errorf("session %d, message %s: %v", n, id, err)
	}
	return id
}

// rest waits until the goroutines of turns have ended: no fewer in a while.
func (s *soak) rest() {
	least, since := runtime.NumGoroutine(), time.Now()
	for time.Since(since) < 100*time.Millisecond {
		quiet(s.t.Context(), 5*time.Millisecond)
		if n := runtime.NumGoroutine(); n < least {
			least, since = n, time.Now()
		}
	}
}

// soakFull is how many turns fill what is bounded by a number and not by bytes
// (the outbox remembers the signs of 4,096 inputs) before what is compared
// begins. Of fewer turns memory is not judged.
const soakFull = 11_000

// soakFullRedis is soakFull over Redis, whose journal keeps up to 10,000 calls of the
// last minute.
const soakFullRedis = 30_000

// judge compares what was seen after a third of the time with the end: at most
// 10 B a turn more (1 MB in 100,000), beside what two looks at the same differ by:
// as many connections may be kept open as lanes once spoke at one time, each with
// a goroutine at the model and two here.
func (s *soak) judge() {
	s.t.Helper()
	early, late := s.seen[soakWindows*2/5:soakWindows*13/20], s.seen[soakWindows*3/4:]
	turns := int64(late[len(late)/2].turns - early[len(early)/2].turns)
	for _, c := range []struct {
		what  string
		of    func(soaked) int64
		turn  int64 // a hundred turns may add
		noise int64
	}{
		{"live memory in bytes", func(o soaked) int64 { return o.heap }, 1000, 128 << 10},
		{"resident memory in bytes", func(o soaked) int64 { return o.rss }, 1000, 8 << 20},
		{"goroutines", func(o soaked) int64 { return o.goroutines }, 0, 3 * soakLanes},
		{"open files", func(o soaked) int64 { return o.files }, 0, 2 * soakLanes},
	} {
		was, is := medianOf(early, c.of), medianOf(late, c.of)
		s.t.Logf("%s: %d, and %d turns later %d: %+.1f a turn", c.what, was, turns, is, float64(is-was)/float64(turns))
		if c.turn > 0 && (s.ran < soakFull || strings.HasSuffix(s.t.Name(), "/redis") && s.ran < soakFullRedis) {
			continue
		}
		if more := is - was; more > c.turn*turns/100+c.noise {
			s.t.Errorf("%s: %d, and %d turns later %d; want at most %d more", c.what, was, turns, is, c.turn*turns/100+c.noise)
		}
	}
}

func medianOf(all []soaked, of func(soaked) int64) int64 {
	var v []int64
	for _, o := range all {
		v = append(v, of(o))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// residentBytes is this process's memory, after what the runtime can give back
// was given back: else it says when the last collection was.
func residentBytes(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
