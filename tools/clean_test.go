package tools

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestCleanTerminal(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a\tb\nc", "a\tb\nc"},
		{"colour", "\x1b[1;31mred\x1b[m", "red"},
		{"cursor and private modes", "\x1b[?25l\x1b[2J\x1b[10;20Hx", "x"},
		{"8-bit CSI", "\u009b31mred\u009b0m", "red"},
		{"title, bell", "\x1b]0;title\x07x", "x"},
		{"title, ST", "\x1b]0;title\x1b\\x", "x"},
		{"title, 8-bit ST", "\u009d0;title\u009cx", "x"},
		{"link", "\x1b]8;;http://h\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"DCS is not ended by a bell", "\x1bPq\x07data\x1b\\x", "x"},
		{"never terminated", "\x1b]0;all the rest", "0;all the rest"},
		{"broken CSI swallows nothing", "\x1b[3é", "é"},
		{"charset", "\x1b(Bx\x1b=y", "xy"},
		{"ESC at the end", "x\x1b", "x"},
		{"ESC ESC", "\x1b\x1b[31mx", "x"},
		{"progress", "10%\r50%\r100%\ndone", "100%\ndone"},
		{"progress kept when nothing follows", "50%\r", "50%"},
		{"CR LF", "a\r\nb\r\n", "a\nb\n"},
		{"progress with erase", "aaaa\r\x1b[Kb\n", "b\n"},
		{"overstrike", "N\bNA\bA", "NA"},
		{"backspace stays in its line", "a\n\b\bb", "a\nb"},
		{"backspace over a rune", "é\be", "e"},
		{"controls", "a\x00\x07\x7fb\u0085c", "abc"},
		{"bad UTF-8", "a\xff\xfeb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		if got := cleanTerminal(tt.in); got != tt.want {
			t.Errorf("%s: got %q; want %q", tt.name, got, tt.want)
		}
	}
}

func TestCleanFile(t *testing.T) {
	if got, want := cleanFile("a\tb\x1b[31m\x00\x7f\xffé\u009b"), "a\tb␛[31m␀␡\uFFFDé\uFFFD"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

// TestCleanIsLinear: a megabyte of sequences without an end must not cost its square. The
// quadratic form takes minutes.
func TestCleanIsLinear(t *testing.T) {
	for _, unit := range []string{"\x1b]", "\x1bP", "\x1b]\x1bP", "\u009d", "\r", "\x1b]x\x07\x1bP"} {
		in := strings.Repeat(unit, 1<<20/len(unit))
		began := time.Now()
		cleanTerminal(in)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%q: took %v", unit, took)
		}
	}
}

func FuzzCleanTerminal(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31mb\r\nc\bd", "\x1b]0;x\x07y\x1b\\", "\xff\x1b", "\u009bm\u009d\u009c", "\x1b[\x1b[m31m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := cleanTerminal(s)
		if !utf8.ValidString(got) || hasControl(got) {
			t.Errorf("%q became %q", s, got)
		}
		if again := cleanTerminal(got); again != got {
			t.Errorf("not idempotent: %q, %q", got, again)
		}
		if got != s && utf8.ValidString(s) && !hasControl(s) {
			t.Errorf("clean text %q was changed to %q", s, got)
		}
		if file := cleanFile(s); !utf8.ValidString(file) || hasControl(file) || strings.Count(file, "\n") != strings.Count(s, "\n") {
			t.Errorf("cleanFile(%q) = %q", s, file)
		}
		if tail := lastText([]byte(s), false); len(tail) > maxTail || !utf8.ValidString(tail) {
			t.Errorf("lastText(%q) = %q", s, tail)
		}
	})
}

func mark(n int) string { return fmt.Sprintf("<%d cut>", n) }

func TestCut(t *testing.T) {
	tests := []struct {
		name, in string
		limit    int
		want     string
	}{
		{"fits", "0123456789", 10, "0123456789"},
		{"60 and 40 percent", strings.Repeat("a", 50) + strings.Repeat("b", 50), 29, strings.Repeat("a", 12) + "<80 cut>" + strings.Repeat("b", 8)},
		{"line ends", "0123456789\n" + strings.Repeat("x", 80) + "\nabcdefg", 29, "0123456789\n<81 cut>abcdefg"},
		{"whole runes", strings.Repeat("é", 40), 31, strings.Repeat("é", 6) + "<58 cut>" + strings.Repeat("é", 5)},
		{"whole runes at the tail", "a" + strings.Repeat("é", 40), 30, "a" + strings.Repeat("é", 6) + "<60 cut>" + strings.Repeat("é", 4)},
		{"no room", strings.Repeat("a", 100), 5, "<100 cut>"},
	}
	for _, tt := range tests {
		if got := cut(tt.in, tt.limit, mark); got != tt.want {
			t.Errorf("%s: got %q; want %q", tt.name, got, tt.want)
		}
	}
}

// FuzzCut: within the limit, whole runes, and not a byte unaccounted for.
func FuzzCut(f *testing.F) {
	f.Add("line one\nline two\nline three\nline four\n", 30)
	f.Add(strings.Repeat("日本語\n", 20), 33)
	f.Add("no break at all in this text which is long", 20)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		s = strings.ToValidUTF8(s, "?")
		limit = max(limit%(len(s)+50), len(mark(len(s))))
		got := cut(s, limit, func(n int) string { return "\x00" + mark(n) + "\x00" })
		if len(s) <= limit {
			if got != s {
				t.Errorf("a text that fits was changed: %q", got)
			}
			return
		}
		parts := strings.SplitN(got, "\x00", 3)
		if strings.Contains(s, "\x00") {
			return
		}
		if len(parts) != 3 {
			t.Fatalf("no mark in %q", got)
		}
		head, tail := parts[0], parts[2]
		if len(got) > limit && head+tail != "" {
			t.Errorf("%d bytes; want at most %d", len(got), limit)
		}
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || !utf8.ValidString(head) || !utf8.ValidString(tail) {
			t.Errorf("head %q or tail %q is not of %q", head, tail, s)
		}
		if want := mark(len(s) - len(head) - len(tail)); parts[1] != want {
			t.Errorf("the mark says %q; want %q", parts[1], want)
		}
	})
}

// TestCapture compares the bounded capture with all that was written, around its bounds.
func TestCapture(t *testing.T) {
	for _, size := range []int{0, 1, captureHalf, captureHalf + 1, 2 * captureHalf, 2*captureHalf + 1, 20*captureHalf + 7} {
		for _, chunk := range []int{1000, 32 << 10, 3 * captureHalf} {
			all := make([]byte, size)
			for i := range all {
				all[i] = byte('a' + i%23)
			}
			c := &capture{}
			for rest := all; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
				_, _ = c.Write(rest[:min(chunk, len(rest))])
			}
			got, lost := c.text()
			want := string(all)
			if size > 2*captureHalf {
				want = want[:captureHalf] + fmt.Sprintf(wordNotKept, size-2*captureHalf) + want[size-captureHalf:]
			}
			if got != want || lost != int64(max(size-2*captureHalf, 0)) {
				t.Errorf("size %d chunk %d: %d bytes, %d lost; want %d bytes", size, chunk, len(got), lost, len(want))
			}
			if cap(c.tail) > 8*captureHalf {
				t.Errorf("size %d chunk %d: the tail takes %d bytes", size, chunk, cap(c.tail))
			}
			tail, fresh := c.last()
			if want := string(all[max(size-maxTail, 0):]); tail != want || fresh != (size > 0) {
				t.Errorf("size %d chunk %d: last is %d bytes, fresh %v; want %d", size, chunk, len(tail), fresh, len(want))
			}
			if _, fresh := c.last(); fresh {
				t.Error("the same output is fresh twice")
			}
		}
	}
}
