package loopguard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// say counts n messages and gives how many were heard, and how often it was
// said that this was the first that was not.
func say(g *Guard, n int, chat, bot string) string {
	heard, told := 0, 0
	for range n {
		ok, first := g.Pass(chat, bot)
		if ok {
			heard++
		}
		if first {
			told++
		}
	}
	return fmt.Sprintf("%d heard, told %d", heard, told)
}

// A bot that answers at once is heard twenty times, told of once, and heard
// again after its rest. Other chats and other bots are counted apart.
func TestGuardRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guard
		if got, want := say(&g, 50, "room", "7"), "20 heard, told 1"; got != want {
			t.Errorf("in a burst: %s; want %s", got, want)
		}
		for _, other := range [][2]string{{"room", "8"}, {"hall", "7"}} {
			if got, want := say(&g, 1, other[0], other[1]), "1 heard, told 0"; got != want {
				t.Errorf("bot %s in %s: %s; want %s", other[1], other[0], got, want)
			}
		}
		time.Sleep(Rest - time.Nanosecond)
		if got, want := say(&g, 5, "room", "7"), "0 heard, told 0"; got != want {
			t.Errorf("in its rest: %s; want %s", got, want)
		}
		time.Sleep(time.Nanosecond)
		if got, want := say(&g, 50, "room", "7"), "20 heard, told 1"; got != want {
			t.Errorf("after its rest: %s; want %s", got, want)
		}
	})
}

// A bot that keeps to twenty a minute is heard for ever.
func TestGuardSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guard
		for n := range 200 {
			if ok, _ := g.Pass("room", "7"); !ok {
				t.Fatalf("message %d is not heard", n)
			}
			time.Sleep(Span/Most + time.Millisecond)
		}
	})
}
