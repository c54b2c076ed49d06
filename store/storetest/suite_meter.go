package storetest

import (
	"time"

	"coxswain/session"
)

// meterRules: what is used up is taken from all meters or from none, and no
// reply that was lost, no crash and no race makes more of it.
func meterRules() []rule {
	return []rule{
		{"meter/takes until the limit, and no more", (*env).meterTakes},
		{"meter/from all or from none", (*env).meterAll},
		{"meter/I2 the same op takes once", (*env).meterOnce},
		{"meter/a refusal is judged anew", (*env).meterAnew},
		{"meter/amount 0 reads", (*env).meterReads},
		{"meter/windows are aligned to UTC", (*env).meterWindows},
		{"meter/one without windows ends when it is idle", (*env).meterIdle},
		{"meter/spent replaces what was taken, once", (*env).meterSpent},
		{"meter/spent leaves another window alone", (*env).meterSpentLate},
		{"meter/ops are forgotten", (*env).meterForgets},
		{"meter/a grant raises one window, once a mark", (*env).meterGrant},
		{"race/meters are not overdrawn", (*env).raceMeter},
		{"race/one op takes once", (*env).raceMeterOp},
	}
}

const utcDay = 24 * time.Hour

// day is one meter of a day.
func day(name string, limit int64) []session.Meter {
	return []session.Meter{{Name: name, Limit: limit, Period: utcDay}}
}

func (e *env) reserve(op string, amount int64, meters ...session.Meter) session.Reserved {
	r, err := e.st.Reserve(e.ctx, session.Reserve{Op: op, Meters: meters, Amount: amount})
	e.must(err, "reserve")
	return r
}

// used reads what a meter has counted.
func (e *env) used(m session.Meter) int64 { return e.reserve("", 0, m).Meters[0].Used }

func (e *env) spent(op string, actual int64) { e.must(e.st.Spent(e.ctx, op, actual), "spent") }

func (e *env) grant(g session.Grant) session.GrantOutcome {
	r, err := e.st.Grant(e.ctx, g)
	e.must(err, "grant")
	return r.Outcome
}

func (e *env) meterTakes() {
	m := day("d", 10)[0]
	window := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	e.equal(e.reserve("a", 6, m), session.Reserved{Meters: []session.MeterState{{Used: 6, Limit: 10, Window: window}}}, "first")
	r := e.reserve("b", 5, m)
	e.equal(r.Refused, "d", "refused")
	e.equal(r.Wait, 14*time.Hour+29*time.Minute+59750*time.Millisecond, "wait")
	e.equal(r.Meters, []session.MeterState{{Used: 6, Limit: 10, Window: window}}, "meters of a refusal")
	e.equal(e.reserve("c", 4, m).Refused, "", "what fits exactly")
	e.equal(e.reserve("e", 1, m).Refused, "d", "what is over by one")
}

func (e *env) meterAll() {
	a, b := session.Meter{Name: "a", Limit: 10, Period: utcDay}, session.Meter{Name: "b", Limit: 3, Period: time.Minute}
	e.equal(e.reserve("1", 3, a, b).Refused, "", "first")
	r := e.reserve("2", 1, a, b)
	e.equal(r.Refused, "b", "refused")
	e.equal(r.Wait, 59750*time.Millisecond, "wait")
	e.equal(e.used(a), int64(3), "used of the one that had enough")
	e.equal(e.reserve("3", 8, a, b).Refused, "a", "refused, the first of two")
	e.clk.step(time.Minute)
	e.equal(e.reserve("2", 1, a, b).Refused, "", "in the next minute")
	e.equal(e.used(a), int64(4), "used of the day")
	e.equal(e.used(b), int64(1), "used of the minute")
}

func (e *env) meterOnce() {
	m := day("d", 10)[0]
	first := e.reserve("a", 6, m)
	e.reserve("b", 1, m)
	e.equal(e.reserve("a", 6, m), first, "the same op")
	e.equal(e.used(m), int64(7), "used")
	e.spent("a", 2)
	e.equal(e.reserve("a", 6, m), first, "the same op, settled")
	e.equal(e.used(m), int64(3), "used")
}

func (e *env) meterAnew() {
	m := day("d", 10)[0]
	e.reserve("a", 10, m)
	e.equal(e.reserve("b", 1, m).Refused, "d", "refused")
	e.spent("a", 9)
	e.equal(e.reserve("b", 1, m).Refused, "", "asked again when there is room")
	m.Limit = 12 // the configuration was changed
	r := e.reserve("c", 2, m)
	e.equal(r.Refused, "", "under a higher limit")
	e.equal(r.Meters[0].Limit, int64(12), "limit")
}

func (e *env) meterReads() {
	m := day("d", 10)[0]
	e.equal(e.used(m), int64(0), "used of nothing")
	e.reserve("a", 10, m)
	e.equal(e.reserve("a", 0, m).Meters[0].Used, int64(10), "used")
	m.Limit = 5
	e.equal(e.reserve("", 0, m).Refused, "", "refused by a question")
}

func (e *env) meterWindows() {
	d, minute := day("d", 10)[0], session.Meter{Name: "m", Limit: 10, Period: time.Minute}
	e.reserve("a", 10, d, minute)
	e.clk.step(59749 * time.Millisecond) // 9:30:59.999
	e.equal(e.used(minute), int64(10), "used in the minute's last instant")
	e.clk.step(time.Millisecond)
	e.equal(e.used(minute), int64(0), "used in the next minute")
	e.equal(e.used(d), int64(10), "used in the same day")
	e.clk.step(14*time.Hour + 29*time.Minute - time.Millisecond)
	e.equal(e.reserve("b", 1, d).Refused, "d", "refused in the day's last instant")
	e.clk.step(time.Millisecond)
	r := e.reserve("b", 1, d)
	e.equal(r.Refused, "", "at midnight")
	e.equal(r.Meters[0], session.MeterState{Used: 1, Limit: 10, Window: time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC).UnixMilli()}, "the new day")
}

func (e *env) meterIdle() {
	m := session.Meter{Name: "turn", Limit: 10}
	e.equal(e.reserve("a", 6, m).Meters[0], session.MeterState{Used: 6, Limit: 10}, "meter")
	r := e.reserve("b", 6, m)
	e.equal(r.Refused, "turn", "refused")
	e.equal(r.Wait, time.Duration(0), "wait")
	e.clk.step(session.MeterIdle - time.Millisecond)
	e.reserve("c", 1, m)
	e.clk.step(session.MeterIdle - time.Millisecond)
	e.equal(e.used(m), int64(7), "used while it is in use")
	e.clk.step(time.Millisecond)
	e.equal(e.used(m), int64(0), "used when it was idle")
}

func (e *env) meterSpent() {
	d, turn := day("d", 100)[0], session.Meter{Name: "turn", Limit: 50}
	e.reserve("a", 20, d, turn)
	e.spent("a", 5)
	e.equal(e.used(d), int64(5), "used")
	e.equal(e.used(turn), int64(5), "used of the turn")
	e.spent("a", 1)
	e.spent("unknown", 1)
	e.equal(e.used(d), int64(5), "used, settled twice")
	e.reserve("b", 10, d, turn)
	e.spent("b", 70) // more than was set aside is counted all the same
	e.equal(e.used(d), int64(75), "used")
	e.equal(e.reserve("c", 1, d, turn).Refused, "turn", "refused")
	e.reserve("f", 1, d)
	e.spent("f", -5)
	e.equal(e.used(d), int64(75), "used, of less than nothing")
}

func (e *env) meterSpentLate() {
	d, turn := day("d", 100)[0], session.Meter{Name: "turn", Limit: 50}
	e.reserve("a", 20, d, turn)
	e.clk.step(15 * time.Hour)
	e.reserve("b", 7, d)
	e.spent("a", 5)
	e.equal(e.used(d), int64(7), "used of the day that began meanwhile")
	e.equal(e.used(turn), int64(5), "used of the turn")
}

func (e *env) meterForgets() {
	d := day("d", 100)[0]
	e.reserve("a", 20, d)
	e.spent("a", 5)
	e.clk.step(session.SpentKept - time.Millisecond)
	e.reserve("a", 20, d)
	e.equal(e.used(d), int64(5), "used, asked again while it is remembered")
	e.clk.step(time.Millisecond)
	e.reserve("a", 20, d)
	e.equal(e.used(d), int64(25), "used, asked again when it is forgotten")
	e.reserve("b", 1, d)
	e.clk.step(utcDay)
	e.reserve("b", 1, d)
	e.equal(e.used(d), int64(1), "used, asked again the next day")
}

func (e *env) meterGrant() {
	d := day("d", 10)[0]
	window := e.reserve("", 0, d).Meters[0].Window
	g := session.Grant{Meter: "d", Window: window, Extra: 10, Mark: "g0"}
	e.equal(e.grant(g), session.GrantGone, "grant of a meter that was never used")
	e.reserve("a", 10, d)
	g.Window--
	e.equal(e.grant(g), session.GrantGone, "grant of another window")
	g.Window = window
	e.equal(e.grant(g), session.GrantDone, "grant")
	e.equal(e.grant(g), session.GrantDup, "the same grant")
	e.equal(e.reserve("b", 10, d).Meters[0], session.MeterState{Used: 20, Limit: 20, Grants: 1, Window: window}, "meter")
	e.equal(e.reserve("c", 1, d).Refused, "d", "refused")
	g.Mark = "g1"
	e.equal(e.grant(g), session.GrantDone, "the next grant")
	e.equal(e.reserve("c", 1, d).Meters[0], session.MeterState{Used: 21, Limit: 30, Grants: 2, Window: window}, "meter")
	e.clk.step(15 * time.Hour)
	e.equal(e.grant(g), session.GrantGone, "grant when the day is over")
	e.equal(e.reserve("f", 10, d).Meters[0].Limit, int64(10), "limit of the next day")
	e.equal(e.grant(session.Grant{Meter: "d", Window: window + utcDay.Milliseconds(), Extra: 1, Mark: "g0"}), session.GrantDone, "a mark of the day before")
}

// raceMeter: with room for all but one, all but one are taken.
func (e *env) raceMeter() {
	d, turn := day("d", 3*racers-1)[0], session.Meter{Name: "turn", Limit: 1000}
	got := make([]session.Reserved, racers)
	errs := make([]error, racers)
	race(func(i int) {
		got[i], errs[i] = e.st.Reserve(e.ctx, session.Reserve{Op: nonceOf(i), Meters: []session.Meter{turn, d}, Amount: 3})
	})
	refused := 0
	for i, r := range got {
		e.must(errs[i], "reserve")
		if r.Refused != "" {
			refused++
		}
	}
	e.equal(refused, 1, "refused")
	e.equal(e.used(d), int64(3*racers-3), "used")
	e.equal(e.used(turn), int64(3*racers-3), "used of the turn")
}

func (e *env) raceMeterOp() {
	d := day("d", 10)[0]
	errs := make([]error, racers)
	race(func(i int) {
		_, errs[i] = e.st.Reserve(e.ctx, session.Reserve{Op: "one", Meters: []session.Meter{d}, Amount: 4})
	})
	for _, err := range errs {
		e.must(err, "reserve")
	}
	e.equal(e.used(d), int64(4), "used")
	race(func(i int) { errs[i] = e.st.Spent(e.ctx, "one", 3) })
	e.equal(e.used(d), int64(3), "used")
}
