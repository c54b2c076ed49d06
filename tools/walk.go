package tools

import (
	"context"
	"io/fs"
	"os"
	"slices"
)

// skippedDirs are walked only when a call names them: machine-made, large, and hardly ever
// what is looked for.
var skippedDirs = []string{".git", "node_modules", spillDir, tmpDir}

// A walker goes through a directory tree in name order, without following links, in bounded
// memory: one directory's entries per level.
type walker struct {
	root    *os.Root
	depth   int  // levels below the start; 1 is the directory alone
	cut     bool // a directory held more than maxDirEntries
	unread  int  // directories that could not be read
	visit   func(rel string, e fs.DirEntry) bool
	stopped bool // visit returned false
}

// walk calls visit for everything below rel until it returns false or ctx ends. An error is
// that of the start directory; one further down is counted and passed over.
func (w *walker) walk(ctx context.Context, rel string) error { return w.dir(ctx, rel, 1) }

func (w *walker) dir(ctx context.Context, rel string, level int) error {
	entries, more, err := readDir(w.root, rel, maxDirEntries)
	if err != nil {
		return err
	}
	w.cut = w.cut || more
	for _, e := range entries {
		if ctx.Err() != nil || w.stopped {
			return nil
		}
		at := below(rel, e.Name())
		if !w.visit(at, e) {
			w.stopped = true
			return nil
		}
		if e.IsDir() && level < w.depth && !slices.Contains(skippedDirs, e.Name()) {
			if err := w.dir(ctx, at, level+1); err != nil {
				w.unread++
			}
		}
	}
	return nil
}
