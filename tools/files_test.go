package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	var numbered strings.Builder
	for i := 1; i <= 5000; i++ {
		fmt.Fprintf(&numbered, "line %d\n", i)
	}
	write(t, dir, "n.txt", numbered.String())
	write(t, dir, "empty", "")
	write(t, dir, "noend", "a\nb")
	write(t, dir, "crlf", "a\r\nb\r\n")
	write(t, dir, "wide", strings.Repeat("é", 3000)+"\nnext\n")
	write(t, dir, "bin.png", "\x89PNG\r\n\x1a\n\x00\x00")
	write(t, dir, "utf16", "\xff\xfea\x00")
	write(t, dir, "bom", "\uFEFFx\n")
	write(t, dir, "latin", "caf\xe9\n")
	write(t, dir, "esc", "\x1b[31mred\rx\n")
	tests := []struct {
		name   string
		args   []any
		want   string
		failed bool
	}{
		{"range", []any{"path", "n.txt", "offset", 3, "limit", 2}, "line 3\nline 4\n[lines 3-4 of 5000; go on with offset=5]", false},
		{"to the end", []any{"path", "n.txt", "offset", 4999}, "line 4999\nline 5000\n[lines 4999-5000 of 5000]", false},
		{"past the end", []any{"path", "n.txt", "offset", 5001}, fmt.Sprintf(wordPastEnd, `"n.txt"`, 5000, 5001), true},
		{"offset 0", []any{"path", "n.txt", "offset", 0}, fmt.Sprintf(wordArgRange, "read_file", "offset", 1, maxInt32), true},
		{"limit 0", []any{"path", "n.txt", "limit", 0}, fmt.Sprintf(wordArgRange, "read_file", "limit", 1, maxInt32), true},
		{"empty", []any{"path", "empty"}, wordEmptyFile, false},
		{"empty, past", []any{"path", "empty", "offset", 2}, fmt.Sprintf(wordPastEnd, `"empty"`, 0, 2), true},
		{"no last line end", []any{"path", "noend"}, "a\nb\n", false},
		{"CR LF", []any{"path", "crlf"}, "a\nb\n[line ends are CRLF]", false},
		{"long line", []any{"path", "wide"}, strings.Repeat("é", 1000) + "… (4000 bytes of this line cut)\nnext\n", false},
		{"binary", []any{"path", "bin.png"}, fmt.Sprintf(wordBinary, `"bin.png"`, "image/png", 10), true},
		{"UTF-16", []any{"path", "utf16"}, fmt.Sprintf(wordUTF16, `"utf16"`, 4), true},
		{"byte order mark", []any{"path", "bom"}, "x\n", false},
		{"not UTF-8", []any{"path", "latin"}, "caf\uFFFD\n" + strings.TrimSpace(wordNotUTF8), false},
		{"controls are shown", []any{"path", "esc"}, "␛[31mred␍x\n", false},
	}
	s := newSet(t, Options{})
	for _, tt := range tests {
		if got := do(t, s, dir, "read_file", tt.args...); got.Body != tt.want || got.Failed != tt.failed {
			t.Errorf("%s: got %+v; want %q, failed %v", tt.name, got, tt.want, tt.failed)
		}
	}

	// Reading on with the named offset yields the whole file, in answers that are never cut.
	var all strings.Builder
	for offset := 1; offset > 0; {
		got := do(t, s, dir, "read_file", "path", "n.txt", "offset", offset)
		if got.Failed || len(got.Body) > defaultMaxOutput {
			t.Fatalf("offset %d: failed %v, %d bytes", offset, got.Failed, len(got.Body))
		}
		text, note, _ := strings.Cut(got.Body, "[")
		all.WriteString(text)
		if offset = 0; strings.Contains(note, "offset=") {
			if _, err := fmt.Sscanf(note[strings.Index(note, "offset="):], "offset=%d]", &offset); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all.String() != numbered.String() {
		t.Error("the parts do not make the file")
	}
	if _, err := os.Stat(filepath.Join(dir, spillDir)); err == nil {
		t.Error("reading a file wrote a copy of it")
	}
}

// TestReadHuge: a sparse file of 1 TiB in one line costs a bounded look.
func TestReadHuge(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "huge", strings.Repeat("x", sniffBytes+1))
	if err := os.Truncate(filepath.Join(dir, "huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	s := newSet(t, Options{})
	began := time.Now()
	got := do(t, s, dir, "read_file", "path", "huge")
	if want := fmt.Sprintf(wordPastScan, 1, `"huge"`, 64); !got.Failed || got.Body != want {
		t.Errorf("got %.200q; want %q", got.Body, want)
	}
	if got = do(t, s, dir, "search_files", "pattern", "^x"); !strings.HasPrefix(got.Body, "huge:1: xxx") || !strings.Contains(got.Body, "only up to 8 MiB: 1") {
		t.Errorf("got %.300q", got.Body)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestWriteFile(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	got := do(t, s, dir, "write_file", "path", "a/b/c.txt", "content", "x\r\ny")
	if want := fmt.Sprintf(wordWroteNew, `"a/b/c.txt"`, 4); got.Failed || got.Body != want {
		t.Errorf("got %+v; want %q", got, want)
	}
	if got := read(t, dir, "a/b/c.txt"); got != "x\r\ny" {
		t.Errorf("the file holds %q", got)
	}
	for _, mode := range []os.FileMode{0o755, 0o600, 0} {
		if err := os.Chmod(filepath.Join(dir, "a/b/c.txt"), mode); err != nil {
			t.Fatal(err)
		}
		old, err := os.Stat(filepath.Join(dir, "a/b/c.txt"))
		if err != nil {
			t.Fatal(err)
		}
		got = do(t, s, dir, "write_file", "path", "a/b/c.txt", "content", "")
		if want := fmt.Sprintf(wordWroteOver, `"a/b/c.txt"`, 0, old.Size()); got.Failed || got.Body != want {
			t.Errorf("got %+v; want %q", got, want)
		}
		info, err := os.Stat(filepath.Join(dir, "a/b/c.txt"))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("got mode %v, %v; want %v kept", info.Mode(), err, mode)
		}
		if os.SameFile(old, info) {
			t.Error("written in place; want a new file renamed over the old, so that a crash leaves one of them whole")
		}
	}
	leftTemporary(t, dir)
}

func TestEditFile(t *testing.T) {
	const lf = "one\ntwo\nthree\ntwo\n"
	tests := []struct {
		name, file  string
		args        []any
		want, file2 string // file2 "" means unchanged
	}{
		{"once", lf, []any{"old", "one", "new", "1"}, fmt.Sprintf(wordEdited, `"f"`, 1), "1\ntwo\nthree\ntwo\n"},
		{"several lines", lf, []any{"old", "two\nthree", "new", "2\n3"}, fmt.Sprintf(wordEdited, `"f"`, 2), "one\n2\n3\ntwo\n"},
		{"deletion", lf, []any{"old", "three\n", "new", ""}, fmt.Sprintf(wordEdited, `"f"`, 3), "one\ntwo\ntwo\n"},
		{"not unique", lf, []any{"old", "two", "new", "2"}, fmt.Sprintf(wordEditMany, `"f"`, "2, 4"), ""},
		{"all", lf, []any{"old", "two", "new", "2", "all", true}, fmt.Sprintf(wordEditedAll, 2, `"f"`, 2), "one\n2\nthree\n2\n"},
		{"overlapping is not unique", "aaa", []any{"old", "aa", "new", "b"}, fmt.Sprintf(wordEditMany, `"f"`, "1, 1"), ""},
		{"absent", lf, []any{"old", "four", "new", "4"}, fmt.Sprintf(wordEditNone, `"f"`), ""},
		{"indentation", "a\n\tx = 1\n", []any{"old", "    x = 1", "new", "x"}, fmt.Sprintf(wordEditNear, `"f"`, 2), ""},
		{"empty old", lf, []any{"old", "", "new", "x"}, wordEditEmpty, ""},
		{"same", lf, []any{"old", "one", "new", "one"}, wordEditSame, ""},
		{"dollar is no template", lf, []any{"old", "one", "new", "$1\\1"}, fmt.Sprintf(wordEdited, `"f"`, 1), "$1\\1\ntwo\nthree\ntwo\n"},
		{"CRLF kept", "a\r\nb\r\nc\r\n", []any{"old", "a\nb", "new", "x\ny\nz"}, fmt.Sprintf(wordEdited, `"f"`, 1), "x\r\ny\r\nz\r\nc\r\n"},
		{"CRLF given", "a\r\nb\r\n", []any{"old", "a\r\nb", "new", "x"}, fmt.Sprintf(wordEdited, `"f"`, 1), "x\r\n"},
		{"CRLF, new lines in one line", "a\r\n", []any{"old", "a", "new", "x\ny"}, fmt.Sprintf(wordEdited, `"f"`, 1), "x\r\ny\r\n"},
		{"mixed, LF part", "a\nb\nc\r\n", []any{"old", "a\nb", "new", "x\ny"}, fmt.Sprintf(wordEdited, `"f"`, 1), "x\ny\nc\r\n"},
		{"mixed, CRLF part", "a\nb\r\nc\r\n", []any{"old", "b\nc", "new", "x\ny"}, fmt.Sprintf(wordEdited, `"f"`, 2), "a\nx\r\ny\r\n"},
		{"not text", "a\x00b", []any{"old", "a", "new", "b"}, fmt.Sprintf(wordEditBinary, `"f"`), ""},
		{"not UTF-8", "a\xff", []any{"old", "a", "new", "b"}, fmt.Sprintf(wordEditBinary, `"f"`), ""},
	}
	s, dir := newSet(t, Options{}), t.TempDir()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, dir, "f", tt.file)
			if err := os.Chmod(filepath.Join(dir, "f"), 0o750); err != nil {
				t.Fatal(err)
			}
			want := tt.file2
			if want == "" {
				want = tt.file
			}
			got := do(t, s, dir, "edit_file", append([]any{"path", "f"}, tt.args...)...)
			if got.Body != tt.want || got.Failed != (tt.file2 == "") {
				t.Errorf("got %+v; want %q", got, tt.want)
			}
			if got := read(t, dir, "f"); got != want {
				t.Errorf("the file holds %q; want %q", got, want)
			}
			if info, err := os.Stat(filepath.Join(dir, "f")); err != nil || info.Mode().Perm() != 0o750 {
				t.Errorf("got mode %v, %v; want 0750 kept", info.Mode(), err)
			}
		})
	}
	write(t, dir, "big", strings.Repeat("x", maxWrite-1)+"y")
	if got := do(t, s, dir, "edit_file", "path", "big", "old", "y", "new", "zz"); !got.Failed || got.Body != fmt.Sprintf(wordWriteTooBig, `"big"`, maxWrite+1, maxWrite) {
		t.Errorf("growing past the limit: got %+v", got)
	}
	write(t, dir, "big", strings.Repeat("x", maxWrite+5))
	if got := do(t, s, dir, "edit_file", "path", "big", "old", "y", "new", "z"); got.Body != fmt.Sprintf(wordEditTooBig, `"big"`, maxWrite+5, maxWrite) {
		t.Errorf("too big: got %+v", got)
	}
	leftTemporary(t, dir)
}

// TestSpill: names from the model make no paths, and the directory does not grow for ever.
func TestSpill(t *testing.T) {
	dir := trap(t)
	for id, want := range map[string]string{
		"call_1-A":               ".out/call_1-A.txt",
		"../../x":                ".out/call-",
		"":                       ".out/call-",
		strings.Repeat("x", 200): ".out/call-",
	} {
		name, err := spill(dir, id, "text")
		if err != nil || !strings.HasPrefix(name, want) || strings.Count(name, "/") != 1 || read(t, dir, name) != "text" {
			t.Errorf("%.20q: got %q, %v; want %s…", id, name, err, want)
		}
	}
	for i := range spillKeep + 10 {
		if _, err := spill(dir, fmt.Sprint("n", i), "text"); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, spillDir))
	if err != nil || len(entries) != spillKeep {
		t.Errorf("%d texts kept, %v; want %d", len(entries), err, spillKeep)
	}
	if read(t, dir, fmt.Sprintf(".out/n%d.txt", spillKeep+9)) != "text" {
		t.Error("the newest is gone")
	}

	// A link put in its place leads nowhere, and the result says the text is lost.
	dir = trap(t)
	if err := os.Symlink("..", filepath.Join(dir, spillDir)); err != nil {
		t.Fatal(err)
	}
	s := newSet(t, Options{})
	got := do(t, s, dir, "terminal", "command", "seq 1 20000")
	if !strings.Contains(got.Body, "could not be saved") {
		t.Errorf("got %.100q…; want it to say that the text could not be saved", got.Body)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "c1.txt")); err == nil {
		t.Error("the text was written outside of the workspace")
	}
}
