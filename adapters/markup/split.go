package markup

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// minLimit is the smallest budget Split honours: a rune outside the BMP takes
// two units and cannot be divided.
const minLimit = 2

// Split cuts t into pieces of at most limit UTF-16 units of Plain (Telegram:
// 4096 for a message, 1024 for a caption). A limit under 2 counts as 2.
//
// It cuts between blocks if it can, else between lines, sentences, words, and
// last between grapheme clusters; only a cluster longer than the limit is cut
// between its runes. A code block or link that fits in one piece is moved
// whole to the next. Spans are cut with the text and go on in the next piece.
//
// Exactly: Plain is gap, piece, gap, piece, …, gap, where each gap holds only
// blank or invisible runes, and every piece holds a visible one. The one thing
// added is the header of a table cut between rows (Span.Head): it is repeated
// on top of each continuation. A Text with nothing visible has no pieces.
func Split(t Text, limit int) []Text {
	limit = max(limit, minLimit)
	c := newCutter(t)
	var out []Text
	for {
		piece, ok := c.next(limit)
		if !ok {
			return out
		}
		out = append(out, piece)
	}
}

// cutter takes pieces off the front of a text. It is copied to try again with
// another budget.
type cutter struct {
	plain string
	marks []mark
	lo    int // marks before lo have ended
	pos   int // byte offset of what is left
}

func newCutter(t Text) cutter {
	c := cutter{plain: t.Plain, marks: toMarks(t)}
	c.pos = c.resume(0, 0)
	return c
}

// next returns the next piece of at most budget units, false at the end.
func (c *cutter) next(budget int) (Text, bool) {
	for c.pos < len(c.plain) {
		for c.lo < len(c.marks) && c.marks[c.lo].end <= c.pos {
			c.lo++
		}
		start, room := c.pos, budget
		head := c.repeated(start)
		if n := Units(head); n > budget/2 { // it would crowd out the rows
			head = ""
		} else {
			room -= n
		}
		end := fit(c.plain, start, room)
		if end < len(c.plain) {
			end = c.cut(start, end)
		}
		body := strings.TrimRightFunc(c.plain[start:end], blank)
		c.pos = c.resume(start+len(body), end)
		if visible(body) {
			return c.piece(start, start+len(body), head), true
		}
	}
	return Text{}, false
}

// fit returns the end of the longest run of whole runes from start that takes
// at most units.
func fit(s string, start, units int) int {
	for i, r := range s[start:] {
		if units -= runeUnits(r); units < 0 {
			return start + i
		}
	}
	return len(s)
}

// resume returns where the text goes on after a cut at from (the text before
// it, right-trimmed, ends at trimmed): at the next visible rune, or, inside a
// Pre, at the indentation of its line. It never goes back before from, so
// every cut makes progress.
func (c *cutter) resume(trimmed, from int) int {
	next := from + len(c.plain[from:]) - len(strings.TrimLeftFunc(c.plain[from:], blank))
	line := trimmed + strings.LastIndexByte(c.plain[trimmed:next], '\n') + 1
	if line < from || line == trimmed && trimmed > 0 {
		return next // the cut was within a line
	}
	if m := c.around(next, Pre); m != nil && m.start <= line {
		return line
	}
	return next
}

// around returns the mark of one of the kinds that covers the byte at p.
func (c *cutter) around(p int, kinds ...Kind) *mark {
	for i := c.lo; i < len(c.marks) && c.marks[i].start <= p; i++ {
		m := &c.marks[i]
		for _, k := range kinds {
			if m.kind == k && p < m.end {
				return m
			}
		}
	}
	return nil
}

// repeated returns the table header to put on top of a piece from start.
func (c *cutter) repeated(start int) string {
	m := c.around(start, Pre)
	if m == nil || m.head <= 0 || start < m.start+m.head || c.plain[start-1] != '\n' {
		return ""
	}
	return c.plain[m.start : m.start+m.head]
}

// piece is plain[start:end] with its share of the marks, under a repeated
// table header if there is one.
func (c *cutter) piece(start, end int, head string) Text {
	var marks []mark
	for _, m := range c.marks[c.lo:] {
		if m.start >= end {
			break
		}
		if m.end <= start {
			continue
		}
		whole := m.start >= start
		m.start, m.end = max(m.start, start)-start+len(head), min(m.end, end)-start+len(head)
		if head != "" && m.kind == Pre && !whole {
			m.start, m.head = 0, len(head)
		} else if !whole || m.start+m.head > m.end {
			m.head = 0
		}
		marks = append(marks, m)
	}
	return settle(head+c.plain[start:end], marks)
}

// cut chooses where to end a piece that starts at start and may reach end.
// Each level must fill a share of the room, or short first lines would make
// many small messages.
func (c *cutter) cut(start, end int) int {
	share := func(n int) int { return start + max(1, (end-start)/n) }
	if m := c.around(end, Pre); m != nil && m.start >= share(8) && m.start < end && m.end-m.start <= end-start {
		return m.start // the whole block goes to the next piece
	}
	upto := c.plain[:min(end+2, len(c.plain))]
	for i := strings.LastIndex(upto, "\n\n"); i >= share(4); i = strings.LastIndex(upto[:i+1], "\n\n") {
		if c.around(i, Pre) == nil {
			return i
		}
	}
	line := strings.LastIndexByte(c.plain[:min(end+1, len(c.plain))], '\n')
	if line >= share(3) {
		return line
	}
	return c.cutLine(start, max(start, line+1), end, share)
}

// cutLine cuts within a line: [from,end) has no line break.
func (c *cutter) cutLine(start, from, end int, share func(int) int) int {
	// Boundaries at end itself depend on the runes after it.
	stop := end
	for n := 0; n < 8 && stop < len(c.plain); n++ {
		_, w := utf8.DecodeRuneInString(c.plain[stop:])
		stop += w
	}
	var sentence, word, grapheme int
	state := -1
	for at, rest := from, c.plain[from:stop]; rest != ""; {
		var cluster string
		var bounds int
		cluster, rest, bounds, state = uniseg.StepString(rest, state)
		if at += len(cluster); at > end {
			break
		}
		grapheme = at
		if bounds&uniseg.MaskSentence != 0 && c.mayBreak(at, end-start) {
			sentence = at
		}
		if bounds&uniseg.MaskLine != uniseg.LineDontBreak && c.mayBreak(at, end-start) {
			word = at
		}
	}
	switch {
	case sentence >= share(3) && c.around(sentence, Pre) == nil:
		return sentence
	case word >= share(8):
		return word
	case grapheme > start:
		return grapheme
	case from > start: // a short first line before a very long cluster
		return from
	}
	return end
}

// mayBreak keeps links and inline code whole unless they fill half a piece.
func (c *cutter) mayBreak(p, room int) bool {
	m := c.around(p, Link, Code)
	return m == nil || m.start == p || m.end-m.start > room/2
}
