package redis

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// plain are the commands that Go code of this package may send: reads, and the
// ones that carry scripts. Everything else writes, or may one day.
var plain = map[string]string{
	"Ping": "", "Info": "", "ConfigGet": "", "Pipeline": "carries scripts", "EvalSha": "by redis.Script", "PSubscribe": "",
	"Process": "of a script, by the barrier",
	"Load":    "a method of redis.Script and of Store",
	"Close":   "of the client",
}

// TestNoWritesOutsideScripts: the client sends a command again when its reply
// was lost, and only scripts take that (a plain RPUSH stored 149 of 20,000
// values twice under resets).
func TestNoWritesOutsideScripts(t *testing.T) {
	commands := map[string]bool{"Do": true, "Process": true, "Watch": true, "Publish": true, "SPublish": true}
	for typ := range reflect.TypeFor[redis.Cmdable]().Methods() {
		commands[typ.Name] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		imported := map[string]bool{}
		for _, imp := range f.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			name := path[strings.LastIndex(path, "/")+1:]
			if imp.Name != nil {
				name = imp.Name.Name
			}
			imported[name] = true
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !commands[sel.Sel.Name] {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && imported[id.Name] {
				return true // a function of a package
			}
			if _, ok := plain[sel.Sel.Name]; !ok {
				t.Errorf("%s: %s is sent outside a script", fset.Position(call.Pos()), sel.Sel.Name)
			}
			seen[sel.Sel.Name] = true
			return true
		})
	}
	if !seen["Info"] || !seen["EvalSha"] {
		t.Error("the test saw no command at all: it looks at the wrong thing")
	}
}

// TestScriptsSayWhatTheyTake: one header per file, so that a reader need not
// count arguments.
func TestScriptsSayWhatTheyTake(t *testing.T) {
	files, err := fs.Glob(luaFiles, "lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	header := regexp.MustCompile(`^#!lua( flags=(no-writes|allow-oom))?\n-- (\w+): [^\n]+\n(-- [^\n]+\n)*-- KEYS(, ARGV 1-4)?: [^\n]+\n(--[^\n]+\n)*-- Reply: `)
	for _, file := range files {
		if file == "lua/prelude.lua" {
			continue
		}
		b, err := luaFiles.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := header.FindSubmatch(b)
		if m == nil {
			t.Errorf("%s: want #!lua, then a header of what it does, KEYS, ARGV and Reply", file)
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".lua"); string(m[3]) != want {
			t.Errorf("%s: the header names %s", file, m[3])
		}
	}
}
