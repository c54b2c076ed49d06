package tools

import "context"

const (
	writeText   = "Create or replace a file of the workspace. Missing directories are made."
	writeSchema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (s *Set) writeFile() Tool {
	return define(s, "write_file", writeText, writeSchema, false, s.runWrite)
}

func (s *Set) runWrite(ctx context.Context, c Call, a writeArgs) output {
	ws, wrong := openWorkspace(c.Dir)
	if wrong != "" {
		return failf("%s", wrong)
	}
	defer ws.close()
	rel, wrong := ws.resolve(a.Path)
	if wrong != "" {
		return failf("%s", wrong)
	}
	if len(a.Content) > maxWrite {
		return failf(wordWriteTooBig, quote(rel), len(a.Content), maxWrite)
	}
	old, wrong := ws.target(rel)
	if wrong != "" {
		return failf("%s", wrong)
	}
	if ctx.Err() != nil { // the last moment at which stopping leaves everything as it was
		return failf(wordInterrupted, "write_file")
	}
	if wrong := ws.replace(rel, []byte(a.Content), old); wrong != "" {
		return failf("%s", wrong)
	}
	if old == nil {
		return sayf(wordWroteNew, quote(rel), len(a.Content))
	}
	return sayf(wordWroteOver, quote(rel), len(a.Content), old.Size())
}
