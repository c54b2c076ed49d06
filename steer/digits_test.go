package steer

import (
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// zeros are the digits zero of Unicode 14, from another implementation's
// database; the nine after each are 1 to 9.
var zeros = []rune{
	0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
	0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620,
	0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0,
	0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60,
	0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
}

// TestEveryRune walks all of Unicode: the digits of every script have their
// value, what NFKC folds to digits has theirs, and nothing else is a digit.
func TestEveryRune(t *testing.T) {
	decimal := map[rune]uint8{}
	for _, zero := range zeros {
		for i := range rune(10) {
			decimal[zero+i] = uint8(i)
		}
	}
	// Digits of later Unicode versions: ten in a row, by the standard's promise.
	run := rune(0)
	for r := range rune(unicode.MaxRune + 1) {
		if !unicode.Is(unicode.Nd, r) {
			if run%10 != 0 {
				t.Errorf("digits before %U come %d in a row", r, run)
			}
			run = 0
			continue
		}
		if _, ok := decimal[r]; !ok {
			decimal[r] = uint8(run % 10)
		}
		run++
	}
	special := map[rune]mark{}
	for value, set := range lookalikes {
		for _, r := range set {
			if special[r] != 0 {
				t.Errorf("%q is listed twice", r)
			}
			special[r] = likeness(value)
		}
	}
	for _, run := range digitRuns {
		for i := range run.n {
			special[run.first+rune(i)] = likeness(run.value + i)
		}
	}

	folded, most := 0, 0
	for r := range rune(unicode.MaxRune + 1) {
		if !utf8.ValidRune(r) {
			continue
		}
		got := marksOf(r)
		var want []mark
		// NFKD holds all that NFKC holds, and "Ò" is an O to the eye.
		for _, x := range norm.NFKD.String(string(r)) {
			if d, ok := decimal[x]; ok {
				want = append(want, hard|mark(d))
			} else if m := special[x]; m != 0 {
				want = append(want, m)
			}
		}
		switch {
		case r >= 0xE0020 && r <= 0xE007E:
			want = marksOf(r - 0xE0000)
		case invisible(r):
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%U %q: marks %v; want %v", r, r, got, want)
		}
		for _, x := range norm.NFKC.String(string(r)) {
			if d, ok := decimal[x]; ok && !slices.Contains(got, hard|mark(d)) {
				t.Errorf("%U: marks %v; NFKC makes it hold %d", r, got, d)
			}
		}
		if d, ok := decimal[r]; ok && (len(got) != 1 || got[0] != hard|mark(d)) {
			t.Errorf("%U: marks %v; want the digit %d", r, got, d)
		}
		if len(got) > 0 && r >= utf8.RuneSelf {
			folded++
		}
		counted := 0
		for _, m := range got {
			if m&soft == 0 {
				counted++
			}
		}
		most = max(most, counted)
	}
	t.Logf("%d runes beyond ASCII are digits or look like one; one rune is up to %d", folded, most)
	if most != escapeWeight {
		t.Errorf("a rune may be %d digits; the fast path counts on %d", most, escapeWeight)
	}
}

// What an escape is made of must stand for itself before escapes are read.
func TestPlainForms(t *testing.T) {
	for r, want := range map[rune]rune{
		'％': '%', '＆': '&', '＼': '\\', '４': '4', '𝟒': '4', '④': '4', '٤': '4', '⁴': '4', '\U000E0034': '4',
		'\U000E0025': '%', 'ｕ': 'u', '\u200d': gone, '\u00ad': gone, '\u2060': gone, '\u202e': gone,
		'\ufe0f': gone, '\U000E0001': gone, '⑫': '⑫', 'З': 'З',
	} {
		got := r
		if g := glyphs().of(r); g != nil {
			got = g.plain
		}
		if got != want {
			t.Errorf("%U: plain form %U; want %U", r, got, want)
		}
	}
}
