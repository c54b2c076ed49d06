package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"coxswain/session"
)

// A conn is one connection with its prepared statements. It goes below
// database/sql, whose pool and conversions one writer has no use for; a
// statement then costs about 3 µs. It must be used from one goroutine at a time.
type conn struct {
	raw   driver.Conn
	ctx   context.Context // never done: with a Done channel the driver starts a goroutine per statement
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// dial opens the file, which exists. The page caches are small on purpose: the
// kernel has the file cached already, and an idle gateway shall be small.
func dial(ctx context.Context, path string, readOnly bool) (*conn, error) {
	q := url.Values{"_pragma": {
		"busy_timeout(5000)", "foreign_keys(1)", "wal_autocheckpoint(0)",
		"cache_size(-1024)", "temp_store(2)", "trusted_schema(0)",
	}}
	if readOnly {
		q.Set("mode", "ro")
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode(), OmitHost: true}
	connector, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &conn{raw: raw, ctx: ctx, stmts: map[string]driver.Stmt{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.Close()
	}
	return c.raw.Close()
}

// prepare gives the statement of q, parsed once per connection.
func (c *conn) prepare(q string) (driver.Stmt, error) {
	if s, ok := c.stmts[q]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(q)
	if err != nil {
		return nil, failed(q, err)
	}
	c.stmts[q] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int:
			a = int64(v)
		case bool:
			a = int64(0)
			if v {
				a = int64(1)
			}
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs q. Arguments are int, int64, bool, string, []byte or nil.
func (c *conn) exec(q string, args ...any) (driver.Result, error) {
	s, err := c.prepare(q)
	if err != nil {
		return nil, err
	}
	r, err := s.(driver.StmtExecContext).ExecContext(c.ctx, c.bind(args))
	if err != nil {
		return nil, failed(q, err)
	}
	return r, nil
}

// once runs a statement that must not be kept: a PRAGMA takes effect when it is
// parsed, a script has no single statement.
func (c *conn) once(q string) error {
	s, err := c.raw.Prepare(q)
	if err != nil {
		return failed(q, err)
	}
	defer s.Close()
	if _, err := s.(driver.StmtExecContext).ExecContext(c.ctx, nil); err != nil {
		return failed(q, err)
	}
	return nil
}

// each runs q and gives every row to f; the values are f's to keep.
func (c *conn) each(q string, columns int, f func(v values) error, args ...any) error {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(c.ctx, c.bind(args))
	if err != nil {
		return failed(q, err)
	}
	v := make(values, columns)
	for {
		err = rows.Next(v)
		if err != nil {
			break
		}
		if err = f(v); err != nil {
			break
		}
	}
	if err == io.EOF {
		err = nil
	}
	return failed(q, errors.Join(err, rows.Close()))
}

// row runs q and gives its first row, nil if there is none.
func (c *conn) row(q string, columns int, args ...any) (values, error) {
	var first values
	err := c.each(q, columns, func(v values) error {
		if first == nil {
			first = append(first, v...)
		}
		return nil
	}, args...)
	return first, err
}

// values is one row of an answer.
type values []driver.Value

func (v values) int(i int) int64   { n, _ := v[i].(int64); return n }
func (v values) bool(i int) bool   { return v.int(i) != 0 }
func (v values) text(i int) string { s, _ := v[i].(string); return s }

// blob keeps nil and empty apart; the driver gives an empty blob as nil bytes.
func (v values) blob(i int) []byte {
	b, ok := v[i].([]byte)
	if ok && b == nil {
		return []byte{}
	}
	return b
}

// failed names the step in an error of SQLite, and makes it session.ErrFull
// when the store cannot write now but may later.
func failed(step string, err error) error {
	if err == nil {
		return nil
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	if len(step) > 40 {
		step = step[:40]
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY:
		if !errors.Is(err, session.ErrFull) {
			return fmt.Errorf("%w: %s: %w", session.ErrFull, step, err)
		}
		return err
	}
	return fmt.Errorf("%s: %w", step, err)
}

// torn reports an error of the disk, after which the log must be moved into
// the database before it is written to again: see Store.mend.
func torn(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_IOERR
}
