package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"coxswain/loop"
	"coxswain/session"
	"coxswain/tools"
)

// toolbox joins the tools to the loop: it knows both, they do not know each
// other. Its methods may be called from any goroutine.
type toolbox struct {
	set   *tools.Set
	specs []loop.ToolSpec
	files *workspaces
	log   *slog.Logger

	mu   sync.Mutex
	over map[jobName]func(loop.ToolResult, bool) // told once of a job's end
}

type jobName struct{ session, id string }

func newToolbox(c Config, files *workspaces, life *tools.Life, log *slog.Logger) *toolbox {
	b := &toolbox{files: files, log: log, over: map[jobName]func(loop.ToolResult, bool){}}
	b.set = tools.New(tools.Options{
		TerminalAllow: c.Tools.Terminal.Allow, TerminalTimeout: duration(c.Tools.Terminal.Timeout), OnEnd: b.ended, Log: log, Life: life,
		Extra: []tools.Tool{tools.Wait()},
	})
	for _, t := range b.set.Tools() {
		b.specs = append(b.specs, loop.ToolSpec{
			Name: t.Name, Description: t.Description, Schema: t.Schema, Pure: t.Pure, Polls: t.Name == "job",
		})
	}
	return b
}

// Specs implements loop.Toolbox.
func (b *toolbox) Specs() []loop.ToolSpec { return b.specs }

// Start implements loop.Toolbox.
func (b *toolbox) Start(ctx context.Context, c loop.ToolCall) loop.Running {
	dir, err := b.files.dir(c.Key)
	if err != nil {
		b.log.ErrorContext(ctx, "no workspace", "session", c.Key.String(), "err", err)
		return failedCall(loop.ToolResult{Body: textNoWorkspace, Failed: true})
	}
	platform, account := c.Person.Known(c.Key)
	return running{b.set.Start(ctx, tools.Call{
		ID: c.Call.ID, Name: c.Call.Name, Args: json.RawMessage(c.Call.Args), Session: c.Key.String(), Dir: dir,
		Admin: c.Admin, Sends: c.Sends, SendMost: c.SendMost, Person: fmt.Sprintf("%s:%s", platform, account),
	})}
}

// running is a call of the tools as the loop sees it.
type running struct{ *tools.Running }

// Result implements loop.Running.
func (r running) Result() loop.ToolResult {
	res := r.Running.Result()
	out := loop.ToolResult{Body: res.Body, Failed: res.Failed}
	for _, f := range res.Files {
		out.Files = append(out.Files, session.File{Path: f.Path, Name: f.Name, Caption: f.Caption})
	}
	return out
}

// failedCall is a call that never began.
type failedCall loop.ToolResult

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (failedCall) Done() <-chan struct{}     { return closed }
func (f failedCall) Result() loop.ToolResult { return loop.ToolResult(f) }
func (failedCall) Tail() string              { return "" }

// Adopt implements loop.Toolbox.
func (b *toolbox) Adopt(key session.Key, id string, turn int64, r loop.Running, over func(loop.ToolResult, bool)) bool {
	run, ok := r.(running)
	if !ok {
		return false
	}
	name := jobName{key.String(), id}
	b.mu.Lock()
	b.over[name] = over
	b.mu.Unlock()
	if b.set.Jobs().Adopt(name.session, id, turn, run.Running) {
		return true
	}
	b.mu.Lock()
	delete(b.over, name)
	b.mu.Unlock()
	return false
}

// ended hears of every job's end, from the job's goroutine.
func (b *toolbox) ended(key, id string, _ int64, r tools.Result, polled bool) {
	name := jobName{key, id}
	b.mu.Lock()
	over := b.over[name]
	delete(b.over, name)
	b.mu.Unlock()
	if over != nil {
		over(loop.ToolResult{Body: r.Body, Failed: r.Failed}, polled)
	}
}

// Kill implements loop.Toolbox.
func (b *toolbox) Kill(key session.Key, id string) { b.set.Jobs().Kill(key.String(), id) }

// KillAll implements loop.Toolbox.
func (b *toolbox) KillAll(key session.Key) { b.set.Jobs().KillAll(key.String()) }
