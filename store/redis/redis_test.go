package redis

import (
	"context"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
	"coxswain/store/storetest"
)

// checks keeps the package's tests short; -rapid.checks asks for more.
const checks = "25"

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", checks) // before the command line is read, which wins
	flag.Set("test.parallel", "5")   // most of those wait for elections and timeouts
	// A client that saw its server die looks for it once a second until it is closed,
	// and hears of that a second later.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// open opens a store of its own on a server.
func open(t testing.TB, srv *redistest.Server, change ...func(*Options)) *Store {
	t.Helper()
	return openAt(t, srv.URL, change...)
}

func openAt(t testing.TB, url string, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{Prefix: redistest.Prefix(t)}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	storetest.Run(t, func(t *testing.T, now func() time.Time) session.Store {
		return open(t, srv, func(o *Options) { o.TestOnlyClock, o.Partitions = now, 4 })
	})
}

// TestEquivalence compares with the model step by step, read by read, on a
// server that need not sync: nothing is killed here.
func TestEquivalence(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	storetest.Equivalence(t, map[string]func(*testing.T, func() time.Time) session.Store{
		"redis": func(t *testing.T, now func() time.Time) session.Store {
			return open(t, srv, func(o *Options) { o.TestOnlyClock, o.Partitions, o.Relaxed = now, 4, true })
		},
	})
}

// TestHistories asks whether what several processes are told by one server, whose
// clock it is, is what one that does one thing after another would tell.
func TestHistories(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	storetest.Histories(t, time.Now, 5*time.Millisecond, func(t *testing.T) session.Store {
		return open(t, srv, func(o *Options) { o.Partitions, o.Relaxed = 1, true })
	})
}

var lane1, lane2 = session.Key{Platform: "test", Chat: "1"}, session.Key{Platform: "test", Chat: "2"}

func accept(t testing.TB, s session.Store, key session.Key, dedupe string, change ...func(*session.Accept)) session.Accepted {
	t.Helper()
	r := session.Accept{
		Key: key, Dedupe: dedupe, Want: steer.Queue, Author: "ann", Msg: session.MessageID(dedupe), Data: []byte(`{"from":{"id":"ann"}}`),
		Fate: session.FateQueued,
	}
	for _, f := range change {
		f(&r)
	}
	a, err := s.Accept(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// begin opens a turn that takes all that waits.
func begin(t testing.TB, s session.Store, key session.Key, op, nonce string) session.Begun {
	t.Helper()
	l := load(t, s, key)
	r := session.Begin{
		Op: session.OpID(op), Key: key, Nonce: nonce, TTL: time.Minute, Gen: l.Gen, Seq: l.Seq, Owner: "ann",
		Phase: steer.PhaseModel, Rows: []session.Row{{Type: session.RowUser, Data: []byte("{}")}},
	}
	for _, e := range l.Slot {
		if !e.Held {
			r.Take = append(r.Take, session.Take{Ticket: e.Ticket, Version: e.Version})
			r.Fates = append(r.Fates, session.FateSet{Ticket: e.Ticket, State: session.FateRunning})
		}
	}
	b, err := s.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t testing.TB, s session.Store, key session.Key) session.Lane {
	t.Helper()
	l, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func stats(t testing.TB, s session.Store) session.Stats {
	t.Helper()
	st, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st.Accepted != st.Consumed+st.Steered+st.Dropped+st.InSlot {
		t.Fatalf("conservation broken: %+v", st)
	}
	return st
}

// within bounds what a test waits for.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
