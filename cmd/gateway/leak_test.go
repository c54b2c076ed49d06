package main

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// The tests that run side by side wait for leases and processes far more than they
// compute, so more of them may than there are cores; -parallel says otherwise.
// No goroutine outlives the tests (issue 4, leaks).
// A client that saw its server die looks for it once a second until it is closed,
// and hears of that a second later.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// TestLeaksAreLookedFor: the tests of a package in which a goroutine is started,
// be it by a test, end with a look for those that are left.
func TestLeaksAreLookedFor(t *testing.T) {
	for _, p := range packages(t) {
		tests := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		starts, looks := false, false
		for _, f := range slices.Concat(p.GoFiles, tests) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					starts = true
				case *ast.SelectorExpr:
					starts = starts || n.Sel.Name == "Go" || n.Sel.Name == "AfterFunc"
					looks = looks || n.Sel.Name == "VerifyTestMain"
				}
				return true
			})
		}
		if len(tests) > 0 && starts && !looks {
			t.Errorf("%s starts goroutines: its TestMain must call goleak.VerifyTestMain", p.ImportPath)
		}
	}
}
