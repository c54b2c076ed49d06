package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"coxswain/session"
)

// holdWriter keeps the writer inside a request until release is called. It
// must run in a bubble: it returns when the writer is held.
func holdWriter(t *testing.T, s *Store) (release func()) {
	t.Helper()
	gate, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.do(t.Context(), unsynced, func(*tx) error {
			<-gate
			return nil
		})
	}()
	synctest.Wait()
	return func() {
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// bubbleStore is a synced store in a bubble, closed by its end.
func bubbleStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "gateway.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What has queued while a batch ran is the next batch: one commit for all, and
// one that fails takes no other with it.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleStore(t)
		defer closeStore(t, s)
		commits := 0
		s.w.raw.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 { commits++; return 0 })
		release := holdWriter(t, s)
		const n = 20
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range int64(n) {
			wg.Go(func() {
				if i%5 == 0 {
					_, errs[i] = s.Renew(t.Context(), session.Lease{Key: chat(i), Epoch: 1, Nonce: nonce})
					return
				}
				_, errs[i] = s.Accept(t.Context(), acceptOf(chat(i), i))
			})
		}
		synctest.Wait()
		commits = 0
		release()
		wg.Wait()
		if commits != 2 {
			t.Errorf("got %d commits; want that of the request that held the writer and one for all that had queued", commits)
		}
		for i, err := range errs {
			if want := error(nil); i%5 == 0 {
				want = session.ErrFenced
				if !errors.Is(err, want) {
					t.Errorf("request %d: got %v; want %v", i, err, want)
				}
			} else if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
		st, err := s.Stats(t.Context())
		if err != nil || st.Accepted != 16 || st.InSlot != 16 || st.Sessions != 16 || st.Fenced != 4 {
			t.Errorf("stats: got %+v, %v; want 16 accepted, 4 fenced", st, err)
		}
	})
}

// A request that wrote and then fails leaves nothing, in the tables and in the
// counters, though its batch is committed.
func TestFailedRequestIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleStore(t)
		defer closeStore(t, s)
		release := holdWriter(t, s)
		broken := errors.New("broken")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.do(t.Context(), synced, func(x *tx) error {
				if _, err := x.accept(acceptOf(chat(1), 1)); err != nil {
					t.Error(err)
				}
				return broken
			}); err != broken {
				t.Errorf("got %v; want its own error", err)
			}
		})
		wg.Go(func() { accept(t, s, chat(2), 2) })
		synctest.Wait()
		release()
		wg.Wait()
		l, err := s.Load(t.Context(), chat(1))
		if err != nil || l.Exists {
			t.Errorf("lane of the failed request: got %+v, %v; want none", l, err)
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Accepted != 1 || st.Sessions != 1 {
			t.Errorf("stats: got %+v, %v; want the neighbour alone", st, err)
		}
	})
}

// Only a batch that holds a durable request waits for the disk.
func TestSync(t *testing.T) {
	const normal, full = 1, 2
	level := func(t *testing.T, s *Store) (n int64) {
		rows, err := s.w.raw.Prepare(`PRAGMA synchronous`)
		if err != nil {
			t.Error(err)
			return 0
		}
		rows.Close()
		// A PRAGMA answers as of when it was parsed, so it is not kept.
		err = s.w.each(`PRAGMA synchronous`, 1, func(v values) error { n = v.int(0); return nil })
		if err != nil {
			t.Error(err)
		}
		s.w.stmts[`PRAGMA synchronous`].Close()
		delete(s.w.stmts, `PRAGMA synchronous`)
		return n
	}
	tests := []struct {
		name  string
		queue []durability
		want  int64
	}{
		{"durable", []durability{synced}, full},
		{"not synced", []durability{unsynced, unsynced}, normal},
		{"mixed", []durability{unsynced, synced, unsynced}, full},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bubbleStore(t)
				defer closeStore(t, s)
				release := holdWriter(t, s)
				var wg sync.WaitGroup
				for _, d := range tt.queue {
					wg.Go(func() {
						if err := s.do(t.Context(), d, func(*tx) error {
							if got := level(t, s); got != tt.want {
								t.Errorf("synchronous: got %d; want %d", got, tt.want)
							}
							return nil
						}); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				release()
				wg.Wait()
			})
		})
	}
}

// Which operations wait for the disk is part of the interface.
func TestWhichOperationsSync(t *testing.T) {
	clk := newClock()
	s := open(t, clk.now)
	b := begin(t, s, chat(1), 1)
	if _, err := s.Post(t.Context(), session.Post{Key: chat(1), Outs: []session.PartNew{partOf("p")}}); err != nil {
		t.Fatal(err)
	}
	ops := []struct {
		name string
		want durability
		do   func(ctx context.Context, s *Store) error
	}{
		{"OutTake", unsynced, func(ctx context.Context, s *Store) error {
			_, _, _, err := s.OutTake(ctx, chat(1), nonce, 0)
			return err
		}},
		{"OutDone", unsynced, func(ctx context.Context, s *Store) error {
			return s.OutDone(ctx, chat(1), nonce, session.PartDone{ID: "p", State: session.PartSent})
		}},
		{"Renew", unsynced, func(ctx context.Context, s *Store) error { _, err := s.Renew(ctx, b.Lease); return err }},
		{"Settle", unsynced, func(ctx context.Context, s *Store) error { return s.Settle(ctx, chat(1), nil) }},
		{"Claim", synced, func(ctx context.Context, s *Store) error {
			_, err := s.Claim(ctx, chat(1), nonce, time.Second)
			return err
		}},
		{"Commit", synced, func(ctx context.Context, s *Store) error {
			_, err := s.Commit(ctx, b.Lease, session.Commit{Op: "c", Seq: 1})
			return err
		}},
		{"Release", synced, func(ctx context.Context, s *Store) error { return s.Release(ctx, b.Lease) }},
		{"Accept", synced, func(ctx context.Context, s *Store) error { _, err := s.Accept(ctx, acceptOf(chat(1), 2)); return err }},
		{"Amend", synced, func(ctx context.Context, s *Store) error {
			_, err := s.Amend(ctx, session.Amend{Key: chat(1), Ticket: 2, Kind: session.AmendDrop})
			return err
		}},
		{"Stop", synced, func(ctx context.Context, s *Store) error {
			_, err := s.Stop(ctx, session.Stop{Key: chat(1)})
			return err
		}},
		{"Reset", synced, func(ctx context.Context, s *Store) error {
			_, err := s.Reset(ctx, session.Reset{Key: chat(1)})
			return err
		}},
		{"Post", synced, func(ctx context.Context, s *Store) error {
			_, err := s.Post(ctx, session.Post{Key: chat(1)})
			return err
		}},
		{"PutDoc", synced, func(ctx context.Context, s *Store) error { return s.PutDoc(ctx, "d", 0, nil) }},
		{"Delete", synced, func(ctx context.Context, s *Store) error { return s.Delete(ctx, chat(1)) }},
	}
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			// A store with a queue and no writer: the request is looked at, then run.
			front := &Store{queue: make(chan *request), stop: s.stop}
			done := make(chan error, 1)
			go func() { done <- op.do(t.Context(), front) }()
			r := <-front.queue
			if r.sync != op.want {
				t.Errorf("synced: got %v; want %v", r.sync, op.want)
			}
			s.queue <- r
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A context that ends first wins only while the writer has not taken the
// request; after that the result is told, whatever the context says.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleStore(t)
		defer closeStore(t, s)
		why := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		release := holdWriter(t, s)
		failed := make(chan error, 1)
		go func() {
			_, err := s.Accept(ctx, acceptOf(chat(1), 1))
			failed <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-failed; err != why {
			t.Errorf("cancelled in the queue: got %v; want %v", err, why)
		}
		release()
		if l, err := s.Load(t.Context(), chat(1)); err != nil || l.Exists {
			t.Errorf("lane: got %+v, %v; want nothing written", l, err)
		}
		if _, err := s.Accept(ctx, acceptOf(chat(1), 1)); err != why {
			t.Errorf("cancelled before: got %v; want %v", err, why)
		}
		if _, err := s.Load(ctx, chat(1)); err != why {
			t.Errorf("load, cancelled before: got %v; want %v", err, why)
		}

		ctx, cancel = context.WithCancelCause(t.Context())
		gate := make(chan struct{})
		go func() {
			failed <- s.do(ctx, synced, func(x *tx) error {
				<-gate
				_, err := x.accept(acceptOf(chat(2), 1))
				return err
			})
		}()
		synctest.Wait()
		cancel(why)
		synctest.Wait()
		select {
		case err := <-failed:
			t.Errorf("cancelled in the batch: got %v; want it to wait for the result", err)
		default:
		}
		close(gate)
		if err := <-failed; err != nil {
			t.Errorf("cancelled in the batch: got %v; want the result", err)
		}
		if l, err := s.Load(t.Context(), chat(2)); err != nil || len(l.Slot) != 1 {
			t.Errorf("lane: got %+v, %v; want the entry", l, err)
		}
	})
}

// Marks are kept for 48 h; later ones are gone from the table too, a few with
// each that is made.
func TestOldMarksAreSwept(t *testing.T) {
	clk := newClock()
	s := open(t, clk.now)
	for n := range int64(100) {
		accept(t, s, chat(n%7), n)
	}
	marks := func() (n int64) {
		if err := s.do(t.Context(), unsynced, func(x *tx) error {
			v, err := x.row(`SELECT count(*) FROM seen`, 1)
			n = v.int(0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	clk.step(markLife)
	if a := accept(t, s, chat(3), 3); a.Outcome != session.AcceptDup {
		t.Errorf("after 48 h: got %v; want a duplicate still", a.Outcome)
	}
	clk.step(time.Millisecond)
	for n := range int64(60) {
		if a := accept(t, s, chat(n%7), n); a.Outcome != session.AcceptOK {
			t.Errorf("after more than 48 h: got %v; want it new", a.Outcome)
		}
	}
	if n := marks(); n != 60 {
		t.Errorf("got %d marks; want the 60 of today", n)
	}
}

// The log stays small under steady traffic, and an idle store has it copied.
func TestLogIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "gateway.db"), Options{TestOnlyNoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer closeStore(t, s)
		inLog := func() (n, copied int64) {
			c, err := dial(t.Context(), s.path, false)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			v, err := c.row(`PRAGMA wal_checkpoint(NOOP)`, 3)
			if err != nil {
				t.Fatal(err)
			}
			return v.int(1), v.int(2)
		}
		blob := make([]byte, 60<<10)
		most := int64(0)
		for n := range int64(2000) { // 120 MiB and more
			if err := s.PutDoc(t.Context(), fmt.Sprint(n%50), n/50, blob); err != nil {
				t.Fatal(err)
			}
			if n%20 == 0 {
				pages, _ := inLog()
				most = max(most, pages)
			}
		}
		if most < walPages/2 || most > walMost+walPages/2 {
			t.Errorf("log: at most %d pages; want %d to %d", most, walPages, walMost)
		}
		accept(t, s, chat(1), 1)
		if pages, copied := inLog(); pages == copied {
			t.Error("the log is copied at each write")
		}
		time.Sleep(2 * walIdle)
		synctest.Wait()
		if pages, copied := inLog(); pages != copied {
			t.Errorf("idle: %d of %d pages copied; want all", copied, pages)
		}
	})
}
