package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
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

	// A match costs bytes × steps of the pattern's program, about 10 ns each, and cannot be
	// interrupted: 64 KiB × 100 is 60 ms. Larger programs, such as ".{0,999}" with its two
	// thousand steps, are fed rune by rune (match); a rune must not cost a millisecond.
	maxSwiftSteps    = 100
	maxSteps         = 10_000
	maxSearchTimeout = 20 * time.Second
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
	steps   int // of the pattern's program
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
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, s.searchTime)
	defer cancel()
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
	if caller.Err() != nil {
		return failf(wordInterrupted, "search_files")
	}
	o := q.output(w)
	if ctx.Err() != nil { // what was found by then stands
		o.note = strings.TrimPrefix(o.note+" "+fmt.Sprintf(wordSearchLong, s.searchTime), " ")
	}
	return o
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
		// Counted first: regexp.Compile of a giant takes long by itself.
		if q.steps, err = patternSteps(a.Pattern); err == nil && q.steps > maxSteps {
			return nil, "", failf(wordBigPattern, quote(a.Pattern), q.steps, maxSteps)
		}
		if err == nil {
			q.re, err = regexp.Compile(a.Pattern)
		}
		if err != nil {
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
		if number == 1 { // a byte order mark is no text
			text := bytes.TrimPrefix(line, []byte("\uFEFF"))
			line, length = text, length-(len(line)-len(text))
		}
		at := q.match(ctx, line)
		if at == nil {
			continue
		}
		if !q.add(fmt.Sprintf("%s:%d: %s", shown(rel), number, matchText(string(line), at[0], length))) {
			return false
		}
	}
	return false
}

// patternSteps is the size of a pattern's program.
func patternSteps(pattern string) (int, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// match finds the pattern in a line. A line in which ctx ended counts as without a match.
func (q *search) match(ctx context.Context, line []byte) []int {
	if q.steps <= maxSwiftSteps {
		return q.re.FindIndex(line)
	}
	at := q.re.FindReaderIndex(&lineRunes{ctx: ctx, line: line})
	if ctx.Err() != nil {
		return nil
	}
	return at
}

// lineRunes reads a line's runes until ctx ends: a match that has become pointless ends there.
type lineRunes struct {
	ctx  context.Context
	line []byte
	read int
}

// ReadRune implements io.RuneReader.
func (l *lineRunes) ReadRune() (rune, int, error) {
	const every = 32 // runes: a few milliseconds of the largest program
	if len(l.line) == 0 || l.read%every == 0 && l.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	l.read++
	r, n := utf8.DecodeRune(l.line)
	l.line = l.line[n:]
	return r, n, nil
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
