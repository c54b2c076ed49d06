//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkIdleSession is what an idle session of 20 rows keeps in Redis: its
// head and six turns, three of them with tool calls. Promised: 5 kB, of all keys of
// a lane as MEMORY USAGE has them. By the kind of key stands what goes where
// (lua/prelude.lua names them).
func BenchmarkIdleSession(b *testing.B) {
	const many, turns = 992, 6
	m := &proseModel{}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	for _, pkg := range []string{"net/http", "database/sql", "text/template"} { // no dictionary was made from these
		m.load(b, filepath.Join(strings.TrimSpace(string(root)), "src", pkg))
	}
	s := newSoak(b, "redis", many, 64, m.ServeHTTP)
	var wg sync.WaitGroup
	for lane := range soakLanes {
		wg.Go(func() {
			for n := lane; n < s.sessions; n += soakLanes {
				for turn := range turns {
					s.say(n, fmt.Sprintf("%s (step %d)", m.prose(1), turn))
				}
			}
		})
	}
	wg.Wait()
	s.rest()
	kinds, total := map[string]int64{}, int64(0)
	for _, k := range s.redis.Do("KEYS", "*").([]any) {
		name := strings.SplitN(k.(string), ":", 4) // prefix, partition, kind, lane
		if len(name) < 4 {
			continue // a partition's or the store's
		}
		size := s.redis.Do("MEMORY", "USAGE", k, "SAMPLES", "0").(int64)
		kinds[name[2][:1]] += size
		total += size
	}
	for kind, size := range kinds {
		report(b, float64(size)/float64(s.sessions), "B-"+kind)
	}
	report(b, float64(total)/float64(s.sessions), "B/session")
}

// A proseModel talks in sentences of what people have written about programs,
// and calls the file tools as its question's step asks.
type proseModel struct {
	sentences []string
	next      atomic.Int64
}

// load takes the comments of packages.
func (m *proseModel) load(b testing.TB, dirs ...string) {
	b.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				b.Fatal(err)
			}
			var text strings.Builder
			for line := range strings.Lines(string(data)) {
				if c, ok := strings.CutPrefix(line, "// "); ok {
					text.WriteString(strings.TrimSpace(c) + " ")
				}
			}
			for _, s := range strings.SplitAfter(text.String(), ". ") {
				if n := len(s); n > 40 && n < 200 {
					m.sentences = append(m.sentences, strings.TrimSpace(s))
				}
			}
		}
	}
	if len(m.sentences) == 0 {
		b.Fatalf("no sentence in %v", dirs)
	}
}

// prose is the next n sentences.
func (m *proseModel) prose(n int) string {
	var all []string
	for range n {
		all = append(all, m.sentences[int(m.next.Add(7))%len(m.sentences)])
	}
	return strings.Join(all, " ")
}

func (m *proseModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway has ended
	}
	tail := body[max(0, bytes.LastIndex(body, []byte("(step "))):]
	step, _ := strconv.Atoi(string(tail[len("(step "):max(len("(step "), bytes.IndexByte(tail, ')'))]))
	type call struct{ name, args string }
	delta, reason := `{"role":"assistant","content":`+quote(m.prose(4))+`}`, `"stop"`
	calls := map[int][]call{
		0: {{"read_file", `{"path":"notes.md"}`}}, 1: {{"write_file", `{"path":"notes.md","content":` + quote(m.prose(4)) + `}`}},
		2: {{"read_file", `{"path":"notes.md"}`}, {"list_files", `{}`}},
	}[step]
	if len(calls) > 0 && !bytes.Contains(tail, []byte(`"role":"tool"`)) {
		delta, reason = `{"role":"assistant","content":`+quote(m.prose(1))+`,"tool_calls":[`, `"tool_calls"`
		for i, c := range calls {
			if i > 0 {
				delta += ","
			}
			delta += fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":%s,"arguments":%s}}`, i, i, quote(c.name), quote(c.args))
		}
		delta += "]}"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var out bytes.Buffer
	fmt.Fprintf(&out, benchFrame, delta, "null")
	fmt.Fprintf(&out, benchFrame, `{}`, reason)
	out.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(out.Bytes()) // a gateway that has gone reads no more
}

func quote(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(q)
}
