package markup

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	bullet = "•"
	rule   = "———"
)

// Parse renders finished Markdown (CommonMark with GFM tables, strikethrough,
// task lists and autolinks). It never fails: what is not Markdown is text.
//
// A single line break stays one, as people write in chats; headings become
// bold lines, lists "• " or "1. ", images links to the picture.
func Parse(md string) Text {
	return orLiteral(md, func() Text { return render(document(clean(md)), telegram, nil) })
}

// orLiteral falls back to the unformatted source when the parser panics:
// its input is whatever a model wrote, and an answer must arrive.
func orLiteral(md string, f func() Text) (t Text) {
	defer func() {
		if recover() != nil {
			t = Text{Plain: strings.TrimSpace(clean(md))}
		}
	}()
	return f()
}

// dialect is what differs between the platforms when a document is rendered.
type dialect struct {
	tableWidth int  // columns up to which a table is shown aligned
	native     bool // headings and list markers stay Markdown
	tg         bool // tg:// links are links
	maxURL     int  // a longer address is shown as text; 0 = any
}

// 40 columns of monospace fit a phone held upright.
var telegram = dialect{tableWidth: 40, tg: true}

// markdown is the parser. Link reference definitions are left out on purpose:
// resolving them swallows the list of sources at the end of an answer, and an
// answer that is still growing would change its earlier lines.
var markdown = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(taskParser{extension.NewTaskCheckBoxParser()}, 0),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(), 999))...),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// taskParser wants a space after the box, as GFM does: "- [x](url)" is a link.
type taskParser struct{ parser.InlineParser }

func (p taskParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if line, _ := block.PeekLine(); len(line) > 3 && !util.IsSpace(line[3]) {
		return nil
	}
	return p.InlineParser.Parse(parent, block, pc)
}

// clean makes md valid UTF-8 with \n line ends and without NUL.
func clean(md string) string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	if strings.ContainsAny(md, "\r\x00") {
		md = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(md)
	}
	return md
}

// page is a parsed document with its source.
type page struct {
	src  []byte
	root ast.Node
}

func document(md string) page {
	src := []byte(md)
	return page{src, markdown.Parse(text.NewReader(src))}
}

// hole is a range of the source that a growing answer does not show yet.
type hole struct{ start, stop int }

func render(p page, d dialect, hide []hole) Text {
	r := renderer{builder: &builder{}, src: p.src, dialect: d, hide: hide}
	r.blocks(p.root)
	return r.finish()
}

// renderer walks a document and writes it into its builder.
type renderer struct {
	*builder
	dialect
	src  []byte
	hide []hole

	flat                 bool // line breaks become spaces: a heading, a table cell
	quoted, linked       bool
	bold, italic, strike bool
}

// blocks renders the children of n, separated as in the source: by a blank
// line where the writer left one, and always around headings and tables.
func (r *renderer) blocks(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil {
			r.sep(r.gap(c))
		}
		r.block(c)
	}
}

func (r *renderer) gap(n ast.Node) int {
	if n.Kind() == extast.KindTable || n.PreviousSibling().Kind() == extast.KindTable || n.Kind() == ast.KindHeading || r.blankBefore(n) {
		return 2
	}
	return 1
}

// blankBefore looks at the source, because the parser reports a blank line
// after every fence.
func (r *renderer) blankBefore(n ast.Node) bool {
	if n.Pos() < 0 || n.Pos() > len(r.src) {
		return n.HasBlankPreviousLines()
	}
	line := bytes.LastIndexByte(r.src[:n.Pos()], '\n')
	if line < 0 {
		return false
	}
	prev := r.src[bytes.LastIndexByte(r.src[:line], '\n')+1 : line]
	return len(bytes.Trim(prev, " \t>")) == 0
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.heading(n)
	case *ast.ThematicBreak:
		r.text(rule)
	case *ast.FencedCodeBlock:
		r.code(n, language(n.Language(r.src)))
	case *ast.CodeBlock:
		r.code(n, "")
	case *ast.HTMLBlock:
		html := lines(n, r.src)
		if n.HasClosure() {
			html += string(n.ClosureLine.Value(r.src))
		}
		r.text(strings.TrimRight(html, "\n"))
	case *ast.Blockquote:
		r.quote(n)
	case *ast.List:
		r.list(n)
	case *extast.Table:
		r.table(n)
	default:
		if c := n.FirstChild(); c != nil && c.Type() == ast.TypeBlock {
			r.blocks(n)
			return
		}
		r.inlines(n)
	}
}

// heading is a bold line, or stays a heading where the platform has it
// (Discord knows three levels).
func (r *renderer) heading(n *ast.Heading) {
	if n.FirstChild() == nil {
		return
	}
	r.flat = true
	defer func() { r.flat = false }()
	if r.native && n.Level <= 3 {
		i := r.begin(verbatim)
		r.put(strings.Repeat("#", n.Level))
		r.end(i)
		r.lead = " "
		r.inlines(n)
		r.lead = ""
		return
	}
	r.styled(Bold, &r.bold, func() { r.inlines(n) })
}

func (r *renderer) code(n ast.Node, lang string) {
	code := strings.TrimRightFunc(lines(n, r.src), blank)
	for { // leading blank lines would be trimmed by the platform
		first, rest, more := strings.Cut(code, "\n")
		if !more || strings.TrimSpace(first) != "" {
			break
		}
		code = rest
	}
	if code != "" {
		r.pre(code, lang, 0)
	}
}

// language is the first word of a fence's info string, if it can be one.
func language(info []byte) string {
	lang := strings.TrimFunc(string(info), func(r rune) bool { return blank(r) || strings.ContainsRune("{}.", r) })
	if len(lang) > 32 { // prose after the fence, not a language
		return ""
	}
	return lang
}

func lines(n ast.Node, src []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		b.Write(s.Value(src))
	}
	return b.String()
}

// quote renders a quote; a quote within it keeps its ">" as text, because
// platforms do not nest them.
func (r *renderer) quote(n *ast.Blockquote) {
	r.sep(1)
	if r.quoted {
		prefix := r.prefix
		if len(prefix) < maxIndent {
			r.prefix += "> "
		}
		r.blocks(n)
		r.prefix = prefix
	} else {
		r.quoted = true
		i := r.begin(Quote)
		r.blocks(n)
		r.end(i)
		r.quoted = false
	}
	r.sep(1)
}

func (r *renderer) list(n *ast.List) {
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil {
			r.sep(r.gap(c))
		}
		marker, raw, box := bullet, false, box(c)
		switch {
		case n.IsOrdered():
			marker = fmt.Sprintf("%d%c", number, n.Marker)
			raw = r.native && n.Marker == '.'
			number++
		case r.native:
			marker, raw = "-", true
		case box != "":
			marker, box = box, ""
		}
		done := r.marker(marker, raw)
		if box != "" {
			r.put(box)
			r.lead = " "
		}
		r.blocks(c)
		done()
	}
}

// box is the sign of the task box that begins a list item, "" if none does.
func box(item ast.Node) string {
	c := item.FirstChild()
	if c == nil {
		return ""
	}
	t, ok := c.FirstChild().(*extast.TaskCheckBox)
	switch {
	case !ok:
		return ""
	case t.IsChecked:
		return "☑"
	}
	return "☐"
}
