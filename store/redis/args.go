package redis

import (
	"strconv"
	"time"

	"coxswain/session"
)

// args is the ARGV of one call, in the order the script reads it.
type args []any

func (a *args) str(v string) *args   { *a = append(*a, v); return a }
func (a *args) bytes(v []byte) *args { *a = append(*a, v); return a }
func (a *args) num(v int64) *args    { *a = append(*a, formatNum(v)); return a }

func (a *args) ms(d time.Duration) *args { return a.num(d.Milliseconds()) }

func (a *args) flag(v bool) *args {
	if v {
		return a.num(1)
	}
	return a.num(0)
}

// list writes the count the script's reader expects, then the items.
func list[T any](a *args, items []T, one func(T)) *args {
	a.num(int64(len(items)))
	for _, it := range items {
		one(it)
	}
	return a
}

func (a *args) outs(v []session.PartNew) *args {
	return list(a, v, func(p session.PartNew) { a.str(p.ID).str(string(p.Kind)).num(p.Turn).bytes(p.Data) })
}

func (a *args) takes(v []session.Take) *args {
	return list(a, v, func(t session.Take) { a.num(t.Ticket).num(t.Version) })
}

func (a *args) rows(s *Store, v []session.Row) *args {
	return list(a, v, func(r session.Row) {
		a.str(string([]byte{byte(r.Type)})).num(r.On).num(r.N).num(r.Tick).bytes(s.packRow(r))
	})
}

func (a *args) fates(v []session.FateSet) *args {
	return list(a, v, func(f session.FateSet) { a.num(f.Ticket).str(string(f.State)).num(f.Turn).num(int64(f.Step)) })
}

func (a *args) jobs(v []session.Job) *args {
	return list(a, v, func(j session.Job) {
		a.str(j.ID).flag(j.Told)
		a.str(j.Owner).num(j.Turn).str(j.Name).str(string(j.State)).str(j.Body).bytes(j.Data).num(j.At)
	})
}

// formatNum is a number as scripts and metas have it.
func formatNum(v int64) string { return strconv.FormatInt(v, 10) }
