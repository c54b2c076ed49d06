package tools

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Shield keeps other processes of the same user, commands of the tools above all, from reading
// this process's environment, memory and descriptors through /proc or ptrace: the environment
// a program was started with stays readable there for its whole life, whatever it unsets.
//
// It makes the process not dumpable (prctl(2), PR_SET_DUMPABLE), for itself only: children that
// execute a program are as always. Three consequences: no core dumps; some files of /proc/self,
// such as environ and io, belong to root and are closed to the process itself as well; and a
// debugger needs root. What it does not stop is CAP_SYS_PTRACE: where the gateway runs as root,
// so do its commands, and they read everything. Run it as an ordinary user.
//
// To be called at the start of main, after Guard and before a secret is read.
func Shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("tools: shield the process: %w", err)
	}
	return nil
}
