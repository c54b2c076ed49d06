package steer

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The oracle looks for windows of a key in its own slow way: whole strings,
// regular expressions and the library's decoders in every order, three deep.
// It shares no code with the sanitiser.

var (
	oracleJSON = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|(?:\\x[0-9a-fA-F]{2})+|\\\\|\\/`)
	oracleURL  = regexp.MustCompile(`(?:%[0-9a-fA-F]{2})+`)
)

func oracleDecodeJSON(s string) string {
	return oracleJSON.ReplaceAllStringFunc(s, func(m string) string {
		switch m[1] {
		case 'u':
			var units []uint16
			for i := 2; i < len(m); i += 6 {
				u, _ := strconv.ParseUint(m[i:i+4], 16, 16)
				units = append(units, uint16(u))
			}
			return string(utf16.Decode(units))
		case 'x':
			return oracleBytes(m, 2, 4)
		}
		return m[1:]
	})
}

func oracleDecodeURL(s string) string {
	return oracleURL.ReplaceAllStringFunc(s, func(m string) string { return oracleBytes(m, 1, 3) })
}

func oracleBytes(m string, first, step int) string {
	var raw []byte
	for i := first; i < len(m); i += step {
		b, _ := strconv.ParseUint(m[i:i+2], 16, 8)
		raw = append(raw, byte(b))
	}
	var out []rune
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError {
			r, size = rune(raw[0]), 1
		}
		out = append(out, r)
		raw = raw[size:]
	}
	return string(out)
}

// oracleViews returns every text that up to three decoders make of s.
func oracleViews(s string) map[string]bool {
	seen := map[string]bool{s: true}
	level := []string{s}
	for range 3 {
		var next []string
		for _, v := range level {
			for _, d := range []func(string) string{oracleDecodeJSON, html.UnescapeString, oracleDecodeURL} {
				if w := d(v); !seen[w] {
					seen[w] = true
					next = append(next, w)
				}
			}
		}
		level = next
	}
	return seen
}

// oracleLikenesses is the one table that is not the oracle's own.
var oracleLikenesses = func() map[rune]byte {
	m := map[rune]byte{}
	for value, set := range lookalikes {
		for _, r := range set {
			m[r] = '0' + byte(value)
		}
	}
	for _, run := range digitRuns {
		for i := range run.n {
			m[run.first+rune(i)] = '0' + byte(run.value+i)
		}
	}
	return m
}()

// oracleDigit returns the digit a folded rune is, or 0.
func oracleDigit(r rune, letters bool) byte {
	if r >= 0xE0030 && r <= 0xE0039 {
		return byte(r - 0xE0000)
	}
	if unicode.IsDigit(r) {
		zero := r
		for unicode.IsDigit(zero - 1) {
			zero--
		}
		return '0' + byte((r-zero)%10)
	}
	if letters {
		return oracleLikenesses[r]
	}
	return 0
}

// oracleWindow returns a window of the key that some view of text holds, and
// the view, or nothing.
func oracleWindow(text string, k Key) (found, in string) {
	digits := strings.ReplaceAll(string(k), "-", "")
	for piece := range strings.SplitSeq(text, removed) {
		for v := range oracleViews(piece) {
			for _, letters := range []bool{false, true} {
				for _, skeleton := range oracleSkeletons(v, letters) {
					for j := range 24 - 12 + 1 {
						if strings.Contains(skeleton, digits[j:j+12]) {
							return digits[j : j+window], v
						}
					}
				}
			}
		}
	}
	return "", ""
}

// oracleSkeletons returns the digits of v, one string for each stretch
// without a wide gap.
func oracleSkeletons(v string, letters bool) []string {
	var out []string
	var b strings.Builder
	gap := 0
	for _, r := range norm.NFKC.String(v) {
		d := oracleDigit(r, letters)
		if d == 0 {
			gap++
			continue
		}
		if gap > 32 {
			out = append(out, b.String())
			b.Reset()
		}
		gap = 0
		b.WriteByte(d)
	}
	return append(out, b.String())
}
