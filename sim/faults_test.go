package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var suiteRule = regexp.MustCompile("`([a-z]+/[^`]+)`")

// faults is how many there are: F1 to F44.
const faults = 44

// TestFaults holds testdata/FAULTS.md: each fault once and in order, with its
// outcome, and with something that exists and shows it.
func TestFaults(t *testing.T) {
	data, err := os.ReadFile("testdata/FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := suiteRules(t)
	n := 0
	for l := range strings.Lines(string(data)) {
		if !strings.HasPrefix(l, "| F") {
			continue
		}
		n++
		cells := strings.Split(strings.Trim(l, "| \n"), " | ")
		if len(cells) != 4 || cells[0] != fmt.Sprintf("F%d", n) || cells[1] == "" || cells[2] == "" {
			t.Fatalf("row %d is not one of F%d with what, outcome and what shows it: %s", n, n, l)
		}
		by := cells[3]
		tests, of := caseTest.FindAllString(by, -1), suiteRule.FindAllStringSubmatch(by, -1)
		if len(tests)+len(of) == 0 || strings.Contains(by, "open:") {
			t.Errorf("F%d: nothing shows it, or not all of it: %s", n, by)
		}
		if got, want := slices.Contains(tests, "sim:TestFleet"), slices.Contains(fleetRows, cells[0]); got != want {
			t.Errorf("F%d: shown by the fleet: the table says %v; the fleet %v", n, got, want)
		}
		for _, f := range tests {
			if err := exists(f); err != "" {
				t.Errorf("F%d: %s: %s", n, f, err)
			}
		}
		for _, r := range of {
			if !strings.Contains(rules, `{"`+r[1]) {
				t.Errorf("F%d: the suite has no rule that begins with %s", n, r[1])
			}
		}
	}
	if n != faults {
		t.Errorf("%d faults; want %d", n, faults)
	}
}

// suiteRules is the text of the suite that every store passes.
func suiteRules(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../store/storetest/suite_*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suite: %v", err)
	}
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
	}
	return b.String()
}
