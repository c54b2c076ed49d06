//go:build failpoints

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"coxswain/session"
	"coxswain/store/storetest"
)

// wrapStore kills this process with SIGKILL at the point that
// GATEWAY_FAILPOINT names: before:commit.tool:3 is the third time a tool row is
// about to be stored. Which points were passed goes to GATEWAY_FAILPOINT_LOG.
func wrapStore(st session.Store) session.Store {
	want := strings.Split(os.Getenv("GATEWAY_FAILPOINT"), ":")
	n := int64(1)
	if len(want) == 3 {
		v, err := strconv.ParseInt(want[2], 10, 64)
		if err != nil {
			panic(err)
		}
		n = v
	}
	var seen atomic.Int64
	return &storetest.Faulty{Store: st, Hook: func(point string, when storetest.When) storetest.Fault {
		if len(want) == 3 && when.String() == want[0] && point == want[1] && seen.Add(1) == n {
			if path := os.Getenv("GATEWAY_FAILPOINT_LOG"); path != "" {
				f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					fmt.Fprintf(f, "%s %s\n", when, point)
					f.Close()
				}
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				panic(err)
			}
			select {}
		}
		return storetest.None
	}}
}
