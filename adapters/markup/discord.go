package markup

import (
	"cmp"
	"slices"
	"strings"
)

// zero is put where Discord must not see what a text seems to say: between the
// backticks of a nested fence, after the @ of a mention. It shows as nothing.
const zero = "\u200b"

// minDiscord is the smallest limit DiscordMarkdown honours: room for a fence,
// its language and a few units of code.
const minDiscord = 64

// DiscordMarkdown rewrites md in Discord's own Markdown, in pieces of at most
// limit UTF-16 units (2000 for a message). A limit under 64 counts as 64. The
// size is that of the finished piece: fences, escapes and marks are charged.
//
// What Discord shows otherwise is changed: tables become an aligned code block
// up to 55 columns, else groups of lines; a rule becomes a line of dashes;
// headings below the third level become bold; addresses stand in <> so that
// they do not unfurl; @everyone, @here and <@id>, <@&id>, <#id> are made inert
// outside code (D20; inside code they are inert already, and code is for
// copying). The sender must still close allowed_mentions.
//
// A fence is always three backticks, closed and opened again with its language
// around a cut; backticks inside it are kept apart by an invisible character,
// because Discord ends a block at the first three, however long its fence.
func DiscordMarkdown(md string, limit int) []string {
	return discordPieces(limit, orLiteral(md, func() Text { return render(document(clean(md)), discord(limit), nil) }))
}

// DiscordPartial is DiscordMarkdown for an answer that is still growing: what
// ParsePartial is to Parse.
func DiscordPartial(md string, limit int) []string {
	return discordPieces(limit, orLiteral(md, func() Text { return renderPartial(clean(md), discord(limit)) }))
}

// 55 columns fit the message area of Discord's desktop and tablet layouts. An
// address that would fill half a message is shown as text, which can be cut.
func discord(limit int) dialect {
	return dialect{tableWidth: 55, native: true, maxURL: max(limit, minDiscord) / 2}
}

func discordPieces(limit int, t Text) []string {
	limit = max(limit, minDiscord)
	c := newCutter(t)
	var out []string
	budget := limit
	for {
		before := c
		piece, ok := c.next(budget)
		if !ok {
			return out
		}
		s := discordText(piece)
		size := Units(s)
		if size > limit && budget < 16 { // marks alone fill it: at most three units per rune are left
			s = discordText(Text{Plain: piece.Plain})
			size = Units(s)
		}
		if size > limit && budget > minLimit {
			c = before
			budget = max(minLimit, min(budget-1, Units(piece.Plain)*limit/size))
			continue
		}
		out = append(out, s)
		budget = limit
	}
}

// discordText writes one piece. Every construct it opens it closes.
func discordText(t Text) string {
	w := discordWriter{plain: t.Plain, fresh: true, bol: true}
	marks := toMarks(t)
	slices.SortStableFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(rank(a.kind), rank(b.kind)))
	})
	for _, m := range marks {
		switch m.kind {
		case Quote, ExpandableQuote:
			w.quotes = append(w.quotes, m)
		default:
			w.inline = append(w.inline, m)
		}
	}
	w.closer = lastCloser(t.Plain, marks)
	w.upTo(len(t.Plain))
	return w.out.String()
}

// discordWriter walks a piece from left to right. The inline marks nest.
type discordWriter struct {
	plain  string
	inline []mark
	quotes []mark
	out    strings.Builder

	closer int // an underscore before it is escaped also inside a word

	pos   int
	bol   bool // at the beginning of a line: a quote's "> " is due
	fresh bool // only markers so far on this line: "#", "-" or "1." would act
	inner bool // right after an opening mark: a heading or quote would act there too
	shut  byte // the mark character just written by a closing mark, 0 otherwise
	round bool // in a link's text whose brackets Discord could not pair
}

// upTo writes the text up to end with the marks that begin in it.
func (w *discordWriter) upTo(end int) {
	for len(w.inline) > 0 && w.inline[0].start < end {
		m := w.inline[0]
		w.text(m.start)
		w.inline = w.inline[1:]
		w.mark(m)
	}
	w.text(end)
}

func (w *discordWriter) mark(m mark) {
	s := w.plain[m.start:m.end]
	switch m.kind {
	case Bold:
		w.wrap("**", m)
	case Italic:
		w.wrap("*", m)
	case Strike:
		w.wrap("~~", m)
	case verbatim:
		w.lineStart()
		fresh := w.fresh
		w.raw(s, m.end)
		w.fresh = fresh
	case Code:
		w.lineStart()
		w.apart('`')
		w.raw(inlineCode(s), m.end)
		w.shut = '`'
	case Pre:
		w.fence(s, m)
	case Link:
		w.link(s, m)
	default:
		panic("markup: no Discord form for " + m.kind.String())
	}
}

func (w *discordWriter) wrap(delim string, m mark) {
	w.lineStart()
	w.apart(delim[0])
	w.raw(delim, m.start)
	w.inner = true
	w.upTo(m.end)
	w.raw(delim, m.end)
	w.shut = delim[0]
}

// apart keeps an opening mark from joining the closing one before it.
func (w *discordWriter) apart(c byte) {
	if w.shut == c {
		w.out.WriteString(zero)
	}
}

// raw writes s as it is and goes on at pos.
func (w *discordWriter) raw(s string, pos int) {
	w.out.WriteString(s)
	w.pos, w.fresh, w.inner, w.shut = pos, false, false, 0
}

// lineStart writes the mark of the quote this line is in. Discord wants a
// space after the ">", also on an empty line.
func (w *discordWriter) lineStart() {
	if !w.bol {
		return
	}
	w.bol = false
	for len(w.quotes) > 0 && w.quotes[0].end <= w.pos {
		w.quotes = w.quotes[1:]
	}
	if len(w.quotes) > 0 && w.quotes[0].start <= w.nextVisible() {
		w.out.WriteString("> ")
	}
}

// nextVisible skips the indentation a quote's mark does not cover.
func (w *discordWriter) nextVisible() int {
	return w.pos + len(w.plain[w.pos:]) - len(strings.TrimLeft(w.plain[w.pos:], " "))
}

func (w *discordWriter) newline() {
	w.lineStart()
	w.raw("\n", w.pos+1)
	w.bol, w.fresh = true, true
}

func (w *discordWriter) fence(code string, m mark) {
	if !w.bol {
		w.out.WriteByte('\n')
	}
	w.bol = false
	for strings.Contains(code, "```") {
		code = strings.ReplaceAll(code, "```", "``"+zero+"`")
	}
	w.raw("```"+fenceLang(m.lang)+"\n"+code+"\n```", m.end)
	if m.end < len(w.plain) && w.plain[m.end] != '\n' {
		w.out.WriteByte('\n')
		w.bol, w.fresh = true, true
	}
}

// fenceLang is the language if Discord reads it as one; any other first line
// would be shown as code. A long info string is left out: it colours nothing
// and would be paid again in every piece.
func fenceLang(lang string) string {
	lang = strings.ToLower(lang)
	if lang == "c#" || lang == "f#" {
		lang = lang[:1] + "s"
	}
	if len(lang) > 20 || strings.Trim(lang, "abcdefghijklmnopqrstuvwxyz0123456789_+-.") != "" {
		return ""
	}
	return lang
}

// inlineCode uses one backtick, or two around code that holds one; three would
// begin a block.
func inlineCode(code string) string {
	if !strings.Contains(code, "`") {
		return "`" + code + "`"
	}
	for strings.Contains(code, "``") {
		code = strings.ReplaceAll(code, "``", "`"+zero+"`")
	}
	if strings.HasPrefix(code, "`") {
		code = " " + code
	}
	if strings.HasSuffix(code, "`") {
		code += " "
	}
	return "``" + code + "``"
}

// link writes <address> when the text is the address, else a masked link
// without preview. Discord does not mask a text that looks like an address.
func (w *discordWriter) link(label string, m mark) {
	w.lineStart()
	target := "<" + quietURL(m.url) + ">"
	switch {
	case m.url == label || strings.HasSuffix(m.url, "://"+label) || strings.Contains(label, "://") && strings.HasPrefix(m.url, label):
		w.raw(target, m.end)
		w.skip(m.end)
	case strings.Contains(label, "://") || strings.HasPrefix(label, "www."):
		w.upTo(m.end)
		w.raw(" ("+target+")", m.end)
	default:
		w.raw("[", m.start)
		w.round = !balanced(label)
		w.upTo(m.end)
		w.round = false
		w.raw("]("+target+")", m.end)
	}
}

// balanced reports whether s has brackets only in closed, unnested pairs, the
// kind Discord allows in a link's text ("[[1]](…)").
func balanced(s string) bool {
	open := false
	for i := range len(s) {
		switch s[i] {
		case '[', ']':
			if open == (s[i] == '[') {
				return false
			}
			open = !open
		}
	}
	return !open
}

// skip passes over marks inside a text that was written as one.
func (w *discordWriter) skip(end int) {
	for len(w.inline) > 0 && w.inline[0].start < end {
		w.inline = w.inline[1:]
	}
}
