package markup

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	bareURL = regexp.MustCompile(`https?://[^\s<>]+`)
	mention = regexp.MustCompile(`@everyone|@here|<@[!&]?\d+>|<#\d+>`)
)

// text writes plain text up to end so that Discord shows it as it is: marks
// escaped, mentions made inert, addresses in <>.
func (w *discordWriter) text(end int) {
	for w.pos < end {
		line := w.plain[w.pos:end]
		if line[0] == '\n' {
			w.newline()
			continue
		}
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		w.lineStart()
		stop := w.pos + len(line)
		for _, at := range bareURL.FindAllStringIndex(line, -1) {
			u := trimURL(line[at[0]:at[1]])
			if u == "" {
				continue
			}
			start := stop - len(line) + at[0]
			w.prose(start)
			w.raw("<"+quietURL(u)+">", start+len(u))
		}
		w.prose(stop)
	}
}

// trimURL cuts off what ends the sentence and not the address.
func trimURL(u string) string {
	for {
		switch c := u[len(u)-1]; {
		case strings.IndexByte(".,:;!?\"'*_~`|]", c) >= 0,
			c == ')' && strings.Count(u, "(") < strings.Count(u, ")"):
			u = u[:len(u)-1]
		default:
			if strings.HasSuffix(u, "//") { // the scheme alone
				return ""
			}
			return u
		}
		if u == "" {
			return ""
		}
	}
}

// quietURL keeps an address whole inside <>, free of pings, and of marks that
// could close a style around it: Discord looks for those first.
func quietURL(u string) string { return urlEscapes.Replace(u) }

var urlEscapes = strings.NewReplacer("@everyone", "%40everyone", "@here", "%40here", "<", "%3C", ">", "%3E",
	" ", "%20", "\n", "%20", "*", "%2A", "`", "%60", "~~", "%7E%7E", "||", "%7C%7C")

// prose writes one stretch of a line without addresses.
func (w *discordWriter) prose(end int) {
	if w.pos >= end {
		return
	}
	s := w.plain[w.pos:end]
	inert := mention.FindAllStringIndex(s, -1)
	for i := 0; i < len(s); {
		if w.fresh || w.inner {
			if n := w.acting(s[i:]); n > 0 { // the nth byte is the one to escape
				w.out.WriteString(s[i:i+n-1] + `\`)
				i += n - 1
			}
			w.fresh = w.fresh && (s[i] == ' ' || s[i] == '\t')
			w.inner = false
		}
		c := s[i]
		switch {
		case c < utf8.RuneSelf && w.special(w.pos+i, end):
			w.out.WriteByte('\\')
			w.out.WriteByte(c)
		case len(inert) > 0 && inert[0][0] == i:
			w.out.WriteByte(c)
			w.out.WriteString(zero)
			inert = inert[1:]
		case c == ']' && strings.HasPrefix(s[i+1:], "("): // no link of ours
			w.out.WriteString("]" + zero)
		case w.round && c == '[':
			w.out.WriteByte('(')
		case w.round && c == ']':
			w.out.WriteByte(')')
		default:
			w.out.WriteByte(c)
		}
		i++
	}
	w.pos, w.shut = end, 0
}

// lineMarker is what acts at the beginning of a line: heading, small print,
// list, quote. What follows the last character decides, so it is part of it.
var lineMarker = regexp.MustCompile(`^(?:#{1,3} |-# |[-*+] |\d{1,9}[.)] |>)`)

// acting returns how many bytes of s reach up to and with the character whose
// escape disarms the line marker s begins with; 0 if it begins with none.
func (w *discordWriter) acting(s string) int {
	m := lineMarker.FindString(s)
	switch {
	case m == "", s[0] == '*': // the star is escaped anyway
		return 0
	case !w.fresh && m[0] != '#' && m[0] != '>' && m != "-# ": // lists begin lines only
		return 0
	case s[0] >= '0' && s[0] <= '9':
		return len(m) - 1
	}
	return 1
}

// special reports whether the ASCII character at p would act as a mark here.
// Beside the ends of its stretch, w.pos and end, stands syntax.
func (w *discordWriter) special(p, end int) bool {
	c := w.plain[p]
	edge := p == w.pos || p+1 == end
	switch c {
	case '\\', '*', '`':
		return true
	case '_':
		// Inside a word it is part of a name, unless a later one, which may
		// stand in code or an address, could close what it opens.
		return edge || p < w.closer || !alnum(w.plain[p-1]) || !alnum(w.plain[p+1])
	case '~', '|':
		return edge || w.plain[p-1] == c || w.plain[p+1] == c
	case '<':
		return w.opensAngle(p)
	}
	return false
}

// angle is what Discord reads in angle brackets besides mentions: timestamps,
// emoji, commands, sounds, server pages.
var angle = regexp.MustCompile(`^<(?:t:-?\d|a?:\w+:\d|/[^>\n]*:\d|sound:\d|id:\w)`)

// opensAngle reports whether the < at p would begin something, an address in
// <> among others: that of a link which begins in the same word included.
func (w *discordWriter) opensAngle(p int) bool {
	word := w.plain[p:]
	if i := strings.IndexAny(word, " >"); i >= 0 {
		word = word[:i]
	}
	for _, m := range w.inline {
		if m.start > p+len(word) {
			break
		}
		if m.kind == Link {
			return true
		}
	}
	return strings.Contains(word, ":/") || angle.MatchString(w.plain[p:])
}

// lastCloser is the place of the last underscore that could end italics: one
// not followed by a letter or digit in what is written.
func lastCloser(plain string, marks []mark) int {
	last := -1
	for i := strings.LastIndexByte(plain, '_'); i >= 0; i = strings.LastIndexByte(plain[:i], '_') {
		if i+1 == len(plain) || !alnum(plain[i+1]) {
			last = i
			break
		}
	}
	for _, m := range marks {
		if plain[m.end-1] == '_' {
			last = max(last, m.end-1)
		}
	}
	return last
}

// alnum is ASCII only: Discord's word boundary is.
func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
