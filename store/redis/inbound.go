package redis

import (
	"context"
	"fmt"

	"coxswain/session"
)

// fatesKept is how many fates a lane keeps, the newest: what session.Store
// promises, and a bound on what a long life of a lane costs (I12).
const fatesKept = 256

var acceptOutcomes = map[string]session.AcceptOutcome{
	"OK": session.AcceptOK, "DUP": session.AcceptDup, "FULL": session.AcceptFull, "JOINED": session.AcceptJoined,
}

// Accept implements session.Store. A call whose reply was lost inside gives
// its first outcome, not AcceptDup, unless another was accepted in between.
func (s *Store) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	a := s.lane(r.Key)
	a.str(s.dedupe(r.Dedupe)).num(int64(r.Want)).num(r.Turn).str(string(r.Author)).str(string(r.Msg)).bytes(r.Data)
	a.str(r.Group).ms(r.Open).flag(r.Append).str(r.Title).str(string(r.Fate))
	a.num(session.SlotCap).num(session.EntryMaxBytes).num(fatesKept).outs(r.Full)
	gen := s.journal.now()
	status, in, err := s.on(ctx, scriptAccept, r.Key, a)
	if err != nil {
		return session.Accepted{}, err
	}
	outcome, ok := acceptOutcomes[status]
	if !ok {
		return session.Accepted{}, fmt.Errorf("redis accept: unknown outcome %q", status)
	}
	got := session.Accepted{Outcome: outcome, Ticket: in.num(), Lane: in.lane(r.Key)}
	if r.Dedupe != "" && got.Ticket != 0 { // a duplicate too: who stored it may be gone
		s.journal.keep(gen, journalCall{lane: r.Key, script: scriptAccept, partition: s.partitionOf(r.Key), args: *a})
	}
	return got, *in.err
}

// Load implements session.Store.
func (s *Store) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	_, in, err := s.on(ctx, scriptLoad, key, s.lane(key))
	if err != nil {
		return session.Lane{}, err
	}
	return in.lane(key), *in.err
}

var amendKinds = map[session.AmendKind]string{
	session.AmendEdit: "edit", session.AmendDrop: "drop", session.AmendSet: "set",
}

// Amend implements session.Store.
func (s *Store) Amend(ctx context.Context, r session.Amend) (session.Amended, error) {
	kind, ok := amendKinds[r.Kind]
	if !ok {
		return session.Amended{}, fmt.Errorf("redis amend: unknown kind %d", r.Kind)
	}
	a := s.lane(r.Key)
	a.str(s.dedupe(r.Dedupe)).str(kind).num(r.Ticket).num(r.Version).bytes(r.Data)
	a.num(int64(r.Want)).num(r.Turn).str(string(r.Fate)).outs(r.Outs)
	_, in, err := s.on(ctx, scriptAmend, r.Key, a)
	if err != nil {
		return session.Amended{}, err
	}
	return session.Amended{Done: in.flag(), Dup: in.flag(), Lane: in.lane(r.Key)}, *in.err
}

// Stop implements session.Store.
func (s *Store) Stop(ctx context.Context, r session.Stop) (session.Stopped, error) {
	a := s.lane(r.Key)
	a.str(s.dedupe(r.Dedupe)).num(r.Only).flag(r.Drop).flag(r.Keep).outs(r.Outs)
	_, in, err := s.on(ctx, scriptStop, r.Key, a)
	if err != nil {
		return session.Stopped{}, err
	}
	st := session.Stopped{Dup: in.flag(), Turn: in.num()}
	for held := in.list(); held.more(); {
		st.Held = append(st.Held, held.entry())
	}
	st.Lane = in.lane(r.Key)
	return st, *in.err
}

// Reset implements session.Store.
func (s *Store) Reset(ctx context.Context, r session.Reset) (session.Lane, error) {
	a := s.lane(r.Key)
	a.str(s.dedupe(r.Dedupe)).num(fatesKept).outs(r.Outs)
	_, in, err := s.on(ctx, scriptReset, r.Key, a)
	if err != nil {
		return session.Lane{}, err
	}
	return in.lane(r.Key), *in.err
}

// Post implements session.Store.
func (s *Store) Post(ctx context.Context, r session.Post) (session.Posted, error) {
	a := s.lane(r.Key)
	a.str(s.dedupe(r.Dedupe)).flag(r.Prefs != nil).bytes(r.Prefs).str(r.Title).jobs(r.Jobs).jobs(r.Add).outs(r.Outs)
	gen := s.journal.now()
	_, in, err := s.on(ctx, scriptPost, r.Key, a)
	if err != nil {
		return session.Posted{}, err
	}
	if r.Dedupe != "" {
		s.journal.keep(gen, journalCall{lane: r.Key, script: scriptPost, partition: s.partitionOf(r.Key), args: *a})
	}
	return session.Posted{Dup: in.flag(), Lane: in.lane(r.Key)}, *in.err
}
