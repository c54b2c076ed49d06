package redis

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A proxy stands between a store and its server and makes the network fail as
// networks do: the request arrives, the reply does not (F8, F9, F26); or
// another server answers (F21, F39).
type proxy struct {
	addr string // the server's
	l    net.Listener
	wg   sync.WaitGroup

	mu      sync.Mutex
	lose    int                       // replies still to lose
	answers []string                  // said instead of asking the server
	instead []string                  // said instead of what the server answered
	delay   func(n int) time.Duration // of n bytes to the client; nil = none
	conns   map[net.Conn]bool
	closed  bool
}

func newProxy(t testing.TB, addr string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: addr, l: l, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "redis://" + p.l.Addr().String() }

func (p *proxy) close() {
	p.l.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// loseReplies makes the next n replies vanish together with their connection.
func (p *proxy) loseReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = n
}

// answer makes the next requests get these lines, without the server.
func (p *proxy) answer(lines ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = lines
}

// answerLater makes the next requests get these lines after the server has
// done what they ask.
func (p *proxy) answerLater(lines ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.instead = lines
}

// slow delays what goes to the client; reset ends every connection.
func (p *proxy) slow(delay func(n int) time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// left gives how many faults have not happened yet.
func (p *proxy) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lose + len(p.answers) + len(p.instead)
}

func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.addr)
		if err != nil {
			client.Close()
			continue
		}
		if !p.keep(client) || !p.keep(server) {
			return
		}
		p.wg.Go(func() { p.pump(client, server, p.request) })
		p.wg.Go(func() { p.pump(server, client, p.reply) })
	}
}

// pump copies from a to b until one of them ends or pass says so. Small
// requests and replies come in one read on the loopback.
func (p *proxy) pump(a, b net.Conn, pass func(a, b net.Conn, n int) (forward, goOn bool)) {
	defer func() {
		a.Close()
		b.Close()
		p.mu.Lock()
		delete(p.conns, a)
		delete(p.conns, b)
		p.mu.Unlock()
	}()
	buf := make([]byte, 256<<10)
	for {
		n, err := a.Read(buf)
		if err != nil {
			return
		}
		forward, goOn := pass(a, b, n)
		if forward {
			if _, err := b.Write(buf[:n]); err != nil {
				return
			}
		}
		if !goOn {
			return
		}
	}
}

func (p *proxy) request(client, _ net.Conn, _ int) (forward, goOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers) > 0 {
		client.Write([]byte(p.answers[0] + "\r\n"))
		p.answers = p.answers[1:]
		return false, true
	}
	return true, true
}

func (p *proxy) reply(_, client net.Conn, n int) (forward, goOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.instead) > 0 {
		client.Write([]byte(p.instead[0] + "\r\n"))
		p.instead = p.instead[1:]
		return false, true
	}
	if delay := p.delay; delay != nil {
		p.mu.Unlock()
		time.Sleep(delay(n)) // real: between real sockets there is no other time
		p.mu.Lock()
	}
	if p.lose > 0 {
		p.lose--
		return false, false
	}
	return true, true
}
