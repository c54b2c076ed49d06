package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/steer"
)

// talk is a lane with a valid history: a turn with a join, two batches and two
// drains; a turn that /new closed; an open turn in the second generation with
// one of two calls answered; an entry that waits.
func talk(t *testing.T) (*Model, *lane) {
	clk := newClock()
	m := NewModel(clk.now)
	e := newEnv(t.Context(), m, clk)
	start := func(ticket int64, rows ...session.Row) session.Lease {
		r := e.beginning(me, ticket)
		r.Rows = append(rows, userRow(ticket))
		r.Fates = []session.FateSet{{Ticket: ticket, State: session.FateRunning}}
		b, err := m.Begin(e.ctx, r)
		e.must(err, "begin")
		return b.Lease
	}
	two := func(a *session.Accept) { a.Data = slices.Concat(a.Data, []byte("\n"), a.Data) }
	l := start(e.put(), row(session.RowHead, "head"))
	fold := e.put()
	c := e.step(row(session.RowFold, session.UserRow{Inputs: []session.Input{{Ticket: fold}, {Ticket: fold}}}))
	c.Take, c.Fates = takes(e.lane(), fold), []session.FateSet{{Ticket: fold, State: session.FateRunning}}
	e.commit(l, c)
	e.write(l, callRow("c1", "c2"), toolRow("c1"), toolRow("c2"))
	e.put(steers(1), two)
	e.put(steers(1))
	e.drain(l)
	e.write(l, callRow("c3"))
	e.put(steers(1))
	c = e.step(toolRow("c3"))
	c.Drain, c.Step = true, 2
	e.commit(l, c)
	c = e.step(endRow())
	c.End, c.Fates = true, []session.FateSet{{Ticket: 1, State: session.FateAnswered}}
	e.commit(l, c)
	l = start(e.put())
	e.write(l, callRow("c4"))
	e.reset()
	l = start(e.put())
	e.write(l, callRow("c5", "c6"), toolRow("c5"))
	e.put()
	e.in("2", func() { // another lane, with the same tickets, turn and note numbers
		l := start(e.put())
		e.write(l, callRow("c1"), toolRow("c1"))
		e.put(steers(1))
		e.drain(l)
		e.end(l)
	})
	if len(e.fails) > 0 {
		t.Fatal(e.fails)
	}
	return m, m.find(e.key)
}

// TestCheck breaks a valid history in one place and wants the sentence for it.
func TestCheck(t *testing.T) {
	steerRow := func(l *lane, i int) *session.Row { return &l.rows[1][i] }
	cases := []struct {
		name string
		want string // "" = no sentence
		do   func(m *Model, l *lane)
	}{
		{"nothing", "", func(*Model, *lane) {}},
		{"an open turn is closed by its end", "", func(_ *Model, l *lane) {
			l.append(l.Touched, []session.Row{toolRow("c6"), endRow()})
			l.Turn = 0
		}},
		{"conservation", "conservation: accepted 11", func(m *Model, _ *lane) { m.stats.Accepted++ }},
		{"slot counter", "3 entries in the slots; 1 counted", nil},
		{"seq", "row 4 has seq 5", func(_ *Model, l *lane) { steerRow(l, 3).Seq = 5 }},
		{"lane seq", "the lane says seq 4", func(_ *Model, l *lane) { l.Seq++ }},
		{"sent", "sent 4", func(_ *Model, l *lane) { l.Sent = 4 }},
		{"last", `type 'u'`, func(_ *Model, l *lane) { l.Last = session.RowUser }},
		{"turns", "counted 2 turns", func(_ *Model, l *lane) { l.Turns = 2 }},
		{"notes", "note 2", func(_ *Model, l *lane) { l.Notes = 1 }},
		{"turn falls", "row 13 of turn 1 comes after turn 2", func(_ *Model, l *lane) {
			for i := range 12 {
				l.rows[1][i].Turn = 2
			}
			l.rows[1][12].Turn, l.rows[1][13].Turn = 1, 1
		}},
		{"turn goes on in the next generation", "row 1 of turn 2 comes after turn 2", func(_ *Model, l *lane) {
			for i := range l.rows[2] {
				l.rows[2][i].Turn = 2
			}
			l.Turn, l.Turns = 2, 2
		}},
		{"a row of no turn", "row 1 of turn 0", func(_ *Model, l *lane) { l.rows[1][0].Turn = 0 }},
		{"no end row", "turn 1 is closed and has no end row", func(_ *Model, l *lane) { l.rows[1][11] = with(l.rows[1][11], callRow()) }},
		{"two end rows", "row 12 of type 'a' comes after the end", func(_ *Model, l *lane) { l.rows[1][8] = with(l.rows[1][8], endRow()) }},
		{"closed without an end", "turn 3 is closed and has no end row", func(_ *Model, l *lane) { l.Turn = 0 }},
		{"closed with an open call", "call c6 has no result", func(_ *Model, l *lane) { l.Turn = 0 }},
		{"open with an end", "turn 3 is open and has its end row", func(_ *Model, l *lane) {
			l.append(l.Touched, []session.Row{toolRow("c6"), endRow()})
		}},
		{"an end that makes calls", "row 12 ends turn 1 and makes calls", func(_ *Model, l *lane) {
			l.rows[1][11] = with(l.rows[1][11], row(session.RowAssistant, session.AssistantRow{End: session.EndFailed, Calls: []session.Call{{ID: "c9"}}}))
		}},
		{"steer on another row", "steer row 7 says it is on row 5", func(_ *Model, l *lane) { steerRow(l, 6).On = 5 }},
		{"steer after an assistant row", "steer row 10 says it is on row 9", func(_ *Model, l *lane) {
			l.rows[1][9], l.rows[1][10] = with(l.rows[1][9], l.rows[1][10]), with(l.rows[1][10], l.rows[1][9])
			steerRow(l, 9).On = 9
		}},
		{"steer of another turn", "steer row 7 says it is on", func(_ *Model, l *lane) { steerRow(l, 6).Turn = 2 }},
		{"note numbers in one drain", "has note number 2 in the drain of 1", func(_ *Model, l *lane) { steerRow(l, 7).N = 2 }},
		{"note number again", "steer row 11 has note number 1 after 1", func(_ *Model, l *lane) { steerRow(l, 10).N = 1 }},
		{"order of steers", "ticket 3 comes after ticket 4", func(_ *Model, l *lane) {
			a, b := steerRow(l, 6), steerRow(l, 7)
			a.Tick, b.Tick = b.Tick, a.Tick
		}},
		{"steer without a ticket", "row 11 has no ticket", func(_ *Model, l *lane) { steerRow(l, 10).Tick = 0 }},
		{"steer that is no input", "row 7 is not an input", func(_ *Model, l *lane) { steerRow(l, 6).Data = append(steerRow(l, 6).Data, "\n{"...) }},
		{"steer without words", "row 7 is not an input", func(_ *Model, l *lane) { steerRow(l, 6).Data = nil }},
		{"consumed as steer twice", "consumes ticket 4, which turn 1 consumed", func(_ *Model, l *lane) { steerRow(l, 10).Tick = 4 }},
		{"consumed as steer and by a turn", "row 1 of turn 3 consumes ticket 5, which turn 1 consumed", func(_ *Model, l *lane) {
			l.rows[2][0] = with(l.rows[2][0], userRow(5))
		}},
		{"consumed twice in one row", "consumes ticket 1, which turn 1", func(_ *Model, l *lane) { l.rows[1][1] = with(l.rows[1][1], userRow(1, 9, 1)) }},
		{"consumed and waits", "entry 8 waits and was consumed by turn 3", func(_ *Model, l *lane) { l.rows[2][0] = with(l.rows[2][0], userRow(8)) }},
		{"a call twice", "row 9 makes call c1 again", func(_ *Model, l *lane) { l.rows[1][8] = with(l.rows[1][8], callRow("c1")) }},
		{"results in another order", `result of call "c2"; the next open call is c1`, func(_ *Model, l *lane) {
			l.rows[1][4], l.rows[1][5] = with(l.rows[1][4], l.rows[1][5]), with(l.rows[1][5], l.rows[1][4])
		}},
		{"a result twice", `result of call "c3", and no call is open`, func(_ *Model, l *lane) { l.rows[1][2] = with(l.rows[1][2], toolRow("c3")) }},
		{"a row before the result", "comes before the result of call c2", func(_ *Model, l *lane) { l.rows[1][5] = with(l.rows[1][5], callRow()) }},
		{"unknown type", "unknown type 'x'", func(_ *Model, l *lane) { l.rows[1][2].Type = 'x' }},
		{"unreadable row", "row 5 of type 't' cannot be read", func(_ *Model, l *lane) { l.rows[1][4].Data = []byte("{") }},
		{"unreadable answer", "row 4 of type 'a' cannot be read", func(_ *Model, l *lane) { l.rows[1][3].Data = []byte("[]") }},
		{"unreadable input", "row 2 of type 'u' cannot be read", func(_ *Model, l *lane) { l.rows[1][1].Data = nil }},
		{"an entry beyond the tickets", "entry 8 comes after 0, and 7 is", func(_ *Model, l *lane) { l.Tickets = 7 }},
		{"a lost input", "ticket 8 is said to be queued and is not in the slot", func(m *Model, l *lane) {
			delete(l.slot, 8)
			m.stats.Dropped++
		}},
		{"a fate too early", "ticket 8 is said to be answered and waits", func(_ *Model, l *lane) { l.fate(8).State = session.FateAnswered }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, l := talk(t)
			var st session.Store = m
			if c.do == nil {
				st = &miscounting{m}
			} else {
				c.do(m, l)
			}
			got := Check(t.Context(), st, []session.Key{l.Key, {Platform: "test", Chat: "2"}})
			if c.want == "" {
				if len(got) > 0 {
					t.Errorf("got %q; want nothing", got)
				}
				return
			}
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("got %q; want one with %q", got, c.want)
			}
		})
	}
}

// with is r with the type and the data of what.
func with(r, what session.Row) session.Row {
	r.Type, r.Data = what.Type, what.Data
	return r
}

// A miscounting store shows an entry that it does not count.
type miscounting struct{ *Model }

func (m *miscounting) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	l, err := m.Model.Load(ctx, key)
	l.Slot = append(l.Slot, session.Entry{Ticket: l.Tickets, Want: steer.Queue})
	return l, err
}
