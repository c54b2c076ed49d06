package store_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock {
	return &clock{t: time.Date(2026, time.March, 1, 9, 30, 0, int(250*time.Millisecond), time.UTC)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// binary is what no encoding of text survives.
const binary = "\x00\xff\xfe\n: {p00} \r\n\x1b[0m\xc3("

// A filler puts lanes into a store, one for each state.
type filler struct {
	t   testing.TB
	st  session.Store
	key session.Key
	n   int
}

func (f *filler) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *filler) id(kind string) string {
	f.n++
	return fmt.Sprintf("%s:%d", kind, f.n)
}

func (f *filler) accept(data string, change ...func(*session.Accept)) session.Lane {
	f.t.Helper()
	id := f.id("m")
	r := session.Accept{
		Key: f.key, Dedupe: id, Want: steer.Queue, Author: "ann", Msg: session.MessageID(id), Data: []byte(data), Title: "a title", Fate: session.FateQueued,
	}
	for _, c := range change {
		c(&r)
	}
	a, err := f.st.Accept(f.t.Context(), r)
	f.must(err)
	return a.Lane
}

// begin opens a turn on the lowest entry.
func (f *filler) begin() session.Begun {
	f.t.Helper()
	l := f.accept(`{"text":"task"}`)
	e := l.Slot[0]
	b, err := f.st.Begin(f.t.Context(), session.Begin{
		Op: session.OpID(f.id("op")), Key: f.key, Nonce: "gone", TTL: 5 * time.Second, Gen: l.Gen, Seq: l.Seq, Owner: e.Author, Phase: steer.PhaseModel,
		Take: []session.Take{{Ticket: e.Ticket, Version: e.Version}}, Rows: []session.Row{{Type: session.RowUser, Data: []byte(`{}`)}},
		Fates: []session.FateSet{{Ticket: e.Ticket, State: session.FateRunning}},
	})
	f.must(err)
	return b
}

func (f *filler) commit(b session.Begun, change func(*session.Commit)) session.Committed {
	f.t.Helper()
	l, err := f.st.Load(f.t.Context(), f.key)
	f.must(err)
	r := session.Commit{Op: session.OpID(f.id("op")), Seq: l.Seq, Phase: steer.PhaseTools}
	change(&r)
	c, err := f.st.Commit(f.t.Context(), b.Lease, r)
	f.must(err)
	return c
}

func (f *filler) rows(types string, data string) (rows []session.Row) {
	for _, t := range types {
		rows = append(rows, session.Row{Type: session.RowType(t), Data: []byte(data)})
	}
	return rows
}

func (f *filler) parts(n int, data string) (parts []session.PartNew) {
	for range n {
		parts = append(parts, session.PartNew{ID: f.id("part"), Kind: session.PartFinal, Turn: 1, Data: []byte(data)})
	}
	return parts
}

// states are the lanes, by name; each begins on an empty one.
var states = map[string]func(f *filler){
	"idle": func(f *filler) {
		b := f.begin()
		f.commit(b, func(c *session.Commit) { c.Rows, c.End = f.rows("a", `{"text":"done"}`), true })
	},
	"waiting": func(f *filler) { f.accept(binary); f.accept("second") },
	"held": func(f *filler) {
		f.accept("one")
		_, err := f.st.Stop(f.t.Context(), session.Stop{Key: f.key, Dedupe: f.id("stop")})
		f.must(err)
		f.accept("after")
	},
	"open entry": func(f *filler) {
		f.accept("part one", func(a *session.Accept) { a.Group, a.Open = "album", time.Minute })
		f.accept("part two", func(a *session.Accept) { a.Group, a.Open, a.Append = "album", time.Minute, true })
	},
	"empty blobs": func(f *filler) {
		f.accept("")
		_, err := f.st.Post(f.t.Context(), session.Post{Key: f.key, Dedupe: f.id("p"), Prefs: []byte{}, Outs: f.parts(1, "")})
		f.must(err)
		b := f.begin()
		f.commit(b, func(c *session.Commit) { c.Rows = f.rows("at", "") })
	},
	"mid-tools": func(f *filler) {
		b := f.begin()
		f.commit(b, func(c *session.Commit) { c.Rows = f.rows("a", binary) })
		f.accept("note", func(a *session.Accept) { a.Want, a.Turn, a.Fate = steer.Steer, 1, session.FatePending })
		f.commit(b, func(c *session.Commit) {
			c.Rows, c.Drain, c.Step = f.rows("t", binary), true, 1
			c.Outs, c.TakeOut = f.parts(2, binary), true
		})
		f.accept("next note", func(a *session.Accept) { a.Want, a.Turn, a.Fate = steer.Steer, 1, session.FatePending })
	},
	"parked": func(f *filler) {
		b := f.begin()
		f.commit(b, func(c *session.Commit) { c.Rows = f.rows("at", `{}`) })
		f.must(f.st.Release(f.t.Context(), b.Lease))
	},
	"jobs": func(f *filler) {
		b := f.begin()
		f.commit(b, func(c *session.Commit) {
			c.Rows = f.rows("at", `{}`)
			c.Jobs = []session.Job{
				{ID: "j1", Turn: 1, Owner: "gone", Name: "make", State: session.JobRunning, At: 1234, Data: json.RawMessage(`{"a":1}`)},
				{ID: "j2", Turn: 1, Owner: "gone", Name: "ls", State: session.JobEnded, Body: "body", At: 99},
			}
		})
	},
	"unknown part": func(f *filler) {
		b := f.begin()
		f.commit(b, func(c *session.Commit) { c.Rows, c.End, c.Outs = f.rows("a", `{}`), true, f.parts(3, "x") })
		p, _, _, err := f.st.OutTake(f.t.Context(), f.key, "out", time.Minute)
		f.must(err)
		f.must(f.st.OutDone(f.t.Context(), f.key, "out", session.PartDone{ID: p.ID, State: session.PartUnknown, Wait: time.Hour}))
	},
	"part to be tried again": func(f *filler) {
		_, err := f.st.Post(f.t.Context(), session.Post{Key: f.key, Dedupe: f.id("p"), Outs: f.parts(2, "x")})
		f.must(err)
		p, _, _, err := f.st.OutTake(f.t.Context(), f.key, "out", time.Minute)
		f.must(err)
		f.must(f.st.OutDone(f.t.Context(), f.key, "out", session.PartDone{ID: p.ID, State: session.PartPlanned, Wait: time.Hour}))
	},
	"generations": func(f *filler) {
		for range 3 {
			b := f.begin()
			f.commit(b, func(c *session.Commit) { c.Rows, c.End = f.rows("a", `{"text":"done"}`), true })
			_, err := f.st.Reset(f.t.Context(), session.Reset{Key: f.key, Dedupe: f.id("new")})
			f.must(err)
		}
		f.begin()
	},
	"pages": func(f *filler) { // more than one of rows, of parts, of fates
		b := f.begin()
		for range 3 {
			f.commit(b, func(c *session.Commit) { c.Rows, c.Outs = f.rows(strings.Repeat("t", 50), "x"), f.parts(50, "y") })
		}
	},
	"preferences": func(f *filler) {
		_, err := f.st.Post(f.t.Context(), session.Post{Key: f.key, Dedupe: f.id("p"), Prefs: []byte(`{"mode":1}`), Title: "t:{i}\ttle"})
		f.must(err)
	},
}

// fill puts one lane of each state into a store, and documents; then all leases
// end.
func fill(t testing.TB, st session.Store, clk *clock) {
	t.Helper()
	for i, name := range slices.Sorted(maps.Keys(states)) {
		f := &filler{t: t, st: st, key: session.Key{Platform: "test", Chat: session.ChatID(name), Thread: "a:b", User: "{u}", Line: i % 2}}
		states[name](f)
	}
	put := func(name string, version int64, data []byte) {
		if err := st.PutDoc(t.Context(), name, version, data); err != nil {
			t.Fatal(err)
		}
	}
	put("access:telegram", 0, []byte(`{"granted":["1"]}`))
	put("observed:x", 0, []byte(binary))
	put("observed:x", 1, nil) // emptied: its version must go on
	clk.step(10 * time.Second)
}
