package redis

import (
	"context"
	"fmt"
	"time"

	"coxswain/session"
)

// meters is the prefix of the keys of all meters and ops: those of one partition,
// so that one script can look at several meters at once, whoever's they are.
func (s *Store) meters() string { return s.partition(0) }

// Reserve implements session.Store.
func (s *Store) Reserve(ctx context.Context, r session.Reserve) (session.Reserved, error) {
	a := s.begin("")
	a.str(r.Op).num(r.Amount).ms(session.MeterIdle)
	list(&a, r.Meters, func(m session.Meter) { a.str(m.Name).num(m.Limit).ms(m.Period) })
	_, in, err := s.run(ctx, scriptReserve, s.meters(), a)
	if err != nil {
		return session.Reserved{}, err
	}
	got := session.Reserved{Refused: in.str(), Wait: time.Duration(in.num()) * time.Millisecond}
	for l := in.list(); l.more(); {
		got.Meters = append(got.Meters, session.MeterState{Used: l.num(), Limit: l.num(), Grants: l.num(), Window: l.num()})
	}
	return got, *in.err
}

// Spent implements session.Store.
func (s *Store) Spent(ctx context.Context, op string, actual int64) error {
	a := s.begin("")
	a.str(op).num(max(0, actual)).ms(session.SpentKept)
	_, _, err := s.run(ctx, scriptSpent, s.meters(), a)
	return err
}

// Grant implements session.Store.
func (s *Store) Grant(ctx context.Context, g session.Grant) (session.Granted, error) {
	a := s.begin("")
	a.str(g.Meter).num(g.Window).num(g.Extra).str(g.Mark)
	_, in, err := s.run(ctx, scriptGrant, s.meters(), a)
	if err != nil {
		return session.Granted{}, err
	}
	outcome := in.str()
	if *in.err != nil {
		return session.Granted{}, *in.err
	}
	o, ok := map[string]session.GrantOutcome{"done": session.GrantDone, "dup": session.GrantDup, "gone": session.GrantGone}[outcome]
	if !ok {
		return session.Granted{}, fmt.Errorf("redis grant: no such outcome: %q", outcome)
	}
	return session.Granted{Outcome: o}, nil
}
