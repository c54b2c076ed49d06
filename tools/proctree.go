package tools

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A family is everything one shell command started, wherever it went. A process belongs to it
// that did not begin before the leader and
//
//	is a descendant of a member, or
//	is in the leader's session or process group, or
//	carries the call's mark in its environment,
//
// so a child that called setsid is found by its parent, and an orphan by its mark. What is
// all three at once, an orphan in a session of its own with a foreign environment, takes a
// pid namespace to catch: the sandbox's job.
type family struct {
	leader int
	start  uint64 // the leader's start time, clock ticks since boot
	mark   []byte // "NAME=value" of the call, unguessable
	known  map[int]uint64
}

// A process is one line of the process table.
type process struct {
	pid, ppid, pgid, sid int
	state                byte
	start                uint64
	size                 uint64 // of its memory; 0 for kernel threads and the dying
	code                 uint64 // where its code begins; 0 while it is in execve
	env                  uint64 // bytes of its environment; 0 also while it is in execve
}

func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// newFamily is called while the leader lives or is not reaped, so its pid means the leader.
func newFamily(leader int, mark string) *family {
	f := &family{leader: leader, mark: []byte(mark), known: map[int]uint64{}}
	if p, ok := readProcess(leader); ok {
		f.start = p.start
	}
	f.known[leader] = f.start
	return f
}

// members returns the living processes of the family, and how many others could not be told
// because they were in the middle of an execve. It reaps dead ones that have become children
// of this process (as the first process of a container gets them).
func (f *family) members() (alive []process, unsure int) {
	table := processTable()
	self := os.Getpid()
	in := make(map[int]bool, len(f.known))
	var queue []int
	children := make(map[int][]process)
	reapers := reapersOf(self, table)
	add := func(p process) {
		if p.pid == self || p.pid == 1 || in[p.pid] {
			return
		}
		in[p.pid] = true
		f.known[p.pid] = p.start
		queue = append(queue, p.pid)
	}
	for _, p := range table {
		if p.start < f.start {
			continue
		}
		children[p.ppid] = append(children[p.ppid], p)
		start, known := f.known[p.pid]
		switch {
		case known && start == p.start, p.sid == f.leader, p.pgid == f.leader:
			add(p)
		case !p.dead() && reapers[p.ppid]:
			switch hasMark(p.pid, f.mark) {
			case marked:
				add(p)
			case midExec:
				unsure++
			}
		}
	}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		for _, p := range children[pid] {
			add(p)
		}
	}
	for _, p := range table {
		switch {
		case !in[p.pid]:
		case !p.dead():
			alive = append(alive, p)
		case p.ppid == self && p.pid != f.leader:
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
	return alive, unsure
}

// reapersOf returns who a process of this one's can be handed to when its parent ends: the
// kernel picks the nearest living ancestor that reaps, or the first process. Only children of
// these need be asked for the mark; everybody else is found, or not, with its parent.
func reapersOf(self int, table []process) map[int]bool {
	parent := make(map[int]int, len(table))
	for _, p := range table {
		parent[p.pid] = p.ppid
	}
	reapers := map[int]bool{0: true, 1: true} // 0: a reaper outside of our pid namespace
	for pid := self; !reapers[pid]; pid = parent[pid] {
		reapers[pid] = true
	}
	return reapers
}

// signal sends sig to the whole family, once to each: a handler must not run twice.
func (f *family) signal(sig syscall.Signal) {
	alive, _ := f.members()
	_ = syscall.Kill(-f.leader, sig)
	for _, p := range alive {
		if p.pgid != f.leader {
			_ = syscall.Kill(p.pid, sig)
		}
	}
}

// destroy kills the family and returns how many members besides the leader were alive, and
// the pid of one that would not die within wait (0: all are gone). The group is stopped
// before it is looked at: stopped processes do not fork away, and their children keep the
// parents by which they are found. Where there was something to kill, two looks in a row must
// find nothing: one alone can miss the child of a process that forked and ended meanwhile.
func (f *family) destroy(wait time.Duration) (others, stuck int) {
	_ = syscall.Kill(-f.leader, syscall.SIGSTOP)
	pause := time.NewTicker(time.Millisecond) // SIGKILL takes effect when the victim is next scheduled
	defer pause.Stop()
	var deadline time.Time // counts from the first kill: a look may be slow on a busy machine
	counted := map[int]bool{f.leader: true}
	for clean := 0; ; {
		alive, unsure := f.members()
		_ = syscall.Kill(-f.leader, syscall.SIGKILL)
		dying := 0
		for _, p := range alive {
			if !counted[p.pid] {
				counted[p.pid] = true
				others++
			}
			if err := syscall.Kill(p.pid, syscall.SIGKILL); errors.Is(err, syscall.EPERM) {
				stuck = p.pid // runs as somebody else (sudo): waiting will not help
				continue
			}
			dying++
		}
		if dying == 0 && unsure == 0 {
			if clean++; clean == 2 || deadline.IsZero() {
				return others, stuck
			}
			continue
		}
		clean = 0
		if deadline.IsZero() {
			deadline = time.Now().Add(wait)
		} else if time.Now().After(deadline) {
			if dying > 0 {
				stuck = alive[0].pid
			}
			return others, stuck
		}
		// They die when they are next scheduled: a look at everything would take the
		// processor from them.
		for <-pause.C; anyAlive(alive) && time.Now().Before(deadline); {
			<-pause.C
		}
	}
}

// anyAlive asks only for processes that are known: cheap, where a look at all
// of /proc takes a millisecond of CPU.
func anyAlive(ps []process) bool {
	for _, p := range ps {
		if q, ok := readProcess(p.pid); ok && q.start == p.start && !q.dead() {
			return true
		}
	}
	return false
}

// processTable reads /proc once. Without /proc it is empty and only the group is killed.
func processTable() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	var table []process
	for {
		// In small steps, so that a process is read soon after it is listed: the kernel lists
		// by rising pid, and what forks meanwhile is mostly still ahead.
		names, err := dir.Readdirnames(64)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				if p, ok := readProcess(pid); ok {
					table = append(table, p)
				}
			}
		}
		if err != nil {
			return table
		}
	}
}

// readProcess parses /proc/PID/stat (proc(5)): pid (comm) state ppid pgrp session ..., field
// 22 is the start time, 23 the size, 26 the begin of the code, 50 and 51 the bounds of the
// environment. comm may hold spaces and brackets, so fields count from the last ')'.
func readProcess(pid int) (process, bool) {
	var buf [2048]byte
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return process{}, false
	}
	return parseStat(pid, buf[:n])
}

func parseStat(pid int, stat []byte) (process, bool) {
	at := bytes.LastIndexByte(stat, ')')
	if at < 0 {
		return process{}, false
	}
	f := bytes.Fields(stat[at+1:]) // f[0] is field 3
	if len(f) < 49 {
		return process{}, false
	}
	field := func(n int) uint64 { v, _ := strconv.ParseUint(string(f[n-3]), 10, 64); return v }
	return process{
		pid: pid, state: f[0][0], ppid: int(field(4)), pgid: int(field(5)), sid: int(field(6)),
		start: field(22), size: field(23), code: field(26), env: field(51) - field(50),
	}, true
}

type markState int

const (
	unmarked markState = iota
	marked
	midExec // not to be told now
)

// hasMark looks for the mark in a process's environment. Not readable means not ours: a
// process of another user could not be signalled either. In an execve there is a moment in
// which the old environment is gone and the new one not yet there, or there with no length
// (the kernel's create_elf_tables; the code's address is set after it). On a busy machine it
// is long enough to be met.
func hasMark(pid int, mark []byte) markState {
	if len(mark) == 0 {
		return unmarked
	}
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return unmarked
	}
	defer f.Close()
	const most = 1 << 20 // the kernel's usual limit is 2 MiB for arguments and environment
	env, _ := io.ReadAll(io.LimitReader(f, most))
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, mark) {
			return marked
		}
	}
	// No mark counts only when what was read is all there is.
	p, ok := readProcess(pid)
	switch {
	case !ok || p.dead() || p.size == 0:
		return unmarked
	case p.code == 0, uint64(len(env)) < min(p.env, most):
		return midExec
	}
	return unmarked
}
