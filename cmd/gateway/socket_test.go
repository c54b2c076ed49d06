package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestSocketOfTheDead: a command that a killed gateway was just starting holds its
// socket for a moment more. Who connects then is cut off, and that is no gateway:
// the next start is not refused, and takes the socket. One that is there but
// silent, as a stopped one is, still counts.
func TestSocketOfTheDead(t *testing.T) {
	workIn(t)
	c := Defaults()
	if err := os.MkdirAll(c.dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(c.dataDir(), socketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it was killed
	silent := true
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if silent {
				silent = false
				defer conn.Close()
				continue
			}
			conn.Close()
		}
	}()
	if k, err := dial(c); err != nil {
		t.Errorf("one that does not answer: %v; want it to count", err)
	} else {
		_ = k.close()
	}
	if _, err := dial(c); !errors.Is(err, errNoGateway) {
		t.Errorf("one that is gone: %v; want no gateway", err)
	}
	next, err := (&admin{}).listen(c.dataDir())
	if err != nil {
		t.Fatalf("the next start has no socket: %v", err)
	}
	next.Close()
	l.Close()
	<-gone
}
