// Package redistest starts real Redis servers for tests: one process on a free
// port of the loopback with its own directory, keeping what it acknowledged
// (appendonly yes, appendfsync always), which a test can kill and start again.
//
// A machine without redis-server fails the test: a store that was not tested
// must not look tested. The server ends with the test, and also when the test
// process dies. The only goroutines are those of os/exec, which end with it.
package redistest

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is one redis-server. Its methods may be called from the goroutine of
// the test only.
type Server struct {
	URL  string // redis://127.0.0.1:port
	Addr string // 127.0.0.1:port

	t        testing.TB
	dir      string
	args     []string
	cmd      *exec.Cmd
	stdin    io.Closer              // held open: the server's keeper ends when it closes
	pid      int                    // 0 = not running
	ready    func(line string) bool // whether a line of its log says that it serves
	lines    *bufio.Scanner
	out      io.Reader
	sentinel bool // its port is in its file
}

// missing is what a developer reads on a machine without Redis.
const missing = "redis-server is not installed, and this test needs a real one: install redis-server (7.0 or newer) and run it again"

// Start starts a server. More settings come as "name value" and win over the
// defaults.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	return start(t, "Ready to accept connections", settings)
}

func start(t testing.TB, ready string, settings []string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal(missing)
	}
	s := &Server{t: t, dir: t.TempDir(), ready: func(line string) bool { return strings.Contains(line, ready) }}
	t.Cleanup(s.stop)
	for _, set := range append([]string{
		"bind 127.0.0.1", "dir " + s.dir, "appendonly yes", "appendfsync always", "save ''",
		"maxmemory-policy noeviction", "databases 1", "enable-debug-command local", "repl-diskless-sync-delay 0",
	}, settings...) {
		name, value, _ := strings.Cut(set, " ")
		s.args = append(s.args, "--"+name, strings.Trim(value, "'"))
	}
	for range 5 { // another process may take the port before the server does
		s.Addr = freeAddr(t)
		if s.start() {
			s.URL = "redis://" + s.Addr
			return s
		}
	}
	t.Fatal("redis-server found no free port in five tries")
	return nil
}

func freeAddr(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// keeper runs the server and kills it when its own stdin ends, which happens
// also when the test process is killed.
const keeper = `redis-server "$@" & echo "server pid $!"; cat >/dev/null; kill -9 $! 2>/dev/null; wait $!`

// start runs the server and waits until it serves; false if it could not.
func (s *Server) start() bool { return s.launch() && s.await() }

// launch runs the server.
func (s *Server) launch() bool {
	_, port, _ := net.SplitHostPort(s.Addr)
	args := append([]string{"-c", keeper, "sh"}, s.args...)
	if !s.sentinel {
		args = append(args, "--port", port)
	}
	s.cmd = exec.Command("sh", args...)
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stdin, s.out, s.lines = stdin, out, bufio.NewScanner(out)
	if s.lines.Scan() {
		n, _ := strings.CutPrefix(s.lines.Text(), "server pid ")
		s.pid, _ = strconv.Atoi(n)
	}
	return s.pid != 0
}

// await waits until the server serves.
func (s *Server) await() bool {
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), "Failed listening") {
			break
		}
		if s.ready(s.lines.Text()) {
			go io.Copy(io.Discard, s.out) // ends when the server does
			return true
		}
	}
	s.stop()
	return false
}

func (s *Server) stop() {
	if s.cmd == nil {
		return
	}
	s.stdin.Close()
	s.cmd.Wait()
	s.cmd, s.pid = nil, 0
}

// Kill9 kills the server without a word to anyone.
func (s *Server) Kill9() {
	s.t.Helper()
	if s.pid == 0 {
		s.t.Fatal("redistest: the server is not running")
	}
	if err := syscall.Kill(s.pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.stop()
}

// Restart starts the server again on the same port and the same files, and
// waits until it has read them.
func (s *Server) Restart() {
	s.t.Helper()
	if s.pid != 0 {
		s.Kill9()
	}
	if !s.start() {
		s.t.Fatal("redistest: the server did not come back")
	}
}

// Do sends one command of the operator's kind, as redis-cli would.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	defer c.Close()
	v, err := c.Do(ctx, args...).Result()
	if err != nil {
		s.t.Fatalf("redis %v: %v", args, err)
	}
	return v
}

// Set changes a setting of the running server.
func (s *Server) Set(name, value string) {
	s.t.Helper()
	s.Do("CONFIG", "SET", name, value)
}

// Flush loses all data, as a server that came back empty has.
func (s *Server) Flush() {
	s.t.Helper()
	s.Do("FLUSHALL")
}

// FlushScripts empties the script cache, as a restart or a failover does.
func (s *Server) FlushScripts() {
	s.t.Helper()
	s.Do("SCRIPT", "FLUSH")
}

// Prefix gives a key prefix no other test uses.
func Prefix(t testing.TB) string {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("t%s", hex.EncodeToString(b))
}

// Snapshot copies the server's files; Restore puts them back, which loses what
// was written since, as a server does that had not synced.
func (s *Server) Snapshot() (dir string) {
	s.t.Helper()
	dir = s.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// Restore is for a server that does not run.
func (s *Server) Restore(dir string) {
	s.t.Helper()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
	if err := os.CopyFS(s.dir, os.DirFS(dir)); err != nil {
		s.t.Fatal(err)
	}
}
