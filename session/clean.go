package session

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanLine makes outside text fit to stand inside one line that people read:
// control and format characters (bidi overrides too) are left out, white space
// is one space, and what is longer than most runes ends in an ellipsis (I8).
func CleanLine(s string, most int) string {
	var line []byte
	n, cut, space := 0, 0, false
	put := func(r rune) bool {
		if n == most-1 {
			cut = len(line) // here the ellipsis goes, if more comes than fits
		}
		if n >= most {
			return false
		}
		line = utf8.AppendRune(line, r)
		n++
		return true
	}
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = n > 0
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d', r == utf8.RuneError:
			continue
		}
		if space && !put(' ') || !put(r) {
			return strings.TrimSuffix(string(line[:cut]), " ") + "…"
		}
		space = false
	}
	return string(line)
}

// shortID keeps an id within the 64 bytes a part's id may have.
func shortID(s string) string {
	if len(s) <= 56 {
		return s
	}
	h := sha256.Sum256([]byte(s))
	return s[:24] + hex.EncodeToString(h[:12])
}
