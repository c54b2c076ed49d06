package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"coxswain/session"
)

func TestListenInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := New(Options{Listen: ln.Addr().String(), Hub: newFakeHub()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Listen()
	want := fmt.Sprintf("web: %s is in use by another program; stop it or set platforms.web.listen", ln.Addr())
	if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v; want %s", err, want)
	}
}

// serve runs an adapter on a free port and gives what ends it.
func serve(t *testing.T, a *Adapter) (base string, stop func() error) {
	t.Helper()
	ln, err := a.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + ln.Addr().String(), serveOn(t, a, ln)
}

func serveOn(t *testing.T, a *Adapter, ln net.Listener) func() error {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, ln) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// Run ends although a page has a stream open, and lets a request under way
// finish.
func TestRunEnds(t *testing.T) {
	hub := newFakeHub()
	inside, leave := make(chan struct{}), make(chan struct{})
	hub.deliver = func(ctx context.Context, _ session.Message) error {
		close(inside)
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a := newTestAdapter(t, hub, "")
	base, stop := serve(t, a)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	r, err := client.Get(base + readPath + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	if l, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(l, "retry:") {
		t.Fatalf("got %q, %v", l, err)
	}
	posted := make(chan string, 1)
	go func() {
		r, err := client.Post(base+postPath, "application/json", strings.NewReader(goodBody))
		if err != nil {
			posted <- err.Error()
			return
		}
		defer r.Body.Close()
		posted <- r.Status
	}()
	<-inside
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("stream: %v; want a clean end", err)
	}
	close(leave)
	if got := <-posted; got != "200 OK" {
		t.Errorf("the request under way: got %s; want 200", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v; want nil", err)
	}
}

func TestHeadersBounded(t *testing.T) {
	a := newTestAdapter(t, newFakeHub(), "")
	base, stop := serve(t, a)
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", headerMost+8<<10))
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %s; want 431", r.Status)
	}
}

func TestSendUnreadable(t *testing.T) {
	a := newTestAdapter(t, newFakeHub(), "")
	_, err := a.Send(t.Context(), session.Part{Key: testKey, PartNew: session.PartNew{ID: "x", Data: []byte("{")}})
	se, ok := errors.AsType[*session.SendError](err)
	if !ok || se.Outcome != session.SendRefused {
		t.Errorf("got %v; want refused for good", err)
	}
}
