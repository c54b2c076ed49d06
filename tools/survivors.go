package tools

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file ends what an earlier life of the gateway left running. It kills by one proof only:
// the life's mark stands in the process's environment as a whole entry, or the process descends
// from one in which it does, or is in a session that such a one leads. A mark is 128 random
// bits made for one life, so no text, no name and no other gateway's process can meet it; and
// environments of other users' processes are not readable, unless we are root, whose marks
// are no less random.

// survivors returns the living processes of a life, known ones included, and those that could
// not be told because they were in the middle of an execve. Unlike a family's members they may
// have been handed to any reaper of the machine, so everybody is asked. This process, its
// ancestors and the first process are never among them: a gateway that was started from a
// shell of its earlier life must not end itself.
func survivors(mark string, known map[int]uint64) (alive, unsure []process) {
	table := processTable()
	children := make(map[int][]process, len(table))
	parent := make(map[int]int, len(table))
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
		parent[p.pid] = p.ppid
	}
	spared := map[int]bool{0: true, 1: true}
	for pid := os.Getpid(); !spared[pid]; pid = parent[pid] {
		spared[pid] = true
	}
	in := make(map[int]bool)
	led := make(map[int]bool) // sessions led by one that is found
	var queue []process
	add := func(p process) {
		if !spared[p.pid] && !in[p.pid] {
			in[p.pid] = true
			queue = append(queue, p)
		}
	}
	for _, p := range table {
		start, found := known[p.pid]
		if found = found && start == p.start; !found {
			if p.dead() || spared[p.pid] {
				continue
			}
			switch hasMark(p.pid, []byte(mark)) {
			case marked:
				found = true
			case midExec:
				unsure = append(unsure, p)
			}
		}
		if found {
			led[p.pid] = p.sid == p.pid
			add(p)
		}
	}
	for _, p := range table {
		if led[p.sid] {
			add(p)
		}
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if !p.dead() {
			alive = append(alive, p)
		}
		for _, c := range children[p.pid] {
			add(c)
		}
	}
	return alive, unsure
}

// execMost is far longer than an execve takes. A process that has unmapped its environment
// looks the same for ever, and is not waited for.
const execMost = 100 * time.Millisecond

// endSurvivors kills what lives of a life and returns how many there were, and the pid of one
// that would not die within wait (0: all are gone). All are stopped before any is killed, so
// that none forks away and the parents by which unmarked children are found are still there.
func endSurvivors(mark string, wait time.Duration) (ended, stuck int) {
	known := map[int]uint64{}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	deadline := time.Now().Add(wait)
	asked := map[process]time.Time{} // since when one could not be told
	for clean := 0; clean < 2; {
		alive, doubtful := survivors(mark, known)
		unsure := 0
		for _, p := range doubtful {
			p = process{pid: p.pid, start: p.start}
			if asked[p].IsZero() {
				asked[p] = time.Now()
			}
			if time.Since(asked[p]) < execMost {
				unsure++
			}
		}
		fresh := false
		for _, p := range alive {
			if start, ok := known[p.pid]; !ok || start != p.start {
				known[p.pid], fresh = p.start, true
				ended++
				_ = signalProcess(p, syscall.SIGSTOP)
			}
		}
		late := time.Now().After(deadline)
		switch {
		case fresh && !late:
			clean = 0
			continue // what was forked before the stop is found by the next look
		case len(alive) == 0 && unsure == 0:
			clean++
			continue
		}
		clean, stuck = 0, 0
		for _, p := range alive {
			if err := signalProcess(p, syscall.SIGKILL); errors.Is(err, unix.EPERM) {
				stuck = p.pid
			}
		}
		if late {
			if stuck == 0 && len(alive) > 0 {
				stuck = alive[0].pid
			}
			return ended, stuck
		}
		for <-pause.C; anyAlive(alive) && time.Now().Before(deadline); {
			<-pause.C
		}
	}
	return ended, 0
}

// signalProcess signals the very process that was looked at: the descriptor pins it, so a pid
// that was given anew between the look and the signal is not hit.
func signalProcess(p process, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
		return syscall.Kill(p.pid, sig)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now, ok := readProcess(p.pid); !ok || now.start != p.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, unix.Signal(sig), nil, 0)
}
