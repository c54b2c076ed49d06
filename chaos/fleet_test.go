//go:build linux

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/store/redis/redistest"
	"coxswain/telegramtest"
)

const (
	// ttl is the lease: short, so that there are many take-overs.
	ttl      = time.Second
	replicas = 3
	// persons write in a private chat each: person i is user and chat firstChat+i.
	firstChat = 1000
	stranger  = 5_000_000
	secret    = "a-secret-of-the-webhook"
)

// A fleet is the gateways of a run and the world around them.
type fleet struct {
	t       *testing.T
	name    string
	dir     string // kept when something was found
	bin     string
	webhook bool
	seed    uint64
	kinds   []string   // of faults that strike
	rng     *rand.Rand // of the goroutine that draws the faults
	redis   *redistest.Server
	tg      *telegramtest.Server
	model   *model
	ships   []*ship
	log     *journal
	people  []*person

	mu         sync.Mutex
	armed      map[string]bool // failpoints that wait to be passed
	deliveries int             // requests to the webhooks
}

// A ship is one gateway and how it is reached. It belongs to the goroutine that
// draws the faults.
type ship struct {
	f       *fleet
	name    string
	dir     string
	line    *line
	hook    string // where its webhook listens
	cmd     *exec.Cmd
	gone    chan struct{}
	began   time.Time
	point   string    // the failpoint it was started with, "" = none
	patient time.Time // when it is killed although it has not passed it
	until   time.Time // when what is wrong with its line or itself ends
	stopped bool      // by SIGSTOP
	leaves  bool      // by SIGTERM
	logged  int64     // bytes in its log before this life
	hits    int       // failpoints passed in earlier lives
}

func newFleet(t *testing.T, bin string, webhook bool, seed uint64, people int) *fleet {
	t.Helper()
	name := map[bool]string{false: "polling", true: "webhook"}[webhook]
	dir, err := os.MkdirTemp("", "chaos-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, name: name, dir: dir, bin: bin, webhook: webhook, seed: seed, kinds: faults, rng: rand.New(rand.NewPCG(seed, 0)),
		redis: redistest.Start(t), tg: telegramtest.New(), log: &journal{}, armed: map[string]bool{}}
	f.model = newModel(f.log, filepath.Join(dir, "effects"))
	api, llm := httptest.NewServer(f.tg), httptest.NewServer(f.model)
	t.Cleanup(api.Close)
	t.Cleanup(llm.Close)
	if err := os.Mkdir(filepath.Join(dir, "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	var admins []string
	for i := range people {
		f.tg.AddUser(telegramtest.User{ID: firstChat + int64(i), FirstName: fmt.Sprintf("Person %d", i)})
		admins = append(admins, fmt.Sprint(firstChat+i))
		f.people = append(f.people, newPerson(f, i))
	}
	for i := range replicas {
		s := &ship{f: f, name: fmt.Sprintf("r%d", i+1), hook: freeAddr(t), gone: make(chan struct{})}
		s.dir = filepath.Join(dir, s.name)
		s.line = newLine(t, s.name, f.redis.Addr)
		close(s.gone)
		f.configure(s, api.URL, llm.URL, strings.Join(admins, ", "))
		f.ships = append(f.ships, s)
	}
	t.Cleanup(func() {
		for _, s := range f.ships {
			s.kill()
		}
	})
	return f
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (f *fleet) configure(s *ship, api, llm, admins string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Join(s.dir, "data"), 0o700); err != nil {
		f.t.Fatal(err)
	}
	// All see one directory of workspaces; the one above it is each gateway's own.
	if err := os.Symlink(filepath.Join(f.dir, "shared"), filepath.Join(s.dir, "data", "workspace")); err != nil {
		f.t.Fatal(err)
	}
	mode := "mode: polling"
	if f.webhook {
		mode = fmt.Sprintf("mode: webhook, webhook: {listen: %q, url: \"https://bot.example/hook\", secret: %q}", s.hook, secret)
	}
	conf := fmt.Sprintf(`
platforms:
  telegram: {token: %q, api_url: %q, admins: [%s], pairing: "on", %s}
  web: {listen: ""}
model: {base_url: %q, api_key: key, name: scripted, context_window: 1000000}
store: {url: %q}
workspace: {dir: %q}
input: {join_window: 300ms}
steer: {yield_after: 400ms}
lease: {ttl: %s}
outbox: {unknown_after: 1s}
limits: {drain: 3s, spend: {turn: 1000000000}}
ops: {listen: ""}
`, telegramtest.Token, api, admins, mode, llm+"/v1", s.line.url(), filepath.Join(s.dir, "data", "workspace"), ttl)
	if err := os.WriteFile(filepath.Join(s.dir, "config.yaml"), []byte(conf), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// start starts the gateway; it dies when it passes the failpoint, "" = none.
func (s *ship) start(failpoint string) {
	s.f.t.Helper()
	out, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.f.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(s.f.bin, "run", "--config", filepath.Join(s.dir, "config.yaml"))
	cmd.Dir, cmd.Stderr = s.dir, out
	cmd.Env = append(os.Environ(), "GATEWAY_FAILPOINT="+failpoint, "GATEWAY_FAILPOINT_LOG="+filepath.Join(s.dir, "hits"))
	// A test that is killed leaves nothing behind that would poison the next run.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if size, err := out.Seek(0, io.SeekEnd); err == nil {
		s.logged = size
	}
	s.hits = s.passes()
	if err := cmd.Start(); err != nil {
		s.f.t.Fatal(err)
	}
	gone := make(chan struct{})
	s.cmd, s.gone, s.began, s.stopped, s.leaves = cmd, gone, time.Now(), false, false
	go func() {
		defer close(gone)
		_ = cmd.Wait() // it is killed
	}()
}

func (s *ship) signal(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig) // it may be gone
}

// kill ends it, also while it is stopped.
func (s *ship) kill() {
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGKILL)
	<-s.gone
}

// served reports whether it came so far in this life that it stops in order.
func (s *ship) served() bool {
	data, err := os.ReadFile(filepath.Join(s.dir, "log"))
	return err == nil && bytes.Contains(data[s.logged:], []byte("msg=stopping"))
}

func (s *ship) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// passed reports whether it has passed its failpoint in this life.
func (s *ship) passed() bool {
	return s.passes() > s.hits
}

// passes counts the failpoints passed in all its lives.
func (s *ship) passes() int {
	data, err := os.ReadFile(filepath.Join(s.dir, "hits"))
	if err != nil {
		return 0 // none yet
	}
	return bytes.Count(data, []byte("\n"))
}

// balance is the webhook as Telegram has it: each update goes to gateways at
// random, one to three times at once, and to others until one has taken it. A
// gateway that is stopped may have it, and delivers it when it goes on.
func (f *fleet) balance(w http.ResponseWriter, r *http.Request) {
	body := new(bytes.Buffer)
	if _, err := body.ReadFrom(r.Body); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	for r.Context().Err() == nil {
		copies := 1 + rand.IntN(3)
		took := make(chan bool, copies)
		for range copies {
			s := f.ships[rand.IntN(len(f.ships))]
			go func() { took <- push(r.Context(), s.hook, r.Header, body.Bytes()) }()
		}
		ok := false
		for range copies {
			ok = <-took || ok
		}
		f.mu.Lock()
		f.deliveries += copies
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

var pusher = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func push(ctx context.Context, addr string, h http.Header, body []byte) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/", bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header = h.Clone()
	resp, err := pusher.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
