package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"coxswain/session"
	"coxswain/steer"
)

// What an operation writes does not grow with the session (I12): the same
// pages behind 10 rows, fates and marks as behind 3,000.
func TestCostDoesNotGrow(t *testing.T) {
	clk := newClock()
	s := open(t, clk.now)
	n, seq := int64(0), int64(0)
	var lease session.Lease
	grow := func(rows int) {
		for range rows {
			n++
			accept(t, s, chat(1), n)
			if _, err := s.Amend(t.Context(), session.Amend{Key: chat(1), Kind: session.AmendDrop, Ticket: n}); err != nil {
				t.Fatal(err)
			}
		}
		l := accept(t, s, chat(1), n+1).Lane
		n++
		b, err := s.Begin(t.Context(), beginOf(l, session.OpID(fmt.Sprint("b", n))))
		if err != nil {
			t.Fatal(err)
		}
		lease = b.Lease
		c, err := s.Commit(t.Context(), lease, session.Commit{
			Op: session.OpID(fmt.Sprint("g", n)), Seq: b.Lane.Seq, Rows: make([]session.Row, rows), Phase: steer.PhaseTools,
		})
		if err != nil {
			t.Fatal(err)
		}
		seq = c.Seq
	}
	// cost is the fewest pages any of eight goes takes: a leaf splits now and then.
	cost := func(f func()) (least int) {
		least = 1 << 30
		for range 8 {
			before := pagesOf(t, s)
			f()
			least = min(least, pagesOf(t, s)-before)
		}
		return least
	}
	commit := func() {
		c, err := s.Commit(t.Context(), lease, session.Commit{
			Op: session.OpID(fmt.Sprint("c", seq)), Seq: seq, Rows: []session.Row{{Type: session.RowTool, Data: []byte("x")}},
			Drain: true, Phase: steer.PhaseTools,
		})
		if err != nil {
			t.Fatal(err)
		}
		seq = c.Seq
	}
	end := func() {
		if _, err := s.Commit(t.Context(), lease, session.Commit{Op: session.OpID(fmt.Sprint("e", seq)), Seq: seq, End: true}); err != nil {
			t.Fatal(err)
		}
	}
	take := func() {
		n++
		accept(t, s, chat(1), n)
		if _, err := s.Amend(t.Context(), session.Amend{Key: chat(1), Kind: session.AmendDrop, Ticket: n}); err != nil {
			t.Fatal(err)
		}
	}
	var costs [2][2]int
	for i, rows := range []int{10, 3000} {
		grow(rows)
		costs[i] = [2]int{cost(commit), cost(take)}
		end()
		clk.step(time.Second)
	}
	for i, what := range []string{"commit with a drain", "accept and drop"} {
		if short, long := costs[0][i], costs[1][i]; long > short+2 || short == 0 {
			t.Errorf("%s: %d pages in a short session, %d in a long one", what, short, long)
		}
	}
}

// Reading what waits does not read what was written in it.
func TestNarrowReadsNoData(t *testing.T) {
	s := open(t, nil)
	r := acceptOf(chat(1), 1)
	r.Data = make([]byte, session.EntryMaxBytes)
	if _, err := s.Accept(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	l, err := s.Load(t.Context(), chat(1))
	if err != nil || len(l.Slot) != 1 || len(l.Slot[0].Data) != session.EntryMaxBytes {
		t.Fatalf("got %d entries, %v", len(l.Slot), err)
	}
	pages := func(d depth) (n int) {
		if err := s.do(t.Context(), unsynced, func(x *tx) error {
			for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
				if _, _, err := x.raw.(sqlite.DBStatus).Status(op, true); err != nil {
					return err
				}
			}
			if _, err := x.open(chat(1), d); err != nil {
				return err
			}
			for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
				v, _, err := x.raw.(sqlite.DBStatus).Status(op, true)
				if err != nil {
					return err
				}
				n += v
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if with, without := pages(full), pages(narrow); without > with-session.EntryMaxBytes/4096 {
		t.Errorf("%d pages read without the data, %d with it", without, with)
	}
}

// The queries of the sweeps use their indexes, so an idle session costs them
// nothing.
func TestSweepsUseTheirIndex(t *testing.T) {
	s := open(t, nil)
	for q, want := range map[string]string{dueKeys: "lane_due", outDueKeys: "lane_out"} {
		c, err := dial(t.Context(), s.path, true)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		v, err := c.row(`EXPLAIN QUERY PLAN `+q, 4, int64(1), int64(1))
		if err != nil {
			t.Fatal(err)
		}
		if got := v.text(3); !strings.Contains(got, "INDEX "+want) {
			t.Errorf("%s: got %q; want index %s", q, got, want)
		}
	}
}
