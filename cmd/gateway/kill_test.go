package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store"
	"coxswain/store/redis/redistest"
	"coxswain/store/storetest"
	"coxswain/telegramtest"
)

var (
	killCount = flag.Int("kills", 24, "how often TestKills kills the gateway, on each store")
	killOnly  = flag.String("killpoint", "", "kill only at this point")
)

// TestKills runs the built gateway against a fake Telegram and a fake model,
// and kills it with SIGKILL before and after the store calls of a scripted
// conversation, evenly over the named failpoints. Then it counts: accepted
// messages lost or run twice, steers delivered twice, calls run again, finals
// missing. It prints the hits of each failpoint.
func TestKills(t *testing.T) {
	t.Parallel()
	bin, err := failpointBinary()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		playKills(t, bin, dir, "sqlite:"+filepath.Join(dir, "data", "gateway.db"))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		playKills(t, bin, t.TempDir(), redistest.Start(t).URL)
	})
}

// killPoints are the failpoints a conversation passes, each with what makes it
// pass there. Others (delete, commit.state) belong to operators or to nobody.
var killPoints = []struct{ point, act string }{
	{"accept", "task"}, {"begin", "task"}, {"commit.assistant", "task"}, {"commit.tool", "task"},
	{"commit.end", "task"}, {"outdone", "task"}, {"settle", "task"}, {"claim", "resume"}, {"renew", "long"},
	{"commit.join", "join"}, {"commit.drain", "parked"}, {"release", "term"}, {"amend.edit", "edit"},
	{"amend.drop", "cancel"}, {"amend.set", "press"}, {"stop", "stop"}, {"reset", "new"}, {"post", "whoami"},
	{"outtake", "whoami"}, {"putdoc", "stranger"},
}

const (
	alice    = 1001
	stranger = 2002
)

// A rig is one machine with the gateway on it.
type rig struct {
	t       *testing.T
	bin     string
	dir     string
	url     string
	tg      *telegramtest.Server
	model   *scriptModel
	proc    *exec.Cmd
	gone    chan error
	stderr  *bytes.Buffer
	n       int
	sent    map[string]string // text → what may become of it: "", "drop" or "held"
	hits    map[string]int
	missed  map[string]int
	hitFile string
	key     session.Key // the conversation
	files   string      // where the workspaces are
}

func playKills(t *testing.T, bin, dir, url string) {
	r := &rig{t: t, bin: bin, dir: dir, url: url, tg: telegramtest.New(), sent: map[string]string{}, hits: map[string]int{}, missed: map[string]int{}}
	r.hitFile = filepath.Join(dir, "hits")
	r.key = session.Key{Platform: "telegram", Chat: session.ChatID(fmt.Sprint(alice))}
	r.files = filepath.Join(dir, "data", "workspace")
	r.tg.AddUser(telegramtest.User{ID: alice, FirstName: "Alice"})
	api := httptest.NewServer(r.tg)
	defer api.Close()
	r.model = newScriptModel()
	llm := httptest.NewServer(r.model)
	defer llm.Close()
	r.configure(api.URL, llm.URL)
	for i := range *killCount {
		p := killPoints[i/2%len(killPoints)]
		if *killOnly != "" && p.point != *killOnly {
			continue
		}
		when := []string{"before", "after"}[i%2]
		r.kill(when, p.point, p.act)
	}
	r.start("")
	r.settle()
	r.terminate()
	r.report()
	r.check()
}

func (r *rig) configure(api, llm string) {
	conf := fmt.Sprintf(`
busy_input_mode: steer
platforms:
  telegram: {token: %q, api_url: %q, admins: [%d], pairing: "on"}
  web: {listen: ""}
model: {base_url: %q, api_key: key, name: scripted}
store: {url: %q}
workspace: {dir: %q}
input: {join_window: 300ms}
lease: {ttl: 1s}
outbox: {unknown_after: 1s}
limits: {drain: 3s}
ops: {listen: ""}
`, telegramtest.Token, api, alice, llm+"/v1", r.url, filepath.Join(r.dir, "data", "workspace"))
	if err := os.WriteFile(filepath.Join(r.dir, "config.yaml"), []byte(conf), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) start(failpoint string) {
	r.t.Helper()
	r.proc = exec.Command(r.bin, "run", "--config", filepath.Join(r.dir, "config.yaml"))
	r.proc.Dir = r.dir
	r.proc.Env = append(os.Environ(), "GATEWAY_FAILPOINT="+failpoint, "GATEWAY_FAILPOINT_LOG="+r.hitFile)
	r.stderr = &bytes.Buffer{}
	r.proc.Stderr = r.stderr
	if err := r.proc.Start(); err != nil {
		r.t.Fatal(err)
	}
	gone := make(chan error, 1)
	r.gone = gone
	proc := r.proc
	go func() { gone <- proc.Wait() }()
}

// dies waits until the process is dead, at most d.
func (r *rig) dies(d time.Duration) bool {
	select {
	case err := <-r.gone:
		r.gone <- err
		return true
	case <-time.After(d):
		return false
	}
}

func (r *rig) terminate() {
	r.t.Helper()
	if err := r.proc.Process.Signal(syscall.SIGTERM); err != nil && !r.dies(time.Second) {
		r.t.Fatal(err)
	}
	if !r.dies(15 * time.Second) {
		r.t.Errorf("SIGTERM did not end it in 15 s:\n%s", r.stderr)
		r.killNow()
	}
}

// kill plays conversations until one ends in a SIGKILL at the failpoint. What
// an earlier life left undone may take the place of what was to pass there, so
// a miss, which is a kill too, is tried again.
func (r *rig) kill(when, point, act string) {
	r.t.Helper()
	for range 8 {
		if r.killOnce(when, point, act) {
			r.hits[when+" "+point]++
			return
		}
		r.missed[when+" "+point]++
	}
	r.t.Errorf("%s %s: not reached in 8 conversations:\n%s", when, point, r.stderr)
}

func (r *rig) killOnce(when, point, act string) bool {
	r.t.Helper()
	switch act {
	case "resume": // the claim of a turn that a killed process left open
		r.start("after:commit.assistant:1")
		r.say(r.task())
		if !r.dies(5 * time.Second) {
			r.killNow()
			return false
		}
	case "parked": // a tool row that was stored without its drain
		r.start("")
		tools := r.model.tools()
		r.say(r.task())
		r.await(func() bool { return r.model.tools() > tools })
		r.terminate()
	}
	before := r.hitCount()
	r.start(when + ":" + point + ":1")
	r.act(act)
	if !r.dies(3 * time.Second) {
		r.killNow()
		return false
	}
	if r.hitCount() == before {
		if act != "term" {
			r.t.Errorf("%s %s: the gateway ended by itself:\n%s", when, point, r.stderr)
		}
		return false
	}
	return true
}

func (r *rig) killNow() {
	if err := r.proc.Process.Kill(); err != nil && !r.dead() {
		r.t.Fatal(err)
	}
	<-r.gone
}

func (r *rig) hitCount() int {
	data, err := os.ReadFile(r.hitFile)
	if err != nil {
		return 0
	}
	return bytes.Count(data, []byte("\n"))
}

// act is what people do while the process lives.
func (r *rig) act(act string) {
	tools := r.model.tools()
	running := func() bool { return r.model.tools() > tools || r.dead() }
	switch act {
	case "resume", "parked":
		return
	case "whoami":
		r.tg.Say(alice, alice, "/whoami")
		return
	case "stranger":
		r.tg.Say(stranger+int64(r.n), stranger+int64(r.n), "let me in")
		r.n++
		return
	case "join":
		r.say(r.task())
		r.say(r.text("joined", ""))
		return
	case "long":
		r.say(r.text("long task", ""))
		return
	}
	r.say(r.task())
	if !r.await(running) {
		return
	}
	r.say(r.text("note", ""))
	switch act {
	case "term":
		if err := r.proc.Process.Signal(syscall.SIGTERM); err != nil && !r.dead() {
			r.t.Fatal(err)
		}
	case "edit":
		id := r.say("/queue " + r.text("later", ""))
		r.tg.Edit(alice, alice, id, r.edited("later"))
	case "cancel":
		id := r.say("/queue " + r.text("cancelled", "drop"))
		r.tg.Say(alice, alice, "/cancel", telegramtest.Fields{"reply_to_message": map[string]any{
			"message_id": id, "date": 1, "chat": map[string]any{"id": alice, "type": "private"},
			"from": map[string]any{"id": alice, "first_name": "Alice"}, "text": "x",
		}})
	case "press":
		r.say("/queue " + r.text("pressed", "drop"))
		r.pressAfter(r.tg.Say(alice, alice, "/pending"))
	case "stop":
		r.say("/queue " + r.text("held", "held"))
		r.tg.Say(alice, alice, "/stop")
	case "new":
		r.tg.Say(alice, alice, "/new")
	}
}

func (r *rig) dead() bool { return r.dies(0) }

// pressAfter presses a button of a message newer than id that moves an entry.
func (r *rig) pressAfter(id int) {
	var msg int
	var data string
	r.await(func() bool {
		for _, m := range r.tg.Messages(alice) {
			if m.ID <= id {
				continue
			}
			for _, row := range m.Keyboard {
				for _, b := range row {
					if strings.HasPrefix(b.Data, "queue:") || strings.HasPrefix(b.Data, "now:") || strings.HasPrefix(b.Data, "run:") {
						msg, data = m.ID, b.Data
					}
				}
			}
		}
		return data != "" || r.dead()
	})
	if data != "" && !r.dead() {
		r.tg.Press(alice, msg, alice, data)
	}
}

func (r *rig) task() string { return r.text("task", "") }

// text makes a text that is said once; may is what else than running may become
// of it.
func (r *rig) text(kind, may string) string {
	r.n++
	s := fmt.Sprintf("%s %d.", kind, r.n)
	r.sent[s] = may
	return s
}

// edited is the newest text, changed: either version may be what runs.
func (r *rig) edited(kind string) string {
	old := fmt.Sprintf("%s %d.", kind, r.n)
	delete(r.sent, old)
	r.sent["edited "+old] = "edit:" + old
	return "edited " + old
}

func (r *rig) say(text string) int { return r.tg.Say(alice, alice, text) }

// await waits for a condition, at most two seconds; a process that dies first
// ends the wait too. It reports whether the condition came: what an earlier
// life left open may end the task before (a task that is steered into a turn
// about to answer begins no tool).
func (r *rig) await(cond func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
			if r.dead() {
				return false
			}
		case <-late:
			return false
		}
	}
	return true
}

// settle waits until nothing moves for two seconds: what was unknown has been
// sent again, what waited has run.
func (r *rig) settle() {
	seen, since := -1, time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(3 * time.Minute); ; {
		select {
		case <-late:
			r.t.Errorf("the conversation did not come to rest")
			return
		case <-tick.C:
		}
		unconfirmed, _ := r.tg.Pending()
		now := len(r.model.requests()) + len(r.tg.Messages(alice)) + r.model.busy()*1000
		if now != seen || unconfirmed > 0 {
			seen, since = now, time.Now()
		}
		if time.Since(since) > 2500*time.Millisecond {
			return
		}
	}
}

func (r *rig) report() {
	var b strings.Builder
	for _, p := range killPoints {
		for _, when := range []string{"before", "after"} {
			name := when + " " + p.point
			fmt.Fprintf(&b, "  %-26s %d hit, %d missed\n", name, r.hits[name], r.missed[name])
			if r.hits[name] == 0 && *killCount >= 2*len(killPoints) && *killOnly == "" {
				r.t.Errorf("%s was never hit", name)
			}
		}
	}
	r.t.Logf("%d kills\n%s", *killCount, b.String())
}

var effectLine = regexp.MustCompile(`(?m)^effect (\d+)$`)

// check counts what must be zero.
func (r *rig) check() {
	t := r.t
	ctx := t.Context()
	st, err := store.Open(ctx, r.url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, v := range storetest.Check(ctx, st, nil) {
		t.Errorf("invariant: %s", v)
	}
	finals := r.tally(ctx, st)
	missing := r.finalsMissing(alice, finals)
	t.Logf("calls run again %d; finals %d: missing %d; model requests %d", r.effects(), len(finals), missing, len(r.model.requests()))
	for _, v := range r.model.violations() {
		t.Errorf("model request: %s", v)
	}
	for _, p := range r.tg.Problems() {
		t.Errorf("telegram: %s", p)
	}
}

// tally counts what became of each text that was said, and gives the answers.
func (r *rig) tally(ctx context.Context, st session.Store) []string {
	t := r.t
	lane, err := st.Load(ctx, r.key)
	if err != nil {
		t.Fatal(err)
	}
	times, finals := r.readRows(ctx, st, lane)
	slot := map[string]bool{}
	for _, e := range lane.Slot {
		in := session.DecodeSteer(session.Row{Tick: e.Ticket, Data: e.Data})
		slot[in.Text()] = true
		if !e.Held {
			t.Errorf("ticket %d (%q) still waits", e.Ticket, in.Text())
		}
	}
	lost, twice := 0, 0
	for text, may := range r.sent {
		n := times[text]
		if old, ok := strings.CutPrefix(may, "edit:"); ok {
			n = max(n, times[old])
		}
		if slot[text] || slot[strings.TrimPrefix(may, "edit:")] {
			n++
		}
		switch {
		case n > 1:
			twice++
			t.Errorf("%q was run %d times", text, n)
		case n == 0 && may != "drop":
			lost++
			t.Errorf("%q was lost", text)
		}
	}
	t.Logf("%s: messages %d: lost %d, run twice %d", r.key, len(r.sent), lost, twice)
	return finals
}

// readRows counts each text in the rows of all generations and collects the
// answers.
func (r *rig) readRows(ctx context.Context, st session.Store, lane session.Lane) (map[string]int, []string) {
	times := map[string]int{}
	var finals []string
	for gen := int64(1); gen <= lane.Gen; gen++ {
		rows, err := st.Rows(ctx, lane.Key, gen, 0, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, row := range rows {
			switch row.Type {
			case session.RowUser, session.RowFold:
				for _, in := range session.DecodeUser(row).Inputs {
					times[strings.TrimPrefix(in.Text(), "edited: ")]++
				}
			case session.RowSteer:
				times[strings.TrimPrefix(session.DecodeSteer(row).Text(), "edited: ")]++
			case session.RowAssistant:
				if a := session.DecodeAssistant(row); a.End == session.EndAnswered {
					finals = append(finals, a.Text)
				}
			}
		}
	}
	return times, finals
}

// effects counts tool calls that ran more than once: each writes its number
// into a file of the workspace.
func (r *rig) effects() int {
	again := 0
	files, err := filepath.Glob(filepath.Join(r.files, "*", "effects"))
	if err != nil || len(files) == 0 {
		r.t.Errorf("no tool left a trace: %v", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			r.t.Fatal(err)
		}
		times := map[string]int{}
		for _, m := range effectLine.FindAllStringSubmatch(string(data), -1) {
			if times[m[1]]++; times[m[1]] == 2 {
				again++
				r.t.Errorf("I6: call %s ran twice", m[1])
			}
		}
	}
	return again
}

func (r *rig) finalsMissing(chat int64, finals []string) int {
	var shown []string
	for _, m := range r.tg.Messages(chat) {
		shown = append(shown, m.Text)
	}
	missing := 0
	for _, f := range finals {
		n, marked := 0, 0
		for _, s := range shown {
			if s == f {
				n++
			}
			if strings.HasPrefix(s, "(possible repeat)") && strings.HasSuffix(s, f) {
				marked++
			}
		}
		switch {
		case n+marked == 0:
			missing++
			r.t.Errorf("I9: %q was never sent", f)
		case n > 1:
			r.t.Errorf("I9: %q was sent %d times without a mark", f, n)
		}
	}
	slices.Sort(finals)
	return missing
}
