package main

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// may says which packages of this module each one may import, outside tests.
// Imports go down, never sideways; each entry has a reason.
var may = map[string]string{
	"steer":              "",
	"session":            "steer",                                                            // what a message means
	"loop":               "session steer",                                                    // the turn, the note
	"loop/openai":        "loop session",                                                     // the model it is
	"loop/demo":          "loop session",                                                     //
	"tools":              "steer",                                                            // for what people may see; the loop says what it wants of a tool
	"ops":                "",                                                                 //
	"store":              "session store/sqlite store/redis",                                 // opens one of them
	"store/sqlite":       "session steer",                                                    // the interface it implements
	"store/redis":        "session steer",                                                    //
	"store/storetest":    "session steer",                                                    //
	"adapters/markup":    "",                                                                 //
	"adapters/bubble":    "session",                                                          // the turn it tells of
	"adapters/loopguard": "",                                                                 // counting alone
	"adapters/outbox":    "session",                                                          //
	"adapters/telegram":  "session steer adapters/markup adapters/loopguard adapters/bubble", // phases in a bubble, text, other bots
	"adapters/discord":   "session steer adapters/markup adapters/loopguard adapters/bubble", //
	"adapters/web":       "session steer",                                                    //
	"sim":                "",                                                                 // tests only
	"interop":            "",                                                                 // tests only: independent clients judge the fakes
	"docs/screens":       "",                                                                 // tests only: pictures from recorded calls
	"cmd/gateway":        "*",                                                                // joins the parts
	"modeltest":          "", "telegramtest": "", "discordtest": "",                          // fakes know only the wire
	"store/redis/redistest": "",
}

type listed struct {
	ImportPath string
	Imports    []string
	Doc        string
	Dir        string
	GoFiles    []string

	TestGoFiles, XTestGoFiles []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Doc,Dir,GoFiles,TestGoFiles,XTestGoFiles", "coxswain/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// TestImports holds the import rule of the house.
func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "coxswain/")
		allowed, known := may[name]
		if !known {
			t.Errorf("%s is not in the house's plan: give it a line, and a reason", name)
			continue
		}
		for _, imp := range p.Imports {
			sub, ours := strings.CutPrefix(imp, "coxswain/")
			if imp == "testing" {
				if !strings.HasSuffix(name, "test") {
					t.Errorf("%s imports testing: test code does not belong in the binary", name)
				}
				continue
			}
			if ours && allowed != "*" && !slices.Contains(strings.Fields(allowed), sub) {
				t.Errorf("%s imports %s: imports go down, never sideways", name, sub)
			}
		}
	}
}

// TestPackageComments wants one package comment each.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		docs := 0
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				docs++
			}
		}
		if docs != 1 {
			t.Errorf("%s has %d package comments; want 1", p.ImportPath, docs)
		}
	}
}

// long are files over the ceiling, each with the reason.
var long = map[string]string{
	"session/store.go": "the store's contract: one interface, read in one place",
	"session/turn.go":  "one type, the turn in the agent's hands",
}

// TestFileSizes keeps files readable in one sitting.
func TestFileSizes(t *testing.T) {
	const most = 400
	for _, p := range packages(t) {
		for _, f := range p.GoFiles {
			path := filepath.Join(p.Dir, f)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(p.ImportPath, "coxswain/") + "/" + f
			if strings.HasSuffix(p.ImportPath, "test") {
				continue // fakes and suites are read by case
			}
			if n := strings.Count(string(data), "\n"); n > most && long[name] == "" {
				t.Errorf("%s has %d lines; more than %d need a reason here", name, n, most)
			}
		}
	}
}

// TestOneSpawnHelper: programs are started in one place, with an environment
// made from nothing.
func TestOneSpawnHelper(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(p.ImportPath, "coxswain/") + "/" + f
			if strings.Contains(string(data), "exec.Command") && name != "tools/spawn.go" && !strings.Contains(name, "test/") {
				t.Errorf("%s starts a program: that is tools/spawn.go's", name)
			}
		}
	}
}
