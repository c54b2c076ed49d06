package steer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// controlWords are the control tokens of common model families that have no
// bar in them. Local servers read them as tokens also inside ordinary text
// (llama.cpp issue 24382).
var controlWords = [...]string{
	"[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>", "<eos>", "<unk>", "<pad>",
	"<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>",
	"[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[IMG]", "[gMASK]", "<sop>",
}

// longestControl bounds the name in "<|name|>", in bytes; the longest known
// ones have about thirty.
const longestControl = 64

// NeutralizeControl breaks every control token in text by a space after its
// first character: "<|im_end|>" becomes "< |im_end|>". The edit is visible, so
// that a model which copies the text sees what it copies, and text without
// such tokens comes back as it is. It is for every row but the system prompt,
// on endpoints that are not marked hosted.
func NeutralizeControl(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	var b strings.Builder
	kept := 0
	for i := range len(text) {
		// Each place is looked at by itself, since a token may begin within another.
		if c := text[i]; (c == '<' || c == '[') && isControl(text[i:]) {
			b.WriteString(text[kept : i+1])
			b.WriteByte(' ')
			kept = i + 1
		}
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// isControl reports whether text begins with a control token: one of the
// words, or a name between "<" and ">" with a bar on either side or on both
// ("<|name|>", "<｜name｜>", "<|name>", "<name|>").
func isControl(text string) bool {
	for _, w := range controlWords {
		if strings.HasPrefix(text, w) {
			return true
		}
	}
	if text[0] != '<' {
		return false
	}
	rest, before := cutBar(text[1:])
	for n, r := range rest {
		if n > longestControl {
			return false
		}
		after, bar := cutBar(rest[n:])
		switch {
		case n > 0 && bar && strings.HasPrefix(after, ">"):
			return true
		case n > 0 && before && r == '>':
			return true
		case bar, r == '<', r == '>', unicode.IsSpace(r):
			return false
		}
	}
	return false
}

func cutBar(s string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(s, "|"); !ok {
		rest, ok = strings.CutPrefix(s, "｜")
	}
	return rest, ok
}

// lookalikeHeads are the beginnings of a note's two lines, without the key and
// reduced to what skeleton letters leave of them.
var lookalikeHeads = [...]string{"[[gatewaynote", "[[endgatewaynote"}

// headGap is how many dropped runes (dashes, spaces, joiners) may stand
// between two letters of such a beginning.
const headGap = 4

// QuoteLookalike makes the beginning of a line that imitates a note, but does
// not have the key, visibly a quotation: "[[gateway-note" becomes
// "[quoted: gateway-note". It is for text from the web, from MCP servers and
// from memory. File bodies are left alone, or an agent could not edit a file
// that speaks of notes.
func QuoteLookalike(text string) string {
	if !strings.ContainsAny(text, "[［⟦〚") {
		return text
	}
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		open, size := openBrackets(text[i:])
		if open == 0 {
			_, size = utf8.DecodeRuneInString(text[i:])
			i += size
			continue
		}
		// The longest run of brackets is taken whole, so none is left to pair up.
		if open >= 2 && imitatesHead(text[i+size:]) {
			b.WriteString(text[kept:i])
			b.WriteString(quoted)
			kept = i + size
		}
		i += size
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// openBrackets counts the opening brackets that text begins with, spaces and
// invisible runes between them, and how many bytes they take.
func openBrackets(text string) (n, size int) {
	for i, r := range text {
		switch {
		case r == '[' || r == '［':
			n++
		case r == '⟦' || r == '〚':
			n += 2
		case n > 0 && (unicode.IsSpace(r) || invisible(r)):
			continue
		default:
			return n, size
		}
		size = i + utf8.RuneLen(r)
	}
	return n, size
}

// imitatesHead reports whether text goes on with a note's name.
func imitatesHead(text string) bool {
	skeleton := "[["
	gap := 0
	for _, r := range text {
		letter := skeletonLetter(r)
		if letter == 0 {
			if gap++; gap > headGap {
				return false
			}
			continue
		}
		gap = 0
		skeleton += string(letter)
		possible := false
		for _, head := range lookalikeHeads {
			if skeleton == head {
				return true
			}
			possible = possible || strings.HasPrefix(head, skeleton)
		}
		if !possible {
			return false
		}
	}
	return false
}

// skeletonLetter folds a letter to the small ASCII letter it looks like, and
// anything that is no letter to 0.
func skeletonLetter(r rune) byte {
	if r >= utf8.RuneSelf {
		switch r {
		case 'а', 'А', 'Α', 'α':
			return 'a'
		case 'е', 'Е', 'Ε':
			return 'e'
		case 'о', 'О', 'ο', 'Ο':
			return 'o'
		case 'т', 'Т', 'Τ':
			return 't'
		case 'у', 'У', 'Υ':
			return 'y'
		case 'Ν':
			return 'n'
		case 'ԁ':
			return 'd'
		case 'ԝ':
			return 'w'
		case 'ɡ':
			return 'g'
		}
		if g := glyphs().of(r); g != nil && g.plain < utf8.RuneSelf && g.plain > 0 {
			r = g.plain
		}
	}
	switch {
	case r >= 'a' && r <= 'z':
		return byte(r)
	case r >= 'A' && r <= 'Z':
		return byte(r - 'A' + 'a')
	case unicode.IsLetter(r):
		return '?' // another letter: not this word
	}
	return 0
}
