//go:build linux

package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A mutation breaks the gateway, in a build of its own. seen are the counts of
// which one at least tells.
type mutation struct {
	edits []edit
	kinds []string // of faults that bring it out
	seen  []string
}

type edit struct{ file, from, to string }

// A writer that another has replaced is stopped by the fence, and once more by
// the number of rows that it knows: either alone is not missed.
var mutations = map[string]mutation{
	"no fence": {[]edit{
		{"store/redis/lua/prelude.lua", "if nonce ~= '' and s('non') == nonce and n('ep') == epoch then return false end", "if true then return false end"},
		{"store/redis/lua/commit.lua", "n('turn') == 0 or n('seq') ~= seq or", "n('turn') == 0 or"},
	}, []string{faultStop, faultOneWay}, []string{effectTwice, steerOnSent, prefix, twoFinals, missing, invariant, refused}},
	"no dedupe": {[]edit{
		{"store/redis/lua/accept.lua", "local seen = marked(dedupe)", "local seen = nil"},
	}, faults, []string{twice}},
	"tools run again": {[]edit{
		{"loop/run.go", "ok && spec.Pure && open[0].Bad", "(ok || spec.Pure) && open[0].Bad"},
	}, faults, []string{effectTwice}},
}

// TestMutations: a gateway that is broken on purpose is seen to be. A part of make
// chaos: each takes a minute.
func TestMutations(t *testing.T) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, build(t, name), true, *seedFlag, *persons)
			f.kinds = m.kinds
			f.run(60, 45*time.Second, 5*time.Second)
			n := f.log.tally()
			if !slices.ContainsFunc(m.seen, func(kind string) bool { return n[kind] > 0 }) {
				t.Errorf("not seen: %v", n)
			}
			for _, v := range f.log.found[:min(5, len(f.log.found))] {
				t.Logf("%s: chat %d: %s", v.kind, v.chat, v.text)
			}
			if err := os.RemoveAll(f.dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// overlay writes what go build -overlay wants for a mutation.
func overlay(t *testing.T, name string) string {
	t.Helper()
	m, ok := mutations[name]
	if !ok {
		t.Fatalf("no mutation %q", name)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for _, e := range m.edits {
		path, err := filepath.Abs(filepath.Join("..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(data), e.from) != 1 {
			t.Fatalf("%s does not have %q once: bring the mutation up to date", e.file, e.from)
		}
		replace[path] = filepath.Join(dir, filepath.Base(e.file))
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(data), e.from, e.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
