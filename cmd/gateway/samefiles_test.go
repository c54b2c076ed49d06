//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// marksIn are the nonce files of a directory.
func marksIn(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFilesProved: the first gateway of a store puts the file down, others must
// find it in their own workspace.dir, and adopt says that it is another one now.
func TestFilesProved(t *testing.T) {
	ctx := t.Context()
	st := openStoreAt(t, redistest.Start(t).URL)
	here, there := t.TempDir(), t.TempDir()
	if err := sameFiles(ctx, st, here); !errors.Is(err, errNoMark) {
		t.Errorf("before the first start: %v; want %v", err, errNoMark)
	}
	for range 2 {
		if err := proveFiles(ctx, st, here); err != nil {
			t.Fatal(err)
		}
	}
	marks := marksIn(t, here)
	if len(marks) != 1 {
		t.Fatalf("files %q; want one", marks)
	}
	refused := func(dir, want string) {
		t.Helper()
		for _, f := range []func() error{
			func() error { return proveFiles(ctx, st, dir) },
			func() error { return sameFiles(ctx, st, dir) },
		} {
			if err := f(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gateway workspace adopt") {
				t.Errorf("%v; want %q and the cure", err, want)
			}
		}
	}
	refused(there, "is not the shared one (no "+filepath.Base(marks[0]))
	if left := marksIn(t, there); len(left) > 0 {
		t.Errorf("a refused start left %q", left)
	}
	name := filepath.Join(there, filepath.Base(marks[0]))
	if err := os.WriteFile(name, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(there, "is not the shared one (another "+filepath.Base(marks[0]))

	_, version, err := readMark(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	if err := markFiles(ctx, st, there, version); err != nil {
		t.Fatal(err)
	}
	if err := proveFiles(ctx, st, there); err != nil {
		t.Errorf("after adopt: %v", err)
	}
	refused(here, "is not the shared one")
	// What stands in the store is no path: a name of elsewhere is not followed.
	if _, version, err = st.Doc(ctx, session.FilesDoc); err != nil {
		t.Fatal(err)
	}
	evil := fmt.Sprintf(`{"file":"../%s/%s","nonce":%q}`, filepath.Base(here), filepath.Base(marks[0]), readFile(t, marks[0]))
	if err := st.PutDoc(ctx, session.FilesDoc, version, []byte(evil)); err != nil {
		t.Fatal(err)
	}
	if err := sameFiles(ctx, st, there); err == nil {
		t.Error("a file outside of workspace.dir proves it")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// TestFilesTwoAtOnce: of gateways that start for the first time in one moment one
// puts the file down; the others find it if they see the same directory, and are
// refused if they do not.
func TestFilesTwoAtOnce(t *testing.T) {
	ctx := t.Context()
	server := redistest.Start(t)
	for range 5 {
		server.Flush()
		st := openStoreAt(t, server.URL)
		dirs := []string{t.TempDir(), t.TempDir()}
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = proveFiles(ctx, st, dirs[i%2]) })
		}
		wg.Wait()
		if n := len(marksIn(t, dirs[0])) + len(marksIn(t, dirs[1])); n != 1 {
			t.Fatalf("%d files; want one", n)
		}
		won := 0
		if len(marksIn(t, dirs[1])) > 0 {
			won = 1
		}
		for i, err := range errs {
			if (err == nil) != (i%2 == won) {
				t.Errorf("gateway %d, who sees directory %d: %v; the file is in %d", i, i%2, err, won)
			}
		}
	}
}

// TestFilesAtStart: a gateway with a workspace.dir of its own does not start, check
// says so with the cure, and the cure helps. With the embedded store there is
// nothing to prove.
func TestFilesAtStart(t *testing.T) {
	workIn(t)
	url := redistest.Start(t).URL
	conf := func(store, dir string) {
		writeConfig(t, fmt.Sprintf("platforms: {web: {listen: \"\"}}\nops: {listen: \"\"}\nstore: {url: %q}\nworkspace: {dir: %q}\n", store, dir))
	}
	conf(url, "data/a")
	if code, out, _ := shell(t, "check"); code != 0 || !strings.Contains(out, "ok    workspace  data/a") {
		t.Errorf("check before the first start: %d\n%s", code, out)
	}
	if err := os.MkdirAll("data/a", 0o700); err != nil {
		t.Fatal(err)
	}
	if found := marksIn(t, "data/a"); len(found) > 0 {
		t.Errorf("check left %q", found)
	}
	if err := proveFiles(t.Context(), openStoreAt(t, url), "data/a"); err != nil {
		t.Fatal(err)
	}
	conf(url, "data/b")
	code, _, stderr := shell(t, "run")
	oneLine(t, code, stderr, "data/b is not the shared one")
	if code, out, _ := shell(t, "check"); code != 1 || !strings.Contains(out, "FAIL  workspace  workspace.dir: ") || !strings.Contains(out, "gateway workspace adopt") {
		t.Errorf("check with another directory: %d\n%s", code, out)
	}
	if code, out, errs := shell(t, "workspace", "adopt"); code != 0 || !strings.Contains(out, "data/b is from now on") {
		t.Errorf("adopt: %d, %s%s", code, out, errs)
	}
	if code, out, _ := shell(t, "check"); code != 0 {
		t.Errorf("check after adopt: %d\n%s", code, out)
	}
	conf("sqlite:data/gateway.db", "data/c")
	if code, out, errs := shell(t, "workspace", "adopt"); code != 0 || strings.TrimSpace(out) != textAdoptNothing {
		t.Errorf("adopt without Redis: %d, %s%s", code, out, errs)
	}
	if err := proveFiles(t.Context(), openStoreAt(t, "sqlite:data/gateway.db"), "data/c"); err != nil || len(marksIn(t, "data/c")) > 0 {
		t.Errorf("the embedded store: %v, %q; want nothing", err, marksIn(t, "data/c"))
	}
	code, _, stderr = shell(t, "workspace", "move")
	oneLine(t, code, stderr, "usage: gateway workspace adopt")
}

// TestReplicaFiles: what a session wrote in its first turn on one gateway is sent
// by its second turn on another.
func TestReplicaFiles(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a := f.start("a", "telegram")
	f.start("b", "telegram")
	waitFor(t, func() bool { return !f.polled("a", time.Time{}).IsZero() })
	f.tg.Say(alice, alice, "run echo the report of march > report.txt")
	waitFor(t, func() bool { return f.answers("Answered run") == 1 })
	a.end(syscall.SIGKILL)
	f.tg.Say(alice, alice, "send report.txt")
	waitFor(t, func() bool { return f.answers("Answered send") == 1 })
	var got [][]byte
	for _, m := range f.tg.Messages(alice) {
		if m.Kind == "document" {
			got = append(got, m.Data)
		}
	}
	if len(got) != 1 || !bytes.Equal(got[0], []byte("the report of march\n")) {
		t.Errorf("files that were sent: %q; want the report", got)
	}
}

// TestFilesProofIsSmall: what stands in the nonce file's place can neither hold the
// start up nor fill the memory.
func TestFilesProofIsSmall(t *testing.T) {
	dir := t.TempDir()
	m := filesMark{File: ".gateway-x", Nonce: "0123456789abcdef"}
	path := filepath.Join(dir, m.File)
	var writer *os.File
	defer func() { _ = writer.Close() }()
	for _, c := range []struct {
		name string
		put  func() error
	}{
		{"a pipe", func() error { return syscall.Mkfifo(path, 0o600) }},
		{"a pipe that somebody writes to", func() error {
			err := syscall.Mkfifo(path, 0o600)
			if err == nil {
				writer, err = os.OpenFile(path, os.O_RDWR, 0)
			}
			return err
		}},
		{"a pipe behind a link", func() error {
			return errors.Join(syscall.Mkfifo(path+"2", 0o600), os.Symlink(m.File+"2", path))
		}},
		{"a directory", func() error { return os.Mkdir(path, 0o700) }},
		{"a link out of it", func() error { return os.Symlink("/dev/zero", path) }},
		{"a gigabyte that begins right", func() error {
			return errors.Join(os.WriteFile(path, []byte(m.Nonce+"\n"), 0o600), os.Truncate(path, 1<<30))
		}},
		{"a gigabyte of spaces", func() error {
			return errors.Join(os.WriteFile(path, bytes.Repeat([]byte(" "), 1<<20), 0o600), os.Truncate(path, 1<<30))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.put(); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := make(chan error, 1)
			go func() { got <- m.in(dir) }()
			select {
			case err := <-got:
				if err == nil || !strings.Contains(err.Error(), "workspace.dir: ") {
					t.Errorf("%v; want it refused", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it is still being read")
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("%d bytes for it", n)
			}
		})
	}
}
