package discord

import (
	"strings"
	"sync"
	"time"
)

const (
	// banLeast is the least pause after an answer of the wall before Discord: it
	// bars an address for a while, and every further call makes that longer (D18).
	banLeast = 15 * time.Second
	// invalidMost calls that are refused in invalidTime are where calling stops for
	// a while: Discord bars an address after 10,000 in ten minutes (D7).
	invalidMost  = 8000
	invalidTime  = 10 * time.Minute
	invalidPause = time.Minute
)

// A pacer remembers which buckets are to be left alone. Safe from any
// goroutine; the zero value is ready.
type pacer struct {
	mu     sync.Mutex
	until  map[string]time.Time
	all    time.Time // the bot's global limit
	banned time.Time // nothing may be called at all
}

// interactions is how the buckets of answers to interactions begin. The bot's
// global limit does not hold for them.
const interactions = "interaction:"

// wait is how long a bucket has still to be left alone.
func (p *pacer) wait(bucket string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := latest(p.until[bucket], p.banned)
	if !strings.HasPrefix(bucket, interactions) {
		until = latest(until, p.all)
	}
	return max(time.Until(until), 0)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// coolAll leaves everything alone but answers to interactions.
func (p *pacer) coolAll(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = latest(p.all, time.Now().Add(d))
}

// ban leaves everything alone.
func (p *pacer) ban(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.banned = latest(p.banned, time.Now().Add(d))
}

func (p *pacer) cool(bucket string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.until == nil {
		p.until = make(map[string]time.Time)
	}
	if len(p.until) > 1000 {
		for k, u := range p.until {
			if now.After(u) {
				delete(p.until, k)
			}
		}
	}
	p.until[bucket] = latest(p.until[bucket], now.Add(d))
}

// A budget counts what happened lately, as far as this process did it.
type budget struct {
	mu sync.Mutex
	at []time.Time
}

func (b *budget) add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = append(b.at, time.Now())
}

// within counts what happened in the last d, and forgets what is older.
func (b *budget) within(d time.Duration) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.at) > 0 && time.Since(b.at[0]) > d {
		b.at = b.at[1:]
	}
	return len(b.at)
}

// countInvalid counts a refused call, and stops calling when there were too
// many.
func (a *Adapter) countInvalid() {
	a.invalid.add()
	n := a.invalid.within(invalidTime)
	if n >= invalidMost {
		a.pace.ban(invalidPause)
		a.log.Error(wordsInvalid, "refused", n)
	}
}
