package redis

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A reply is an array a script answered with, read from front to back. The
// first thing of another kind than expected sets err and makes all later
// reads zero: it is looked at once, at the end.
type reply struct {
	v   []any
	err *error
}

func newReply(v []any) *reply { return &reply{v: v, err: new(error)} }

func (r *reply) next() any {
	if len(r.v) == 0 {
		r.fail("a value", nil)
		return nil
	}
	v := r.v[0]
	r.v = r.v[1:]
	return v
}

func (r *reply) fail(want string, got any) {
	if *r.err == nil {
		*r.err = fmt.Errorf("reply of a script: want %s, got %T", want, got)
	}
}

func (r *reply) str() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("a string", v)
	}
	return s
}

func (r *reply) num() int64 {
	v := r.next()
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("a number", v)
		}
		return n
	}
	r.fail("a number", v)
	return 0
}

func (r *reply) flag() bool { return r.num() != 0 }

func (r *reply) time() time.Time { return timeOf(r.num()) }

func (r *reply) list() *reply {
	v := r.next()
	l, ok := v.([]any)
	if !ok {
		r.fail("a list", v)
	}
	return &reply{v: l, err: r.err}
}

func (r *reply) more() bool { return len(r.v) > 0 && *r.err == nil }

// data gives bytes; none is nil.
func (r *reply) data() []byte {
	if s := r.str(); s != "" {
		return []byte(s)
	}
	return nil
}

// timeOf gives the time of a stored number of milliseconds, of which 0 is none.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// lane reads what view of the prelude wrote.
func (r *reply) lane(key session.Key) session.Lane {
	l, _ := r.laneMeta(key)
	return l
}

// laneMeta also gives the lane's meta as it is stored.
func (r *reply) laneMeta(key session.Key) (session.Lane, map[string]string) {
	in := r.list()
	meta := in.list()
	m := make(map[string]string, len(meta.v)/2)
	for meta.more() {
		k := meta.str()
		m[k] = meta.str()
	}
	n := func(f string) int64 {
		return r.metaNum(m, f)
	}
	l := session.Lane{
		Key: key, Exists: len(m) > 0,
		Gen: n("gen"), Seq: n("seq"), Sent: n("sent"), Phase: steer.Phase(n("ph")),
		Turn: n("turn"), Turns: n("turns"), TurnAt: timeOf(n("tat")), Owner: session.UserID(m["own"]),
		Attempts: int(n("att")), Stop: n("stop"), Released: n("rel") != 0, Tickets: n("tk"), Notes: n("notes"),
		Epoch: n("ep"), Nonce: m["non"], Until: timeOf(n("til")), Title: m["title"], Touched: timeOf(n("tch")), Form: int(n("form")),
	}
	if m["last"] != "" {
		l.Last = session.RowType(m["last"][0])
	}
	if p, ok := m["prefs"]; ok {
		l.Prefs = []byte(p)
	}
	for es := in.list(); es.more(); {
		l.Slot = append(l.Slot, es.entry())
	}
	for js := in.list(); js.more(); {
		l.Jobs = append(l.Jobs, js.job())
	}
	sortJobs(l.Jobs)
	l.Out, l.Now = int(in.num()), in.time()
	return l, m
}

// metaNum reads a number of a lane's meta; none is 0.
func (r *reply) metaNum(m map[string]string, f string) int64 {
	if m[f] == "" {
		return 0
	}
	v, err := strconv.ParseInt(m[f], 10, 64)
	if err != nil {
		r.fail("a number as "+f, m[f])
	}
	return v
}

func (r *reply) entry() session.Entry {
	e := r.list()
	return session.Entry{
		Ticket: e.num(), Version: e.num(), Want: steer.Mode(e.num()), Turn: e.num(), Held: e.flag(), Open: e.time(),
		Group: e.str(), Author: session.UserID(e.str()), At: e.time(), Msgs: e.list().msgs(), Data: e.data(),
	}
}

func (r *reply) msgs() []session.MessageID {
	var ids []session.MessageID
	for r.more() {
		ids = append(ids, session.MessageID(r.str()))
	}
	return ids
}

func (r *reply) job() session.Job {
	in := r.list()
	id, j := in.str(), in.list()
	return session.Job{
		ID: id, Owner: j.str(), Turn: j.num(), Name: j.str(), State: session.JobState(j.str()),
		Body: j.str(), Data: j.data(), At: j.num(),
	}
}

func (r *reply) part(key session.Key) session.Part {
	p := r.list()
	return session.Part{
		Key: key,
		PartNew: session.PartNew{
			ID: p.str(), Kind: session.PartKind(p.str()), Turn: p.num(), Data: p.data(),
		},
		State: session.PartState(p.str()), Attempt: int(p.num()), Since: p.time(), Alone: p.flag(),
	}
}

func (r *reply) fate() session.Fate {
	f := r.list()
	return session.Fate{
		Ticket: f.num(), State: session.FateState(f.str()), Turn: f.num(), Step: int(f.num()), Waited: f.flag(),
		At: f.num(), Changed: f.num(), Msgs: f.list().msgs(),
	}
}

func (r *reply) flags() session.Flags {
	f := r.list()
	return session.Flags{Stop: f.flag(), Intr: f.num(), Waiting: int(f.num()), Held: int(f.num()), Steers: int(f.num())}
}

// row reads a row as append of the prelude wrote it.
func (r *reply) row(seq int64) session.Row {
	head, data, ok := bytes.Cut([]byte(r.str()), []byte("\n"))
	f := bytes.Fields(head)
	if *r.err != nil || !ok || (len(f) != 2 && len(f) != 5) {
		r.fail("a row", string(head))
		return session.Row{}
	}
	num := func(b []byte) int64 {
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			r.fail("a number in a row", string(b))
		}
		return n
	}
	row := session.Row{Seq: seq, Type: session.RowType(f[0][0]), Turn: num(f[0][1:]), At: timeOf(num(f[1]))}
	if len(f) == 5 {
		row.On, row.N, row.Tick = num(f[2]), num(f[3]), num(f[4])
	}
	if len(data) > 0 {
		row.Data = data
	}
	return row
}

func sortJobs(jobs []session.Job) {
	slices.SortFunc(jobs, func(a, b session.Job) int { return strings.Compare(a.ID, b.ID) })
}
