package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"coxswain/steer"
)

const (
	esc = 0x1b
	bel = 0x07
)

// cleanTerminal turns what a program wrote for a terminal into plain text: valid UTF-8,
// escape sequences removed, a line that was overwritten after a carriage return kept only in
// its last form, backspaces applied, other control characters dropped. It is idempotent, and
// it is linear: output is up to a megabyte of hostile bytes.
func cleanTerminal(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !hasControl(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	line := 0           // where the current line begins in out
	overwrite := false  // a carriage return came; the next printed rune starts the line anew
	var esq escapeState // what an earlier search has shown
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n':
			out = append(out, '\n')
			line, overwrite = len(out), false
		case r == '\r':
			overwrite = true
		case r == '\b':
			if len(out) > line {
				_, last := utf8.DecodeLastRune(out)
				out = out[:len(out)-last]
			}
		case r == esc:
			i = esq.skip(s, i+1)
			continue
		case r >= 0x80 && r <= 0x9f: // the same sequences in their one-character form
			i = esq.skipC1(s, i+n, r)
			continue
		case r == '\t' || r >= 0x20 && r != 0x7f:
			if overwrite {
				out, overwrite = out[:line], false
			}
			out = append(out, s[i:i+n]...)
		}
		i += n
	}
	return string(out)
}

func hasControl(s string) bool {
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
			return true
		}
	}
	return false
}

// escapeState remembers that no string terminator follows, so that many unterminated
// sequences do not each search the rest of the text.
type escapeState struct{ noBell, noST bool }

// skip returns the index after the sequence whose ESC stood before i.
func (e *escapeState) skip(s string, i int) int {
	if i >= len(s) {
		return i
	}
	switch b := s[i]; {
	case b == '[':
		return skipCSI(s, i+1)
	case b == ']':
		return e.skipString(s, i+1, true)
	case b == 'P' || b == 'X' || b == '^' || b == '_':
		return e.skipString(s, i+1, false)
	case b >= 0x20 && b <= 0x2f: // such as ESC ( B
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
			i++
		}
		return i
	case b >= 0x30 && b <= 0x7e:
		return i + 1
	}
	return i
}

func (e *escapeState) skipC1(s string, i int, r rune) int {
	switch r {
	case 0x9b:
		return skipCSI(s, i)
	case 0x9d:
		return e.skipString(s, i, true)
	case 0x90, 0x98, 0x9e, 0x9f:
		return e.skipString(s, i, false)
	}
	return i
}

// skipCSI ends at the first byte that does not belong, so a broken sequence swallows no text.
func skipCSI(s string, i int) int {
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		i++
	}
	return i
}

// skipString ends after the terminator of an OSC, DCS, SOS, PM or APC string. One that is
// never terminated hides nothing: only its introducer goes. A search either moves past what
// it read or is never made again, so all of them together are linear.
func (e *escapeState) skipString(s string, start int, bell bool) int {
	if e.noST && (!bell || e.noBell) {
		return start
	}
	for i := start; i < len(s); i++ {
		switch {
		case bell && s[i] == bel:
			return i + 1
		case s[i] == esc && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == 0xc2 && s[i+1] == 0x9c: // U+009C; s is valid UTF-8, so a byte follows
			return i + 2
		}
	}
	e.noST = true
	e.noBell = e.noBell || bell
	return start
}

// cleanFile renders one line of a file truthfully: nothing is removed or applied. Control
// characters become their pictures (U+2400 block), bytes that are not UTF-8 become U+FFFD.
func cleanFile(line string) string {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if !hasControl(line) {
		return line
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case r >= 0x80 && r <= 0x9f:
			return utf8.RuneError
		}
		return r
	}, line)
}

// cut shortens s to at most limit bytes: 60 % head, 40 % tail, between whole runes and where
// possible whole lines, with mark(n) between them, n the exact number of bytes left out.
// mark must not grow when n falls. A limit too small for the mark yields the mark alone.
func cut(s string, limit int, mark func(n int) string) string {
	if len(s) <= limit {
		return s
	}
	budget := max(limit-len(mark(len(s))), 0)
	head := headEnd(s, budget*6/10)
	tail := tailStart(s, budget-budget*6/10)
	return s[:head] + mark(tail-head) + s[tail:]
}

// headEnd is the end of the longest good head of at most n bytes.
func headEnd(s string, n int) int {
	n = min(n, len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	if at := strings.LastIndexByte(s[:n], '\n'); at >= n*3/4 && at >= 0 {
		return at + 1
	}
	return n
}

// tailStart is the start of the longest good tail of at most n bytes.
func tailStart(s string, n int) int {
	at := max(len(s)-n, 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	if nl := strings.IndexByte(s[at:], '\n'); nl >= 0 && nl < n/4 && at+nl+1 < len(s) {
		return at + nl + 1
	}
	return at
}

// maxTail is what Progress, Running.Tail and a job row carry: enough for a screen of text.
const maxTail = 2 << 10

// lastText returns the end of raw output for people's eyes, at most maxTail bytes. raw may begin
// in the middle of a rune or of an escape sequence; a first line that may be broken is left out.
func lastText(raw []byte, whole bool) string {
	s := string(raw)
	if !whole {
		if nl := strings.IndexByte(s, '\n'); nl >= 0 && nl+1 < len(s) {
			s = s[nl+1:]
		}
	}
	s = steer.Visible(strings.TrimRight(cleanTerminal(s), "\n"))
	if len(s) <= maxTail {
		return s
	}
	return s[tailStart(s, maxTail):]
}

func lineCut(line string, keep, full int) string {
	if full <= keep {
		return line
	}
	end := headRune(line, keep)
	return line[:end] + fmt.Sprintf(wordLineCut, full-end)
}

// headRune is the largest index <= n that does not split a rune of s.
func headRune(s string, n int) int {
	n = min(n, len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
