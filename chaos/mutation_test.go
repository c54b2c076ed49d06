package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mutation breaks the gateway in one place, in a build of its own.
type mutation struct{ file, from, to string }

var mutations = map[string]mutation{
	"no fence":     {"store/redis/lua/prelude.lua", "if nonce ~= '' and s('non') == nonce and n('ep') == epoch then return false end", "if true then return false end"},
	"no dedupe":    {"store/redis/lua/accept.lua", "local seen = marked(dedupe)", "local seen = nil"},
	"tools re-run": {"loop/run.go", "ok && spec.Pure && open[0].Bad == \"\"", "ok && open[0].Bad == \"\""},
}

// overlay writes what go build -overlay wants for a mutation.
func overlay(t *testing.T, name string) string {
	t.Helper()
	m, ok := mutations[name]
	if !ok {
		t.Fatalf("no mutation %q", name)
	}
	path, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), m.from) != 1 {
		t.Fatalf("%s does not have %q once: bring the mutation up to date", m.file, m.from)
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(broken, []byte(strings.Replace(string(data), m.from, m.to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
