package sim

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"coxswain/session"
)

// noteLine is the beginning of a real note: the literal with a whole key.
var noteLine = regexp.MustCompile(`gateway-note key=\d{6}-\d{6}-\d{6}-\d{6}`)

// check lists the violations of the invariants that can be seen at the end of
// a run. It reads the store, the captured requests, the effects of tools and
// what the platform was sent.
func check(w *world) []string {
	var bad []string
	badf := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	ctx := context.Background()
	st, err := w.store.Stats(ctx)
	if err != nil {
		badf("stats: %v", err)
	}
	if st.Accepted != st.Consumed+st.Steered+st.Dropped+st.InSlot {
		badf("conservation: accepted %d = consumed %d + steered %d + dropped %d + in slot %d", st.Accepted, st.Consumed, st.Steered, st.Dropped, st.InSlot)
	}
	lanes, err := w.store.Sessions(ctx, "", 0)
	if err != nil {
		badf("sessions: %v", err)
	}
	for _, lane := range lanes {
		for gen := int64(1); gen <= lane.Gen; gen++ {
			rows, err := w.store.Rows(ctx, lane.Key, gen, 0, 0)
			if err != nil {
				badf("rows: %v", err)
			}
			open := int64(0)
			if gen == lane.Gen {
				open = lane.Turn
			}
			checkRows(rows, open, gen == lane.Gen, badf)
		}
	}
	checkRequests(w, badf)
	if w.bus != nil {
		for _, v := range w.bus.badSat {
			badf("%s", v)
		}
	}
	for _, v := range w.box.bad {
		badf("%s", v)
	}
	for id, n := range w.box.effects {
		if n > 1 {
			badf("I6: call %s ran %d times", id, n)
		}
	}
	checkSent(w, badf)
	return bad
}

// checkRows holds a generation against I3, I5, I6 and I14. whole is false for
// generations that a reset cut off.
func checkRows(rows []session.Row, open int64, whole bool, badf func(string, ...any)) {
	var turn, lastN, lastTool int64
	var calls []session.Call
	done := 0
	ended, unanswered, again := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	tickets := map[int64]bool{}
	for i, r := range rows {
		if r.Seq != int64(i)+1 {
			badf("rows: seq %d at %d", r.Seq, i)
		}
		if r.Turn < turn {
			badf("I3: turn %d after %d", r.Turn, turn)
		}
		if r.Turn != turn && turn != 0 && !ended[turn] && whole {
			badf("I14: turn %d has no end row", turn)
		}
		if ended[r.Turn] {
			badf("I14: a row of turn %d after its end", r.Turn)
		}
		turn = r.Turn
		switch r.Type {
		case session.RowUser, session.RowFold:
			if done < len(calls) {
				badf("I14: %d calls open before a user row", len(calls)-done)
			}
			u := session.DecodeUser(r)
			for _, in := range u.Inputs {
				if tickets[in.Ticket] {
					badf("I2: ticket %d twice", in.Ticket)
				}
				tickets[in.Ticket] = true
				if in.Retry != 0 && (again[in.Retry] || !unanswered[in.Retry]) {
					badf("I6: turn %d sends turn %d again, which was answered or sent again before", r.Turn, in.Retry)
				}
				again[in.Retry] = true
			}
			for _, in := range slices.Concat(u.Again, u.AgainNotes) {
				if !tickets[in.Ticket] {
					badf("I2: ticket %d is sent again and was never there", in.Ticket)
				}
			}
		case session.RowAssistant:
			if done < len(calls) {
				badf("I14: %d calls open before an assistant row", len(calls)-done)
			}
			a := session.DecodeAssistant(r)
			calls, done = a.Calls, 0
			if a.End != "" {
				ended[r.Turn] = true
				unanswered[r.Turn] = a.End == session.EndFailed || a.End == session.EndStopped
			}
			if a.Text == "" && len(a.Calls) == 0 {
				badf("I14: empty assistant row %d", r.Seq)
			}
		case session.RowTool:
			t := session.DecodeTool(r)
			if done >= len(calls) || calls[done].ID != t.Call {
				badf("I14: result of %s at %d is not the next open call", t.Call, r.Seq)
			}
			done++
			lastTool = r.Seq
			if noteLine.MatchString(t.Body) {
				badf("I7: a note in a body: %s", t.Body)
			}
		case session.RowSteer:
			if r.On != lastTool || done < len(calls) {
				badf("I5: steer %d on %d, newest tool row is %d, %d calls open", r.Seq, r.On, lastTool, len(calls)-done)
			}
			if i > 0 && rows[i-1].Type != session.RowTool && rows[i-1].Type != session.RowSteer {
				badf("I5: steer %d does not stand behind its tool row", r.Seq)
			}
			if r.N < lastN {
				badf("I5: note %d after %d", r.N, lastN)
			}
			lastN = r.N
			if tickets[r.Tick] {
				badf("I2: ticket %d twice", r.Tick)
			}
			tickets[r.Tick] = true
		}
	}
	if turn != 0 && turn != open && !ended[turn] && whole {
		badf("I14: the last turn %d has no end row", turn)
	}
}

// checkRequests holds what was sent to the model against I5 and I11: within an
// epoch each request begins with the one before it, and a note stands at the
// tail of the newest tool row of the request that first carries it.
func checkRequests(w *world, badf func(string, ...any)) {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	for _, v := range w.model.bad {
		badf("%s", v)
	}
	last := map[string]request{}
	for n, req := range w.model.reqs {
		prev, ok := last[req.session]
		// Who lost its lease to a clock that jumped may have one more on its way.
		if ok && prev.system == req.system && !w.jumpedBefore(req.at) {
			checkPrefix(n, prev, req, badf)
		}
		if asideRequest(req) {
			continue
		}
		last[req.session] = req
		checkNotes(n, req, badf)
	}
}

// asideRequest reports a question beside the turn: it is no part of the rows.
func asideRequest(req request) bool {
	n := len(req.msgs)
	return req.noTools && n > 0 && decodeMsg(req.msgs[n-1]).Role == "user"
}

func checkPrefix(n int, prev, req request, badf func(string, ...any)) {
	if asideRequest(req) {
		return
	}
	end := len(prev.msgs)
	// A join re-sends the turn's user message, which is then the newest.
	if end > 0 && len(req.msgs) == end && decodeMsg(prev.msgs[end-1]).Role == "user" {
		end--
	}
	if len(req.msgs) < end {
		badf("I5: request %d is shorter than the one before:\n%s\n%s", n, prev.msgs, req.msgs)
		return
	}
	for i := range end {
		if string(req.msgs[i]) != string(prev.msgs[i]) {
			if i == len(prev.msgs)-1 && decodeMsg(prev.msgs[i]).Role == "user" {
				continue // joined, and then crashed or went on
			}
			badf("I5: request %d differs from the one before in message %d:\n%s\n%s", n, i, prev.msgs[i], req.msgs[i])
			return
		}
	}
}

func checkNotes(n int, req request, badf func(string, ...any)) {
	i := strings.Index(req.system, "[[end-gateway-note key=")
	if i < 0 {
		badf("request %d: no key in the system prompt", n)
		return
	}
	key := req.system[i+len("[[end-gateway-note key="):][:27]
	seen := map[string]bool{}
	for k, raw := range req.msgs {
		m := decodeMsg(raw)
		c := strings.Count(string(raw), key)
		switch {
		case c == 0:
			continue
		case m.Role != "tool" || c != 2:
			badf("I7: request %d: the key stands %d times in message %d (%s)", n, c, k, m.Role)
			continue
		case !strings.HasSuffix(m.Content, "]]"):
			badf("I5: request %d: a note does not end message %d", n, k)
		}
		open := strings.Index(m.Content, "[[gateway-note key=")
		num := m.Content[strings.LastIndex(m.Content, " n="):]
		if seen[num] {
			badf("I5: request %d: two notes with number %s", n, num)
		}
		seen[num] = true
		if open < 2 {
			badf("I5: request %d: a note begins message %d", n, k)
		}
		if k+1 < len(req.msgs) && decodeMsg(req.msgs[k+1]).Role == "tool" {
			badf("I5: request %d: the note in %d is not on the batch's last row", n, k)
		}
	}
}

// checkSent holds what people were sent against I9: each part at most once,
// a repeat of a final is marked and only ever one.
func checkSent(w *world, badf func(string, ...any)) {
	w.plat.mu.Lock()
	defer w.plat.mu.Unlock()
	times := map[string]int{}
	for _, s := range w.plat.sent {
		id := s.key.String() + s.part
		times[id]++
		// A clock that is set forward makes a try look old that is under way.
		if times[id] > 1 && !s.repeat && !w.jumpedBefore(s.at) {
			badf("I9: part %s shown twice without a mark", s.part)
		}
		// Once more after an unknown outcome; a process that dies in that repeat
		// leaves its outcome unknown too, and arriving comes first. So does one that
		// stood still or could not reach the store for longer than unknown_after.
		if times[id] > 1+max(1, w.lives-w.conf.replicas+w.breaks) {
			badf("I9: part %s shown %d times in %d lives with %d breaks", s.part, times[id], w.lives, w.breaks)
		}
		if times[id] > 1 && s.kind != session.PartFinal && s.kind != session.PartNotice {
			badf("I9: part %s (%s) repeated", s.part, s.kind)
		}
	}
}

// checkEcho holds that what people write is never sent out as the bot's own
// words: inbound never becomes outbound (picoclaw #1922).
func checkEcho(w *world) (bad []string) {
	w.plat.mu.Lock()
	defer w.plat.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.plat.sent {
		if w.texts[s.text] {
			bad = append(bad, fmt.Sprintf("inbound became outbound: %s", contract(s.text)))
		}
	}
	return bad
}
