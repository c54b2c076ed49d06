package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// helperVar makes the test binary play a process of its own, "role:directory":
//
//	gateway  runs one shell command and waits to be killed (TestGatewayDeath)
//	guarded  the same with a guardian and a life (life_test.go)
//	bare,
//	shielded run probe, without and with Shield, and print what it says (shield_test.go)
//	init     adopts orphans, as the first process of a container does, runs a command that
//	         leaves some, and reports what became of them (TestOrphansReaped)
const helperVar = "COXSWAIN_TEST_ROLE"

func TestMain(m *testing.M) {
	Guard()
	switch role, dir, _ := strings.Cut(os.Getenv(helperVar), ":"); role {
	case "gateway":
		New(Options{}).Start(context.Background(), Call{
			Name: "terminal", Admin: true, Dir: dir,
			Args: json.RawMessage(`{"command":"echo $$ > pid.tmp; mv pid.tmp pid; sleep 1000; true"}`),
		})
		select {}
	case "guarded":
		playGateway(dir, guardedCommand)
		select {}
	case "bare", "shielded":
		playProbe(role == "shielded", dir)
		os.Exit(0)
	case "init":
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		r := New(Options{}).Start(context.Background(), Call{
			Name: "terminal", Admin: true, Dir: dir,
			Args: json.RawMessage(`{"command":"(setsid sleep 1000 &); (sleep 1000 &); (true &); true"}`),
		})
		<-r.Done()
		fmt.Println(r.Result().Body)
		for _, p := range processTable() {
			if p.ppid == os.Getpid() {
				fmt.Printf("child left: %+v\n", p)
			}
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// waitLimit bounds every wait of a test: far above what a busy machine needs.
const waitLimit = 20 * time.Second

func newSet(t testing.TB, o Options) *Set {
	t.Helper()
	s := New(o)
	t.Cleanup(func() {
		cleanup, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		s.Close(cleanup)
	})
	return s
}

// args builds a JSON object of pairs.
func args(t testing.TB, pairs ...any) json.RawMessage {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// do runs one call as an admin and waits for its result.
func do(t testing.TB, s *Set, dir, tool string, pairs ...any) Result {
	t.Helper()
	r := s.Start(t.Context(), Call{ID: "c1", Name: tool, Args: args(t, pairs...), Session: "s", Dir: dir, Admin: true})
	wait(t, r.Done(), tool)
	return r.Result()
}

func wait(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(waitLimit):
		t.Fatalf("%s: not done after %s", what, waitLimit)
	}
}

// eventually polls a condition of the outside world (the process table, a file).
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	limit := time.After(waitLimit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not so after %s", what, waitLimit)
		}
	}
}

func alive(pid int) bool {
	p, ok := readProcess(pid)
	return ok && !p.dead()
}

// pids waits until a command has written n process ids to the file "pids" of its workspace.
func pids(t testing.TB, dir string, n int) []int {
	t.Helper()
	var found []int
	eventually(t, fmt.Sprintf("%d pids", n), func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "pids"))
		if !strings.HasSuffix(string(data), "\n") {
			return false
		}
		fields := strings.Fields(string(data))
		found = found[:0]
		for _, f := range fields {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatalf("pids holds %q", data)
			}
			found = append(found, pid)
		}
		return len(found) >= n
	})
	for _, pid := range found {
		if !alive(pid) {
			t.Fatalf("pid %d is dead before the test begins", pid)
		}
	}
	return found
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
