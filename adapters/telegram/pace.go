package telegram

import (
	"slices"
	"sync"
	"time"
)

// Telegram's limits, as far as it tells: about one message a second in a chat
// with short bursts, 20 a minute in a group, 30 a second overall (FAQ). Edits
// and drafts count like messages. Receipts and the typing sign are free here.
const (
	chatRate   = 1.0
	chatBurst  = 3.0
	groupMost  = 20
	groupSpan  = time.Minute
	allRate    = 30.0
	allBurst   = 30.0
	draftCost  = 0.5  // in its chat a draft is lighter than a message: two a second hold
	spareChat  = 1.0  // what progress leaves of a chat's burst
	spareGroup = 5    // … of a group's minute
	spareAll   = 10.0 // … of the overall burst

	// allStep is the step in which sends go that wait for the overall rate: three at
	// a time cost one wake-up and one commit where three alone cost three of each.
	allStep = 100 * time.Millisecond
)

// A pacer is the one budget of a bot: per chat, per group and overall. What
// must arrive may wait for its turn and uses all of it; progress never waits
// and leaves a reserve, so a final goes out at once however lively the bubble
// was. Safe from any goroutine; the zero value is ready.
type pacer struct {
	mu     sync.Mutex
	chats  map[int64]*budget
	all    bucket
	allTil time.Time // cool-off of the whole bot
	floods []flood
	line   []waiter // chats whose progress waits for the overall budget
}

// A waiter is a chat in the line. It has one place, however much it has to
// show, and loses it when it does not come back in time.
type waiter struct {
	chat int64
	due  time.Time
}

// waiterGrace is how late a chat may come to its turn.
const waiterGrace = time.Second

type flood struct {
	chat int64
	at   time.Time
}

type budget struct {
	bucket
	recent []time.Time // of a group: sends within groupSpan, oldest first
	until  time.Time   // cool-off
}

type bucket struct {
	level float64
	at    time.Time // of level; zero = full, in the future = a cool-off until then
}

// rest empties the bucket until a cool-off is over: then one may go, and the
// others behind it at the rate. A bucket that filled meanwhile would let all go
// that wait for the end of the flood, in the same moment, and begin the next.
func (b *bucket) rest(until time.Time) {
	if b.at.IsZero() {
		b.level = 1
	}
	if until.After(b.at) {
		b.level, b.at = min(b.level, 1), until
	}
}

func (b *bucket) fill(now time.Time, rate, burst float64) {
	switch {
	case b.at.IsZero():
		b.level = burst
	case now.Before(b.at):
		return
	default:
		b.level = min(burst, b.level+rate*now.Sub(b.at).Seconds())
	}
	b.at = now
}

// short is how long until level is at least want, after a fill at now.
func (b *bucket) short(want, rate float64, now time.Time) time.Duration {
	rest := max(b.at.Sub(now), 0)
	if b.level >= want {
		return rest
	}
	// Rounded up: a timer that fires a nanosecond early would find it short.
	return rest + time.Duration((want-b.level)/rate*float64(time.Second)) + time.Microsecond
}

// take asks for room for one message to chat. If it may go within most, it is
// counted and wait says when; else ok is false and wait says when to ask
// again. spare leaves the reserve.
func (p *pacer) take(chat int64, cost float64, spare bool, most time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wait, b := p.lookLocked(chat, cost, spare, now)
	if wait > most {
		return wait, false
	}
	b.level -= cost
	p.all.level--
	if spare {
		p.line = slices.DeleteFunc(p.line, func(w waiter) bool { return w.chat == chat })
	}
	if chat < 0 {
		b.recent = append(b.recent, now.Add(wait))
	}
	return wait, true
}

// look says when take would give room at once, counting nothing: what is only
// progress need not be put into words before.
func (p *pacer) look(chat int64, cost float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait, _ := p.lookLocked(chat, cost, true, time.Now())
	return wait
}

func (p *pacer) lookLocked(chat int64, cost float64, spare bool, now time.Time) (time.Duration, *budget) {
	b := p.chatLocked(chat, now)
	keepChat, group, all := 0.0, groupMost, time.Duration(0)
	if spare {
		keepChat, group = spareChat, groupMost-spareGroup
	}
	b.fill(now, chatRate, chatBurst)
	p.all.fill(now, allRate, allBurst)
	if !spare {
		all = inStep(now, p.all.short(1, allRate, now))
	}
	wait := max(b.until.Sub(now), p.allTil.Sub(now), b.short(cost+keepChat, chatRate, now), all, 0)
	if chat < 0 { // Telegram's ids of groups are below zero
		for len(b.recent) > 0 && now.Sub(b.recent[0]) >= groupSpan {
			b.recent = b.recent[1:]
		}
		if n := len(b.recent); n >= group {
			wait = max(wait, b.recent[n-group].Add(groupSpan).Sub(now))
		}
	}
	if spare && wait == 0 {
		wait = p.queueLocked(chat, now)
	}
	return wait, b
}

// inStep makes a wait end with the step it would end in.
func inStep(now time.Time, wait time.Duration) time.Duration {
	if wait <= 0 {
		return 0
	}
	due := now.Add(wait)
	if step := due.Truncate(allStep); step.Before(due) {
		due = step.Add(allStep)
	}
	return due.Sub(now)
}

// queueLocked gives the chats that have something to show their turn at the
// overall budget, one after another: many chats that stream at once would else
// get frames by luck, some many and some none. It says how long until this
// chat's turn.
func (p *pacer) queueLocked(chat int64, now time.Time) time.Duration {
	p.line = slices.DeleteFunc(p.line, func(w waiter) bool { return now.After(w.due) })
	at := slices.IndexFunc(p.line, func(w waiter) bool { return w.chat == chat })
	if at < 0 {
		at = len(p.line)
		p.line = append(p.line, waiter{chat: chat})
	}
	wait := p.all.short(1+spareAll+float64(at), allRate, now)
	p.line[at].due = now.Add(wait + waiterGrace)
	return wait
}

// giveBack undoes a take of one message.
func (p *pacer) giveBack(chat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chatLocked(chat, time.Now())
	b.level++
	p.all.level++
	if n := len(b.recent); n > 0 {
		b.recent = b.recent[:n-1]
	}
}

// cooling is how long a chat has still to be left alone.
func (p *pacer) cooling(chat int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return max(p.chatLocked(chat, now).until.Sub(now), p.allTil.Sub(now), 0)
}

// cool honours a retry_after for the whole chat. Three chats within ten
// seconds mean the bot itself is over its limit (T24).
func (p *pacer) cool(chat int64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	b := p.chatLocked(chat, now)
	if until := now.Add(d); until.After(b.until) {
		b.until = until
		b.rest(until)
	}
	kept := p.floods[:0]
	for _, f := range p.floods {
		if now.Sub(f.at) < 10*time.Second && f.chat != chat {
			kept = append(kept, f)
		}
	}
	p.floods = append(kept, flood{chat, now})
	if len(p.floods) >= 3 {
		if until := now.Add(d); until.After(p.allTil) {
			p.allTil = until
			p.all.rest(until)
		}
		p.floods = p.floods[:0]
	}
}

func (p *pacer) chatLocked(chat int64, now time.Time) *budget {
	b := p.chats[chat]
	if b != nil {
		return b
	}
	if p.chats == nil {
		p.chats = make(map[int64]*budget)
	}
	if len(p.chats) >= 1024 {
		for id, b := range p.chats { // those that are full again say nothing
			if now.Sub(b.at) > 2*groupSpan && now.After(b.until) {
				delete(p.chats, id)
			}
		}
	}
	b = &budget{}
	p.chats[chat] = b
	return b
}
