package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// maxPages limits the database as a full disk does; 0 lifts the limit.
func maxPages(t *testing.T, s *Store, spare int64) {
	t.Helper()
	if err := s.do(t.Context(), unsynced, func(x *tx) error {
		v, err := x.row(`PRAGMA page_count`, 1)
		if err != nil {
			return err
		}
		limit := v.int(0) + spare
		if spare < 0 {
			limit = 1 << 30
		}
		return x.once(fmt.Sprintf(`PRAGMA max_page_count = %d`, limit))
	}); err != nil {
		t.Fatal(err)
	}
}

// A full database refuses what does not fit, keeps what it has, and works
// again when there is room (F39).
func TestDiskFull(t *testing.T) {
	s := open(t, nil)
	accept(t, s, chat(1), 1)
	maxPages(t, s, 3)
	big := acceptOf(chat(1), 2)
	big.Data = make([]byte, 60<<10)
	for range 3 {
		if _, err := s.Accept(t.Context(), big); !errors.Is(err, session.ErrFull) {
			t.Errorf("accept in a full store: got %v; want ErrFull", err)
		}
	}
	l, err := s.Load(t.Context(), chat(1))
	if err != nil || len(l.Slot) != 1 || l.Tickets != 1 {
		t.Errorf("lane: got %d entries, ticket %d, %v; want what it had", len(l.Slot), l.Tickets, err)
	}
	maxPages(t, s, -1)
	a, err := s.Accept(t.Context(), big)
	if err != nil || a.Outcome != session.AcceptOK || a.Ticket != 2 {
		t.Errorf("accept with room: got %+v, %v; want ticket 2", a.Outcome, err)
	}
}

// In a full store each request of a batch is refused or done, none half.
func TestDiskFullInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleStore(t)
		defer closeStore(t, s)
		accept(t, s, chat(0), 0)
		maxPages(t, s, 3)
		release := holdWriter(t, s)
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wg.Go(func() {
				r := acceptOf(chat(0), int64(i+1))
				if i%2 == 0 {
					r.Data = make([]byte, 60<<10)
				}
				_, errs[i] = s.Accept(t.Context(), r)
			})
		}
		synctest.Wait()
		release()
		wg.Wait()
		maxPages(t, s, -1)
		full := 0
		for i, err := range errs {
			a, err2 := s.Accept(t.Context(), acceptOf(chat(0), int64(i+1)))
			switch {
			case err2 != nil:
				t.Error(err2)
			case err == nil && a.Outcome != session.AcceptDup:
				t.Errorf("request %d was acknowledged and is not there", i)
			case errors.Is(err, session.ErrFull) && a.Outcome != session.AcceptOK:
				t.Errorf("request %d was refused and is there", i)
			case err != nil && !errors.Is(err, session.ErrFull):
				t.Errorf("request %d: got %v; want ErrFull", i, err)
			}
			if err != nil {
				full++
			}
		}
		if full < 3 {
			t.Errorf("%d requests were refused; want the large ones at least", full)
		}
	})
}

// A backup is a store of its own, private, and taken beside running work.
func TestBackup(t *testing.T) {
	s := open(t, nil)
	for n := range int64(300) {
		accept(t, s, chat(n%20), n)
	}
	path := filepath.Join(t.TempDir(), "copy", "backup.db")
	if err := s.Backup(t.Context(), path); err == nil {
		t.Error("backup into a directory that is not there: got no error")
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := int64(1000); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Accept(t.Context(), acceptOf(chat(n%20), n)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	if err := s.Backup(t.Context(), path); err != nil {
		t.Error(err)
	}
	close(stop)
	wg.Wait()
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("got %v, %v; want mode 0600", st, err)
	}
	b := openAt(t, path, nil)
	defer closeStore(t, b)
	for n := range int64(300) {
		if a := accept(t, b, chat(n%20), n); a.Outcome != session.AcceptDup {
			t.Fatalf("message %d is not in the backup", n)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), path); err == nil || err.Error() != fmt.Sprintf(wordsBackup, path) {
		t.Errorf("backup over a file: got %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was touched: %v", err)
	}
}

// A file that is deleted or replaced under a running store is told: what is
// written to it is gone when the process ends (I1).
func TestPingMissesItsFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "deleted or replaced") {
		t.Errorf("without its file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("with another file in its place: no error")
	}
}

// The store's clock goes on when the machine's is set back (F38), and follows
// it forward.
func TestSteadyClock(t *testing.T) {
	wall, ran := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Duration(0)
	c := &steady{wall: func() time.Time { return wall }, ran: func() time.Duration { return ran }}
	begin := c.now()
	for _, step := range []struct {
		wall, ran, want time.Duration // since the beginning
	}{
		{time.Second, time.Second, time.Second},
		{-time.Hour + 2*time.Second, 2 * time.Second, 2 * time.Second}, // set back
		{-time.Hour + 90*time.Minute, 90 * time.Minute, 90 * time.Minute},
		{3 * time.Hour, 91 * time.Minute, 3 * time.Hour}, // set forward, or asleep
		{3*time.Hour + time.Second, 91*time.Minute + time.Second, 3*time.Hour + time.Second},
	} {
		wall, ran = begin.Add(step.wall), step.ran
		if got := c.now().Sub(begin); got != step.want {
			t.Errorf("wall %v, ran %v: got %v; want %v", step.wall, step.ran, got, step.want)
		}
	}
}
