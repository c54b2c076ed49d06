package tools

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// The guardian is this program once more, as a small process that does nothing but wait for the
// gateway's death: it holds the reading end of a pipe whose writing end only the gateway has.
// It is started with the first command and serves all. It has a session and a name of its own,
// so Ctrl-C, a service manager's SIGTERM and pkill with the gateway's name do not end it.

// guardianName is the guardian's argv[0], by which Guard knows it.
const guardianName = "coxswain-guardian"

// guardsKnown is set by Guard. Without it this program, started again, would not be a guardian
// but a second gateway; so none is started. It is the one package variable: it says something
// about the program's main, which there is one of.
var guardsKnown atomic.Bool

// Guard must be the first statement of main, before flags are read and anything is opened. In
// a guardian it never returns; in every other process it returns at once. Without it commands
// run all the same, but a killed gateway then takes only their shells with it, and the rest
// lives on until the next process begins (OpenLife).
func Guard() {
	if len(os.Args) == 1 && os.Args[0] == guardianName {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
		keepGuard(os.Stdin)
		os.Exit(0)
	}
	guardsKnown.Store(true)
}

// dismissed is what an orderly gateway writes last. An end of the pipe without it is a death.
const dismissed = "dismissed\n"

// keepGuard is the guardian: it reads the mark, waits for the pipe's end, and kills.
func keepGuard(pipe io.Reader) {
	r := bufio.NewReader(pipe)
	mark, err := r.ReadString('\n')
	mark = strings.TrimSuffix(mark, "\n")
	if token, ok := strings.CutPrefix(mark, lifeName+"="); err != nil || !ok || !isToken(token) {
		return
	}
	if last, _ := io.ReadAll(r); string(last) == dismissed {
		return
	}
	// Longer than a call waits for its own: nobody waits for a guardian.
	endSurvivors(mark, 30*time.Second)
}

// A guardian as the gateway sees it. A nil one is dead.
type guardian struct {
	pipe   *os.File
	cmd    *exec.Cmd
	exited chan struct{}
}

// startGuardian returns nil when it cannot be: then a shell dies with the gateway by the
// kernel's own hand (Pdeathsig), and its children by the next process's.
func startGuardian(mark string) *guardian {
	if !guardsKnown.Load() {
		return nil
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer pr.Close()
	if _, err := pw.WriteString(mark + "\n"); err != nil { // far less than a pipe holds
		pw.Close()
		return nil
	}
	g := &guardian{pipe: pw, exited: make(chan struct{}), cmd: &exec.Cmd{
		Path: "/proc/self/exe", // also when the file was replaced by an upgrade
		Args: []string{guardianName},
		Env:  []string{"GOMAXPROCS=1"},
		Dir:  "/", Stdin: pr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	if err := g.cmd.Start(); err != nil {
		pw.Close()
		return nil
	}
	go func() {
		defer close(g.exited)
		_ = g.cmd.Wait()
	}()
	return g
}

func (g *guardian) alive() bool {
	if g == nil {
		return false
	}
	select {
	case <-g.exited:
		return false
	default:
		return true
	}
}

// dismiss ends the guardian without a look at the processes, and waits for it.
func (g *guardian) dismiss() {
	if g == nil {
		return
	}
	_, _ = g.pipe.WriteString(dismissed)
	_ = g.pipe.Close()
	if !waitFor(g.exited, killWait) {
		_ = g.cmd.Process.Kill()
		<-g.exited
	}
}
