//go:build linux

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fifty begins fifty turns on one gateway, each in the middle of a command. All but
// the last end when told to; that one sleeps for longer than anybody waits.
func fifty(t *testing.T, f *fleet, a *ship) (chats []string) {
	t.Helper()
	for i := range 50 {
		chats = append(chats, fmt.Sprintf("drained%02d", i))
	}
	for i, c := range chats {
		wait := fmt.Sprintf("while [ ! -e %s/go-all ]; do sleep 0.3; done", f.dir)
		if i == len(chats)-1 {
			wait = "sleep 1000"
		}
		a.say(c, fmt.Sprintf("run echo x >> %s/%s; %s", f.dir, c, wait))
	}
	for _, c := range chats {
		waitFor(t, func() bool { return f.effects(c) == 1 })
	}
	return chats
}

// answered counts the answers that a chat has, as a gateway shows it.
func (s *ship) answered(chat string) int { return strings.Count(s.reads(chat), "Answered run.") }

// unready waits until the gateway says that it is not ready, and gives how long
// that took.
func (s *ship) unready(since time.Time) time.Duration {
	s.f.t.Helper()
	waitFor(s.f.t, func() bool {
		r, err := visitor.Get("http://" + s.ops + "/readyz")
		if err != nil {
			return false // it must say so, not be gone
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusServiceUnavailable
	})
	return time.Since(since)
}

// chatter has alice write until it is ended, at a pace at which Telegram lets the
// bot answer; it gives what she wrote.
func (f *fleet) chatter() (end func() []string) {
	var said []string
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(700 * time.Millisecond)
		defer tick.Stop()
		for {
			text := fmt.Sprintf("word%03d.", len(said))
			f.tg.Say(alice, alice, "/queue "+text)
			said = append(said, text)
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return func() []string { close(stop); wg.Wait(); return said }
}

// TestDrainFifty is F33: SIGTERM with fifty turns running. It is not ready at once,
// confirms nothing that is not stored, parks each turn at its safe point within the
// drain, another gateway goes on with each within a second, and it exits with 0.
func TestDrainFifty(t *testing.T) {
	t.Parallel()
	const drain = 4 * time.Second
	f := newFleet(t)
	bin, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	limits := fmt.Sprintf("limits: {drain: %s}\n", drain)
	a := f.launch(bin, "a", limits, "telegram")
	a.ready()
	waitFor(t, func() bool { return !f.polled("a", time.Time{}).IsZero() })
	chats := fifty(t, f, a)
	b := f.launch(bin, "b", limits, "telegram")
	b.ready()
	end := f.chatter()
	waitFor(t, func() bool { return f.answers("Answered word") > 1 })

	told := time.Now()
	a.signal(syscall.SIGTERM)
	unready := a.unready(told)
	released := time.Now()
	f.release("all")
	for _, c := range chats[:len(chats)-1] {
		waitFor(t, func() bool { return b.answered(c) == 1 })
	}
	last := time.Since(released)
	<-a.gone
	gone := time.Since(told)
	long := chats[len(chats)-1]
	waitFor(t, func() bool { return b.answered(long) == 1 })
	resumed := time.Since(told) - gone
	said := end()
	waitFor(t, func() bool { n, _ := f.tg.Pending(); return n == 0 && f.answers("Answered word") >= len(said) })
	t.Logf("not ready after %v; 49 turns went on elsewhere %v after their commands were let go; exit after %v; the cut one answered %v later",
		unready.Round(time.Millisecond), last.Round(time.Millisecond), gone.Round(time.Millisecond), resumed.Round(time.Millisecond))
	if a.endedWith != nil {
		t.Errorf("it ended with %v; want 0:\n%s", a.endedWith, &a.stderr)
	}
	// The promises are at once, the drain, and a second, by a machine that has
	// nothing else to do. Behind the drain come at most what a turn may write on
	// (hardStop, 2 s), the outbox (5 s) and the platforms (5 s).
	if unready > time.Second || gone < drain || gone > drain+12*time.Second || resumed > 3*time.Second {
		t.Error("that is too long, or not as long as a command may run on")
	}
	for _, c := range chats {
		if n, ran := b.answered(c), f.effects(c); n != 1 || ran != 1 {
			t.Errorf("%s: answered %d times, ran %d times; want once", c, n, ran)
		}
	}
	for _, text := range said {
		if n := f.answers("Answered " + text); n != 1 {
			t.Errorf("%s was answered %d times; want once", text, n)
		}
	}
}

// TestDrainKilled is F34: the supervisor loses patience in the middle of the drain.
// That is a crash like any other: no call runs again, each turn gets one answer.
func TestDrainKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	bin, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	a := f.launch(bin, "a", "limits: {drain: 30s}\n")
	a.ready()
	chats := fifty(t, f, a)
	b := f.start("b")
	told := time.Now()
	a.signal(syscall.SIGTERM)
	a.unready(told)
	a.end(syscall.SIGKILL)
	killed := time.Now()
	for _, c := range chats {
		waitFor(t, func() bool { return b.answered(c) == 1 })
	}
	t.Logf("fifty turns were answered %v after the SIGKILL, with leases of %v", time.Since(killed).Round(time.Millisecond), fleetTTL)
	for _, c := range chats {
		if n, ran := b.answered(c), f.effects(c); n != 1 || ran != 1 {
			t.Errorf("%s: answered %d times, ran %d times; want once", c, n, ran)
		}
		if got := b.reads(c); !strings.Contains(got, "result unknown") {
			t.Errorf("%s does not say that the result is unknown: %s", c, got)
		}
	}
}
