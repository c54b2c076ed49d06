package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"coxswain/session"
)

// Rows implements session.Store.
func (s *Store) Rows(ctx context.Context, key session.Key, gen, after int64, limit int) ([]session.Row, error) {
	after = max(after, 0)
	last := int64(-1)
	if limit > 0 {
		last = after + int64(limit) - 1
	}
	a := s.lane(key)
	a.num(gen).num(after).num(last)
	_, in, err := s.on(ctx, scriptRows, key, a)
	if err != nil {
		return nil, err
	}
	var rows []session.Row
	for l := in.list(); l.more(); {
		r := l.row(after + int64(len(rows)) + 1)
		if err := s.unpackRow(&r); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, *in.err
}

// Due implements session.Store.
func (s *Store) Due(ctx context.Context, limit int) ([]session.Key, error) {
	if err := s.sweepJournal(ctx); err != nil {
		s.log.WarnContext(ctx, "the last messages wait to be stored again", "err", err)
	}
	return s.dueIn(ctx, scriptDue, limit)
}

// dueIn reads an index of lanes by time in all partitions, in one round trip.
func (s *Store) dueIn(ctx context.Context, sc script, limit int) ([]session.Key, error) {
	answers, err := s.everywhere(ctx, sc, func(a *args) { a.num(limitArg(limit)) })
	if err != nil {
		return nil, err
	}
	type found struct {
		name string
		at   float64
	}
	var all []found
	for _, in := range answers {
		for l := in.list(); l.more(); {
			f := found{name: l.str()}
			if f.at, err = strconv.ParseFloat(l.str(), 64); err != nil {
				return nil, err
			}
			all = append(all, f)
		}
		if *in.err != nil {
			return nil, *in.err
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name))
	})
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	var keys []session.Key
	for _, f := range all {
		k, err := session.ParseKey(f.name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func limitArg(limit int) int64 {
	if limit <= 0 {
		return -1
	}
	return int64(limit)
}

// Sessions implements session.Store: the names of all partitions in one round
// trip, then their lanes in another.
func (s *Store) Sessions(ctx context.Context, after string, limit int) ([]session.Lane, error) {
	answers, err := s.everywhere(ctx, scriptNames, func(a *args) { a.str(after).num(limitArg(limit)) })
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
	if limit > 0 && len(names) > limit {
		names = names[:limit]
	}
	keys := make([]session.Key, len(names))
	for i, name := range names {
		if keys[i], err = session.ParseKey(name); err != nil {
			return nil, err
		}
	}
	answers, err = s.pipeline(ctx, len(keys), func(i int) (script, []string, args) {
		return scriptLoad, []string{s.partitionOf(keys[i])}, *s.lane(keys[i])
	})
	if err != nil {
		return nil, err
	}
	var lanes []session.Lane
	for i, in := range answers {
		if _, err := s.status(in, scriptLoad); err != nil {
			return nil, err
		}
		l := in.lane(keys[i])
		if *in.err != nil {
			return nil, *in.err
		}
		if l.Exists { // it may have been deleted in between
			lanes = append(lanes, l)
		}
	}
	return lanes, nil
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	_, _, err := s.on(ctx, scriptDelete, key, s.lane(key))
	if err == nil {
		s.journal.forget(key)
	}
	return err
}

// Expire implements session.Store.
func (s *Store) Expire(ctx context.Context, key session.Key, idle time.Duration) error {
	a := s.lane(key)
	a.ms(idle)
	_, _, err := s.on(ctx, scriptExpire, key, a)
	return err
}

// Doc implements session.Store.
func (s *Store) Doc(ctx context.Context, name string) ([]byte, int64, error) {
	a := s.begin("")
	a.str(name)
	_, in, err := s.run(ctx, scriptDoc, s.partitionOf(docKey(name)), a)
	if err != nil {
		return nil, 0, err
	}
	version := in.num()
	return in.data(), version, *in.err
}

// PutDoc implements session.Store.
func (s *Store) PutDoc(ctx context.Context, name string, version int64, data []byte) error {
	a := s.begin("")
	a.str(name).num(version).bytes(data)
	_, _, err := s.run(ctx, scriptPutDoc, s.partitionOf(docKey(name)), a)
	return err
}

// docKey spreads documents over the partitions; no platform is called so.
func docKey(name string) session.Key {
	return session.Key{Platform: "doc", Chat: session.ChatID(name)}
}

// Stats implements session.Store. Each partition's counters are of one
// instant, so the conservation law holds in the sum.
func (s *Store) Stats(ctx context.Context) (session.Stats, error) {
	answers, err := s.everywhere(ctx, scriptStats, func(*args) {})
	if err != nil {
		return session.Stats{}, err
	}
	sum := map[string]int64{} // by the names of session.Stats in JSON
	for _, in := range answers {
		for l := in.list(); l.more(); {
			if name := l.str(); name != "id" {
				sum[name] += l.num()
			} else {
				l.next()
			}
		}
		sum["sessions"] += in.num()
		if *in.err != nil {
			return session.Stats{}, *in.err
		}
	}
	var st session.Stats
	named, err := json.Marshal(sum)
	if err != nil {
		return session.Stats{}, err
	}
	err = json.Unmarshal(named, &st)
	return st, err
}
