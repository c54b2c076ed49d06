package redis

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
)

// A relay stands in front of a primary, for replicas, Sentinels and clients
// alike, and tells them apart by what they say. Cut off, it lets clients alone
// through: the primary goes on for them, and what it acknowledges then no other
// server gets (split brain).
type relay struct {
	Addr string
	to   string
	l    net.Listener
	wg   sync.WaitGroup

	mu     sync.Mutex
	off    bool
	closed bool
	links  map[net.Conn]bool // true: a replica's or a Sentinel's
}

func newRelay(t testing.TB, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Addr: l.Addr().String(), to: to, l: l, links: map[net.Conn]bool{}}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		r.closed = true
		for c := range r.links {
			c.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

// cut drops what is not a client's, from now on.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
	for c, other := range r.links {
		if other {
			c.Close()
		}
	}
}

// pass notes whose a connection is, and reports whether it may go on.
func (r *relay) pass(c net.Conn, other bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links[c] = r.links[c] || other
	return !r.closed && !(r.off && r.links[c])
}

func (r *relay) accept() {
	for {
		in, err := r.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			in.Close()
			continue
		}
		r.wg.Go(func() { r.pump(in, out, in) })
		r.wg.Go(func() { r.pump(out, in, nil) })
	}
}

// pump copies a to b. Of who dialled it reads what it is: in says so.
func (r *relay) pump(a, b, in net.Conn) {
	defer func() {
		a.Close()
		b.Close()
		r.mu.Lock()
		delete(r.links, a)
		r.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for r.pass(a, false) {
		n, err := a.Read(buf)
		if err != nil {
			return
		}
		if in != nil {
			other := bytes.Contains(buf[:n], []byte("REPLCONF")) || strings.Contains(string(buf[:n]), "sentinel-")
			if !r.pass(a, other) {
				return
			}
		}
		if _, err := b.Write(buf[:n]); err != nil {
			return
		}
	}
}
