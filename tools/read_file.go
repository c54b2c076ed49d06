package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	readText   = "Read a text file of the workspace, or a range of its lines."
	readSchema = `{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":1,"description":"first line"},"limit":{"type":"integer","minimum":1,"description":"lines"}},"required":["path"],"additionalProperties":false}`

	maxRead     = 256 << 10 // bytes of one answer; MaxOutput may say less
	maxReadLine = 2000      // bytes of one line: minified code is one line of a megabyte
	maxScan     = 64 << 20  // bytes looked at to find a line or count them: about 50 ms
	sniffBytes  = 8000      // git's limit for finding a NUL
	maxInt32    = 1<<31 - 1
)

type readArgs struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}

func (s *Set) readFile() Tool {
	return define(s, "read_file", readText, readSchema, true, s.runRead)
}

func (s *Set) runRead(ctx context.Context, c Call, a readArgs) output {
	offset, limit := 1, maxInt32
	if a.Offset != nil {
		offset = *a.Offset
	}
	if a.Limit != nil {
		limit = *a.Limit
	}
	if offset < 1 || offset > maxInt32 {
		return outOfRange("read_file", "offset", 1, maxInt32)
	}
	if limit < 1 || limit > maxInt32 {
		return outOfRange("read_file", "limit", 1, maxInt32)
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
	f, info, wrong := ws.openRegular(rel)
	if wrong != "" {
		return failf("%s", wrong)
	}
	defer f.Close()
	return readLines(ctx, f, rel, info.Size(), offset, limit, min(maxRead, s.opt.MaxOutput-outputReserve))
}

// readLines answers with whole lines, at most budget bytes of them, so that a result is never
// cut in the middle: what does not fit is asked for with the offset the answer names.
func readLines(ctx context.Context, f *os.File, rel string, size int64, offset, limit, budget int) output {
	lines := newLineReader(io.LimitReader(f, maxScan+1), maxReadLine+1) // one more: a CR at the cut is no text
	if wrong := notText(rel, size, lines.peek(sniffBytes)); wrong != "" {
		return failf("%s", wrong)
	}
	var text strings.Builder
	number, last := 0, 0
	full, invalid, scanned := false, false, false
	for {
		if ctx.Err() != nil {
			return failf(wordInterrupted, "read_file")
		}
		line, length, err := lines.next()
		if scanned = lines.read > maxScan; scanned {
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return failf("%s", pathWrong(rel, err))
		}
		number++
		if number < offset || full || number-offset >= limit {
			continue
		}
		if number == 1 {
			line = []byte(strings.TrimPrefix(string(line), "\uFEFF")) // a byte order mark is no text
		}
		shownLine := cleanFile(lineCut(string(line), maxReadLine, length))
		invalid = invalid || length <= maxReadLine && !utf8.Valid(line)
		if text.Len()+len(shownLine)+1 > budget && last > 0 {
			full = true
			continue
		}
		text.WriteString(shownLine)
		text.WriteByte('\n')
		last = number
	}
	return rangeOutput(rel, text.String(), lineRange{offset, last, number, scanned}, lines.crlf, invalid)
}

// lineRange is what was shown of how many; open means the end was not reached.
type lineRange struct {
	first, last, total int
	open               bool
}

func rangeOutput(rel, text string, r lineRange, crlf, invalid bool) output {
	switch {
	case r.last == 0 && r.open:
		return failf(wordPastScan, r.first, quote(rel), maxScan>>20)
	case r.total == 0 && r.first == 1:
		return output{text: wordEmptyFile}
	case r.last == 0:
		return failf(wordPastEnd, quote(rel), r.total, r.first)
	}
	o := output{text: text}
	switch {
	case r.open:
		o.note = fmt.Sprintf(wordLinesNoEnd, r.first, r.last, r.total, r.last+1)
	case r.last < r.total:
		o.note = fmt.Sprintf(wordLinesNext, r.first, r.last, r.total, r.last+1)
	case r.first > 1:
		o.note = fmt.Sprintf(wordLines, r.first, r.last, r.total)
	}
	if crlf {
		o.note += wordCRLF
	}
	if invalid {
		o.note += wordNotUTF8
	}
	o.note = strings.TrimPrefix(o.note, " ")
	return o
}

// notText describes a file that cannot be shown as lines.
func notText(rel string, size int64, first []byte) string {
	switch {
	case utf16Text(first):
		return fmt.Sprintf(wordUTF16, quote(rel), size)
	case looksBinary(first):
		return fmt.Sprintf(wordBinary, quote(rel), http.DetectContentType(first), size)
	}
	return ""
}
