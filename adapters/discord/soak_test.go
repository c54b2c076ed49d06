package discord

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

var (
	soakFaults = flag.Int("soak.faults", 300, "how often the soak breaks a connection")
	soakEach   = flag.Int("soak.each", 3, "how often each of its bots is broken")
	soakSeed   = flag.Uint64("soak.seed", 1, "seed of the soak")
)

// A breaker breaks a connection in one way; said messages come while it is so.
type breaker struct {
	name string
	f    func(b *soaked, said func())
}

var breakers = []breaker{
	{"cut", func(b *soaked, said func()) { b.api.Drop(0); said() }},
	{"closed", func(b *soaked, said func()) {
		b.api.Drop([]int{1001, 4000, 4001, 4007, 4009}[b.rnd.IntN(5)])
		said()
	}},
	{"silent", func(b *soaked, said func()) { b.api.Mute(false); said() }},
	{"deaf", func(b *soaked, said func()) { b.api.Mute(true); said() }},
	{"op 7", func(b *soaked, said func()) { b.api.Op7(); said() }},
	{"op 9", func(b *soaked, said func()) { b.api.Op9(); said() }},
	{"forgotten", func(b *soaked, said func()) { b.api.Drop(0); b.api.Forget(); said() }},
	{"op 9 at resume", scripted(discordtest.Script{RefuseResume: true})},
	{"op 7 at resume", scripted(discordtest.Script{Op7First: true})},
	{"silent at resume", scripted(discordtest.Script{Silent: true})},
	{"closed at resume", scripted(discordtest.Script{Close: 4009})},
	{"closed twice", scripted(discordtest.Script{Close: 4000}, discordtest.Script{Close: 4000})},
	{"replayed", scripted(discordtest.Script{Replay: 5})},
	{"replayed without a word", scripted(discordtest.Script{Replay: 5, OmitResumed: true})},
	{"no acks after resume", scripted(discordtest.Script{NoAcks: true})},
	{"backlog refused at first", func(b *soaked, said func()) {
		b.api.Fault(discordtest.Fault{Method: "GET", Path: "/messages", Status: 500, Times: 3})
		b.api.Next(discordtest.Script{RefuseResume: true})
		b.api.Drop(0)
		said()
	}},
	{"restart", func(b *soaked, said func()) {
		b.stop()
		said()
		b.restarted()
	}},
	{"crash", func(b *soaked, said func()) {
		before := b.docs.get("cursors")
		said()
		b.stop()
		b.docs.put("cursors", before) // as if it had not been written since
		said()
		b.restarted()
	}},
}

func scripted(list ...discordtest.Script) func(*soaked, func()) {
	return func(b *soaked, said func()) {
		b.api.Next(list...)
		b.api.Drop(0)
		said()
	}
}

// A soaked bot is one world with what was said in it.
type soaked struct {
	*world
	rnd      *rand.Rand
	n        int
	said     map[string][]string // by channel, in order
	channels []string            // in which something may be said
	way      string              // in which it was broken last
	sum      Status              // of the adapters that were stopped
	again    bool                // a message may be given again: another process reads it
	parts    int
}

// TestSoak breaks connections at random, again and again, while people write and
// answers go out: nothing is lost (I1), nothing is taken twice (I2), each channel
// keeps its order (I3), and every goroutine ends but those the library leaves
// locked up (TestMain looks).
func TestSoak(t *testing.T) {
	var mu sync.Mutex
	reached := map[string]int64{}
	for _, name := range []string{"resumed", "logged in anew", "session replaced", "session left locked up", "door or store refused",
		"given again by another process", "messages", "answers", "answer sent again", "backlog read from a cursor", "backlog read in a fresh channel"} {
		reached[name] = 0
	}
	for _, b := range breakers {
		reached["broken: "+b.name] = 0
	}
	rnd := rand.New(rand.NewPCG(*soakSeed, 0))
	deck := make([]breaker, 0, *soakFaults)
	for len(deck) < *soakFaults { // all ways about equally often, in any order
		deck = append(deck, breakers...)
	}
	deck = deck[:*soakFaults]
	rnd.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	t.Run("bots", func(t *testing.T) {
		for n := 0; len(deck) > 0; n++ {
			mine := deck[:min(*soakEach, len(deck))]
			deck = deck[len(mine):]
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				b := newSoaked(t, rand.New(rand.NewPCG(*soakSeed, uint64(n)+1)))
				counts := b.soak(mine)
				mu.Lock()
				defer mu.Unlock()
				for k, v := range counts {
					reached[k] += v
				}
			})
		}
	})
	names := slices.Sorted(maps.Keys(reached))
	for _, name := range names {
		t.Logf("%-34s %d", name, reached[name])
		if reached[name] == 0 {
			t.Errorf("never reached: %s", name)
		}
	}
}

func newSoaked(t *testing.T, rnd *rand.Rand) *soaked {
	b := &soaked{world: newWorld(t, Options{}), rnd: rnd, said: map[string][]string{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*soakEach+1)*10*time.Second)
	t.Cleanup(cancel)
	b.ctx = ctx
	b.api.Interval = 250 * time.Millisecond
	b.channels = []string{dm, room, topic, opened, post}
	for n := range 6 { // nobody has spoken there before, so there is no cursor
		c := fmt.Sprint(8200000000000000000 + n)
		b.api.AddChannel(discordtest.Channel{ID: c, Guild: guild})
		b.channels = append(b.channels, c)
	}
	b.fresh()
	return b
}

// fresh makes an adapter with short times.
func (b *soaked) fresh() {
	b.world.fresh()
	x := &b.a.timing
	x.open, x.ack, x.tick, x.end, x.quiet = 2*time.Second, 1500*time.Millisecond, 50*time.Millisecond, 1200*time.Millisecond, 2500*time.Millisecond
	x.steady = time.Millisecond
}

func (b *soaked) restarted() {
	b.count()
	b.again = true
	b.fresh()
	b.run()
}

// count adds up what an adapter tells of itself.
func (b *soaked) count() {
	s := b.a.Status()
	b.sum.Resumes += s.Resumes
	b.sum.Logins += s.Logins
	b.sum.Replaced += s.Replaced
	b.sum.Leaked += s.Leaked
	b.sum.Retries += s.Retries
	b.sum.Delivered += s.Delivered
}

// speak says something in a channel and remembers it.
func (b *soaked) speak(channel string) {
	b.n++
	text := fmt.Sprint("text ", b.n)
	b.said[channel] = append(b.said[channel], text)
	if channel != dm && channel != opened {
		text = me + " " + text
	}
	b.api.Say(channel, []string{ann, bob}[b.rnd.IntN(2)], text)
}

// soak breaks the bot in these ways, one after another, and tells what it
// reached.
func (b *soaked) soak(ways []breaker) map[string]int64 {
	reached := map[string]int64{}
	b.run()
	b.connected()
	for _, c := range []string{dm, post} { // no gateway tells of these: they need a cursor
		b.speak(c)
	}
	b.door.failing(func(session.Message) error {
		if rand.IntN(6) == 0 {
			return errDown
		}
		return nil
	})
	b.settled()
	for _, way := range ways {
		reached["broken: "+way.name]++
		b.way = way.name
		b.some(3)
		sent := b.sending()
		way.f(b, func() { b.some(4) })
		b.some(2)
		b.settled()
		<-sent
	}
	b.count()
	b.end()
	b.judge()
	for _, c := range b.api.Calls("GET", "/messages") {
		kind := "backlog read from a cursor"
		if strings.HasPrefix(c.Path, "channels/82") {
			kind = "backlog read in a fresh channel"
		}
		reached[kind]++
	}
	reached["resumed"], reached["logged in anew"] = b.sum.Resumes, b.sum.Logins-1
	reached["session replaced"], reached["session left locked up"] = b.sum.Replaced, b.sum.Leaked
	reached["door or store refused"] = b.sum.Retries
	reached["given again by another process"] = b.sum.Delivered - int64(b.n)
	reached["messages"], reached["answers"] = int64(b.n), int64(b.parts)
	reached["answer sent again"] = int64(len(b.api.Calls("POST", dm+"/messages")) - b.parts)
	return reached
}

func (b *soaked) some(n int) {
	for range 1 + b.rnd.IntN(n) {
		b.speak(b.channels[b.rnd.IntN(len(b.channels))])
	}
}

// settled waits until everything that was said has been taken.
func (b *soaked) settled() {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for len(b.door.took) < b.n {
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			b.t.Errorf("after %q: never taken; status %+v", b.way, b.a.Status())
			b.stop()
			b.judge()
			b.t.FailNow()
		}
	}
}

// sending sends an answer, whatever becomes of it at first, as the outbox does.
func (b *soaked) sending() <-chan struct{} {
	b.parts++
	p, a, lose := b.part(dm, fmt.Sprint("answer ", b.parts)), b.a, b.rnd.IntN(2) == 0
	p.ID = fmt.Sprint("part ", b.parts)
	if lose {
		b.api.Fault(discordtest.Fault{Method: "POST", Path: dm + "/messages", LoseReply: true})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b.ctx.Err() == nil {
			if _, err := a.Send(b.ctx, p); err == nil {
				return
			}
		}
	}()
	return done
}

// judge compares what the door took with what was said.
func (b *soaked) judge() {
	b.t.Helper()
	took := map[string][]string{}
	close(b.door.took)
	for m := range b.door.took {
		c := target(m.Key)
		took[c] = append(took[c], m.Text)
	}
	for _, c := range b.channels {
		if !slices.Equal(took[c], b.said[c]) {
			b.t.Errorf("channel %s: took %q; said %q", c, took[c], b.said[c])
		}
	}
	if !b.again {
		b.once()
	}
	if got := b.api.Bot(dm); len(got) != b.parts {
		b.t.Errorf("%d answers sent: %q; want %d", len(got), texts(got), b.parts)
	}
}
