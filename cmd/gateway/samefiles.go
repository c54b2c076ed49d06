package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"coxswain/session"
)

// Over Redis a session goes on wherever there is a gateway, and its files must be
// there too. So the first gateway puts a file with a random nonce into
// workspace.dir and names it in the store; every other one must find that file in
// its own workspace.dir, or it does not start (issue 4, item 5).

// A filesMark is the document that names the file. It stays with its store:
// store.Copy leaves it out, for another store may be served from another machine.
type filesMark struct {
	File  string `json:"file"`  // its name in workspace.dir
	Nonce string `json:"nonce"` // what stands in it
}

// markMost is how much of the file is looked at: more than a nonce and a line end.
const markMost = 256

// errNoMark says that no gateway has put its file down yet.
var errNoMark = errors.New("no file is named in the store")

// sharesFiles reports whether gateways may share the store: with the embedded one
// there is a single process, and nothing to be proved.
func sharesFiles(st session.Store) bool {
	_, shared := session.WakerOf(st)
	return shared
}

// proveFiles finds the file that the store names in dir; the first gateway of a
// store puts one there.
func proveFiles(ctx context.Context, st session.Store, dir string) error {
	if !sharesFiles(st) {
		return nil
	}
	for {
		m, version, err := readMark(ctx, st)
		if err == nil && m != (filesMark{}) {
			err = m.in(dir)
		} else if err == nil {
			err = markFiles(ctx, st, dir, version)
		}
		// Of two that start at once the store takes one; the other looks again.
		if !errors.Is(err, session.ErrStale) {
			return err
		}
	}
}

// sameFiles looks for the file that the store names. It changes nothing.
func sameFiles(ctx context.Context, st session.Store, dir string) error {
	m, _, err := readMark(ctx, st)
	switch {
	case err != nil:
		return err
	case m == (filesMark{}):
		return errNoMark
	}
	return m.in(dir)
}

// in looks for the file in dir.
func (m filesMark) in(dir string) error {
	// The name comes from the store: it is never a path.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("workspace.dir: %w", err)
	}
	defer root.Close() // it was only read
	// Whoever can write there, an agent's tools too, can put anything in its place: a
	// pipe is not waited for, and of a file no more is read than a nonce can have.
	f, err := root.OpenFile(m.File, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	var data []byte
	if err == nil {
		defer f.Close() // it was only read
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() { // else it is another one
			data, err = io.ReadAll(io.LimitReader(f, markMost))
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf(textFilesAbsent, dir, m.File)
	case err != nil:
		return fmt.Errorf("workspace.dir: %w", err)
	case strings.TrimSpace(string(data)) != m.Nonce:
		return fmt.Errorf(textFilesDiffer, dir, m.File)
	}
	return nil
}

func readMark(ctx context.Context, st session.Store) (m filesMark, version int64, err error) {
	data, version, err := st.Doc(ctx, session.FilesDoc)
	if err != nil {
		return m, 0, fmt.Errorf("read what workspace.dir is: %w", err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &m); err != nil {
			return m, 0, fmt.Errorf("read what workspace.dir is: %w", err)
		}
	}
	return m, version, nil
}

// markFiles makes dir the one that all gateways of the store must see, if the
// document still has the version that was read. ErrStale: another process was
// first, and nothing is left of this try.
func markFiles(ctx context.Context, st session.Store, dir string, version int64) error {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	nonce := hex.EncodeToString(b[:])
	// A name that was never looked for: a network file system may remember for a
	// while that a name is not there. And nobody else's file is written over.
	m := filesMark{File: ".gateway-" + nonce[:8], Nonce: nonce}
	path := filepath.Join(dir, m.File)
	if err := writeDurably(path, nonce+"\n"); err != nil {
		return fmt.Errorf(textFilesUnwritable, dir, cause(err))
	}
	// The file first: whoever reads the store must find it.
	data, err := json.Marshal(m)
	if err == nil {
		err = st.PutDoc(ctx, session.FilesDoc, version, data)
	}
	if errors.Is(err, session.ErrStale) {
		_ = os.Remove(path) // nobody was told of it
	}
	return err
}

// writeDurably makes a file that is there whole or not at all, also after a
// power cut.
func writeDurably(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // half a file helps nobody
		}
	}()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// workspaceCommand is gateway workspace adopt: what workspace.dir names here is
// from now on the directory that all gateways of the store must see.
func workspaceCommand(ctx context.Context, c Config, o options, out io.Writer) error {
	if len(o.words) != 2 || o.words[1] != "adopt" {
		return errors.New(textWorkspaceUsage)
	}
	w, err := newWorkspaces(c)
	if err != nil {
		return err
	}
	if strings.HasPrefix(string(c.Store.URL), "sqlite:") {
		fmt.Fprintln(out, textAdoptNothing)
		return nil
	}
	st, err := openStore(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // all that was written is durable
	_, version, err := readMark(ctx, st)
	if err == nil {
		err = markFiles(ctx, st, w.root, version)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, textAdopted+"\n", w.root)
	return nil
}
