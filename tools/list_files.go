package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

const (
	listText   = "List a directory of the workspace (the top by default), with sizes in bytes."
	listSchema = `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer","minimum":1,"maximum":8}},"additionalProperties":false}`

	maxListed = 500 // entries: about the default MaxOutput
	maxDepth  = 8
)

type listArgs struct {
	Path  *string `json:"path"`
	Depth *int    `json:"depth"`
}

func (s *Set) listFiles() Tool {
	return define(s, "list_files", listText, listSchema, true, s.runList)
}

func (s *Set) runList(ctx context.Context, c Call, a listArgs) output {
	arg, depth := ".", 1
	if a.Path != nil && *a.Path != "" {
		arg = *a.Path
	}
	if a.Depth != nil {
		depth = *a.Depth
	}
	if depth < 1 || depth > maxDepth {
		return outOfRange("list_files", "depth", 1, maxDepth)
	}
	ws, wrong := openWorkspace(c.Dir)
	if wrong != "" {
		return failf("%s", wrong)
	}
	defer ws.close()
	rel, wrong := ws.resolve(arg)
	if wrong != "" {
		return failf("%s", wrong)
	}
	var rows []string
	w := &walker{root: ws.root, depth: depth, visit: func(at string, e fs.DirEntry) bool {
		if len(rows) == maxListed {
			return false
		}
		rows = append(rows, listRow(ws, at, e))
		return true
	}}
	if err := w.walk(ctx, rel); err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return failf(wordNotDir, quote(rel))
		}
		return failf("%s", pathWrong(rel, err))
	}
	if ctx.Err() != nil {
		return failf(wordInterrupted, "list_files")
	}
	o := output{text: strings.Join(rows, "\n")}
	if len(rows) == 0 {
		o.text = wordEmptyDir
	}
	var notes []string
	if w.stopped {
		notes = append(notes, fmt.Sprintf(wordListMore, maxListed))
	}
	if w.cut { // said also beside the first: what is shown is not even the first by name
		notes = append(notes, fmt.Sprintf(wordDirMore, maxDirEntries))
	}
	if w.unread > 0 {
		notes = append(notes, fmt.Sprintf(wordListUnread, w.unread))
	}
	o.note = strings.Join(notes, " ")
	return o
}

func listRow(ws *workspace, at string, e fs.DirEntry) string {
	switch mode := e.Type(); {
	case mode.IsDir():
		return shown(at) + "/"
	case mode&fs.ModeSymlink != 0:
		to, err := ws.root.Readlink(at)
		if err != nil {
			return shown(at) + " (symbolic link)"
		}
		return shown(at) + " -> " + shown(to)
	case !mode.IsRegular():
		return fmt.Sprintf("%s (%s)", shown(at), kind(mode))
	}
	// Not DirEntry.Info: that asks by path, past the root.
	info, err := ws.root.Lstat(at)
	if err != nil {
		return shown(at)
	}
	return fmt.Sprintf("%s  %d", shown(at), info.Size())
}
