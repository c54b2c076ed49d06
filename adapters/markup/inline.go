package markup

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

func (r *renderer) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.inline(c)
	}
}

func (r *renderer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		r.write(unescape(r.shown(n.Segment)))
		if n.SoftLineBreak() || n.HardLineBreak() {
			r.write("\n")
		}
	case *ast.String:
		r.write(string(n.Value))
	case *ast.CodeSpan:
		r.codeSpan(n)
	case *ast.Emphasis:
		if n.Level == 1 {
			r.styled(Italic, &r.italic, func() { r.inlines(n) })
		} else {
			r.styled(Bold, &r.bold, func() { r.inlines(n) })
		}
	case *extast.Strikethrough:
		r.styled(Strike, &r.strike, func() { r.inlines(n) })
	case *ast.Link:
		r.link(destination(n.Destination), n.Title, "[", func() { r.inlines(n) })
	case *ast.Image:
		r.link(destination(n.Destination), n.Title, "![", func() { r.inlines(n) })
	case *ast.AutoLink:
		r.autoLink(n)
	case *ast.RawHTML:
		tag := string(n.Segments.Value(r.src))
		if r.flat && lineBreak(tag) {
			tag = "; "
		}
		r.write(tag)
	case *extast.TaskCheckBox: // written by list
	default:
		r.inlines(n)
	}
}

// lineBreak reports whether tag is the <br> by which models break a line
// inside a table cell, where Markdown has no other way.
func lineBreak(tag string) bool {
	return strings.EqualFold(strings.ReplaceAll(strings.ReplaceAll(tag, " ", ""), "/", ""), "<br>")
}

func (r *renderer) write(s string) {
	if r.flat {
		s = strings.ReplaceAll(s, "\n", " ")
	}
	r.text(s)
}

// shown is the source of s without what is hidden for now.
func (r *renderer) shown(s gmtext.Segment) []byte {
	v := s.Value(r.src)
	if len(r.hide) == 0 || s.Padding != 0 {
		return v
	}
	var out []byte
	at := s.Start
	for _, h := range r.hide { // in order
		if h.stop <= at || h.start >= s.Stop {
			continue
		}
		out = append(out, r.src[at:max(at, h.start)]...)
		at = min(h.stop, s.Stop)
	}
	return append(out, r.src[at:s.Stop]...)
}

// styled marks what f writes, unless it already stands in the same style.
func (r *renderer) styled(k Kind, on *bool, f func()) {
	if *on {
		f()
		return
	}
	*on = true
	i := r.begin(k)
	f()
	r.end(i)
	*on = false
}

// codeSpan writes inline code. In a link it cannot be a span of its own, and
// the address matters more; in a Telegram quote neither: the backticks stay.
func (r *renderer) codeSpan(n *ast.CodeSpan) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.src))
		}
	}
	code := strings.ReplaceAll(b.String(), "\n", " ")
	switch {
	case r.linked:
		r.put(code)
	case r.quoted && !r.native || strings.TrimSpace(code) == "":
		r.put("`" + code + "`")
	default:
		i := r.begin(Code)
		r.put(code)
		r.end(i)
	}
}

// link writes a link or an image; label writes its text. An address that
// cannot be a link is shown as it was written.
func (r *renderer) link(dest string, title []byte, opener string, label func()) {
	target, ok := r.target(dest)
	switch {
	case r.linked: // an image inside a link
		label()
	case ok:
		r.linked = true
		i := r.begin(Link)
		r.marks[i].url = target
		label()
		if r.marks[i].start < 0 {
			r.put(dest)
		}
		r.end(i)
		r.linked = false
	default:
		r.put(opener)
		label()
		r.put("](" + dest)
		if len(title) > 0 {
			r.write(` "` + unescape(title) + `"`)
		}
		r.put(")")
	}
}

func (r *renderer) autoLink(n *ast.AutoLink) {
	label := string(n.Label(r.src))
	if n.AutoLinkType == ast.AutoLinkURL {
		if target, ok := r.target(string(n.URL(r.src))); ok && !r.linked {
			i := r.begin(Link)
			r.marks[i].url = target
			r.put(label)
			r.end(i)
			return
		}
	}
	// An email address, ftp:, or C++'s <std::string>: as it was written.
	if p := n.Pos(); p >= 0 && p < len(r.src) && r.src[p] == '<' {
		label = "<" + label + ">"
	}
	r.put(label)
}

// target checks that dest may be a link and returns it without the spaces
// that only angle brackets allow.
func (r *renderer) target(dest string) (string, bool) {
	u, err := url.Parse(dest)
	if err != nil || (r.maxURL > 0 && Units(dest) > r.maxURL) {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" {
			return "", false
		}
	case "tg":
		if !r.tg || !strings.HasPrefix(dest[len("tg:"):], "//") {
			return "", false
		}
	default:
		return "", false
	}
	return strings.ReplaceAll(dest, " ", "%20"), true
}

// destination resolves escapes in a link's address; a line break cannot be
// part of one.
func destination(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, unescape(b))
}

// unescape resolves backslash escapes and HTML entities in one pass, so that
// an escaped ampersand does not begin an entity.
func unescape(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 && bytes.IndexByte(s, '&') < 0 {
		return string(s)
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			out = append(out, s[i])
		case s[i] == '&':
			if c, n := entity(s[i:]); n > 0 {
				out = append(out, c...)
				i += n - 1
				continue
			}
			out = append(out, '&')
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

// entity decodes the reference that s begins with: its text and its length in
// s, 0 if it is none.
func entity(s []byte) (string, int) {
	// 40: longer than any HTML5 name, so a stray & does not scan the answer.
	stop := bytes.IndexByte(s[:min(len(s), 40)], ';')
	if stop < 2 {
		return "", 0
	}
	name := string(s[1:stop])
	if name[0] != '#' {
		e, ok := util.LookUpHTML5EntityByName(name)
		if !ok {
			return "", 0
		}
		return string(e.Characters), stop + 1
	}
	digits, base := name[1:], 10
	if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base = digits[1:], 16
	}
	if digits == "" || len(digits) > 7 {
		return "", 0
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return "", 0
	}
	switch v {
	case 0:
		v = utf8.RuneError
	case '\r':
		v = '\n'
	}
	return string(utf8.AppendRune(nil, rune(v))), stop + 1
}
