package redis

import (
	"encoding/json"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

func (w *twins) accept(key session.Key, l session.Lane) {
	r := session.Accept{
		Key: key, Dedupe: draw(w, "dedupe", w.id("m:"), "m:same"), Want: w.want(), Turn: l.Turn,
		Author: draw(w, "author", session.UserID("ann"), "bob"), Msg: session.MessageID(w.id("msg")),
		Data: []byte(w.id("data\x00\xff\n ")), Fate: w.fate(), Title: draw(w, "title", "", "a title"),
	}
	if w.yes("grouped") {
		r.Group, r.Append = draw(w, "group", "g1", "g2"), w.yes("append")
		r.Open = time.Duration(w.num("open", 0, 3000)) * time.Millisecond
	}
	switch w.num("size", 0, 9) {
	case 0: // near the size of which parts may still join
		r.Data = append(r.Data, make([]byte, session.EntryMaxBytes-len(r.Data)-w.num("short", 0, 20))...)
	case 1: // near a full slot
		for range session.SlotCap {
			w.do("accept", func(s session.Store) (any, error) {
				q := r
				q.Dedupe = ""
				return s.Accept(w.t.Context(), q)
			})
		}
	}
	r.Full = w.outs()
	w.do("accept", func(s session.Store) (any, error) { return s.Accept(w.t.Context(), r) })
}

func (w *twins) outs() []session.PartNew {
	var outs []session.PartNew
	for range w.num("outs", 0, 2) {
		outs = append(outs, session.PartNew{ID: w.id("part"), Kind: session.PartFinal, Turn: 1, Data: []byte(w.id("\xfe payload"))})
	}
	return outs
}

// takes names some of the entries, sometimes wrongly.
func (w *twins) takes(l session.Lane) []session.Take {
	var takes []session.Take
	for _, e := range l.Slot {
		if w.yes("take") {
			takes = append(takes, session.Take{Ticket: e.Ticket, Version: e.Version})
		}
	}
	if w.num("wrong", 0, 9) == 0 {
		takes = append(takes, session.Take{Ticket: int64(w.num("ticket", 1, 40)), Version: 2})
	}
	seen := map[int64]bool{}
	for _, t := range takes {
		if seen[t.Ticket] {
			return takes[:len(takes)-1]
		}
		seen[t.Ticket] = true
	}
	return takes
}

func (w *twins) fates(l session.Lane) []session.FateSet {
	var f []session.FateSet
	for range w.num("fates", 0, 2) {
		f = append(f, session.FateSet{
			Ticket: int64(w.num("ticket", 1, int(l.Tickets)+1)), State: w.fate(), Turn: int64(w.num("turn", 0, 2)), Step: w.num("step", 0, 2),
		})
	}
	return f
}

func (w *twins) rows(types ...session.RowType) []session.Row {
	var rows []session.Row
	for range w.num("rows", 0, 2) {
		rows = append(rows, session.Row{Type: draw(w, "type", types...), Data: []byte(w.id("row \x00\r\n\xff"))})
	}
	return rows
}

func (w *twins) nonce() string { return draw(w, "nonce", "n1", "n1", "n1", "n2") }
func (w *twins) ttl() time.Duration {
	return draw(w, "ttl", 5*time.Second, 10*time.Second)
}

func (w *twins) begin(key session.Key, l session.Lane) {
	r := session.Begin{
		Op: session.OpID(w.id("op")), Key: key, Nonce: w.nonce(), TTL: w.ttl(), Gen: l.Gen,
		Seq: l.Seq - int64(w.num("behind", 0, 9)/9), Owner: draw(w, "owner", session.UserID("ann"), "bob"), Phase: steer.PhaseModel,
		Take: w.takes(l), Rows: w.rows(session.RowHead, session.RowUser), Fates: w.fates(l), Outs: w.outs(),
	}
	for _, j := range l.Jobs {
		if w.yes("tell") {
			r.Jobs = append(r.Jobs, j.ID)
		}
	}
	w.do("begin", func(s session.Store) (any, error) {
		b, err := s.Begin(w.t.Context(), r)
		if err == nil {
			w.leases[key.String()] = b.Lease
		}
		return b, err
	})
}

// lease is the lease the caller believes in, mostly the one that is.
func (w *twins) lease(key session.Key, l session.Lane) session.Lease {
	if w.num("believes", 0, 4) == 0 {
		return w.leases[key.String()]
	}
	return session.Lease{Key: key, Epoch: l.Epoch, Nonce: l.Nonce, TTL: w.ttl()}
}

func (w *twins) commit(key session.Key, l session.Lane) {
	le := w.lease(key, l)
	le.Key = key
	r := session.Commit{
		Op: session.OpID(w.id("op")), Seq: l.Seq - int64(w.num("behind", 0, 9)/9), Phase: draw(w, "phase", steer.PhaseTools, steer.PhaseModel),
		Rows:  w.rows(session.RowTool, session.RowTool, session.RowTool, session.RowAssistant),
		Drain: w.yes("drain"), Step: w.num("step", 0, 3), Outs: w.outs(), Fates: w.fates(l), TakeOut: w.yes("takeout"),
		End: w.num("end", 0, 3) == 0, HoldRest: w.num("hold", 0, 9) == 0,
	}
	if w.num("join", 0, 4) == 0 {
		r.Take = w.takes(l)
	}
	if w.num("jobs", 0, 3) == 0 {
		r.Jobs = []session.Job{w.job()}
	}
	w.do("commit", func(s session.Store) (any, error) { return s.Commit(w.t.Context(), le, r) })
}

func (w *twins) job() session.Job {
	return session.Job{
		ID: draw(w, "job", "j1", "j2", "j3"), Turn: int64(w.num("turn", 0, 3)), Owner: w.nonce(), Name: "n\x00\xff",
		State: draw(w, "state", session.JobRunning, session.JobEnded, session.JobLost), Told: w.num("told", 0, 2) == 0,
		Body: "b", Data: json.RawMessage(`{ "a":1}`), At: 17,
	}
}

func (w *twins) claim(key session.Key, l session.Lane) {
	nonce, ttl := w.nonce(), w.ttl()
	w.do("claim", func(s session.Store) (any, error) { return s.Claim(w.t.Context(), key, nonce, ttl) })
}

func (w *twins) renew(key session.Key, l session.Lane) {
	le := w.lease(key, l)
	le.Key = key
	w.do("renew", func(s session.Store) (any, error) { return s.Renew(w.t.Context(), le) })
}

func (w *twins) amend(key session.Key, l session.Lane) {
	r := session.Amend{
		Key: key, Dedupe: draw(w, "dedupe", w.id("e:"), "m:same"), Kind: draw(w, "kind", session.AmendEdit, session.AmendDrop, session.AmendSet),
		Ticket: int64(w.num("ticket", 1, int(l.Tickets)+1)), Version: int64(w.num("version", 0, 9) / 8),
		Data: []byte(w.id("edit")), Want: w.want(), Turn: l.Turn, Fate: w.fate(), Outs: w.outs(),
	}
	if len(l.Slot) > 0 && w.yes("there") {
		r.Ticket = draw(w, "entry", l.Slot...).Ticket
	}
	w.do("amend", func(s session.Store) (any, error) { return s.Amend(w.t.Context(), r) })
}

func (w *twins) stop(key session.Key, l session.Lane) {
	r := session.Stop{
		Key: key, Dedupe: w.id("s:"), Only: int64(w.num("only", 0, 3)), Drop: w.num("drop", 0, 3) == 0, Outs: w.outs(),
	}
	w.do("stop", func(s session.Store) (any, error) { return s.Stop(w.t.Context(), r) })
}

func (w *twins) post(key session.Key, l session.Lane) {
	r := session.Post{Key: key, Dedupe: draw(w, "dedupe", w.id("p:"), "m:same"), Title: draw(w, "title", "", "T"), Outs: w.outs()}
	if w.yes("prefs") {
		r.Prefs = []byte(`{"p":1}`)
	}
	if w.yes("jobs") {
		r.Jobs = []session.Job{w.job(), w.job()}
	}
	w.do("post", func(s session.Store) (any, error) { return s.Post(w.t.Context(), r) })
}

func (w *twins) outTake(key session.Key, l session.Lane) {
	nonce, takeover := w.nonce(), draw(w, "takeover", 0, time.Second, time.Minute)
	w.do("outtake", func(s session.Store) (any, error) {
		p, ok, wait, err := s.OutTake(w.t.Context(), key, nonce, takeover)
		return []any{p, ok, wait}, err
	})
}

func (w *twins) outDone(key session.Key, l session.Lane) {
	nonce := w.nonce()
	d := session.PartDone{
		State: draw(w, "state", session.PartSent, session.PartDead, session.PartPlanned, session.PartUnknown),
		Wait:  draw(w, "wait", 0, time.Second),
	}
	// The head's id is known to who took it.
	p, ok, _, _ := w.model.OutTake(w.t.Context(), key, nonce, time.Hour)
	if ok {
		got, _, _, err := w.redis.OutTake(w.t.Context(), key, nonce, time.Hour)
		if err != nil {
			w.rt.Fatal(err)
		}
		w.same("outtake", got, p)
	}
	d.ID = p.ID
	w.do("outdone", func(s session.Store) (any, error) { return nil, s.OutDone(w.t.Context(), key, nonce, d) })
}

func (w *twins) settle(key session.Key, l session.Lane) {
	f := w.fates(l)
	w.do("settle", func(s session.Store) (any, error) { return nil, s.Settle(w.t.Context(), key, f) })
}
