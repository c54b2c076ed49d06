package markup

import "strings"

// maxIndent caps the indentation of nested lists, so that lazy continuation
// lines under a thousand list markers cannot grow the output quadratically.
const maxIndent = 16

// builder collects plain text and marks. Newlines are lazy: they are written
// only when text follows, so a block that renders to nothing leaves no gap and
// no line ends in white space. One goroutine, one document.
type builder struct {
	buf     []byte
	marks   []mark
	waiting []int  // marks begun whose first byte is not yet written
	prefix  string // indentation of the lines to come
	lead    string // due between a list marker and the text on its line
	want    int    // newlines due before the next text
	begun   bool   // the current line has its prefix
}

// sep asks for at least n newlines before whatever comes next.
func (b *builder) sep(n int) { b.want = max(b.want, n) }

// put writes s as it is, newlines included.
func (b *builder) put(s string) {
	if s == "" {
		return
	}
	if b.want > 0 {
		if len(b.buf) > 0 {
			b.buf = append(b.buf, "\n\n"[:b.want]...)
			b.begun, b.lead = false, ""
		}
		b.want = 0
	}
	if !b.begun {
		b.buf = append(b.buf, b.prefix...)
		b.begun = true
	}
	b.buf = append(b.buf, b.lead...)
	b.lead = ""
	for _, i := range b.waiting {
		b.marks[i].start = len(b.buf)
	}
	b.waiting = b.waiting[:0]
	b.buf = append(b.buf, s...)
}

// text writes s line by line under the prefix; more than one blank line in a
// row becomes one.
func (b *builder) text(s string) {
	for {
		line, rest, more := strings.Cut(s, "\n")
		b.put(line)
		if !more {
			return
		}
		b.want = min(b.want+1, 2)
		s = rest
	}
}

// begin opens a mark at the next byte written; end closes it. They nest.
func (b *builder) begin(k Kind) int {
	b.marks = append(b.marks, mark{kind: k, start: -1})
	b.waiting = append(b.waiting, len(b.marks)-1)
	return len(b.marks) - 1
}

func (b *builder) end(i int) {
	if n := len(b.waiting); n > 0 && b.waiting[n-1] == i { // nothing was written: no mark
		b.waiting = b.waiting[:n-1]
		b.marks[i].kind = 0
		return
	}
	b.marks[i].end = len(b.buf)
}

// pre writes a block of code on lines of its own, without the prefix.
func (b *builder) pre(code, lang string, head int) {
	prefix := b.prefix
	b.prefix = ""
	b.sep(1)
	i := b.begin(Pre)
	b.marks[i].lang, b.marks[i].head = lang, head
	b.put(code)
	b.end(i)
	b.prefix = prefix
	b.sep(1)
}

// marker writes a list marker and indents what belongs to the item; the
// returned function ends the item.
func (b *builder) marker(s string, raw bool) (done func()) {
	if raw {
		i := b.begin(verbatim)
		b.put(s)
		b.end(i)
	} else {
		b.put(s)
	}
	b.lead = " "
	prefix := b.prefix
	if n := Units(s) + 1; len(prefix)+n <= maxIndent {
		b.prefix += strings.Repeat(" ", n)
	}
	return func() { b.prefix, b.lead = prefix, "" }
}

// finish returns what was written. A quote is measured here, because a code
// block in it makes it several.
func (b *builder) finish() Text {
	plain := strings.TrimRightFunc(string(b.buf), blank)
	marks := exclusive(plain, b.marks)
	for i, m := range marks {
		if m.kind == Quote && longQuote(plain[m.start:m.end]) {
			marks[i].kind = ExpandableQuote
		}
	}
	return Text{Plain: plain, Spans: toSpans(plain, marks)}
}

// longQuote: more than three lines or 400 units push the answer off a phone's
// screen.
func longQuote(s string) bool { return strings.Count(s, "\n") >= 3 || Units(s) > 400 }
