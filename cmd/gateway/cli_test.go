package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
	"coxswain/store/sqlite"
)

// shell runs the gateway's command line in this process, in an empty
// directory of its own with no tokens in the environment.
func shell(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func workIn(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN", "REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "GATEWAY_CONFIG"} {
		t.Setenv(name, "")
	}
}

func writeConfig(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile("config.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// oneLine wants exactly one line of error that says want, and exit 1.
func oneLine(t *testing.T, code int, stderr, want string) {
	t.Helper()
	if code != 1 {
		t.Errorf("exit code %d; want 1", code)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "gateway: ") || !strings.Contains(lines[0], want) {
		t.Errorf("stderr %q; want one line with %q", stderr, want)
	}
	if strings.Contains(stderr, "goroutine") {
		t.Errorf("a stack trace: %s", stderr)
	}
}

// freePort gives an address nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestStartRefuses: each thing that keeps the gateway from starting is one
// clear line and exit 1.
func TestStartRefuses(t *testing.T) {
	quiet := "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\n"
	t.Run("unknown key", func(t *testing.T) {
		workIn(t)
		writeConfig(t, "limits:\n  drane: 3s\n")
		code, _, stderr := shell(t)
		oneLine(t, code, stderr, `config.yaml:2: unknown field "drane"`)
	})
	t.Run("no such file", func(t *testing.T) {
		workIn(t)
		code, _, stderr := shell(t, "--config", "nowhere.yaml")
		oneLine(t, code, stderr, "there is no file nowhere.yaml")
	})
	t.Run("no such command", func(t *testing.T) {
		workIn(t)
		code, _, stderr := shell(t, "launch")
		oneLine(t, code, stderr, `there is no command "launch"`)
	})
	t.Run("no such flag", func(t *testing.T) {
		workIn(t)
		code, _, stderr := shell(t, "--fast")
		oneLine(t, code, stderr, "there is no flag --fast")
	})
	t.Run("port in use", func(t *testing.T) {
		workIn(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \""+l.Addr().String()+"\"}}\n")
		code, _, stderr := shell(t)
		oneLine(t, code, stderr, "platforms.web.listen: "+l.Addr().String()+" is in use")
	})
	t.Run("second process on the same data", func(t *testing.T) {
		workIn(t)
		writeConfig(t, quiet)
		st, err := sqlite.Open(t.Context(), "data/gateway.db", sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		code, _, stderr := shell(t)
		oneLine(t, code, stderr, "another gateway (pid ")
	})
	t.Run("a store that may lose", func(t *testing.T) {
		workIn(t)
		srv := redistest.Start(t)
		srv.Set("appendfsync", "everysec")
		writeConfig(t, quiet+"store: {url: \""+srv.URL+"\"}\n")
		code, _, stderr := shell(t)
		oneLine(t, code, stderr, "appendfsync")
	})
	t.Run("unknown store", func(t *testing.T) {
		workIn(t)
		writeConfig(t, quiet+"store: {url: \"mysql://x\"}\n")
		code, _, stderr := shell(t)
		oneLine(t, code, stderr, `store.url begins with "mysql"`)
	})
	t.Run("status of nothing", func(t *testing.T) {
		workIn(t)
		code, _, stderr := shell(t, "status")
		oneLine(t, code, stderr, "no gateway is running here")
	})
}

// TestSessionsWithout: sessions and pair work on the store when no gateway
// runs, and beside one with the same output.
func TestSessionsBesideAndWithout(t *testing.T) {
	workIn(t)
	writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\n")
	key := session.Key{Platform: "web", Chat: "one"}
	seedLane(t, key)
	read := func() string {
		t.Helper()
		var all string
		for _, args := range [][]string{{"sessions"}, {"sessions", "show", "web:one"}, {"pair"}} {
			code, out, stderr := shell(t, args...)
			if code != 0 {
				t.Fatalf("%v: exit %d: %s", args, code, stderr)
			}
			all += out
		}
		return all
	}
	without := read()
	if strings.ContainsAny(without, "\x1b\x07\u202e") {
		t.Errorf("control characters reach the operator's terminal: %q", without)
	}
	if !strings.Contains(without, "web:one") || !strings.Contains(without, "hello there") || !strings.Contains(without, "nobody waits") {
		t.Fatalf("without a gateway: %s", without)
	}
	c, err := loadConfig("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(t.Context(), c, newLogger(c.Log, &bytes.Buffer{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.serve(ctx, context.WithoutCancel(ctx), &bytes.Buffer{}) }()
	socket := filepath.Join(c.dataDir(), socketName)
	waitFor(t, func() bool { _, err := os.Stat(socket); return err == nil })
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket mode %v, %v; want 0600", info.Mode(), err)
	}
	waitFor(t, func() bool { code, _, _ := shell(t, "status"); return code == 0 })
	code, out, stderr := shell(t, "status", "--json")
	var s fullStatus
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || !s.Ready {
		t.Errorf("status: exit %d, %v, %s%s", code, err, out, stderr)
	}
	// The waiting message began its turn when the gateway started; the session
	// itself is listed alike.
	if beside := read(); !strings.Contains(beside, "web:one") || !strings.Contains(beside, "hello there") {
		t.Errorf("beside a gateway: %s", beside)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
	files, err := p.files.dir(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "notes.txt"), []byte("hers"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := shell(t, "sessions", "delete", "web:one"); code != 0 {
		t.Errorf("delete: %s", stderr)
	}
	if _, err := os.Stat(files); !os.IsNotExist(err) {
		t.Errorf("the workspace of a deleted session: %v; want none", err)
	}
	code, _, stderr = shell(t, "sessions", "show", "web:one")
	oneLine(t, code, stderr, "there is no session web:one")
}

// Looking around in a folder where nothing ran makes nothing there.
func TestNoStoreYet(t *testing.T) {
	workIn(t)
	for _, args := range [][]string{{"sessions"}, {"pair"}, {"sessions", "delete", "web:one"}} {
		code, _, stderr := shell(t, args...)
		oneLine(t, code, stderr, "nothing has run here yet: there is no data/gateway.db")
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("made %v, %v; want nothing", left, err)
	}
}

// waitMost is for a machine that does much else; only a failure waits for so long.
const waitMost = 30 * time.Second

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(waitMost)
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("waited ", waitMost)
		}
	}
}

// seedLane stores one message that waits.
// Deleting a session empties what is kept of its chat, whoever's it was; a
// reader is told that a turn quoted the chat, not what it said.
func TestDeleteForgetsObserved(t *testing.T) {
	workIn(t)
	writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\n")
	key := session.Key{Platform: "telegram", Chat: "-1", Thread: "7", User: "5"}
	seedLane(t, key)
	const doc = "observed:telegram:-1:7"
	open := func(f func(st session.Store) error) {
		t.Helper()
		st, err := sqlite.Open(t.Context(), "data/gateway.db", sqlite.Options{})
		if err == nil {
			err = errors.Join(f(st), st.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open(func(st session.Store) error { return st.PutDoc(t.Context(), doc, 0, []byte(`{"last":1}`)) })
	if code, _, stderr := shell(t, "sessions", "delete", key.String()); code != 0 {
		t.Fatalf("delete: %s", stderr)
	}
	open(func(st session.Store) error {
		data, version, err := st.Doc(t.Context(), doc)
		if len(data) > 0 || version != 2 {
			t.Errorf("kept %q, version %d; want nothing, and the version to go on", data, version)
		}
		return err
	})
	row, err := json.Marshal(session.UserRow{
		Inputs: []session.Input{{Parts: []session.InputPart{{Text: "book it"}}}}, Observed: []session.Observed{{Text: "lunch?"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, text := rowText(session.Row{Type: session.RowUser, Data: row}); text != "(quoted: 1 messages of the chat)\nbook it\n" {
		t.Errorf("got %q", text)
	}
}

func seedLane(t *testing.T, key session.Key) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), "data/gateway.db", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(session.Input{From: session.Person{ID: "web"}, Parts: []session.InputPart{{ID: "m1", Text: "hello there\x1b]0;title\x07\u202e"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Accept(t.Context(), session.Accept{Key: key, Dedupe: "m:one:m1", Want: steer.Steer, Author: "web", Msg: "m1", Data: data, Title: "hello there", Fate: session.FateAccepted})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCheck: one line for each part, the cure with each failure, exit 1 if any
// fails.
func TestCheck(t *testing.T) {
	workIn(t)
	writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \""+freePort(t)+"\"}}\n")
	code, out, stderr := shell(t, "check")
	if code != 0 || strings.Contains(out, "FAIL") || !strings.Contains(out, "ok    store") || !strings.Contains(out, "off   telegram") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// TestNobodyThere: a store and a model that cannot be reached. A start and a copy
// say so in one line, without the password; check says so of each, and waits for
// the store once.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "config.yaml")
	url := "redis://:pass-word@" + freePort(t) + "/0"
	text := fmt.Sprintf("ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}, telegram: {token: \"\"}, discord: {token: \"\"}}\nstore: {url: %q}\n"+
		"workspace: {dir: %q}\nmodel: {base_url: \"http://%s/v1\", api_key: k}\n", url, filepath.Join(dir, "data", "workspace"), freePort(t))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"store: ", []string{"run", "--config", conf}},
		{"FROM: open redis", []string{"store", "copy", "--config", conf, url, "sqlite:" + filepath.Join(dir, "b.db")}},
		{"", []string{"check", "--config", conf}},
	} {
		t.Run(tt.args[0], func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			code, out, stderr := shell(t, tt.args...)
			took := time.Since(began)
			if tt.want != "" {
				oneLine(t, code, stderr, tt.want)
			} else if code != 1 || stderr != "" || !strings.Contains(out, "FAIL  store") || !strings.Contains(out, "FAIL  model") {
				t.Errorf("exit %d: %s%s", code, out, stderr)
			}
			if strings.Contains(out+stderr, "pass-word") {
				t.Errorf("the password is in %q", out+stderr)
			}
			if took > 9*time.Second { // 5 for the store, at most one for the model
				t.Errorf("it took %s to say so", took)
			}
		})
	}
}

// TestCheckProfiles: what a start refuses of profiles, check refuses.
func TestCheckProfiles(t *testing.T) {
	for conf, want := range map[string]string{
		"{team: {tools: [reed_file]}}":                `there is no tool "reed_file"`,
		"{team: {instructions_file: nope.md}}":        "profiles.team.instructions_file: open nope.md",
		"{team: {tools: [read_file], progress: new}}": "",
	} {
		workIn(t)
		writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\nprofiles: "+conf+"\n")
		code, out, stderr := shell(t, "check")
		if want == "" && (code != 0 || !strings.Contains(out, "ok    config")) || want != "" && (code != 1 || !strings.Contains(out, "FAIL  config") || !strings.Contains(out, want)) {
			t.Errorf("%s: exit %d: %s%s", conf, code, out, stderr)
		}
	}
}

// TestCheckDiscord: it is asked as Discord wants to be asked, and says whose the
// token is, or that it is nobody's.
func TestCheckDiscord(t *testing.T) {
	workIn(t)
	dc := discordtest.New()
	url, stop := dc.Start()
	defer stop()
	check := func(token, api string) (int, string) {
		writeConfig(t, fmt.Sprintf("ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}, discord: {token: %q, api_url: %q, admins: [\"7\"]}}\n", token, api))
		code, out, _ := shell(t, "check")
		return code, out
	}
	if code, out := check(discordtest.Token, url); code != 0 || !strings.Contains(out, "ok    discord    "+discordtest.Username) {
		t.Errorf("exit %d: %s", code, out)
	}
	if p := dc.Problems(); len(p) > 0 {
		t.Errorf("Discord would have forgiven: %q", p)
	}
	if code, out := check("NzAwMDAwMDAwMDAwMDAwMDAwMQ.bad.token", url); code != 1 || !strings.Contains(out, "refused the token") {
		t.Errorf("exit %d: %s", code, out)
	}
	nobody := "http://" + freePort(t)
	if code, out := check(discordtest.Token, nobody); code != 1 || !strings.Contains(out, "platforms.discord.api_url ("+nobody+")") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestVersionAndHelp need no configuration.
func TestVersionAndHelp(t *testing.T) {
	workIn(t)
	if code, out, _ := shell(t, "version"); code != 0 || !strings.Contains(out, "go1.") {
		t.Errorf("version: %d %q", code, out)
	}
	if code, out, _ := shell(t, "--help"); code != 0 || out != textUsage {
		t.Errorf("help: %d %q", code, out)
	}
}

// TestZeroConfiguration: with nothing configured the web chat answers with the
// demo, which says that it is a script.
func TestZeroConfiguration(t *testing.T) {
	workIn(t)
	c, err := loadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	c.Platforms.Web.Listen, c.Ops.Listen = "127.0.0.1:0", "127.0.0.1:0"
	p, err := build(t.Context(), c, newLogger(c.Log, &bytes.Buffer{}))
	if err != nil {
		t.Fatal(err)
	}
	if !p.demo {
		t.Error("without a key the demo must answer")
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.serve(ctx, context.WithoutCancel(ctx), &bytes.Buffer{}) }()
	base := "http://" + p.webAddr.Addr().String()
	resp, err := http.Post(base+"/api/sessions/chat-0001/messages", "application/json", strings.NewReader(`{"id":"m-00000001","text":"hello"}`))
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("post: %v %v", resp, err)
	}
	resp.Body.Close()
	waitFor(t, func() bool {
		resp, err := http.Get(base + "/api/sessions/chat-0001")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		return err == nil && strings.Contains(b.String(), "I am a script")
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
}
