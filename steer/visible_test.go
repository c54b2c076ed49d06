package steer

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestVisible (I8): nothing people are shown can reorder, hide or break what stands there.
func TestVisible(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "rm -rf build\n\tdone", "rm -rf build\n\tdone"},
		{"Hebrew and Arabic letters stay", "שלום عليكم", "שלום عليكم"},
		{"Persian joiner and emoji stay", "می\u200cخواهم 👩\u200d👧 ❤\ufe0f", "می\u200cخواهم 👩\u200d👧 ❤\ufe0f"},
		{"override", "gpj.\u202eexe", `gpj.\u202eexe`},
		{"all embeddings", "\u202a\u202b\u202c\u202d\u202e", `\u202a\u202b\u202c\u202d\u202e`},
		{"isolates", "\u2066\u2067\u2068\u2069", `\u2066\u2067\u2068\u2069`},
		{"marks", "a\u200eb\u200fc\u061cd", `a\u200eb\u200fc\u061cd`},
		{"CR, backspace, NUL, ESC, DEL", "ls\rrm\b\x00\x1b[m\x7f", `ls\u000drm\u0008\u0000\u001b[m\u007f`},
		{"C1", "a\u0085\u009bb", `a\u0085\u009bb`},
		{"line separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"no width", "a\u00ad\u200b\u2060\ufeffb", `a\u00ad\u200b\u2060\ufeffb`},
		{"blank letters", "a\u3164\uffa0b", `a\u3164\uffa0b`},
		{"blank mark", "a\u034fb", `a\u034fb`},
		{"tags", "a\U000e0041b", `a\U000e0041b`},
		{"bad UTF-8", "a\xffb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		if got := Visible(tt.in); got != tt.want {
			t.Errorf("%s: got %q; want %q", tt.name, got, tt.want)
		}
	}
	for r := range rune(unicode.MaxRune) { // of all that Unicode calls bidi control, none passes
		if unicode.Is(unicode.Bidi_Control, r) && Visible(string(r)) == string(r) {
			t.Errorf("%U passes", r)
		}
		if unicode.IsLetter(r) && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac) && Visible(string(r)) != string(r) {
			t.Errorf("%U, a letter, is changed", r)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a\u202eb", "\xff\x00", "\r\n", "א\u200f", "\U000e0041", `\u202e`, strings.Repeat("0", 90) + "\u034f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Visible(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q became %q", s, got)
		}
		for _, r := range got {
			if unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%q keeps %U", s, r)
			}
		}
		if again := Visible(got); again != got {
			t.Errorf("not idempotent: %q, %q", got, again)
		}
		if strings.Count(got, "\n") != strings.Count(s, "\n") {
			t.Errorf("%q: line breaks changed in %q", s, got)
		}
	})
}
