package markup

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func plains(ts []Text) []string {
	var out []string
	for _, t := range ts {
		out = append(out, t.Plain)
	}
	return out
}

func TestSplitBoundaries(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		name, text string
		limit      int
		want       []string
	}{
		{"fits", "one two", 7, []string{"one two"}},
		{"nothing", " \n\u200b\u2800", 10, nil},
		{"block before line", "aa aa\n\nbb\ncc dd", 12, []string{"aa aa", "bb\ncc dd"}},
		{"line before sentence", "aa. aa\nbb. bb. cc", 12, []string{"aa. aa", "bb. bb. cc"}},
		{"sentence before word", "Aa aa. Bb bb cc", 13, []string{"Aa aa.", "Bb bb cc"}},
		{"word", "aaa bbb ccc", 9, []string{"aaa bbb", "ccc"}},
		{"exactly at a break", "aaaa\nbbbb", 4, []string{"aaaa", "bbbb"}},
		{"grapheme", "aaaae\u0301bbb", 5, []string{"aaaa", "e\u0301bbb"}},
		{"emoji family whole", "aaaaaa👩‍👩‍👧b", 12, []string{"aaaaaa", "👩‍👩‍👧b"}},
		{"surrogate pair whole", "aaaa😀", 5, []string{"aaaa", "😀"}},
		{"cluster over the limit", "e\u0301\u0301\u0301\u0301", 3, []string{"e\u0301\u0301", "\u0301\u0301"}},
		{"limit under two", "a😀b", 1, []string{"a", "😀", "b"}},
		{"CJK has no spaces", "日本語日本語。日本語", 8, []string{"日本語日本語。", "日本語"}},
		{"short first line does not end a piece", "a\n" + a(30), 20, []string{"a\n" + a(18), a(12)}},
		{"white space between is dropped", "aaaa   \n \n   bbbb", 6, []string{"aaaa", "bbbb"}},
		{"a wall of blanks", "aaaa" + strings.Repeat(" ", 50) + "b", 6, []string{"aaaa", "b"}},
		{"invisible piece is dropped", "aaaa " + strings.Repeat("\u2800", 9) + " bb", 5, []string{"aaaa", "bb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := Text{Plain: c.text}
			got := Split(x, c.limit)
			checkSplit(t, x, max(c.limit, minLimit), got)
			if !slices.Equal(plains(got), c.want) {
				t.Errorf("got %q\nwant %q", plains(got), c.want)
			}
		})
	}
}

func TestSplitCode(t *testing.T) {
	t.Run("moved whole", func(t *testing.T) {
		x := Parse("Some text here\n\n```\naaaa\n\nbbbb\n```")
		got := Split(x, 20)
		checkSplit(t, x, 20, got)
		if want := []string{"Some text here", "aaaa\n\nbbbb"}; !slices.Equal(plains(got), want) {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("indentation and language go on", func(t *testing.T) {
		x := Parse("```go\nfunc f() {\n\n    return 1\n}\n```")
		got := Split(x, 14)
		checkSplit(t, x, 14, got)
		want := []string{"‹pre(go):func f() {›", "‹pre(go):    return 1\n}›"}
		if len(got) != 2 || show(got[0]) != want[0] || show(got[1]) != want[1] {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("indentation wider than the piece", func(t *testing.T) {
		x := Parse("```\na\n" + strings.Repeat(" ", 40) + "b\n```")
		got := Split(x, 8)
		checkSplit(t, x, 8, got)
		if want := []string{"a", "b"}; !slices.Equal(plains(got), want) {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("moved whole from within a paragraph's lines", func(t *testing.T) {
		x := Parse("Text of a line:\n```\naaaa\nbbbb\n```")
		got := Split(x, 20)
		checkSplit(t, x, 20, got)
		if want := []string{"Text of a line:", "aaaa\nbbbb"}; !slices.Equal(plains(got), want) {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("a blank line in code ends no block", func(t *testing.T) {
		x := Parse("```\naaaaaa\n\nbbbb\ncccc\ndddd\neeee\n```")
		got := Split(x, 22)
		checkSplit(t, x, 22, got)
		if want := []string{"aaaaaa\n\nbbbb\ncccc\ndddd", "eeee"}; !slices.Equal(plains(got), want) {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("indentation cut from its line", func(t *testing.T) { // looped for ever once
		x := Text{" aaaaaa", []Span{{Kind: Pre, Len: 7}}}
		got := Split(x, 3)
		checkSplit(t, x, 3, got)
		if want := []string{"aaa", "aaa"}; !slices.Equal(plains(got), want) {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("no table header within a row", func(t *testing.T) {
		// Combining marks make a row of one column 61 units long.
		x := Parse("|h|\n|-|\n|e" + strings.Repeat("\u0301", 60) + "|")
		got := Split(x, 40)
		checkSplit(t, x, 40, got)
		want := []string{"h\n-", "h\n-\ne" + strings.Repeat("\u0301", 35), strings.Repeat("\u0301", 25)}
		if !slices.Equal(plains(got), want) {
			t.Errorf("got %q; want %q", plains(got), want)
		}
	})
	t.Run("inline code and links stay whole", func(t *testing.T) {
		x := Parse("aaaa aaaa aaaa `bb bb` [cc cc](http://x.y) dddd")
		for limit := 12; limit < 40; limit++ {
			got := Split(x, limit)
			checkSplit(t, x, limit, got)
			if all := strings.Join(plains(got), "|"); !strings.Contains(all, "bb bb") || !strings.Contains(all, "cc cc") {
				t.Errorf("limit %d: %q", limit, all)
			}
		}
	})
}

// hermes 1478: "(1/3)" in long bold text broke the markup of the platform.
func TestSplitLongBold(t *testing.T) {
	x := Parse("**" + strings.Repeat("part (1/3) of it. ", 300) + "end**")
	got := Split(x, 4096)
	checkSplit(t, x, 4096, got)
	if len(got) != 2 {
		t.Fatalf("%d pieces; want 2", len(got))
	}
	for _, p := range got {
		if len(p.Spans) != 1 || p.Spans[0] != (Span{Kind: Bold, Len: Units(p.Plain)}) {
			t.Errorf("piece is not bold throughout: %+v", p.Spans)
		}
	}
}

// hermes 30242, 91891: a link across the limit is a link in both pieces.
func TestSplitInsideLink(t *testing.T) {
	x := Parse("[" + strings.Repeat("label ", 1000) + "](https://x.y/z)")
	got := Split(x, 4096)
	checkSplit(t, x, 4096, got)
	if len(got) != 2 {
		t.Fatalf("%d pieces; want 2", len(got))
	}
	for _, p := range got {
		if len(p.Spans) != 1 || p.Spans[0].URL != "https://x.y/z" {
			t.Errorf("piece is not a link: %+v", p.Spans)
		}
	}
}

// hermes 74004: a long report keeps its formatting in every message.
func TestSplitReportStaysFormatted(t *testing.T) {
	x := Parse(big(5000))
	got := Split(x, 1024)
	checkSplit(t, x, 1024, got)
	for _, p := range got {
		if len(p.Spans) == 0 {
			t.Errorf("piece without formatting: %q", p.Plain)
		}
	}
}

// openclaw 31194: the size of the text counts, not of an escaped form of it.
func TestSplitCountsRenderedText(t *testing.T) {
	md := strings.Repeat("< & > ", 680) // 4080 units; over 10,000 as HTML
	if got := Split(Parse(md), 4096); len(got) != 1 || got[0].Plain != strings.TrimSpace(md) {
		t.Fatalf("%d pieces; want the text in one", len(got))
	}
}

// openclaw 63460: a table over the limit is cut between rows, under its
// header; a quote goes on as a quote.
func TestSplitTableRepeatsHeader(t *testing.T) {
	x := Parse("Intro.\n\n| Item | Count |\n|---|--:|\n" + strings.Repeat("| row 😀 | 12 |\n", 40))
	head := "Item   | Count\n-------+------\n"
	got := Split(x, 200)
	checkSplit(t, x, 200, got)
	rows := 0
	for i, p := range got {
		body := p.Plain
		if i == 0 {
			body = strings.TrimPrefix(body, "Intro.\n\n")
		}
		rest, ok := strings.CutPrefix(body, head)
		if !ok {
			t.Fatalf("piece %d without header: %q", i, body)
		}
		for _, row := range strings.Split(rest, "\n") {
			if row != "row 😀 |    12" {
				t.Errorf("cut row %q", row)
			}
			rows++
		}
		pre := p.Spans[len(p.Spans)-1]
		if pre.Kind != Pre || pre.Len != Units(body) || pre.Head != Units(head) {
			t.Errorf("piece %d: span %+v", i, pre)
		}
	}
	if rows != 40 || len(got) < 3 {
		t.Errorf("%d rows in %d pieces; want 40 in several", rows, len(got))
	}

	q := Parse("> " + strings.Repeat("word ", 100))
	for _, p := range Split(q, 100) {
		if len(p.Spans) != 1 || p.Spans[0].Kind != ExpandableQuote {
			t.Errorf("piece is not a quote: %+v", p.Spans)
		}
	}
}

// A Text may come from anywhere; spans beyond it must not hurt.
func TestSplitForeignSpans(t *testing.T) {
	x := Text{"😀ab", []Span{{Kind: Bold, Off: -3, Len: 4}, {Kind: Italic, Off: 1, Len: 99}, {Kind: Code, Off: 7, Len: 1}, {Kind: Pre, Off: 2, Len: 2, Head: 50}}}
	for _, limit := range []int{2, 3, 10} {
		for _, p := range Split(x, limit) {
			for _, s := range p.Spans {
				if s.Off < 0 || s.Len <= 0 || s.Off+s.Len > Units(p.Plain) {
					t.Errorf("limit %d: span %+v beyond %q", limit, s, p.Plain)
				}
			}
		}
	}
}

func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := Parse(markdownGen().Draw(t, "md"))
		limit := rapid.OneOf(rapid.IntRange(2, 40), rapid.IntRange(2, 400)).Draw(t, "limit")
		pieces := Split(x, limit)
		checkSplit(t, x, limit, pieces)
		for _, p := range pieces {
			if again := Split(p, limit); len(again) != 1 || again[0].Plain != p.Plain {
				t.Fatalf("piece %q is cut again: %q", p.Plain, plains(again))
			}
		}
	})
}
