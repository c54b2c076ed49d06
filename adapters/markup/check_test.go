package markup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// fataler is what *testing.T, *testing.F's inner T and *rapid.T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// show writes the spans into the text: ‹bold:x›, ‹link(http://a.b):x›.
func show(t Text) string {
	units := utf16.Encode([]rune(t.Plain))
	var b strings.Builder
	var ends []int
	from := 0
	flush := func(to int) {
		b.WriteString(string(utf16.Decode(units[from:to])))
		from = to
	}
	closeTo := func(at int) {
		for len(ends) > 0 && ends[len(ends)-1] <= at {
			flush(ends[len(ends)-1])
			b.WriteString("›")
			ends = ends[:len(ends)-1]
		}
	}
	for _, s := range t.Spans {
		closeTo(s.Off)
		flush(s.Off)
		fmt.Fprintf(&b, "‹%s", s.Kind)
		if arg := s.URL + s.Lang; arg != "" {
			fmt.Fprintf(&b, "(%s)", arg)
		}
		b.WriteString(":")
		ends = append(ends, s.Off+s.Len)
	}
	closeTo(len(units))
	flush(len(units))
	return b.String()
}

// checkText holds a Text to what its documentation promises.
func checkText(t fataler, x Text) {
	t.Helper()
	if !utf8.ValidString(x.Plain) {
		t.Fatalf("plain text is not UTF-8: %q", x.Plain)
	}
	units := utf16.Encode([]rune(x.Plain))
	if got := Units(x.Plain); got != len(units) {
		t.Fatalf("Units(%q) = %d; want %d", x.Plain, got, len(units))
	}
	for i, s := range x.Spans {
		if s.Kind < Bold || s.Kind > ExpandableQuote {
			t.Fatalf("span %+v: unknown kind", s)
		}
		if s.Off < 0 || s.Len <= 0 || s.Off+s.Len > len(units) {
			t.Fatalf("span %+v out of range 0..%d", s, len(units))
		}
		for _, at := range []int{s.Off, s.Off + s.Len, s.Off + s.Head} {
			if at < len(units) && at > 0 && utf16.IsSurrogate(rune(units[at])) && units[at] >= 0xDC00 && utf16.IsSurrogate(rune(units[at-1])) {
				t.Fatalf("span %+v cuts a surrogate pair", s)
			}
		}
		text := string(utf16.Decode(units[s.Off : s.Off+s.Len]))
		first, _ := utf8.DecodeRuneInString(text)
		last, _ := utf8.DecodeLastRuneInString(text)
		if blank(last) || blank(first) && (s.Kind != Pre || first == '\n') {
			t.Fatalf("span %+v is not trimmed: %q", s, text)
		}
		if (s.URL != "") != (s.Kind == Link) || s.Lang != "" && s.Kind != Pre || s.Head != 0 && s.Kind != Pre {
			t.Fatalf("span %+v carries what its kind has not", s)
		}
		if s.Head < 0 || s.Head > s.Len {
			t.Fatalf("span %+v: head beyond the span", s)
		}
		for _, o := range x.Spans[:i] {
			if o.Off > s.Off || o.Off == s.Off && o.Len < s.Len {
				t.Fatalf("spans %+v, %+v out of order", o, s)
			}
			if o.Off+o.Len <= s.Off {
				continue
			}
			solid := func(k Kind) bool { return k == Code || k == Pre }
			quote := func(k Kind) bool { return k == Quote || k == ExpandableQuote }
			if solid(o.Kind) || solid(s.Kind) {
				t.Fatalf("spans %+v, %+v overlap", o, s)
			}
			if quote(o.Kind) && quote(s.Kind) {
				t.Fatalf("quotes %+v, %+v nest", o, s)
			}
			if o.Off+o.Len < s.Off+s.Len {
				t.Fatalf("spans %+v, %+v cross", o, s)
			}
		}
	}
}

// checkSplit holds pieces to Split's contract: within limit, visible, the text
// in order with blank gaps only, each rune in the formatting it had.
func checkSplit(t fataler, x Text, limit int, pieces []Text) {
	t.Helper()
	rest, restAt := x.Plain, 0 // bytes, units
	for _, p := range pieces {
		checkText(t, p)
		if n := Units(p.Plain); n > limit {
			t.Fatalf("piece of %d units over the limit %d: %q", n, limit, p.Plain)
		}
		if !visible(p.Plain) {
			t.Fatalf("invisible piece %q", p.Plain)
		}
		body, bodyAt := p.Plain, 0
		at, ok := follows(rest, body)
		if !ok && len(p.Spans) > 0 && p.Spans[0].Off == 0 && p.Spans[0].Head > 0 {
			bodyAt = p.Spans[0].Head // a repeated table header
			head := string(utf16.Decode(utf16.Encode([]rune(body))[:bodyAt]))
			if !strings.Contains(x.Plain[:len(x.Plain)-len(rest)]+"\n", head) {
				t.Fatalf("header %q is not one of the text before", head)
			}
			body = body[len(head):]
			at, ok = follows(rest, body)
		}
		if !ok {
			t.Fatalf("piece %q does not follow at %q", p.Plain, rest)
		}
		restAt += Units(rest[:at])
		u := 0
		for _, r := range body {
			if got, want := kindsAt(p, bodyAt+u), kindsAt(x, restAt+u); !blank(r) && got != want {
				t.Fatalf("%q in piece %q is %q; want %q", r, p.Plain, got, want)
			}
			u += runeUnits(r)
		}
		rest, restAt = rest[at+len(body):], restAt+u
	}
	if visible(rest) {
		t.Fatalf("lost %q", rest)
	}
}

// follows finds body in rest behind a gap of blank or invisible runes.
func follows(rest, body string) (int, bool) {
	for at := range rest {
		if strings.HasPrefix(rest[at:], body) {
			return at, true
		}
		if r, _ := utf8.DecodeRuneInString(rest[at:]); !invisible(r) {
			break
		}
	}
	return 0, false
}

func kindsAt(x Text, unit int) string {
	var kinds []string
	for _, s := range x.Spans {
		if s.Off <= unit && unit < s.Off+s.Len {
			kinds = append(kinds, s.Kind.String()+s.URL+s.Lang)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ",")
}

// fragments from which random Markdown is put together; between them any
// string may stand.
var fragments = []string{"a", "word ", "Two words. ", "foo_bar", "_x_", "*", "**", "***", "`", "``", "~~", "[x](http://a.b/c_d)", "[", "](",
	")", "![i](https://i.j/k.png)", " ", "\n", "\n\n", "# ", "#### ", "- ", "  - ", "- [x] ", "1. ", "12) ", "> ", "> > ", "```", "```go\n", "\n```\n", "~~~\n",
	"|", "||", "| a | b |\n|---|:-:|\n| 1 | *2* |\n", "| wide header one | wide header two | wide header three |\n|-|-|-|\n| x | [y](http://z.z) | |\n",
	"---\n", "<b>", "<br>", "<div>\n", "<a@b>", "@everyone", "@here", "<@123>", "<@&5>", "<#7>", "http://x.y/z_1*", "www.x.com", "\\*", "\\", "&amp;", "&lt;", "&#0;",
	"é", "日本語", "😀", "👩‍👩‍👧", "\u0301", "\u200b", "\t", "    ", "\r\n", "\xff", "\x00", "$&", "__u__", "snake_case_ "}

func markdownGen() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom(fragments), rapid.SampledFrom(fragments), rapid.SampledFrom(fragments), rapid.StringN(0, 12, -1))
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "") })
}

// sample is an answer with everything in it; big repeats it up to n bytes.
const sample = `# Weekly report

The **March** data shows a *clear* rise, see [the sheet](https://example.com/sheet_1).
It is ~~not~~ final; run ` + "`make report`" + ` again 😀 if 日本語 matters.

- first point with **bold text**
  - nested ` + "`code`" + `
- [x] done

1. one
2. two

> A quote of one line.

| Item | Count |
|------|------:|
| a    | 1 |
| b    | 22 |

` + "```go\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n```" + `

---
The end, List<int> & all.
`

func big(n int) string {
	return strings.Repeat(sample+"\n", n/len(sample)+1)[:n]
}

func TestShowIsReadable(t *testing.T) {
	got := show(Text{"a 😀 c", []Span{{Kind: Bold, Off: 2, Len: 4}, {Kind: Link, Off: 5, Len: 1, URL: "u"}}})
	if want := "a ‹bold:😀 ‹link(u):c››"; got != want {
		t.Fatalf("got %s; want %s", got, want)
	}
}
