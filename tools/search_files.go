package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"syscall"
)

const (
	searchText   = "Search the workspace: lines matching a regular expression (RE2), files matching a glob, or lines in such files. Skips .git and node_modules."
	searchSchema = `{"type":"object","properties":{"pattern":{"type":"string"},"glob":{"type":"string"},"path":{"type":"string"},"max":{"type":"integer","minimum":1,"maximum":500}},"additionalProperties":false}`

	defaultMatches  = 100
	maxMatches      = 500
	maxMatchLine    = 240       // bytes of a matching line that are shown
	maxSearchLine   = 64 << 10  // bytes of a line that are searched
	maxSearchFile   = 8 << 20   // bytes of a file that are searched
	maxSearchBytes  = 256 << 20 // of all files: a few seconds
	maxSearchVisits = 50_000    // entries looked at
	maxSearchDepth  = 64        // levels: deeper is a trap, and each level costs every access below it
)

type searchArgs struct {
	Pattern string  `json:"pattern"`
	Glob    string  `json:"glob"`
	Path    *string `json:"path"`
	Max     *int    `json:"max"`
}

func (s *Set) searchFiles() Tool {
	return define(s, "search_files", searchText, searchSchema, true, s.runSearch)
}

// A search is the state of one call.
type search struct {
	ws      *workspace
	re      *regexp.Regexp        // nil: names only
	glob    func(rel string) bool // nil: every file
	max     int
	rows    []string
	visits  int
	bytes   int64
	unread  int
	longer  int  // files searched only in part
	limited bool // visits or bytes ran out
	full    bool // one match more than max was there
}

func (s *Set) runSearch(ctx context.Context, c Call, a searchArgs) output {
	q, arg, bad := newSearch(a)
	if bad.failed {
		return bad
	}
	ws, wrong := openWorkspace(c.Dir)
	if wrong != "" {
		return failf("%s", wrong)
	}
	defer ws.close()
	q.ws = ws
	rel, wrong := ws.resolve(arg)
	if wrong != "" {
		return failf("%s", wrong)
	}
	w := &walker{root: ws.root, depth: maxSearchDepth, visit: func(at string, e fs.DirEntry) bool {
		q.visits++
		if q.limited = q.limited || q.visits > maxSearchVisits || q.bytes > maxSearchBytes; q.limited {
			return false
		}
		return !e.Type().IsRegular() || q.file(ctx, at)
	}}
	err := w.walk(ctx, rel)
	switch {
	case errors.Is(err, syscall.ENOTDIR): // the path may be a file
		f, _, wrong := ws.openRegular(rel)
		if wrong != "" {
			return failf("%s", wrong)
		}
		f.Close()
		q.file(ctx, rel)
	case err != nil:
		return failf("%s", pathWrong(rel, err))
	}
	if ctx.Err() != nil {
		return failf(wordInterrupted, "search_files")
	}
	return q.output(w)
}

func newSearch(a searchArgs) (*search, string, output) {
	q, arg := &search{max: defaultMatches}, "."
	if a.Path != nil && *a.Path != "" {
		arg = *a.Path
	}
	if a.Max != nil {
		q.max = *a.Max
	}
	switch {
	case a.Pattern == "" && a.Glob == "":
		return nil, "", failf(wordSearchNeeds)
	case q.max < 1 || q.max > maxMatches:
		return nil, "", outOfRange("search_files", "max", 1, maxMatches)
	case len(a.Pattern) > maxPattern:
		return nil, "", failf(wordLongPattern, "pattern", len(a.Pattern), maxPattern)
	case len(a.Glob) > maxPattern:
		return nil, "", failf(wordLongPattern, "glob", len(a.Glob), maxPattern)
	}
	var err error
	if a.Pattern != "" {
		if q.re, err = regexp.Compile(a.Pattern); err != nil {
			return nil, "", failf(wordBadPattern, quote(a.Pattern), cleanFile(err.Error()))
		}
	}
	if a.Glob != "" {
		if q.glob, err = compileGlob(a.Glob); err != nil {
			return nil, "", failf(wordBadGlob, quote(a.Glob), err)
		}
	}
	return q, arg, output{}
}

func (q *search) add(row string) bool {
	if len(q.rows) == q.max {
		q.full = true
		return false
	}
	q.rows = append(q.rows, row)
	return true
}

// file searches one file and says whether to go on.
func (q *search) file(ctx context.Context, rel string) bool {
	if q.glob != nil && !q.glob(rel) {
		return true
	}
	if q.re == nil {
		return q.add(shown(rel))
	}
	f, info, wrong := q.ws.openRegular(rel)
	if wrong != "" {
		q.unread++
		return true
	}
	defer f.Close()
	lines := newLineReader(io.LimitReader(f, maxSearchFile), maxSearchLine)
	defer func() { q.bytes += lines.read }()
	if looksBinary(lines.peek(sniffBytes)) {
		return true
	}
	if info.Size() > maxSearchFile {
		q.longer++
	}
	for number := 1; ctx.Err() == nil; number++ {
		line, length, err := lines.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				q.unread++
			}
			return true
		}
		at := q.re.FindIndex(line)
		if at == nil {
			continue
		}
		if !q.add(fmt.Sprintf("%s:%d: %s", shown(rel), number, matchText(string(line), at[0], length))) {
			return false
		}
	}
	return false
}

// matchText shows the part of a line in which the match begins.
func matchText(line string, at, full int) string {
	from := 0
	if at > maxMatchLine/2 {
		from = headRune(line, at-maxMatchLine/4)
	}
	text := cleanFile(lineCut(line[from:], maxMatchLine, full-from))
	if from > 0 {
		return "…" + text
	}
	return text
}

func (q *search) output(w *walker) output {
	o := output{text: strings.Join(q.rows, "\n")}
	if len(q.rows) == 0 {
		o.text = wordNoMatch
	}
	var notes []string
	if q.full {
		notes = append(notes, fmt.Sprintf(wordSearchMore, q.max))
	}
	if q.limited {
		notes = append(notes, fmt.Sprintf(wordSearchTooMuch, maxSearchVisits, maxSearchBytes>>20))
	}
	if w.cut {
		notes = append(notes, fmt.Sprintf(wordDirMore, maxDirEntries))
	}
	if n := q.unread + w.unread; n > 0 {
		notes = append(notes, fmt.Sprintf(wordSearchUnread, n))
	}
	if q.longer > 0 {
		notes = append(notes, fmt.Sprintf(wordSearchLongFile, maxSearchFile>>20, q.longer))
	}
	o.note = strings.Join(notes, " ")
	return o
}
