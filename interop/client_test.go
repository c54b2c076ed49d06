//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a client may take for one thing.
const patience = 15 * time.Second

// A value is a JSON object as a client told it.
type value map[string]any

// str, num and list give fields; what is missing is their zero.
func (v value) str(name string) string { s, _ := v[name].(string); return s }

func (v value) num(name string) int64 {
	n, _ := v[name].(json.Number)
	i, _ := n.Int64()
	return i
}

func (v value) at(name string) value { m, _ := v[name].(map[string]any); return m }

func (v value) list(name string) []value {
	var out []value
	all, _ := v[name].([]any)
	for _, x := range all {
		m, _ := x.(map[string]any)
		out = append(out, m)
	}
	return out
}

func (v value) has(name string) bool { return v[name] != nil }

func (v value) String() string {
	b, _ := json.Marshal(map[string]any(v))
	return string(b)
}

// A client is one Node process.
type client struct {
	t   *testing.T
	ctx context.Context
	in  io.WriteCloser

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every line, closed for good at the end
	ended   bool
	next    int
	answers map[int]answer
	events  []event
	stderr  bytes.Buffer
}

type answer struct {
	ID    int            `json:"id"`
	Value value          `json:"value"`
	Error map[string]any `json:"error"`
}

type event struct {
	Name  string `json:"event"`
	Value value  `json:"value"`
}

// start runs one of the programs here.
func start(t *testing.T, program string) *client {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("node is missing: install the packages nodejs and npm, then run npm ci in interop")
	}
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		t.Fatal("the clients are missing: run npm ci in interop")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Second) // it ends after the test's own
	c := &client{t: t, ctx: ctx, changed: make(chan struct{}), answers: map[int]answer{}}
	cmd := exec.CommandContext(ctx, "node", "--no-warnings", program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &c.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.in = in
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read(out)
	}()
	t.Cleanup(func() {
		_ = in.Close() // it ends by that
		<-done
		err := cmd.Wait()
		cancel()
		if err != nil || t.Failed() {
			t.Logf("%s ended with %v; it wrote:\n%s", program, err, c.stderr.String())
		}
		for _, e := range c.events {
			if e.Name == "unhandled" {
				t.Errorf("%s met what it did not expect: %v", program, e.Value)
			}
		}
	})
	c.event("up", nil)
	return c
}

// decode keeps numbers as they were written: ids are large.
func decode(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	return d.Decode(into)
}

func (c *client) read(out io.Reader) {
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		c.mu.Lock()
		var a answer
		var e event
		switch {
		case decode(sc.Bytes(), &e) == nil && e.Name != "":
			c.events = append(c.events, e)
		case decode(sc.Bytes(), &a) == nil && a.ID != 0:
			c.answers[a.ID] = a
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	close(c.changed)
}

// await waits until get, under the lock, gives true.
func (c *client) await(what string, get func() bool) {
	c.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		c.mu.Lock()
		ok, ended, changed := get(), c.ended, c.changed
		var seen []string
		for _, e := range c.events {
			if e.Name != "raw" {
				seen = append(seen, e.Name+" "+e.Value.String())
			}
		}
		c.mu.Unlock()
		if ok {
			return
		}
		if ended {
			c.t.Fatalf("the client ended; it was to tell: %s", what)
		}
		select {
		case <-changed:
		case <-limit.C:
			c.t.Fatalf("the client does not tell: %s; events not looked at:\n%s", what, strings.Join(seen, "\n"))
		case <-c.ctx.Done():
			c.t.Fatalf("out of time: %s", what)
		}
	}
}

// begin asks for something; the answer comes when the given function is called.
func (c *client) begin(do string, with any) func() (value, value) {
	c.t.Helper()
	c.mu.Lock()
	c.next++
	id := c.next
	c.mu.Unlock()
	line, err := json.Marshal(map[string]any{"id": id, "do": do, "with": with})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		c.t.Fatalf("the client is gone: %v", err)
	}
	return func() (value, value) {
		c.t.Helper()
		var a answer
		c.await("the answer to "+do, func() bool {
			var ok bool
			a, ok = c.answers[id]
			return ok
		})
		return a.Value, a.Error
	}
}

// do asks for something that must work.
func (c *client) do(do string, with any) value {
	c.t.Helper()
	v, no := c.begin(do, with)()
	if no != nil {
		c.t.Fatalf("%s %v: %v", do, with, no)
	}
	return v
}

// refused asks for something that must not work and gives the client's error.
func (c *client) refused(do string, with any) value {
	c.t.Helper()
	v, no := c.begin(do, with)()
	if no == nil {
		c.t.Fatalf("%s %v: done (%v); want it refused", do, with, v)
	}
	return no
}

// event takes the first event of a name that is as wanted; nil = any. Those
// before it stay.
func (c *client) event(name string, want func(value) bool) value {
	c.t.Helper()
	var v value
	c.await("the event "+name, func() bool {
		i := slices.IndexFunc(c.events, func(e event) bool { return e.Name == name && (want == nil || want(e.Value)) })
		if i < 0 {
			return false
		}
		v = c.events[i].Value
		c.events = slices.Delete(c.events, i, i+1)
		return true
	})
	return v
}

// waiting gives the events of a name that nobody took.
func (c *client) waiting(name string) []value {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []value
	for _, e := range c.events {
		if e.Name == name {
			out = append(out, e.Value)
		}
	}
	return out
}

// with is the usual condition for events: fields that are as given.
func with(fields value) func(value) bool {
	return func(v value) bool {
		for k, want := range fields {
			if fmt.Sprint(v[k]) != fmt.Sprint(want) {
				return false
			}
		}
		return true
	}
}

// same reports what differs, each thing by name.
func same(t *testing.T, got value, want value) {
	t.Helper()
	for k, w := range want {
		if fmt.Sprint(got[k]) != fmt.Sprint(w) {
			t.Errorf("%s is %v; want %v; all of it: %v", k, got[k], w, got)
		}
	}
}
