package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"

	"coxswain/session"
)

// A durability says whether the answer to a write waits for the disk.
type durability bool

const (
	synced   durability = true
	unsynced durability = false
)

// batchMax bounds how long the first request of a batch waits for the last.
const batchMax = 256

// Limits of the log. A checkpoint copies it into the database; what is not
// copied is replayed by readers from memory maps and by the next Open.
const (
	walPages = 4096         // 16 MiB: copied beside the commits while traffic goes on
	walMost  = 4 * walPages // where the writer waits for the copy
	walIdle  = time.Second  // without a write: copied then, so a kill finds little to replay
)

// A request is one write. The writer sets err and closes done, after the
// commit returned.
type request struct {
	sync durability
	do   func(*tx) error
	err  error
	done chan struct{}
}

// do queues f and waits for its result. Nothing of f is written unless nil is
// returned, but for the case in the package comment.
func (s *Store) do(ctx context.Context, sync durability, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	r := &request{sync: sync, do: f, done: make(chan struct{})}
	select {
	case s.queue <- r: // the writer has it: from here on it will be answered
		<-r.done
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.stop:
		return errClosed
	}
}

// write is do for an f with an answer.
func write[T any](ctx context.Context, s *Store, sync durability, f func(*tx) (T, error)) (T, error) {
	var answer T
	err := s.do(ctx, sync, func(t *tx) (err error) {
		answer, err = f(t)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return answer, nil
}

// run is the writer.
func (s *Store) run() {
	defer close(s.written)
	idle := time.NewTimer(walIdle)
	defer idle.Stop()
	var batch []*request
	for {
		select {
		case <-s.stop:
			return
		case <-idle.C:
			if s.logged > 0 {
				s.askCopy()
			}
			continue
		case <-s.copied:
			s.finishCopy()
			continue
		case r := <-s.queue:
			batch = append(batch[:0], r)
		}
		batch = s.gather(batch)
		s.commit(batch)
		for _, r := range batch {
			close(r.done)
		}
		clear(batch)
		if s.logged >= walPages {
			s.askCopy()
		}
		if s.logged >= walMost {
			select {
			case <-s.copied:
				s.finishCopy()
			case <-s.stop:
			}
		}
		idle.Reset(walIdle)
	}
}

// gather adds what has queued meanwhile.
func (s *Store) gather(batch []*request) []*request {
	for len(batch) < batchMax {
		select {
		case r := <-s.queue:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch in one transaction. When it returns every request has
// its result and those without an error are committed.
func (s *Store) commit(batch []*request) {
	before := s.stats
	err := s.begin(batch)
	for _, r := range batch {
		if err != nil {
			break
		}
		r.err, err = s.one(r, len(batch) > 1)
	}
	if err == nil && s.stats != before {
		// Counters of what is not durable itself wait for a batch that is: a page
		// less for each of them.
		if s.unsaved = s.syncs == unsynced; !s.unsaved {
			err = s.w.saveStats(s.stats)
		}
	} else if err == nil && s.unsaved && s.syncs == synced {
		err, s.unsaved = s.w.saveStats(s.stats), false
	}
	if err == nil {
		_, err = s.w.exec(`COMMIT`)
	}
	if err != nil {
		s.note(err)
		s.w.exec(`ROLLBACK`) // fails when SQLite has rolled back by itself
		s.stats = before
		for _, r := range batch {
			if r.err == nil {
				r.err = err
			}
		}
	}
	if s.countPages() > 0 && err == nil {
		s.sick = false
	}
}

// begin opens the transaction, with as much syncing as the batch needs.
func (s *Store) begin(batch []*request) error {
	if s.mend {
		// A sync that failed may have lost pages of the log that earlier,
		// unsynced batches wrote, and what follows a gap in the log is lost at a
		// power cut. So empty the log before anything more is promised.
		if err := s.w.checkpoint(`TRUNCATE`); err != nil {
			return err
		}
		s.mend = false
	}
	want := unsynced
	for _, r := range batch {
		want = want || r.sync
	}
	if err := s.setSync(want); err != nil {
		return err
	}
	_, err := s.w.exec(`BEGIN IMMEDIATE`)
	return err
}

// setSync sets whether the next commit waits for the disk.
func (s *Store) setSync(want durability) error {
	if want == s.syncs || s.noSync {
		return nil
	}
	level := `PRAGMA synchronous = NORMAL`
	if want {
		level = `PRAGMA synchronous = FULL`
	}
	if err := s.w.once(level); err != nil {
		return err
	}
	s.syncs = want
	return nil
}

// one runs a request of a batch, in its savepoint if others share the
// transaction. The first error is the request's own; the second says that the
// transaction is gone.
func (s *Store) one(r *request, shared bool) (own, gone error) {
	undo, over := []string{`ROLLBACK`, `BEGIN IMMEDIATE`}, []string(nil)
	if shared {
		undo, over = []string{`ROLLBACK TO r`}, []string{`RELEASE r`}
		if _, err := s.w.exec(`SAVEPOINT r`); err != nil {
			return nil, err
		}
	}
	before := s.stats
	own = r.do(&tx{conn: s.w, now: s.now(), stats: &s.stats, sweep: &s.sweep})
	if own != nil {
		s.stats = before
		if errors.Is(own, session.ErrFenced) {
			s.stats.Fenced++
		}
		s.note(own)
		for _, do := range undo {
			if _, err := s.w.exec(do); err != nil {
				// A full or failing disk ends the transaction by itself.
				return own, fmt.Errorf("%w: the transaction was lost: %w", session.ErrFull, err)
			}
		}
	}
	for _, do := range over {
		if _, err := s.w.exec(do); err != nil {
			return own, err
		}
	}
	return own, nil
}

// note keeps what an error of the disk says about the next write.
func (s *Store) note(err error) {
	s.sick = s.sick || errors.Is(err, session.ErrFull)
	s.mend = s.mend || torn(err)
}

// countPages keeps how much was written, and how much of that is not yet in
// the database.
func (s *Store) countPages() (written int) {
	n, _, err := s.w.raw.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
	if err == nil {
		s.logged += n
		s.pages += n
	}
	return n
}

// askCopy wakes the checkpointer, unless it is at work.
func (s *Store) askCopy() {
	if !s.asked {
		s.asked = true
		s.poke <- struct{}{}
	}
}

// finishCopy copies what was logged while the checkpointer copied. That is
// little, and nothing can be added meanwhile: so the log is copied whole and
// the next commit writes it from its beginning. Without this a log under steady
// traffic would grow for ever.
func (s *Store) finishCopy() {
	s.asked, s.logged = false, 0
	if err := s.w.checkpoint(`PASSIVE`); err != nil {
		s.log.Warn("store: checkpoint", "err", err)
	}
}

// checkpoints is the checkpointer: it has its own connection, so commits go on
// while it copies. It answers each poke.
func (s *Store) checkpoints() {
	defer close(s.checked)
	var c *conn // made when first needed
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	for {
		select {
		case <-s.stop:
			return
		case <-s.poke:
		}
		var err error
		if c == nil {
			c, err = dial(s.ctx, s.path, false)
		}
		if err == nil {
			err = c.checkpoint(`PASSIVE`)
		}
		if err != nil {
			s.log.Warn("store: checkpoint", "err", err)
		}
		select {
		case s.copied <- struct{}{}:
		case <-s.stop:
			return
		}
	}
}

// checkpoint moves the log into the database.
func (c *conn) checkpoint(mode string) error {
	v, err := c.row(`PRAGMA wal_checkpoint(`+mode+`)`, 3)
	if err != nil {
		return err
	}
	if mode != `PASSIVE` && v.int(0) != 0 {
		return failed("checkpoint", errBusy)
	}
	return nil
}
