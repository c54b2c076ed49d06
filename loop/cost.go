package loop

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"coxswain/session"
)

// Prices are what a million tokens cost, in millionths of the currency's unit.
type Prices struct{ Input, Cached, Output int64 }

// cost is what a request used, in the unit that budgets have: tokens where there
// are no prices, else money, rounded up.
func (p *profile) cost(u Usage) int64 {
	in, out := int64(max(u.Prompt, 0)), int64(max(u.Completion, 0))
	if p.Prices == nil {
		return min(in, session.MeterMost) + min(out, session.MeterMost)
	}
	cached := min(int64(max(u.Cached, 0)), in)
	parts := [...][2]int64{{in - cached, p.Prices.Input}, {cached, p.Prices.Cached}, {out, p.Prices.Output}}
	var hi, lo uint64 // of the sum: with the highest price few tokens leave 64 bits
	for _, part := range parts {
		h, l := bits.Mul64(uint64(part[0]), uint64(part[1]))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	const million = 1_000_000
	if hi >= million { // the quotient has more than 64 bits
		return session.MeterMost
	}
	n, rest := bits.Div64(hi, lo, million)
	if n >= session.MeterMost {
		return session.MeterMost
	}
	if rest > 0 {
		n++
	}
	return int64(n)
}

const (
	// answerRoom is the tokens set aside for an answer while the session has had no
	// longer one: most answers and calls are shorter, and a surplus is one call's.
	answerRoom = 1024
	// bytesAToken is how much of a request is one token, where its provider has not
	// said: English text has about four, JSON and other languages less.
	bytesAToken = 4
	// weighMost is how much of one message counts. Only a picture is longer, and
	// costs a model no more than some thousand tokens, however many bytes it has.
	weighMost = 8 << 10
)

// A tally is what is known of the size of a session's requests.
type tally struct {
	weight int64 // of all messages, in bytes that count
	newest int64 // of the newest one
	// What the provider said of the last request, and the weight of its messages.
	// 0 = nothing yet.
	used   int64
	usedAt int64
	room   int64 // tokens of the longest answer
}

func (t *tally) add(bytes int, replaces bool) {
	if replaces {
		t.weight -= t.newest
	}
	t.newest = int64(bytes)
	if bytes > 64<<10 { // longer than any text
		t.newest = weighMost
	}
	t.weight += t.newest
}

// estimate is the usage set aside for the next request: what the last one and its
// answer used, if the provider said so, and four bytes a token for what came
// since, or for everything; and room for an answer.
func (tr *transcript) estimate(extra int) Usage {
	t := &tr.tally
	bytes, tokens := t.weight-t.usedAt, t.used
	if t.used == 0 || bytes < 0 {
		bytes, tokens = t.weight+int64(len(tr.head.System)+len(tr.head.Tools)), 0
	}
	return Usage{Prompt: int(tokens + (bytes+int64(extra))/bytesAToken + 1), Completion: int(max(t.room, answerRoom))}
}

// used takes note of what the provider said of a request with the messages so far.
func (tr *transcript) used(u Usage) {
	if u.Prompt <= 0 {
		return
	}
	t := &tr.tally
	t.used, t.usedAt = int64(u.Prompt), t.weight
	t.room = max(t.room, int64(u.Completion))
}

// settle pays for a request that is over. What is not known stays as it was
// estimated: the provider reports nothing, or the request was called back or
// broken off when it may have been billed. Nothing is paid where it was never
// taken, for what is billed begins with a 2xx.
func (p *profile) settle(paid func(int64), u Usage, accepted bool, err error) {
	var me *ModelError
	switch {
	case u.Prompt > 0 || u.Completion > 0:
		paid(p.cost(u))
	case err != nil && !accepted && errors.As(err, &me):
		paid(0)
	}
}

// cost is what the next request is thought to cost.
func (r *runner) cost() int64 { return r.tr.p.cost(r.tr.estimate(0)) }

// afford waits until the next request may be sent, and makes sure that it is this
// process's to send. The time of it does not count
// as the turn's.
func (r *runner) afford(ctx context.Context) (func(int64), error) {
	began := time.Now()
	paid, err := r.t.Afford(ctx, r.cost)
	r.began = r.began.Add(time.Since(began))
	if err == nil && ctx.Err() != nil { // called back meanwhile: it is not sent
		paid(0)
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	// Last of all, for the wait may have been long: whoever took the turn over
	// sends the same request.
	if err := r.t.Guard(ctx); err != nil {
		paid(0)
		return nil, err
	}
	return paid, nil
}

var _ session.Payer = (*session.Turn)(nil)
