package markup

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestParsePartial(t *testing.T) {
	for _, c := range []struct{ name, md, want string }{
		{"finished", "**a** `b`", "‹bold:a› ‹code:b›"},
		{"bold opener at the end", "text **", "text"},
		{"bold under way", "text **bol", "text bol"},
		{"bold and italic under way", "text ***bol", "text bol"},
		{"closing half", "text **bold*", "text ‹italic:bold›"},
		{"strike under way", "a ~~b", "a b"},
		{"underscores", "a _b", "a b"},
		{"in a list", "- a\n- **b", "• a\n• b"},
		{"in a heading", "# A **b", "‹bold:A b›"},
		{"multiplication stays", "2 * 3*4 is", "2 * 3*4 is"},
		{"names stay", "snake_case and _", "snake_case and"},
		{"earlier paragraph stays", "a **b\n\nc", "a **b\n\nc"},
		{"paragraph over", "a **b\n\n", "a **b"},
		{"escaped stays", `a \*b and \[c`, "a *b and [c"},
		{"code opener", "run `", "run"},
		{"code under way", "run `ls -l", "run ‹code:ls -l›"},
		{"code with marks", "run `a*b*c [x](", "run ‹code:a*b*c [x](›"},
		{"double backticks closing", "run ``a`b`", "run ‹code:a`b›"},
		{"link label", "see [the sh", "see"},
		{"link address", "see [the sheet](https://exa", "see"},
		{"link address in brackets", "a [1] and [b](http://x.y/a_(b", "a [1] and"},
		{"image", "see ![alt](htt", "see"},
		{"link done", "see [a](http://x.y)", "see ‹link(http://x.y):a›"},
		{"label done", "see [1]", "see"},
		{"label was all", "see [1] ", "see [1]"},
		{"autolink", "see <https://x.y", "see"},
		{"tag", "a <b", "a"},
		{"comparison stays", "a < b", "a < b"},
		{"backslash", `a \`, "a"},
		{"fence opener", "a\n``", "a"},
		{"fence with language", "a\n\n```py", "a"},
		{"open fence", "```py\nx = **1", "‹pre(py):x = **1›"},
		{"closing fence coming", "```py\nx\n``", "‹pre(py):x›"},
		{"closed fence", "```py\nx\n```", "‹pre(py):x›"},
		{"table head", "a\n\n| h | i |", "a"},
		{"table head, line ended", "a\n\n| h | i |\n", "a"},
		{"table delimiter", "| h | i |\n|--", ""},
		{"table without rows", "| h | i |\n|---|---|\n", "‹pre:h | i\n--+--›"},
		{"table row", "| h | i |\n|---|---|\n| 1 | 2 |\n| 3 |", "‹pre:h | i\n--+--\n1 | 2›"},
		{"table row done", "| h | i |\n|---|---|\n| 1 | 2 |\n| 3 |\n", "‹pre:h | i\n--+--\n1 | 2\n3 |›"},
		{"underline of a heading", "Title\n--", "Title"},
		{"rule", "a\n\n--", "a"},
		{"list marker", "- a\n-", "• a"},
		{"heading marker", "a\n\n##", "a"},
		{"quote marker", "a\n\n> ", "a"},
		{"nothing", "**", ""},
		{"no-break space", "\u00a0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := renderPartial(clean(c.md), telegram)
			checkText(t, x)
			if got := show(x); got != c.want {
				t.Errorf("ParsePartial(%q)\n got %q\nwant %q", c.md, got, c.want)
			}
		})
	}
}

// No frame of a growing answer shows syntax, and a frame never shows less of
// what is finished than the one before.
func TestPartialFrames(t *testing.T) {
	syntax := regexp.MustCompile("\\*\\*|~~|\\]\\(|```|`|\\|-|^#|\n#|\\[the")
	longest := 0
	for i := range sample {
		x := ParsePartial(sample[:i])
		checkText(t, x)
		if bad := syntax.FindString(x.Plain); bad != "" {
			t.Fatalf("after %q: frame shows %q:\n%s", sample[:i], bad, x.Plain)
		}
		// A line of the source held back is the most a frame may step back.
		n := utf8.RuneCountInString(x.Plain)
		if n < longest-80 {
			t.Fatalf("after %q: frame shrank from %d to %d runes", sample[:i], longest, n)
		}
		longest = max(longest, n)
	}
}

// openclaw 129338: a name in code that is not closed yet must not become a
// mention.
func TestPartialCodeHoldsNoMention(t *testing.T) {
	if got, want := show(ParsePartial("`notify @x")), "‹code:notify @x›"; got != want {
		t.Errorf("Telegram: got %q; want %q", got, want)
	}
	if got, want := DiscordPartial("`notify @everyone", 2000), "`notify @everyone`"; len(got) != 1 || got[0] != want {
		t.Errorf("Discord: got %q; want %q", got, want)
	}
}

func TestPartialProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := markdownGen().Draw(t, "md")
		checkText(t, renderPartial(clean(md), telegram)) // without the net that would hide a panic
		// With its last paragraph over, an answer looks as it will at the end.
		md = strings.ReplaceAll(md, "\t", " ") + "\n\n"
		if got, want := show(ParsePartial(md)), show(Parse(md)); got != want {
			t.Fatalf("ParsePartial(%q)\n got %q\nwant %q", md, got, want)
		}
	})
}
