//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store"
	"coxswain/store/redis/redistest"
	"coxswain/store/sqlite"
	"coxswain/store/storetest"
	"coxswain/telegramtest"
)

// TestStoreCopyGoesOn: a gateway on SQLite is stopped in the middle of a task,
// with another that waits. Its store is copied to Redis, and the gateway there
// answers both, once each; then all of it goes back.
func TestStoreCopyGoesOn(t *testing.T) {
	bin, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tg, model := telegramtest.New(), &copyModel{began: make(chan struct{}, 8)}
	tg.AddUser(telegramtest.User{ID: alice, FirstName: "Alice"})
	api, llm := httptest.NewServer(tg), httptest.NewServer(model)
	defer api.Close()
	defer llm.Close()
	conf := filepath.Join(dir, "config.yaml")
	var stderr bytes.Buffer
	var proc *exec.Cmd
	start := func(url string) {
		t.Helper()
		text := fmt.Sprintf("platforms:\n  telegram: {token: %q, api_url: %q, admins: [%d]}\n  web: {listen: \"\"}\n"+
			"model: {base_url: %q, api_key: key, name: scripted, context_window: 100000}\nstore: {url: %q}\nworkspace: {dir: %q}\nlease: {ttl: 1s}\nops: {listen: \"\"}\n",
			telegramtest.Token, api.URL, alice, llm.URL+"/v1", url, filepath.Join(dir, "data", "workspace"))
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		proc = exec.Command(bin, "run", "--config", conf)
		proc.Dir, proc.Stderr = dir, &stderr
		if err := proc.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop := func() {
		t.Helper()
		if err := proc.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := proc.Wait(); err != nil {
			t.Errorf("stop: %v\n%s", err, &stderr)
		}
		proc = nil
	}
	defer func() {
		if proc != nil {
			_ = proc.Process.Kill() // the test failed before
			_ = proc.Wait()
		}
	}()
	copied := func(from, to string) {
		t.Helper()
		out, err := exec.Command(bin, "store", "copy", "--config", conf, from, to).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "copied and compared: 1 sessions, ") || strings.Count(string(out), "\n") != 1 {
			t.Fatalf("copy: %v, %s", err, out)
		}
	}
	count := func(part string) (n int) {
		for _, m := range tg.Messages(alice) {
			if m.FromBot {
				n += strings.Count(m.Text, part)
			}
		}
		return n
	}

	first := "sqlite:" + filepath.Join(dir, "data", "gateway.db")
	start(first)
	tg.Say(alice, alice, "build the report")
	<-model.began // the tool's result is out; its answer does not come
	tg.Say(alice, alice, "/queue and then the letter")
	waitFor(t, func() bool { n, _ := tg.Pending(); return n == 0 })
	stop()

	second := redistest.Start(t).URL
	copied(first, second)
	model.release()
	start(second)
	waitFor(t, func() bool { return count("Built.") > 0 && count("Answered: and then the letter") > 0 })
	stop()

	third := "sqlite:" + filepath.Join(dir, "back", "gateway.db")
	copied(second, third)
	start(third)
	tg.Say(alice, alice, "what is new?")
	waitFor(t, func() bool { return count("Answered: what is new?") > 0 })
	stop()
	for _, part := range []string{"Built.", "Answered: and then the letter", "Answered: what is new?"} {
		if n := count(part); n != 1 {
			t.Errorf("%q came %d times; want once", part, n)
		}
	}
	if runs, err := filepath.Glob(filepath.Join(dir, "data", "workspace", "*", "ran*")); err != nil || len(runs) != 1 {
		t.Errorf("the tool ran %d times, %v; want once", len(runs), err)
	}
	if p := tg.Problems(); len(p) > 0 {
		t.Errorf("telegram would have forgiven: %q", p)
	}
}

// A copyModel has a tool run for what is to be built, and keeps the answer to its
// result back until it is released.
type copyModel struct {
	began chan struct{}

	mu       sync.Mutex
	released bool
}

func (m *copyModel) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.released = true
}

func (m *copyModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct{ Role, Content string }
	}
	data, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(data, &in) != nil || len(in.Messages) == 0 {
		http.NotFound(w, r)
		return
	}
	last := in.Messages[len(in.Messages)-1]
	m.mu.Lock()
	released := m.released
	m.mu.Unlock()
	if last.Role == "tool" && !released {
		m.began <- struct{}{}
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		quoted, _ := json.Marshal(text)
		fmt.Fprintf(w, benchFrame, `{"role":"assistant","content":`+string(quoted)+`}`, `"stop"`)
	}
	switch {
	case last.Role == "tool":
		say("Built.")
	case strings.Contains(last.Content, "build"):
		fmt.Fprintf(w, benchFrame, `{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"mktemp ran.XXXXXX\"}"}}]}`, "null")
		fmt.Fprintf(w, benchFrame, `{}`, `"tool_calls"`)
	default:
		say("Answered: " + last.Content)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// seedMany stores lanes with rows, some of which wait.
func seedMany(t *testing.T, path string, lanes, rows int) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range lanes {
		key := session.Key{Platform: "web", Chat: session.ChatID(fmt.Sprint("chat", i))}
		accept := func(id string) session.Lane {
			a, err := st.Accept(t.Context(), session.Accept{Key: key, Dedupe: id, Want: steer.Queue, Author: "web", Msg: session.MessageID(id), Data: []byte(`{}`), Fate: session.FateQueued})
			if err != nil {
				t.Fatal(err)
			}
			return a.Lane
		}
		l := accept("m1")
		b, err := st.Begin(t.Context(), session.Begin{Op: "b", Key: key, Nonce: "n", TTL: time.Second, Gen: l.Gen, Seq: l.Seq, Take: []session.Take{{Ticket: 1, Version: 1}}, Rows: []session.Row{{Type: session.RowUser}}})
		if err != nil {
			t.Fatal(err)
		}
		c := session.Commit{Op: "c", Seq: b.Lane.Seq, End: true}
		for range rows {
			c.Rows = append(c.Rows, session.Row{Type: session.RowAssistant, Data: bytes.Repeat([]byte("x"), 200)})
		}
		if _, err := st.Commit(t.Context(), b.Lease, c); err != nil {
			t.Fatal(err)
		}
		accept("m2")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStoreCopyKilled: the command is killed with SIGKILL again and again, at
// whatever it is at, and the last run ends with a whole copy.
func TestStoreCopyKilled(t *testing.T) {
	bin, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	workIn(t)
	from := "sqlite:from/gateway.db"
	seedMany(t, "from/gateway.db", 40, 150)
	for name, to := range map[string]string{"redis": redistest.Start(t).URL, "sqlite": "sqlite:to/gateway.db"} {
		t.Run(name, func(t *testing.T) {
			kills, refused := 0, 0
			for most := 60; ; most += 20 {
				var out bytes.Buffer
				cmd := exec.Command(bin, "store", "copy", from, to)
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				gone := make(chan error, 1)
				go func() { gone <- cmd.Wait() }()
				select {
				case err := <-gone:
					if err != nil || !strings.HasPrefix(out.String(), "copied and compared: 40 sessions, 6040 rows, 40 waiting,") {
						t.Fatalf("%v: %s", err, &out)
					}
				case <-time.After(time.Duration(20+rand.IntN(most)) * time.Millisecond):
					_ = cmd.Process.Kill() // it may have ended
					<-gone
					kills++
					writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\nstore: {url: \""+to+"\"}\n")
					if code, _, stderr := shell(t, "check"); code == 1 && stderr == "" {
						refused++
					}
					os.Remove("config.yaml")
					continue
				}
				break
			}
			t.Logf("%d kills, %d of them left a store on which no gateway starts", kills, refused)
			if kills == 0 {
				t.Error("it was never killed")
			}
			a, b := openStoreAt(t, from), openStoreAt(t, to)
			if d := storetest.Same(t.Context(), b, a); d != "" {
				t.Errorf("the copy differs:\n%s", d)
			}
		})
	}
}

func openStoreAt(t *testing.T, url string) session.Store {
	t.Helper()
	st, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// TestStoreCommand: each thing that is wrong is one line, and no line holds a
// password.
func TestStoreCommand(t *testing.T) {
	workIn(t)
	seedLane(t, session.Key{Platform: "web", Chat: "one"})
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "usage: gateway store copy FROM TO"},
		{[]string{"copy", "sqlite:data/gateway.db"}, "usage: gateway store copy FROM TO"},
		{[]string{"move", "a", "b"}, "usage: gateway store copy FROM TO"},
		{[]string{"copy", "sqlite:nowhere/gateway.db", "sqlite:b/gateway.db"}, "there is no store at nowhere/gateway.db"},
		{[]string{"copy", "sqlite:data/gateway.db", "sqlite:data/../data/gateway.db"}, "are the same store"},
		{[]string{"copy", "sqlite:data/gateway.db", "sqlite:data/copy.db"}, "give TO another one"},
		{[]string{"copy", "sqlite:data/gateway.db", "mysql://u:pass-word@h/d"}, `begins with "mysql"`},
		{[]string{"copy", "sqlite:data/gateway.db", "redis://:pass-word@[::1"}, "TO: store url"},
	} {
		code, _, stderr := shell(t, append([]string{"store"}, tt.args...)...)
		oneLine(t, code, stderr, tt.want)
		if strings.Contains(stderr, "pass-word") {
			t.Errorf("%v: the password is in %q", tt.args, stderr)
		}
	}
	if _, err := os.Stat("nowhere"); err == nil {
		t.Error("a store was made to copy from")
	}
	open := openStoreAt(t, "sqlite:data/gateway.db")
	code, _, stderr := shell(t, "store", "copy", "sqlite:data/gateway.db", "sqlite:b/gateway.db")
	oneLine(t, code, stderr, "FROM: another gateway (pid ")
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := shell(t, "store", "copy", "sqlite:data/gateway.db", "sqlite:b/gateway.db")
	if code != 0 || !regexp.MustCompile(`^copied and compared: 1 sessions, 0 rows, 1 waiting, 0 parts to send, 0 documents, \d+\.\d\d s\n$`).MatchString(out) {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// TestHalfCopyRefused: nothing works on a store that holds a part of a copy, and
// the error says what to do.
func TestHalfCopyRefused(t *testing.T) {
	workIn(t)
	st := openStoreAt(t, "sqlite:data/gateway.db")
	if err := session.MarkCopy(t.Context(), st, &session.CopyState{From: "x", Name: "redis://old/0"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\n")
	for _, args := range [][]string{{"run"}, {"sessions"}, {"pair"}} {
		code, _, stderr := shell(t, args...)
		oneLine(t, code, stderr, "store: it holds an unfinished copy of redis://old/0; run that gateway store copy again")
	}
}
