package tools

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func newLife(t testing.TB, dir string) *Life {
	t.Helper()
	l, err := OpenLife(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// guardedCommand starts processes in every way in which they get away while their shell lives:
// in its group, in sessions of their own, orphaned, and without an environment.
const guardedCommand = `
sleep 1000 & a=$!
setsid bash -c 'echo $$ > own; exec sleep 1000' &
(setsid bash -c 'echo $$ > orphan; exec sleep 1000' &)
env -i setsid bash -c 'echo $$ > unmarked; exec sleep 1000' &
until [ -s own ] && [ -s orphan ] && [ -s unmarked ]; do :; done
echo $$ $a $(cat own orphan unmarked) > pids; wait`

const guardedCount = 5

// playGateway is a gateway with one running command, until it is killed.
func playGateway(dir, command string) {
	life, err := OpenLife(filepath.Join(dir, "data"))
	if err != nil {
		panic(err)
	}
	raw, _ := json.Marshal(terminalArgs{Command: command})
	New(Options{Life: life}).Start(context.Background(), Call{Name: "terminal", Admin: true, Dir: dir, Args: raw})
}

// startGuarded starts a gateway and returns it with the pids of its command's tree.
func startGuarded(t *testing.T, dir string) (gateway *exec.Cmd, tree []int) {
	t.Helper()
	gateway = exec.Command(os.Args[0])
	gateway.Env = append(os.Environ(), helperVar+"=guarded:"+dir)
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gateway.Process.Kill(); _ = gateway.Wait() })
	tree = pids(t, dir, guardedCount)
	t.Cleanup(func() {
		for _, pid := range tree {
			if t.Failed() { // else they are dead, and their ids may be others'
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return gateway, tree
}

func kill9(t *testing.T, gateway *exec.Cmd) {
	t.Helper()
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gateway.Wait()
}

// guardianOf returns the pid of a process's guardian, 0 if it has none.
func guardianOf(pid int) int {
	for _, p := range processTable() {
		if p.ppid == pid && !p.dead() {
			if args, _ := os.ReadFile(procFile(p.pid, "cmdline")); string(args) == guardianName+"\x00" {
				return p.pid
			}
		}
	}
	return 0
}

func allDead(tree []int) func() bool {
	return func() bool {
		for _, pid := range tree {
			if alive(pid) {
				return false
			}
		}
		return true
	}
}

// TestGatewayKilled: a gateway that is killed with SIGKILL leaves nothing of its commands
// alive, whatever they did to get away.
func TestGatewayKilled(t *testing.T) {
	dir := t.TempDir()
	gateway, tree := startGuarded(t, dir)
	kill9(t, gateway)
	eventually(t, "the end of the tree", allDead(tree))
}

// TestNextLife: where the guardian died too, the next process ends what is left, and nothing
// that only resembles it; beside a gateway that lives it ends nothing.
func TestNextLife(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	gateway, tree := startGuarded(t, dir)

	beside := newLife(t, data)
	if beside.Ended() != 0 || allDead(tree[:1])() {
		t.Fatalf("a process beside ended %d of a living gateway's", beside.Ended())
	}
	beside.Close()

	guardian := guardianOf(gateway.Process.Pid)
	if guardian == 0 {
		t.Fatal("no guardian")
	}
	_ = syscall.Kill(guardian, syscall.SIGKILL)
	eventually(t, "the guardian's end", func() bool { return !alive(guardian) })
	kill9(t, gateway)
	for _, pid := range tree {
		if !alive(pid) {
			t.Fatalf("pid %d is dead without a guardian: the test shows nothing", pid)
		}
	}

	records, err := os.ReadDir(filepath.Join(data, livesDir))
	if err != nil || len(records) != 1 || !isToken(records[0].Name()) {
		t.Fatalf("got %v, %v; want the record of one life", records, err)
	}
	mark := lifeName + "=" + records[0].Name()
	var strangers []int
	for _, env := range [][]string{
		{mark + "A"}, {"X" + mark}, {"X=" + mark}, {mark[:len(mark)-1]}, {"X=a\n" + mark},
		{lifeName + "=" + strings.Repeat("A", 26)}, nil,
	} {
		stranger := exec.Command("sh", "-c", "read x; # "+mark)
		stranger.Env = env
		pipe, err := stranger.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := stranger.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pipe.Close(); _ = stranger.Wait() })
		strangers = append(strangers, stranger.Process.Pid)
	}
	// A record that is none, and one of a name an attacker could like.
	write(t, data, livesDir+"/notes", "")
	write(t, data, livesDir+"/..x", mark)

	next := newLife(t, data)
	if got := next.Ended(); got != guardedCount {
		t.Errorf("ended %d; want %d", got, guardedCount)
	}
	if !allDead(tree)() {
		t.Error("one of the tree lives on")
	}
	for i, pid := range strangers {
		if !alive(pid) {
			t.Errorf("stranger %d was ended", i)
		}
	}
	if _, err := os.Stat(filepath.Join(data, livesDir, records[0].Name())); !os.IsNotExist(err) {
		t.Errorf("the record is still there: %v", err)
	}
}

// TestLifeOrderly: a gateway that ends in order leaves no guardian and no record, and one
// whose guardian was killed has a new one at the next call.
func TestLifeOrderly(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	life := newLife(t, data)
	s := newSet(t, Options{Life: life})
	do(t, s, dir, "terminal", "command", "true")
	first := guardianOf(os.Getpid())
	do(t, s, dir, "terminal", "command", "true")
	if again := guardianOf(os.Getpid()); first == 0 || again != first {
		t.Errorf("guardians %d, then %d; want one for all calls", first, again)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		eventually(t, "the guardian to be ready", func() bool {
			data, _ := os.ReadFile(procFile(first, "status"))
			_, mask, _ := strings.Cut(string(data), "SigIgn:\t")
			ignored, _ := strconv.ParseUint(mask[:min(16, len(mask))], 16, 64)
			const terminal = 1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGQUIT-1) | 1<<(syscall.SIGTERM-1)
			return ignored&terminal == terminal
		})
		_ = syscall.Kill(first, sig)
	}
	do(t, s, dir, "terminal", "command", "true")
	if again := guardianOf(os.Getpid()); again != first {
		t.Errorf("guardian %d became %d: a polite signal ended it", first, again)
	}
	_ = syscall.Kill(first, syscall.SIGKILL)
	eventually(t, "the guardian's end", func() bool { return !life.guardian.alive() })
	do(t, s, dir, "terminal", "command", "true")
	second := guardianOf(os.Getpid())
	if second == 0 || second == first {
		t.Errorf("guardian %d after %d was killed; want a new one", second, first)
	}
	s.Close(t.Context())
	life.Close()
	life.Close()
	if alive(second) {
		t.Error("the guardian outlives its gateway's orderly end")
	}
	if left, err := os.ReadDir(filepath.Join(data, livesDir)); err != nil || len(left) != 0 {
		t.Errorf("records left: %v, %v", left, err)
	}
}

// TestLifeRefused: a directory that cannot hold a record is said, not passed over.
func TestLifeRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, livesDir, "a file where the directory goes")
	if l, err := OpenLife(dir); err == nil {
		l.Close()
		t.Error("opened")
	}
}

// TestGuardianReads: a guardian acts on a whole mark and on nothing else, and not when it was
// dismissed. What it would kill is this command.
func TestGuardianReads(t *testing.T) {
	dir := t.TempDir()
	life := newLife(t, t.TempDir())
	s := newSet(t, Options{Life: life})
	r := s.Start(t.Context(), Call{Name: "terminal", Dir: dir, Admin: true, Args: args(t, "command", "echo $$ > pids; sleep 1000; true")})
	tree := pids(t, dir, 1)
	for _, said := range []string{"", life.mark, "\n", lifeName + "=\n", "X" + life.mark + "\n", life.mark + "\n" + dismissed} {
		keepGuard(strings.NewReader(said))
		if !alive(tree[0]) {
			t.Fatalf("%q: the command is dead", said)
		}
	}
	keepGuard(strings.NewReader(life.mark + "\n" + dismissed[:3]))
	wait(t, r.Done(), "the call")
	if alive(tree[0]) {
		t.Error("the command lives on after its gateway's end")
	}
}

// BenchmarkStart is a call of a command that does nothing, with a life and without.
func BenchmarkStart(b *testing.B) {
	for name, life := range map[string]*Life{"life": newLife(b, b.TempDir()), "none": nil} {
		b.Run(name, func(b *testing.B) {
			s, dir := newSet(b, Options{Life: life}), b.TempDir()
			for b.Loop() {
				do(b, s, dir, "terminal", "command", ":")
			}
		})
	}
}

// TestInsideEarlierLife: a gateway that was started from a command of an earlier life ends what
// is left of that life, but not itself.
func TestInsideEarlierLife(t *testing.T) {
	dir := t.TempDir()
	token := strings.Repeat("B", 26)
	write(t, dir, "data/"+livesDir+"/"+token, "")
	left := exec.Command("sleep", "1000")
	left.Env = []string{lifeName + "=" + token}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(lifeName, token)
	startGuarded(t, dir) // has its mark, and comes so far as to run a command
	_ = left.Wait()      // ended
}
