package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"coxswain/session"
	"coxswain/steer"
)

// Calls on a lease.
type (
	claimCall   struct{ nonce string }
	renewCall   struct{ lease leaseName }
	releaseCall struct{ lease leaseName }
	beginCall   struct {
		nonce string
		op    session.OpID
		seq   int64
	}
	commitCall struct {
		lease leaseName
		op    session.OpID
		seq   int64
		end   bool
	}
)

// A leaseName is what every write of a turn carries (I4).
type leaseName struct {
	epoch int64
	nonce string
}

// Answers beside refusals.
type (
	given struct{ epoch, seq int64 } // of claim (seq 0) and begin
	wrote struct{ seq int64 }        // of commit
	yes   struct{}                   // of renew and release
)

// A register is a session's lease as the specification has it. Its end lies
// between least and most, for nobody outside knows the moment it was given.
type register struct {
	leaseName
	least, most int64 // ms
	seq         int64
	open        bool // a turn is
	op          session.OpID
	memo        any // the answer of op
}

// histSlack is how far a store's clock may be beside the one the history is
// written by, in ms: a server reads its own once for several calls.
const histSlack = 2

// leased reports whether somebody may hold the lease at some moment of a call,
// and whether nobody may.
func (r register) leased(in histAsk) (may, mayNot bool) {
	return r.nonce != "" && in.from < r.most+histSlack, r.nonce == "" || in.to >= r.least-histSlack
}

func (r register) until(in histAsk, ttl time.Duration) register {
	r.least, r.most = in.from+ttl.Milliseconds(), in.to+ttl.Milliseconds()
	return r
}

// outcomes are all that a call may do to a lease.
func (r register) outcomes(in histAsk, ttl time.Duration) []outcome {
	refused := func(word string) []outcome { return []outcome{{no(word), r}} }
	switch c := in.call.(type) {
	case claimCall:
		var all []outcome
		leased, free := r.leased(in)
		if leased && r.nonce == c.nonce {
			all = append(all, outcome{given{epoch: r.epoch}, r.until(in, ttl)})
		}
		if leased && r.nonce != c.nonce {
			all = append(all, refused("held")...)
		}
		if free {
			n := r.until(in, ttl)
			n.epoch, n.nonce = r.epoch+1, c.nonce
			all = append(all, outcome{given{epoch: n.epoch}, n})
		}
		return all
	case renewCall:
		if c.lease != r.leaseName || r.nonce == "" {
			return refused("fenced")
		}
		return []outcome{{yes{}, r.until(in, ttl)}}
	case releaseCall:
		if c.lease != r.leaseName || r.nonce == "" {
			return refused("fenced")
		}
		n := r
		n.nonce, n.least, n.most = "", 0, 0
		return []outcome{{yes{}, n}}
	case beginCall:
		return r.begins(c, in, ttl)
	case commitCall:
		if c.op == r.op {
			return []outcome{{r.memo, r}} // its reply was lost
		}
		if c.lease != r.leaseName || r.nonce == "" {
			return refused("fenced")
		}
		if !r.open || c.seq != r.seq {
			return refused("stale")
		}
		n := r.until(in, ttl)
		n.seq++
		if c.end {
			n.open, n.nonce, n.least, n.most = false, "", 0, 0
		}
		n.op, n.memo = c.op, wrote{n.seq}
		return []outcome{{n.memo, n}}
	}
	panic(fmt.Sprintf("no call on a lease: %T", in.call))
}

func (r register) begins(c beginCall, in histAsk, ttl time.Duration) (all []outcome) {
	if c.op == r.op {
		return []outcome{{r.memo, r}}
	}
	leased, free := r.leased(in)
	if leased && r.nonce != c.nonce {
		all = append(all, outcome{no("held"), r})
	}
	if !free && r.nonce != c.nonce {
		return all
	}
	if r.open || c.seq != r.seq {
		return append(all, outcome{no("stale"), r})
	}
	n := r.until(in, ttl)
	n.epoch, n.nonce, n.open, n.seq = r.epoch+1, c.nonce, true, r.seq+1
	n.op, n.memo = c.op, given{n.epoch, n.seq}
	return append(all, outcome{n.memo, n})
}

func leaseModel(ttl time.Duration) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{register{}} },
		Step: func(state, input, output any) []any {
			r, in := state.(register), input.(histAsk)
			return possible(r, output, r.outcomes(in, ttl))
		},
	}
}

// A holder is one process: what it knows of the lease, right or wrong.
type holder struct {
	r     *recorder
	ctx   context.Context
	st    session.Store
	ttl   time.Duration
	i     int
	nonce string
	rng   *rand.Rand
	lease leaseName
	seq   int64
	n     int
	retry any // a begin or commit whose reply was lost
}

var histLane = session.Key{Platform: "test", Chat: "history"}

// leaseHistory plays one history of leases and says what is wrong with it.
func leaseHistory(ctx context.Context, st session.Store, now func() time.Time, ttl time.Duration, seed uint64, met map[string]int) string {
	if _, err := st.Post(ctx, session.Post{Key: histLane}); err != nil { // the lane is there
		return err.Error()
	}
	r := &recorder{now: now, met: met}
	clients(seed, func(i int, rng *rand.Rand) {
		h := &holder{r: r, ctx: ctx, st: losing(st, rng), ttl: ttl, i: i, nonce: nonceOf(i / 2), rng: rng} // some share one: it has two goroutines
		for range histCalls {
			h.act()
		}
	})
	seen := int64(0)
	for _, o := range r.ops {
		if g, ok := o.Output.(given); ok {
			if _, claimed := o.Input.(histAsk).call.(claimCall); claimed && g.epoch > max(seen, 1) {
				met["taken over"]++
			}
			seen = max(seen, g.epoch)
		}
	}
	return r.judge(leaseModel(ttl))
}

// name is the lease it believes in; sometimes with a nonce that is another's, as
// after a failover that lost a claim (F20).
func (h *holder) name() leaseName {
	l := h.lease
	if h.rng.IntN(8) == 0 {
		l.nonce = nonceOf(h.rng.IntN(histClients) / 2)
	}
	return l
}

// act does one thing a process may do, often with what it should know better.
func (h *holder) act() {
	switch n := h.rng.IntN(10); {
	case h.retry != nil:
		call := h.retry
		h.retry = nil
		h.write(call)
	case n < 3:
		got := h.r.do(h.i, "claim", claimCall{h.nonce}, func() (any, string, error) {
			b, err := h.st.Claim(h.ctx, histLane, h.nonce, h.ttl)
			if err != nil {
				return refusal(err)
			}
			h.seq = b.Lane.Seq
			return given{epoch: b.Lease.Epoch}, "ok", nil
		})
		h.keep(got)
	case n < 5:
		l := h.name()
		h.fenced("renew", renewCall{l}, func() error { _, err := h.st.Renew(h.ctx, h.full(l)); return err })
	case n < 6:
		l := h.name()
		h.fenced("release", releaseCall{l}, func() error { return h.st.Release(h.ctx, h.full(l)) })
	case n < 8:
		h.n++
		h.write(beginCall{h.nonce, session.OpID(fmt.Sprintf("b%d:%d", h.i, h.n)), h.seq})
	default:
		h.n++
		h.write(commitCall{h.name(), session.OpID(fmt.Sprintf("c%d:%d", h.i, h.n)), h.seq, h.rng.IntN(2) == 0})
	}
}

func (h *holder) full(l leaseName) session.Lease {
	return session.Lease{Key: histLane, Epoch: l.epoch, Nonce: l.nonce, TTL: h.ttl}
}

// keep remembers a lease that was given.
func (h *holder) keep(answer any) {
	if g, ok := answer.(given); ok {
		h.lease = leaseName{g.epoch, h.nonce}
	}
}

func (h *holder) fenced(name string, call any, ask func() error) {
	h.r.do(h.i, name, call, func() (any, string, error) {
		if err := ask(); err != nil {
			return refusal(err)
		}
		return yes{}, "ok", nil
	})
}

// write asks a begin or a commit, once more if its reply is lost.
func (h *holder) write(call any) {
	var got any
	switch c := call.(type) {
	case beginCall:
		got = h.r.do(h.i, "begin", c, func() (any, string, error) {
			b, err := h.st.Begin(h.ctx, session.Begin{
				Op: c.op, Key: histLane, Nonce: c.nonce, TTL: h.ttl, Gen: 1, Seq: c.seq, Owner: ann, Phase: steer.PhasePreparing, Rows: []session.Row{userRow()},
			})
			if err != nil {
				h.look()
				return refusal(err)
			}
			h.seq = b.Lane.Seq
			return given{b.Lease.Epoch, b.Lane.Seq}, "ok", nil
		})
		h.keep(got)
	case commitCall:
		got = h.r.do(h.i, "commit", c, func() (any, string, error) {
			w, err := h.st.Commit(h.ctx, h.full(c.lease), session.Commit{Op: c.op, Seq: c.seq, Rows: []session.Row{row(session.RowAssistant, h.n)}, Phase: steer.PhaseModel, End: c.end})
			if err != nil {
				return refusal(err)
			}
			h.seq = w.Seq
			return wrote{w.Seq}, "ok", nil
		})
	}
	if _, unknown := got.(lost); unknown {
		h.retry = call
	}
}

// look reads how far the rows have got.
func (h *holder) look() {
	if l, err := h.st.Load(h.ctx, histLane); err == nil {
		h.seq = l.Seq
	}
}
