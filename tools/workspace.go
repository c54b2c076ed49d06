package tools

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Rules of this file: the model's paths are data. Every access goes through an os.Root opened
// on the session's workspace, so neither ".." nor a link leads out, whatever changes while we
// look. What is opened is opened without blocking and checked afterwards on the descriptor:
// a FIFO or device never hangs a call.

const (
	maxPath       = 4096    // PATH_MAX
	maxWrite      = 1 << 20 // bytes a file tool writes or edits
	maxDirEntries = 5000    // read of one directory
)

// A workspace is a session's directory, opened for one call.
type workspace struct {
	root *os.Root
	dir  string
}

func openWorkspace(dir string) (*workspace, string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Sprintf(wordNoWorkspace, reason(err))
	}
	return &workspace{root: root, dir: dir}, ""
}

func (w *workspace) close() { _ = w.root.Close() }

// resolve turns a path of a model into one relative to the workspace, or says what is wrong.
// "~/" is the workspace as it is in the shell. A result passes filepath.IsLocal.
func (w *workspace) resolve(arg string) (rel, wrong string) {
	switch {
	case strings.TrimSpace(arg) == "":
		return "", wordPathEmpty
	case len(arg) > maxPath:
		return "", fmt.Sprintf(wordPathLong, len(arg), maxPath)
	case strings.IndexByte(arg, 0) >= 0:
		return "", fmt.Sprintf(wordPathNul, quote(arg))
	}
	p := arg
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = "." + p[1:]
	}
	if filepath.IsAbs(p) {
		inside, ok := relativeTo(w.dir, p)
		if !ok {
			// The shell's pwd shows the workspace with its links resolved.
			if real, err := filepath.EvalSymlinks(w.dir); err == nil {
				inside, ok = relativeTo(real, p)
			}
		}
		if !ok {
			return "", fmt.Sprintf(wordPathOutside, quote(arg))
		}
		p = inside
	}
	p = filepath.Clean(p)
	if !filepath.IsLocal(p) {
		return "", fmt.Sprintf(wordPathOutside, quote(arg))
	}
	return p, ""
}

func relativeTo(dir, p string) (string, bool) {
	rel, err := filepath.Rel(dir, filepath.Clean(p))
	return rel, err == nil && filepath.IsLocal(rel)
}

// openRegular opens a regular file for reading.
func (w *workspace) openRegular(rel string) (*os.File, fs.FileInfo, string) {
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		if errors.Is(err, syscall.ENXIO) { // a socket cannot be opened at all
			return nil, nil, fmt.Sprintf(wordNotRegular, quote(rel), "socket or device")
		}
		return nil, nil, pathWrong(rel, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, pathWrong(rel, err)
	}
	if wrong := regularWrong(rel, info.Mode()); wrong != "" {
		f.Close()
		return nil, nil, wrong
	}
	return f, info, ""
}

func regularWrong(rel string, mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return fmt.Sprintf(wordIsDir, quote(rel))
	}
	return fmt.Sprintf(wordNotRegular, quote(rel), kind(mode))
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}

// readWhole reads a text file of at most limit bytes for editing.
func (w *workspace) readWhole(rel string, limit int64) ([]byte, fs.FileInfo, string) {
	f, info, wrong := w.openRegular(rel)
	if wrong != "" {
		return nil, nil, wrong
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, pathWrong(rel, err)
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Sprintf(wordEditTooBig, quote(rel), max(info.Size(), int64(len(data))), limit)
	}
	return data, info, ""
}

// target looks at what a write would replace: nil when there is nothing. A link is refused,
// because replacing it would leave the file behind it as it was.
func (w *workspace) target(rel string) (fs.FileInfo, string) {
	info, err := w.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	if err != nil {
		return nil, pathWrong(rel, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := w.root.Readlink(rel)
		if err != nil {
			return nil, pathWrong(rel, err)
		}
		return nil, fmt.Sprintf(wordIsLink, quote(rel), quote(to))
	}
	if wrong := regularWrong(rel, info.Mode()); wrong != "" {
		return nil, wrong
	}
	return info, ""
}

// unchanged refuses a write whose text was made from a file that is another one by now: a job
// that runs beside may have written it, and its work would be lost in silence. A write between
// this look and the rename that follows is not seen; that takes a lock both sides honour.
func (w *workspace) unchanged(rel string, seen fs.FileInfo) string {
	now, err := w.root.Lstat(rel)
	if err != nil {
		return pathWrong(rel, err)
	}
	if !os.SameFile(seen, now) || seen.Size() != now.Size() || !seen.ModTime().Equal(now.ModTime()) {
		return fmt.Sprintf(wordChanged, quote(rel))
	}
	return ""
}

// replace writes data to rel in one step: a reader, or a crash, sees the old bytes or the
// new ones. Missing directories are made. old is what is replaced and gives its permissions;
// nil means a new file (0644 less the umask).
func (w *workspace) replace(rel string, data []byte, old fs.FileInfo) string {
	fail := func(err error) string { return fmt.Sprintf(wordCannotWrite, quote(rel), reason(err)) }
	dir := path.Dir(rel)
	if dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return fail(err)
		}
	}
	tmp := path.Join(dir, ".write-"+rand.Text())
	create := fs.FileMode(0o644)
	if old != nil {
		create = 0o600 // never wider than the file it replaces, not even for a moment
	}
	f, err := w.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, create)
	if err != nil {
		return fail(err)
	}
	_, err = f.Write(data)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		// The row that says "wrote" is durable; the bytes must be too.
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = w.root.Rename(tmp, rel)
	}
	if err != nil {
		_ = w.root.Remove(tmp)
		return fail(err)
	}
	return ""
}

// readDir reads one directory, sorted by name; more is true when it holds over limit entries.
func readDir(root *os.Root, rel string, limit int) (entries []fs.DirEntry, more bool, err error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	entries, err = f.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if len(entries) > limit {
		entries, more = entries[:limit], true
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

// pathWrong says what an error about a path means and what to do. It never shows the host's
// absolute paths.
func pathWrong(rel string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf(wordNotFound, quote(rel))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf(wordDenied, quote(rel))
	case errors.Is(err, syscall.EISDIR):
		return fmt.Sprintf(wordIsDir, quote(rel))
	}
	if _, ok := errors.AsType[syscall.Errno](err); !ok {
		// os.Root's refusal has no exported value; every other error here has an errno.
		return fmt.Sprintf(wordPathLinkOut, quote(rel))
	}
	return fmt.Sprintf(wordIOError, quote(rel), reason(err))
}

// reason is the system's word for an error, without paths.
func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "it is not reachable inside the workspace"
}

// looksBinary judges by the first bytes of a file, as git does.
func looksBinary(first []byte) bool { return bytes.IndexByte(first, 0) >= 0 }

func utf16Text(first []byte) bool {
	return bytes.HasPrefix(first, []byte{0xff, 0xfe}) || bytes.HasPrefix(first, []byte{0xfe, 0xff})
}
