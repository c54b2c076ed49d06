package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/session"
	"coxswain/store/storetest"
)

// A fleet is several gateways' outboxes over one store, and the one chat that all
// send to.
type fleet struct {
	t     *testing.T
	began time.Time
	store *storetest.Model
	pace  time.Duration // each gateway's between two sends; 0 = none
	// answer decides what the platform says to a request that reached it; nil: all is well.
	answer func(who, part string) error
	// slow is how long an answer takes.
	slow func(who, part string) time.Duration
	ids  int

	mu    sync.Mutex
	chat  []string // "seconds gateway part", "?" behind a repeat
	tries int      // sends that were begun
}

// A gateway is one outbox with its sweep.
type gateway struct {
	f    *fleet
	name string
	out  *outbox.Outbox
	kill context.CancelFunc
	next time.Time // when its budget has room

	mu     sync.Mutex
	ended  time.Time     // when its last send was given up
	away   bool          // the store is, for it
	hangs  bool          // and says so by saying nothing
	frozen chan struct{} // not nil: SIGSTOP, until closed
	freeze string        // stop before the request with this part is written
}

func playFleet(t *testing.T, names string, f func(f *fleet, gs ...*gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &fleet{t: t, began: time.Now(), store: storetest.NewModel(time.Now)}
		var gs []*gateway
		for _, name := range strings.Fields(names) {
			gs = append(gs, w.start(name))
			time.Sleep(10 * time.Millisecond) // sweeps of gateways are not in step
		}
		f(w, gs...)
		for _, g := range gs {
			g.kill()
			g.out.Close(0)
		}
		synctest.Wait()
	})
}

func (f *fleet) start(name string) *gateway {
	ctx, kill := context.WithCancel(f.t.Context())
	g := &gateway{f: f, name: name, kill: kill}
	// A stopped process asks the store nothing either.
	st := &storetest.Faulty{Store: f.store, Hook: func(string, storetest.When) storetest.Fault { g.wait(); return storetest.None }}
	g.out = outbox.New(ctx, outbox.Options{
		Store: reach{st, g}, Nonce: name + "/out", HubNonce: name, UnknownAfter: unknownAfter, Log: slog.New(slog.DiscardHandler),
	})
	g.out.Register(g)
	go func() { // as the hub does
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			g.wait()
			keys, err := f.store.OutDue(ctx, 0)
			if err != nil {
				f.t.Error(err)
			}
			for _, k := range keys {
				g.out.Nudge(k, nil)
			}
		}
	}()
	return g
}

// reach is the store as a gateway reaches it.
type reach struct {
	outbox.Store
	g *gateway
}

func (r reach) OutDone(ctx context.Context, key session.Key, nonce string, d session.PartDone) error {
	r.g.mu.Lock()
	away, hangs := r.g.away, r.g.hangs
	r.g.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	case away:
		return errors.New("connection refused")
	}
	return r.Store.OutDone(ctx, key, nonce, d)
}

// lose cuts a gateway off from the store, whose calls fail or hang.
func (g *gateway) lose(hangs bool) { g.mu.Lock(); defer g.mu.Unlock(); g.away, g.hangs = true, hangs }

// freezes says once that a process is stopped before it writes this part.
func (g *gateway) freezes(part string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.freeze != part {
		return false
	}
	g.freeze = ""
	return true
}

// room is how long until its budget has room.
func (g *gateway) room() time.Duration { g.mu.Lock(); defer g.mu.Unlock(); return time.Until(g.next) }

// gaveUp is when its last send was given up.
func (g *gateway) gaveUp() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.ended }

// wait is where a stopped process stands.
func (g *gateway) wait() {
	g.mu.Lock()
	c := g.frozen
	g.mu.Unlock()
	if c != nil {
		<-c
	}
}

// stop is SIGSTOP, cont SIGCONT.
func (g *gateway) stop() { g.mu.Lock(); defer g.mu.Unlock(); g.frozen = make(chan struct{}) }
func (g *gateway) cont() { g.mu.Lock(); defer g.mu.Unlock(); close(g.frozen); g.frozen = nil }

func (g *gateway) Name() session.PlatformName                            { return "fake" }
func (g *gateway) Parts(session.Outgoing) [][]byte                       { panic("the hub cuts") }
func (g *gateway) Show(session.View)                                     {}
func (g *gateway) Sign(context.Context, session.Key, session.Fate) error { return nil }

func (g *gateway) Reserve(_ session.Key, most time.Duration) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := max(time.Until(g.next), 0)
	if wait > most {
		return wait, false
	}
	g.next = time.Now().Add(wait + g.f.pace)
	return wait, true
}

func (g *gateway) Return(session.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = g.next.Add(-g.f.pace)
}

// Send is one request as an HTTP client makes it: written unless ctx is over, and
// given up when ctx ends before the answer.
func (g *gateway) Send(ctx context.Context, p session.Part) (session.MessageID, error) {
	g.f.mu.Lock()
	g.f.tries++
	g.f.mu.Unlock()
	if g.freezes(p.ID) {
		g.stop()
		g.wait()
		synctest.Wait() // timers that are due go first, as they do after SIGCONT
	}
	if ctx.Err() != nil {
		return "", fail(session.SendNot, 0)
	}
	line := fmt.Sprintf("%v %s %s", time.Since(g.f.began).Round(time.Second).Seconds(), g.name, p.ID)
	if p.State == session.PartUnknown {
		line += "?"
	}
	if g.f.answer != nil {
		if err := g.f.answer(g.name, p.ID); err != nil {
			return "", err
		}
	}
	g.f.mu.Lock()
	g.f.chat = append(g.f.chat, line)
	g.f.mu.Unlock()
	if g.f.slow != nil {
		t := time.NewTimer(g.f.slow(g.name, p.ID))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			g.mu.Lock()
			g.ended = time.Now()
			g.mu.Unlock()
			return "", fail(session.SendUnknown, 0)
		}
	}
	return "sent", nil
}

// plan stores an answer of n parts, "1" to "n", as a turn's last commit does.
func (f *fleet) plan(n int) {
	f.t.Helper()
	var outs []session.PartNew
	for i := range n {
		outs = append(outs, session.PartNew{ID: fmt.Sprint(f.ids + i + 1), Kind: session.PartFinal})
	}
	f.ids += n
	if _, err := f.store.Post(f.t.Context(), session.Post{Key: room, Outs: outs}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (f *fleet) want(lines ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.chat, lines) {
		f.t.Errorf("the chat has %q; want %q", f.chat, lines)
	}
}

// said is how many messages the chat has.
func (f *fleet) said() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.chat) }

func (f *fleet) left() int {
	l, err := f.store.Load(f.t.Context(), room)
	if err != nil {
		f.t.Fatal(err)
	}
	return l.Out
}

// Who sends a lane sends all of it, at its own pace: others that look at the same
// parts each second do not send between.
func TestFleetOneSends(t *testing.T) {
	playFleet(t, "a b c", func(f *fleet, gs ...*gateway) {
		f.pace = 1500 * time.Millisecond
		f.plan(6)
		gs[0].out.Nudge(room, nil)
		f.rest(time.Minute)
		f.want("0 a 1", "2 a 2", "3 a 3", "5 a 4", "6 a 5", "8 a 6")
		for _, g := range gs { // what was set aside for nothing is free again
			if wait := g.room(); wait > 0 {
				t.Errorf("%s has room in %v; want now", g.name, wait)
			}
		}
	})
}

// F6: the gateway is killed after the answer was stored and before any of it was
// taken. Another sends it, once.
func TestFleetF6(t *testing.T) {
	playFleet(t, "a b c", func(f *fleet, gs ...*gateway) {
		gs[0].kill()
		f.plan(2)
		f.rest(time.Minute)
		if len(f.chat) != 2 || f.left() != 0 {
			t.Errorf("sent %q, %d left; want both parts once", f.chat, f.left())
		}
	})
	// The commit had taken the part: it may have gone out, and the next one says so.
	playFleet(t, "b", func(f *fleet, gs ...*gateway) {
		f.plan(2)
		if _, ok, _, err := f.store.OutTake(t.Context(), room, "a", unknownAfter); !ok || err != nil {
			t.Fatal(ok, err)
		}
		f.rest(time.Minute)
		f.want("10 b 1?", "10 b 2")
	})
}

// The sender of an answer of five parts is killed inside the third: the first two
// are not repeated, the third is and says so, the others follow once, in order.
func TestFleetSenderDies(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		f.slow = func(who, part string) time.Duration {
			if who == "a" && part == "3" {
				return time.Hour
			}
			return 0
		}
		f.plan(5)
		gs[0].out.Nudge(room, nil)
		f.rest(time.Second)
		f.want("0 a 1", "0 a 2", "0 a 3")
		gs[0].kill()
		f.rest(time.Minute)
		f.want("0 a 1", "0 a 2", "0 a 3", "10 b 3?", "10 b 4", "10 b 5")
	})
}

// It is killed between two parts, while the platform's pace lets it wait: nothing
// was under way, so nothing is repeated, and the others need not wait for long.
func TestFleetSenderDiesBetween(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		f.pace = 2 * time.Second
		f.plan(4)
		gs[0].out.Nudge(room, nil)
		f.rest(2500 * time.Millisecond)
		gs[0].kill()
		f.rest(time.Minute)
		f.want("0 a 1", "2 a 2", "6 b 3", "8 b 4") // 2 s of pace, one more, and the sweep
	})
}

// An upload that takes longer than unknown_after is not made a second time by
// another gateway: its sender says that it goes on.
func TestFleetSlowSend(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		f.slow = func(_, part string) time.Duration {
			if part == "1" {
				return 4 * unknownAfter
			}
			return 0
		}
		f.pace = 5 * time.Second
		f.plan(2)
		gs[0].out.Nudge(room, nil)
		f.rest(1500 * time.Millisecond)
		if wait := gs[1].room(); wait > 0 {
			t.Errorf("b has room in %v; want now: it sends nothing", wait)
		}
		f.rest(2 * time.Minute)
		f.want("0 a 1", "40 a 2")
	})
}

// A gateway that cannot reach the store ends its send by its own clock, before
// another makes it, also while the store says nothing at all.
func TestFleetStoreAway(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
			f.slow = func(who, part string) time.Duration {
				if who == "a" {
					gs[0].lose(hangs)
					return time.Hour
				}
				return 0
			}
			f.plan(1)
			gs[0].out.Nudge(room, nil)
			f.rest(7 * time.Second)
			if !gs[0].gaveUp().IsZero() {
				t.Error("it was ended too early")
			}
			f.rest(time.Minute)
			f.want("0 a 1", "10 b 1?")
			if at := gs[0].gaveUp().Sub(f.began); at < 7*time.Second || at > 8*time.Second {
				t.Errorf("hangs %v: its send ended after %v; want three quarters of %v", hangs, at, unknownAfter)
			}
		})
	}
}

// The sender is stopped (SIGSTOP) for longer than unknown_after and goes on. What
// it had not written it never writes: another has sent it, marked, by then.
func TestFleetFrozenBeforeSend(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		gs[0].freeze = "2" // before anything runs
		f.plan(3)
		gs[0].out.Nudge(room, nil)
		f.rest(30 * time.Second)
		f.want("0 a 1", "10 b 2?", "10 b 3")
		gs[0].cont()
		f.rest(time.Minute)
		f.want("0 a 1", "10 b 2?", "10 b 3")
		f.plan(1) // and it is whole again
		gs[0].out.Nudge(room, nil)
		f.rest(time.Second)
		f.want("0 a 1", "10 b 2?", "10 b 3", "90 a 4")
	})
}

// It is stopped between the take and the send: on waking it looks at its clock.
func TestFleetFrozenAfterTake(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		f.plan(2)
		asked := time.Now()
		p, ok, _, err := f.store.OutTake(t.Context(), room, "a", unknownAfter) // its commit took the part
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		p.Asked = asked
		gs[0].stop() // before its outbox has it
		f.rest(12 * time.Second)
		f.want("10 b 1?", "10 b 2")
		gs[0].cont()
		gs[0].out.Nudge(room, &p)
		f.rest(time.Minute)
		f.want("10 b 1?", "10 b 2")
		if f.tries != 2 {
			t.Errorf("%d sends were begun; want 2", f.tries)
		}
	})
}

// Its request was written before it was stopped: nobody can know, so another
// repeats it, marked, and who wakes repeats nothing.
func TestFleetFrozenInSend(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		f.slow = func(who, part string) time.Duration {
			if who == "a" && part == "2" {
				gs[0].stop()
				return time.Millisecond
			}
			return 0
		}
		f.plan(3)
		gs[0].out.Nudge(room, nil)
		f.rest(30 * time.Second)
		f.want("0 a 1", "0 a 2", "10 b 2?", "10 b 3")
		gs[0].cont()
		f.rest(time.Minute)
		f.want("0 a 1", "0 a 2", "10 b 2?", "10 b 3")
		if f.left() != 0 {
			t.Errorf("%d parts left", f.left())
		}
	})
}

// F43: a 429 waits retry_after, also for the gateway that takes over; a refusal is
// given up after one try; and what is behind keeps its order.
func TestFleetF43(t *testing.T) {
	playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
		f.answer = func(who, part string) error {
			switch {
			case who == "a" && part == "2":
				return fail(session.SendNot, 30*time.Second)
			case part == "3":
				return fail(session.SendRefused, 0)
			}
			return nil
		}
		f.plan(4)
		gs[0].out.Nudge(room, nil)
		f.rest(time.Second)
		gs[0].kill()
		f.rest(28 * time.Second)
		f.want("0 a 1")
		f.rest(time.Minute)
		f.want("0 a 1", "31 b 2", "31 b 4")
		if s, err := f.store.Stats(t.Context()); err != nil || s.OutDead != 1 || f.tries != 5 {
			t.Errorf("%d given up in %d tries, %v; want 1 of 5", s.OutDead, f.tries, err)
		}
	})
}

// SIGTERM with ten parts waiting: another goes on within about a second, and none
// of them is marked as a possible repeat.
func TestFleetHandOver(t *testing.T) {
	for _, pace := range []time.Duration{0, 5 * time.Second} {
		playFleet(t, "a b", func(f *fleet, gs ...*gateway) {
			f.pace = pace
			f.slow = func(string, string) time.Duration { return 400 * time.Millisecond }
			f.plan(10)
			gs[0].out.Nudge(room, nil)
			f.rest(3200 * time.Millisecond) // it is sending, or between two parts
			before := f.said()
			gs[0].out.Close(5 * time.Second)
			closed := time.Now()
			for f.said() <= before && time.Since(closed) < time.Minute {
				f.rest(50 * time.Millisecond)
			}
			if pause := time.Since(closed); pause > 1100*time.Millisecond {
				t.Errorf("pace %v: the other one went on after %v; want within a second", pace, pause)
			}
			f.rest(time.Minute)
			var parts []string
			for _, line := range f.chat {
				parts = append(parts, line[strings.LastIndex(line, " ")+1:])
			}
			if got := strings.Join(parts, " "); got != "1 2 3 4 5 6 7 8 9 10" || f.left() != 0 {
				t.Errorf("pace %v: sent %q, %d left; want each once, in order, unmarked", pace, f.chat, f.left())
			}
			if last := f.chat[len(f.chat)-1]; !strings.Contains(last, " b ") {
				t.Errorf("pace %v: the last part was sent by a: %q", pace, last)
			}
		})
	}
}
