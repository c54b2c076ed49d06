package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"coxswain/session"
)

// Some tests need a second process: the test binary, started again with the
// name of a part to play and the file of a store.
const (
	envPart = "TEST_SQLITE_PART"
	envFile = "TEST_SQLITE_FILE"
)

func TestMain(m *testing.M) {
	part := os.Getenv(envPart)
	if part == "" {
		goleak.VerifyTestMain(m) // and ends
		return
	}
	play := map[string]func(ctx context.Context, path string) error{
		"opener": playOpener, "writer": playWriter, "shortdisk": playShortDisk,
	}[part]
	if err := play(context.Background(), os.Getenv(envFile)); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func child(t *testing.T, part, path string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envPart+"="+part, envFile+"="+path)
	c.Stderr = t.Output()
	return c
}

func playOpener(ctx context.Context, path string) error {
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// The second process on a directory is told who the first is (F40).
func TestSecondProcess(t *testing.T) {
	s := open(t, nil)
	out, err := child(t, "opener", s.path).Output()
	want := fmt.Sprintf("another gateway (pid %d) uses %s; stop it or set store.url", os.Getpid(), filepath.Dir(s.path))
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("second process: got %q, %v; want %q", out, err, want)
	}
	closeStore(t, s)
	if out, err := child(t, "opener", s.path).Output(); err != nil {
		t.Errorf("after the first closed: got %q, %v", out, err)
	}
}

const writers = 4

// playWriter accepts and commits for ever and prints what was acknowledged.
func playWriter(ctx context.Context, path string) error {
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(words...)
	}
	failed := make(chan error)
	for w := range int64(writers) {
		go func() { failed <- writeTurns(ctx, s, chat(w), say) }()
	}
	return <-failed
}

func writeTurns(ctx context.Context, s *Store, key session.Key, say func(...any)) error {
	l, err := s.Load(ctx, key)
	if err != nil {
		return err
	}
	if l.Turn != 0 { // of the process before
		b, err := s.Claim(ctx, key, nonce, time.Minute)
		if err != nil {
			return err
		}
		if _, err := s.Commit(ctx, b.Lease, session.Commit{Op: session.OpID(fmt.Sprint("x", l.Turn)), Seq: l.Seq, End: true}); err != nil {
			return err
		}
	}
	for n := l.Tickets + 1; ; n++ {
		a, err := s.Accept(ctx, acceptOf(key, n))
		if err != nil {
			return err
		}
		say("accepted", key, n, a.Ticket)
		b, err := s.Begin(ctx, beginOf(a.Lane, session.OpID(fmt.Sprint("b", n))))
		if err != nil {
			return err
		}
		c, err := s.Commit(ctx, b.Lease, session.Commit{
			Op: session.OpID(fmt.Sprint("c", n)), Seq: b.Lane.Seq, End: true,
			Rows: []session.Row{{Type: session.RowAssistant, Data: fmt.Appendf(nil, "answer %d", n)}},
		})
		if err != nil {
			return err
		}
		say("answered", key, n, c.Seq)
	}
}

// Nothing acknowledged is lost by kill -9, whenever it comes (F40, I1).
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	const kills = 25
	accepted, answered := map[string]int64{}, map[string]int64{}
	for round := range kills {
		c := child(t, "writer", path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		for n := 1 + rand.IntN(60); ; n-- {
			line, err := in.ReadString('\n')
			if err == io.EOF {
				break
			}
			if n == 0 {
				c.Process.Kill() // what is printed until it dies counts too
			}
			var what, key string
			var msg, num int64
			if _, err := fmt.Sscan(line, &what, &key, &msg, &num); err != nil {
				c.Process.Kill()
				t.Fatalf("the writer said %q: %v", line, err)
			}
			id := fmt.Sprint(key, " ", msg)
			if what == "accepted" {
				accepted[id] = num
			} else {
				answered[id] = num
			}
		}
		c.Wait()
		checkKilled(t, round, path, accepted, answered)
	}
	if len(accepted) < kills || len(answered) < kills {
		t.Errorf("%d accepts and %d answers were acknowledged; want some in each round", len(accepted), len(answered))
	}
	t.Logf("%d accepts and %d answers acknowledged in %d rounds", len(accepted), len(answered), kills)
}

// checkKilled opens what the dead process left.
func checkKilled(t *testing.T, round int, path string, accepted, answered map[string]int64) {
	t.Helper()
	s := openAt(t, path, nil) // checks the file first
	defer closeStore(t, s)
	var check string
	if err := s.do(t.Context(), unsynced, func(x *tx) error {
		v, err := x.row(`PRAGMA integrity_check`, 1)
		check = v.text(0)
		return err
	}); err != nil || check != "ok" {
		t.Errorf("round %d: integrity %q, %v", round, check, err)
	}
	for w := range int64(writers) {
		key := chat(w)
		rows, err := s.Rows(t.Context(), key, 1, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for id, seq := range answered {
			name, n, _ := strings.Cut(id, " ")
			if name != key.String() {
				continue
			}
			if int64(len(rows)) < seq || string(rows[seq-1].Data) != "answer "+n {
				t.Errorf("round %d: answer %s is not at seq %d", round, id, seq)
			}
		}
	}
	for id, ticket := range accepted {
		name, n, _ := strings.Cut(id, " ")
		key, err := session.ParseKey(name)
		if err != nil {
			t.Fatal(err)
		}
		var msg int64
		fmt.Sscan(n, &msg)
		a, err := s.Accept(t.Context(), acceptOf(key, msg))
		if err != nil || a.Outcome != session.AcceptDup || a.Ticket != ticket {
			t.Errorf("round %d: accepted %s again: got %v, ticket %d, %v; want a duplicate of %d", round, id, a.Outcome, a.Ticket, err, ticket)
		}
	}
}

// A file size limit makes the disk refuse in the middle of a write: the store
// reports it, has nothing of it, and goes on when there is room again (F39).
func TestDiskError(t *testing.T) {
	out, err := child(t, "shortdisk", filepath.Join(t.TempDir(), "gateway.db")).Output()
	if err != nil {
		t.Errorf("%s%v", out, err)
	}
}

func playShortDisk(ctx context.Context, path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	for n := range int64(20) {
		if _, err := s.Accept(ctx, acceptOf(chat(1), n)); err != nil {
			return err
		}
	}
	limit := func(n uint64) error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: unix.RLIM_INFINITY})
	}
	if err := limit(4096); err != nil { // neither the log nor the database can be written behind its first page
		return err
	}
	for n := range 3 {
		_, err := s.Accept(ctx, acceptOf(chat(1), 20))
		if !errors.Is(err, session.ErrFull) {
			return fmt.Errorf("accept without room: got %v; want ErrFull", err)
		}
		if n > 0 && !strings.Contains(err.Error(), "wal_checkpoint(TRUNCATE)") {
			return fmt.Errorf("after a torn write: got %v; want the log emptied before anything else is written", err)
		}
		if err := s.Ping(ctx); !errors.Is(err, session.ErrFull) {
			return fmt.Errorf("ping without room: got %v; want ErrFull", err)
		}
	}
	if l, err := s.Load(ctx, chat(1)); err != nil || len(l.Slot) != 20 {
		return fmt.Errorf("without room: got %d entries, %v; want the 20", len(l.Slot), err)
	}
	if err := limit(unix.RLIM_INFINITY); err != nil {
		return err
	}
	if err := s.Ping(ctx); err != nil {
		return fmt.Errorf("ping with room: %w", err)
	}
	a, err := s.Accept(ctx, acceptOf(chat(1), 20))
	if err != nil || a.Outcome != session.AcceptOK || len(a.Lane.Slot) != 21 {
		return fmt.Errorf("accept with room: got %v, %d entries, %v", a.Outcome, len(a.Lane.Slot), err)
	}
	if st, err := s.Stats(ctx); err != nil || st.Accepted != 21 || st.InSlot != 21 {
		return fmt.Errorf("stats: got %+v, %v; want 21 accepted", st, err)
	}
	if err := s.do(ctx, unsynced, func(*tx) error {
		if s.mend {
			return errors.New("the log was not mended")
		}
		return nil
	}); err != nil {
		return err
	}
	return s.Close()
}
