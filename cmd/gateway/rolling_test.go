//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/modeltest"
	"coxswain/session"
	"coxswain/store/storetest"
	"coxswain/telegramtest"
)

// The earlier version that must run beside this one. Its archive holds what
// building the gateway needs: go.mod, go.sum, and the Go, Lua, SQL and page files
// that go list names in the packages below ./cmd/gateway, tests left out. To pin
// another one, in a clean checkout of it:
//
//	git archive --format=tar COMMIT -- go.mod go.sum $(go list -deps -f '{{if not .Standard}}{{$d := .Dir}}
//	  {{range .GoFiles}}{{$d}}/{{.}} {{end}}{{range .EmbedFiles}}{{$d}}/{{.}} {{end}}{{end}}' ./cmd/gateway |
//	  tr ' ' '\n' | grep "^$PWD/" | sed "s|^$PWD/||" | sort) | gzip -9n > gateway-COMMIT.tar.gz
const (
	pinned        = "4f2063d77e42334ead36307133ab52eb45785e9a"
	pinnedArchive = "testdata/gateway-4f2063d.tar.gz"
)

// untar reads the files of an archive.
func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
}

func pinnedFiles(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open(pinnedArchive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return untar(t, z)
}

// buildPinned builds the earlier version.
func buildPinned(t *testing.T) (bin string) {
	t.Helper()
	src := t.TempDir()
	for name, data := range pinnedFiles(t) {
		path := filepath.Join(src, filepath.FromSlash(name))
		if !filepath.IsLocal(name) {
			t.Fatalf("%s: a file of elsewhere", name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin = filepath.Join(t.TempDir(), "gateway-pinned")
	// As the other binaries are built: what it imports is in the build cache then.
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/gateway")
	cmd.Dir = src
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// TestPinnedArchive: the archive is the pinned commit, where the history that has
// it is at hand. A shallow checkout does not; there the archive stands for itself.
func TestPinnedArchive(t *testing.T) {
	files := pinnedFiles(t)
	if len(files["go.mod"]) == 0 || len(files["cmd/gateway/main.go"]) == 0 {
		t.Fatalf("%d files, but no gateway among them", len(files))
	}
	if exec.Command("git", "cat-file", "-e", pinned+"^{commit}").Run() != nil {
		t.Logf("%s is not in this history", pinned)
		return
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", append([]string{"archive", "--format=tar", pinned, "--"}, slices.Sorted(maps.Keys(files))...)...)
	cmd.Dir = strings.TrimSpace(string(root))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := untar(t, bytes.NewReader(out))
	if !maps.EqualFunc(files, want, bytes.Equal) {
		t.Errorf("the archive is not of %s", pinned)
	}
}

// A rollModel is one scriptModel a conversation, told apart by their system rows,
// which bear a key that only one has.
type rollModel struct {
	mu   sync.Mutex
	each map[string]*scriptModel
}

func (m *rollModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway stopped while it wrote
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req struct{ Messages []json.RawMessage }
	if json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	of := m.each[string(req.Messages[0])]
	if of == nil {
		of = newScriptModel()
		of.n = 1000 * len(m.each) // calls and answers have numbers that nobody else's have
		m.each[string(req.Messages[0])] = of
	}
	m.mu.Unlock()
	of.ServeHTTP(w, r)
}

// moved grows as long as something is asked or answered.
func (m *rollModel) moved() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range m.each {
		n += len(of.requests()) + of.busy()*1000
	}
	return n
}

// check wants each request of a conversation to begin with the one before, byte
// for byte, whichever version sent it (I5, I11), and gives how many there were.
func (m *rollModel) check(t *testing.T) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range m.each {
		for _, v := range of.violations() {
			t.Errorf("model request: %s", v)
		}
		all := of.requests()
		n += len(all)
		for i := 1; i < len(all); i++ {
			if err := modeltest.PrefixOf(all[i-1], all[i]); err != nil {
				t.Errorf("request %d of a conversation does not begin with the one before: %v", i+1, err)
			}
			if !bytes.Equal(all[i-1].Tools, all[i].Tools) {
				t.Errorf("request %d of a conversation offers other tools", i+1)
			}
		}
	}
	return n
}

// A roll is three gateways of which each is replaced in its turn, while people
// write all the time.
type roll struct {
	*fleet
	model *rollModel
	stop  chan struct{}
	chats []*rig

	mu    sync.Mutex
	ships []*ship // those that serve
}

// serving gives one that serves, another for each n.
func (r *roll) serving(n int) *ship {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ships[n%len(r.ships)]
}

// until waits for an event; false when the load is to end or it does not come.
// What was said may have been steered into a turn that was about to answer.
func (r *roll) until(cond func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(4 * time.Second); !cond(); {
		select {
		case <-late:
			return false
		case <-r.stop:
			return false
		case <-tick.C:
		}
	}
	return true
}

// ran is how many calls of a chat left their trace.
func (r *roll) ran(c *rig) int {
	data, _ := os.ReadFile(filepath.Join(c.files, dirName(c.key), "effects")) // none yet
	return bytes.Count(data, []byte("\n"))
}

// say brings a text to a gateway: on Telegram to the one that polls, in the web
// chat to any, and to the next one with the same id if that one ends.
func (r *roll) say(c *rig, text string) {
	if c.key.Platform == "telegram" {
		var id int64
		fmt.Sscan(string(c.key.Chat), &id) // as it was made
		r.tg.Say(id, id, text)
		return
	}
	body, _ := json.Marshal(map[string]string{"id": fmt.Sprintf("message-%04d", c.n), "text": text}) // of strings
	for try := range 200 {
		resp, err := visitor.Post("http://"+r.serving(c.n+try).web+"/api/sessions/"+string(c.key.Chat)+"/messages", "application/json", bytes.NewReader(body))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(20 * time.Millisecond) // nothing tells when another one serves
	}
	r.t.Errorf("no gateway took %q", text)
}

// talk writes until the load ends: a task, and notes while its calls run.
func (r *roll) talk(c *rig) {
	for {
		before := r.ran(c)
		r.say(c, c.task())
		r.until(func() bool { return r.ran(c) > before })
		r.say(c, c.text("note", ""))
		r.until(func() bool { return r.ran(c) > before+1 })
		r.say(c, "/queue "+c.text("later", ""))
		r.until(func() bool { return r.ran(c) > before+3 }) // two of each task
		select {
		case <-r.stop:
			return
		default:
		}
	}
}

// replace ends a gateway as a deployment does and starts another version of it.
func (r *roll) replace(i int, bin string) {
	r.t.Helper()
	r.mu.Lock()
	old := r.ships[i]
	left := slices.DeleteFunc(slices.Clone(r.ships), func(s *ship) bool { return s == old })
	all := r.ships
	r.ships = left
	r.mu.Unlock()
	old.end(syscall.SIGTERM)
	if old.endedWith != nil {
		r.t.Errorf("%s ended with %v; want 0:\n%s", old.name, old.endedWith, &old.stderr)
	}
	s := r.launch(bin, old.name, "", "telegram")
	s.ready()
	r.mu.Lock()
	r.ships = slices.Clone(all)
	r.ships[i] = s
	r.mu.Unlock()
}

// busy waits until every chat ran more calls.
func (r *roll) busy() {
	r.t.Helper()
	before := map[*rig]int{}
	for _, c := range r.chats {
		before[c] = r.ran(c)
	}
	for _, c := range r.chats {
		waitFor(r.t, func() bool { return r.ran(c) > before[c]+1 })
	}
}

// settle waits until nothing moves for a second and a half, longer than a lease
// and what comes after it.
func (r *roll) settle() {
	r.t.Helper()
	seen, since := -1, time.Now()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Since(since) < fleetTTL+1500*time.Millisecond {
		if time.Now().After(deadline) {
			r.t.Fatal("the conversations did not come to rest")
		}
		<-tick.C
		unconfirmed, _ := r.tg.Pending()
		now := r.model.moved()
		for _, c := range r.chats {
			now += r.ran(c)
		}
		if now != seen || unconfirmed > 0 {
			seen, since = now, time.Now()
		}
	}
}

// TestRollingDeploy: three gateways of an earlier version are replaced one after
// another by this one, and back again, while people write and steer. Nothing is
// lost or done twice, and no request's beginning changes (issue 4, item 6; F35).
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	pinned := buildPinned(t)
	built, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	model := &rollModel{each: map[string]*scriptModel{}}
	r := &roll{fleet: newFleetOn(t, model), model: model, stop: make(chan struct{})}
	for i := range 2 {
		id := int64(alice + 1 + i)
		r.tg.AddUser(telegramtest.User{ID: id, FirstName: fmt.Sprint("Person ", i)})
		r.crew = append(r.crew, id)
		r.chats = append(r.chats, &rig{key: session.Key{Platform: "telegram", Chat: session.ChatID(fmt.Sprint(id))}})
	}
	for i := range 3 {
		r.chats = append(r.chats, &rig{key: session.Key{Platform: "web", Chat: session.ChatID(fmt.Sprint("rolling", i))}})
	}
	for _, c := range r.chats {
		c.t, c.tg, c.files, c.sent = t, r.tg, filepath.Join(r.dir, "shared"), map[string]string{}
	}
	for _, name := range []string{"a", "b", "c"} {
		r.ships = append(r.ships, r.launch(pinned, name, "", "telegram"))
	}
	for _, s := range r.ships {
		s.ready()
	}
	var talks sync.WaitGroup
	for _, c := range r.chats {
		talks.Go(func() { r.talk(c) })
	}
	end := sync.OnceFunc(func() { close(r.stop); talks.Wait() })
	defer end()
	r.busy()
	began := time.Now()
	for _, bin := range []string{built, pinned} {
		for i := range r.ships {
			r.replace(i, bin)
			r.busy()
		}
	}
	took := time.Since(began)
	end()
	r.settle()
	for _, s := range r.ships {
		s.end(syscall.SIGTERM)
	}
	st := openStoreAt(t, r.redis)
	for _, v := range storetest.Check(t.Context(), st, nil) {
		t.Errorf("invariant: %s", v)
	}
	said := 0
	for i, c := range r.chats {
		finals := c.tally(t.Context(), st)
		if c.key.Platform == "telegram" {
			c.finalsMissing(r.crew[i+1], finals)
		}
		said += len(c.sent)
	}
	again := r.chats[0].effects()
	stats, err := st.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("six replacements in %v: %d messages, %d steered in, %d requests, calls run again %d", took.Round(10*time.Millisecond), said, stats.Steered, model.check(t), again)
	if stats.Steered == 0 {
		t.Error("nothing was steered")
	}
}
