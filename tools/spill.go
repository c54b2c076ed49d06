package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	spillDir = ".out"
	// spillKeep bounds the directory: 64 texts of at most about a megabyte each.
	spillKeep = 64
)

// limit cuts text to limit bytes and saves the whole in the workspace. lost counts what was
// dropped before text was made.
func (s *Set) limit(c Call, text string, limit int, lost int64) string {
	if len(text) <= limit {
		return text
	}
	name, err := spill(c.Dir, c.ID, text)
	if err != nil {
		s.opt.Log.Warn("tool output not saved", "tool", c.Name, "bytes", len(text), "err", err)
	}
	return cut(text, limit, func(n int) string {
		switch all := int64(n) + lost; {
		case err != nil:
			return fmt.Sprintf(wordCutLost, all)
		case lost > 0:
			return fmt.Sprintf(wordCutPart, all, name)
		default:
			return fmt.Sprintf(wordCutSpilled, all, name)
		}
	})
}

// spill writes text to a new file in the workspace and returns its path there. Ids repeat
// between turns with some models, so an existing file is never overwritten.
func spill(dir, id, text string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.Mkdir(spillDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	stem := spillName(id)
	for n := 1; ; n++ {
		name := path.Join(spillDir, stem+".txt")
		if n > 1 {
			name = path.Join(spillDir, fmt.Sprintf("%s-%d.txt", stem, n))
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			_ = root.Remove(name) // half a text would be taken for the whole
			return "", err
		}
		pruneSpills(root, path.Base(name))
		return name, nil
	}
}

// spillName makes a file name of a model's call id.
func spillName(id string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if id != "" && len(id) <= 64 && strings.IndexFunc(id, func(r rune) bool { return !plain(r) }) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call-" + hex.EncodeToString(sum[:8])
}

// pruneSpills removes the oldest spilled texts beyond spillKeep; never the newest one.
// Trouble is ignored: the next spill tries again.
func pruneSpills(root *os.Root, newest string) {
	entries, _, err := readDir(root, spillDir, maxDirEntries)
	if err != nil || len(entries) <= spillKeep {
		return
	}
	type aged struct {
		name string
		info fs.FileInfo
	}
	var all []aged
	for _, e := range entries {
		if e.Name() == newest || !strings.HasSuffix(e.Name(), ".txt") {
			continue
		}
		if info, err := root.Lstat(path.Join(spillDir, e.Name())); err == nil && info.Mode().IsRegular() {
			all = append(all, aged{e.Name(), info})
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for i := 0; i < len(all)-(spillKeep-1); i++ {
		_ = root.Remove(path.Join(spillDir, all[i].name))
	}
}
