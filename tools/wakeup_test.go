package tools

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStopWhileShown: whoever is shown output may hang; the tree dies at the stop all the
// same, and only the result waits.
func TestStopWhileShown(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	hangs, release := make(chan struct{}, 1), make(chan struct{})
	r := s.Start(ctx, Call{Name: "terminal", Dir: dir, Admin: true, Args: args(t, "command", `echo shown; `+trees[1].command),
		Progress: func(string) { hangs <- struct{}{}; <-release }})
	tree := pids(t, dir, 3)
	wait(t, hangs, "the first output")
	cancel(errStop)
	eventually(t, "the tree's end", allDead(tree))
	select {
	case <-r.Done():
		t.Error("the call has ended while its output is still being shown")
	default:
	}
	close(release)
	wait(t, r.Done(), "the call")
}

// TestPanicWhileShown: a fault of whoever is shown output ends neither the gateway nor leaves
// the command behind.
func TestPanicWhileShown(t *testing.T) {
	var log bytes.Buffer
	s, dir := newSet(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}), t.TempDir()
	r := s.Start(t.Context(), Call{Name: "terminal", Dir: dir, Admin: true,
		Progress: func(string) { write(t, dir, "go", ""); panic("boom") },
		Args:     args(t, "command", `sleep 1000 & echo $! > pids; echo shown; until [ -e go ]; do :; done`)})
	tree := pids(t, dir, 1)
	wait(t, r.Done(), "the call")
	if got := r.Result(); !got.Failed || got.Body != fmt.Sprintf(wordCrashed, `"terminal"`) || !strings.Contains(log.String(), "boom") {
		t.Errorf("got %+v and the log %q", got, log.String())
	}
	if alive(tree[0]) {
		t.Error("its process lives on")
	}
}

// TestStopWhileDraining: a command that has ended, but whose output a stranger holds open, does
// not make a stop wait; no tick and no limit ends the wait but the stop itself.
func TestStopWhileDraining(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	out := &capture{}
	done := make(chan ending, 1)
	go func() {
		done <- run(ctx, command{
			argv: []string{"/bin/sh", "-c", "echo $$ > x; mv x pids; until [ -e go ]; do :; done"}, dir: dir,
			env: shellEnv(dir, os.Getenv), timeout: time.Hour, out: out, drain: time.Hour,
		})
	}()
	leader := pids(t, dir, 1)[0]
	w, err := os.OpenFile(procFile(leader, "fd/1"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write(t, dir, "go", "")
	eventually(t, "the shell's end", func() bool { return !alive(leader) })
	cancel(errStop)
	select {
	case <-done:
	case <-time.After(waitLimit):
		t.Fatal("the stop waits for the pipe")
	}
}

// TestNoDescriptorsLeft: calls of every kind and every end leave no descriptor open.
func TestNoDescriptorsLeft(t *testing.T) {
	s, dir := newSet(t, Options{}), trap(t)
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	all := func() {
		for _, name := range []string{"a.txt", "out.txt", "pipe", "sub", "loop", "proc", "nope", "dangling"} {
			do(t, s, dir, "read_file", "path", name)
			do(t, s, dir, "edit_file", "path", name, "old", "inside", "new", "inside ")
			do(t, s, dir, "list_files", "path", name)
			do(t, s, dir, "search_files", "path", name, "pattern", "x")
			do(t, s, dir, "write_file", "path", name+"/x", "content", "x")
		}
		do(t, s, dir, "terminal", "command", "seq 1 20000; sleep 1000 &")
		do(t, s, dir+"/gone", "terminal", "command", "true")
		run(t.Context(), command{argv: []string{"/no/such/shell"}, dir: dir, out: &capture{}, timeout: time.Hour})
		stopOnce(t, s, dir, nil)
	}
	all() // what is opened once and for all
	before := count()
	for range 5 {
		all()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, then %d", before, after)
	}
}
