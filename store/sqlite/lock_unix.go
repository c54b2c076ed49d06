//go:build unix

package sqlite

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockDir takes the directory for this process. The lock is the kernel's, so
// it goes with the process however it dies; the file and the pid in it stay
// and mean nothing by themselves. Closing the file gives the lock back.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if err != unix.EWOULDBLOCK {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		pid := wordsUnknown
		if text, err := io.ReadAll(io.LimitReader(f, 32)); err == nil && len(text) > 0 {
			pid = strings.TrimSpace(string(text))
		}
		return nil, fmt.Errorf(wordsHeld, pid, dir)
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
