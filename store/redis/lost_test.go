package redis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
	"coxswain/store/storetest"
)

// A testClock is one time for a store and the model beside it.
type testClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *testClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// TestLostReplies drives the store and the executable specification with one
// stream of operations on one clock, old ones sent again among them, while
// replies get lost on the way. The client sends again, and every answer and
// all that can be read must be as if nothing had happened (F8, F9, F26, I2).
func TestLostReplies(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "appendfsync no")
	p := newProxy(t, srv.Addr)
	rapid.Check(t, func(rt *rapid.T) { sideBySide(rt, t, p) })
}

func sideBySide(rt *rapid.T, t *testing.T, p *proxy) {
	clk := &testClock{t: time.Date(2026, time.March, 1, 9, 30, 0, 250e6, time.UTC)}
	s, err := Open(t.Context(), p.url(), Options{
		Prefix: redistest.Prefix(t), Partitions: 2, Relaxed: true, TestOnlyClock: clk.now,
	})
	if err != nil {
		rt.Fatal(err)
	}
	defer s.Close()
	w := &twins{rt: rt, t: t, redis: s, model: storetest.NewModel(clk.now), clk: clk, proxy: p, leases: map[string]session.Lease{}}
	for i := range rapid.IntRange(5, 60).Draw(rt, "steps") {
		w.step()
		if i%8 == 7 { // most answers hold the lane anyway
			w.compare()
		}
	}
	w.compare()
}

// twins are the two stores and what a caller would remember of them.
type twins struct {
	rt    *rapid.T
	t     *testing.T
	redis *Store
	model *storetest.Model
	clk   *testClock
	proxy *proxy

	n      int // makes ids unique
	leases map[string]session.Lease
	past   []func() // operations as sent, to be sent again
}

var twinKeys = []session.Key{
	{Platform: "test", Chat: "1"}, {Platform: "test", Chat: "2", Thread: "t"}, {Platform: "test", Chat: "{x}:y"},
}

func draw[T any](w *twins, what string, of ...T) T { return rapid.SampledFrom(of).Draw(w.rt, what) }
func (w *twins) num(what string, lo, hi int) int   { return rapid.IntRange(lo, hi).Draw(w.rt, what) }
func (w *twins) yes(what string) bool              { return rapid.Bool().Draw(w.rt, what) }
func (w *twins) id(kind string) string             { w.n++; return fmt.Sprintf("%s%d", kind, w.n) }

// do runs an operation on both and compares the answers.
func (w *twins) do(name string, op func(s session.Store) (any, error)) {
	run := func() {
		want, wantErr := op(w.model)
		if w.yes("lose") {
			w.proxy.loseReplies(1)
		}
		got, gotErr := op(w.redis)
		if class(gotErr) != class(wantErr) {
			w.rt.Fatalf("%s: got error %v; want %v", name, gotErr, wantErr)
		}
		w.same(name, got, want)
	}
	run()
	w.past = append(w.past, run)
}

func class(err error) string {
	for _, e := range []error{session.ErrFenced, session.ErrHeld, session.ErrStale, session.ErrGone, session.ErrFull} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if err != nil {
		return "other: " + err.Error()
	}
	return ""
}

func (w *twins) same(what string, got, want any) {
	g, _ := json.Marshal(got)
	m, _ := json.Marshal(want)
	if !bytes.Equal(g, m) {
		g, _ = json.MarshalIndent(got, "", " ")
		m, _ = json.MarshalIndent(want, "", " ")
		w.rt.Fatalf("%s: got %s\nwant %s", what, g, m)
	}
}

// compare reads everything there is to read in both.
func (w *twins) compare() {
	look := func(s session.Store) (all []any) {
		note := func(v any, err error) { all = append(all, v, class(err)) }
		for _, k := range twinKeys {
			l, err := s.Load(w.t.Context(), k)
			note(l, err)
			for gen := int64(1); gen <= l.Gen; gen++ {
				r, err := s.Rows(w.t.Context(), k, gen, 0, 0)
				note(r, err)
			}
			f, err := s.Fates(w.t.Context(), k, 0)
			note(f, err)
		}
		due, err := s.Due(w.t.Context(), 0)
		note(due, err)
		out, err := s.OutDue(w.t.Context(), 0)
		note(sorted(out), err)
		lanes, err := s.Sessions(w.t.Context(), "", 0)
		note(lanes, err)
		st, err := s.Stats(w.t.Context())
		st.Duplicates, st.Replayed, st.Fenced = 0, 0, 0 // a call sent again counts itself as seen
		note(st, err)
		return all
	}
	w.same("all that can be read", look(w.redis), look(w.model))
}

func sorted(keys []session.Key) map[string]bool {
	m := map[string]bool{}
	for _, k := range keys {
		m[k.String()] = true
	}
	return m
}

// step does one random thing.
func (w *twins) step() {
	key := draw(w, "key", twinKeys...)
	l, _ := w.model.Load(w.t.Context(), key)
	actions := []func(session.Key, session.Lane){
		w.accept, w.accept, w.accept, w.begin, w.begin, w.commit, w.commit, w.commit, w.claim, w.renew,
		w.amend, w.amend, w.stop, w.post, w.outTake, w.outDone, w.settle, w.rare, w.again,
	}
	actions[w.num("action", 0, len(actions)-1)](key, l)
}

func (w *twins) again(session.Key, session.Lane) {
	if len(w.past) > 0 {
		w.past[len(w.past)-1-w.num("back", 0, min(3, len(w.past)-1))]()
	}
}

func (w *twins) rare(key session.Key, l session.Lane) {
	ctx := w.t.Context()
	switch w.num("rare", 0, 6) {
	case 0:
		r := session.Reset{Key: key, Dedupe: w.id("r"), Outs: w.outs()}
		w.do("reset", func(s session.Store) (any, error) { return s.Reset(ctx, r) })
	case 1:
		w.do("delete", func(s session.Store) (any, error) { return nil, s.Delete(ctx, key) })
	case 2:
		le := w.lease(key, l)
		w.do("release", func(s session.Store) (any, error) { return nil, s.Release(ctx, le) })
	case 3:
		name, v, data := draw(w, "doc", "a", "b"), int64(w.num("version", 0, 2)), []byte(w.id("doc"))
		w.do("doc", func(s session.Store) (any, error) {
			err := s.PutDoc(ctx, name, v, data)
			d, now, err2 := s.Doc(ctx, name)
			return []any{string(d), now}, errors.Join(err, err2)
		})
	case 4:
		w.clk.step(time.Duration(w.num("ms", 1, 8000)) * time.Millisecond)
	case 5:
		w.clk.step(time.Duration(w.num("hours", 1, 60)) * time.Hour)
	case 6:
		after, limit := draw(w, "after", "", "test:1", "test:2:t"), w.num("limit", 0, 2)
		w.do("sessions", func(s session.Store) (any, error) { return s.Sessions(ctx, after, limit) })
		w.do("due", func(s session.Store) (any, error) { return s.Due(ctx, limit) })
		gen, from := int64(w.num("gen", 0, 2)), int64(w.num("from", -1, 5))
		w.do("rows", func(s session.Store) (any, error) { return s.Rows(ctx, key, gen, from, limit) })
		w.do("fates", func(s session.Store) (any, error) { return s.Fates(ctx, key, limit) })
	}
}

func (w *twins) want() steer.Mode { return draw(w, "want", steer.Queue, steer.Interrupt, steer.Steer) }

func (w *twins) fate() session.FateState {
	return draw(w, "fate", "", session.FateQueued, session.FatePending, session.FateRunning, session.FateSteered, session.FateAnswered)
}
