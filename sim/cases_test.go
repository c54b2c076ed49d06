package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A caseRow is a row of testdata/CASES.md.
type caseRow struct {
	ids   []string // "hermes 28503"
	by    string   // what plays it
	files []string // of it, as written
}

var (
	caseIDs  = regexp.MustCompile(`^(hermes|openclaw|picoclaw|crush|csgclaw|elasticclaw|term-llm|matterbridge) (\d+(?:, \d+)*)$`)
	caseTest = regexp.MustCompile(`[\w/]+:(?:Test|Benchmark)\w+|[\w/-]+\.txt`)
	// named is how a transcript names its sources.
	named   = regexp.MustCompile(`\b(hermes-agent|hermes|openclaw|picoclaw|crush|csgclaw|elasticclaw|term-llm|matterbridge) (#?\d+(?:(?:,| and|, and) #?\d+)*)`)
	numbers = regexp.MustCompile(`\d+`)
	later   = regexp.MustCompile(`later: issue \d+|out of scope: `)
)

func caseRows(t *testing.T) []caseRow {
	data, err := os.ReadFile("testdata/CASES.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []caseRow
	for n, l := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(l, "|") || strings.HasPrefix(l, "|---") || strings.HasPrefix(l, "| case ") {
			continue
		}
		cells := strings.Split(strings.Trim(l, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("line %d has %d cells: %s", n+1, len(cells), l)
		}
		m := caseIDs.FindStringSubmatch(cells[0])
		if m == nil {
			t.Fatalf("line %d names no case: %s", n+1, l)
		}
		r := caseRow{by: cells[2], files: caseTest.FindAllString(cells[2], -1)}
		for _, id := range numbers.FindAllString(m[2], -1) {
			r.ids = append(r.ids, m[1]+" "+id)
		}
		rows = append(rows, r)
	}
	return rows
}

// sources are the reported cases that a transcript's first lines name.
func sources(text string) (ids []string) {
	var head []string
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "#") {
			break
		}
		head = append(head, strings.TrimSpace(strings.TrimPrefix(l, "#")))
	}
	for _, m := range named.FindAllStringSubmatch(strings.Join(head, " "), -1) {
		for _, id := range numbers.FindAllString(m[2], -1) {
			ids = append(ids, strings.TrimSuffix(m[1], "-agent")+" "+id)
		}
	}
	return ids
}

// TestCases holds testdata/CASES.md: each case once, with something that
// exists and plays it, or the issue that will; and whatever source a
// transcript names stands there with that transcript.
func TestCases(t *testing.T) {
	rows := caseRows(t)
	files := map[string][]string{} // id → what plays it
	for _, r := range rows {
		for _, id := range r.ids {
			if _, twice := files[id]; twice {
				t.Errorf("%s stands twice", id)
			}
			files[id] = r.files
		}
		if len(r.files) == 0 && !later.MatchString(r.by) {
			t.Errorf("%s: nothing plays it, and no issue will: %s", r.ids, r.by)
		}
		for _, f := range r.files {
			if err := exists(f); err != "" {
				t.Errorf("%s: %s: %s", r.ids, f, err)
			}
		}
	}
	for want, n := range map[string]int{"hermes": 131, "openclaw": 125, "picoclaw": 16, "crush": 4} {
		got := 0
		for id := range files {
			if strings.HasPrefix(id, want+" ") {
				got++
			}
		}
		if got != n {
			t.Errorf("%d cases of %s; want %d", got, want, n)
		}
	}
	for _, glob := range []string{"testdata/*.txt", "testdata/wire/*.txt"} {
		paths, err := filepath.Glob(glob)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no transcripts: %v", err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel("testdata", path)
			if err != nil {
				t.Fatal(err)
			}
			ids := sources(string(data))
			if of := regexp.MustCompile(`^(hermes|openclaw|picoclaw|crush|term-llm|matterbridge)-(\d+)-`).FindStringSubmatch(name); of != nil && !slices.Contains(ids, of[1]+" "+of[2]) {
				t.Errorf("%s does not name %s %s in its first lines", name, of[1], of[2])
			}
			for _, id := range ids {
				if !slices.Contains(files[id], name) {
					t.Errorf("%s names %s; the table does not say so", name, id)
				}
			}
		}
	}
}

// exists says why what the table names does not, "" if it does.
func exists(name string) string {
	path, test, isTest := strings.Cut(name, ":")
	if !isTest {
		if _, err := os.Stat(filepath.Join("testdata", path)); err != nil {
			return err.Error()
		}
		return ""
	}
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(path), "*_test.go"))
	if err != nil {
		return err.Error()
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err.Error()
		}
		if strings.Contains(string(data), "\nfunc "+test+"(") {
			return ""
		}
	}
	return "there is no such test in it"
}
