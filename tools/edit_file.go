package tools

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	editText   = "Replace exact text in a file of the workspace. \"old\" must be in it once, or set all."
	editSchema = `{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},"all":{"type":"boolean"}},"required":["path","old","new"],"additionalProperties":false}`

	maxLinesNamed = 5 // of several matches
)

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

func (s *Set) editFile() Tool {
	return define(s, "edit_file", editText, editSchema, false, s.runEdit)
}

func (s *Set) runEdit(ctx context.Context, c Call, a editArgs) output {
	switch {
	case a.Old == "":
		return failf(wordEditEmpty)
	case a.Old == a.New:
		return failf(wordEditSame)
	}
	ws, wrong := openWorkspace(c.Dir)
	if wrong != "" {
		return failf("%s", wrong)
	}
	defer ws.close()
	rel, wrong := ws.resolve(a.Path)
	if wrong != "" {
		return failf("%s", wrong)
	}
	if _, wrong = ws.target(rel); wrong != "" { // a link is refused here, before it is read
		return failf("%s", wrong)
	}
	data, info, wrong := ws.readWhole(rel, maxWrite)
	if wrong != "" {
		return failf("%s", wrong)
	}
	if looksBinary(data) || !utf8.Valid(data) {
		return failf(wordEditBinary, quote(rel))
	}
	next, o := edit(string(data), rel, a)
	if o.failed {
		return o
	}
	if len(next) > maxWrite {
		return failf(wordWriteTooBig, quote(rel), len(next), maxWrite)
	}
	if ctx.Err() != nil {
		return failf(wordInterrupted, "edit_file")
	}
	if wrong := ws.unchanged(rel, info); wrong != "" {
		return failf("%s", wrong)
	}
	if wrong := ws.replace(rel, []byte(next), info); wrong != "" {
		return failf("%s", wrong)
	}
	return o
}

// edit is the pure part. read_file shows CR LF as a plain line end, so the model's text has
// LF: it is matched with the file's own line ends, and what goes in gets them too.
func edit(text, rel string, a editArgs) (string, output) {
	old, fresh := a.Old, a.New
	crlf := strings.Count(text, "\r\n")
	switch {
	case crlf > 0 && crlf == strings.Count(text, "\n"):
		old, fresh = toCRLF(old), toCRLF(fresh)
	case crlf > 0 && !strings.Contains(text, old) && strings.Contains(text, toCRLF(old)):
		old, fresh = toCRLF(old), toCRLF(fresh) // mixed line ends: here CR LF is meant
	}
	at := strings.Index(text, old)
	if at < 0 {
		if line := similarLine(text, old); line > 0 {
			return "", failf(wordEditNear, quote(rel), line)
		}
		return "", failf(wordEditNone, quote(rel))
	}
	if a.All {
		n := strings.Count(text, old)
		return strings.ReplaceAll(text, old, fresh), sayf(wordEditedAll, n, quote(rel), lineOf(text, at))
	}
	// The second search starts one byte on, not behind the match: "aa" is twice in "aaa".
	if again := strings.Index(text[at+1:], old); again >= 0 {
		return "", failf(wordEditMany, quote(rel), matchLines(text, old))
	}
	return text[:at] + fresh + text[at+len(old):], sayf(wordEdited, quote(rel), lineOf(text, at))
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func lineOf(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }

// matchLines names the lines of the first matches, overlapping ones included.
func matchLines(text, old string) string {
	var lines []string
	for at := 0; ; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		at += i
		if len(lines) == maxLinesNamed {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, strconv.Itoa(lineOf(text, at)))
		at++
	}
	return strings.Join(lines, ", ")
}

// similarLine finds the only line that equals the first line of old apart from spaces: the
// usual miss is indentation. 0 when there is none or several.
func similarLine(text, old string) int {
	first, _, _ := strings.Cut(strings.TrimSpace(old), "\n")
	want := bytes.Join(bytes.Fields([]byte(first)), nil)
	if len(want) == 0 {
		return 0
	}
	found, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		if bytes.Equal(bytes.Join(bytes.Fields([]byte(line)), nil), want) {
			if found > 0 {
				return 0
			}
			found = number
		}
	}
	return found
}
