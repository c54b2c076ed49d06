package sqlite

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t)
	storetest.Run(t, func(t *testing.T, now func() time.Time) session.Store { return open(t, now) })
}

// TestEquivalence compares with the model step by step, read by read.
func TestEquivalence(t *testing.T) {
	storetest.Equivalence(t, map[string]func(*testing.T, func() time.Time) session.Store{
		"sqlite": func(t *testing.T, now func() time.Time) session.Store { return open(t, now) },
	})
}

// TestHistories asks whether what several users of one store are told is what one
// that does one thing after another would tell.
func TestHistories(t *testing.T) {
	storetest.Histories(t, time.Now, 5*time.Millisecond, func(t *testing.T) session.Store { return open(t, time.Now) })
}

// open gives a store in a directory of its own. With the test it is audited
// and closed.
func open(t *testing.T, now func() time.Time) *Store {
	t.Helper()
	s := openAt(t, filepath.Join(t.TempDir(), "gateway.db"), now)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func openAt(t *testing.T, path string, now func() time.Time) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{Clock: now, TestOnlyNoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	select {
	case <-s.stop:
		return
	default:
	}
	audit(t, s)
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// audit checks what is stored twice: counters against the tables they count,
// and the time each lane is due against the lane it was computed from.
func audit(t *testing.T, s *Store) {
	t.Helper()
	c, err := dial(s.ctx, s.path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	st, err := c.loadStats()
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.row(`SELECT (SELECT count(*) FROM slot), (SELECT count(*) FROM lane WHERE key NOT LIKE 'seat:%'), (SELECT count(*) FROM part),
		(SELECT count(*) FROM lane WHERE outs <> (SELECT count(*) FROM part WHERE part.lane = lane.id)),
		(SELECT count(*) FROM fate WHERE final <> (state IN ('answered', 'dropped', 'stopped', 'failed')))`, 5)
	if err != nil {
		t.Fatal(err)
	}
	if st.InSlot != v.int(0) || st.Sessions != v.int(1) || v.int(3) != 0 || v.int(4) != 0 {
		t.Errorf("stats %+v; tables: %d in slot, %d lanes, %d lanes with a wrong outbox count, %d fates wrongly final", st, v.int(0), v.int(1), v.int(3), v.int(4))
	}
	if st.Accepted != st.Consumed+st.Steered+st.Dropped+st.InSlot {
		t.Errorf("conservation: %+v", st)
	}
	dues := map[string]any{}
	if err := c.each(`SELECT key, due FROM lane`, 2, func(v values) error {
		dues[v.text(0)] = v[1]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, due := range dues {
		key, err := session.ParseKey(name)
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.lane(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.fill(l, full); err != nil {
			t.Fatal(err)
		}
		if l.due() != due {
			t.Errorf("lane %s: stored due %v; want %v", name, due, l.due())
		}
	}
}

// A clock is the time of a test.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock {
	return &clock{t: time.Date(2026, time.March, 1, 9, 30, 0, 0, time.UTC)}
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

const nonce = "replica:1"

// accept stores one queued message.
func accept(t *testing.T, s *Store, key session.Key, n int64) session.Accepted {
	t.Helper()
	a, err := s.Accept(t.Context(), acceptOf(key, n))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// beginOf opens a turn on the lowest entry of the lane.
func beginOf(l session.Lane, op session.OpID) session.Begin {
	e := l.Slot[0]
	return session.Begin{
		Op: op, Key: l.Key, Nonce: nonce, TTL: 5 * time.Second, Gen: l.Gen, Seq: l.Seq, Owner: e.Author, Phase: steer.PhasePreparing,
		Take: []session.Take{{Ticket: e.Ticket, Version: e.Version}}, Rows: []session.Row{{Type: session.RowUser, Data: e.Data}},
		Fates: []session.FateSet{{Ticket: e.Ticket, State: session.FateRunning}},
	}
}

// begin accepts a message and opens a turn on it.
func begin(t *testing.T, s *Store, key session.Key, n int64) session.Begun {
	t.Helper()
	b, err := s.Begin(t.Context(), beginOf(accept(t, s, key, n).Lane, "begin"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func partOf(id string) session.PartNew {
	return session.PartNew{ID: id, Kind: session.PartFinal, Data: []byte(`{"text":"done"}`)}
}
