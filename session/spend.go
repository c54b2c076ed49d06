package session

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"coxswain/steer"
)

// What may be used up (issue 4, limits). Before each model request its cost is
// taken from the meters of the gateway's day, the person, the chat and the task;
// if one has not enough left, the turn waits where it is, as it waits for an
// answer: it keeps its lease, nothing is written for it, and whatever ends or
// changes a turn does so now. All that is known of the waiting is in the meters,
// so after a crash the turn asks them again and waits again.

// A Unit is what Spend counts.
type Unit string

// The units.
const (
	UnitTokens Unit = "tokens"
	UnitMoney  Unit = "money" // millionths of the currency's unit
)

// Spend is how much may be used up; 0 = no limit. Days are UTC.
type Spend struct {
	Unit   Unit
	Day    int64 // by all sessions of the gateway, in a day
	Person int64 // by the turns of one person, in a day
	Chat   int64 // in one chat with its threads, in a day
	Turn   int64 // by one turn
}

// Rate is how much may begin in a minute; 0 = no limit.
type Rate struct {
	PersonTurns, ChatTurns int64
	PersonCalls, ChatCalls int64
}

// A Payer sets aside what model requests cost.
type Payer interface {
	// Afford waits until a request of about cost may be sent, and takes that from
	// the meters. paid settles it; not called, what was taken stays counted. cost is
	// asked for once, and only where there is a limit. The end of ctx ends the
	// waiting: the error is its cause. ErrSpent is the answer where nobody can wait.
	Afford(ctx context.Context, cost func() int64) (paid func(actual int64), err error)
}

// ErrSpent says that a budget is used up.
var ErrSpent = errors.New("a budget is used up")

// Scopes of meters begin their names; which of them has run out is told by it.
const (
	scopeTurn   = 't'
	scopeChat   = 'c'
	scopePerson = 'p'
	scopeDay    = 'd'
	scopeRate   = 'r' // turns or requests of a minute
)

const utcDay = 24 * time.Hour

// meterPlatform begins the keys by which stores tell that a meter was granted
// more; no platform has that name.
const meterPlatform PlatformName = "meter"

// meterName is short, for buttons carry it, and says nothing of whose it is.
func meterName(scope rune, what ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(what, "\x00")))
	return string(scope) + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:8]))
}

// A bill says who pays: for whose task in which session. turn names the turn, and
// is empty beside one.
type bill struct {
	lane Key
	who  Person
	turn string
}

// budgets are the meters of what a bill may spend, the narrowest first; nil when
// nothing is limited.
func (h *Hub) budgets(b bill) (meters []Meter) {
	if h.Spend == nil {
		return nil
	}
	chat := h.Routes.Home(b.lane)
	s := h.Spend(chat)
	add := func(limit int64, period time.Duration, scope rune, what ...string) {
		if limit > 0 {
			meters = append(meters, Meter{Name: meterName(scope, append([]string{string(s.Unit)}, what...)...), Limit: limit, Period: period})
		}
	}
	on, id := b.who.Known(b.lane)
	if b.turn != "" {
		add(s.Turn, 0, scopeTurn, b.turn)
	}
	add(s.Chat, utcDay, scopeChat, string(chat.Platform), string(chat.Chat))
	add(s.Person, utcDay, scopePerson, string(on), string(id))
	add(s.Day, utcDay, scopeDay)
	return meters
}

// paces are the meters of a minute for one kind of what begins.
func (h *Hub) paces(b bill, kind string, person, chat int64) (meters []Meter) {
	if person > 0 {
		on, id := b.who.Known(b.lane)
		meters = append(meters, Meter{Name: meterName(scopeRate, kind, "person", string(on), string(id)), Limit: person, Period: time.Minute})
	}
	if chat > 0 {
		at := h.Routes.Home(b.lane)
		meters = append(meters, Meter{Name: meterName(scopeRate, kind, "chat", string(at.Platform), string(at.Chat)), Limit: chat, Period: time.Minute})
	}
	return meters
}

// afford is Payer.Afford for a bill. stalls is told why it has to wait, and
// returns false when nobody can.
func (h *Hub) afford(ctx context.Context, b bill, cost func() int64, stalls func(Reserved, []Meter) bool) (func(int64), error) {
	if calls := h.paces(b, "calls", h.Rate.PersonCalls, h.Rate.ChatCalls); len(calls) > 0 {
		if _, _, err := h.take(ctx, calls, 1, stalls); err != nil {
			return nil, err
		}
	}
	meters := h.budgets(b)
	if len(meters) == 0 {
		return func(int64) {}, nil
	}
	op, got, err := h.take(ctx, meters, affordable(meters, cost()), stalls)
	if err != nil {
		return nil, err
	}
	h.warn(ctx, b.lane, meters, got)
	return func(actual int64) {
		// Also when the turn was stopped meanwhile. A reply that is lost leaves the
		// estimate.
		if err := h.Store.Spent(h.life, op, min(max(actual, 0), MeterMost)); err != nil {
			h.note(h.life, "settle a cost", err)
		}
	}, nil
}

// affordable is the amount set aside for a cost. One request may always be sent with
// a budget that is whole, whatever it costs: else a limit below that would let none
// through, and no day would change it.
func affordable(meters []Meter, cost int64) int64 {
	amount := min(max(cost, 1), MeterMost)
	for _, m := range meters {
		amount = min(amount, m.Limit)
	}
	return amount
}

// askAgain is how long who waits for a budget waits at most before it asks again:
// what a lost wake-up costs (F31).
const askAgain = 30 * time.Second

// take takes from the meters, and waits until it can.
func (h *Hub) take(ctx context.Context, meters []Meter, amount int64, stalls func(Reserved, []Meter) bool) (op string, got Reserved, err error) {
	r := Reserve{Op: fmt.Sprintf("%s#%d", h.Nonce, h.spends.Add(1)), Meters: meters, Amount: amount}
	for {
		more := h.granted() // before the question: a grant between is not missed
		err := h.persist(ctx, "reserve a cost", func(ctx context.Context) (err error) {
			got, err = h.Store.Reserve(ctx, r)
			return err
		})
		if err != nil || got.Refused == "" {
			return r.Op, got, err
		}
		if !stalls(got, meters) {
			return r.Op, got, ErrSpent
		}
		wait := askAgain
		if got.Wait > 0 {
			wait = min(wait, got.Wait+time.Millisecond)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return r.Op, got, context.Cause(ctx)
		case <-more:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// granted is closed when a meter may have been granted more.
func (h *Hub) granted() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more == nil {
		h.more = make(chan struct{})
	}
	return h.more
}

func (h *Hub) wakeSpendersLocked() {
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

func (t *Turn) bill() bill {
	return bill{lane: t.a.key, who: t.asker, turn: fmt.Sprintf("%s:%d:%d", t.a.key, t.number, t.turnAt.UnixMilli())}
}

// Stalled reports whether a request of about cost would have to wait for a budget
// now. It takes nothing.
func (t *Turn) Stalled(ctx context.Context, cost func() int64) bool {
	meters := t.h.budgets(t.bill())
	if len(meters) == 0 {
		return false
	}
	var got Reserved
	err := t.h.persist(ctx, "read a budget", func(ctx context.Context) (err error) {
		got, err = t.h.Store.Reserve(ctx, Reserve{Meters: meters})
		return err
	})
	amount := affordable(meters, cost())
	return err == nil && slices.ContainsFunc(got.Meters, func(s MeterState) bool { return s.Used+amount > s.Limit })
}

// Afford implements Payer. While it waits the view says why, and who can let it
// go on is asked once.
func (t *Turn) Afford(ctx context.Context, cost func() int64) (func(int64), error) {
	b := t.bill()
	stalled, asked := "", ""
	paid, err := t.h.afford(ctx, b, cost, func(r Reserved, meters []Meter) bool {
		if why := textStalled(r); why != stalled {
			stalled = why
			t.SetPhase(steer.PhaseModel)
			t.Show(func(v *View) { v.Notice = why })
		}
		if q := questionOf(r, meters); q.scope() != scopeRate && q.mark() != asked {
			if err := t.h.askMore(ctx, t.a.key, q); err != nil {
				t.h.note(ctx, "ask for more", err) // asked again with the next look
			} else {
				asked = q.mark()
			}
		}
		return true
	})
	if stalled != "" {
		t.Show(func(v *View) { v.Notice = "" })
	}
	return paid, err
}

// An asidePayer pays for a question beside the turn: it waits for its minute, but
// not for a day.
type asidePayer struct {
	h *Hub
	b bill
}

// Afford implements Payer.
func (p asidePayer) Afford(ctx context.Context, cost func() int64) (func(int64), error) {
	return p.h.afford(ctx, p.b, cost, func(r Reserved, meters []Meter) bool {
		return questionOf(r, meters).scope() == scopeRate
	})
}
