package sqlite

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"coxswain/session"
)

//go:embed schema.sql
var schema string

// schemaVersion grows with every change of schema.sql.
const schemaVersion = 1

// Options of a store.
type Options struct {
	// Clock is what leases, marks and open entries are judged by; the wall
	// clock if nil. Tests give their own.
	Clock func() time.Time
	// Logger gets what happens beside the calls: a check after an unclean stop,
	// a checkpoint that failed. Nothing is logged if nil.
	Logger *slog.Logger

	TestOnlyNoSync bool // for tests of everything but durability: they take a tenth of the time
}

var (
	errClosed = errors.New(wordsClosed)
	errBusy   = fmt.Errorf("%w: a reader holds the log", session.ErrFull)
)

// A Store is an open database. All methods may be called from any goroutine;
// after Close they fail.
type Store struct {
	path  string
	ctx   context.Context // of Open, without its end: for connections made later
	clock func() time.Time
	log   *slog.Logger
	lock  *os.File
	file  os.FileInfo // of path when it was opened

	noSync bool

	queue   chan *request // not buffered: a request that was sent is in the writer's hands
	poke    chan struct{} // to the checkpointer: copy the log
	copied  chan struct{} // to the writer: the checkpointer has copied what it saw
	stop    chan struct{} // closed by Close
	written chan struct{} // closed when the writer has ended
	checked chan struct{} // closed when the checkpointer has ended
	reads   *pool

	// Owned by the writer.
	w       *conn
	stats   session.Stats
	unsaved bool // stats are ahead of those in the file
	sweep   sweep
	syncs   durability // what PRAGMA synchronous of w is now
	asked   bool       // the checkpointer is at work
	logged  int        // pages written since the log was last copied whole
	pages   int        // pages written since Open
	mend    bool       // the log may have a gap
	sick    bool       // the last write failed for want of a disk

	closing sync.Once
	closed  error // of the first Close
}

var _ session.Store = (*Store)(nil)

// Open opens the database file, made if it does not exist (mode 0600, its
// directory 0700), and takes its directory for this process. Every lease in it
// is cleared and every part that was being sent becomes unknown, for the
// process that held them is dead. After a stop without Close the file is
// checked first. ctx bounds nothing but Open itself.
func Open(ctx context.Context, path string, opt Options) (_ *Store, err error) {
	if path == "" {
		return nil, errors.New(wordsNoPath)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	s := &Store{
		path: path, ctx: context.WithoutCancel(ctx), clock: opt.Clock, log: opt.Logger,
		queue: make(chan *request), poke: make(chan struct{}, 1), copied: make(chan struct{}), stop: make(chan struct{}),
		written: make(chan struct{}), checked: make(chan struct{}), syncs: synced,
		noSync: opt.TestOnlyNoSync,
	}
	if s.clock == nil {
		s.clock = newSteady().now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// SQLite makes the names in dir durable, dir's own name is ours to.
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if s.w != nil {
			s.w.close()
		}
		s.lock.Close()
	}()
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if s.file, err = os.Stat(path); err != nil {
		return nil, err
	}
	s.reads = newPool(s.stop, func() (*conn, error) { return dial(s.ctx, path, true) })
	go s.run()
	go s.checkpoints()
	return s, nil
}

// prepare brings the file to where the writer can start.
func (s *Store) prepare() error {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	// Before SQLite opens it: closing any descriptor of the file later would
	// drop SQLite's locks on it.
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return err
	}
	// fdatasync keeps a commit as durable and leaves the file's times alone;
	// 0.28 ms instead of 0.40 on ext4. Other systems keep fsync.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return err
	}
	if s.w, err = dial(s.ctx, s.path, false); err != nil {
		return s.explain(err)
	}
	unclean, rebooted, err := s.inspect()
	if err != nil {
		return s.explain(err)
	}
	if unclean {
		s.log.Warn("store: last stop was not clean, checking the file", "file", s.path)
		if err := s.quickCheck(); err != nil {
			return err
		}
	}
	if err := s.w.once("BEGIN IMMEDIATE;\n" + meterSchema + "\nCOMMIT"); err != nil {
		return s.explain(err)
	}
	if err := s.recover(unclean && rebooted); err != nil {
		return s.explain(err)
	}
	s.stats, err = s.w.loadStats()
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// explain names the file when it is no database at all.
func (s *Store) explain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_NOTADB:
			return fmt.Errorf(wordsForeign+": %w", s.path, err)
		case sqlite3.SQLITE_CORRUPT:
			return fmt.Errorf(wordsDamaged+": %w", s.path, "open", err)
		}
	}
	return err
}

// inspect makes the schema in a new file and tells how the last process ended.
func (s *Store) inspect() (unclean, rebooted bool, err error) {
	tables, err := s.w.row(`SELECT count(*), count(CASE WHEN name = 'meta' THEN 1 END) FROM sqlite_master WHERE type = 'table'`, 2)
	if err != nil {
		return false, false, err
	}
	if tables.int(0) > 0 && tables.int(1) == 0 {
		return false, false, fmt.Errorf(wordsForeign, s.path)
	}
	level := `PRAGMA synchronous = FULL`
	if s.noSync {
		level = `PRAGMA synchronous = OFF`
	}
	for _, q := range []string{`PRAGMA journal_mode = WAL`, level} {
		if err := s.w.once(q); err != nil {
			return false, false, err
		}
	}
	if tables.int(0) == 0 {
		return false, false, s.w.once(fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nINSERT INTO meta VALUES ('schema', %d);\nCOMMIT", schema, schemaVersion))
	}
	meta := map[string]string{}
	if err := s.w.each(`SELECT name, value FROM meta`, 2, func(v values) error {
		meta[v.text(0)] = v.text(1)
		return nil
	}); err != nil {
		return false, false, err
	}
	var have int
	if _, err := fmt.Sscan(meta["schema"], &have); err != nil {
		return false, false, fmt.Errorf(wordsForeign, s.path)
	}
	if have > schemaVersion {
		return false, false, fmt.Errorf(wordsNewer, s.path, have, schemaVersion)
	}
	return meta["running"] == "1", meta["boot"] != bootID(), nil
}

// bootID tells one run of the machine from the next; empty where there is none.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}

func (s *Store) quickCheck() error {
	var found []string
	if err := s.w.each(`PRAGMA quick_check(3)`, 1, func(v values) error {
		found = append(found, v.text(0))
		return nil
	}); err != nil {
		return s.explain(err)
	}
	if len(found) != 1 || found[0] != "ok" {
		return fmt.Errorf(wordsDamaged, s.path, strings.Join(found, "; "))
	}
	return nil
}

// recover ends what a dead process held, and marks the store as running. After
// a power cut an unsynced OutTake may be forgotten, so a head part that waits
// may have been sent.
func (s *Store) recover(powerCut bool) error {
	t := &tx{conn: s.w, now: s.now(), stats: &s.stats, sweep: &s.sweep}
	steps := func() error {
		if _, err := t.exec(`UPDATE lane SET out_next = 0, out_own = '' WHERE outs > 0 AND out_own != ''`); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE part SET state = ? WHERE state = ?`, unknown, sending); err != nil {
			return err
		}
		if powerCut {
			if _, err := t.exec(`UPDATE part SET state = ? WHERE state = ? AND (lane, n) IN (SELECT lane, min(n) FROM part GROUP BY lane)`, unknown, planned); err != nil {
				return err
			}
		}
		if err := t.dropLeases(); err != nil {
			return err
		}
		for name, value := range map[string]string{"running": "1", "boot": bootID()} {
			if _, err := t.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)`, name, value); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := t.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := steps(); err != nil {
		t.exec(`ROLLBACK`)
		return err
	}
	_, err := t.exec(`COMMIT`)
	return err
}

// dropLeases clears every lease, which changes when its lane is due.
func (t *tx) dropLeases() error {
	var ids []int64
	if err := t.each(`SELECT id FROM lane WHERE nonce <> ''`, 1, func(v values) error {
		ids = append(ids, v.int(0))
		return nil
	}); err != nil {
		return err
	}
	for _, id := range ids {
		v, err := t.row(laneByID, laneWidth, id)
		if err != nil {
			return err
		}
		l, err := laneOf(v)
		if err != nil {
			return err
		}
		if err := t.fill(l, narrow); err != nil {
			return err
		}
		l.Nonce, l.Until = "", time.Time{}
		if err := t.save(l); err != nil {
			return err
		}
	}
	return nil
}

// now is the store's clock.
func (s *Store) now() time.Time { return s.clock().Truncate(time.Millisecond) }

// A steady clock follows the wall clock forward and goes on at its own pace when
// that is set back: what waits for a time (an open paste, a lease, a retry)
// would else stand still for as long as the clock went back (F38).
type steady struct {
	wall func() time.Time
	ran  func() time.Duration // of a clock that nobody sets

	mu   sync.Mutex
	last time.Time
	at   time.Duration // ran, then
}

func newSteady() *steady {
	began := time.Now()
	return &steady{wall: time.Now, ran: func() time.Duration { return time.Since(began) }}
}

func (c *steady) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, ran := c.wall().Round(0), c.ran()
	went := c.last.Add(ran - c.at)
	if c.last.IsZero() || wall.After(went) { // set forward, or the machine slept
		went = wall
	}
	c.last, c.at = went, ran
	return went
}

// Close ends the goroutines, moves the log into the file and gives the
// directory back. Calls that are in a batch or read are finished first, others
// fail. A second Close does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		<-s.written
		<-s.checked
		s.reads.close()
		err := s.setSync(synced)
		if err == nil && s.unsaved {
			err = s.w.saveStats(s.stats)
		}
		if err == nil {
			_, err = s.w.exec(`UPDATE meta SET value = '0' WHERE name = 'running'`)
		}
		s.closed = errors.Join(err, s.w.close(), s.lock.Close()) // the last connection copies the log and removes it
	})
	return s.closed
}
