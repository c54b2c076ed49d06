package redis

import (
	"encoding/json"

	"coxswain/session"
)

// copied writes what copylane reads.
func (s *Store) copied(p session.LanePage) *args {
	l, a := p.Last.Lane, s.lane(p.Key)
	meta := laneFields(l)
	if l.Out > 0 {
		h := p.Last.Head
		meta = append(meta, field{"os", string(h.State)}, fieldNum("oa", int64(h.Attempt)), fieldNum("ot", millis(h.Since)), fieldNum("ow", millis(h.Next)))
	}
	if p.Last.Memo.Op != "" {
		meta = append(meta, field{"lc", string(p.Last.Memo.Op)})
	}
	list(a, meta, func(f field) { a.str(f.name).str(f.value) })
	list(a, l.Slot, func(e session.Entry) {
		a.num(e.Ticket).bytes(e.Data).num(e.Version).num(int64(e.Want)).num(e.Turn).flag(e.Held)
		a.num(millis(e.Open)).str(e.Group).str(string(e.Author)).num(millis(e.At))
		list(a, e.Msgs, func(id session.MessageID) { a.str(string(id)) })
	})
	list(a, p.Fates, func(f session.Fate) {
		a.num(f.Ticket).str(string(f.State)).num(f.Turn).num(int64(f.Step)).flag(f.Waited)
		a.num(f.At).num(f.Changed)
		list(a, f.Msgs, func(id session.MessageID) { a.str(string(id)) })
	})
	a.jobs(l.Jobs)
	var memo []tree
	switch m := p.Last.Memo; {
	case m.Begun != nil:
		memo = append(memo, tree{"OK", m.Begun.Lease.Epoch, viewTree(m.Begun.Lane, m.Begun.Lease)})
	case m.Committed != nil:
		memo = append(memo, committedTree(*m.Committed))
	}
	list(a, memo, func(t tree) { a.tree(t) })
	return a
}

// A field is one of a lane's meta.
type field struct{ name, value string }

func fieldNum(name string, v int64) field { return field{name, formatNum(v)} }

// laneFields are what reply.laneMeta reads.
func laneFields(l session.Lane) []field {
	f := []field{
		fieldNum("gen", l.Gen), fieldNum("seq", l.Seq), fieldNum("sent", l.Sent), fieldNum("ph", int64(l.Phase)),
		fieldNum("turn", l.Turn), fieldNum("turns", l.Turns), fieldNum("tat", millis(l.TurnAt)), {"own", string(l.Owner)},
		fieldNum("att", int64(l.Attempts)), fieldNum("stop", l.Stop), fieldNum("tk", l.Tickets), fieldNum("notes", l.Notes),
		fieldNum("ep", l.Epoch), {"non", l.Nonce}, fieldNum("til", millis(l.Until)), {"title", l.Title}, fieldNum("tch", millis(l.Touched)),
	}
	rel := int64(0)
	if l.Released {
		rel = 1
	}
	f = append(f, fieldNum("rel", rel))
	if l.Last != 0 {
		f = append(f, field{"last", string([]byte{byte(l.Last)})})
	}
	if l.Prefs != nil {
		f = append(f, field{"prefs", string(l.Prefs)})
	}
	return f
}

// A tree is a reply of a script as it is remembered: of int64, string and tree.
type tree []any

func (a *args) tree(v any) {
	switch v := v.(type) {
	case int64:
		a.str("n").num(v)
	case string:
		a.str("s").str(v)
	case tree:
		a.str("l")
		list(a, v, func(v any) { a.tree(v) })
	default:
		panic("a reply is made of numbers, texts and lists")
	}
}

func flagNum(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// viewTree is a lane as view of the prelude gives it.
func viewTree(l session.Lane, le session.Lease) tree {
	meta, entries, jobs := tree{"ttl", formatNum(le.TTL.Milliseconds())}, tree{}, tree{}
	for _, f := range laneFields(l) {
		meta = append(meta, f.name, f.value)
	}
	for _, e := range l.Slot {
		msgs := tree{}
		for _, id := range e.Msgs {
			msgs = append(msgs, string(id))
		}
		entries = append(entries, tree{
			e.Ticket, e.Version, int64(e.Want), e.Turn, flagNum(e.Held), millis(e.Open), e.Group, string(e.Author), millis(e.At), msgs, string(e.Data),
		})
	}
	for _, j := range l.Jobs {
		jobs = append(jobs, tree{j.ID, tree{j.Owner, j.Turn, j.Name, string(j.State), j.Body, string(j.Data), j.At}})
	}
	return tree{meta, entries, jobs, int64(l.Out), millis(l.Now)}
}

// committedTree is an answer of commit.
func committedTree(c session.Committed) tree {
	f, steers, at := c.Flags, tree{}, int64(0)
	for _, r := range c.Steers {
		steers = append(steers, tree{r.Seq, r.Turn, r.On, r.N, r.Tick, string(r.Data)})
		at = millis(r.At)
	}
	t := tree{
		"OK", c.Seq, tree{flagNum(f.Stop), f.Intr, int64(f.Waiting), int64(f.Held), int64(f.Steers)}, steers, flagNum(c.More), at,
	}
	if p := c.Out; p != nil {
		t = append(t, tree{p.ID, string(p.Kind), p.Turn, string(p.Data), string(p.State), int64(p.Attempt), millis(p.Since), flagNum(p.Alone)})
	}
	return t
}

// A counter is one of a partition's.
type counter struct {
	name string
	n    int64
}

// countersOf names the counters as Stats reads them; those that are counted
// anew are left out.
func countersOf(st session.Stats) []counter {
	st.InSlot, st.Sessions = 0, 0
	b, err := json.Marshal(st)
	if err != nil {
		panic(err) // of numbers only
	}
	named := map[string]int64{}
	if err := json.Unmarshal(b, &named); err != nil {
		panic(err)
	}
	var all []counter
	for name, n := range named {
		if n != 0 {
			all = append(all, counter{name, n})
		}
	}
	return all
}
