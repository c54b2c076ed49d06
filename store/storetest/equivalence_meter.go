package storetest

import (
	"fmt"
	"time"

	"coxswain/session"
)

// meter takes from some of four meters, settles, or grants.
func (p *player) meter(_ *played, c command) {
	switch {
	case c.bit(0) && c.bit(1):
		p.spentOf(c)
	case c.bit(0) && c.bit(2):
		p.grantOf(c)
	default:
		p.reserveOf(c)
	}
}

func (p *player) reserveOf(c command) {
	r := session.Reserve{Op: p.dedupe(c, "spend", &p.spends), Amount: int64(c.Pick) * int64(1+c.N)}
	for i, period := range []time.Duration{0, time.Second, time.Minute, 24 * time.Hour} {
		if c.bit(4 + i) {
			r.Meters = append(r.Meters, session.Meter{Name: fmt.Sprint("meter", i), Limit: int64(6 * (i + 1)), Period: period})
		}
	}
	again := len(p.spends) > 0 && p.model.ops[r.Op] != nil && p.clk.now().Before(p.model.ops[r.Op].ends)
	got, word := both(p, r, func(st session.Store) (session.Reserved, error) { return st.Reserve(p.ctx, r) })
	switch {
	case word != "":
	case r.Amount == 0:
		word = "read"
	case again:
		word = "again"
	case got.Refused != "":
		word = "refused"
	default:
		word = "ok"
	}
	for i, m := range got.Meters {
		if i < len(r.Meters) {
			p.windows = append(p.windows, session.Grant{Meter: r.Meters[i].Name, Window: m.Window})
		}
	}
	p.note("reserve", word)
}

func (p *player) spentOf(c command) {
	op := "unknown"
	if n := len(p.spends); n > 0 {
		op = p.spends[n-1-min(n-1, c.Pick)]
	}
	_, word := both(p, op, func(st session.Store) (any, error) { return nil, st.Spent(p.ctx, op, int64(c.N)) })
	p.note("spent", okay(word))
}

func (p *player) grantOf(c command) {
	g := session.Grant{Meter: "meter0"}
	if n := len(p.windows); n > 0 {
		g = p.windows[n-1-min(n-1, 3*c.Pick)]
	}
	g.Extra, g.Mark = int64(1+c.N), fmt.Sprint("g", c.N)
	if p.granted.Meter != "" && (c.Again || c.Wrong > 0 || c.N%2 == 0) {
		g = p.granted
	}
	if p.grant(g) == "ok" {
		p.granted = g
		if c.Pick == 0 { // its reply was lost
			p.grant(g)
		}
	}
}

func (p *player) grant(g session.Grant) (word string) {
	got, word := both(p, g, func(st session.Store) (session.Granted, error) { return st.Grant(p.ctx, g) })
	if word == "" {
		word = []string{"ok", "dup", "gone"}[got.Outcome]
	}
	p.note("grant", word)
	return word
}
