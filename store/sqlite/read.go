package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"coxswain/session"
)

// readers is how many reads run at once. Each takes up to 1 MiB of page cache,
// and is made when it is first needed.
const readers = 3

// A pool lends read-only connections. The one given back last is lent first,
// so an idle store keeps few. It is safe for use from any goroutine.
type pool struct {
	dial  func() (*conn, error)
	stop  <-chan struct{}
	turns chan struct{} // one token per connection that is lent

	mu   sync.Mutex
	free []*conn
}

func newPool(stop <-chan struct{}, dial func() (*conn, error)) *pool {
	return &pool{dial: dial, stop: stop, turns: make(chan struct{}, readers)}
}

func (p *pool) get(ctx context.Context) (*conn, error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.stop:
		return nil, errClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c, nil
	}
	c, err := p.dial()
	if err != nil {
		<-p.turns
	}
	return c, err
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	<-p.turns
}

// drop ends a connection instead of giving it back.
func (p *pool) drop(c *conn) {
	c.close()
	<-p.turns
}

// close waits for what is lent. It is called after stop was closed.
func (p *pool) close() {
	for range readers {
		p.turns <- struct{}{} // kept: nothing is lent any more
	}
	for _, c := range p.free {
		c.close()
	}
}

// read runs f over one state of the store.
func read[T any](ctx context.Context, s *Store, f func(c *conn) (T, error)) (answer T, err error) {
	if ctx.Err() != nil {
		return answer, context.Cause(ctx)
	}
	select {
	case <-s.stop:
		return answer, errClosed
	default:
	}
	c, err := s.reads.get(ctx)
	if err != nil {
		return answer, err
	}
	if _, err = c.exec(`BEGIN`); err == nil {
		answer, err = f(c)
		if _, e := c.exec(`COMMIT`); e != nil {
			s.reads.drop(c) // still in a transaction: of no use to the next
			return answer, errors.Join(err, e)
		}
	}
	s.reads.put(c)
	return answer, err
}

// Load implements session.Store.
func (s *Store) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	return read(ctx, s, func(c *conn) (session.Lane, error) { return c.view(key, s.now()) })
}

// Rows implements session.Store.
func (s *Store) Rows(ctx context.Context, key session.Key, gen, after int64, limit int) ([]session.Row, error) {
	return read(ctx, s, func(c *conn) (rows []session.Row, err error) {
		l, err := c.row(`SELECT id FROM lane WHERE key = ?`, 1, key.String())
		if err != nil || l == nil {
			return nil, err
		}
		err = c.each(`SELECT seq, turn, type, onto, note, tick, at, data FROM line WHERE lane = ? AND gen = ? AND seq > ? ORDER BY seq LIMIT ?`, 8,
			func(v values) error {
				rows = append(rows, session.Row{
					Seq: v.int(0), Turn: v.int(1), Type: session.RowType(v.int(2)), On: v.int(3), N: v.int(4),
					Tick: v.int(5), At: at(v.int(6)), Data: v.blob(7),
				})
				return nil
			}, l.int(0), gen, after, bound(limit))
		return rows, err
	})
}

// bound turns "0 = all" into SQLite's "negative = all".
func bound(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

// What lies more than a minute ahead is looked at too: this clock does not go back,
// but what was copied from another store may be of one that did (F38).
const (
	dueKeys    = `SELECT key FROM lane WHERE due IS NOT NULL AND (due <= ?1 OR due > ?1 + 60000) ORDER BY due, key LIMIT ?2`
	outDueKeys = `SELECT key FROM lane WHERE outs > 0 AND (out_next <= ?1 OR out_next > ?1 + 60000) ORDER BY key LIMIT ?2`
)

func (s *Store) keys(ctx context.Context, q string, limit int) ([]session.Key, error) {
	return read(ctx, s, func(c *conn) (keys []session.Key, err error) {
		err = c.each(q, 1, func(v values) error {
			k, err := session.ParseKey(v.text(0))
			keys = append(keys, k)
			return err
		}, ms(s.now()), bound(limit))
		return keys, err
	})
}

// Due implements session.Store: the index holds when each lane is due.
func (s *Store) Due(ctx context.Context, limit int) ([]session.Key, error) {
	return s.keys(ctx, dueKeys, limit)
}

// OutDue implements session.Store: the index holds the lanes with an outbox.
func (s *Store) OutDue(ctx context.Context, limit int) ([]session.Key, error) {
	return s.keys(ctx, outDueKeys, limit)
}

// Fates implements session.Store.
func (s *Store) Fates(ctx context.Context, key session.Key, limit int) ([]session.Fate, error) {
	return read(ctx, s, func(c *conn) (fates []session.Fate, err error) {
		l, err := c.row(`SELECT id FROM lane WHERE key = ?`, 1, key.String())
		if err != nil || l == nil {
			return nil, err
		}
		err = c.each(fateColumns+` ORDER BY ticket DESC LIMIT ?`, fateWidth, func(v values) error {
			f, err := fateOf(v)
			fates = append(fates, f)
			return err
		}, l.int(0), bound(limit))
		return fates, err
	})
}

// Seen implements session.Store.
func (s *Store) Seen(ctx context.Context, key session.Key, dedupe string) (bool, error) {
	return read(ctx, s, func(c *conn) (bool, error) {
		v, err := c.row(`SELECT seen.at FROM seen JOIN lane ON lane.id = seen.lane WHERE lane.key = ? AND seen.key = ?`, 1, key.String(), dedupe)
		return err == nil && v != nil && s.now().Sub(at(v.int(0))) <= markLife, err
	})
}

// Sessions implements session.Store.
func (s *Store) Sessions(ctx context.Context, after string, limit int) ([]session.Lane, error) {
	return read(ctx, s, func(c *conn) ([]session.Lane, error) {
		var lanes []*lane
		if err := c.each(laneAfter, laneWidth, func(v values) error {
			l, err := laneOf(v)
			lanes = append(lanes, l)
			return err
		}, after, bound(limit)); err != nil {
			return nil, err
		}
		now := s.now()
		all := slices.Grow([]session.Lane(nil), len(lanes))
		for _, l := range lanes {
			if err := c.fill(l, full); err != nil {
				return nil, err
			}
			all = append(all, l.view(now))
		}
		return all, nil
	})
}

// Doc implements session.Store.
func (s *Store) Doc(ctx context.Context, name string) ([]byte, int64, error) {
	type doc struct {
		data    []byte
		version int64
	}
	d, err := read(ctx, s, func(c *conn) (doc, error) {
		v, err := c.row(`SELECT version, data FROM doc WHERE name = ?`, 2, name)
		if err != nil || v == nil {
			return doc{}, err
		}
		return doc{version: v.int(0), data: v.blob(1)}, nil
	})
	return d.data, d.version, err
}

// Stats implements session.Store. The counters are written by the transaction
// that does what they count.
func (s *Store) Stats(ctx context.Context) (session.Stats, error) {
	// The writer's own: those of unsynced writes are not in the file yet.
	return write(ctx, s, unsynced, func(t *tx) (session.Stats, error) { return *t.stats, nil })
}

// Ping implements session.Store. It asks the writer; after a write that failed
// it writes, unsynced, for a disk that can only be read is a store that is down.
// What is written to a file that was deleted or replaced is gone at the end of
// the process, so that is told too.
func (s *Store) Ping(ctx context.Context) error {
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(now, s.file) {
		return fmt.Errorf(wordsGone, s.path)
	}
	return s.do(ctx, unsynced, func(t *tx) error {
		if !s.sick {
			_, err := t.row(`SELECT value FROM meta WHERE name = 'schema'`, 1)
			return err
		}
		_, err := t.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('ping', ?)`, t.now.UTC().Format(time.RFC3339))
		return err
	})
}
