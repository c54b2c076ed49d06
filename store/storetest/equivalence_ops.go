package storetest

import (
	"fmt"
	"slices"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

var states = []session.FateState{
	session.FateSteered, session.FateRunning, session.FateQueued, session.FateAnswered, session.FateFailed, session.FateStopped,
	session.FateHeld, session.FateAttached, session.FatePending, "",
}

// fates sets up to n fates of any tickets there are.
func (p *player) fates(lane session.Lane, c command, n int) []session.FateSet {
	var f []session.FateSet
	for i := range n {
		f = append(f, session.FateSet{
			Ticket: 1 + (int64(c.Bits)+int64(i))%(lane.Tickets+1), State: states[(int(c.Bits)+c.Pick+i)%len(states)],
			Turn: lane.Turn * int64(c.N%2), Step: c.Pick,
		})
	}
	return f
}

// job is a job in some state.
func (p *player) job(lane session.Lane, c command) session.Job {
	j := session.Job{
		ID: fmt.Sprintf("job%d", c.N), Turn: lane.Turn, Owner: nonces[c.Pick%2], Name: "make",
		State: []session.JobState{session.JobRunning, session.JobRunning, session.JobEnded, session.JobLost}[c.Pick],
		Told:  c.bit(6) && c.bit(5), At: p.clk.now().UnixMilli(),
	}
	if j.State == session.JobEnded {
		j.Body, j.Data = "out", []byte(`{"code":0}`)
	}
	return j
}

// commit writes a step; most times it first does what a step needs, so that
// streams are not a row of refusals.
func (p *player) commit(l *played, c command) {
	lane := p.lane(l)
	switch {
	case c.Again && l.began:
		p.begin(l, c)
		return
	case c.Wrong == 0 && !c.Again:
		switch {
		case lane.Turn == 0:
			p.begin(l, c)
			return
		case lane.Nonce == "":
			p.claim(l, c)
			return
		}
	}
	l.began = false
	before := p.replayed()
	r, lease := l.commit, l.lease
	if !c.Again || r.Op == "" {
		r, lease = p.step(lane, c), p.leaseOf(lane, c)
	}
	l.commit, l.lease = r, lease
	got, word := both(p, r, func(st session.Store) (session.Committed, error) { return st.Commit(p.ctx, lease, r) })
	switch {
	case word != "":
	case p.replayed() > before:
		word = "replay"
	case r.End && got.More:
		word = "more"
	case r.End:
		word = "end"
	case got.Out != nil:
		word = "part"
	case len(got.Steers) > 0:
		word = "drained"
	case len(r.Take) > 0:
		word = "joined"
	default:
		word = "ok"
	}
	if got.Out != nil {
		l.part, l.nonce = *got.Out, lease.Nonce
	}
	p.note("commit", word)
}

// step is a commit as a turn makes them: an assistant row, a tool row with or
// without the drain, a drain, a join, an end.
func (p *player) step(lane session.Lane, c command) session.Commit {
	r := session.Commit{Op: session.OpID(p.id("op")), Seq: lane.Seq, Phase: steer.Phase(1 + c.Pick), Step: c.N}
	call := fmt.Sprint("call", p.ids)
	switch c.Bits % 8 {
	case 0:
		r.Rows = []session.Row{callRow(call)}
	case 1:
		r.Rows = []session.Row{toolRow(call)}
	case 2, 3:
		r.Rows, r.Drain = []session.Row{callRow(call), toolRow(call)}, true
		if id := p.id("steer"); c.bit(7) {
			p.acceptOf(session.Accept{
				Key: lane.Key, Dedupe: id, Want: steer.Steer, Turn: lane.Turn, Author: ann, Msg: session.MessageID(id), Data: text(id), Fate: session.FatePending,
			})
		}
	case 4:
		r.Drain = true
	case 5:
		r.Take = c.taken(lane, 1+c.Pick%2)
		r.Rows = []session.Row{row(session.RowFold, session.UserRow{Event: call})}
	default:
		r.Rows, r.End, r.HoldRest = []session.Row{endRow()}, true, c.bit(3) && c.bit(4)
		r.Outs, r.TakeOut = p.parts(c.N, lane.Turn), true
	}
	if c.bit(3) {
		r.Outs, r.TakeOut = append(r.Outs, p.parts(c.Pick, lane.Turn)...), c.bit(4)
	}
	if c.bit(4) {
		r.Jobs = []session.Job{p.job(lane, c)}
	}
	if c.bit(5) {
		r.Fates = p.fates(lane, c, c.N)
	}
	if c.Wrong == 4 && len(r.Take) == 0 {
		r.Seq--
	}
	return r
}

func (p *player) amend(l *played, c command) {
	lane := p.lane(l)
	r := session.Amend{
		Key: l.key, Dedupe: p.dedupe(c, "e", &l.edits), Kind: session.AmendKind(c.N % 3), Ticket: int64(c.Bits>>4) % (lane.Tickets + 2),
		Data: text("edited"), Want: c.Mode, Turn: lane.Turn, Fate: states[c.Pick*2%len(states)], Outs: p.parts(c.Pick/3, 0),
	}
	if n := len(lane.Slot); n > 0 && c.bit(3) {
		e := lane.Slot[c.Pick%n]
		r.Ticket = e.Ticket
		if c.bit(2) {
			r.Version = e.Version
		}
		if c.Wrong > 0 {
			r.Version = e.Version + int64(c.Wrong)
		}
	}
	a, word := both(p, r, func(st session.Store) (session.Amended, error) { return st.Amend(p.ctx, r) })
	op := []string{"edit", "drop", "set"}[r.Kind]
	switch {
	case word != "":
		op = "amend"
	case a.Dup:
		op, word = "amend", "dup"
	case a.Done:
		word = "ok"
	default:
		word = "missed"
	}
	p.note(op, word)
}

func (p *player) stop(l *played, c command) {
	r := session.Stop{Key: l.key, Dedupe: p.dedupe(c, "m", &l.marks), Drop: c.bit(0) && c.bit(1), Outs: p.parts(c.Pick/3, 0)}
	if c.bit(2) {
		r.Only = int64(c.N)
	}
	r.Keep = c.bit(1) && !c.bit(0)
	lane := p.lane(l)
	s, word := both(p, r, func(st session.Store) (session.Stopped, error) { return st.Stop(p.ctx, r) })
	op := "stop"
	switch {
	case s.Dup:
	case r.Drop:
		op = "stopall"
	case r.Keep:
		op = "stopkeep"
	}
	switch {
	case word != "":
	case s.Dup:
		word = "dup"
	case r.Only != 0 && r.Only != lane.Turn:
		word = "other"
	default:
		word = "ok"
	}
	p.note(op, word)
}

func (p *player) reset(l *played, c command) {
	r := session.Reset{Key: l.key, Dedupe: p.dedupe(c, "m", &l.marks), Outs: p.parts(c.Pick/3, 0)}
	lane := p.lane(l)
	got, word := both(p, r, func(st session.Store) (session.Lane, error) { return st.Reset(p.ctx, r) })
	if word == "" && got.Gen == lane.Gen {
		word = "dup"
	}
	p.note("reset", okay(word))
}

func (p *player) post(l *played, c command) {
	r := session.Post{Key: l.key, Outs: p.parts(c.N/2, 0)}
	if c.bit(0) || c.Again {
		r.Dedupe = p.dedupe(c, "m", &l.marks)
	}
	if c.bit(1) {
		r.Prefs = fmt.Appendf(nil, `{"mode":%d}`, c.Pick)
	}
	if c.bit(2) {
		r.Title = p.id("title")
	}
	if c.bit(3) {
		r.Jobs = []session.Job{p.job(p.lane(l), c)}
	}
	if c.bit(4) {
		j := p.job(p.lane(l), c)
		j.Told = false // what is told is not kept
		r.Add = []session.Job{j}
	}
	got, word := both(p, r, func(st session.Store) (session.Posted, error) { return st.Post(p.ctx, r) })
	if got.Dup {
		word = "dup"
	}
	p.note("post", okay(word))
}

func (p *player) outTake(l *played, c command) {
	type answer struct {
		Part session.Part
		OK   bool
		Wait time.Duration
	}
	nonce := nonces[c.Pick%2]
	got, word := both(p, nonce, func(st session.Store) (answer, error) {
		part, ok, wait, err := st.OutTake(p.ctx, l.key, nonce, time.Duration(1+c.N)*time.Second)
		if !ok {
			part = session.Part{}
		}
		return answer{part, ok, wait}, err
	})
	switch {
	case word != "":
	case got.OK && got.Part.ID == l.part.ID && got.Part.Attempt == l.part.Attempt:
		word = "again"
	case got.OK:
		l.part, l.nonce = got.Part, nonce
		word = string(got.Part.State)
	case got.Wait > 0:
		word = "wait"
	default:
		word = "none"
	}
	p.note("outtake", word)
}

func (p *player) outDone(l *played, c command) {
	d := session.PartDone{
		ID: l.part.ID, Msg: "m", Wait: time.Duration(c.N) * time.Second,
		State: []session.PartState{session.PartSent, session.PartPlanned, session.PartUnknown, session.PartDead}[c.Pick],
	}
	if c.bit(0) {
		d.State = session.PartSent
	}
	if c.bit(1) {
		d.For = nonces[c.N%2]
	}
	if c.Again {
		d.State = session.PartSending
	}
	nonce := l.nonce
	switch c.Wrong {
	case 1:
		nonce = nonces[c.N%2]
	case 2:
		d.ID = "another"
	case 3:
		d.ID, d.State, nonce = "", session.PartPlanned, nonces[c.N%2]
	}
	_, word := both(p, d, func(st session.Store) (any, error) { return nil, st.OutDone(p.ctx, l.key, nonce, d) })
	switch {
	case d.ID == "":
		word = "given_up"
	case word == "":
		word = string(d.State)
	}
	p.note("outdone", word)
}

// send empties an outbox, as far as it goes.
func (p *player) send(l *played, c command) {
	c.Wrong, c.Pick = 0, c.Pick%2
	for range p.lane(l).Out {
		p.outTake(l, c)
		p.outDone(l, command{Bits: 1}) // sent
	}
}

func (p *player) settle(l *played, c command) {
	f := p.fates(p.lane(l), c, 1+c.N)
	_, word := both(p, f, func(st session.Store) (any, error) { return nil, st.Settle(p.ctx, l.key, f) })
	p.note("settle", okay(word))
}

func (p *player) remove(l *played, _ command) {
	_, word := both(p, l.key, func(st session.Store) (any, error) { return nil, st.Delete(p.ctx, l.key) })
	p.note("delete", okay(word))
}

func (p *player) expire(l *played, c command) {
	idle := time.Duration(c.N) * time.Second
	_, word := both(p, idle, func(st session.Store) (any, error) { return nil, st.Expire(p.ctx, l.key, idle) })
	p.note("expire", okay(word))
}

func (p *player) doc(_ *played, c command) {
	if c.Pick == 0 {
		type answer struct {
			Data    []byte
			Version int64
		}
		_, word := both(p, "doc", func(st session.Store) (answer, error) {
			data, v, err := st.Doc(p.ctx, "doc")
			return answer{data, v}, err
		})
		p.note("doc", okay(word))
		return
	}
	v := p.docs
	if c.Wrong > 0 {
		v += int64(2*(c.N%2) - 1)
	}
	data := []byte(p.id("doc"))
	_, word := both(p, v, func(st session.Store) (any, error) { return nil, st.PutDoc(p.ctx, "doc", v, data) })
	if word == "" {
		p.docs++
	}
	p.note("putdoc", okay(word))
}

// read reads in pages.
func (p *player) read(l *played, c command) {
	switch c.Bits % 5 {
	case 0:
		lane := p.lane(l)
		rows, _ := both(p, c, func(st session.Store) ([]session.Row, error) {
			return st.Rows(p.ctx, l.key, lane.Gen-int64(c.Pick/3), int64(c.N), c.Pick)
		})
		p.some("rows", len(rows))
	case 1:
		fates, _ := both(p, c, func(st session.Store) ([]session.Fate, error) {
			f, err := st.Fates(p.ctx, l.key, c.Pick)
			return slices.Clip(f[:min(len(f), FatesKept)]), err
		})
		p.some("fates", len(fates))
	case 2:
		p.askDue(c)
	case 3:
		p.askOutDue(c)
	case 4:
		p.askSessions(c)
	}
}
