//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkIdleSession is what an idle session of 21 rows keeps in Redis: its
// head, six turns, four of them with a tool call. Promised: 5 kB, of all keys of
// a lane as MEMORY USAGE has them. By the kind of key stands what goes where
// (lua/prelude.lua names them).
func BenchmarkIdleSession(b *testing.B) {
	const many, turns = 992, 6
	m := &proseModel{}
	m.load(b, "net/http", "database/sql", "text/template")
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
	report(b, float64(m.rows.Load())/float64(s.sessions), "B-prose/session")
}

// A proseModel talks in sentences of what people have written about programs,
// and calls the file tools as its question's step asks.
type proseModel struct {
	sentences []string
	next      atomic.Int64
	rows      atomic.Int64 // bytes of prose said by either side
}

// load takes the comments of packages of the library.
func (m *proseModel) load(b *testing.B, pkgs ...string) {
	b.Helper()
	for _, pkg := range pkgs {
		files, err := filepath.Glob(filepath.Join(runtime.GOROOT(), "src", pkg, "*.go"))
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
	if len(m.sentences) < 1000 {
		b.Fatalf("the library has only %d sentences", len(m.sentences))
	}
}

// prose is the next n sentences.
func (m *proseModel) prose(n int) string {
	var all []string
	for range n {
		all = append(all, m.sentences[int(m.next.Add(7))%len(m.sentences)])
	}
	text := strings.Join(all, " ")
	m.rows.Add(int64(len(text)))
	return text
}

func (m *proseModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway has ended
	}
	tail := body[max(0, bytes.LastIndex(body, []byte("(step "))):]
	step, _ := strconv.Atoi(string(tail[len("(step "):max(len("(step "), bytes.IndexByte(tail, ')'))]))
	calls := map[int]string{
		0: `{"path":"notes.md"}`, 1: `{"path":"notes.md","content":` + quote(m.prose(4)) + `}`, 2: `{"path":"notes.md"}`, 4: `{}`,
	}
	names := map[int]string{0: "read_file", 1: "write_file", 2: "read_file", 4: "list_files"}
	delta, reason := `{"role":"assistant","content":`+quote(m.prose(4))+`}`, `"stop"`
	if args := calls[step]; args != "" && !bytes.Contains(tail, []byte(`"role":"tool"`)) {
		delta = `{"role":"assistant","content":` + quote(m.prose(1)) + `,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"` +
			names[step] + `","arguments":` + quote(args) + `}}]}`
		reason = `"tool_calls"`
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
