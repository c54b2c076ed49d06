package steer

import (
	"fmt"
	"strings"
)

// Two readers get a tool's output and a call's arguments, and they are owed different things.
//
// The model gets what is there: terminal control text is applied or removed, because it is not
// text, but every other character stays, for an edit of a file has to match what reading it
// showed, and right-to-left text is full of marks.
//
// People get what they can trust their eyes with: the characters that reorder, hide or break a
// line are shown by their number, so that nothing displays another command than the one that
// runs. Letters of right-to-left scripts stay as they are.

// Visible returns text as people may see it: valid UTF-8 of one or more lines, in which
// control characters other than line feed and tab, and the characters that Deceives names, are
// written as \u and their number. Ordinary text comes back as it is. It is idempotent.
func Visible(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	first := strings.IndexFunc(s, mustShow)
	if first < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:first])
	for _, r := range s[first:] {
		switch {
		case !mustShow(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func mustShow(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r > 0x9f && Deceives(r)
}

// Deceives names the characters that make a line look like another one. The joiners U+200C
// and U+200D and the variation selectors are not among them: they shape letters and emoji,
// and move or hide nothing else.
func Deceives(r rune) bool {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidi embeddings, overrides, isolates
	case r == 0x200e, r == 0x200f, r == 0x061c: // bidi marks: they move the neutral characters around them
	case r >= 0x206a && r <= 0x206f: // deprecated shaping and digit controls
	case r == 0x2028, r == 0x2029: // line breaks to a browser, nothing to a terminal
	case r == 0x00ad, r == 0x034f, r == 0x180e, r == 0x200b, r == 0xfeff, r >= 0x2060 && r <= 0x2064: // no width
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0: // Hangul fillers: letters that are blank
	case r >= 0xfff9 && r <= 0xfffb: // interlinear annotation: what is between may be hidden
	case r >= 0xe0000 && r <= 0xe007f: // tags: invisible ASCII
	default:
		return false
	}
	return true
}
