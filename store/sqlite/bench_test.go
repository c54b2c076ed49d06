package sqlite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// benchStore is synced, as in production.
func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "gateway.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if st, err := os.Stat(s.path + "-wal"); err == nil {
			b.ReportMetric(float64(st.Size())/(1<<20), "wal-MiB")
		}
		s.Close()
	})
	return s
}

func chat(n int64) session.Key {
	return session.Key{Platform: "telegram", Chat: session.ChatID(fmt.Sprint(100000 + n))}
}

func inputOf(n int64) []byte {
	data, _ := json.Marshal(session.Input{From: session.Person{ID: "42"}, Parts: []session.InputPart{
		{ID: session.MessageID(fmt.Sprint(n)), Text: "please use the March data for the report, not the one of February"},
	}})
	return data
}

func acceptOf(key session.Key, n int64) session.Accept {
	return session.Accept{
		Key: key, Dedupe: fmt.Sprintf("m:%s:%d", key.Chat, n), Want: steer.Queue, Author: "42",
		Msg: session.MessageID(fmt.Sprint(n)), Data: inputOf(n), Title: "report", Fate: session.FateQueued,
	}
}

// plainTurn is an answered message without tools: four writes, two of them
// synced beside the accept, and the send's end.
func plainTurn(b *testing.B, s *Store, key session.Key, n int64) {
	ctx := b.Context()
	a, err := s.Accept(ctx, acceptOf(key, n))
	if err != nil || a.Outcome != session.AcceptOK {
		b.Fatal(a.Outcome, err)
	}
	e := a.Lane.Slot[0]
	g, err := s.Begin(ctx, session.Begin{
		Op: session.OpID(fmt.Sprint("b", n)), Key: key, Nonce: "replica:1", TTL: 5 * time.Second,
		Gen: a.Lane.Gen, Seq: a.Lane.Seq, Owner: "42", Phase: steer.PhasePreparing,
		Take: []session.Take{{Ticket: e.Ticket, Version: e.Version}}, Rows: []session.Row{{Type: session.RowUser, Data: e.Data}},
		Fates: []session.FateSet{{Ticket: e.Ticket, State: session.FateRunning}},
	})
	if err != nil {
		b.Fatal(err)
	}
	part := session.PartNew{ID: fmt.Sprintf("t%d.0", g.Lane.Turn), Kind: session.PartFinal, Turn: g.Lane.Turn, Data: make([]byte, 400)}
	c, err := s.Commit(ctx, g.Lease, session.Commit{
		Op: session.OpID(fmt.Sprint("c", n)), Seq: g.Lane.Seq, Rows: []session.Row{{Type: session.RowAssistant, Data: make([]byte, 400)}},
		Outs: []session.PartNew{part}, Fates: []session.FateSet{{Ticket: e.Ticket, State: session.FateAnswered}}, TakeOut: true, End: true,
	})
	if err != nil || c.Out == nil {
		b.Fatal(c.Out, err)
	}
	if err := s.OutDone(ctx, key, "replica:1", session.PartDone{ID: part.ID, State: session.PartSent, Msg: "7"}); err != nil {
		b.Fatal(err)
	}
}

// rawCommit measures the floor: one durable commit of one small row in the
// same database.
func rawCommit(b *testing.B, s *Store) (took, cpu time.Duration) {
	const n = 200
	start, cpuStart := time.Now(), cpuTime()
	for range n {
		if err := s.do(b.Context(), synced, func(t *tx) error {
			_, err := t.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('raw', ?)`, start.String())
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / n, (cpuTime() - cpuStart) / n
}

// pagesOf is how many pages the store has written.
func pagesOf(t testing.TB, s *Store) (n int) {
	if err := s.do(t.Context(), unsynced, func(*tx) error {
		n = s.pages
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// lanes runs f on 1 lane, or on 50 at once.
func lanes(b *testing.B, f func(b *testing.B, s *Store, key session.Key, n int64)) {
	b.Run("serial", func(b *testing.B) {
		s := benchStore(b)
		raw, rawCPU := rawCommit(b, s)
		cpu := cpuTime()
		pages := pagesOf(b, s)
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			f(b, s, chat(int64(i%1000)), int64(i))
		}
		b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		b.ReportMetric(float64(pagesOf(b, s)-pages)/float64(b.N), "pages/op")
		b.ReportMetric(float64(raw), "raw-commit-ns")
		b.ReportMetric(float64(rawCPU), "raw-commit-cpu-ns")
	})
	b.Run("50lanes", func(b *testing.B) {
		s := benchStore(b)
		raw, rawCPU := rawCommit(b, s)
		cpu := cpuTime()
		var lane, n atomic.Int64
		b.SetParallelism(25)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			key := chat(lane.Add(1))
			for pb.Next() {
				f(b, s, key, n.Add(1))
			}
		})
		b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		b.ReportMetric(float64(raw), "raw-commit-ns")
		b.ReportMetric(float64(rawCPU), "raw-commit-cpu-ns")
	})
}

func BenchmarkPlainTurn(b *testing.B) { lanes(b, plainTurn) }

func BenchmarkAccept(b *testing.B) {
	lanes(b, func(b *testing.B, s *Store, key session.Key, n int64) {
		a, err := s.Accept(b.Context(), acceptOf(key, n))
		if err != nil {
			b.Fatal(err)
		}
		if len(a.Lane.Slot) >= 8 { // keep the slot as small as people do
			b.StopTimer()
			for _, e := range a.Lane.Slot {
				if _, err := s.Amend(b.Context(), session.Amend{Key: key, Kind: session.AmendDrop, Ticket: e.Ticket}); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
		}
	})
}

// A commit must cost the same whatever stands before it (I12): in time and in
// bytes written.
func BenchmarkAppendAt10(b *testing.B)  { appendAt(b, 10) }
func BenchmarkAppendAt400(b *testing.B) { appendAt(b, 400) }

func appendAt(b *testing.B, rows int) {
	s := benchStore(b)
	if _, err := s.Accept(b.Context(), acceptOf(chat(1), 1)); err != nil {
		b.Fatal(err)
	}
	g, err := s.Begin(b.Context(), session.Begin{Op: "b", Key: chat(1), Nonce: "n", TTL: time.Hour, Gen: 1, Take: []session.Take{{Ticket: 1, Version: 1}}})
	if err != nil {
		b.Fatal(err)
	}
	seq := int64(0)
	add := func(n int) {
		c, err := s.Commit(b.Context(), g.Lease, session.Commit{
			Op: session.OpID(fmt.Sprint(seq)), Seq: seq, Rows: make([]session.Row, n), Phase: steer.PhaseTools,
		})
		if err != nil {
			b.Fatal(err)
		}
		seq = c.Seq
	}
	add(rows)
	before := pagesOf(b, s)
	b.ResetTimer()
	for range b.N {
		add(1)
	}
	b.ReportMetric(float64(pagesOf(b, s)-before)/float64(b.N), "pages/op")
}
