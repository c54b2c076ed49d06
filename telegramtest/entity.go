package telegramtest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

var entityTypes = []string{"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic",
	"underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre", "text_link", "text_mention", "custom_emoji"}

// CheckEntities judges entities by the Bot API's rules, strictly: known types,
// within the text, on whole characters, not on white space alone; code and pre
// overlap nothing, quotes do not nest, others nest or stand apart.
func CheckEntities(text string, ents []Entity) error {
	u := utf16.Encode([]rune(text))
	if len(ents) > 100 {
		return fmt.Errorf("%d entities: all over 100 are dropped", len(ents))
	}
	for i, e := range ents {
		end := e.Offset + e.Length
		switch {
		case !slices.Contains(entityTypes, e.Type):
			return fmt.Errorf("entity %d: type %q", i, e.Type)
		case e.Offset < 0 || e.Length <= 0 || end > len(u):
			return fmt.Errorf("entity %d (%s): [%d, %d) of %d units", i, e.Type, e.Offset, end, len(u))
		case low(u, e.Offset) || low(u, end):
			return fmt.Errorf("entity %d (%s): cuts a character in two", i, e.Type)
		case strings.TrimFunc(string(utf16.Decode(u[e.Offset:end])), unicode.IsSpace) == "":
			return fmt.Errorf("entity %d (%s): covers white space alone", i, e.Type)
		case e.Type == "text_link" && !linkable(e.URL):
			return fmt.Errorf("entity %d: URL %q", i, e.URL)
		}
		for j, o := range ents[:i] {
			oEnd := o.Offset + o.Length
			if o.Offset >= end || e.Offset >= oEnd {
				continue
			}
			inside := o.Offset <= e.Offset && end <= oEnd || e.Offset <= o.Offset && oEnd <= end
			switch {
			case !inside:
				return fmt.Errorf("entities %d (%s) and %d (%s) cross", j, o.Type, i, e.Type)
			case code(e.Type) || code(o.Type):
				return fmt.Errorf("entities %d (%s) and %d (%s): code takes no other", j, o.Type, i, e.Type)
			case quoted(e.Type) && quoted(o.Type):
				return fmt.Errorf("entities %d and %d: quotes do not nest", j, i)
			}
		}
	}
	return nil
}

func code(t string) bool   { return t == "code" || t == "pre" }
func quoted(t string) bool { return t == "blockquote" || t == "expandable_blockquote" }

// low reports whether a cut before i would part a pair of surrogates.
func low(u []uint16, i int) bool {
	return i > 0 && i < len(u) && u[i] >= 0xDC00 && u[i] < 0xE000 && u[i-1] >= 0xD800 && u[i-1] < 0xDC00
}

func linkable(s string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains([]string{"http", "https", "tg"}, u.Scheme)
}

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) && r != '\u2800' }) < 0
}
