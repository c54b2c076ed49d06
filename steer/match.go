package steer

import (
	"slices"
)

// span is a range of bytes of a text.
type span struct{ lo, hi int }

// merge sorts spans and joins those that overlap or touch.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.lo - b.lo })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1].hi {
			out[n-1].hi = max(out[n-1].hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}

// pattern is a key made ready for matching.
type pattern struct {
	digits [keyDigits]uint8
	at     [10]uint32 // bit j of at[d]: the key's digit j is d
	need   int        // the fewest digits other than 0 and 1 in any window
}

func newPattern(digits [keyDigits]uint8) pattern {
	p := pattern{digits: digits, need: window}
	for j, d := range digits {
		p.at[d] |= 1 << j
	}
	for j := range keyDigits - window + 1 {
		n := 0
		for _, d := range digits[j : j+window] {
			if d > 1 {
				n++
			}
		}
		p.need = min(p.need, n)
	}
	return p
}

// digit is one digit of a view's skeleton: what is left when all that is not
// a digit is dropped.
type digit struct {
	mark   mark
	fresh  bool // a wide gap or a barrier stands before it
	lo, hi int32
}

// matcher collects the windows of several views of one text.
type matcher struct {
	keys  []pattern
	bones []digit // scratch, one view at a time
	spans []span
}

// search adds the windows of all keys in v.
func (m *matcher) search(v view) {
	if m.read(v, true) {
		m.read(v, false)
	}
}

// read makes the skeleton of v, with likenesses other than soft ones or
// without, and matches it. It reports whether there were such likenesses.
func (m *matcher) read(v view, likenesses bool) (had bool) {
	m.bones = m.bones[:0]
	gap := maxGap + 1
	for _, u := range v {
		if u.r == barrier {
			gap = maxGap + 1
			continue
		}
		bones := len(m.bones)
		for _, k := range marksOf(u.r) {
			if k&either != 0 {
				had = true
				if !likenesses {
					continue
				}
			}
			m.bones = append(m.bones, digit{k, gap > maxGap, u.lo, u.hi})
			gap = 0
		}
		if len(m.bones) == bones {
			gap++
		}
	}
	if len(m.bones) >= window {
		for i := range m.keys {
			m.match(&m.keys[i])
		}
	}
	return had
}

// match runs the key over the skeleton, all windows at once. Bit j of runs[l]
// says: the digits read last end with l+1 digits of the key, of which the
// last is the key's digit j. A soft digit may also be passed over, so it
// leaves every run as it was.
func (m *matcher) match(p *pattern) {
	var runs [window]uint32
	for i, b := range m.bones {
		if b.fresh {
			runs = [window]uint32{}
		}
		at := p.at[b.mark.value()]
		ends := runs[window-2] << 1 & at
		if b.mark&soft != 0 {
			for l := window - 1; l > 0; l-- {
				runs[l] |= runs[l-1] << 1 & at
			}
			runs[0] |= at
		} else {
			for l := window - 1; l > 0; l-- {
				runs[l] = runs[l-1] << 1 & at
			}
			runs[0] = at
		}
		for j := 0; ends != 0; j, ends = j+1, ends>>1 {
			if ends&1 != 0 {
				m.spans = append(m.spans, span{int(m.bones[m.back(p, i, j)].lo), int(b.hi)})
			}
		}
	}
}

// back returns the latest bone at which a window can begin that ends at bone
// end with the key's digit j. Bit l of had says: l+1 digits are matched.
func (m *matcher) back(p *pattern, end, j int) int {
	had := uint32(1)
	i := end
	for had>>(window-1)&1 == 0 {
		i--
		b := m.bones[i]
		var next uint32
		for l := 1; l < window; l++ {
			if had>>(l-1)&1 != 0 && p.digits[j-l] == b.mark.value() {
				next |= 1 << l
			}
		}
		if b.mark&soft != 0 {
			next |= had
		}
		had = next
	}
	return i
}
