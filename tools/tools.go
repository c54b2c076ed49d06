package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"time"
)

const (
	defaultTimeout = 120 * time.Second // of a shell command; Options.TerminalTimeout
	// defaultMaxOutput is 16 KiB: about four thousand tokens, so that twenty results still
	// leave most of a small context window to the conversation.
	defaultMaxOutput = 16 << 10
	minMaxOutput     = 1 << 10 // below it head, cut mark and tail say nothing any more
	// outputReserve stays free for the line a tool adds around a result of full length; the
	// longest, search_files with every limit reached, is under 300 bytes.
	outputReserve = 400
	// defaultGrace lies between SIGTERM and SIGKILL at a timeout or a shutdown: long enough
	// to remove a lock file, short enough for a drain of twenty seconds.
	defaultGrace = 2 * time.Second
)

// ErrShutdown is the cause Close ends calls with. A shell command ended by it gets SIGTERM
// first; every other cause is SIGKILL at once.
var ErrShutdown = errors.New("tools: shutting down")

// A Call is one tool call of a turn. Copies may be passed freely.
type Call struct {
	ID       string          // the model's id; untrusted, names the spill file after cleaning
	Name     string          // the tool
	Args     json.RawMessage // as the model wrote them
	Session  string          // opaque key: jobs belong to it
	Dir      string          // absolute workspace directory of this session; exists
	Admin    bool            // the turn's principal is an admin
	Sends    bool            // files can be sent to the chat of this session
	SendMost int64           // bytes such a file may have there, 0 = maxSend
	Person   string          // platform:userid
	Progress func(tail string)
	// Progress may be nil. It gets the last output of a running call as people may see it (Visible), at most
	// 2 kB, at most ten times a second, one at a time, never after Run returned. It may block:
	// that holds up the result, not the end of what runs.
}

// A Result is what goes into the tool row. Body is final but for the note key: valid UTF-8,
// no terminal control text, at most Options.MaxOutput bytes.
type Result struct {
	Body   string
	Failed bool
	Files  []SentFile // to be sent to the chat together with the row
}

// A Tool is one entry of the list shown to the model. Run may be called from any goroutine,
// several at a time; when ctx ends it returns within milliseconds, and what it started is dead.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Pure        bool // running it again after a crash changes nothing
	Run         func(ctx context.Context, c Call) Result
}

// Options of a Set. The zero value works: nobody but admins may use the terminal.
type Options struct {
	// TerminalAllow names who may run shell commands besides admins: "platform:id", a bare
	// id (any platform's), or "*" for everybody who may talk to the gateway.
	TerminalAllow []string
	// TerminalTimeout is the longest a shell command may run, also as a job; a call may ask
	// for less. Too low kills builds, too high leaves hung commands about. Default 120 s.
	TerminalTimeout time.Duration
	// MaxOutput caps a result's bytes. Higher spends context, lower makes the model read the
	// spill files. Default 16 KiB, at least 1 KiB.
	MaxOutput int
	// OnEnd hears of the end of every adopted call, once, without any lock held, in that
	// call's goroutine. polled: somebody has seen the end or asked for it, wake nobody.
	OnEnd func(session, id string, turn int64, r Result, polled bool)
	// Extra tools follow the built-in ones in the order given. Their results pass the same
	// gate. A name that is taken is a programming error and panics.
	Extra []Tool
	// Life marks the processes of commands, so that they end even if this process is killed
	// with SIGKILL (OpenLife). Default nil: then only their shells do. Close it after the Set.
	Life *Life
	// Log gets panics of tools (never arguments or output). Default: nothing.
	Log *slog.Logger
}

// A Set is the tools of one gateway with its running calls and jobs. All methods may be
// called from any goroutine.
type Set struct {
	opt   Options
	shell string
	grace time.Duration
	tools []Tool

	searchTime time.Duration // of one search_files call

	jobs *Jobs

	hard     chan struct{} // closed when Close has no more time: ladders end at once
	hardOnce sync.Once

	mu     sync.Mutex
	closed bool
	live   map[*Running]struct{}
	wg     sync.WaitGroup // one per Running's goroutine
}

// New builds the tools. It starts nothing.
func New(o Options) *Set {
	if o.TerminalTimeout <= 0 {
		o.TerminalTimeout = defaultTimeout
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultMaxOutput
	}
	o.MaxOutput = max(o.MaxOutput, minMaxOutput)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Set{
		opt:   o,
		shell: "/bin/sh",
		grace: defaultGrace,

		searchTime: maxSearchTimeout,

		jobs: newJobs(o.OnEnd),
		hard: make(chan struct{}),
		live: make(map[*Running]struct{}),
	}
	// Models write bash; sh is the fallback.
	if bash, err := exec.LookPath("bash"); err == nil {
		s.shell = bash
	}
	s.tools = []Tool{
		s.terminal(), s.job(), s.readFile(), s.writeFile(), s.editFile(), s.listFiles(), s.searchFiles(), s.sendFile(),
	}
	for _, t := range o.Extra {
		if _, taken := s.lookup(t.Name); taken {
			panic(fmt.Sprintf("tools: two tools named %q", t.Name))
		}
		run := t.Run
		t.Run = func(ctx context.Context, c Call) Result {
			r := run(ctx, c)
			return s.finish(c, output{text: r.Body, failed: r.Failed})
		}
		s.tools = append(s.tools, t)
	}
	return s
}

// Tools returns the list in its fixed order: the bytes sent to the model must not change
// between requests (I11). The slice is a copy.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Jobs returns the registry of adopted calls.
func (s *Set) Jobs() *Jobs { return s.jobs }

// Close refuses new calls, ends the running ones and the jobs (SIGTERM first), and waits
// for them and their OnEnd. When ctx ends it kills what is left and waits for that, which
// is a matter of milliseconds unless OnEnd or an Extra tool blocks. May be called twice.
func (s *Set) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	for r := range s.live {
		r.cancel(ErrShutdown)
	}
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() { s.wg.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-ctx.Done():
		s.hardOnce.Do(func() { close(s.hard) })
		<-gone
	}
}

func (s *Set) lookup(name string) (Tool, bool) {
	for _, t := range s.tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// output is what a tool hands to finish: text may be cut, note never is.
type output struct {
	text   string
	note   string // one line below the text: exit code, next offset
	failed bool
	lost   int64 // bytes of the output that were not even captured
	whole  bool  // text was a finished result before: do not cut or spill it again
	files  []SentFile
}

func failf(format string, args ...any) output {
	return output{text: fmt.Sprintf(format, args...), failed: true}
}

func sayf(format string, args ...any) output { return output{text: fmt.Sprintf(format, args...)} }

// finish is the one gate between a tool and its row.
func (s *Set) finish(c Call, o output) Result {
	text := cleanTerminal(o.text)
	if !o.whole {
		text = s.limit(c, text, s.opt.MaxOutput-outputReserve, o.lost)
	}
	if note := cleanTerminal(o.note); note != "" {
		if text != "" && text[len(text)-1] != '\n' {
			text += "\n"
		}
		text += note
	}
	return Result{Body: text, Failed: o.failed, Files: o.files}
}

// define ties a tool's schema, its argument struct and its function together. A tool's
// function only ever sees arguments that fit the schema's names and types.
func define[A any](s *Set, name, description, schema string, pure bool, run func(context.Context, Call, A) output) Tool {
	spec := newArgSpec(name, schema)
	return Tool{
		Name:        name,
		Description: description,
		Schema:      json.RawMessage(schema),
		Pure:        pure,
		Run: func(ctx context.Context, c Call) Result {
			var a A
			if wrong := spec.decode(c.Args, &a); wrong != "" {
				return s.finish(c, output{text: wrong, failed: true})
			}
			return s.finish(c, run(ctx, c, a))
		},
	}
}
