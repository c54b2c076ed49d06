package store_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"coxswain/session"
	"coxswain/store"
	"coxswain/store/redis"
	"coxswain/store/redis/redistest"
	"coxswain/store/sqlite"
	"coxswain/store/storetest"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "15") // before the command line is read, which wins
	flag.Set("test.parallel", "4") // they wait for servers as much as they work
	// A client that saw its server die looks for it once a second until it is closed,
	// and hears of that a second later.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// An opener gives a fresh and empty store on a clock.
type opener func(t *testing.T, now func() time.Time) session.Store

// onSQLite need not sync either.
func onSQLite(t *testing.T, now func() time.Time) session.Store {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "gateway.db"), sqlite.Options{Clock: now, TestOnlyNoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// onRedis is a server that need not sync: nothing is killed here.
func onRedis(t *testing.T) opener {
	srv := redistest.Start(t, "appendfsync no")
	return func(t *testing.T, now func() time.Time) session.Store {
		s, err := redis.Open(t.Context(), srv.URL, redis.Options{Prefix: redistest.Prefix(t), Partitions: 4, Relaxed: true, TestOnlyClock: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// pairs are the ways that a copy can go.
func pairs(t *testing.T, f func(t *testing.T, from, to opener)) {
	t.Parallel()
	onRedis := onRedis(t)
	for _, p := range []struct {
		name     string
		from, to opener
	}{
		{"sqlite to redis", onSQLite, onRedis}, {"redis to sqlite", onRedis, onSQLite},
		{"sqlite to sqlite", onSQLite, onSQLite}, {"redis to redis", onRedis, onRedis},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			f(t, p.from, p.to)
		})
	}
}

func move(ctx context.Context, from, to session.Store) error {
	_, err := store.CopyArchive(ctx, from.(session.Archive), to.(session.Archive), "from", "to")
	return err
}

// TestCopyGoesOn: on the copy of whatever stood in a store, everything goes on as
// after a restart.
func TestCopyGoesOn(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) { storetest.Moved(t, from, to, move) })
}

// TestCopyThereAndBack: a store in every state answers the same from its copy, and
// from the copy of that.
func TestCopyThereAndBack(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) {
		clk := newClock()
		first := from(t, clk.now)
		fill(t, first, clk)
		there, back := to(t, clk.now), from(t, clk.now)
		for _, step := range [][2]session.Store{{first, there}, {there, back}} {
			done, err := store.CopyArchive(t.Context(), step[0].(session.Archive), step[1].(session.Archive), "from", "to")
			if err != nil {
				t.Fatal(err)
			}
			if done.Sessions != int64(len(states)) || done.Docs != 2 || done.Waiting == 0 || done.Parts < 150 || done.Rows < 150 {
				t.Errorf("it says %+v", done)
			}
			same(t, step[1], first)
		}
		for _, v := range storetest.Check(t.Context(), back, nil) {
			t.Errorf("invariant: %s", v)
		}
		// Once more it is whole already; where something is other it is another store.
		done, err := store.CopyArchive(t.Context(), first.(session.Archive), there.(session.Archive), "from", "to")
		if err != nil || done.Sessions != int64(len(states)) || done.Rows < 150 {
			t.Errorf("a copy onto its copy: %+v, %v", done, err)
		}
		same(t, there, first)
		if err := there.PutDoc(t.Context(), "newer", 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), first, there); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("a copy onto a store that goes on: %v", err)
		}
		if _, err := back.Post(t.Context(), session.Post{Key: session.Key{Platform: "test", Chat: "newer"}, Title: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), first, back); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("a copy onto a store with another session: %v", err)
		}
	})
}

// same compares everything that two stores answer.
func same(t *testing.T, got, want session.Store) {
	t.Helper()
	if d := storetest.Same(t.Context(), got, want); d != "" {
		t.Errorf("the copy differs:\n%s", d)
	}
	names, err := want.(session.Archive).DocNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if session.StaysDoc(name) {
			continue
		}
		a, va, err := got.Doc(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		b, vb, err := want.Doc(t.Context(), name)
		if err != nil || string(a) != string(b) || va != vb {
			t.Errorf("document %s: got %q version %d; want %q version %d (%v)", name, a, va, b, vb, err)
		}
	}
	if c, err := session.Copying(t.Context(), got); c != nil || err != nil {
		t.Errorf("still marked as a copy: %+v, %v", c, err)
	}
}

// TestCopyLeavesPlace: what tells where a store's gateways have their files stays
// with the store: it is not copied, and does not make a target full.
func TestCopyLeavesPlace(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) {
		ctx := t.Context()
		src, dst := from(t, time.Now), to(t, time.Now)
		for _, st := range []session.Store{src, dst} {
			if err := st.PutDoc(ctx, session.FilesDoc, 0, []byte(fmt.Sprintf(`{"of":%q}`, fmt.Sprintf("%p", st)))); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.PutDoc(ctx, "other", 0, []byte("moves")); err != nil {
			t.Fatal(err)
		}
		if err := move(ctx, src, dst); err != nil {
			t.Fatal(err)
		}
		data, _, err := dst.Doc(ctx, session.FilesDoc)
		if want := fmt.Sprintf(`{"of":%q}`, fmt.Sprintf("%p", dst)); err != nil || string(data) != want {
			t.Errorf("the document %s, %v; want the target's own, %s", data, err, want)
		}
		if data, _, err = dst.Doc(ctx, "other"); err != nil || string(data) != "moves" {
			t.Errorf("another document: %q, %v", data, err)
		}
	})
}
