package telegram

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// A flooded run: chats that all stream at once, and what came of it.
type flooded struct {
	chats   []int64
	ends    func(i int) time.Duration // when the answer of chat i is ready
	refused int                       // calls that were told to slow down, or refused in any way
	finals  int                       // chats with their final, once
	twice   int
	late    []time.Duration // of finals, sorted
	gaps    []time.Duration // between frames of a chat, sorted
	calls   int
	drafts  int // of the frames in private chats
	bubbles int
}

func (f *flooded) at(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[min(len(list)-1, int(share*float64(len(list))))].Round(10 * time.Millisecond)
}

// stream plays 200 turns that stream a text, from the first message to the last
// frame, against an API that keeps to its documented budgets.
func stream(t *testing.T, f *flooded) {
	gated(t, gateSet{asleep: true}, func(g *gate) {
		g.api.Flood = true
		var mu sync.Mutex
		ready := make(map[session.ChatID]time.Time)
		number := make(map[session.ChatID]int)
		for i, chat := range f.chats {
			number[key(chat).Chat] = i
		}
		g.agent.script = func(ctx context.Context, turn *session.Turn) session.Outcome {
			i := number[turn.Key().Chat]
			began := time.Now()
			for n := 0; time.Since(began) < f.ends(i); n++ {
				turn.ShowText(false, fmt.Sprintf("word %d of the answer. ", n))
				if n%40 == 0 {
					turn.Show(func(v *session.View) { v.Step++ })
				}
				if !pause(ctx, 250*time.Millisecond) {
					return session.Outcome{Err: ctx.Err()}
				}
			}
			mu.Lock()
			ready[turn.Key().Chat] = time.Now()
			mu.Unlock()
			return session.Outcome{End: session.EndAnswered, Text: "the answer of " + string(turn.Key().Chat)}
		}
		g.up()
		for _, chat := range f.chats {
			g.api.Say(chat, ann, "@cox_test_bot go")
		}
		g.settle(5 * time.Minute)
		for _, chat := range f.chats {
			n := 0
			for _, m := range g.api.Messages(chat) {
				if m.Text == "the answer of "+fmt.Sprint(chat) {
					f.late = append(f.late, m.At.Sub(ready[key(chat).Chat]))
					n++
				}
			}
			switch {
			case n == 1:
				f.finals++
			case n > 1:
				f.twice++
			}
		}
		last := make(map[int64]time.Time)
		for _, c := range g.api.Calls("sendMessage", "editMessageText", "sendMessageDraft") {
			f.calls++
			if !c.OK {
				f.refused++
				continue
			}
			if c.Method == "sendMessage" && strings.HasPrefix(c.String("text"), "the answer") {
				continue
			}
			chat := c.Int("chat_id")
			switch {
			case c.Method == "sendMessageDraft":
				f.drafts++
			case chat > 0 && c.At.Before(ready[key(chat).Chat]):
				f.bubbles++
			}
			if at, ok := last[chat]; ok && c.At.Before(ready[key(chat).Chat]) {
				f.gaps = append(f.gaps, c.At.Sub(at))
			}
			last[chat] = c.At
		}
		slices.Sort(f.late)
		slices.Sort(f.gaps)
	})
}

// 200 chats stream at once, three quarters of them private. Nothing is told to
// slow down, every final arrives once and late by at most the window in which
// the overall budget lets all finals go, and what is left of the budget reaches
// people as frames.
func TestFlood(t *testing.T) {
	var chats []int64
	for i := range int64(200) {
		if i%4 == 3 {
			chats = append(chats, -1_000_000_001_000-i)
		} else {
			chats = append(chats, 20_000+i)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	spread := make([]time.Duration, len(chats))
	for i := range spread {
		spread[i] = 20*time.Second + time.Duration(rnd.Int64N(int64(20*time.Second)))
	}
	window := 200 * time.Second / 30
	for _, c := range []struct {
		name string
		ends func(i int) time.Duration
		late time.Duration // of a final, at most
	}{
		// With the burst spent on frames, 200 finals need 200/30 s, in steps.
		{"all answers at one instant", func(int) time.Duration { return 30 * time.Second }, window + allStep},
		{"answers over twenty seconds", func(i int) time.Duration { return spread[i] }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flooded{chats: chats, ends: c.ends}
			stream(t, f)
			t.Logf("%d calls, %d refused; finals %d of %d, twice %d, late p50 %v p95 %v max %v; %d drafts, %d bubbles; frame gap p50 %v p95 %v max %v", f.calls, f.refused,
				f.finals, len(chats), f.twice, f.at(f.late, 0.5), f.at(f.late, 0.95), f.at(f.late, 1), f.drafts, f.bubbles, f.at(f.gaps, 0.5), f.at(f.gaps, 0.95), f.at(f.gaps, 1))
			if f.refused != 0 {
				t.Errorf("%d calls refused", f.refused)
			}
			if f.finals != len(chats) || f.twice != 0 {
				t.Errorf("%d of %d finals, %d twice", f.finals, len(chats), f.twice)
			}
			if late := f.at(f.late, 1); late > c.late {
				t.Errorf("a final was late by %v; want at most %v", late, c.late)
			}
			// The text and the bubble of a chat have its frames by turns.
			if f.drafts < f.bubbles/2 || f.bubbles < f.drafts/2 {
				t.Errorf("%d drafts, %d changes of bubbles", f.drafts, f.bubbles)
			}
			// A frame for each chat needs the same 200/30 s: nobody could have them
			// more often, and nobody waits much longer.
			if p50, most := f.at(f.gaps, 0.5), f.at(f.gaps, 1); p50 < draftEvery || p50 > window*21/20 || most > 2*window {
				t.Errorf("gaps between frames: p50 %v, max %v; want at most %v, %v", p50, most, window*21/20, 2*window)
			}
		})
	}
}

// The line for the overall budget: each chat has one place and is told its time;
// one that does not come holds nobody up, and loses its place.
func TestPacerLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		for i := range int64(20) { // down to what is kept for finals
			if wait, ok := p.take(i+1, 1, true, 0); !ok {
				t.Fatalf("chat %d waits %v with the budget unused", i, wait)
			}
		}
		ask := func(chat int64) time.Duration { return p.look(chat, 1).Round(time.Millisecond) }
		for i, want := range []time.Duration{33, 67, 100, 67} {
			if got := ask([]int64{101, 102, 103, 102}[i]); got != want*time.Millisecond {
				t.Errorf("ask %d: %v; want %v", i, got, want*time.Millisecond)
			}
		}
		time.Sleep(101 * time.Millisecond) // 102 does not come
		for _, chat := range []int64{101, 103} {
			if wait, ok := p.take(chat, 1, true, 0); !ok {
				t.Errorf("chat %d waits %v at its time", chat, wait)
			}
		}
		if wait, ok := p.take(200, 1, false, 0); !ok {
			t.Errorf("a final waits %v behind the line", wait)
		}
		time.Sleep(waiterGrace)
		p.look(104, 1)
		if len(p.line) != 1 || p.line[0].chat != 104 {
			t.Errorf("line %+v; want the one who came", p.line)
		}
	})
}

// However much there is to show in other chats, ten finals leave at once.
func TestPacerKeepsRoomForFinals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		for i := int64(1); ; i++ {
			if _, ok := p.take(i, 1, true, 0); !ok {
				break
			}
		}
		for i := range int64(10) {
			if wait, ok := p.take(1000+i, 1, false, 0); !ok {
				t.Errorf("final %d waits %v", i, wait)
			}
		}
	})
}
