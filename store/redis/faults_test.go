package redis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
)

// TestKilledUnderLoad is F16 and I1: the server is killed again and again
// while eight writers accept. Every acknowledged input is there, once, under
// the ticket that was given, and no writer saw more than a pause.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const writers, kills, perKill = 8, 3, 60
	srv := redistest.Start(t)
	s := open(t, srv)
	type ack struct {
		key    session.Key
		dedupe string
		ticket int64
	}
	var (
		mu    sync.Mutex
		acks  []ack
		stop  atomic.Bool
		wg    sync.WaitGroup
		acked = make(chan struct{}, 1<<16)
	)
	for w := range writers {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				a := ack{key: session.Key{Platform: "test", Chat: session.ChatID(fmt.Sprint(w)), Thread: session.ThreadID(fmt.Sprint(i / 20))}}
				a.dedupe = fmt.Sprintf("m:%d:%d", w, i)
				r, err := s.Accept(t.Context(), session.Accept{Key: a.key, Dedupe: a.dedupe, Author: "ann", Msg: "1", Data: []byte("{}")})
				if err != nil || r.Outcome == session.AcceptFull {
					t.Errorf("accept: got %v, %v; want a ticket after a pause", r.Outcome, err)
					return
				}
				a.ticket = r.Ticket
				mu.Lock()
				acks = append(acks, a)
				mu.Unlock()
				acked <- struct{}{}
			}
		})
	}
	for range kills {
		for range perKill {
			<-acked
		}
		srv.Kill9()
		srv.Restart()
	}
	for range perKill {
		<-acked
	}
	stop.Store(true)
	wg.Wait()
	if st := stats(t, s); st.Accepted != int64(len(acks)) {
		t.Errorf("accepted: got %d in the store; want the %d acknowledged", st.Accepted, len(acks))
	}
	for _, a := range acks {
		got := accept(t, s, a.key, a.dedupe)
		if got.Outcome != session.AcceptDup || got.Ticket != a.ticket {
			t.Fatalf("%s: got outcome %d, ticket %d; want a duplicate of %d", a.dedupe, got.Outcome, got.Ticket, a.ticket)
		}
	}
	t.Logf("%d acknowledged, %d kills, 0 lost", len(acks), kills)
}

// TestReopenAfterKill holds all that can be read equal over a kill of the
// server and a new process of the gateway (I1).
func TestReopenAfterKill(t *testing.T) {
	srv := redistest.Start(t)
	prefix := func(o *Options) { o.Prefix = "again" }
	s := open(t, srv, prefix)
	b := begun(t, s)
	accept(t, s, lane1, "m:steer", func(a *session.Accept) { a.Want, a.Turn = steer.Steer, b.Lane.Turn })
	_, err := s.Commit(t.Context(), b.Lease, session.Commit{
		Op: "c1", Seq: b.Lane.Seq, Rows: []session.Row{{Type: session.RowTool, Data: []byte("t")}}, Drain: true,
		Outs: []session.PartNew{{ID: "p", Kind: session.PartNotice, Data: []byte("x")}}, Jobs: []session.Job{{ID: "j"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := picture(t, s)
	s.Close()
	srv.Kill9()
	srv.Restart()
	after := picture(t, open(t, srv, prefix))
	if !reflect.DeepEqual(after, before) {
		t.Errorf("after the kill: got %+v; want %+v", after, before)
	}
}

func begun(t *testing.T, s session.Store) session.Begun {
	t.Helper()
	accept(t, s, lane1, "m:1")
	return begin(t, s, lane1, "b1", "n1")
}

// picture is all that can be read of lane1, but for the time it was read at.
func picture(t *testing.T, s session.Store) []any {
	t.Helper()
	l := load(t, s, lane1)
	l.Now = time.Time{}
	rows, err := s.Rows(t.Context(), lane1, l.Gen, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	fates, err := s.Fates(t.Context(), lane1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return []any{l, rows, fates, stats(t, s)}
}

// TestScriptCacheGone is F24: a server that has forgotten every script gets
// them again, also those that go in a pipeline.
func TestScriptCacheGone(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv)
	begun(t, s)
	srv.FlushScripts()
	for name, err := range everyOp(t.Context(), s) {
		if err != nil && name != "begin" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPassingAnswers is F21: a server that is starting, failing over or moving
// slots is asked again with the same call, and it works once.
func TestPassingAnswers(t *testing.T) {
	srv := redistest.Start(t)
	for _, said := range []string{
		"-READONLY You can't write against a read only replica.",
		"-LOADING Redis is loading the dataset in memory",
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"-CLUSTERDOWN Hash slot not served",
		"-TRYAGAIN Multiple keys request during rehashing of slot",
		"-NOREPLICAS Not enough good replicas to write.",
		"-BUSY Redis is busy running a script.",
		"-ERR max number of clients reached",
	} {
		t.Run(strings.Fields(said)[0], func(t *testing.T) {
			p := newProxy(t, srv.Addr)
			s := openAt(t, p.url())
			p.answer(said, said)
			a := accept(t, s, lane1, "m:1")
			if a.Outcome != session.AcceptOK || p.left() != 0 {
				t.Errorf("got outcome %d with %d answers left; want OK with 0", a.Outcome, p.left())
			}
			p.answerLater(said)
			if a := accept(t, s, lane1, "m:2"); a.Outcome != session.AcceptOK || a.Ticket != 2 || p.left() != 0 {
				t.Errorf("said when it was done: got outcome %d, ticket %d; want OK, 2", a.Outcome, a.Ticket)
			}
			if st := stats(t, s); st.Accepted != 2 || st.Duplicates != 0 {
				t.Errorf("got %+v; want 2 accepted", st)
			}
		})
	}
}

// TestRefusalsAreNotRetried: what does not go away by itself is said at once.
func TestRefusalsAreNotRetried(t *testing.T) {
	srv := redistest.Start(t)
	for said, want := range map[string]error{
		"-MISCONF Errors writing to the AOF file: No space left on device":     session.ErrFull, // F39
		"-OOM command not allowed when used memory > 'maxmemory'.":             session.ErrFull, // F22
		"-NOPERM this user has no permissions to run the 'evalsha' command":    nil,
		"-WRONGTYPE Operation against a key holding the wrong kind of value":   nil,
		"-NOAUTH Authentication required.":                                     nil,
		"-ERR Error running script (call to f_1): @user_script:1: Script fail": nil,
	} {
		p := newProxy(t, srv.Addr)
		s := openAt(t, p.url())
		p.answer(said)
		_, err := s.Accept(t.Context(), session.Accept{Key: lane1, Dedupe: "m:1"})
		if err == nil || errors.Is(err, session.ErrFull) != (want != nil) || !strings.Contains(err.Error(), strings.Fields(said)[0][1:]) {
			t.Errorf("%s: got error %v; want it named, full: %v", said, err, want != nil)
		}
	}
}

// TestMemoryFull is F22: a full server takes no input and changes nothing; the
// running turn can hold on, park and send what is planned; with room again all
// goes on by itself.
func TestMemoryFull(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv)
	b := begun(t, s)
	_, err := s.Post(t.Context(), session.Post{Key: lane1, Outs: []session.PartNew{{ID: "p", Kind: session.PartReply, Data: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, _, err := s.OutTake(t.Context(), lane1, "n1", 0); !ok || err != nil {
		t.Fatalf("outtake: got %v, %v; want a part", ok, err)
	}
	before := picture(t, s)
	srv.Set("maxmemory", "1")
	full := []func() error{
		func() error {
			_, err := s.Accept(t.Context(), session.Accept{Key: lane1, Dedupe: "m:2", Data: []byte("{}")})
			return err
		},
		func() error {
			_, err := s.Commit(t.Context(), b.Lease, session.Commit{Op: "c", Seq: b.Lane.Seq, Rows: []session.Row{{Type: session.RowTool}}})
			return err
		},
		func() error { _, err := s.Stop(t.Context(), session.Stop{Key: lane1}); return err },
		func() error { _, err := s.Reset(t.Context(), session.Reset{Key: lane1}); return err },
		func() error { return s.PutDoc(t.Context(), "d", 0, []byte("d")) },
	}
	for i, f := range full {
		if err := f(); !errors.Is(err, session.ErrFull) {
			t.Errorf("write %d: got %v; want ErrFull", i, err)
		}
	}
	if after := picture(t, s); !reflect.DeepEqual(after, before) {
		t.Errorf("refused writes left something: got %+v; want %+v", after, before)
	}
	if _, err := s.Renew(t.Context(), b.Lease); err != nil {
		t.Errorf("renew: %v", err)
	}
	if err := s.OutDone(t.Context(), lane1, "n1", session.PartDone{ID: "p", State: session.PartSent}); err != nil {
		t.Errorf("outdone: %v", err)
	}
	if err := s.Release(t.Context(), b.Lease); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, session.ErrFull) {
		t.Errorf("ping: got %v; want ErrFull, for nothing can be served", err)
	}
	srv.Set("maxmemory", "0")
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("ping with room again: %v", err)
	}
	if a := accept(t, s, lane1, "m:2"); a.Outcome != session.AcceptOK || a.Ticket != 2 {
		t.Errorf("with room again: got outcome %d, ticket %d; want OK, 2", a.Outcome, a.Ticket)
	}
}

// TestWiped is F18: a Redis that came back empty is not taken for a new one.
func TestWiped(t *testing.T) {
	srv := redistest.Start(t)
	prefix := func(o *Options) { o.Prefix = "wiped" }
	s := open(t, srv, prefix)
	begun(t, s)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Flush()
	refused := func(when string) {
		t.Helper()
		if err := s.Ping(t.Context()); !errors.Is(err, ErrWiped) || !strings.Contains(err.Error(), "store was wiped") {
			t.Errorf("%s: ping: got %v; want ErrWiped", when, err)
		}
		for name, err := range everyOp(t.Context(), s) {
			if !errors.Is(err, ErrWiped) || !errors.Is(err, session.ErrFull) {
				t.Errorf("%s: %s: got %v; want ErrWiped, which is ErrFull", when, name, err)
			}
		}
	}
	refused("empty")
	if n := srv.Do("DBSIZE"); n != int64(0) {
		t.Errorf("a refused write left %v keys", n)
	}
	begun(t, open(t, srv, prefix)) // another gateway begins anew
	refused("begun anew by another")
}

// TestWipedInPart: a node of a cluster that came back empty leaves the canary
// but takes partitions.
func TestWipedInPart(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv, func(o *Options) { o.Prefix = "part" })
	srv.Do("DEL", s.partitionOf(lane1)+"cnt")
	if _, err := s.Accept(t.Context(), session.Accept{Key: lane1}); !errors.Is(err, ErrWiped) {
		t.Errorf("accept: got %v; want ErrWiped", err)
	}
	_, err := Open(t.Context(), srv.URL, Options{Prefix: "part"})
	if err == nil || !strings.Contains(err.Error(), s.partitionOf(lane1)) || !errors.Is(err, session.ErrFull) {
		t.Errorf("open: got %v; want the partition %s named", err, s.partitionOf(lane1))
	}
}

// TestServerAway: a ctx that ends is obeyed while the server is away, and
// Close ends what waits.
func TestServerAway(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv)
	srv.Kill9()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Load(ctx, lane1)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("load: got %v; want the deadline", err)
	}
	waiting := make(chan error)
	go func() { _, err := s.Load(t.Context(), lane1); waiting <- err }()
	s.Close()
	select {
	case err := <-waiting:
		if err == nil {
			t.Error("load on a closed store: got no error")
		}
	case <-within(t, 5*time.Second).Done():
		t.Error("Close left a call waiting")
	}
}
