package telegram

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// What is set aside during a cool-off goes out one after another from its end:
// all at once would begin the next flood (T24).
func TestReservedInACoolOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		const forever = time.Duration(math.MaxInt64)
		p.cool(-7, 40*time.Second)
		for i := range 5 {
			wait, _ := p.take(-7, 1, false, forever)
			if want := time.Duration(40+i) * time.Second; wait < want || wait > want+time.Millisecond {
				t.Errorf("send %d of a chat may go in %v; want %v", i+1, wait, want)
			}
		}
		for chat := range int64(3) { // three chats: the whole bot
			p.cool(100+chat, 30*time.Second)
		}
		// In steps, to spare wake-ups; never before its place in the line.
		in := map[time.Duration]int{}
		for i := range int64(60) {
			wait, _ := p.take(1000+i, 1, false, forever)
			turn := 30*time.Second + time.Duration(i)*time.Second/allRate
			if wait < turn || wait > turn+allStep+time.Millisecond {
				t.Fatalf("send %d of the bot may go in %v; its turn is in %v", i+1, wait, turn)
			}
			in[wait.Round(time.Millisecond)]++
		}
		for at, n := range in {
			if n > 4 {
				t.Errorf("%d sends of the bot go in %v", n, at)
			}
		}
		if len(in) > 21 {
			t.Errorf("60 sends make %d wake-ups", len(in))
		}
		time.Sleep(45 * time.Second)
		if wait, ok := p.take(-7, 1, false, 10*time.Second); !ok || wait < 0 {
			t.Errorf("after the cool-off: %v, %v", wait, ok)
		}
	})
}
