package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
)

// reopen closes the store and opens it again, as the next process does.
func reopen(t *testing.T, s *Store, now func() time.Time) *Store {
	t.Helper()
	closeStore(t, s)
	n := openAt(t, s.path, now)
	t.Cleanup(func() { closeStore(t, n) })
	return n
}

// A retry finds its answer also after a restart (F9): the memo is stored.
func TestReplayAfterRestart(t *testing.T) {
	clk := newClock()
	s := open(t, clk.now)
	r := beginOf(accept(t, s, chat(1), 1).Lane, "op-begin")
	b, err := s.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, clk.now)
	again, err := s.Begin(t.Context(), r)
	if err != nil || again.Lease != b.Lease || again.Lane.Seq != b.Lane.Seq || again.Lane.Until != b.Lane.Until {
		t.Errorf("begin again after a restart: got %+v, %v; want %+v", again, err, b)
	}

	// The restart dropped the lease, the turn stays: claim it to go on.
	b, err = s.Claim(t.Context(), chat(1), nonce, time.Second)
	if err != nil || b.Lane.Turn != 1 || b.Lane.Attempts != 1 {
		t.Fatalf("claim: got %+v, %v; want turn 1 with one recovery", b, err)
	}
	step := session.Commit{
		Op: "op-commit", Seq: 1, Rows: []session.Row{{Type: session.RowAssistant, Data: []byte("<a&b>")}},
		Outs: []session.PartNew{partOf("p1")}, TakeOut: true, End: true,
	}
	c, err := s.Commit(t.Context(), b.Lease, step)
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, clk.now)
	c2, err := s.Commit(t.Context(), b.Lease, step)
	if err != nil || !reflect.DeepEqual(c, c2) {
		t.Errorf("commit again after a restart: got %+v, %v; want %+v", c2, err, c)
	}
	rows, err := s.Rows(t.Context(), chat(1), 1, 0, 0)
	if err != nil || len(rows) != 2 || string(rows[1].Data) != "<a&b>" {
		t.Errorf("rows: got %v, %v; want the user's and the answer, once", rows, err)
	}
	a, err := s.Accept(t.Context(), acceptOf(chat(1), 1))
	if err != nil || a.Outcome != session.AcceptDup || a.Ticket != 1 {
		t.Errorf("accept again after a restart: got %+v, %v; want a duplicate of ticket 1", a, err)
	}
	st, err := s.Stats(t.Context())
	if err != nil || st.Accepted != 1 || st.Turns != 1 || st.Ended != 1 || st.Replayed != 2 || st.Duplicates != 1 || st.Recovered != 1 {
		t.Errorf("stats after restarts: got %+v, %v", st, err)
	}
}

// Whoever opens the store knows that the process of every lease is dead: its
// turns are due at once and its sends unknown.
func TestOpenEndsWhatTheDeadHeld(t *testing.T) {
	clk := newClock()
	s := open(t, clk.now)
	b := begin(t, s, chat(1), 1)
	accept(t, s, chat(2), 2)
	if _, err := s.Claim(t.Context(), chat(2), nonce, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Post(t.Context(), session.Post{Key: chat(3), Outs: []session.PartNew{partOf("a"), partOf("b")}}); err != nil {
		t.Fatal(err)
	}
	sent, _, _, err := s.OutTake(t.Context(), chat(3), nonce, time.Minute)
	if err != nil || sent.State != session.PartSending {
		t.Fatal(sent, err)
	}
	clk.step(time.Second) // within every lease
	if due, _ := s.Due(t.Context(), 0); len(due) != 0 {
		t.Fatalf("due while leases live: got %v", due)
	}
	s = reopen(t, s, clk.now)
	due, err := s.Due(t.Context(), 0)
	if err != nil || len(due) != 2 || due[0] != chat(1) || due[1] != chat(2) {
		t.Errorf("due after a restart: got %v, %v; want the open turn, then the entry that waits", due, err)
	}
	if _, err := s.Renew(t.Context(), b.Lease); err != session.ErrFenced {
		t.Errorf("renew by the dead: got %v; want fenced", err)
	}
	p, ok, wait, err := s.OutTake(t.Context(), chat(3), "replica:2", time.Minute)
	if err != nil || ok || wait != 59*time.Second {
		t.Errorf("part after a restart: got %+v, %v, wait %v, %v; want it when its attempt is a minute old", p, ok, wait, err)
	}
	clk.step(59 * time.Second)
	p, ok, _, err = s.OutTake(t.Context(), chat(3), "replica:2", time.Minute)
	if err != nil || !ok || p.ID != "a" || p.State != session.PartUnknown || p.Attempt != 2 || !p.Since.Equal(sent.Since) {
		t.Errorf("part after a restart: got %+v, %v, %v; want a, unknown since %v", p, ok, err, sent.Since)
	}
}

// An OutTake is not synced. So after a power cut a head that waits may have
// been sent, and only then.
func TestPowerCut(t *testing.T) {
	tests := []struct {
		name, running, boot string
		want                session.PartState
	}{
		{"clean stop", "0", "an earlier run", session.PartSending},
		{"process died", "1", bootID(), session.PartSending},
		{"power cut", "1", "an earlier run", session.PartUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clk := newClock()
			s := open(t, clk.now)
			if _, err := s.Post(t.Context(), session.Post{Key: chat(1), Outs: []session.PartNew{partOf("a"), partOf("b")}}); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			edit(t, s.path, `UPDATE meta SET value = '`+tt.running+`' WHERE name = 'running'`)
			edit(t, s.path, `UPDATE meta SET value = '`+tt.boot+`' WHERE name = 'boot'`)
			s = openAt(t, s.path, clk.now)
			t.Cleanup(func() { closeStore(t, s) })
			p, ok, _, err := s.OutTake(t.Context(), chat(1), nonce, 0)
			if err != nil || !ok || p.State != tt.want {
				t.Errorf("head: got %+v, %v, %v; want %s", p, ok, err, tt.want)
			}
			if err := s.OutDone(t.Context(), chat(1), nonce, session.PartDone{ID: "a", State: session.PartSent}); err != nil {
				t.Fatal(err)
			}
			if p, _, _, err = s.OutTake(t.Context(), chat(1), nonce, 0); err != nil || p.State != session.PartSending {
				t.Errorf("second part: got %+v, %v; want sending: it was never tried", p, err)
			}
		})
	}
}

// edit changes a closed store.
func edit(t *testing.T, path, q string) {
	t.Helper()
	c, err := dial(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.once(q); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name string
		harm func(t *testing.T, path string)
		want string
	}{
		{"no database", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("notes for the meeting\n", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is no store of this gateway"},
		{"another program's database", func(t *testing.T, path string) {
			edit(t, path, `CREATE TABLE bookmarks (url TEXT)`)
		}, "is no store of this gateway"},
		{"newer schema", func(t *testing.T, path string) {
			closeStore(t, openAt(t, path, nil))
			edit(t, path, `UPDATE meta SET value = '99' WHERE name = 'schema'`)
		}, "newer gateway (schema 99, this one knows 1)"},
		{"damaged where Open does not look, last stop not clean", func(t *testing.T, path string) {
			s := openAt(t, path, nil)
			b := begin(t, s, chat(1), 1)
			rows := make([]session.Row, 500)
			for i := range rows {
				rows[i] = session.Row{Type: session.RowTool, Data: []byte("the body of a tool's row")}
			}
			if _, err := s.Commit(t.Context(), b.Lease, session.Commit{Op: "c", Seq: 1, Rows: rows}); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			edit(t, path, `UPDATE meta SET value = '1' WHERE name = 'running'`)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			const page = 4096
			at := bytes.Index(file, rows[0].Data) / page * page
			copy(file[at+8:], strings.Repeat("x", 200)) // the page's table of cells
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is damaged ("},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "gateway.db")
			tt.harm(t, path)
			s, err := Open(t.Context(), path, Options{})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %q; want it to name %s and say %q", err, path, tt.want)
			}
			// The refused file was left alone and the directory is free.
			lock, err := lockDir(filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			lock.Close()
		})
	}
	if _, err := Open(t.Context(), "", Options{}); err == nil || err.Error() != wordsNoPath {
		t.Errorf("no path: got %v", err)
	}
}

// Another program's database is not even converted to a log of ours.
func TestRefusedFileIsUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	edit(t, path, `CREATE TABLE bookmarks (url TEXT)`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{}); err == nil {
		t.Fatal("opened")
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the file changed")
	}
}

// Nobody else on the machine may read what people wrote.
func TestFileModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, filepath.Join(dir, "gateway.db"), nil)
	t.Cleanup(func() { closeStore(t, s) })
	accept(t, s, chat(1), 1)
	for name, want := range map[string]os.FileMode{
		"": 0o700 | os.ModeDir, "gateway.db": 0o600, "gateway.db-wal": 0o600, "gateway.db-shm": 0o600, "LOCK": 0o600,
	} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode() != want {
			t.Errorf("%q: got mode %v; want %v", name, st.Mode(), want)
		}
	}
	closeStore(t, s)
	if err := os.Chmod(s.path, 0o644); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, s.path, nil)
	if st, err := os.Stat(s.path); err != nil || st.Mode() != 0o600 {
		t.Errorf("a file that others could read: got %v, %v; want it narrowed", st.Mode(), err)
	}
}

// A second Close does nothing, a call after it fails, and what waits for the
// writer then is told.
func TestClose(t *testing.T) {
	s := open(t, nil)
	accept(t, s, chat(1), 1)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Accept(t.Context(), acceptOf(chat(1), 2)); err != errClosed {
		t.Errorf("accept: got %v; want closed", err)
	}
	if _, err := s.Load(t.Context(), chat(1)); err != errClosed {
		t.Errorf("load: got %v; want closed", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "b.db")); err != errClosed {
		t.Errorf("backup: got %v; want closed", err)
	}
	if err := s.Ping(t.Context()); err != errClosed {
		t.Errorf("ping: got %v; want closed", err)
	}
	if _, err := os.Stat(s.path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the log is left after Close: %v", err)
	}
}

// Calls that run while the store closes are done or refused; none hangs and
// none is acknowledged and lost.
func TestCloseUnderLoad(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "gateway.db"), nil)
	var wg sync.WaitGroup
	var done atomic.Int64
	busy := make(chan struct{}, 16)
	for w := range int64(8) {
		wg.Go(func() {
			for n := int64(0); ; n++ {
				if _, err := s.Accept(t.Context(), acceptOf(chat(w), n)); err == errClosed {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
				if n == 3 {
					busy <- struct{}{}
				}
			}
		})
		wg.Go(func() {
			for n := int64(0); ; n++ {
				if _, err := s.Load(t.Context(), chat(w)); err == errClosed {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				if n == 3 {
					busy <- struct{}{}
				}
			}
		})
	}
	for range 16 {
		<-busy
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	s = openAt(t, s.path, nil)
	defer closeStore(t, s)
	if st, err := s.Stats(t.Context()); err != nil || st.Accepted != done.Load() {
		t.Errorf("got %d accepted, %v; %d were acknowledged", st.Accepted, err, done.Load())
	}
}
