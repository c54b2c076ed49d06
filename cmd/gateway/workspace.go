package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"coxswain/session"
)

// workspaces are the directories in which sessions keep their files: one a
// session, below workspace.dir. Safe for any goroutine.
type workspaces struct {
	root string
	// shared is the directory that a session's profile names for all its chats;
	// "" = one of its own.
	shared func(session.Key) string
}

// newWorkspaces makes the directories that hold them.
func newWorkspaces(c Config) (*workspaces, error) {
	for name, p := range c.Profiles {
		if p.Workspace != "" {
			if err := os.MkdirAll(p.Workspace, 0o700); err != nil {
				return nil, fmt.Errorf("profiles.%s.workspace: %w", name, err)
			}
		}
	}
	root, err := filepath.Abs(c.Workspace.Dir)
	if err != nil {
		return nil, fmt.Errorf("workspace.dir: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("workspace.dir: %w", err)
	}
	if err := unix.Access(root, unix.W_OK); err != nil { // a read-only mount too
		return nil, fmt.Errorf(textFilesUnwritable, root, err)
	}
	return &workspaces{root: root, shared: c.workspaceOf}, nil
}

// dir is a session's directory; it is made if it is not there. Its name is
// ours: what a platform calls its chats is never a path.
func (w *workspaces) dir(key session.Key) (string, error) {
	dir := filepath.Join(w.root, dirName(key))
	if shared := w.shared(key); shared != "" {
		dir = shared
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make workspace: %w", err)
	}
	return dir, nil
}

// open opens a file of a session's workspace for reading. A path may come from a
// tool: it cannot leave the workspace, and a pipe is refused, not waited for.
func (w *workspaces) open(_ context.Context, key session.Key, path string) (io.ReadCloser, int64, error) {
	dir, err := w.dir(key)
	if err != nil {
		return nil, 0, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("open workspace: %w", err)
	}
	defer root.Close() // what was opened in it stays open
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open file: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, 0, fmt.Errorf("open file: %w", err)
	}
	return f, info.Size(), nil
}

// remove deletes a session's own directory with all that is in it; one that its
// profile shares stays.
func (w *workspaces) remove(key session.Key) error {
	if err := os.RemoveAll(filepath.Join(w.root, dirName(key))); err != nil {
		return fmt.Errorf("delete workspace: %w", err)
	}
	if err := os.RemoveAll(w.pictures(key)); err != nil {
		return fmt.Errorf("delete pictures: %w", err)
	}
	return nil
}

// removeOld is remove, but what was changed since a time stays.
func (w *workspaces) removeOld(key session.Key, before time.Time) error {
	for _, dir := range []string{filepath.Join(w.root, dirName(key)), w.pictures(key)} {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("delete files: %w", err)
		}
		err = errors.Join(emptyOld(root, before), root.Close())
		if err == nil {
			err = os.Remove(dir) // if it is empty
		}
		if err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("delete files: %w", err)
		}
	}
	return nil
}

// changed is when a file's content, name or owner was last changed. Unlike the
// time of its content, which an unpacked archive brings along, no tool sets it.
func changed(root *os.Root, path string) (time.Time, error) {
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(root.Name(), path), &st); err != nil {
		return time.Time{}, err
	}
	return time.Unix(st.Ctim.Unix()), nil
}

// emptyOld removes what was not changed since a time, and directories that are
// empty then. No link is followed: what a link names may be another session's.
func emptyOld(root *os.Root, before time.Time) error {
	var dirs []string
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		at, err := changed(root, path)
		if err != nil || at.After(before) {
			return err
		}
		return root.Remove(path)
	})
	for _, path := range slices.Backward(dirs) {
		if path == "." {
			continue
		}
		if e := root.Remove(path); e != nil && !errors.Is(e, unix.ENOTEMPTY) && !errors.Is(e, unix.EEXIST) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// dirName keeps ids of ordinary letters readable and hashes all others.
func dirName(key session.Key) string {
	s := key.String()
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r == ':':
			return '.'
		}
		return -1
	}, s)
	if len(plain) == len(s) && len(plain) <= 100 && !strings.Contains(plain, "..") {
		return plain
	}
	sum := sha256.Sum256([]byte(s))
	return string(key.Platform) + "." + hex.EncodeToString(sum[:12])
}

// maxFile is the largest file taken in: Telegram gives bots 20 MB at most.
const maxFile = 20 << 20

// save stores a file that came with a message in the session's inbox/ under a
// name of ours; name only lends its ending.
func (w *workspaces) save(_ context.Context, key session.Key, name string, r io.Reader) (string, int64, error) {
	path, n, err := w.saveOnce(key, name, r)
	if errors.Is(err, fs.ErrNotExist) { // retention removed the directory just now; nothing was read yet
		path, n, err = w.saveOnce(key, name, r)
	}
	return path, n, err
}

func (w *workspaces) saveOnce(key session.Key, name string, r io.Reader) (string, int64, error) {
	dir, err := w.dir(key)
	if err != nil {
		return "", 0, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", 0, fmt.Errorf("open workspace: %w", err)
	}
	defer root.Close()
	if err := root.MkdirAll("inbox", 0o700); err != nil {
		return "", 0, fmt.Errorf("make inbox: %w", err)
	}
	sum := sha256.Sum256([]byte(name + time.Now().String()))
	path := "inbox/" + time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(sum[:4]) + ending(name)
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, fmt.Errorf("make file: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(r, maxFile+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && n > maxFile {
		err = fmt.Errorf("over %d bytes", maxFile)
	}
	if err != nil {
		_ = root.Remove(path) // what is left of it helps nobody
		return "", 0, fmt.Errorf("save file: %w", err)
	}
	return path, n, nil
}

// ending is a file name's extension if it is an ordinary one.
func ending(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	if len(ext) < 2 || len(ext) > 10 {
		return ""
	}
	for _, r := range ext[1:] {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
			return ""
		}
	}
	return ext
}
