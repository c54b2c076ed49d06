package steer

import (
	"html"
	"strings"
	"unicode/utf8"
)

// A view is one reading of a text: its runes after some escapes were undone,
// each with the bytes of the original text it came from. The first view is
// the text itself, with full-width and tag forms of ASCII made plain.
type view []unit

type unit struct {
	r      rune
	lo, hi int32
}

// decoder is a set of escape languages undone in one pass.
type decoder uint8

const (
	jsonEscapes decoder = 1 << iota // \uXXXX \u{X} \UXXXXXXXX \xXX \\ \/
	htmlEntities
	urlEscapes // %XX
)

// decoders are the passes tried at every depth: each language alone, because
// text may be meant for one of them and look like an escape to another
// ("&#5%32;"), and all together, because they may change from rune to rune.
var decoders = [...]decoder{jsonEscapes, htmlEntities, urlEscapes, jsonEscapes | htmlEntities | urlEscapes}

// maxDepth is how many layers of escaping are undone.
const maxDepth = 3

// isTrigger reports whether an escape may begin with r.
func isTrigger(r rune) bool { return r == '\\' || r == '&' || r == '%' }

// newView returns the first view, and whether any escape might be in it.
// The text must be valid UTF-8.
func newView(text string) (v view, escapes bool) {
	v = make(view, 0, len(text))
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		switch {
		case r == '[' && strings.HasPrefix(text[i:], removed):
			r, size = barrier, len(removed)
		case r >= utf8.RuneSelf:
			r, size = utf8.DecodeRuneInString(text[i:])
			if g := glyphs().of(r); g != nil {
				r = g.plain
			}
		}
		if isTrigger(r) {
			escapes = true
		}
		if r != gone {
			v = append(v, unit{r, int32(i), int32(i + size)})
		}
		i += size
	}
	return v, escapes
}

// decode undoes one layer of the given escapes. If there was nothing to undo
// it returns false.
func (v view) decode(d decoder) (view, bool) {
	var out view
	kept := 0 // v[:kept] is in out
	for i := 0; i < len(v); {
		if !isTrigger(v[i].r) {
			i++
			continue
		}
		runes, n := v[i:].escape(d)
		if n == 0 {
			i++
			continue
		}
		if out == nil {
			out = make(view, 0, len(v))
		}
		out = append(out, v[kept:i]...)
		for _, r := range runes {
			if r >= utf8.RuneSelf {
				if g := glyphs().of(r); g != nil {
					r = g.plain
				}
			}
			if r != gone {
				out = append(out, unit{r, v[i].lo, v[i+n-1].hi})
			}
		}
		i += n
		kept = i
	}
	if out == nil {
		return v, false
	}
	return append(out, v[kept:]...), true
}

// escape reads the escape at the beginning of v: what it stands for and how
// many units it takes, 0 if it is none.
func (v view) escape(d decoder) ([]rune, int) {
	switch {
	case v[0].r == '&' && d&htmlEntities != 0:
		return v.entity()
	case v[0].r == '\\' && d&jsonEscapes != 0:
		if len(v) > 1 && (v[1].r == '\\' || v[1].r == '/') {
			return []rune{v[1].r}, 2
		}
		if r, n := v.unicodeEscape(); n > 0 {
			return []rune{r}, n
		}
	}
	return v.byteEscapes(d)
}

// unicodeEscape reads \uXXXX, a pair of them, \u{X…} and \UXXXXXXXX.
func (v view) unicodeEscape() (rune, int) {
	if len(v) < 3 {
		return 0, 0
	}
	switch {
	case v[1].r == 'U':
		if r, ok := v.hex(2, 8); ok {
			return r, 10
		}
	case v[1].r == 'u' && v[2].r == '{':
		for n := 1; n <= 8 && 3+n < len(v); n++ {
			if r, ok := v.hex(3, n); !ok {
				break
			} else if v[3+n].r == '}' {
				return r, 4 + n
			}
		}
	case v[1].r == 'u':
		r, ok := v.hex(2, 4)
		if !ok {
			break
		}
		if r >= 0xD800 && r < 0xDC00 && len(v) >= 12 && v[6].r == '\\' && v[7].r == 'u' {
			if low, ok := v.hex(8, 4); ok && low >= 0xDC00 && low < 0xE000 {
				return (r-0xD800)<<10 + low - 0xDC00 + 0x10000, 12
			}
		}
		return r, 6
	}
	return 0, 0
}

// byteEscapes reads %XX or \xXX as UTF-8 where several make a rune, else as
// one character of Latin-1.
func (v view) byteEscapes(d decoder) ([]rune, int) {
	var buf [utf8.UTFMax]byte
	var ends [utf8.UTFMax]int
	n, at := 0, 0
	for n < len(buf) && at < len(v) {
		var digits int // where the hexadecimal digits begin
		switch {
		case v[at].r == '%' && d&urlEscapes != 0:
			digits = at + 1
		case v[at].r == '\\' && d&jsonEscapes != 0 && at+1 < len(v) && v[at+1].r == 'x':
			digits = at + 2
		}
		if digits == 0 {
			break
		}
		b, ok := v.hex(digits, 2)
		if !ok {
			break
		}
		buf[n] = byte(b)
		at = digits + 2
		ends[n] = at
		n++
		if buf[0] < utf8.RuneSelf {
			break
		}
	}
	if n == 0 {
		return nil, 0
	}
	if r, size := utf8.DecodeRune(buf[:n]); r != utf8.RuneError {
		return []rune{r}, ends[size-1]
	}
	return []rune{rune(buf[0])}, ends[0]
}

// entity reads an HTML character reference, numeric or named, with or without
// its semicolon: browsers accept both.
func (v view) entity() ([]rune, int) {
	if len(v) < 3 {
		return nil, 0
	}
	if v[1].r != '#' {
		return v.namedEntity()
	}
	at, base := 2, rune(10)
	if v[2].r == 'x' || v[2].r == 'X' {
		at, base = 3, 16
	}
	begin, n, wrapped := at, rune(0), rune(0)
	for ; at < len(v); at++ {
		d := hexValue(v[at].r)
		if d < 0 || d >= base {
			break
		}
		// Leading zeros may be many; a number beyond Unicode stays there.
		n = min(n*base+d, utf8.MaxRune+1)
		wrapped = wrapped*base + d
	}
	closed := at < len(v) && v[at].r == ';'
	switch {
	case at == begin:
		return nil, 0
	case at == begin+1 && base == 10 && !closed:
		// A browser sees a control character here, the html package "&#6".
		return []rune{optional - n}, at
	case n > utf8.MaxRune && wrapped >= '0' && wrapped <= '9':
		// To the standard this is no character, to 32-bit arithmetic a digit.
		n = optional - (wrapped - '0')
	}
	if closed {
		at++
	}
	return []rune{n}, at
}

// namedEntity reads "&name;" and, for the old names, "&name". The table is
// the html package's, which keeps it private and so is asked by example.
func (v view) namedEntity() ([]rune, int) {
	const longest = 31 // CounterClockwiseContourIntegral
	var name []byte
	for at := 1; at < len(v) && len(name) <= longest && isAlnum(v[at].r); at++ {
		name = append(name, byte(v[at].r))
	}
	if len(name) < 2 {
		return nil, 0
	}
	end := 1 + len(name)
	if end < len(v) && v[end].r == ';' {
		bare := html.UnescapeString("&" + string(name))
		if full := html.UnescapeString("&" + string(name) + ";"); full != bare+";" {
			return []rune(full), end + 1
		}
	}
	const longestBare = 6
	for n := min(len(name), longestBare); n > 1; n-- {
		// The name is known if its last letter makes a difference.
		full := html.UnescapeString("&" + string(name[:n]))
		if full != html.UnescapeString("&"+string(name[:n-1]))+string(name[n-1]) {
			return []rune(full), 1 + n
		}
	}
	return nil, 0
}

// hex reads n hexadecimal digits at v[at:].
func (v view) hex(at, n int) (rune, bool) {
	if at+n > len(v) {
		return 0, false
	}
	r := rune(0)
	for _, u := range v[at : at+n] {
		d := hexValue(u.r)
		if d < 0 {
			return 0, false
		}
		r = min(r<<4|d, utf8.MaxRune+1)
	}
	return r, true
}

func hexValue(r rune) rune {
	switch {
	case r >= '0' && r <= '9':
		return r - '0'
	case r >= 'a' && r <= 'f':
		return r - 'a' + 10
	case r >= 'A' && r <= 'F':
		return r - 'A' + 10
	}
	return -1
}

func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
