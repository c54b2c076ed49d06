//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const repeatMark = "(possible repeat)"

// A strait is what lies between one gateway and a platform: what is sent through
// it is noted, and an answer may be kept back.
type strait struct {
	mu    sync.Mutex
	slow  time.Duration // how long an answer takes
	holds string        // a message with this word is taken, and its answer kept back
	held  chan struct{}
	sent  []time.Time // when it was handed on
}

// hold keeps the answer to a message with word back until the client gives up; the
// channel is closed when the platform has taken it.
func (s *strait) hold(word string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds, s.held = word, make(chan struct{})
	return s.held
}

func (s *strait) times() []time.Time { s.mu.Lock(); defer s.mu.Unlock(); return slices.Clone(s.sent) }

// through is a platform behind the strait.
func (s *strait) through(platform http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := path.Base(r.URL.Path)
		if s == nil || r.Method != http.MethodPost || method != "sendMessage" && method != "messages" {
			platform.ServeHTTP(w, r)
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		s.mu.Lock()
		s.sent = append(s.sent, time.Now())
		var held chan struct{}
		if s.holds != "" && bytes.Contains(data, []byte(s.holds)) {
			held, s.holds = s.held, ""
		}
		s.mu.Unlock()
		if held == nil {
			platform.ServeHTTP(w, r)
			time.Sleep(s.slow) // the answer leaves when this returns
			return
		}
		platform.ServeHTTP(httptest.NewRecorder(), r)
		close(held)
		<-r.Context().Done()
	})
}

// straitOf puts a strait before the platforms of a gateway that is yet to start.
func (f *fleet) straitOf(name string) *strait {
	s := &strait{}
	f.straits[name] = s
	return s
}

// discord is the address of Discord for a gateway.
func (f *fleet) discord(name string) string {
	s := f.straits[name]
	if s == nil {
		return f.dcURL
	}
	srv := httptest.NewServer(s.through(f.dc))
	f.t.Cleanup(func() {
		f.dc.Drop(0)
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// told are the words part-1, part-2 … of what alice was told, in order, with a
// "?" behind a possible repeat.
func (f *fleet) told() string {
	var got []string
	for _, m := range f.tg.Messages(alice) {
		if word := strings.Fields(strings.TrimPrefix(m.Text, repeatMark) + " -"); m.FromBot && strings.HasPrefix(word[0], "part-") {
			if strings.HasPrefix(m.Text, repeatMark) {
				word[0] += "?"
			}
			got = append(got, word[0])
		}
	}
	return strings.Join(got, " ")
}

// tellsAnn is what ann was told on Discord that has part in it.
func (f *fleet) tellsAnn(part string) (got []string) {
	for _, m := range f.dc.Bot(annDM) {
		if strings.Contains(m.Content, part) {
			got = append(got, m.Content)
		}
	}
	return got
}

// A pair is two gateways on both platforms: a has the seats, b stands by.
func (f *fleet) pair() (a, b *ship) {
	f.t.Helper()
	a = f.start("a", "telegram", "discord")
	waitFor(f.t, func() bool { return !f.polled("a", time.Time{}).IsZero() && f.dc.Connected() == 1 })
	return a, f.start("b", "telegram", "discord")
}

// either waits for the first of two events: whose it is. Both gateways may take up
// what is stored, so nobody can say before who runs and sends it.
func either(t *testing.T, what string, a, b <-chan struct{}) (second bool) {
	t.Helper()
	late := time.NewTimer(waitMost)
	defer late.Stop()
	select {
	case <-a:
		return false
	case <-b:
		return true
	case <-late.C:
		t.Fatalf("waited %v for %s", waitMost, what)
		return false
	}
}

// free lets everything pass.
func (s *strait) free() { s.mu.Lock(); defer s.mu.Unlock(); s.holds = "" }

// TestReplicaOutboxF6: the gateway is killed when the answer is stored and nothing
// of it was sent. The other one sends it, once.
func TestReplicaOutboxF6(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			bin, err := failpointBinary()
			if err != nil {
				t.Fatal(err)
			}
			f.bin = bin
			f.env["a"] = []string{"GATEWAY_FAILPOINT=after:commit.end:1"}
			f.env["b"] = f.env["a"] // the one that ends the turn dies
			a, b := f.pair()
			if platform == "telegram" {
				f.tg.Say(alice, alice, "hi")
			} else {
				f.dc.Say(annDM, annID, "hi")
			}
			either(t, "a gateway to die", a.gone, b.gone)
			if n := f.answers("Answered") + len(f.tellsAnn("Answered")); n != 0 {
				t.Errorf("%s: it was sent before: %d", platform, n)
			}
			said := func() int { return f.answers("Answered hi. plain") + len(f.tellsAnn("Answered hi. plain")) }
			waitFor(t, func() bool { return said() > 0 })
			f.passes(3 * time.Second)
			if n := said(); n != 1 {
				t.Errorf("%s: the answer was sent %d times; want once", platform, n)
			}
		})
	}
}

// passes lets time go by in which nothing more may happen.
func (f *fleet) passes(d time.Duration) { time.Sleep(d) }

// TestReplicaOutboxF7: the gateway is killed inside a send. What it sent before is
// not sent again, what follows is sent once. The message itself: on Discord there is
// one, known by its nonce; on Telegram nobody can know, and it comes again, marked.
func TestReplicaOutboxF7(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			one, two := f.straitOf("a"), f.straitOf("b")
			a, b := f.pair()
			heldOne, heldTwo := one.hold("part-3"), two.hold("part-3")
			if platform == "telegram" {
				f.tg.Say(alice, alice, "long 5")
			} else {
				f.dc.Say(annDM, annID, "long 5")
			}
			if either(t, "part-3", heldOne, heldTwo) {
				a, two = b, one
			}
			two.free()
			a.end(syscall.SIGKILL)
			if platform == "telegram" {
				waitFor(t, func() bool { return strings.Contains(f.told(), "part-5") })
				if got, want := f.told(), "part-1 part-2 part-3 part-3? part-4 part-5"; got != want {
					t.Errorf("telegram: told %q; want %q", got, want)
				}
				return
			}
			waitFor(t, func() bool { return len(f.tellsAnn("part-5")) > 0 })
			var got []string
			for _, m := range f.tellsAnn("part-") {
				got = append(got, m[:6])
			}
			if want := "part-1 part-2 part-3 part-4 part-5"; strings.Join(slices.Compact(got), " ") != want || len(f.tellsAnn("part-3 ")) != 1 || len(f.tellsAnn(repeatMark)) != 0 {
				t.Errorf("discord: told %q; want %q, each once", got, want)
			}
		})
	}
}

// TestReplicaOutboxStopped: the sender is stopped (SIGSTOP) for longer than
// outbox.unknown_after and goes on. The other one has sent what was left by then,
// the part that was under way marked; who wakes sends nothing again.
func TestReplicaOutboxStopped(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	one, two := f.straitOf("a"), f.straitOf("b")
	a, b := f.pair()
	heldOne, heldTwo := one.hold("part-2"), two.hold("part-2")
	f.tg.Say(alice, alice, "long 4")
	if either(t, "part-2", heldOne, heldTwo) {
		a, two = b, one
	}
	two.free()
	a.signal(syscall.SIGSTOP)
	waitFor(t, func() bool { return strings.Contains(f.told(), "part-4") })
	a.signal(syscall.SIGCONT)
	a.ready()
	f.passes(2 * time.Second)
	if got, want := f.told(), "part-1 part-2 part-2? part-3 part-4"; got != want {
		t.Errorf("told %q; want %q", got, want)
	}
	f.tg.Say(alice, alice, "hi")
	waitFor(t, func() bool { return f.answers("Answered hi") == 1 })
}

// TestReplicaOutboxTerminated: SIGTERM with parts of a long answer still to be sent.
// The other one goes on with the next, at the chat's pace; none is repeated or marked.
func TestReplicaOutboxTerminated(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	from, to := f.straitOf("a"), f.straitOf("b")
	// It is told to stop while a part is under way.
	from.slow, to.slow = 600*time.Millisecond, 600*time.Millisecond
	a, b := f.pair()
	f.tg.Say(alice, alice, "long 10")
	waitFor(t, func() bool { return strings.Contains(f.told(), "part-4") })
	if len(from.times()) == 0 {
		a, from, to = b, to, from
	}
	a.end(syscall.SIGTERM)
	waitFor(t, func() bool { return strings.Contains(f.told(), "part-10") })
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("part-%d", i+1))
	}
	if got := f.told(); got != strings.Join(want, " ") {
		t.Errorf("told %q; want each once, in order, unmarked", got)
	}
	if a.endedWith != nil {
		t.Errorf("a ended with %v; want 0", a.endedWith)
	}
	all := append(from.times(), to.times()...)
	last := from.times()[len(from.times())-1]
	pause := time.Duration(0)
	for _, at := range to.times() {
		if pause == 0 && at.After(last) {
			pause = at.Sub(last)
		}
	}
	t.Logf("%d sent before and %d after; the pause at the hand-over was %v", len(from.times()), len(to.times()), pause.Round(time.Millisecond))
	if len(to.times()) == 0 || len(all) != 10 {
		t.Errorf("a sent %d and b %d; want some each, ten in all", len(from.times()), len(to.times()))
	}
	// A second of pace between two parts, and one at most until the other one looks.
	if pause > 2500*time.Millisecond {
		t.Errorf("the pause was %v", pause)
	}
}

// TestReplicaBubble: a task goes on at another gateway. What is shown of it goes on
// in the same bubble, and the signs on the messages that waited go on too.
func TestReplicaBubble(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			a, b := f.pair()
			name := "bubble" + sig.String()
			f.tg.Say(alice, alice, f.task(name))
			waitFor(t, func() bool { return f.effects(name) == 1 && len(f.bubbles()) == 1 })
			bubble := f.bubbles()[0]
			later := f.tg.Say(alice, alice, "/queue later")
			sign := func(msg int) string {
				m, _ := f.tg.Message(alice, msg)
				return m.Reaction
			}
			waitFor(t, func() bool { return sign(later) == "😴" })
			if len(b.running()) > 0 {
				a = b
			}
			a.signal(sig)
			if sig == syscall.SIGTERM {
				f.release(name)
			}
			<-a.gone
			waitFor(t, func() bool { return f.answers("Answered run") == 1 && f.answers("Answered later") == 1 })
			waitFor(t, func() bool { return sign(later) == "👍" })
			if got := f.bubbles(); len(got) != 1 || got[0] != bubble {
				t.Errorf("%v: bubbles %v; want the one, %d", sig, got, bubble)
			}
			closed := func() bool { // by whoever took it over, when the chat's pace lets it
				m, _ := f.tg.Message(alice, bubble)
				return len(m.Keyboard) == 0 && m.Edits > 0
			}
			for late := time.Now().Add(40 * time.Second); !closed() && time.Now().Before(late); {
				time.Sleep(20 * time.Millisecond)
			}
			if !closed() {
				t.Errorf("%v: the bubble was not closed", sig)
			}
		})
	}
}

// bubbles are the messages that show a running task, or showed one.
func (f *fleet) bubbles() (ids []int) {
	for _, m := range f.tg.Messages(alice) {
		if m.FromBot && !strings.Contains(m.Text, "Answered") {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
