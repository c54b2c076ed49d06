package redis

import (
	"context"
	"time"

	"coxswain/session"
)

// Begin implements session.Store.
func (s *Store) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	a := s.lane(r.Key)
	a.str(string(r.Op)).str(r.Nonce).ms(r.TTL).num(r.Gen).num(r.Seq).str(string(r.Owner)).num(int64(r.Phase))
	a.takes(r.Take)
	list(a, r.Jobs, func(id string) { a.str(id) })
	a.rows(s, r.Rows).fates(r.Fates).outs(r.Outs)
	_, in, err := s.on(ctx, scriptBegin, r.Key, a)
	if err != nil {
		return session.Begun{}, err
	}
	return in.begun(r.Key, r.Nonce, r.TTL)
}

// Claim implements session.Store.
func (s *Store) Claim(ctx context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	a := s.lane(key)
	a.str(nonce).ms(ttl)
	_, in, err := s.on(ctx, scriptClaim, key, a)
	if err != nil {
		return session.Begun{}, err
	}
	return in.begun(key, nonce, ttl)
}

func (r *reply) begun(key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	return session.Begun{
		Lease: session.Lease{Key: key, Epoch: r.num(), Nonce: nonce, TTL: ttl},
		Lane:  r.lane(key),
	}, *r.err
}

// Renew implements session.Store.
func (s *Store) Renew(ctx context.Context, l session.Lease) (session.Flags, error) {
	a := s.lane(l.Key)
	a.num(l.Epoch).str(l.Nonce).ms(l.TTL)
	_, in, err := s.on(ctx, scriptRenew, l.Key, a)
	if err != nil {
		return session.Flags{}, err
	}
	return in.flags(), *in.err
}

// Release implements session.Store.
func (s *Store) Release(ctx context.Context, l session.Lease) error {
	a := s.lane(l.Key)
	a.num(l.Epoch).str(l.Nonce)
	_, _, err := s.on(ctx, scriptRelease, l.Key, a)
	return err
}

// Commit implements session.Store.
func (s *Store) Commit(ctx context.Context, l session.Lease, r session.Commit) (session.Committed, error) {
	a := s.lane(l.Key)
	a.num(l.Epoch).str(l.Nonce).ms(l.TTL).str(string(r.Op)).num(r.Seq).num(int64(r.Phase))
	a.flag(r.Drain).num(int64(r.Step)).flag(r.TakeOut).flag(r.End).flag(r.HoldRest)
	a.takes(r.Take).rows(s, r.Rows).jobs(r.Jobs).outs(r.Outs).fates(r.Fates)
	_, in, err := s.on(ctx, scriptCommit, l.Key, a)
	if err != nil {
		return session.Committed{}, err
	}
	c := in.committed(l.Key)
	return c, *in.err
}

// committed reads an answer of commit.
func (r *reply) committed(key session.Key) session.Committed {
	c := session.Committed{Seq: r.num(), Flags: r.flags()}
	for moved := r.list(); moved.more(); {
		m := moved.list()
		c.Steers = append(c.Steers, session.Row{
			Type: session.RowSteer,
			Seq:  m.num(), Turn: m.num(), On: m.num(), N: m.num(), Tick: m.num(), Data: m.data(),
		})
	}
	c.More = r.flag()
	at := r.time()
	for i := range c.Steers {
		c.Steers[i].At = at
	}
	if r.more() {
		p := r.part(key)
		c.Out = &p
	}
	return c
}
