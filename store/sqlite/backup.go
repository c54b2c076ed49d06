package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a compact copy of the store as it is now to a new file, beside
// running work, and syncs it. The copy opens as a store. If it fails, nothing
// is left at path.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	select {
	case <-s.stop:
		return errClosed
	default:
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	// SQLite fills an empty file; made here it is nobody else's to read.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf(wordsBackup, path)
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(path)
		}
	}()
	c, err := dial(ctx, s.path, false)
	if err != nil {
		return err
	}
	defer c.close()
	q, err := c.prepare(`VACUUM INTO ?`)
	if err != nil {
		return err
	}
	// The caller's ctx, not c's: this one statement can take long.
	if _, err := q.(driver.StmtExecContext).ExecContext(ctx, c.bind([]any{path})); err != nil {
		return failed("backup", err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
