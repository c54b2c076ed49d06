package markup

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("word ", 90)
	for _, c := range []struct{ name, md, want string }{
		{"empty", " \n\n", ""},
		{"plain", "one\ntwo\n\nthree", "one\ntwo\n\nthree"},
		{"hard break", "one  \ntwo\\\nthree", "one\ntwo\nthree"},
		{"styles", "**b** *i* ~~s~~ `c`", "‹bold:b› ‹italic:i› ‹strike:s› ‹code:c›"},
		{"nested styles", "**b *bi* b**", "‹bold:b ‹italic:bi› b›"},
		{"bold in bold once", "# a **b** c", "‹bold:a b c›"},
		{"code leaves bold", "**a `c` b**", "‹bold:a› ‹code:c› ‹bold:b›"},
		{"only code in bold", "**`c`**", "‹code:c›"},
		{"span trimmed", "<b>** x **", "<b>** x **"},
		{"entity space trimmed", "**a&nbsp;** b", "‹bold:a›\u00a0 b"},
		{"headings", "# One\ntext\n\nTwo\n===\nmore\n###### Three", "‹bold:One›\ntext\n\n‹bold:Two›\nmore\n\n‹bold:Three›"},
		{"empty heading", "#\n\na", "a"},
		{"list", "- a\n- b\n  1. c\n  2. d\n     e\n- f", "• a\n• b\n  1. c\n  2. d\n     e\n• f"},
		{"list start", "3) a\n4) b", "3) a\n4) b"},
		{"loose list", "1. a\n\n   more\n\n2. b", "1. a\n\n   more\n\n2. b"},
		{"list in item", "- - a", "• • a"},
		{"tasks", "- [x] a\n- [ ] b\n\n1. [ ] c", "☑ a\n☐ b\n\n1. ☐ c"},
		{"no task", "- [x](http://a.b)", "• ‹link(http://a.b):x›"},
		{"empty item", "-\n- a", "•\n• a"},
		{"fence", "a\n```go x=1\n\n\tf()\n\n g()\n```\n\nb", "a\n‹pre(go):\tf()\n\n g()›\n\nb"},
		{"fence in item", "- a\n  ```\n  x\n   y\n  ```\n  b", "• a\n‹pre:x\n y›\n  b"},
		{"unclosed fence", "```py\nx", "‹pre(py):x›"},
		{"empty fence", "a\n\n```\n\n```\n\nb", "a\n\nb"},
		{"prose after fence", "```this is a very long line of prose, which is-not-a-language-at-all-but-a-sentence\nx\n```", "‹pre(this):x›"},
		{"indented code", "a\n\n    x\n      y", "a\n\n‹pre:x\n  y›"},
		{"rule", "a\n\n---\nb", "a\n\n———\nb"},
		{"quote", "> a\n> b\n\nc", "‹quote:a\nb›\n\nc"},
		{"quote of three lines", "> a\n> b\n> c", "‹quote:a\nb\nc›"},
		{"quote of four lines", "> a\n> b\n> c\n> d", "‹expandable quote:a\nb\nc\nd›"},
		{"long quote", "> " + long, "‹expandable quote:" + strings.TrimSpace(long) + "›"},
		{"quotes do not nest", "> a\n> > b\n>\n> c", "‹expandable quote:a\n> b\n\nc›"},
		{"code in quote", "> run `x` **now**", "‹quote:run `x` ‹bold:now››"},
		{"pre in quote", "> a\n> ```\n> x\n> ```\n> b", "‹quote:a›\n‹pre:x›\n‹quote:b›"},
		{"quote in item", "- > a\n  > b", "•\n  ‹quote:a\n  b›"},
		{"link", "[a *b*](https://x.y/z \"t\")", "‹link(https://x.y/z):a ‹italic:b››"},
		{"link forms", "[a](tg://user?id=1) [](http://x.y) [s](<http://x.y/a b>)", "‹link(tg://user?id=1):a› ‹link(http://x.y):http://x.y› ‹link(http://x.y/a%20b):s›"},
		{"code in link", "[`f`](http://x.y)", "‹link(http://x.y):f›"},
		{"other links are literal", "[a](javascript:x) [**b**](main.go) [c](mailto:a@b.c \"t\") [d](http:x)", "[a](javascript:x) [‹bold:b›](main.go) [c](mailto:a@b.c \"t\") [d](http:x)"},
		{"images", "![alt](https://x.y/i.png) ![](https://x.y/j.png) ![a](i.png)", "‹link(https://x.y/i.png):alt› ‹link(https://x.y/j.png):https://x.y/j.png› ![a](i.png)"},
		{"image in link", "[![alt](https://x.y/i.png)](https://l.m)", "‹link(https://l.m):alt›"},
		{"autolinks", "see https://x.y/a_b_c. or www.x.com, <https://x.y> <ftp://x.y>", "see ‹link(https://x.y/a_b_c):https://x.y/a_b_c›. or ‹link(http://www.x.com):www.x.com›, ‹link(https://x.y):https://x.y› <ftp://x.y>"},
		{"references are kept", "see [a][1] and [1]\n\n[1]: https://x.y", "see [a][1] and [1]\n\n[1]: ‹link(https://x.y):https://x.y›"},
		{"raw html", "a <b>b</b> <script>x*y*</script>\n\n<div>\n**c**\n</div>\n\n<!-- d\n\ne -->", "a <b>b</b> <script>x‹italic:y›</script>\n\n<div>\n**c**\n</div>\n\n<!-- d\n\ne -->"},
		{"blank lines in html", "<!-- a\n\n\n\nb -->", "<!-- a\n\nb -->"},
		{"escapes and entities", `\*a\* \\ &amp;&lt;b&gt; \&amp; &#42; &#x1F600; &nope; &#0;`, "*a* \\ &<b> &amp; * 😀 &nope; \uFFFD"},
		{"not emphasis", "2*3*4 a_b_c ** x", "2‹italic:3›4 a_b_c ** x"},
		{"bad input", "a\xffb\x00c\r\nd\re", "a\uFFFDb\uFFFDc\nd\ne"},
		{"narrow table", "| a | long |\n|---|----:|\n| 日本 | **1** |\n| x |", "‹pre:a    | long\n-----+-----\n日本 |    1\nx    |›"},
		{"table with code and break", "|a|b|\n|-|-|\n|`x\\|y`|1<br>2|", "‹pre:a   | b\n----+-----\nx|y | 1; 2›"},
		{"table without header", "| | |\n|-|-|\n|a|b|", "‹pre:a | b›"},
		{"centred", "|abcde|\n|:-:|\n|x|", "‹pre:abcde\n-----\n  x›"},
		{"wide table", "|Name|What it does|Cost|\n|-|-|-|\n|**Foo**|a text that is too long for forty columns|1|\n|`bar`|*short*||",
			"‹bold:Foo›\n• What it does: a text that is too long for forty columns\n• Cost: 1\n\n‹code:bar›\n• What it does: ‹italic:short›"},
		{"table with link", "|a|b|\n|-|-|\n|x|[l](http://x.y)|", "‹bold:x›\n• b: ‹link(http://x.y):l›"},
		{"wide table of one column", "|A header line|\n|-|\n|see http://x.y|", "‹bold:A header line›\n• see ‹link(http://x.y):http://x.y›"},
		{"table in list", "- a\n\n  |h|\n  |-|\n  |x|\n- b", "• a\n\n‹pre:h\n-\nx›\n• b"},
		{"text around table", "a\n\n|h|\n|-|\n|x|\n\nb", "a\n\n‹pre:h\n-\nx›\n\nb"},
		{"utf-16 offsets", "😀 **😀b** é `c`", "😀 ‹bold:😀b› é ‹code:c›"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := Parse(c.md)
			checkText(t, x)
			if got := show(x); got != c.want {
				t.Errorf("Parse(%q)\n got %q\nwant %q", c.md, got, c.want)
			}
		})
	}
}

func TestParseTableHead(t *testing.T) {
	x := Parse("😀\n\n|a|b|\n|-|-|\n|1|2|")
	want := Span{Kind: Pre, Off: 4, Len: 17, Head: 12}
	if len(x.Spans) != 1 || x.Spans[0] != want {
		t.Fatalf("got %+v; want %+v", x.Spans, want)
	}
	// Blank lines trimmed off the front are taken out of the header too, or
	// it would end within a rune.
	x = settle("\n\né\n-\né", []mark{{kind: Pre, start: 0, end: 9, head: 7}})
	if want = (Span{Kind: Pre, Off: 2, Len: 5, Head: 4}); len(x.Spans) != 1 || x.Spans[0] != want {
		t.Fatalf("got %+v; want %+v", x.Spans, want)
	}
}

// What a platform is given when it refuses the formatting must read well (T21,
// picoclaw 1018: users saw tags).
func TestPlainIsReadable(t *testing.T) {
	got := Parse(sample).Plain
	for _, bad := range []string{"**", "~~", "](", "```", "# ", "|--", "&lt;"} {
		if strings.Contains(got, bad) {
			t.Errorf("plain text holds %q:\n%s", bad, got)
		}
	}
	for _, want := range []string{"Weekly report", "the sheet", "make report", "List<int> & all."} {
		if !strings.Contains(got, want) {
			t.Errorf("plain text lacks %q:\n%s", want, got)
		}
	}
}

// hermes 115014: angle brackets are text and do not switch formatting off.
// openclaw 4071: nor do addresses.
func TestAngleBracketsKeepMarkdown(t *testing.T) {
	for md, want := range map[string]string{
		"a List<int> is **fast**":        "a List<int> is ‹bold:fast›",
		"std::vector<std::string> `x`":   "std::vector<std::string> ‹code:x›",
		"mail <a@b> or <c@d.ef> **now**": "mail <a@b> or <c@d.ef> ‹bold:now›",
		"if a < b && c > d: *x*":         "if a < b && c > d: ‹italic:x›",
	} {
		if got := show(Parse(md)); got != want {
			t.Errorf("Parse(%q) = %q; want %q", md, got, want)
		}
	}
}

// Nesting without bound must cost neither the stack nor quadratic output.
func TestParseDeepNesting(t *testing.T) {
	for _, s := range []string{"> ", "- ", "1. ", "*a ", "["} {
		md := strings.Repeat(s, 1000) + "x\n" + strings.Repeat("lazy\n", 500)
		x := Parse(md)
		checkText(t, x)
		if len(x.Plain) > 4*len(md) {
			t.Errorf("%q: %d bytes became %d", s, len(md), len(x.Plain))
		}
	}
}

func TestParserPanicGivesSource(t *testing.T) {
	got := orLiteral(" **a**\r\n", func() Text { panic("a bug in the parser") })
	if got.Plain != "**a**" || got.Spans != nil {
		t.Fatalf("got %+v; want the source without spans", got)
	}
}

// unguarded is Parse without its net, which would hide a panic of ours.
func unguarded(md string) Text { return render(document(clean(md)), telegram, nil) }

func TestParseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := markdownGen().Draw(t, "md")
		x := unguarded(md)
		checkText(t, x)
		if strings.TrimRightFunc(x.Plain, blank) != x.Plain {
			t.Fatalf("text ends in white space: %q", x.Plain)
		}
	})
}

// plainGen draws text without a character that means anything to Markdown.
func plainGen() *rapid.Generator[string] {
	line := rapid.StringMatching(`[A-Za-zé日😀][A-Za-zé日😀0-9,;()/ ]{0,30}[a-z😀]`)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 1, 8).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\n\n"}).Draw(t, "gap"))
	})
}

func TestPlainTextUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plainGen().Draw(t, "text")
		for _, x := range []Text{Parse(s), Parse(Parse(s).Plain), ParsePartial(s)} {
			if x.Plain != s || len(x.Spans) != 0 {
				t.Fatalf("plain text %q became %s", s, show(x))
			}
		}
		if got := DiscordMarkdown(s, 2000); len(got) != 1 || got[0] != s {
			t.Fatalf("plain text %q became %q", s, got)
		}
		if got := Split(Parse(s), 4096); len(got) != 1 || got[0].Plain != s {
			t.Fatalf("plain text %q was cut to %q", s, plains(got))
		}
	})
}
