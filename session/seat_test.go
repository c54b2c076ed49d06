package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A chair is a seat of two processes, and who sat on it when.
type chair struct {
	t      *testing.T
	seats  map[string]*session.Seat
	begun  time.Time
	linger time.Duration // what a process takes to get up

	mu   sync.Mutex
	sits string
	log  []string
}

func newChair(t *testing.T, w *world, other *session.Hub) *chair {
	return &chair{t: t, begun: time.Now(), seats: map[string]*session.Seat{"one": w.hub.Seat("fake:1"), "two": other.Seat("fake:1")}}
}

func (c *chair) note(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf("%v ", time.Since(c.begun).Round(10*time.Millisecond))+fmt.Sprintf(format, args...))
}

// hold has a process hold the seat until stop is called, which gives Hold's error.
func (c *chair) hold(who string, out error) (stop func() error) {
	ctx, cancel := context.WithCancel(c.t.Context())
	over := make(chan error, 1)
	go func() {
		over <- c.seats[who].Hold(ctx, func(ctx context.Context) error {
			c.mu.Lock()
			if c.sits != "" {
				c.t.Errorf("%s sits down while %s sits: %q", who, c.sits, c.log)
			}
			c.sits = who
			c.note("%s sits", who)
			c.mu.Unlock()
			if out == nil {
				<-ctx.Done()
				time.Sleep(c.linger)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sits = ""
			c.note("%s stands", who)
			return out
		})
	}()
	synctest.Wait()
	return func() error {
		cancel()
		err := <-over
		synctest.Wait()
		return err
	}
}

func (c *chair) want(lines ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.log, lines) {
		c.t.Errorf("got %q; want %q", c.log, lines)
	}
	c.log = nil
}

// TestSeatHandedOver: one process sits at a time, and the other one sits down in
// the moment in which it gets up.
func TestSeatHandedOver(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		one := c.hold("one", nil)
		two := c.hold("two", nil)
		time.Sleep(time.Minute)
		if !c.seats["one"].Here() || c.seats["two"].Here() {
			w.t.Error("the seats do not know who sits")
		}
		if err := one(); err != nil {
			w.t.Error(err)
		}
		c.want("0s one sits", "1m0s one stands", "1m0s two sits")
		if c.seats["one"].Here() || !c.seats["two"].Here() {
			w.t.Error("after the hand-over the seats do not know who sits")
		}
		if err := two(); err != nil {
			w.t.Error(err)
		}
	})
}

// TestSeatUnheard: without wake-ups the seat is asked for often enough.
func TestSeatUnheard(t *testing.T) {
	b := &bus{}
	playTwo(t, b, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		one, two := c.hold("one", nil), c.hold("two", nil)
		b.mu.Lock()
		b.deaf = true
		b.mu.Unlock()
		if err := one(); err != nil {
			w.t.Error(err)
		}
		time.Sleep(time.Second) // a fifth of the lease
		if !c.seats["two"].Here() {
			w.t.Error("nobody sits a second after the seat was given up")
		}
		if err := two(); err != nil {
			w.t.Error(err)
		}
	})
}

// TestSeatCutOff: a process that cannot renew gets up before another one can sit
// down, and sits down again only when the seat is free and it has got up.
func TestSeatCutOff(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		c.linger = time.Second
		one, two := c.hold("one", nil), c.hold("two", nil)
		time.Sleep(9 * time.Second) // renewed at 8.33 s
		cut := func(point string, when storetest.When) storetest.Fault {
			if when == storetest.Before && (point == "renew" || point == "claim") {
				return storetest.Down
			}
			return storetest.None
		}
		w.mu.Lock()
		w.faults = cut
		w.mu.Unlock()
		time.Sleep(21 * time.Second)
		w.mu.Lock()
		w.faults = nil
		w.mu.Unlock()
		time.Sleep(30 * time.Second)
		c.mu.Lock()
		log := slices.Clone(c.log)
		c.mu.Unlock()
		if len(log) != 3 || log[0] != "0s one sits" || log[1] != "13.08s one stands" {
			w.t.Fatalf("got %q; want one to stand at 13.08 s: renewed at 8.33 s, good for 3.75 s, up in 1 s", log)
		}
		var at float64
		if _, err := fmt.Sscanf(log[2], "%fs two sits", &at); err != nil || at < 13.33 || at > 14.4 {
			w.t.Errorf("got %q; want two to sit when the lease has run out, at 13.33 s, or within a second", log[2])
		}
		if err := errors.Join(one(), two()); err != nil {
			w.t.Error(err)
		}
	})
}

// TestSeatShaken: a moment without the store costs nothing.
func TestSeatShaken(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		one, two := c.hold("one", nil), c.hold("two", nil)
		lost := 0
		w.mu.Lock()
		w.faults = func(point string, when storetest.When) storetest.Fault {
			if point == "renew" && when == storetest.Before {
				if lost++; lost%2 == 1 {
					return storetest.Down
				}
			}
			return storetest.None
		}
		w.mu.Unlock()
		time.Sleep(time.Minute)
		c.want("0s one sits")
		if err := errors.Join(one(), two()); err != nil {
			w.t.Error(err)
		}
	})
}

// TestSeatFenced: a process that hears that another has the seat gets up at once.
func TestSeatFenced(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		one := c.hold("one", nil)
		key := session.SeatKey("fake:1")
		if err := w.store.Release(w.t.Context(), session.Lease{Key: key, Epoch: 1, Nonce: "life1"}); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.store.Claim(w.t.Context(), key, "another", 5*time.Second); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		c.want("0s one sits", "1.67s one stands")
		if err := one(); err != nil {
			w.t.Error(err)
		}
	})
}

// TestSeatGivenUp: who ends by itself says why, and leaves the seat to others.
func TestSeatGivenUp(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		broken := errors.New("the token is refused")
		one := c.hold("one", broken)
		two := c.hold("two", nil)
		c.want("0s one sits", "0s one stands", "0s two sits")
		if err := one(); err != broken {
			w.t.Errorf("got error %v; want %v", err, broken)
		}
		if err := two(); err != nil {
			w.t.Error(err)
		}
	})
}

// TestSeatAlone: a process that has the store to itself asks nobody.
func TestSeatAlone(t *testing.T) {
	play(t, set{mode: steer.Steer}, func(w *world) {
		seat := w.hub.Seat("fake:1")
		if seat != nil || !seat.Here() {
			t.Fatalf("got seat %v; want none, and to sit", seat)
		}
		ran := false
		if err := seat.Hold(w.t.Context(), func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("ran %v, error %v; want it to run at once", ran, err)
		}
		if l, err := w.store.Load(w.t.Context(), session.SeatKey("fake:1")); err != nil || l.Exists {
			t.Errorf("the store was asked: %+v, %v", l, err)
		}
	})
}

// TestSeatSitsAgain: what ran on a lost seat has ended before it is begun again.
func TestSeatSitsAgain(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		c := newChair(w.t, w, other)
		c.linger = time.Second
		w.mu.Lock()
		w.faults = func(point string, when storetest.When) storetest.Fault {
			if point == "renew" && when == storetest.Before {
				return storetest.Down
			}
			return storetest.None
		}
		w.mu.Unlock()
		one := c.hold("one", nil)
		time.Sleep(5 * time.Second)
		c.want("0s one sits", "4.75s one stands", "4.75s one sits")
		if err := one(); err != nil {
			w.t.Error(err)
		}
	})
}
