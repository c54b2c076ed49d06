package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestListFiles(t *testing.T) {
	s, dir := newSet(t, Options{}), trap(t)
	write(t, dir, "sub/deep/c.txt", "12345")
	write(t, dir, ".git/config", "x")
	write(t, dir, "new\nline \u202e.txt", "x")
	tests := []struct {
		name   string
		args   []any
		want   string
		failed bool
	}{
		{"one directory", []any{"path", "sub"}, "sub/b.txt  9\nsub/deep/\nsub/up -> ../..", false},
		{"deeper", []any{"path", "sub", "depth", 2}, "sub/b.txt  9\nsub/deep/\nsub/deep/c.txt  5\nsub/up -> ../..", false},
		{"empty path is the top", []any{"path", "", "depth", 1}, strings.Join([]string{".git/", "a.txt  7",
			"abs.txt -> " + strings.TrimSuffix(dir, "/ws") + "/secret.txt", "dangling -> nowhere", "in.txt -> a.txt", "indir -> sub", "loop -> loop",
			`"new\nline \u202e.txt"  1`, "out.txt -> ../secret.txt", "outdir -> ..", "pipe (named pipe)", "proc -> /proc/self/root", "sub/"}, "\n"), false},
		{"link inside", []any{"path", "indir/deep"}, "indir/deep/c.txt  5", false},
		{"link outside", []any{"path", "outdir"}, fmt.Sprintf(wordPathLinkOut, `"outdir"`), true},
		{"a file", []any{"path", "a.txt"}, fmt.Sprintf(wordNotDir, `"a.txt"`), true},
		{"a pipe", []any{"path", "pipe"}, fmt.Sprintf(wordNotDir, `"pipe"`), true},
		{"nothing", []any{"path", "nope"}, fmt.Sprintf(wordNotFound, `"nope"`), true},
		{"depth", []any{"depth", 9}, fmt.Sprintf(wordArgRange, "list_files", "depth", 1, maxDepth), true},
	}
	for _, tt := range tests {
		if got := do(t, s, dir, "list_files", tt.args...); got.Body != tt.want || got.Failed != tt.failed {
			t.Errorf("%s: got\n%s\nfailed %v; want\n%s", tt.name, got.Body, got.Failed, tt.want)
		}
	}
	// Machine-made directories are named, and entered only on demand.
	if got := do(t, s, dir, "list_files", "depth", 3); strings.Contains(got.Body, ".git/config") {
		t.Errorf(".git was entered: %s", got.Body)
	}
	if got := do(t, s, dir, "list_files", "path", ".git"); got.Body != ".git/config  1" {
		t.Errorf("got %+v; want the file", got)
	}
	many := t.TempDir()
	if got := do(t, s, many, "list_files"); got.Body != wordEmptyDir {
		t.Errorf("got %+v; want %q", got, wordEmptyDir)
	}
	for i := range maxListed + 1 {
		write(t, many, fmt.Sprintf("f%04d", i), "")
	}
	got := do(t, s, many, "list_files")
	if strings.Contains(got.Body, fmt.Sprintf(wordDirMore, maxDirEntries)) {
		t.Errorf("got …%q; want no word of %d entries", got.Body[len(got.Body)-200:], maxDirEntries)
	}
	if want := fmt.Sprintf(wordListMore, maxListed); !strings.HasPrefix(got.Body, "f0000  0\n") || !strings.HasSuffix(got.Body, "f0499  0\n"+want) {
		t.Errorf("got %.40q…; want %d entries and %q", got.Body, maxListed, want)
	}
}

func TestSearchFiles(t *testing.T) {
	s, dir := newSet(t, Options{}), trap(t)
	write(t, dir, "main.go", "package main\n\nfunc main() {}\n")
	write(t, dir, "sub/x.go", "package sub\r\nfunc X() {}\r\n")
	write(t, dir, "sub/deep/y.md", "func in words\n")
	write(t, dir, "node_modules/z.go", "func z() {}\n")
	write(t, dir, "bin", "func\x00\n")
	write(t, dir, "bom.c", "\uFEFF#include\n")
	write(t, dir, "long.txt", strings.Repeat("a", 5000)+"needle"+strings.Repeat("b", 5000)+"\n")
	tests := []struct {
		name   string
		args   []any
		want   string
		failed bool
	}{
		{"regexp", []any{"pattern", `^func \w+\(`}, "main.go:3: func main() {}\nsub/x.go:2: func X() {}", false},
		{"with glob", []any{"pattern", "func", "glob", "*.md"}, "sub/deep/y.md:1: func in words", false},
		{"line end", []any{"pattern", `\{\}$`, "path", "sub"}, "sub/x.go:2: func X() {}", false},
		{"names", []any{"glob", "*.go"}, "main.go\nsub/x.go", false},
		{"names by path", []any{"glob", "sub/**"}, "sub/b.txt\nsub/deep/y.md\nsub/x.go", false},
		{"one file", []any{"pattern", "main", "path", "main.go"}, "main.go:1: package main\nmain.go:3: func main() {}", false},
		{"named skipped directory", []any{"pattern", "func", "path", "node_modules"}, "node_modules/z.go:1: func z() {}", false},
		{"bounded", []any{"pattern", "main", "max", 1}, "main.go:1: package main\n" + fmt.Sprintf(wordSearchMore, 1), false},
		{"exactly the bound", []any{"pattern", "main", "max", 2}, "main.go:1: package main\nmain.go:3: func main() {}", false},
		{"the match of a long line is shown", []any{"pattern", "needle"}, "long.txt:1: …" + strings.Repeat("a", 60) + "needle" + strings.Repeat("b", 174) + "… (4826 bytes of this line cut)", false},
		{"links are not followed", []any{"pattern", "SECRET"}, wordNoMatch, false},
		{"a link outside", []any{"pattern", "SECRET", "path", "out.txt"}, fmt.Sprintf(wordPathLinkOut, `"out.txt"`), true},
		{"a pipe", []any{"pattern", "x", "path", "pipe"}, fmt.Sprintf(wordNotRegular, `"pipe"`, "named pipe"), true},
		{"a byte order mark is no text", []any{"pattern", "^#", "glob", "*.c"}, "bom.c:1: #include", false},
		{"large pattern", []any{"pattern", "(?:ma.{0,200}|x{300})in$"}, "main.go:1: package main", false},
		{"giant pattern", []any{"pattern", strings.Repeat("x{999}", 20)}, fmt.Sprintf(wordBigPattern, quote(strings.Repeat("x{999}", 20)), 19982, maxSteps), true},
		{"nothing asked", []any{}, wordSearchNeeds, true},
		{"bad pattern", []any{"pattern", "(?=x)"}, fmt.Sprintf(wordBadPattern, `"(?=x)"`, "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"), true},
		{"bad glob", []any{"glob", "a{b"}, fmt.Sprintf(wordBadGlob, `"a{b"`, "{ is not closed"), true},
		{"long pattern", []any{"pattern", strings.Repeat("a", maxPattern+1)}, fmt.Sprintf(wordLongPattern, "pattern", maxPattern+1, maxPattern), true},
		{"max", []any{"pattern", "x", "max", 0}, fmt.Sprintf(wordArgRange, "search_files", "max", 1, maxMatches), true},
	}
	for _, tt := range tests {
		if got := do(t, s, dir, "search_files", tt.args...); got.Body != tt.want || got.Failed != tt.failed {
			t.Errorf("%s: got\n%s\nfailed %v; want\n%s", tt.name, got.Body, got.Failed, tt.want)
		}
	}
}

func TestGlob(t *testing.T) {
	tests := []struct {
		glob     string
		yes, not []string
	}{
		{"*.go", []string{"a.go", "x/y/a.go"}, []string{"a.gox", "go", "a.go/b"}},
		{"./a/*.go", []string{"a/b.go"}, []string{"a/b/c.go", "x/a/b.go"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/xb", "ab"}},
		{"**/b.txt", []string{"b.txt", "x/y/b.txt"}, []string{"xb.txt"}},
		{"a?[0-9]", []string{"ab1"}, []string{"a1", "abc", "a/1"}},
		{"[!a]x", []string{"bx"}, []string{"ax", "x"}},
		{"*.{js,ts}", []string{"a.js", "b/c.ts"}, []string{"a.jsx", "a.{js,ts}"}},
		{`a\*.(+`, []string{"a*.(+"}, []string{"ab.(+"}},
		{"a,b", []string{"a,b"}, []string{"a"}},
	}
	for _, tt := range tests {
		match, err := compileGlob(tt.glob)
		if err != nil {
			t.Errorf("%s: %v", tt.glob, err)
			continue
		}
		for _, p := range tt.yes {
			if !match(p) {
				t.Errorf("%s does not match %s", tt.glob, p)
			}
		}
		for _, p := range tt.not {
			if match(p) {
				t.Errorf("%s matches %s", tt.glob, p)
			}
		}
	}
	for _, bad := range []string{"[", "[a", "{a", "a}", `a\`, "[]", "[z-a]"} {
		if _, err := compileGlob(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, g := range []string{"*.go", "a/**/{b,c}[!x]?", `\`, "[^]]", "[[:alpha:]]", "[a\\]", "{,}", "[!]"} {
		f.Add(g, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		if match, err := compileGlob(glob); err == nil {
			match(name)
		}
	})
}

// TestCancelledFileTools: a call whose context has ended changes nothing and says so.
func TestCancelledFileTools(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	write(t, dir, "a.txt", "one\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tool := range s.Tools() {
		c := Call{Name: tool.Name, Dir: dir, Admin: true}
		want := fmt.Sprintf(wordInterrupted, tool.Name)
		switch tool.Name {
		case "terminal":
			c.Args, want = args(t, "command", "touch ran"), wordNoOutput+"\n"+wordKilled
		case "job":
			continue // answers from memory
		case "read_file":
			c.Args = args(t, "path", "a.txt")
		case "write_file":
			c.Args = args(t, "path", "a.txt", "content", "two")
		case "edit_file":
			c.Args = args(t, "path", "a.txt", "old", "one", "new", "two")
		case "search_files":
			c.Args = args(t, "pattern", "one")
		case "send_file":
			c.Args, c.Sends = args(t, "path", "a.txt"), true
		}
		if got := tool.Run(ctx, c); !got.Failed || got.Body != want {
			t.Errorf("%s: got %+v; want failed %q", tool.Name, got, want)
		}
	}
	if got := read(t, dir, "a.txt"); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestListHuge: of a directory with more entries than are read, those shown are not the first
// by name, and the answer says so.
func TestListHuge(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	for i := range maxDirEntries + 1 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := do(t, s, dir, "list_files")
	if want := fmt.Sprintf(wordListMore, maxListed) + " " + fmt.Sprintf(wordDirMore, maxDirEntries); !strings.HasSuffix(got.Body, want) {
		t.Errorf("got …%q; want it to end in %q", got.Body[max(len(got.Body)-300, 0):], want)
	}
}

// costly takes about a second and a half for each line of the file heavy writes: minutes.
const costly = `a.{0,999}b.{0,999}c$`

func heavy(t *testing.T) string {
	dir := t.TempDir()
	write(t, dir, "heavy", strings.Repeat(strings.Repeat("a", maxSearchLine)+"\n", maxSearchFile/(maxSearchLine+1)))
	return dir
}

// TestSearchEnds: the worst pattern on the worst text ends when it is told to, within a line.
func TestSearchEnds(t *testing.T) {
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		s, dir := newSet(t, Options{}), heavy(t)
		s.searchTime = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r := s.Start(ctx, Call{Name: "search_files", Dir: dir, Args: args(t, "pattern", costly)})
		<-ctx.Done()
		began := time.Now()
		wait(t, r.Done(), "the search")
		if took, got := time.Since(began), r.Result(); took > time.Second || got.Body != fmt.Sprintf(wordInterrupted, "search_files") {
			t.Errorf("after %v got %+v; want it interrupted within a second, which is less than a line takes", took, got)
		}
	})
	t.Run("its own time", func(t *testing.T) {
		t.Parallel()
		s, dir := newSet(t, Options{}), heavy(t)
		write(t, dir, "a", "abc\n")
		s.searchTime = 200 * time.Millisecond
		if got, want := do(t, s, dir, "search_files", "pattern", costly), "a:1: abc\n"+fmt.Sprintf(wordSearchLong, s.searchTime); got.Failed || got.Body != want {
			t.Errorf("got %+v; want %q", got, want)
		}
	})
}
