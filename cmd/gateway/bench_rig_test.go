//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store"
	"coxswain/store/redis/redistest"
	"coxswain/telegramtest"
)

// benchWait is far beyond what any step of a benchmark takes.
const benchWait = 2 * time.Minute

// A diary notes when what happened at the edges of a gateway: the platform and
// the model, which are both in this process and so on one clock. What happened
// is named by the mark in the message's text.
type diary struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every note
	at      map[string]time.Time
	count   map[string]int // by what
	marks   map[string]string
	poll    time.Time // the first one
}

func newDiary() *diary {
	return &diary{changed: make(chan struct{}), at: map[string]time.Time{}, count: map[string]int{}, marks: map[string]string{}}
}

// note keeps the first time of what happened to a mark.
func (d *diary) note(what, mark string, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.at[what+mark]; !ok {
		d.at[what+mark] = at
		d.count[what]++
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *diary) when(what, mark string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at[what+mark]
}

// happened is to how many marks it has.
func (d *diary) happened(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count[what]
}

// await waits until what has happened to n marks, or to the mark given.
func (d *diary) await(b *testing.B, what, mark string, n int) {
	b.Helper()
	late := time.NewTimer(benchWait)
	defer late.Stop()
	for {
		d.mu.Lock()
		_, ok := d.at[what+mark]
		ok = ok || mark == "" && d.count[what] >= n
		changed, have := d.changed, d.count[what]
		d.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			b.Fatalf("%s %s: waited %v, happened %d times; want %d", what, mark, benchWait, have, n)
		}
	}
}

// What a diary notes.
const (
	served   = "served "   // the answer to a poll that carries the message is about to be written
	asked    = "asked "    // the model request about it has arrived
	answered = "answered " // the model's answer to it is written
	sent     = "sent "     // its final has arrived at the platform
	reacted  = "reacted "  // a sign on it has arrived at the platform
)

// markOf finds the last mark in a text: bench:CHAT:N.
func markOf(text []byte) string {
	i := bytes.LastIndex(text, []byte("bench:"))
	if i < 0 {
		return ""
	}
	n := bytes.IndexByte(text[i:], '.')
	if n < 0 {
		return ""
	}
	return string(text[i : i+n])
}

// benchTelegram is the fake Bot API with a diary.
type benchTelegram struct {
	*telegramtest.Server
	*diary
}

func (t *benchTelegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	method := path.Base(r.URL.Path)
	if method == "getUpdates" {
		t.mu.Lock()
		if t.poll.IsZero() {
			t.poll = now
		}
		t.mu.Unlock()
		t.note("poll ", "", now)
		t.Server.ServeHTTP(&servedWriter{w, t}, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway has ended
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	t.Server.ServeHTTP(w, r)
	switch method {
	case "sendMessage":
		if mark := markOf(body); mark != "" {
			t.note(sent, mark, now)
		}
	case "setMessageReaction":
		var p struct {
			Chat int64 `json:"chat_id"`
			Msg  int64 `json:"message_id"`
		}
		if json.Unmarshal(body, &p) == nil {
			t.mu.Lock()
			mark := t.marks[fmt.Sprint(p.Chat, "/", p.Msg)]
			t.mu.Unlock()
			t.note(reacted, mark, now)
		}
	}
}

// servedWriter notes the messages that an answer carries before it is written.
type servedWriter struct {
	http.ResponseWriter
	t *benchTelegram
}

func (w *servedWriter) Write(data []byte) (int, error) {
	var a struct {
		Result []struct {
			Message struct {
				ID   int64  `json:"message_id"`
				Text string `json:"text"`
				Chat struct {
					ID int64 `json:"id"`
				} `json:"chat"`
			} `json:"message"`
		} `json:"result"`
	}
	if json.Unmarshal(data, &a) == nil {
		marks := make([]string, len(a.Result))
		w.t.mu.Lock()
		for i, u := range a.Result {
			if marks[i] = markOf([]byte(u.Message.Text)); marks[i] == "" {
				marks[i] = u.Message.Text
			}
			w.t.marks[fmt.Sprint(u.Message.Chat.ID, "/", u.Message.ID)] = marks[i]
		}
		w.t.mu.Unlock()
		now := time.Now()
		for _, mark := range marks {
			w.t.note(served, mark, now)
		}
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController find the writer.
func (w *servedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// benchModel answers at once, unless it is told to hold its answers or to call
// the terminal.
type benchModel struct {
	*diary
	hold    chan struct{} // not nil: answers begin, and end when it is closed
	command string        // not empty: the first request of a turn calls the terminal with it
}

const benchFrame = `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"

func (m *benchModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway has ended
	}
	mark := markOf(body)
	m.note(asked, mark, now)
	w.Header().Set("Content-Type", "text/event-stream")
	var out bytes.Buffer
	switch {
	case m.command != "":
		args, _ := json.Marshal(map[string]string{"command": m.command})
		quoted, _ := json.Marshal(string(args))
		fmt.Fprintf(&out, benchFrame, `{"role":"assistant","tool_calls":[{"index":0,"id":"call_`+strconv.FormatInt(now.UnixNano(), 36)+
			`","type":"function","function":{"name":"terminal","arguments":`+string(quoted)+`}}]}`, "null")
		fmt.Fprintf(&out, benchFrame, `{}`, `"tool_calls"`)
	default:
		fmt.Fprintf(&out, benchFrame, `{"role":"assistant","content":"Done with `+mark+`. It is the March data now."}`, "null")
		if m.hold != nil {
			_, _ = w.Write(out.Bytes()) // a gateway that has gone reads no more
			_ = http.NewResponseController(w).Flush()
			out.Reset()
			select {
			case <-m.hold:
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(&out, benchFrame, `{}`, `"stop"`)
	}
	out.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(out.Bytes())
	m.note(answered, mark, time.Now())
}

// A benchRig is a machine for one gateway: a fake Telegram, a fake model and a
// store.
type benchRig struct {
	*diary
	b      *testing.B
	dir    string
	url    string
	config string
	tg     *benchTelegram
	model  *benchModel
	redis  *redistest.Server // nil with SQLite
	raw    session.Store     // a store of the same kind, for its raw cost
	rawDoc int64

	cmd    *exec.Cmd
	gone   chan struct{}
	stderr bytes.Buffer
	msgs   map[int64]int
}

func newBenchRig(b *testing.B, kind string) *benchRig {
	b.Helper()
	r := &benchRig{b: b, diary: newDiary(), dir: b.TempDir(), msgs: map[int64]int{}}
	r.tg = &benchTelegram{telegramtest.New(), r.diary}
	r.model = &benchModel{diary: r.diary}
	raw := "sqlite:" + filepath.Join(r.dir, "raw", "raw.db")
	r.url = "sqlite:" + filepath.Join(r.dir, "data", "gateway.db")
	if kind == "redis" {
		r.redis = redistest.Start(b)
		r.url, raw = r.redis.URL, r.redis.URL
	}
	api, llm := httptest.NewServer(r.tg), httptest.NewServer(r.model)
	b.Cleanup(llm.Close)
	b.Cleanup(api.Close)
	for _, dir := range []string{"raw", "data"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	st, err := store.Open(b.Context(), raw, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r.raw = st
	b.Cleanup(func() { st.Close() })
	r.config = filepath.Join(r.dir, "config.yaml")
	conf := fmt.Sprintf(`
platforms:
  telegram: {token: %q, api_url: %q, allow_users: ["*"], admins: [1]}
  web: {listen: "127.0.0.1:0"}
model: {base_url: %q, api_key: key, name: bench, context_window: 1000000}
store: {url: %q}
workspace: {dir: %q}
ops: {listen: ""}
`, telegramtest.Token, api.URL, llm.URL+"/v1", r.url, filepath.Join(r.dir, "data", "workspace"))
	if err := os.WriteFile(r.config, []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	return r
}

// commit is the raw cost: one durable commit of one small document.
func (r *benchRig) commit() time.Duration {
	r.b.Helper()
	began := time.Now()
	if err := r.raw.PutDoc(r.b.Context(), "raw", r.rawDoc, []byte("a durable commit")); err != nil {
		r.b.Fatal(err)
	}
	took := time.Since(began)
	r.rawDoc++
	return took
}

// commits is the median raw cost.
func (r *benchRig) commits(n int) time.Duration {
	var all []time.Duration
	for range n {
		all = append(all, r.commit())
	}
	return percentile(all, 50)
}

// gatewayBinary and failpointBinary are built once for all tests.
var (
	gatewayBinary   = builtOnce("gateway-under-bench")
	failpointBinary = builtOnce("gateway-failpoints", "-tags", "failpoints")
)

func builtOnce(name string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) { return buildGateway(name, flags...) })
}

func buildGateway(name string, flags ...string) (string, error) {
	// go test runs its binary in a directory that it removes afterwards.
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(filepath.Dir(self), name)
	if out, err := exec.Command("go", slices.Concat([]string{"build", "-o", bin}, flags, []string{"."})...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

// start starts the built gateway; the benchmark's end ends it.
func (r *benchRig) start() {
	r.b.Helper()
	bin, err := gatewayBinary()
	if err != nil {
		r.b.Fatal(err)
	}
	r.stderr.Reset()
	r.cmd = exec.Command(bin, "run", "--config", r.config)
	r.cmd.Dir, r.cmd.Stderr = r.dir, &r.stderr
	r.cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	r.mu.Lock()
	r.poll = time.Time{}
	delete(r.at, "poll ")
	r.count["poll "] = 0
	r.mu.Unlock()
	if err := r.cmd.Start(); err != nil {
		r.b.Fatal(err)
	}
	cmd, gone := r.cmd, make(chan struct{})
	r.gone = gone
	go func() {
		_ = cmd.Wait() // how it ended is of no interest
		close(gone)
	}()
	r.b.Cleanup(func() { r.end(syscall.SIGKILL) })
	r.await(r.b, "poll ", "", 1)
}

// end ends the gateway and waits for it.
func (r *benchRig) end(sig os.Signal) {
	_ = r.cmd.Process.Signal(sig) // it may be gone already
	<-r.gone
}

// say queues messages, one a chat, that all come with the next poll, and
// returns their marks.
func (r *benchRig) say(n int, chats ...int64) []string {
	r.b.Helper()
	raw, marks := make([]string, len(chats)), make([]string, len(chats))
	for i, c := range chats {
		marks[i] = fmt.Sprintf("bench:%d:%d", c, n)
		raw[i] = r.message(c, "please use the March data, "+marks[i]+".")
	}
	r.tg.Update(raw...)
	return marks
}

func (r *benchRig) message(chat int64, text string) string {
	r.msgs[chat]++
	entities := ""
	if strings.HasPrefix(text, "/") {
		entities = fmt.Sprintf(`,"entities":[{"type":"bot_command","offset":0,"length":%d}]`, len(text))
	}
	return fmt.Sprintf(`{"message":{"message_id":%d,"date":%d,"chat":{"id":%d,"type":"private","first_name":"U"},"from":{"id":%d,"is_bot":false,"first_name":"U"},"text":%q%s}}`,
		r.msgs[chat], time.Now().Unix(), chat, chat, text, entities)
}

// chatIDs are n private chats.
func chatIDs(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(1000 + i)
	}
	return ids
}

// A usage is what the gateway's process has used.
type usage struct {
	cpu       time.Duration
	rss, peak float64 // MB of 10⁶ bytes
}

// usage reads /proc. CPU is the time its threads were running, to the nanosecond
// (schedstat): ticks of 10 ms say too much of a process that runs in short bursts.
func (r *benchRig) usage() (u usage) {
	r.b.Helper()
	dir := fmt.Sprintf("/proc/%d/", r.cmd.Process.Pid)
	tasks, err := os.ReadDir(dir + "task")
	if err != nil {
		r.b.Fatal(err)
	}
	for _, t := range tasks {
		stat, err := os.ReadFile(dir + "task/" + t.Name() + "/schedstat")
		if err != nil {
			continue // a thread that has ended; few do
		}
		ran, _, _ := strings.Cut(string(stat), " ")
		n, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			r.b.Fatal(err)
		}
		u.cpu += time.Duration(n)
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		r.b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		switch name {
		case "VmRSS":
			u.rss = n * 1024 / 1e6
		case "VmHWM":
			u.peak = n * 1024 / 1e6
		}
	}
	return u
}

// redisCalls counts the commands the server has got: what clients sent, not
// what scripts called.
func (r *benchRig) redisCalls() (n int) {
	r.b.Helper()
	if r.redis == nil {
		return 0
	}
	for line := range strings.Lines(r.redis.Do("INFO", "commandstats").(string)) {
		name, rest, ok := strings.Cut(line, ":calls=")
		count, _, _ := strings.Cut(rest, ",")
		if ok && slices.Contains([]string{"cmdstat_evalsha", "cmdstat_eval", "cmdstat_subscribe", "cmdstat_ping"}, name) {
			calls, err := strconv.Atoi(count)
			if err != nil {
				r.b.Fatal(err)
			}
			n += calls
		}
	}
	return n
}

// quiet waits without work, to see what a gateway does by itself.
func quiet(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	return s[min(len(s)-1, len(s)*p/100)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// report gives one metric; the benchmark's own ns/op says nothing here.
func report(b *testing.B, v float64, name string) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(v, name)
}

// A meter is a store that counts its writes and says when they are done.
type meter struct {
	session.Store
	mu     sync.Mutex
	synced int
	all    int
	on     func(what string, key session.Key)
}

func (m *meter) count(synced bool, what string, key session.Key, err error) {
	m.mu.Lock()
	m.all++
	if synced {
		m.synced++
	}
	m.mu.Unlock()
	if err == nil && m.on != nil {
		m.on(what, key)
	}
}

func (m *meter) take() (synced, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	synced, all = m.synced, m.all
	m.synced, m.all = 0, 0
	return synced, all
}

func (m *meter) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	a, err := m.Store.Accept(ctx, r)
	m.count(true, "accept", r.Key, err)
	return a, err
}

func (m *meter) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	a, err := m.Store.Begin(ctx, r)
	m.count(true, "begin", r.Key, err)
	return a, err
}

func (m *meter) Claim(ctx context.Context, k session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	a, err := m.Store.Claim(ctx, k, nonce, ttl)
	m.count(true, "claim", k, err)
	return a, err
}

func (m *meter) Commit(ctx context.Context, l session.Lease, c session.Commit) (session.Committed, error) {
	a, err := m.Store.Commit(ctx, l, c)
	what := "commit"
	if c.End {
		what = "end"
	}
	m.count(true, what, l.Key, err)
	return a, err
}

func (m *meter) Post(ctx context.Context, p session.Post) (session.Posted, error) {
	a, err := m.Store.Post(ctx, p)
	m.count(true, "post", p.Key, err)
	return a, err
}

func (m *meter) Settle(ctx context.Context, k session.Key, f []session.FateSet) error {
	err := m.Store.Settle(ctx, k, f)
	m.count(false, "settle", k, err)
	return err
}

func (m *meter) OutTake(ctx context.Context, k session.Key, nonce string, after time.Duration) (session.Part, bool, time.Duration, error) {
	p, ok, wait, err := m.Store.OutTake(ctx, k, nonce, after)
	if ok {
		m.count(false, "outtake", k, err)
	}
	return p, ok, wait, err
}

func (m *meter) OutDone(ctx context.Context, k session.Key, nonce string, d session.PartDone) error {
	err := m.Store.OutDone(ctx, k, nonce, d)
	m.count(false, "outdone", k, err)
	return err
}

// forget lets something happen again.
func (d *diary) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.at, name)
}

// benchContext outlives the benchmark's own, which ends before its cleanups.
func benchContext(b *testing.B) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(b.Context()))
}
