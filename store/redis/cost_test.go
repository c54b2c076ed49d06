package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
)

// counted notes the name of every command a client sends.
type counted struct {
	mu    sync.Mutex
	names []string
}

func (c *counted) note(cmds ...redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		c.names = append(c.names, cmd.Name())
	}
}

func (c *counted) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.note(cmd); return next(ctx, cmd) }
}

func (c *counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.note(cmds...); return next(ctx, cmds) }
}

// take gives what was sent since the last take.
func (c *counted) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.names
	c.names = nil
	return n
}

// TestPlainTurn holds a plain turn to four commands beyond its accept, the
// looking up of its lane included.
func TestPlainTurn(t *testing.T) {
	s := open(t, redistest.Start(t))
	turn(t, s, lane1, 0) // the scripts are known to the server from here on
	var c counted
	s.client.AddHook(&c)
	turn(t, s, lane1, 1)
	want := []string{"evalsha", "evalsha", "evalsha", "evalsha", "evalsha"}
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("accept and a plain turn: got %v; want 1 + 4 scripts", got)
	}
}

// turn is a whole plain turn: accept, load, begin, commit, outdone.
func turn(t testing.TB, s *Store, key session.Key, i int) {
	accept(t, s, key, fmt.Sprint("m:", i))
	plainTurn(t, s, key, i)
}

func plainTurn(t testing.TB, s *Store, key session.Key, i int) {
	b := begin(t, s, key, fmt.Sprint("b", i), "n1")
	c, err := s.Commit(t.Context(), b.Lease, session.Commit{
		Op: session.OpID(fmt.Sprint("c", i)), Seq: b.Lane.Seq, Rows: []session.Row{{Type: session.RowAssistant, Data: make([]byte, 400)}},
		Outs: []session.PartNew{{ID: fmt.Sprint("p", i), Kind: session.PartFinal, Data: make([]byte, 400)}}, TakeOut: true, End: true,
		Fates: []session.FateSet{{Ticket: b.Lane.Tickets, State: session.FateAnswered, Turn: b.Lane.Turn}},
	})
	if err != nil || c.Out == nil {
		t.Fatalf("commit: got part %v, error %v; want a part", c.Out, err)
	}
	if err := s.OutDone(t.Context(), key, "n1", session.PartDone{ID: c.Out.ID, State: session.PartSent}); err != nil {
		t.Fatal(err)
	}
}

// TestCostOfHistory is I12: with 10 rows or 1,000 each operation is the same
// commands, and inside the server the same calls.
func TestCostOfHistory(t *testing.T) {
	srv := redistest.Start(t)
	costs := map[int]string{}
	for _, rows := range []int{10, 1000} {
		s := open(t, srv)
		b := begun(t, s)
		seq := b.Lane.Seq
		commit := func(op string, r session.Commit) {
			t.Helper()
			r.Op, r.Seq = session.OpID(op), seq
			c, err := s.Commit(t.Context(), b.Lease, r)
			if err != nil {
				t.Fatal(err)
			}
			seq = c.Seq
		}
		var many []session.Row
		for range rows {
			many = append(many, session.Row{Type: session.RowTool, Data: []byte("row")})
		}
		commit("many", session.Commit{Rows: many})
		load(t, s, lane1)
		var c counted
		s.client.AddHook(&c)
		srv.Do("CONFIG", "RESETSTAT")
		accept(t, s, lane1, "m:steer", func(a *session.Accept) { a.Want, a.Turn = steer.Steer, b.Lane.Turn })
		commit("one", session.Commit{Rows: many[:1], Drain: true})
		commit("end", session.Commit{Rows: many[:1], End: true})
		accept(t, s, lane1, "m:next")
		load(t, s, lane1)
		sent := len(c.take())
		costs[rows] = fmt.Sprintf("%d commands\n%s", sent, calls(srv))
	}
	if costs[10] != costs[1000] {
		t.Errorf("10 rows: %s\n1,000 rows: %s\nwant the same", costs[10], costs[1000])
	}
	if strings.Contains(costs[10], "lrange") { // one call, but as long as the history
		t.Errorf("rows were read back: %s", costs[10])
	}
	if !strings.Contains(costs[10], "rpush calls=3") { // two rows and a steer
		t.Errorf("the server's own count is not what it was taken for: %s", costs[10])
	}
}

// calls gives how often the server ran each command, those of scripts too.
func calls(srv *redistest.Server) string {
	var b strings.Builder
	lines := strings.Split(srv.Do("INFO", "commandstats").(string), "\r\n")
	slices.Sort(lines)
	for _, line := range lines {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		n, _, _ := strings.Cut(rest, ",")
		if ok && name != "info" && name != "config|resetstat" {
			fmt.Fprintf(&b, "%s %s\n", name, n)
		}
	}
	return b.String()
}

// subscribed opens a subscription and waits until it stands.
func subscribed(t *testing.T, s *Store) <-chan session.Key {
	t.Helper()
	keys := make(chan session.Key, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Subscribe(ctx, func(k session.Key) { keys <- k }) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if k := next(t, keys); k != (session.Key{}) {
		t.Fatalf("first wake-up: got %v; want the zero key", k)
	}
	return keys
}

func next(t *testing.T, keys <-chan session.Key) session.Key {
	t.Helper()
	select {
	case k := <-keys:
		return k
	case <-within(t, 20*time.Second).Done():
		t.Fatal("no wake-up came")
		return session.Key{}
	}
}

// TestWakeUps: what one gateway writes, another hears; and after the server
// was gone it hears that it may have missed something (F31).
func TestWakeUps(t *testing.T) {
	srv := redistest.Start(t)
	prefix := func(o *Options) { o.Prefix = "wake" }
	a, b := open(t, srv, prefix), open(t, srv, prefix)
	keys := subscribed(t, a)
	key := session.Key{Platform: "test", Chat: "9:{", Thread: "t%"}
	ctx := t.Context()
	le := session.Lease{Key: key, Epoch: 1, Nonce: "n1", TTL: time.Minute}
	for _, write := range []func() error{
		func() error { _, err := b.Accept(ctx, session.Accept{Key: key, Dedupe: "m:1"}); return err },
		func() error {
			_, err := b.Amend(ctx, session.Amend{Key: key, Ticket: 1, Kind: session.AmendSet})
			return err
		},
		func() error { _, err := b.Stop(ctx, session.Stop{Key: key}); return err },
		func() error { _, err := b.Post(ctx, session.Post{Key: key, Title: "t"}); return err },
		func() error {
			_, err := b.Claim(ctx, key, "n1", time.Minute)
			return errors.Join(err, b.Release(ctx, le))
		},
		func() error {
			_, err := b.Begin(ctx, session.Begin{Op: "b1", Key: key, Nonce: "n1", TTL: time.Minute, Gen: 1})
			le.Epoch++
			return err
		},
		func() error { _, err := b.Commit(ctx, le, session.Commit{Op: "c1"}); return err },
		func() error { _, err := b.Reset(ctx, session.Reset{Key: key}); return err },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if k := next(t, keys); k != key {
			t.Errorf("got a wake-up for %v; want %v", k, key)
		}
	}
	// What it writes itself it does not hear.
	mine := key
	mine.Thread = "mine"
	accept(t, a, mine, "m:1")
	accept(t, b, key, "m:2")
	if k := next(t, keys); k != key {
		t.Errorf("got a wake-up for %v; want %v, of the other's write", k, key)
	}
	srv.Kill9()
	srv.Restart()
	for next(t, keys) != (session.Key{}) {
	}
}
