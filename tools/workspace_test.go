package tools

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const outside = "TOP-SECRET-OUTSIDE"

// trap builds a workspace with everything in it that leads elsewhere or hangs, next to a
// secret, and returns its directory.
func trap(t testing.TB) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "ws")
	write(t, top, "secret.txt", outside)
	write(t, top, "ws-sibling/secret.txt", outside)
	write(t, dir, "a.txt", "inside\n")
	write(t, dir, "sub/b.txt", "inside b\n")
	links := map[string]string{
		"out.txt": "../secret.txt", "abs.txt": filepath.Join(top, "secret.txt"), "outdir": "..",
		"sub/up": "../..", "loop": "loop", "proc": "/proc/self/root", "in.txt": "a.txt", "indir": "sub", "dangling": "nowhere",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPaths(t *testing.T) {
	dir := trap(t)
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(dir, alias); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", maxPath+1)
	tests := []struct{ path, want string }{
		{"a.txt", "inside\n"},
		{"./sub/../a.txt", "inside\n"},
		{"~/a.txt", "inside\n"},
		{"in.txt", "inside\n"},
		{"indir/b.txt", "inside b\n"},
		{dir + "/sub/b.txt", "inside b\n"},
		{"", wordPathEmpty},
		{"  ", wordPathEmpty},
		{long, fmt.Sprintf(wordPathLong, len(long), maxPath)},
		{"a\x00b", fmt.Sprintf(wordPathNul, `"a\x00b"`)},
		{"../secret.txt", fmt.Sprintf(wordPathOutside, `"../secret.txt"`)},
		{"sub/../../secret.txt", fmt.Sprintf(wordPathOutside, `"sub/../../secret.txt"`)},
		{"~/../secret.txt", fmt.Sprintf(wordPathOutside, `"~/../secret.txt"`)},
		{"/etc/passwd", fmt.Sprintf(wordPathOutside, `"/etc/passwd"`)},
		{dir + "-sibling/secret.txt", fmt.Sprintf(wordPathOutside, quote(dir+"-sibling/secret.txt"))},
		{"out.txt", fmt.Sprintf(wordPathLinkOut, `"out.txt"`)},
		{"abs.txt", fmt.Sprintf(wordPathLinkOut, `"abs.txt"`)},
		{"outdir/secret.txt", fmt.Sprintf(wordPathLinkOut, `"outdir/secret.txt"`)},
		{"sub/up/secret.txt", fmt.Sprintf(wordPathLinkOut, `"sub/up/secret.txt"`)},
		{"proc/etc/passwd", fmt.Sprintf(wordPathLinkOut, `"proc/etc/passwd"`)},
		{"pipe", fmt.Sprintf(wordNotRegular, `"pipe"`, "named pipe")},
		{"socket", fmt.Sprintf(wordNotRegular, `"socket"`, "socket or device")},
		{"sub", fmt.Sprintf(wordIsDir, `"sub"`)},
		{"no\nsuch\u202e", fmt.Sprintf(wordNotFound, `"no\nsuch\u202e"`)},
		{"dangling", fmt.Sprintf(wordNotFound, `"dangling"`)},
	}
	s := newSet(t, Options{})
	for _, tt := range tests {
		got := do(t, s, dir, "read_file", "path", tt.path)
		if got.Body != tt.want || got.Failed == strings.HasPrefix(tt.want, "inside") {
			t.Errorf("%.60q: got %+v; want %q", tt.path, got, tt.want)
		}
		if n := strings.Count(strings.TrimSuffix(got.Body, "\n"), "\n"); n > 0 {
			t.Errorf("%.60q: the answer has %d line breaks", tt.path, n)
		}
	}
	if got := do(t, s, dir, "read_file", "path", "loop"); !got.Failed || strings.Contains(got.Body, dir) {
		t.Errorf("loop: got %+v", got)
	}
	// The shell's pwd prints the real directory of a workspace that is reached by a link.
	if got := do(t, s, alias, "read_file", "path", dir+"/a.txt"); got.Body != "inside\n" {
		t.Errorf("real path: got %+v", got)
	}
	if got := do(t, s, filepath.Join(dir, "gone"), "read_file", "path", "a"); !got.Failed || strings.Contains(got.Body, dir) {
		t.Errorf("no workspace: got %+v; want a failure without the host's path", got)
	}
}

// TestWriteRefusals: nothing outside changes, nothing hangs, and what is refused is whole.
func TestWriteRefusals(t *testing.T) {
	dir := trap(t)
	s := newSet(t, Options{})
	for path, want := range map[string]string{
		"../new.txt":     fmt.Sprintf(wordPathOutside, `"../new.txt"`),
		"out.txt":        fmt.Sprintf(wordIsLink, `"out.txt"`, `"../secret.txt"`),
		"in.txt":         fmt.Sprintf(wordIsLink, `"in.txt"`, `"a.txt"`),
		"outdir/new.txt": fmt.Sprintf(wordPathLinkOut, `"outdir/new.txt"`),
		"pipe":           fmt.Sprintf(wordNotRegular, `"pipe"`, "named pipe"),
		"sub":            fmt.Sprintf(wordIsDir, `"sub"`),
		"a.txt/x":        "",
		"outdir/d/e.txt": "",
	} {
		got := do(t, s, dir, "write_file", "path", path, "content", "x")
		if !got.Failed || want != "" && got.Body != want {
			t.Errorf("write %s: got %+v; want failed %q", path, got, want)
		}
		got = do(t, s, dir, "edit_file", "path", path, "old", "a", "new", "b")
		if !got.Failed {
			t.Errorf("edit %s: got %+v; want failed", path, got)
		}
	}
	big := strings.Repeat("x", maxWrite+1)
	if got := do(t, s, dir, "write_file", "path", "a.txt", "content", big); got.Body != fmt.Sprintf(wordWriteTooBig, `"a.txt"`, len(big), maxWrite) {
		t.Errorf("got %+v; want it refused", got)
	}
	if got := read(t, dir, "a.txt"); got != "inside\n" {
		t.Errorf("a.txt became %q", got)
	}
	if got := read(t, filepath.Dir(dir), "secret.txt"); got != outside {
		t.Errorf("the file outside became %q", got)
	}
	ws, _ := openWorkspace(dir)
	defer ws.close()
	if wrong := ws.replace("sub", []byte("x"), nil); !strings.Contains(wrong, "unchanged") { // the rename fails
		t.Errorf("replacing a directory: got %q; want a refusal", wrong)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 3 {
		t.Errorf("outside there is %v, %v; want the three there were", entries, err)
	}
	leftTemporary(t, dir)
}

func leftTemporary(t *testing.T, dir string) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(dir, ".write-*"))
	deeper, _ := filepath.Glob(filepath.Join(dir, "*", ".write-*"))
	if len(left)+len(deeper) > 0 {
		t.Errorf("temporary files are left: %v %v", left, deeper)
	}
}

// TestHardLink: a second name of a file outside is replaced by a write, not written through.
func TestHardLink(t *testing.T) {
	s, dir := newSet(t, Options{}), trap(t)
	if err := os.Link(filepath.Join(filepath.Dir(dir), "secret.txt"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, got := range []Result{
		do(t, s, dir, "edit_file", "path", "hard", "old", outside, "new", "x"),
		do(t, s, dir, "write_file", "path", "hard", "content", "y"),
	} {
		if got.Failed {
			t.Errorf("got %+v", got)
		}
	}
	if got := read(t, filepath.Dir(dir), "secret.txt"); got != outside {
		t.Errorf("the file outside became %q", got)
	}
}

// TestChangedMeanwhile: an edit of a text that is not the file's any more is refused.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(){
		"grown": func() { write(t, dir, "f", "longer") },
		"rewritten": func() {
			write(t, dir, "f", "ab")
			if err := os.Chtimes(filepath.Join(dir, "f"), time.Time{}, time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func() {
			info, err := os.Stat(filepath.Join(dir, "f"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "g", "ab")
			_ = os.Chtimes(filepath.Join(dir, "g"), time.Time{}, info.ModTime())
			if err := os.Rename(filepath.Join(dir, "g"), filepath.Join(dir, "f")); err != nil {
				t.Fatal(err)
			}
		},
		"gone": func() { _ = os.Remove(filepath.Join(dir, "f")) },
	} {
		write(t, dir, "f", "xy")
		ws, _ := openWorkspace(dir)
		_, info, wrong := ws.readWhole("f", maxWrite)
		if wrong != "" || ws.unchanged("f", info) != "" {
			t.Fatalf("%s: refused before the change", name)
		}
		change()
		if ws.unchanged("f", info) == "" {
			t.Errorf("%s: not seen", name)
		}
		ws.close()
	}
}

// FuzzPaths: no path, whatever its form, reads or lists or writes outside of the workspace.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{"a.txt", "../secret.txt", "sub/up/secret.txt", "out.txt", "/etc/passwd", "~/..", "outdir", "proc/1/environ",
		"sub/./../out.txt", "a\x00", "..", "//", "sub//up", "\xff", "./outdir/ws-sibling/secret.txt", "loop/x", "pipe"} {
		f.Add(p)
	}
	dir := trap(f)
	s := newSet(f, Options{})
	f.Fuzz(func(t *testing.T, p string) {
		ws, _ := openWorkspace(dir)
		rel, wrong := ws.resolve(p)
		ws.close()
		if (wrong == "") != (rel != "") || wrong == "" && !filepath.IsLocal(rel) {
			t.Errorf("resolve(%q) = %q, %q", p, rel, wrong)
		}
		for _, got := range []Result{
			do(t, s, dir, "read_file", "path", p),
			do(t, s, dir, "search_files", "path", p, "pattern", "SECRET"),
			do(t, s, dir, "list_files", "path", p),
		} {
			if strings.Contains(got.Body, outside) || !got.Failed && strings.Contains(got.Body, "ws-sibling/") {
				t.Errorf("%q leads out: %q", p, got.Body)
			}
		}
		do(t, s, dir, "edit_file", "path", p, "old", "SECRET", "new", "PUBLIC")
		if read(t, filepath.Dir(dir), "secret.txt") != outside {
			t.Fatalf("%q changed the file outside", p)
		}
	})
}
