package markup

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a Span does to its text.
type Kind uint8

// The kinds. Code and Pre never overlap another span; quotes never nest; all
// others may lie inside one another. This is the strictest reading of
// Telegram's entity rules.
const (
	Bold Kind = iota + 1
	Italic
	Strike
	Code            // inline
	Pre             // a block, on lines of its own
	Link            // URL is set; http, https or tg
	Quote           // one or more whole lines
	ExpandableQuote // a long quote, folded where the platform can

	// verbatim is Discord's own syntax ("# ", "- "), written without
	// escaping. It never leaves the package.
	verbatim
)

var kindNames = [...]string{Bold: "bold", Italic: "italic", Strike: "strike", Code: "code", Pre: "pre",
	Link: "link", Quote: "quote", ExpandableQuote: "expandable quote", verbatim: "verbatim"}

// String names the kind for logs and tests.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown"
}

// Span is one stretch of formatted text.
type Span struct {
	Kind     Kind
	Off, Len int    // UTF-16 units over Text.Plain, Telegram's measure
	URL      string // Link only
	Lang     string // Pre only: the fence's language, may be empty
	Head     int    // Pre holding a table: units of its header lines, which Split repeats on each continuation
}

// Text is plain text with formatting beside it. Plain alone is the readable
// fallback when a platform refuses the formatting (T21).
//
// Spans are sorted by Off, longer first; they lie in Plain, never cut a
// surrogate pair, and neither begin nor end in white space (a Pre may begin
// with the indentation of its first line).
type Text struct {
	Plain string
	Spans []Span
}

// Units counts s in UTF-16 units, the measure of every limit in this package.
// Discord counts code points, which are never more.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

func runeUnits(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// blank runes are trimmed where a text is cut and where a span begins or ends.
func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// invisible runes do not make a message: Telegram answers "message text is
// empty" to a text of these alone. They are kept beside visible ones.
func invisible(r rune) bool {
	switch r {
	case '\u115F', '\u1160', '\u2800', '\u3164', '\uFFA0':
		return true
	}
	return blank(r) || unicode.Is(unicode.Cf, r)
}

func visible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !invisible(r) }) >= 0
}

// mark is a span in bytes, the form the package computes in.
type mark struct {
	kind       Kind
	start, end int
	url, lang  string
	head       int // bytes
}

// trim drops white space at both ends; a Pre keeps the indentation of its
// first line, which is part of the code.
func (m mark) trim(plain string) mark {
	s := plain[m.start:m.end]
	s = strings.TrimRightFunc(s, blank)
	m.end = m.start + len(s)
	lead := len(s) - len(strings.TrimLeftFunc(s, blank))
	if m.kind == Pre {
		lead = strings.LastIndexByte(s[:lead], '\n') + 1
	}
	m.start += lead
	m.head = min(max(m.head-lead, 0), max(m.end-m.start, 0))
	return m
}

// settle turns marks into the spans of plain.
func settle(plain string, marks []mark) Text {
	return Text{Plain: plain, Spans: toSpans(plain, exclusive(plain, marks))}
}

// exclusive trims and sorts marks, drops the empty ones and takes what Code
// and Pre cover out of the others.
func exclusive(plain string, marks []mark) []mark {
	var solid, out []mark
	for _, m := range marks {
		if m.end = min(m.end, len(plain)); m.kind == 0 || m.start >= m.end {
			continue
		}
		if m = m.trim(plain); m.start < m.end && (m.kind == Code || m.kind == Pre) {
			solid = append(solid, m)
		}
	}
	for _, m := range marks {
		if m.end = min(m.end, len(plain)); m.kind == 0 || m.kind == Code || m.kind == Pre || m.start >= m.end {
			continue
		}
		out = appendAround(out, plain, m, solid)
	}
	out = append(out, solid...)
	slices.SortStableFunc(out, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(rank(a.kind), rank(b.kind)))
	})
	return out
}

// appendAround appends the parts of m that no Code or Pre covers. solid is in
// order and without overlap: its marks are leaves of the document. A quote
// goes round Pre only: where a platform allows no code in quotes, none is
// marked there.
func appendAround(out []mark, plain string, m mark, solid []mark) []mark {
	add := func(start, end int) {
		part := m
		part.start, part.end = start, end
		if part = part.trim(plain); part.start < part.end {
			out = append(out, part)
		}
	}
	i := sort.Search(len(solid), func(i int) bool { return solid[i].end > m.start })
	for at := m.start; ; i++ {
		if i == len(solid) || solid[i].start >= m.end {
			if at < m.end {
				add(at, m.end)
			}
			return out
		}
		if rank(m.kind) == 0 && solid[i].kind == Code {
			continue
		}
		if at < solid[i].start {
			add(at, solid[i].start)
		}
		at = solid[i].end
	}
}

// rank orders spans that cover the same text, the outer one first.
func rank(k Kind) int {
	switch k {
	case Quote, ExpandableQuote:
		return 0
	}
	return int(k)
}

func toSpans(plain string, marks []mark) []Span {
	if len(marks) == 0 {
		return nil
	}
	offs := make([]int, 0, 3*len(marks))
	for _, m := range marks {
		offs = append(offs, m.start, m.end, m.start+m.head)
	}
	unit := unitIndex(plain, offs)
	spans := make([]Span, 0, len(marks))
	for _, m := range marks {
		off := unit(m.start)
		spans = append(spans, Span{Kind: m.kind, Off: off, Len: unit(m.end) - off, URL: m.url, Lang: m.lang, Head: unit(m.start+m.head) - off})
	}
	return spans
}

// unitIndex returns a function from each of the byte offsets in offs to UTF-16
// units, walking s once.
func unitIndex(s string, offs []int) func(int) int {
	if isASCII(s) {
		return func(off int) int { return off }
	}
	slices.Sort(offs)
	offs = slices.Compact(offs)
	units := make([]int, len(offs))
	at, n := 0, 0
	for i, off := range offs {
		n += Units(s[at:off])
		at, units[i] = off, n
	}
	return func(off int) int {
		i, _ := slices.BinarySearch(offs, off)
		return units[i]
	}
}

// toMarks is the way back, for a Text from anywhere: spans are clamped to the
// text, widened to whole runes, and dropped when nothing is left.
func toMarks(t Text) []mark {
	if len(t.Spans) == 0 {
		return nil
	}
	byteAt := byteIndex(t)
	marks := make([]mark, 0, len(t.Spans))
	for _, s := range t.Spans {
		m := mark{kind: s.Kind, start: byteAt(s.Off), end: byteAt(s.Off + s.Len), url: s.URL, lang: s.Lang}
		if s.Head > 0 {
			m.head = byteAt(s.Off+s.Head) - m.start
		}
		if m.start < m.end {
			marks = append(marks, m)
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	return marks
}

func byteIndex(t Text) func(unit int) int {
	if isASCII(t.Plain) {
		return func(unit int) int { return min(max(unit, 0), len(t.Plain)) }
	}
	var want []int
	for _, s := range t.Spans {
		want = append(want, s.Off, s.Off+s.Len, s.Off+s.Head)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	at := make([]int, len(want))
	i, n := 0, 0
	for off, r := range t.Plain {
		for i < len(want) && want[i] <= n {
			at[i] = off
			i++
		}
		n += runeUnits(r)
	}
	for ; i < len(want); i++ {
		at[i] = len(t.Plain)
	}
	return func(unit int) int {
		i, _ := slices.BinarySearch(want, unit)
		return at[i]
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
