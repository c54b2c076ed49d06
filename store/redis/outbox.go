package redis

import (
	"context"
	"fmt"
	"time"

	"coxswain/session"
)

// OutTake implements session.Store.
func (s *Store) OutTake(ctx context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error) {
	a := s.lane(key)
	a.str(nonce).ms(takeover)
	status, in, err := s.on(ctx, scriptOutTake, key, a)
	if err != nil {
		return session.Part{}, false, 0, err
	}
	if status == "NONE" {
		wait := time.Duration(in.num()) * time.Millisecond
		return session.Part{}, false, wait, *in.err
	}
	p := in.part(key)
	return p, *in.err == nil, 0, *in.err
}

// OutDone implements session.Store.
func (s *Store) OutDone(ctx context.Context, key session.Key, nonce string, d session.PartDone) error {
	switch d.State {
	case session.PartSent, session.PartDead, session.PartPlanned, session.PartUnknown, session.PartSending:
	default:
		return fmt.Errorf("redis outdone: a part cannot end as %q", d.State)
	}
	a := s.lane(key)
	a.str(nonce).str(d.ID).str(string(d.State)).ms(d.Wait).str(d.For)
	_, _, err := s.on(ctx, scriptOutDone, key, a)
	return err
}

// OutDue implements session.Store.
func (s *Store) OutDue(ctx context.Context, limit int) ([]session.Key, error) {
	return s.dueIn(ctx, scriptOutDue, limit)
}

// Fates implements session.Store.
func (s *Store) Fates(ctx context.Context, key session.Key, limit int) ([]session.Fate, error) {
	if limit <= 0 || limit > fatesKept {
		limit = fatesKept
	}
	a := s.lane(key)
	a.num(int64(limit))
	_, in, err := s.on(ctx, scriptFates, key, a)
	if err != nil {
		return nil, err
	}
	var fates []session.Fate
	for l := in.list(); l.more(); {
		fates = append(fates, l.fate())
	}
	return fates, *in.err
}

// Seen implements session.Store.
func (s *Store) Seen(ctx context.Context, key session.Key, dedupe string) (bool, error) {
	a := s.lane(key)
	a.str(dedupe)
	_, in, err := s.on(ctx, scriptSeen, key, a)
	if err != nil {
		return false, err
	}
	return in.flag(), *in.err
}

// Settle implements session.Store.
func (s *Store) Settle(ctx context.Context, key session.Key, f []session.FateSet) error {
	a := s.lane(key)
	a.fates(f)
	_, _, err := s.on(ctx, scriptSettle, key, a)
	return err
}
