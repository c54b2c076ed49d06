package screens

import (
	"cmp"
	_ "embed"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"coxswain/discordtest"
	"coxswain/telegramtest"
)

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Parse(pageHTML))

// A screen is one page: a chat in the look of a platform.
type screen struct {
	Platform string // telegram | discord: the page's class
	Dark     bool
	Title    string
	Under    string
	Messages []message
}

// draw writes the page.
func draw(s screen) (string, error) {
	var b strings.Builder
	err := page.Execute(&b, s)
	return b.String(), err
}

// marks are the elements that entities are drawn as.
var marks = map[string]string{
	"bold": "b", "italic": "i", "underline": "u", "strikethrough": "s", "code": "code", "pre": "pre", "spoiler": "i",
	"blockquote": "blockquote", "expandable_blockquote": "blockquote",
}

// spans draws a text with Telegram's entities, which nest or stand apart.
func spans(text string, ents []telegramtest.Entity) template.HTML {
	ents = slices.Clone(ents)
	slices.SortStableFunc(ents, func(a, b telegramtest.Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	var b strings.Builder
	var open []telegramtest.Entity
	tag := func(e telegramtest.Entity) string { return cmp.Or(marks[e.Type], "span") }
	at, closed := 0, false // closed: a block ended here
	ends := func() {
		for len(open) > 0 && open[len(open)-1].Offset+open[len(open)-1].Length <= at {
			e := open[len(open)-1]
			b.WriteString("</" + tag(e) + ">")
			closed = tag(e) == "pre" || tag(e) == "blockquote"
			open = open[:len(open)-1]
		}
	}
	for _, r := range text {
		ends()
		for len(ents) > 0 && ents[0].Offset <= at {
			b.WriteString("<" + tag(ents[0]) + ` class="` + template.HTMLEscapeString(ents[0].Type) + `">`)
			open, ents = append(open, ents[0]), ents[1:]
		}
		if r != '\n' || !closed { // a block ends its line itself
			b.WriteString(template.HTMLEscapeString(string(r)))
		}
		closed = false
		at += utf16.RuneLen(r)
	}
	ends()
	return template.HTML(b.String()) // #nosec: all of text was escaped
}

// pieces are what Discord's Markdown is made of, as far as the adapter writes it.
var pieces = regexp.MustCompile("(?s)```(?:[a-z]*\n)?(.*?)\n?```\n?|`([^`]+)`|\\*\\*(.+?)\\*\\*|\\\\(.)|<@(\\d+)>|(?m:^)- ")

// markdown draws a text in Discord's Markdown.
func markdown(text string) template.HTML {
	var b strings.Builder
	last := 0
	for _, m := range pieces.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(template.HTMLEscapeString(text[last:m[0]]))
		last = m[1]
		group := func(n int) string { return template.HTMLEscapeString(text[m[2*n]:m[2*n+1]]) }
		switch {
		case m[2] >= 0:
			b.WriteString("<pre>" + group(1) + "</pre>")
		case m[4] >= 0:
			b.WriteString("<code>" + group(2) + "</code>")
		case m[6] >= 0:
			b.WriteString("<b>" + string(markdown(text[m[6]:m[7]])) + "</b>")
		case m[8] >= 0:
			b.WriteString(group(4))
		case m[10] >= 0 && group(5) == discordtest.BotID:
			b.WriteString(`<span class="mention">@Coxswain</span>`)
		case m[10] >= 0:
			b.WriteString(`<span class="mention">@someone</span>`)
		default:
			b.WriteString("• ")
		}
	}
	b.WriteString(template.HTMLEscapeString(text[last:]))
	return template.HTML(b.String()) // #nosec: all of text was escaped
}
