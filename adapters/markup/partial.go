package markup

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// ParsePartial renders an answer that is still growing, so that no frame shows
// syntax which the next one takes away:
//
//   - an emphasis mark still without its partner is hidden;
//   - inline code not yet closed is shown as code, as an unclosed fence is;
//   - an unfinished link or tag, the unfinished row of a table, the lines that
//     may yet become a table, and a last line of marks alone ("--", "##")
//     wait for more.
//
// Only the paragraph being written is treated so; finished ones look as Parse
// shows them. The last frame must come from Parse.
func ParsePartial(md string) Text {
	return orLiteral(md, func() Text { return renderPartial(clean(md), telegram) })
}

func renderPartial(md string, d dialect) Text {
	p := document(md)
	// Each round shortens or closes one thing; a few are enough for what a
	// last line can hold, and the rest would only look unfinished for a frame.
	for range 4 {
		next, changed := settleTail(p)
		if !changed {
			break
		}
		p = document(next)
	}
	return render(p, d, openers(p))
}

// settleTail returns the source without its unfinished end, or with its inline
// code closed; changed is false when nothing is left to do.
func settleTail(p page) (md string, changed bool) {
	leaf := lastBlock(p.root)
	switch leaf.Kind() {
	case ast.KindFencedCodeBlock:
		// Backticks alone are a closing fence on its way, or the whole one.
		line := lastLine(p.src)
		if mark := bytes.TrimSpace(line); len(mark) > 0 && len(mark) < 3 && bytes.Trim(mark, "`~") == nil {
			return string(p.src[:len(p.src)-len(line)]), true
		}
		return "", false
	case ast.KindCodeBlock, ast.KindHTMLBlock:
		return "", false
	}
	if line := lastLine(p.src); len(bytes.TrimSpace(line)) > 0 && bytes.Trim(line, " \t-=*_#+>`~|:") == nil {
		return string(p.src[:len(p.src)-len(line)]), true
	}
	if leaf.Kind() == extast.KindTableCell {
		if line := lastLine(p.src); len(line) > 0 {
			return string(p.src[:len(p.src)-len(line)]), true
		}
		return "", false
	}
	if !growing(p.src, leaf) {
		return "", false
	}
	if at := tableLines(p.src, leaf); at >= 0 {
		return string(p.src[:at]), true
	}
	return settleInline(p.src, leaf)
}

func lastBlock(n ast.Node) ast.Node {
	for c := n.LastChild(); c != nil && c.Type() == ast.TypeBlock; c = n.LastChild() {
		n = c
	}
	return n
}

// lastLine is the last line if it is not yet ended.
func lastLine(src []byte) []byte { return src[bytes.LastIndexByte(src, '\n')+1:] }

// growing reports whether more text can still join leaf: a blank line ends a
// paragraph, a line break ends a heading.
func growing(src []byte, leaf ast.Node) bool {
	tail := src[len(bytes.TrimRightFunc(src, unicode.IsSpace)):]
	breaks := bytes.Count(tail, []byte("\n"))
	// Goldmark sees a paragraph in a no-break space; there is nothing to settle.
	return len(tail) < len(src) && leaf.FirstChild() != nil && breaks < 2 && (breaks < 1 || leaf.Kind() != ast.KindHeading)
}

// tableLines returns where the lines at the end of a paragraph begin that may
// be the head of a table, -1 if there are none.
func tableLines(src []byte, leaf ast.Node) int {
	piped := func(s []byte) bool { s = bytes.TrimLeft(s, " "); return len(s) > 0 && s[0] == '|' }
	n := leaf.Lines().Len()
	if n == 0 {
		return -1
	}
	last := leaf.Lines().At(n - 1)
	if !piped(last.Value(src)) {
		return -1
	}
	if n > 1 && bytes.Trim(last.Value(src), "|-: \n") == nil {
		if prev := leaf.Lines().At(n - 2); piped(prev.Value(src)) {
			return prev.Start
		}
	}
	return last.Start
}

// unfinished matches a tail that may become a link, an image, an autolink or a
// tag: "[te", "[text]", "[text](htt", "<htt", "</di". 300 characters are long for a label;
// a bracket further back is text.
var unfinished = regexp.MustCompile(`^(?:!?\[[^\[\]\n]{0,300}|!?\[[^\[\]\n]{0,300}\](?:\([^()\s]*(?:\([^()\s]*)*(?:[ \n][^)]*)?)?|</?[A-Za-z][^<>\s]*)$`)

func settleInline(src []byte, leaf ast.Node) (string, bool) {
	end := len(bytes.TrimRightFunc(src, unicode.IsSpace))
	code, link := -1, -1
	literal(leaf, src, func(at int) {
		switch src[at] {
		case '`':
			if code < 0 {
				code = at
			}
		case '[', '<':
			start := at
			if start > 0 && src[start-1] == '!' {
				start--
			}
			if link < 0 && unfinished.Match(src[start:end]) && (src[end-1] != ']' || end == len(src)) {
				link = start
			}
		}
	})
	switch {
	case link >= 0 && (code < 0 || link < code):
		return string(src[:link]), true
	case code >= 0:
		run := len(src[code:end]) - len(bytes.TrimLeft(src[code:end], "`"))
		if code+run == end {
			return string(src[:code]), true
		}
		if src[end-1] == '`' { // the closing run is on its way: take it off and close
			end = len(bytes.TrimRight(src[:end], "`"))
		}
		return string(src[:end]) + strings.Repeat("`", run), true
	case src[end-1] == '\\' && end == len(src):
		return string(src[:end-1]), true
	}
	return "", false
}

// literal calls f with the place of every unescaped mark character that
// stayed text in leaf.
func literal(leaf ast.Node, src []byte, f func(at int)) {
	_ = ast.Walk(leaf, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails: the callback does not
		t, ok := n.(*ast.Text)
		if !ok || !entering || t.IsRaw() {
			return ast.WalkContinue, nil
		}
		for i := t.Segment.Start; i < t.Segment.Stop; i++ {
			switch src[i] {
			case '\\':
				i++
			case '`', '[', '<', '*', '_', '~':
				f(i)
			}
		}
		return ast.WalkContinue, nil
	})
}

// openers are the emphasis marks in the growing paragraph that stayed text
// and can only open, and any run of them at its very end.
func openers(p page) []hole {
	leaf := lastBlock(p.root)
	if leaf.Type() != ast.TypeBlock || leaf.IsRaw() || leaf.Kind() == extast.KindTableCell || !growing(p.src, leaf) {
		return nil
	}
	end := len(bytes.TrimRightFunc(p.src, unicode.IsSpace))
	var hide []hole
	next := 0
	literal(leaf, p.src, func(at int) {
		c := p.src[at]
		if at < next || c != '*' && c != '_' && c != '~' {
			return
		}
		next = at + len(p.src[at:]) - len(bytes.TrimLeft(p.src[at:], string(c)))
		if c == '~' && next-at < 2 {
			return
		}
		if next >= end || opens(p.src, at, next) {
			hide = append(hide, hole{at, next})
		}
	})
	return hide
}

// opens reports whether the run src[at:next] stands before a word and not
// after one.
func opens(src []byte, at, next int) bool {
	before, _ := utf8.DecodeLastRune(src[:at])
	after, _ := utf8.DecodeRune(src[next:])
	outside := at == 0 || unicode.IsSpace(before) || unicode.IsPunct(before) || unicode.IsSymbol(before)
	return outside && !unicode.IsSpace(after)
}
