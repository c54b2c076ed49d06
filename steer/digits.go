package steer

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A mark is one digit that a rune may be read as: its value and one kind.
// Zero is no mark.
type mark uint8

const (
	// hard: a digit, by Unicode.
	hard mark = 0x10
	// soft: a likeness of 0 or 1. Such letters are everywhere, also in markup
	// between two digits ("<ol>"), so each may be read or passed over.
	soft mark = 0x20
	// either: a likeness of another digit. A text is read once with all of
	// them as digits and once without any. To choose for each would find some
	// keys in any long Russian text, where З, б and ч abound.
	either mark = 0x40
)

func (m mark) value() uint8 { return uint8(m & 0x0f) }

// likeness returns the mark of a character that looks like a digit.
func likeness[T rune | int](value T) mark {
	if value <= 1 {
		return soft | mark(value)
	}
	return either | mark(value)
}

// glyph is what a rune means to the sanitiser.
type glyph struct {
	// plain is the ASCII character the rune stands for when escapes are
	// decoded, the rune itself if there is none, or gone.
	plain  rune
	marks  []mark
	weight int // see plausible
}

const (
	gone    rune = -2 // a rune nobody sees: dropped before anything is read
	barrier rune = -1 // a whole "[key removed]" in a view

	// optional-d is the digit d to some decoders and nothing to others: a
	// likeness of d.
	optional rune = -10

	// escapeWeight is how many digits one escape may yield at most: a rune such
	// as "⅒" folds to three.
	escapeWeight = 3
)

// lookalikes lists, by value, characters that are no digits in Unicode's
// tables and are read as one. ASCII has only those of 0 and 1.
var lookalikes = [10]string{
	0: "OoΟοОоՕօסⲞⲟᴏᴑଠഠဝⵔ𐐄𐐬𐓂𐓪〇○◯",
	1: "lI|ΙІӀӏıɩǀןוا∣│ⵏᛁꓲⲒ𐊊𐌉𐌠",
	2: "ƧƨϨꙄᒿꛯ",
	3: "ЗзƷʒӠӡȜȝɜɛꞫⳌꝪꝫ𑣊",
	4: "ЧчᏎ𑢯",
	5: "Ƽƽ𑢻",
	6: "бᏮⳒϬϭ𑣕",
	7: "𐓒𑣆⁊",
	8: "Ȣȣ𐌚",
	9: "ꝮꝯⳊ𑣌𑢬",
}

// digitRuns are characters with a digit value that are neither decimal digits
// (Nd) nor folded to one by NFKC. Each run begins at the given value.
var digitRuns = [...]struct {
	first rune
	value int
	n     int
}{
	{0x1369, 1, 9},  // Ethiopic
	{0x19DA, 1, 1},  // New Tai Lue tham one
	{0x24F5, 1, 9},  // double circled
	{0x24FF, 0, 1},  // negative circled zero
	{0x2776, 1, 9},  // dingbat negative circled
	{0x2780, 1, 9},  // dingbat circled sans-serif
	{0x278A, 1, 9},  // dingbat negative circled sans-serif
	{0x10A40, 1, 4}, // Kharoshthi
	{0x10E60, 1, 9}, // Rumi
	{0x11052, 1, 9}, // Brahmi
	{0x1F10B, 0, 1}, // dingbat circled sans-serif zero
	{0x1F10C, 0, 1}, // dingbat negative circled sans-serif zero
}

// asciiMarks is the part of the table that every text needs.
var asciiMarks = func() (t [utf8.RuneSelf][]mark) {
	for r := '0'; r <= '9'; r++ {
		t[r] = []mark{hard | mark(r-'0')}
	}
	for value, set := range lookalikes {
		for _, r := range set {
			if r < utf8.RuneSelf {
				t[r] = []mark{likeness(value)}
			}
		}
	}
	return t
}()

// optionalMarks are the marks of the runes optional-0 to optional-9.
var optionalMarks = func() (t []mark) {
	for value := range 10 {
		t = append(t, likeness(value))
	}
	return t
}()

// marksOf returns the digits that a rune of a view may be read as.
func marksOf(r rune) []mark {
	switch {
	case r <= optional:
		return optionalMarks[optional-r:][:1]
	case r < 0:
		return nil
	case r < utf8.RuneSelf:
		return asciiMarks[r]
	}
	if g := glyphs().of(r); g != nil {
		return g.marks
	}
	return nil
}

// The runes that mean anything lie in the first two planes and in the first
// pages of plane 14 (tags, variation selectors); a test walks all others.
const (
	lowEnd   = 0x20000
	tagPlane = 0xE0000
	tagEnd   = 0xE1000
)

// glyphTable finds the glyph of a rune beyond ASCII in two steps.
type glyphTable struct {
	pages  [(lowEnd + tagEnd - tagPlane) >> 8]*[256]uint16
	glyphs []glyph // glyphs[0] is unused: index 0 is "nothing"
}

// glyphs builds the table at the first text beyond ASCII, a few milliseconds.
var glyphs = sync.OnceValue(buildGlyphs)

func pageOf(r rune) int {
	switch {
	case r < lowEnd:
		return int(r >> 8)
	case r >= tagPlane && r < tagEnd:
		return int((r - tagPlane + lowEnd) >> 8)
	}
	return -1
}

// of returns the rune's glyph, or nil for a rune that is only itself.
// It must not be asked about ASCII.
func (t *glyphTable) of(r rune) *glyph {
	page := pageOf(r)
	if page < 0 || t.pages[page] == nil {
		return nil
	}
	if i := t.pages[page][r&0xff]; i != 0 {
		return &t.glyphs[i]
	}
	return nil
}

func (t *glyphTable) put(r rune, g glyph) {
	for _, m := range g.marks {
		if m&soft == 0 {
			g.weight++
		}
	}
	if isTrigger(g.plain) {
		g.weight += escapeWeight
	}
	page := pageOf(r)
	if t.pages[page] == nil {
		t.pages[page] = new([256]uint16)
	}
	t.pages[page][r&0xff] = uint16(len(t.glyphs))
	t.glyphs = append(t.glyphs, g)
}

// baseMarks returns the marks of runes that need no folding.
func baseMarks() map[rune]mark {
	base := make(map[rune]mark, 1024)
	for value, set := range lookalikes {
		for _, r := range set {
			base[r] = likeness(value)
		}
	}
	for _, run := range digitRuns {
		for i := range run.n {
			base[run.first+rune(i)] = likeness(run.value + i)
		}
	}
	// Unicode keeps the ten digits of a script together and in order, so a
	// range of Nd is one or several blocks of ten.
	for _, run := range unicode.Nd.R16 {
		for r := rune(run.Lo); r <= rune(run.Hi); r++ {
			base[r] = hard | mark((r-rune(run.Lo))%10)
		}
	}
	for _, run := range unicode.Nd.R32 {
		for r := rune(run.Lo); r <= rune(run.Hi); r++ {
			base[r] = hard | mark((r-rune(run.Lo))%10)
		}
	}
	return base
}

func buildGlyphs() *glyphTable {
	t := &glyphTable{glyphs: make([]glyph, 1, 4096)}
	base := baseMarks()
	add := func(r rune) {
		g := glyph{plain: r}
		folded := norm.NFKC.PropertiesString(string(r)).Decomposition()
		if folded == nil {
			folded = []byte(string(r))
		}
		for _, x := range string(folded) {
			if m := base[x]; m != 0 {
				g.marks = append(g.marks, m)
			}
		}
		one, size := utf8.DecodeRune(folded)
		switch {
		case r >= tagPlane+' ' && r <= tagPlane+'~':
			// Tags: invisible twins of ASCII that some models read as text.
			g.plain = r - tagPlane
			g.marks = asciiMarks[g.plain]
		case invisible(r):
			g.plain, g.marks = gone, nil
		case size == len(folded) && one < utf8.RuneSelf:
			g.plain = one
		case size == len(folded) && base[one]&hard != 0:
			g.plain = '0' + rune(base[one].value())
		}
		if g.plain != r || g.marks != nil {
			t.put(r, g)
		}
	}
	for r := rune(utf8.RuneSelf); r < lowEnd; r++ {
		if utf8.ValidRune(r) {
			add(r)
		}
	}
	for r := rune(tagPlane); r < tagEnd; r++ {
		add(r)
	}
	return t
}

// invisible reports runes that leave no trace on a screen: joiners, bidi
// controls, soft hyphens, variation selectors.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
