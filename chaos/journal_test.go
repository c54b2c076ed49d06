//go:build linux

package chaos

import (
	"fmt"
	"sync"
	"time"
)

// A journal holds what happened outside of the gateways, and what was found
// wrong. Any goroutine may write in it.
type journal struct {
	mu    sync.Mutex
	lines []entry
	found []violation
}

// An entry is of one chat; chat 0 = of all.
type entry struct {
	at   time.Time
	chat int
	text string
}

// The counts of what must not be.
const (
	lost        = "accepted messages lost"
	twice       = "messages run twice"
	steerTwice  = "steers delivered twice"
	steerOnSent = "steers on a row already sent"
	effectTwice = "tool effects twice"
	missing     = "finals missing"
	twoFinals   = "finals twice"
	disorder    = "tickets begun out of order"
	prefix      = "requests that do not begin with the one before"
	invariant   = "conservation and rows"
	stuck       = "sessions stuck"
	left        = "processes left"
	refused     = "requests a model would refuse"
	ended       = "gateways that ended by themselves"
	forgiven    = "what Telegram would have forgiven"
)

var counts = []string{lost, twice, steerTwice, steerOnSent, effectTwice, missing, twoFinals, disorder, prefix, invariant, stuck, left, refused, ended, forgiven}

// A violation is one thing that must not be; chat 0 = of no chat alone.
type violation struct {
	kind string
	chat int
	text string
}

func (j *journal) note(chat int, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, entry{time.Now(), chat, fmt.Sprintf(format, args...)})
}

func (j *journal) wrong(kind string, chat int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.note(chat, "VIOLATION: %s: %s", kind, text)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, violation{kind, chat, text})
}

// tally counts the violations by kind.
func (j *journal) tally() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := map[string]int{}
	for _, v := range j.found {
		n[v.kind]++
	}
	return n
}
