package discord

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// ackMost is what 99 of 100 answers to slash commands must stay under (D4).
const ackMost = 300 * time.Millisecond

// TestD4AckTime: slash commands in bursts of 20, while the store is away, all
// lanes are busy and sends are cooling off, are answered in time. It has the
// machine for itself: no other test runs beside it.
func TestD4AckTime(t *testing.T) {
	play(struct{ testing.TB }{t}, Options{}, func(w *world) {
		w.door.failing(func(session.Message) error { return errDown })
		for n := range 3 * lanesMost {
			c := fmt.Sprint(8100000000000000000 + n)
			w.api.AddChannel(discordtest.Channel{ID: c, Guild: guild})
			w.api.Say(c, ann, "waits")
		}
		w.a.pace.coolAll(time.Minute)
		var took []time.Duration
		for range 10 {
			took = append(took, w.acks(20)...)
		}
		slices.Sort(took)
		if p99 := took[len(took)*99/100]; p99 > ackMost {
			t.Errorf("p50 %v, p99 %v; want under %v", took[len(took)/2], p99, ackMost)
		}
		w.door.failing(nil)
	})
}

// acks gives how long n slash commands at once waited for their answers, as
// Discord sees it.
func (w *world) acks(n int) (took []time.Duration) {
	var tokens []string
	for range n {
		tokens = append(tokens, w.api.Slash(room, ann, "status", ""))
	}
	for _, token := range tokens {
		w.until("acked", func() bool { return w.api.Took(token) > 0 })
		took = append(took, w.api.Took(token))
	}
	return took
}

// BenchmarkD4Ack reports what 99 of 100 answers stay under.
func BenchmarkD4Ack(b *testing.B) {
	w := newWorld(b, Options{})
	w.run()
	w.connected()
	var took []time.Duration
	for b.Loop() {
		took = append(took, w.acks(1)...)
		w.next()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
	w.end()
}
