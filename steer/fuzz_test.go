package steer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzText lets a fuzzer write the key without knowing it: the letters A to X
// stand for its digits, the letter Z for the whole.
func fuzzText(s string) string {
	digits := strings.ReplaceAll(string(testKey), "-", "")
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c < 'A'+keyDigits:
			b.WriteByte(digits[c-'A'])
		case c == 'Z':
			b.WriteString(string(testKey))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

var fuzzSeeds = []string{
	"", "ABCDEFGHIJKLMNOPQRSTUVWX", "ABCDEF-GHIJKL", "Z", "ZZ", "a Z b", "ABCDEFGHIJK", "NOPQRSTUVWX",
	`\u003A\u003B\u003C\u003D\u003E\u003F\u003G\u003H\u003I\u003J\u003K\u003L`,
	`\x3A%3B&#x3C;&#4D&#5E;\\u003F%253G&amp;#5H;I\u{3J}K\U0000003L`,
	"A\u200dB\u200dC\u200dD\u200dE\u200dF\u200dG\u200dH\u200dI\u200dJ\u200dK\u200dL",
	"&#x3A&#x3B&#x3C&#x3D&#x3E&#x3F&#x3G&#x3H&#x3I&#x3J&#x3K&#x3L",
	"%253A%253B%253C%253D%253E%253F%253G%253H%253I%253J%253K%253L",
	"&#5%3A;&#5%3B;&#5%3C;&#5%3D;&#5%3E;&#5%3F;&#5%3G;&#5%3H;&#5%3I;&#5%3J;&#5%3K;&#5%3L;",
	"ABCDEFGHIJKZL", "ABCDEFGHIJK[key removed]LMNOPQRSTUV", "[[gateway-note key=Z n=1 |\nx\n[[end-gateway-note key=Z n=1]]",
	"A<ol>B<ol>C<ol>D<ol>E<ol>F<ol>G<ol>H<ol>I<ol>J<ol>K<ol>L", "\xff\xc0A\xe2\x80BCDEFGHIJKL", "&half;&frac12&ell;&lrm;&nosuch;",
	`\ud835\udfce\ud835`, "ABC\nDEF\r\nGHI\u2028JKL", "(2) m2: x", "⑫½㏾０１２３",
}

// FuzzSanitize: what comes out is UTF-8, holds no window in any view of the
// oracle (P1), is final (P2), and is what went in if there was no hit (P3).
func FuzzSanitize(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s)
	}
	s := NewSanitizer(testKey)
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 2000 {
			return // the oracle is slow
		}
		text := strings.ToValidUTF8(fuzzText(in), "\ufffd")
		got, hits := s.Sanitize(fuzzText(in))
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if w, view := oracleWindow(got, testKey); w != "" {
			t.Fatalf("P1: %s is left of %q in %q, as %q", w, text, got, view)
		}
		if again, more := s.Sanitize(got); again != got || more != 0 {
			t.Fatalf("P2: %q became %q", got, again)
		}
		if (hits == 0) != (got == text) {
			t.Fatalf("P3: %d hits, %q became %q", hits, text, got)
		}
		// Cut anywhere, the pieces are as clean as the whole.
		half := len(text) / 2
		parts, _ := s.SanitizeParts([]string{text[:half], text[half:]})
		for _, joint := range joints {
			if w, _ := oracleWindow(strings.Join(parts, joint), testKey); w != "" {
				t.Fatalf("parts: %s is left in %q", w, parts)
			}
		}
		for _, edit := range []func(string) string{NeutralizeControl, QuoteLookalike} {
			once := edit(text)
			if twice := edit(once); twice != once {
				t.Fatalf("an edit is not final: %q, %q", once, twice)
			}
		}
	})
}

// FuzzRender: every row with a note parses to what was put in (P4), and
// whatever parses could have been rendered (P5).
func FuzzRender(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s, fuzzSeeds[len(fuzzSeeds)-1-i], "", int64(i+1), uint8(i))
		f.Add("ok", s, s, int64(i+1), uint8(i))
	}
	f.Fuzz(func(t *testing.T, body, first, second string, n int64, bits uint8) {
		if n < 1 {
			return
		}
		note := Note{N: n, From: roles[int(bits)%len(roles)], Entries: []NoteEntry{{Text: fuzzText(first)}}}
		if second != "" {
			note.Entries = append(note.Entries, NoteEntry{Text: fuzzText(second)})
		}
		if bits&0x10 != 0 {
			note.Entries[0].Label = "m2"
		}
		body, _ = NewSanitizer(testKey).Sanitize(fuzzText(body))
		row := Render(body, note, testKey)
		gotBody, inner, gotN, ok := Parse(row, testKey)
		if !ok || gotBody != body || gotN != n || !inImage(row, gotBody, inner, n, testKey) {
			t.Fatalf("P4: Parse(%q) = %q, %q, %d, %v", row, gotBody, inner, gotN, ok)
		}
		if w, _ := oracleWindow(inner, testKey); w != "" {
			t.Fatalf("P1: %s is left in the note of %q", w, row)
		}
		if raw := fuzzText(first); true {
			if b, in, m, ok := Parse(raw, testKey); ok && !inImage(raw, b, in, m, testKey) {
				t.Fatalf("P5: parsed but never rendered: %q", raw)
			}
		}
	})
}
