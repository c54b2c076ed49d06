package markup

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDiscordMarkdown(t *testing.T) {
	for _, c := range []struct{ name, md, want string }{
		{"empty", " \n", ""},
		{"kept", "# T\n\n**b** *i* ~~s~~ `c`\n\n- a\n  - b\n\n1. c\n\n> q\n> r\n\n```go\nx\n```\nend", "# T\n\n**b** *i* ~~s~~ `c`\n\n- a\n  - b\n\n1. c\n\n> q\n> r\n\n```go\nx\n```\nend"},
		{"names kept", "snake_case (i/n) List<int> a|b ~5 #1 50%", "snake_case (i/n) List<int> a|b ~5 #1 50%"},
		{"deep headings", "#### A", "**A**"},
		{"underscore styles", "__b__ _i_", "**b** *i*"},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb"},
		{"task", "- [x] a", "- ☑ a"},
		{"number with bracket", "1) a", "1\\) a"},
		{"literal marks", `\# a \*b\* \_c\_ \~~d~~ \||e||` + " \\`f\\`", "\\# a \\*b\\* \\_c\\_ \\~\\~d\\~\\~ \\|\\|e\\|\\| \\`f\\`"},
		{"literal list", "\\- a\n1986\\. b\n\\-# c\n\\> d", "\\- a\n1986\\. b\n\\-# c\n\\> d"},
		{"literal heading in a list", "- \\# a", "- \\# a"},
		{"underscore before a closing one", "foo_bar `x_`", "foo\\_bar `x_`"},
		{"links", "[a](http://x.y) http://x.y/a_b, <https://z.z> www.x.y", "[a](<http://x.y>) <http://x.y/a_b>, <https://z.z> <http://www.x.y>"},
		{"local address", "open http://localhost:8080/a*b.", "open <http://localhost:8080/a%2Ab>."},
		{"text that looks like an address", "[https://a.b](https://evil.c)", "<https://a.b> (<https://evil.c>)"},
		{"image", "![alt](http://x.y/i.png)", "[alt](<http://x.y/i.png>)"},
		{"other links are literal", "[a](tg://x) [b](c.go)", "[a]" + zero + "(tg://x) [b]" + zero + "(c.go)"},
		{"neighbours kept apart", "**a**_b_ `c`**`d`**", "**a**" + zero + "*b* `c`" + zero + "`d`"},
		{"quote keeps code", "> a `b`\n>\n> c", "> a `b`\n> \n> c"},
		{"fence in quote", "> a\n> ```\n> x\n> ```\n> b", "> a\n```\nx\n```\n> b"},
		{"mentions", "@everyone @here <@1> <@!2> <@&3> <#4> a@heres", "@" + zero + "everyone @" + zero + "here <" + zero + "@1> <" + zero + "@!2> <" + zero + "@&3> <" + zero + "#4> a@" + zero + "heres"},
		{"mentions in code stay", "`@everyone`\n\n```\n<@1>\n```", "`@everyone`\n\n```\n<@1>\n```"},
		{"mention in unfinished code", "`notify @everyone", "\\`notify @" + zero + "everyone"},
		{"mention in an address", "[a](http://x.y/@everyone) http://x.y/@here", "[a](<http://x.y/%40everyone>) <http://x.y/%40here>"},
		{"other angle brackets", "\\<t:1> \\<:e:2> \\</c:3>", "\\<t:1> \\<:e:2> \\</c:3>"},
		{"backticks in code", "`` a`b ``", "``a`b``"},
		{"nested fence", "````md\n```go\nx\n```\n````", "```md\n``" + zero + "`go\nx\n``" + zero + "`\n```"},
		{"fence language", "```C++\nx\n```\n\n```c#\ny\n```\n\n```{.x!}\nz\n```", "```c++\nx\n```\n\n```cs\ny\n```\n\n```\nz\n```"},
		{"narrow table", "|a|b|\n|-|-|\n|1|2|", "```\na | b\n--+--\n1 | 2\n```"},
		{"55 columns", "|" + strings.Repeat("a", 26) + "|" + strings.Repeat("b", 26) + "|\n|-|-|\n|1|2|", "```\n" + strings.Repeat("a", 26) + " | " + strings.Repeat("b", 26) + "\n" + strings.Repeat("-", 26) + "-+-" + strings.Repeat("-", 26) + "\n1" + strings.Repeat(" ", 25) + " | 2\n```"},
		{"56 columns", "|" + strings.Repeat("a", 26) + "|" + strings.Repeat("b", 27) + "|\n|-|-|\n|1|2|", "**1**\n- " + strings.Repeat("b", 27) + ": 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := DiscordMarkdown(c.md, 2000)
			checkDiscord(t, got, 2000)
			if all := strings.Join(got, "<cut>"); all != c.want {
				t.Errorf("DiscordMarkdown(%q)\n got %q\nwant %q", c.md, all, c.want)
			}
		})
	}
}

// discordCode matches what Discord's client takes for an escape, a code block
// or inline code, in its order; the fence ends at the first three backticks.
var discordCode = regexp.MustCompile("(?s)^(?:\\\\[^0-9A-Za-z\\s]|```(?:[a-zA-Z0-9_+\\-.]+?\n)?\n*[^\n].*?\n*```|``[^`].*?[^`]``|``[^`]``|`[^`]+`)")

// outsideCode is s without code, an escape left as its character.
func outsideCode(s string) string {
	var b strings.Builder
	for s != "" {
		m := discordCode.FindString(s)
		switch {
		case m == "":
			b.WriteByte(s[0])
			s = s[1:]
		case m[0] == '\\':
			b.WriteString(zero + m[1:])
			s = s[len(m):]
		default:
			b.WriteByte(' ')
			s = s[len(m):]
		}
	}
	return b.String()
}

// checkDiscord holds pieces to what DiscordMarkdown promises of each.
func checkDiscord(t fataler, pieces []string, limit int) {
	t.Helper()
	for _, p := range pieces {
		if n := Units(p); n > limit {
			t.Fatalf("piece of %d units over the limit %d: %q", n, limit, p)
		}
		if !visible(p) {
			t.Fatalf("invisible piece %q", p)
		}
		out := outsideCode(p)
		if strings.Contains(strings.ReplaceAll(out, zero+"`", ""), "`") {
			t.Fatalf("open code in %q", p)
		}
		if m := mention.FindString(out); m != "" { // D20
			t.Fatalf("live mention %q in %q", m, p)
		}
	}
}

func TestOutsideCode(t *testing.T) {
	if got, want := outsideCode("a `b` ```c\n@here``` \\`d ``e`f``"), "a     "+zero+"`d  "; got != want {
		t.Fatalf("got %q; want %q", got, want)
	}
}

// openclaw 110148, 95661, 138413: closing and opening a fence again made
// chunks over 2000, and the reply was dropped (D17).
func TestDiscordFenceIsCharged(t *testing.T) {
	for name, md := range map[string]string{
		"a line of 1990":        "```python\n" + strings.Repeat("x", 1990) + "\n```",
		"many lines":            "```python\n" + strings.Repeat(strings.Repeat("y", 98)+"\n", 100) + "```",
		"text before":           strings.Repeat("word ", 390) + "\n```go\n" + strings.Repeat("z z\n", 600) + "```\nend",
		"info string of 500":    "```" + strings.Repeat("i", 500) + "\n" + strings.Repeat("w", 3000) + "\n```",
		"nothing but backticks": "~~~\n" + strings.Repeat("`", 4000) + "\n~~~",
	} {
		t.Run(name, func(t *testing.T) {
			got := DiscordMarkdown(md, 2000)
			checkDiscord(t, got, 2000)
			for i, p := range got {
				if strings.Count(p, "```")%2 != 0 {
					t.Errorf("piece %d: odd fences: %q", i, p)
				}
				if Units(p) < 900 && i < len(got)-1 {
					t.Errorf("piece %d has only %d units", i, Units(p))
				}
			}
			all := strings.Join(got, "")
			for _, c := range "xyzw" {
				if n := strings.Count(md, string(c)); strings.Count(all, string(c)) < n-2 { // "python" holds a y
					t.Errorf("%q: %d left of %d", c, strings.Count(all, string(c)), n)
				}
			}
		})
	}
	t.Run("language comes back", func(t *testing.T) {
		for _, p := range DiscordMarkdown("```python\n"+strings.Repeat("x = 1\n", 600)+"```", 2000) {
			if !strings.HasPrefix(p, "```python\nx = 1\n") || !strings.HasSuffix(p, "x = 1\n```") {
				t.Errorf("piece %q…%q", p[:20], p[len(p)-20:])
			}
		}
	})
	t.Run("long info string is left out", func(t *testing.T) {
		for _, p := range DiscordMarkdown("```"+strings.Repeat("i", 30)+"\n"+strings.Repeat("x\n", 1500)+"```", 2000) {
			if !strings.HasPrefix(p, "```\nx\n") {
				t.Errorf("piece begins %q", p[:40])
			}
		}
	})
}

// hermes 30242: neither an escape nor a link is cut apart.
func TestDiscordCutsNoSyntax(t *testing.T) {
	got := DiscordMarkdown(strings.Repeat(`\*`, 3000), 2000)
	checkDiscord(t, got, 2000)
	if all := strings.Join(got, ""); all != strings.Repeat(`\*`, 3000) {
		t.Errorf("escapes changed: %d units", Units(all))
	}
	for _, p := range got {
		if strings.Count(p, `\`) != strings.Count(p, "*") {
			t.Errorf("cut escape: %q", p)
		}
	}

	got = DiscordMarkdown("**["+strings.Repeat("label ", 500)+"](https://x.y/z)**", 2000)
	checkDiscord(t, got, 2000)
	if len(got) != 2 {
		t.Fatalf("%d pieces; want 2", len(got))
	}
	for _, p := range got {
		if !strings.HasPrefix(p, "**[label") || !strings.HasSuffix(p, "label](<https://x.y/z>)**") {
			t.Errorf("piece %q…%q", p[:20], p[len(p)-40:])
		}
	}
}

func TestDiscordAddressLongerThanAMessage(t *testing.T) {
	addr := "https://x.y/" + strings.Repeat("abcdefghi/", 300)
	for _, md := range []string{"see [it](" + addr + ") now", "see " + addr + " now"} {
		got := DiscordMarkdown(md, 2000)
		checkDiscord(t, got, 2000)
		all := strings.NewReplacer("<", "", ">", "", zero, "").Replace(strings.Join(got, ""))
		if !strings.Contains(all, addr) || !strings.Contains(all, "now") {
			t.Errorf("%q: address lost in %q", md[:20], got)
		}
	}
}

// openclaw 63460: a long table is cut between rows, each piece a block with
// the header.
func TestDiscordTableOverLimit(t *testing.T) {
	got := DiscordMarkdown("| Item | Count |\n|---|--:|\n"+strings.Repeat("| a row | 12 |\n", 300), 2000)
	checkDiscord(t, got, 2000)
	rows := 0
	for _, p := range got {
		if !strings.HasPrefix(p, "```\nItem  | Count\n------+------\na row |    12\n") || !strings.HasSuffix(p, "\na row |    12\n```") {
			t.Errorf("piece %q…%q", p[:60], p[len(p)-20:])
		}
		rows += strings.Count(p, "a row |    12")
	}
	if rows != 300 || len(got) < 2 {
		t.Errorf("%d rows in %d pieces; want 300 in several", rows, len(got))
	}
}

func TestDiscordSmallLimits(t *testing.T) {
	for _, limit := range []int{-1, 0, 10, 64, 65, 100} {
		checkDiscord(t, DiscordMarkdown(sample, limit), max(limit, minDiscord))
	}
}

// letters are what must come through whatever is changed around them.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '日' || r == '😀' {
			return r
		}
		return -1
	}, s)
}

func TestDiscordProperties(t *testing.T) {
	noise := regexp.MustCompile("%[0-9A-F]{2}|http://(www)")
	rapid.Check(t, func(t *rapid.T) {
		md := markdownGen().Draw(t, "md")
		limit := rapid.IntRange(64, 400).Draw(t, "limit")
		got := discordPieces(limit, render(document(clean(md)), discord(limit), nil))
		checkDiscord(t, got, limit)
		checkDiscord(t, discordPieces(limit, renderPartial(clean(md), discord(limit))), limit)

		whole := DiscordMarkdown(md, 1<<20)
		checkDiscord(t, whole, 1<<20)
		if len(whole) > 1 {
			t.Fatalf("cut without need: %q", whole)
		}
		x := render(document(clean(md)), discord(1<<20), nil)
		if len(whole) == 1 && !slices.ContainsFunc(x.Spans, func(s Span) bool { return s.Kind == Link || s.Kind == Pre }) {
			a, b := letters(noise.ReplaceAllString(whole[0], "$1")), letters(noise.ReplaceAllString(x.Plain, "$1"))
			if a != b {
				t.Fatalf("letters changed:\n%q\n%q", whole[0], x.Plain)
			}
		}
	})
}
