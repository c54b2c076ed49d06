package tools

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file holds the only place that starts a process. Its rules:
//
//	the environment is built from nothing, never from the gateway's own;
//	stdin is /dev/null and there is no controlling terminal to read a password from;
//	when run returns, the process and all it started are dead, whoever holds the pipe.

const (
	// markName is the variable a call's processes are found by.
	markName = "COXSWAIN_CALL" // of one call; lifeName is of one process
	// killWait bounds the wait for killed processes; one in uninterruptible sleep (a dead
	// network disk) must not hold up /stop.
	killWait = 2 * time.Second
	// drainWait is for output still in the pipe after all writers are dead; drainKilled the
	// same after a kill, where promptness counts more than the last bytes.
	drainWait   = time.Second
	drainKilled = 25 * time.Millisecond
	tickEvery   = 100 * time.Millisecond // how often new output is shown
)

// A command is one process to run.
type command struct {
	argv    []string
	dir     string
	env     []string // complete, but for the mark
	timeout time.Duration
	grace   time.Duration     // between SIGTERM and SIGKILL
	hard    <-chan struct{}   // closed: no more grace
	out     *capture          // stdout and stderr, merged in the order written
	show    func(tail string) // new output, at most every tickEvery; may be nil, may block
	life    *Life             // whose processes these are; may be nil
	drain   time.Duration     // how long output may come after the end; 0: drainWait
}

type endReason int

const (
	ended endReason = iota // by itself
	timedOut
	killed   // the context ended
	shutDown // the context ended with ErrShutdown
)

// An ending says how a command ended.
type ending struct {
	why    endReason
	code   int            // exit code, when signal is 0
	signal syscall.Signal // that ended the process, also when it was not ours
	behind int            // background processes ended with it
	stuck  int            // pid of a process that could not be killed
	err    error          // it never started
}

// run starts the command and waits for its end. A context that ends kills everything at once
// with SIGKILL; a timeout, and a context ended by ErrShutdown, send SIGTERM first.
func run(ctx context.Context, c command) ending {
	if ctx.Err() != nil {
		return ending{why: killed}
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return ending{err: err}
	}
	defer pr.Close()
	mark := markName + "=" + rand.Text()
	cmd := exec.Command(c.argv[0], c.argv[1:]...) // not CommandContext: killing is done here
	cmd.Dir = c.dir
	cmd.Env = append([]string{mark}, c.env...)
	cmd.Stdout, cmd.Stderr = pw, pw
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	life, guarded := c.life.enlist()
	if life != "" {
		cmd.Env = append(cmd.Env, life)
	}
	if !guarded {
		// With a guardian the shell must outlive us for a moment: children without the mark
		// are found by their parents.
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}

	p := startProcess(cmd)
	pw.Close()
	if p.err != nil {
		return ending{err: p.err}
	}
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(c.out, pr) }()
	hideOutput := c.showOutput()
	defer hideOutput() // last: who is shown output may block, and by then all are dead

	fam := newFamily(cmd.Process.Pid, mark)
	e := ending{why: c.wait(ctx, p)}
	if e.why == timedOut || e.why == shutDown {
		c.term(ctx, e.why, fam, p, read)
	}
	e.behind, e.stuck = fam.destroy(killWait)

	c.drainOutput(ctx, e.why, read)
	pr.Close() // a writer that got away must not hold the call
	<-read
	close(p.swept)
	if waitFor(p.reaped, killWait) {
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			e.signal = status.Signal()
		} else {
			e.code = status.ExitStatus()
		}
	}
	return e
}

// wait waits until the process ends or must end. It does nothing else: whoever makes it do
// more delays a /stop.
func (c command) wait(ctx context.Context, p *leader) endReason {
	timeout := time.NewTimer(c.timeout)
	defer timeout.Stop()
	select {
	case <-p.exited:
		return ended
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrShutdown) {
			return shutDown
		}
		return killed
	case <-timeout.C:
		return timedOut
	}
}

// showOutput shows new output until the function it returns is called. That waits for a show
// that is under way, and passes on its panic.
func (c command) showOutput() (stop func()) {
	if c.show == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	var failure any
	go func() {
		defer close(done)
		defer func() { failure = recover() }()
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if tail, fresh := c.out.last(); fresh {
					c.show(tail)
				}
			}
		}
	}()
	return func() {
		close(over)
		<-done
		if failure != nil {
			panic(failure)
		}
	}
}

// drainOutput waits for what is still in the pipe. A process that is none of ours to find may
// hold it open; a stop that comes while we wait for it is not made to wait.
func (c command) drainOutput(ctx context.Context, why endReason, read <-chan struct{}) {
	if why != killed {
		stop := ctx.Done()
		if why == shutDown {
			stop = nil // ctx has ended already
		}
		limit := time.NewTimer(cmp.Or(c.drain, drainWait))
		defer limit.Stop()
		select {
		case <-read:
			return
		case <-limit.C:
			return
		case <-stop:
		}
	}
	waitFor(read, drainKilled)
}

// term is the ladder's first step: SIGTERM to all, then as long as grace for the leader to
// end and the output to close. A kill during a timeout's grace cuts it short.
func (c command) term(ctx context.Context, why endReason, fam *family, p *leader, read <-chan struct{}) {
	fam.signal(syscall.SIGTERM)
	fam.signal(syscall.SIGCONT) // a stopped process handles SIGTERM only when it goes on
	stop := ctx.Done()
	if why == shutDown {
		stop = nil // ctx has ended already
	}
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	for _, over := range []<-chan struct{}{p.exited, read} {
		select {
		case <-over:
		case <-stop:
			return
		case <-c.hard:
			return
		case <-grace.C:
			return
		}
	}
}

// A leader is the started process. Its pid stays taken until swept is closed, because it is
// reaped only then: signals sent to the pid or its group cannot reach a stranger.
type leader struct {
	err    error
	exited chan struct{}
	swept  chan struct{}
	reaped chan struct{}
}

// startProcess starts cmd on a thread that stays until the process is dead: Pdeathsig, where it
// is set, fires when the thread that forked ends, not when the gateway does.
func startProcess(cmd *exec.Cmd) *leader {
	p := &leader{exited: make(chan struct{}), swept: make(chan struct{}), reaped: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.err = cmd.Start()
		close(started)
		if p.err != nil {
			return
		}
		awaitExit(cmd.Process.Pid)
		close(p.exited)
		<-p.swept
		_ = cmd.Wait() // the status is read from ProcessState
		close(p.reaped)
	}()
	<-started
	return p
}

// awaitExit returns when the process has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// waitFor waits for ch, no longer than d, and says whether it was closed.
func waitFor(ch <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
		return false
	}
}
