//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

	"coxswain/discordtest"
	"coxswain/store/redis/redistest"
	"coxswain/telegramtest"
)

const (
	annID = "7001000000000000001"
	annDM = "8002000000000000002"
)

// TestX5ResumeAcrossPlatforms: a person on Telegram and on Discord is two, with
// sessions of their own, until they link their accounts (X5). Then a task that was
// begun on Telegram is brought to Discord while its tool runs and steered there; the
// gateway is killed; the next one answers on Discord, once, as the note says, and
// Telegram has a session anew.
func TestX5ResumeAcrossPlatforms(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		roam(t, "sqlite:"+filepath.Join(t.TempDir(), "data", "gateway.db"))
	})
	t.Run("redis", func(t *testing.T) { roam(t, redistest.Start(t).URL) })
}

func roam(t *testing.T, url string) {
	bin, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tg, dc, model := telegramtest.New(), discordtest.New(), &roamModel{}
	tg.AddUser(telegramtest.User{ID: alice, FirstName: "Alice"})
	dc.AddUser(discordtest.User{ID: annID, Username: "alice2"})
	dc.AddChannel(discordtest.Channel{ID: annDM, Type: discordtest.TypeDM})
	api, llm := httptest.NewServer(tg), httptest.NewServer(model)
	defer api.Close()
	defer llm.Close()
	discord, down := dc.Start()
	defer down()
	conf := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("platforms:\n  telegram: {token: %q, api_url: %q, admins: [%d]}\n  discord: {token: %q, api_url: %q, admins: [%q]}\n  web: {listen: \"\"}\n"+
		"model: {base_url: %q, api_key: key, name: scripted, context_window: 100000}\nstore: {url: %q}\nworkspace: {dir: %q}\nlease: {ttl: 1s}\noutbox: {unknown_after: 1s}\nops: {listen: \"\"}\n",
		telegramtest.Token, api.URL, alice, discordtest.Token, discord, annID, llm.URL+"/v1", url, filepath.Join(dir, "data", "workspace"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer // read when no gateway runs
	start := func() func(os.Signal) {
		cmd := exec.Command(bin, "run", "--config", conf)
		cmd.Dir, cmd.Stderr = dir, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = cmd.Wait() // it is killed
		}()
		return func(sig os.Signal) {
			_ = cmd.Process.Signal(sig) // it may be gone
			<-gone
		}
	}
	kill := start()
	defer func() {
		kill(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the gateway said:\n%s", &stderr)
		}
	}()

	telegram := func() (all []string) {
		for _, m := range tg.Messages(alice) {
			if m.FromBot {
				all = append(all, m.Text)
			}
		}
		return all
	}
	onDiscord := func() (all []string) {
		for _, m := range dc.Messages(annDM) {
			if m.Author.ID == discordtest.BotID {
				all = append(all, m.Content)
			}
		}
		return all
	}
	count := func(all []string, part string) (n int) {
		for _, s := range all {
			n += strings.Count(s, part)
		}
		return n
	}
	until := func(what string, say func() []string, part string) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("%s: %q is not in %q", what, part, say())
			}
		}()
		waitFor(t, func() bool { return count(say(), part) > 0 })
		if n := count(say(), part); n != 1 {
			t.Fatalf("%s: %d times %q in %q", what, n, part, say())
		}
	}

	waitFor(t, func() bool { return dc.Connected() > 0 })
	// Slash commands say what they take.
	waitFor(t, func() bool { return strings.Contains(string(dc.Commands()), `"queue, interrupt or steer"`) })
	tg.Say(alice, alice, "hello")
	until("answered on Telegram", telegram, "Answered: hello")
	dc.Say(annDM, annID, "hello there")
	until("answered on Discord", onDiscord, "Answered: hello there")
	if n := model.longest(); n != 1 {
		t.Errorf("a request had %d messages of people; want sessions of their own", n)
	}
	dc.Say(annDM, annID, "/resume")
	until("not linked", onDiscord, "There is no other session of yours")

	tg.Say(alice, alice, "/link")
	until("a code", telegram, "/link ")
	code := regexp.MustCompile(`/link ([A-Z0-9]{10})`).FindStringSubmatch(strings.Join(telegram(), " "))[1]
	dc.Say(annDM, annID, "/link "+code)
	until("linked", onDiscord, "You are one person")
	until("told", telegram, "was linked with alice2 on Discord")

	tg.Say(alice, alice, "build the report")
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(dir, "runs")); return err == nil })
	dc.Say(annDM, annID, "/resume hello")
	until("moved", onDiscord, "Here it is: hello. Its task runs on")
	until("told where it went", telegram, "This session goes on in Discord")
	dc.Say(annDM, annID, "use March")
	waitFor(t, func() bool { // its sign: it waits to go in
		for _, m := range dc.Messages(annDM) {
			if m.Content == "use March" && len(m.Reactions) > 0 {
				return true
			}
		}
		return false
	})
	kill(syscall.SIGKILL)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill = start()
	until("the steered answer", onDiscord, "Built with March")
	tg.Say(alice, alice, "and what is new here?")
	until("a session anew", telegram, "Answered: and what is new here?")
	if n := count(telegram(), "Built with"); n != 0 {
		t.Errorf("the answer came to the old chat, too: %q", telegram())
	}
	if n := model.notes(); n != 1 {
		t.Errorf("%d requests begin to carry the note; want 1", n)
	}
	if p := append(tg.Problems(), dc.Problems()...); len(p) > 0 {
		t.Errorf("the platforms would have forgiven: %q", p)
	}
}

// A roamModel calls the terminal once for a task that is built, and answers.
type roamModel struct {
	mu    sync.Mutex
	noted int
	most  int // messages of people in a request
}

func (m *roamModel) longest() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

func (m *roamModel) notes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noted
}

func (m *roamModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct{ Role, Content string }
	}
	data, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(data, &in) != nil || len(in.Messages) == 0 {
		http.NotFound(w, r)
		return
	}
	people := 0
	for _, s := range in.Messages {
		people += strings.Count(s.Role, "user")
	}
	m.mu.Lock()
	m.most = max(m.most, people)
	m.mu.Unlock()
	last := in.Messages[len(in.Messages)-1]
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		quoted, _ := json.Marshal(text)
		fmt.Fprintf(w, benchFrame, `{"role":"assistant","content":`+string(quoted)+`}`, `"stop"`)
	}
	switch {
	case last.Role == "tool" && strings.Contains(last.Content, "use March"):
		m.mu.Lock()
		m.noted++
		m.mu.Unlock()
		say("Built with March.")
	case last.Role == "tool":
		say("Built with all.")
	case strings.Contains(last.Content, "build"):
		fmt.Fprintf(w, benchFrame, `{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"touch ../../../runs; while [ ! -e ../../../go ]; do sleep 0.1; done\"}"}}]}`, "null")
		fmt.Fprintf(w, benchFrame, `{}`, `"tool_calls"`)
	default:
		say("Answered: " + last.Content)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
