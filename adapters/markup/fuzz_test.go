package markup

import (
	"slices"
	"strings"
	"testing"
)

func seed(f *testing.F) {
	for _, s := range []string{sample, "", "> - ```\n>   x", "**a `b` [c](http://d.e) f**", "|a|b|\n|-|-|\n|1|2|", "<@1> @everyone `", "```\n \n    x\n", "e\u0301👩‍👩‍👧\u200b", "\\\n*\\", "[[a](http://b.c)"} {
		for _, limit := range []uint16{2, 64, 300} {
			f.Add(s, limit)
		}
	}
	f.Add(strings.Join(fragments, " "), uint16(70))
}

func FuzzParseSplit(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, md string, limit uint16) {
		n := max(int(limit), minLimit)
		for _, x := range []Text{unguarded(md), renderPartial(clean(md), telegram)} {
			checkText(t, x)
			checkSplit(t, x, n, Split(x, n))
		}
		// The source as text, without a parser before it.
		x := Text{Plain: clean(md)}
		checkSplit(t, x, n, Split(x, n))
	})
}

func FuzzDiscord(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, md string, limit uint16) {
		n := max(int(limit), minDiscord)
		got := discordPieces(n, render(document(clean(md)), discord(n), nil))
		checkDiscord(t, got, n)
		checkDiscord(t, discordPieces(n, renderPartial(clean(md), discord(n))), n)
		if again := DiscordMarkdown(md, n); !slices.Equal(got, again) {
			t.Fatalf("not the same twice: %q, %q", got, again)
		}
		if len(got) == 0 && visible(Parse(md).Plain) {
			t.Fatalf("lost %q", md)
		}
	})
}
