package tools

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A gateway that is killed with SIGKILL ends nothing. Its shells' trees are ended by others:
//
//	the guardian (guardian.go), within milliseconds, when there is one and it lives;
//	else the next process that opens the same directory, before it starts anything.
//
// Both find them by the life's mark (survivors.go).

const (
	// lifeName is the variable by which the processes of one life of the gateway are known.
	lifeName = "COXSWAIN_LIFE"
	livesDir = "lives"
)

// A Life is one life of a gateway process. Its tools' processes carry its mark, and its file
// in the gateway's directory is locked as long as the process lives, so that a later one can
// tell a life that is over from one beside it. Methods may be called from any goroutine.
type Life struct {
	mark  string
	path  string
	file  *os.File
	ended int

	mu       sync.Mutex
	used     bool // a process was started with the mark
	closed   bool
	guardian *guardian
}

// OpenLife begins a life whose record is kept below dir, the gateway's own directory (not a
// workspace), and first ends what lives on of earlier ones recorded there: at most two seconds
// each, a few milliseconds in the usual case that nothing does. Lives that are not over, of
// other processes with the same dir, are left alone. To be called once, before the first call
// of a Set; an error means that survivors could not be looked for.
func OpenLife(dir string) (*Life, error) {
	dir = filepath.Join(dir, livesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("tools: make %s: %w", livesDir, err)
	}
	token := rand.Text()
	l := &Life{mark: lifeName + "=" + token, path: filepath.Join(dir, token)}
	// Locked before it has the name by which others look for it: they would take a file that
	// is not locked yet for a life that is over.
	early := filepath.Join(dir, "new-"+token)
	f, err := os.OpenFile(early, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("tools: record a life: %w", err)
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = os.Rename(early, l.path)
	}
	if err != nil {
		f.Close()
		_ = os.Remove(early)
		return nil, fmt.Errorf("tools: record a life: %w", err)
	}
	l.file = f
	if l.ended, err = endLives(dir, token); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Ended is how many processes of earlier lives OpenLife found and killed.
func (l *Life) Ended() int { return l.ended }

// Close ends the life in order, after Set.Close: the guardian goes, and the record. What a
// call left against all care is killed. May be called twice, and on nil.
func (l *Life) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	stuck := 0
	if l.used {
		_, stuck = endSurvivors(l.mark, killWait)
	}
	l.guardian.dismiss()
	if stuck == 0 {
		_ = os.Remove(l.path) // else the next process tries again
	}
	_ = l.file.Close()
}

// enlist is asked before each start of a process: the variable it is to carry ("" without a
// life), and whether a guardian will end it if this process is killed.
func (l *Life) enlist() (mark string, guarded bool) {
	if l == nil {
		return "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.mark, false
	}
	l.used = true
	if !l.guardian.alive() {
		l.guardian = startGuardian(l.mark)
	}
	return l.mark, l.guardian.alive()
}

// endLives ends what is left of the lives recorded in dir that are over.
func endLives(dir, own string) (ended int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("tools: read %s: %w", livesDir, err)
	}
	for _, e := range entries {
		if e.Name() == own || !isToken(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		n, err := endLife(filepath.Join(dir, e.Name()), lifeName+"="+e.Name())
		if errors.Is(err, fs.ErrPermission) {
			continue // another user's, whose processes are not ours to end
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process was quicker
			return ended, fmt.Errorf("tools: end an earlier life: %w", err)
		}
		ended += n
	}
	return ended, nil
}

func endLife(path, mark string) (ended int, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return 0, nil // it goes on
	}
	if err != nil {
		return 0, err
	}
	ended, stuck := endSurvivors(mark, killWait)
	if stuck != 0 {
		return ended, nil // the record stays: the next process tries again
	}
	return ended, os.Remove(path)
}

// isToken reports whether s has the form of rand.Text: base32, 26 characters, 128 bits or more.
// A record with another name proves nothing.
func isToken(s string) bool {
	return len(s) == 26 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
