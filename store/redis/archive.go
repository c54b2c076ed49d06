package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"coxswain/session"
)

var _ session.Archive = (*Store)(nil)

// Identity implements session.Archive.
func (s *Store) Identity(context.Context) (string, error) { return "redis:" + s.id, nil }

// TakeOver implements session.Archive: the stored data get another id, and each
// script of a process that knows the old one is refused as ErrWiped.
func (s *Store) TakeOver(ctx context.Context) error {
	id := randomID(8)
	if err := s.takeOver(ctx, s.cfgKey(), id, "begin"); err != nil {
		return err
	}
	return s.rename(ctx, id)
}

// rename ends what TakeOver began, here or in a process that died.
func (s *Store) rename(ctx context.Context, id string) error {
	for i := range s.partitions {
		if err := s.takeOver(ctx, s.partition(i)+"cnt", id, "stamp"); err != nil {
			return err
		}
	}
	s.id = id
	return s.takeOver(ctx, s.cfgKey(), id, "end")
}

func (s *Store) takeOver(ctx context.Context, key, id, step string) error {
	var a args
	a.str(id).str(step)
	_, err := s.eval(ctx, scriptTakeOver, []string{key}, a)
	return err
}

// Dump implements session.Archive.
func (s *Store) Dump(ctx context.Context, key session.Key) (session.LaneDump, error) {
	_, in, err := s.on(ctx, scriptDump, key, s.lane(key))
	if err != nil {
		return session.LaneDump{}, err
	}
	l, m := in.laneMeta(key)
	d := session.LaneDump{Lane: l}
	if l.Out > 0 {
		d.Head = in.head(m)
	}
	for marks := in.list(); marks.more(); {
		d.Marks = append(d.Marks, marks.mark())
	}
	slices.SortFunc(d.Marks, func(a, b session.Mark) int { return strings.Compare(a.Key, b.Key) })
	if memo := in.list(); memo.more() {
		d.Memo = memo.list().memo(key, session.OpID(m["lc"]))
	}
	d.Lane.Nonce, d.Lane.Until = "", time.Time{}
	return d, *in.err
}

// head reads the state of the first part.
func (r *reply) head(m map[string]string) session.Head {
	n := func(f string) int64 { return r.metaNum(m, f) }
	h := session.Head{State: session.PartState(m["os"]), Attempt: int(n("oa")), Next: timeOf(n("ow"))}
	switch h.State {
	case session.PartSending:
		h.State, h.Since, h.Next = session.PartUnknown, timeOf(n("ot")), time.Time{}
	case session.PartUnknown:
		h.Since = timeOf(n("ot"))
	}
	return h
}

func (r *reply) mark() session.Mark {
	k := session.Mark{Key: r.str()}
	var at int64
	var done int
	if _, err := fmt.Sscan(r.str(), &at, &k.Ticket, &done); err != nil {
		r.fail("a mark", err)
	}
	k.At, k.Done = timeOf(at), done != 0
	return k
}

// beganLen is how long an answer of begin is; one of commit is longer.
const beganLen = 3

// memo reads the last reply of a turn's write. Nonce and time of a lease are not
// in begin's own, but in the lane that it shows.
func (r *reply) memo(key session.Key, op session.OpID) session.Memo {
	began := len(r.v) == beganLen
	r.str() // OK
	if !began {
		c := r.committed(key)
		return session.Memo{Op: op, Committed: &c}
	}
	epoch := r.num()
	l, m := r.laneMeta(key)
	ttl := time.Duration(r.metaNum(m, "ttl")) * time.Millisecond
	return session.Memo{Op: op, Begun: &session.Begun{
		Lease: session.Lease{Key: key, Epoch: epoch, Nonce: l.Nonce, TTL: ttl}, Lane: l,
	}}
}

// Parts implements session.Archive.
func (s *Store) Parts(ctx context.Context, key session.Key, after int64, limit int) ([]session.PartNew, error) {
	last := int64(-1)
	if limit > 0 {
		last = after + int64(limit) - 1
	}
	a := s.lane(key)
	a.num(after).num(last)
	_, in, err := s.on(ctx, scriptParts, key, a)
	if err != nil {
		return nil, err
	}
	var parts []session.PartNew
	for l := in.list(); l.more(); {
		p := l.list()
		parts = append(parts, session.PartNew{ID: p.str(), Kind: session.PartKind(p.str()), Turn: p.num(), Data: p.data()})
	}
	return parts, *in.err
}

// DocNames implements session.Archive.
func (s *Store) DocNames(ctx context.Context) ([]string, error) {
	answers, err := s.everywhere(ctx, scriptDocNames, func(*args) {})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, in := range answers {
		for l := in.list(); l.more(); {
			names = append(names, l.str())
		}
		if *in.err != nil {
			return nil, *in.err
		}
	}
	slices.Sort(names)
	return names, nil
}

// Import implements session.Archive.
func (s *Store) Import(ctx context.Context, p session.LanePage) error {
	from := int64(0)
	if len(p.Rows) > 0 {
		from = p.Rows[0].Seq - 1
	}
	a := s.lane(p.Key)
	a.flag(p.First)
	a.num(p.Gen).num(from).num(p.After)
	list(a, p.Rows, func(r session.Row) { a.str(s.storedRow(r)) })
	list(a, p.Marks, func(k session.Mark) {
		done := 0
		if k.Done {
			done = 1
		}
		a.str(k.Key).num(k.At.UnixMilli()).str(fmt.Sprint(k.At.UnixMilli(), k.Ticket, done))
	})
	a.outs(p.Parts)
	if _, _, err := s.on(ctx, scriptCopyPage, p.Key, a); err != nil || p.Last == nil {
		return err
	}
	_, _, err := s.on(ctx, scriptCopyLane, p.Key, s.copied(p))
	return err
}

// storedRow is a row as append of the prelude writes it.
func (s *Store) storedRow(r session.Row) string {
	head := string([]byte{byte(r.Type)}) + strconv.FormatInt(r.Turn, 10) + " " + strconv.FormatInt(millis(r.At), 10)
	if r.On != 0 || r.N != 0 || r.Tick != 0 {
		head += fmt.Sprintf(" %d %d %d", r.On, r.N, r.Tick)
	}
	return head + "\n" + string(s.packRow(r))
}

// millis is the number of a time as it is stored, of which 0 is none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// ImportDoc implements session.Archive.
func (s *Store) ImportDoc(ctx context.Context, name string, version int64, data []byte) error {
	a := s.begin("")
	a.str(name).num(version).bytes(data)
	_, _, err := s.run(ctx, scriptCopyDoc, s.partitionOf(docKey(name)), a)
	return err
}

// ImportStats implements session.Archive.
func (s *Store) ImportStats(ctx context.Context, st session.Stats) error {
	var wait int64
	for i := range s.partitions {
		a := s.begin("")
		list(&a, []counter(nil), func(counter) {})
		_, in, err := s.run(ctx, scriptCopyStats, s.partition(i), a)
		if err != nil {
			return err
		}
		wait += in.num()
		if *in.err != nil {
			return *in.err
		}
	}
	st.Accepted -= wait
	a := s.begin("")
	list(&a, countersOf(st), func(c counter) { a.str(c.name).num(c.n) })
	_, _, err := s.run(ctx, scriptCopyStats, s.partition(0), a)
	return err
}
