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

// Calls on a message.
type (
	acceptCall struct{ msg int }
	dropCall   struct {
		msg int
		by  string // dedupe key of the event that drops it
	}
	takeCall struct { // by the begin of a turn
		msg int
		op  session.OpID
	}
)

// Answers.
type (
	accepted struct {
		ticket int64
		dup    bool
	}
	dropped struct{ done bool }
)

// A fateful message is one as the specification has it.
type fateful struct {
	ticket int64  // 0 = not accepted
	by     string // who took or dropped it
	taken  bool
}

func (m fateful) outcomes(call any, answer any) []outcome {
	switch c := call.(type) {
	case acceptCall:
		if m.ticket != 0 {
			return []outcome{{accepted{m.ticket, true}, m}}
		}
		if a, ok := answer.(accepted); ok { // which ticket it is, other messages decide
			return []outcome{{accepted{a.ticket, false}, fateful{ticket: a.ticket}}}
		}
		return []outcome{{nil, fateful{ticket: anyTicket}}}
	case dropCall:
		switch m.by {
		case "":
			n := m
			n.by = c.by
			return []outcome{{dropped{true}, n}}
		case c.by:
			return []outcome{{dropped{true}, m}} // its reply was lost
		}
		return []outcome{{dropped{false}, m}}
	case takeCall:
		all := []outcome{{no("stale"), m}, {no("held"), m}} // a turn is open, or another message was taken before
		n := m
		switch m.by {
		case "":
			n.by, n.taken = string(c.op), true
			return append(all, outcome{yes{}, n})
		case string(c.op):
			return append(all, outcome{yes{}, m})
		}
		return all
	}
	panic(fmt.Sprintf("no call on a message: %T", call))
}

// anyTicket is one that was given and not told: the reply was lost.
const anyTicket = -1

var messageModel = porcupine.NondeterministicModel{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := map[int][]porcupine.Operation{}
		for _, o := range all {
			msg := 0
			switch c := o.Input.(histAsk).call.(type) {
			case acceptCall:
				msg = c.msg
			case dropCall:
				msg = c.msg
			case takeCall:
				msg = c.msg
			}
			by[msg] = append(by[msg], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range by {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() []any { return []any{fateful{}} },
	Step: func(state, input, output any) []any {
		m := state.(fateful)
		if a, ok := output.(accepted); ok && m.ticket == anyTicket {
			m.ticket = a.ticket
		}
		return possible(m, output, m.outcomes(input.(histAsk).call, output))
	},
}

// messageHistory plays one history of messages and says what is wrong with it.
// Each message is delivered to several processes, and any of them may begin a turn
// with it while another drops it.
func messageHistory(ctx context.Context, st session.Store, now func() time.Time, seed uint64, met map[string]int) string {
	r := &recorder{now: now, met: met}
	clients(seed, func(i int, rng *rand.Rand) {
		c := &carrier{r: r, ctx: ctx, st: losing(st, rng), i: i, rng: rng, tickets: map[int]int64{}}
		for n := range histCalls {
			c.act(n / 3)
		}
	})
	return r.judge(messageModel)
}

// A carrier is one process that receives messages and runs them.
type carrier struct {
	r       *recorder
	ctx     context.Context
	st      session.Store
	i, n    int
	rng     *rand.Rand
	tickets map[int]int64
}

func (c *carrier) act(msg int) {
	ticket := c.tickets[msg]
	switch {
	case ticket == 0:
		got := c.r.do(c.i, "accept", acceptCall{msg}, func() (any, string, error) {
			id := fmt.Sprintf("m:%d", msg)
			a, err := c.st.Accept(c.ctx, session.Accept{Key: histLane, Dedupe: id, Author: ann, Msg: session.MessageID(id), Data: text(id), Fate: session.FateQueued})
			if err != nil {
				return nil, "", err
			}
			dup := a.Outcome == session.AcceptDup
			return accepted{a.Ticket, dup}, map[bool]string{false: "ok", true: "dup"}[dup], nil
		})
		if a, ok := got.(accepted); ok {
			c.tickets[msg] = a.ticket
		}
	case c.rng.IntN(4) == 0:
		by := fmt.Sprintf("d:%d:%d", c.i, msg) // the same when it is asked again
		c.r.do(c.i, "drop", dropCall{msg, by}, func() (any, string, error) {
			a, err := c.st.Amend(c.ctx, session.Amend{Key: histLane, Dedupe: by, Kind: session.AmendDrop, Ticket: ticket})
			if err != nil {
				return nil, "", err
			}
			return dropped{a.Done}, map[bool]string{false: "late", true: "done"}[a.Done], nil
		})
	default:
		c.take(msg, ticket)
	}
}

// take begins a turn with one message, asks again while the reply is lost, and
// ends it.
func (c *carrier) take(msg int, ticket int64) {
	l, err := c.st.Load(c.ctx, histLane)
	if err != nil {
		return
	}
	version := int64(1)
	for _, e := range l.Slot {
		if e.Ticket == ticket {
			version = e.Version
		}
	}
	c.n++
	op := session.OpID(fmt.Sprintf("t%d:%d", c.i, c.n))
	var lease session.Lease
	var seq int64
	for {
		got := c.r.do(c.i, "take", takeCall{msg, op}, func() (any, string, error) {
			b, err := c.st.Begin(c.ctx, session.Begin{
				Op: op, Key: histLane, Nonce: nonceOf(c.i), TTL: time.Hour, Gen: 1, Seq: l.Seq, Owner: ann, Phase: steer.PhasePreparing,
				Take: []session.Take{{Ticket: ticket, Version: version}}, Rows: []session.Row{userRow(ticket)},
			})
			if err != nil {
				answer, word, err := refusal(err)
				if word != "" {
					word = "no"
				}
				return answer, word, err
			}
			lease, seq = b.Lease, b.Lane.Seq
			return yes{}, "ok", nil
		})
		if _, unknown := got.(lost); !unknown {
			break
		}
	}
	end := session.Commit{Op: op + "e", Seq: seq, Rows: []session.Row{row(session.RowAssistant, c.n)}, Phase: steer.PhaseIdle, End: true}
	if lease.Epoch == 0 {
		return
	}
	c.until(func() error { _, err := c.st.Commit(c.ctx, lease, end); return err })
	c.until(func() error { return c.st.Release(c.ctx, lease) }) // it is kept while others wait
}

// until asks again while the reply is lost.
func (c *carrier) until(ask func() error) {
	for {
		err := ask()
		if _, _, lost := refusal(err); err == nil || lost == nil {
			return
		}
	}
}
