package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"coxswain/session"
)

// Check reads what a store holds and gives one sentence for each invariant it
// finds broken; none is the good answer. It checks the conservation law and,
// for each of the lanes, that the rows of every generation are a valid
// transcript (I14), that no input was consumed twice (I5, I6), and that fates
// agree with the slot. Row data must be the JSON that session.Row says.
//
// It reads with several calls, so call it while nothing writes.
func Check(ctx context.Context, st session.Store, keys []session.Key) []string {
	c := &checker{}
	s, err := st.Stats(ctx)
	if err != nil {
		return []string{"stats: " + err.Error()}
	}
	if s.Accepted != s.Consumed+s.Steered+s.Dropped+s.InSlot {
		c.addf("conservation: accepted %d; consumed %d + steered %d + dropped %d + in slot %d", s.Accepted, s.Consumed, s.Steered, s.Dropped, s.InSlot)
	}
	inSlot := int64(0)
	for _, key := range keys {
		c.where = key.String()
		l, err := st.Load(ctx, key)
		if err != nil {
			c.addf("load: %v", err)
			continue
		}
		inSlot += int64(len(l.Slot))
		c.lane(ctx, st, l)
	}
	c.where = "store"
	if inSlot > s.InSlot || int64(len(keys)) == s.Sessions && inSlot != s.InSlot {
		c.addf("%d entries in the slots; %d counted", inSlot, s.InSlot)
	}
	return c.found
}

// A checker reads one lane at a time.
type checker struct {
	where string
	found []string
	// Of the lane, over its generations:
	used   map[int64]int64 // tickets consumed, with their turn
	newest int64           // turn of the newest row seen
	note   int64           // newest note number seen
}

func (c *checker) addf(format string, args ...any) {
	c.found = append(c.found, c.where+": "+fmt.Sprintf(format, args...))
}

func (c *checker) lane(ctx context.Context, st session.Store, l session.Lane) {
	c.used, c.newest, c.note = map[int64]int64{}, 0, 0
	key := c.where
	for gen := int64(1); gen <= l.Gen; gen++ {
		c.where = fmt.Sprintf("%s generation %d", key, gen)
		rows, err := st.Rows(ctx, l.Key, gen, 0, 0)
		if err != nil {
			c.addf("rows: %v", err)
			continue
		}
		c.rows(l, gen, rows)
	}
	c.where = key
	if c.newest > l.Turns || c.note > l.Notes || l.Turn > l.Turns {
		c.addf("rows of turn %d and note %d, open turn %d; counted %d turns, %d notes", c.newest, c.note, l.Turn, l.Turns, l.Notes)
	}
	before := int64(0)
	waits := map[int64]bool{}
	for _, e := range l.Slot {
		if e.Ticket <= before || e.Ticket > l.Tickets {
			c.addf("entry %d comes after %d, and %d is the newest ticket", e.Ticket, before, l.Tickets)
		}
		if turn, twice := c.used[e.Ticket]; twice {
			c.addf("entry %d waits and was consumed by turn %d", e.Ticket, turn)
		}
		before, waits[e.Ticket] = e.Ticket, true
	}
	fates, err := st.Fates(ctx, l.Key, 0)
	if err != nil {
		c.addf("fates: %v", err)
	}
	for _, f := range fates {
		if f.State.Waits() && !waits[f.Ticket] {
			c.addf("ticket %d is said to be %s and is not in the slot", f.Ticket, f.State)
		}
		if f.State.Final() && waits[f.Ticket] {
			c.addf("ticket %d is said to be %s and waits in the slot", f.Ticket, f.State)
		}
	}
}

// A transcript is the state of reading the rows of one generation.
type transcript struct {
	*checker
	turn  int64
	ended bool
	open  []string        // calls not answered, in order
	calls map[string]bool // every call of the generation
	prev  session.Row
}

func (c *checker) rows(l session.Lane, gen int64, rows []session.Row) {
	t := &transcript{checker: c, calls: map[string]bool{}}
	for i, r := range rows {
		if r.Seq != int64(i+1) {
			c.addf("row %d has seq %d", i+1, r.Seq)
		}
		t.row(r)
		t.prev = r
	}
	switch {
	case t.turn == 0:
	case gen == l.Gen && l.Turn == t.turn:
		if t.ended {
			c.addf("turn %d is open and has its end row", t.turn)
		}
	case gen == l.Gen:
		t.close()
	} // a turn that /new closed ends without a row
	if gen == l.Gen && (l.Seq != int64(len(rows)) || l.Sent > l.Seq || l.Last != t.prev.Type) {
		c.addf("%d rows, the newest of type %q; the lane says seq %d, sent %d, type %q", len(rows), t.prev.Type, l.Seq, l.Sent, l.Last)
	}
}

// close wants the turn to have been ended well.
func (t *transcript) close() {
	if t.turn != 0 && !t.ended {
		t.addf("turn %d is closed and has no end row", t.turn)
	}
	if len(t.open) > 0 {
		t.addf("turn %d is closed and call %s has no result", t.turn, t.open[0])
	}
}

func (t *transcript) row(r session.Row) {
	if r.Turn != t.turn || r.Turn == 0 {
		t.close()
		if r.Turn <= t.newest {
			t.addf("row %d of turn %d comes after turn %d", r.Seq, r.Turn, t.newest)
		}
		t.turn, t.ended, t.open = r.Turn, false, nil
		t.newest = max(t.newest, r.Turn)
	}
	if t.ended {
		t.addf("row %d of type %q comes after the end of turn %d", r.Seq, r.Type, r.Turn)
	}
	if r.Type == session.RowSteer {
		t.steer(r)
		return
	}
	if len(t.open) > 0 && r.Type != session.RowTool {
		t.addf("row %d of type %q comes before the result of call %s", r.Seq, r.Type, t.open[0])
		t.open = nil
	}
	switch r.Type {
	case session.RowHead:
	case session.RowUser, session.RowFold:
		t.inputs(r)
	case session.RowAssistant:
		t.assistant(r)
	case session.RowTool:
		t.result(r)
	default:
		t.addf("row %d has the unknown type %q", r.Seq, r.Type)
	}
}

// steer: on the newest tool row, only steers between, one number per drain.
func (t *transcript) steer(r session.Row) {
	first := t.prev.Type == session.RowTool && t.prev.Seq == r.On
	if !first && (t.prev.Type != session.RowSteer || t.prev.On != r.On) || t.prev.Turn != r.Turn {
		t.addf("steer row %d says it is on row %d, and follows row %d of type %q, turn %d", r.Seq, r.On, t.prev.Seq, t.prev.Type, t.prev.Turn)
	}
	switch {
	case first && r.N <= t.note:
		t.addf("steer row %d has note number %d after %d", r.Seq, r.N, t.note)
	case !first && r.N != t.prev.N:
		t.addf("steer row %d has note number %d in the drain of %d", r.Seq, r.N, t.prev.N)
	case !first && r.Tick <= t.prev.Tick:
		t.addf("steer row %d of ticket %d comes after ticket %d", r.Seq, r.Tick, t.prev.Tick)
	}
	t.note = max(t.note, r.N)
	t.consume(r, r.Tick)
	d := json.NewDecoder(bytes.NewReader(r.Data)) // one document for each part
	for n := 0; ; n++ {
		var in session.Input
		err := d.Decode(&in)
		if err == io.EOF && n > 0 {
			return
		}
		if err != nil {
			t.addf("row %d is not an input: %v", r.Seq, err)
			return
		}
	}
}

// consume notes that the turn of r took the ticket.
func (t *transcript) consume(r session.Row, ticket int64) {
	if turn, twice := t.used[ticket]; twice {
		t.addf("row %d of turn %d consumes ticket %d, which turn %d consumed", r.Seq, r.Turn, ticket, turn)
	}
	if ticket <= 0 {
		t.addf("row %d has no ticket", r.Seq)
	}
	t.used[ticket] = r.Turn
}

// inputs: an input of several parts may stand as several inputs of one ticket,
// side by side.
func (t *transcript) inputs(r session.Row) {
	var u session.UserRow
	if !t.decode(r, &u) {
		return
	}
	before := int64(0)
	for _, in := range u.Inputs {
		if in.Ticket != 0 && in.Ticket != before {
			t.consume(r, in.Ticket)
		}
		before = in.Ticket
	}
}

func (t *transcript) assistant(r session.Row) {
	var a session.AssistantRow
	if !t.decode(r, &a) {
		return
	}
	for _, call := range a.Calls {
		if t.calls[call.ID] {
			t.addf("row %d makes call %s again", r.Seq, call.ID)
		}
		t.calls[call.ID] = true
		t.open = append(t.open, call.ID)
	}
	if t.ended = a.End != ""; t.ended && len(a.Calls) > 0 {
		t.addf("row %d ends turn %d and makes calls", r.Seq, r.Turn)
	}
}

func (t *transcript) result(r session.Row) {
	var tool session.ToolRow
	if !t.decode(r, &tool) {
		return
	}
	switch {
	case len(t.open) == 0:
		t.addf("row %d is the result of call %q, and no call is open", r.Seq, tool.Call)
		return
	case tool.Call != t.open[0]:
		t.addf("row %d is the result of call %q; the next open call is %s", r.Seq, tool.Call, t.open[0])
	}
	t.open = t.open[1:]
}

func (t *transcript) decode(r session.Row, v any) bool {
	err := json.Unmarshal(r.Data, v)
	if err != nil {
		t.addf("row %d of type %q cannot be read: %v", r.Seq, r.Type, err)
	}
	return err == nil
}
