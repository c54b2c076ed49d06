package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	terminalText   = "Run a shell command in the workspace. Each call is a new shell there, without input; processes left in the background end with the call."
	terminalSchema = `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1,"description":"seconds"}},"required":["command"],"additionalProperties":false}`

	// maxCommand stays below the kernel's 128 KiB for a single argument (MAX_ARG_STRLEN).
	maxCommand = 100 << 10
	tmpDir     = ".tmp"
)

type terminalArgs struct {
	Command string `json:"command"`
	Timeout *int   `json:"timeout"`
}

func (s *Set) terminal() Tool {
	return define(s, "terminal", terminalText, terminalSchema, false, s.runTerminal)
}

func (s *Set) runTerminal(ctx context.Context, c Call, a terminalArgs) output {
	if !s.mayUseTerminal(c) {
		return failf(wordNotPermitted)
	}
	timeout := s.opt.TerminalTimeout
	switch {
	case strings.TrimSpace(a.Command) == "":
		return failf(wordEmptyCommand)
	case strings.IndexByte(a.Command, 0) >= 0:
		return failf(wordNulCommand)
	case len(a.Command) > maxCommand:
		return failf(wordLongCommand, len(a.Command), maxCommand)
	}
	if a.Timeout != nil {
		if *a.Timeout < 1 {
			return outOfRange("terminal", "timeout", 1, max(1, int(timeout/time.Second)))
		}
		if *a.Timeout < int(timeout/time.Second) { // more than the cap is the cap, and the end says so
			timeout = time.Duration(*a.Timeout) * time.Second
		}
	}
	if wrong := makeTmp(c.Dir); wrong != "" {
		return failf("%s", wrong)
	}
	out := &capture{}
	e := run(ctx, command{
		argv:    []string{s.shell, "-c", a.Command},
		dir:     c.Dir,
		env:     shellEnv(c.Dir, os.Getenv),
		timeout: timeout,
		grace:   s.grace,
		hard:    s.hard,
		out:     out,
		show:    c.Progress,
		life:    s.opt.Life,
	})
	return shellOutput(out, e, timeout)
}

// mayUseTerminal is asked at every call: a person who lost the right in mid-turn is refused.
func (s *Set) mayUseTerminal(c Call) bool {
	if c.Admin {
		return true
	}
	_, id, _ := strings.Cut(c.Person, ":")
	return slices.ContainsFunc(s.opt.TerminalAllow, func(allowed string) bool {
		return allowed == "*" || allowed != "" && (allowed == c.Person || allowed == id)
	})
}

// shellEnv is the whole environment of a command, but for its marks. It names what goes in;
// nothing else of the gateway's environment, where the tokens are, is handed to a child. That
// alone does not hide them: a command of the same user can read /proc/PPID/environ unless the
// process called Shield, and as root even then. PATH and LANG are copied because they describe
// the host: relative parts of PATH are left out.
func shellEnv(dir string, getenv func(string) string) []string {
	var paths []string
	for _, p := range filepath.SplitList(getenv("PATH")) {
		if filepath.IsAbs(p) {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		paths = []string{"/usr/local/bin", "/usr/bin", "/bin"}
	}
	lang := getenv("LANG")
	if lang == "" {
		lang = "C.UTF-8"
	}
	return []string{
		"PATH=" + strings.Join(paths, string(filepath.ListSeparator)),
		"HOME=" + dir,
		"LANG=" + lang,
		"TERM=dumb",
		"TMPDIR=" + filepath.Join(dir, tmpDir),
	}
}

// makeTmp gives each workspace a temporary directory of its own: /tmp is everybody's.
func makeTmp(dir string) string {
	ws, wrong := openWorkspace(dir)
	if wrong != "" {
		return wrong
	}
	defer ws.close()
	if err := ws.root.MkdirAll(tmpDir, 0o700); err != nil {
		return pathWrong(tmpDir, err)
	}
	return ""
}

// shellOutput puts how it ended below what was printed.
func shellOutput(out *capture, e ending, timeout time.Duration) output {
	if e.err != nil {
		return failf(wordNoStart, reason(e.err))
	}
	text, lost := out.text()
	o := output{text: text, lost: lost, failed: true}
	switch {
	case e.why == timedOut:
		o.note = fmt.Sprintf(wordTimedOut, timeout)
	case e.why == killed:
		o.note = wordKilled
	case e.why == shutDown:
		o.note = wordEndedByShutdown
	case e.signal != 0:
		o.note = fmt.Sprintf(wordSignal, unix.SignalName(e.signal))
	default:
		o.note, o.failed = fmt.Sprintf(wordExit, e.code), e.code != 0
	}
	if e.why == ended && e.behind > 0 {
		o.note += fmt.Sprintf(wordLeftBehind, e.behind)
	}
	if e.stuck != 0 {
		o.note += fmt.Sprintf(wordStuck, e.stuck)
	}
	if o.text == "" {
		o.text = wordNoOutput
	}
	return o
}
