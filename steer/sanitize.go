package steer

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// window is how many digits of the key in a row count as the key. Half of
	// it: so a key cut short, or split over two rows, does not survive either.
	// By chance, 10 MB of random digits hold a window once in ten thousand times.
	window = keyDigits / 2
	// maxGap is how many other characters may stand between two digits that
	// are still read together.
	maxGap = 32
	// maxRounds bounds the cutting: what still forms the key after so many
	// rounds was made to, and is withheld whole.
	maxRounds = 6
)

// Sanitizer takes the given keys out of text (I8). It is made once per epoch,
// never changes, and any goroutine may use it.
//
// It is applied last: after truncation, after colour codes are stripped and
// after fencing, because joining the head of a text to its tail can create a
// key that stood in neither.
type Sanitizer struct {
	keys []pattern
	need int // see plausible
}

// NewSanitizer returns a Sanitizer for the keys: the epoch's own and, where
// rows of older epochs are still shown, theirs. It panics on a key that was
// not made by NewKey or ParseKey, because the alternative is to clean nothing.
func NewSanitizer(keys ...Key) *Sanitizer {
	s := &Sanitizer{need: math.MaxInt}
	for _, k := range keys {
		p := newPattern(k.digits())
		s.keys = append(s.keys, p)
		s.need = min(s.need, p.need)
	}
	return s
}

// Sanitize returns text as valid UTF-8 without any window of twelve digits of
// a key, in any listed encoding: each is replaced by "[key removed]", and
// hits is how many were. A text that holds none comes back byte for byte.
// If cutting does not end, the whole text is replaced by a notice.
//
// A hit in inbound text proves that the key has leaked; the caller says so
// and begins a new epoch at the next occasion.
func (s *Sanitizer) Sanitize(text string) (clean string, hits int) {
	weight, valid := s.weigh(text)
	if !valid {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
		weight = math.MaxInt
	}
	if weight < s.need {
		return text, 0
	}
	parts, hits := s.strip([]string{text}, maxRounds)
	return parts[0], hits
}

// SanitizeParts cleans the text parts of one row together: endpoints join
// them, with or without a line between, so a key split over several parts is
// a key. Each part that loses something gets its own "[key removed]"; hits
// counts those. The argument is left alone.
func (s *Sanitizer) SanitizeParts(parts []string) (clean []string, hits int) {
	clean = slices.Clone(parts)
	total := 0
	for i, p := range clean {
		weight, valid := s.weigh(p)
		if !valid {
			clean[i] = strings.ToValidUTF8(p, string(utf8.RuneError))
			weight, _ = s.weigh(clean[i])
		}
		total += weight
	}
	if total < s.need {
		return clean, 0
	}
	return s.strip(clean, maxRounds)
}

// weigh is the fast path: it counts the digits that any view of text could
// hold. It also reports whether the text is valid UTF-8; the count is of use
// only then.
//
// What counts: a digit of any script 1, a rune that folds to several as many,
// whatever an escape may begin with 3, since one escape yields at most three
// digits. Letters read as 0 or 1 do not count, for prose is full of them;
// instead a key's need leaves its own 0s and 1s out.
func (s *Sanitizer) weigh(text string) (weight int, valid bool) {
	i := 0
	for i < len(text) {
		if len(text)-i >= 8 {
			c := text[i : i+8]
			if (c[0]|c[1]|c[2]|c[3]|c[4]|c[5]|c[6]|c[7])&utf8.RuneSelf == 0 {
				weight += int(asciiWeight[c[0]] + asciiWeight[c[1]] + asciiWeight[c[2]] + asciiWeight[c[3]] +
					asciiWeight[c[4]] + asciiWeight[c[5]] + asciiWeight[c[6]] + asciiWeight[c[7]])
				i += 8
				continue
			}
		}
		if c := text[i]; c < utf8.RuneSelf {
			weight += int(asciiWeight[c])
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return weight, false
		}
		if g := glyphs().of(r); g != nil {
			weight += g.weight
		}
		i += size
	}
	return weight, true
}

var asciiWeight = func() (t [256]uint8) {
	for c := range rune(utf8.RuneSelf) {
		for _, m := range asciiMarks[c] {
			if m&soft == 0 {
				t[c]++
			}
		}
		if isTrigger(c) {
			t[c] = escapeWeight
		}
	}
	return t
}()

// strip cuts until no view of the parts, joined either way, holds a window,
// but for no more than the given rounds. Barriers make one or two enough;
// beyond that it fails closed. It may write to parts.
func (s *Sanitizer) strip(parts []string, rounds int) ([]string, int) {
	hits := 0
	for range rounds {
		n := s.round(parts)
		if n == 0 {
			return parts, hits
		}
		hits += n
	}
	if s.clean(parts) {
		return parts, hits
	}
	for i := range parts {
		parts[i] = withheld
	}
	return parts, hits + 1
}

// joints are what may stand between two text parts once they are joined.
var joints = [...]string{"", "\n"}

// round cuts every window once, in place, and returns how many cuts it made.
func (s *Sanitizer) round(parts []string) int {
	cuts := make([][]span, len(parts))
	for _, joint := range joints {
		spans := s.find(strings.Join(parts, joint))
		at := 0
		for i, p := range parts {
			for _, c := range spans {
				lo, hi := max(c.lo-at, 0), min(c.hi-at, len(p))
				if lo < hi {
					cuts[i] = append(cuts[i], span{lo, hi})
				}
			}
			at += len(p) + len(joint)
		}
		if len(parts) == 1 {
			break
		}
	}
	n := 0
	for i, c := range cuts {
		if len(c) > 0 {
			c = merge(c)
			parts[i] = cut(parts[i], c)
			n += len(c)
		}
	}
	return n
}

func (s *Sanitizer) clean(parts []string) bool {
	for _, joint := range joints {
		if len(s.find(strings.Join(parts, joint))) > 0 {
			return false
		}
	}
	return true
}

// cut puts the barrier in the place of each span.
func cut(text string, spans []span) string {
	var b strings.Builder
	at := 0
	for _, c := range spans {
		b.WriteString(text[at:c.lo])
		b.WriteString(removed)
		at = c.hi
	}
	b.WriteString(text[at:])
	return b.String()
}

// find returns the bytes of text that some view reads as a window of a key,
// merged and in order. The views are a tree: the text, and below each view
// what each decoder makes of it, maxDepth deep. A view seen before is not
// followed again, which leaves one or two of the 84 for ordinary text.
func (s *Sanitizer) find(text string) []span {
	root, escapes := newView(text)
	m := matcher{keys: s.keys, bones: make([]digit, 0, len(root))}
	m.search(root)
	if !escapes {
		return merge(m.spans)
	}
	seen := map[string]bool{}
	level := []view{root}
	for range maxDepth {
		var next []view
		for _, v := range level {
			for _, d := range decoders {
				w, changed := v.decode(d)
				if !changed {
					continue
				}
				if id := w.text(); !seen[id] {
					seen[id] = true
					m.search(w)
					next = append(next, w)
				}
			}
		}
		level = next
	}
	return merge(m.spans)
}

// text returns the view's runes, those that are none as runes nobody uses.
func (v view) text() string {
	b := make([]byte, 0, len(v))
	for _, u := range v {
		if u.r < 0 {
			u.r += utf8.MaxRune
		}
		b = utf8.AppendRune(b, u.r)
	}
	return string(b)
}
