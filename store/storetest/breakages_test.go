package storetest

import (
	"slices"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A breakage is a store broken in one way, and the rules that must object.
type breakage struct {
	name string
	by   string // prefix of the rules' names
	do   func(s *broken)
}

// drainsOf calls f before each commit with a drain.
func drainsOf(s *broken, f func(l *lane)) {
	s.before = func(l *lane, r any) {
		if c, ok := r.(*leased); ok && l != nil && c.commit.Drain {
			f(l)
		}
	}
}

// asked calls f before each request of one type.
func askedOf[R any](s *broken, f func(l *lane, r *R)) {
	s.before = func(l *lane, r any) {
		if r, ok := r.(*R); ok && l != nil {
			f(l, r)
		}
	}
}

// answered calls f after each request of one type that was done.
func answeredOf[R, A any](s *broken, f func(l *lane, r *R, a *A)) {
	s.after = func(l *lane, r, a any, err error) {
		if r, ok := r.(*R); ok && l != nil && err == nil {
			f(l, r, a.(*A))
		}
	}
}

var breakages = []breakage{
	{"I4 no fence", "fence/", func(s *broken) {
		s.before = func(l *lane, r any) {
			if r, ok := r.(*leased); ok && l != nil {
				r.lease.Epoch, r.lease.Nonce = l.Epoch, l.Nonce
			}
		}
	}},
	{"F13 no epoch in the fence", "fence/F13", func(s *broken) {
		askedOf(s, func(l *lane, r *leased) { r.lease.Epoch = l.Epoch })
	}},
	{"F20 no nonce in the fence", "fence/F20", func(s *broken) {
		askedOf(s, func(l *lane, r *leased) { r.lease.Nonce = l.Nonce })
	}},
	{"release is not fenced", "fence/", func(s *broken) {
		askedOf(s, func(l *lane, r *releasing) { r.lease.Epoch, r.lease.Nonce = l.Epoch, l.Nonce })
	}},
	{"I2 no dedupe", "accept/I2", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Accept) { r.Dedupe = "" })
	}},
	{"I2 marks go with the generation", "accept/I2", func(s *broken) {
		answeredOf(s, func(l *lane, _ *session.Reset, _ *session.Lane) { clear(l.seen) })
	}},
	{"marks never end", "accept/I2 a mark counts", func(s *broken) {
		askedOf(s, func(l *lane, _ *session.Accept) {
			for k, m := range l.seen {
				m.at = s.clock()
				l.seen[k] = m
			}
		})
	}},
	{"a refused input leaves no mark", "accept/a full slot", func(s *broken) {
		answeredOf(s, func(l *lane, r *session.Accept, a *session.Accepted) {
			if a.Outcome == session.AcceptFull {
				delete(l.seen, r.Dedupe)
			}
		})
	}},
	{"a part that joined leaves no mark", "accept/T4", func(s *broken) {
		answeredOf(s, func(l *lane, r *session.Accept, a *session.Accepted) {
			if a.Outcome == session.AcceptJoined {
				delete(l.seen, r.Dedupe)
			}
		})
	}},
	{"a part joins another person's entry", "accept/T5", func(s *broken) {
		askedOf(s, func(l *lane, r *session.Accept) {
			for _, e := range l.slot {
				if r.Append && e.Group == r.Group {
					r.Author = e.Author
				}
			}
		})
	}},
	{"a part that joined leaves the version", "begin/F29", func(s *broken) {
		answeredOf(s, func(l *lane, _ *session.Accept, a *session.Accepted) {
			if a.Outcome == session.AcceptJoined {
				l.slot[a.Ticket].Version--
			}
		})
	}},
	{"begin ignores versions", "begin/F29", func(s *broken) {
		askedOf(s, func(l *lane, r *session.Begin) {
			for i, t := range r.Take {
				if e := l.slot[t.Ticket]; e != nil {
					r.Take[i].Version = e.Version
				}
			}
		})
	}},
	{"begin ignores seq", "begin/all or nothing", func(s *broken) {
		askedOf(s, func(l *lane, r *session.Begin) { r.Seq = l.Seq })
	}},
	{"a refused begin has consumed", "begin/all or nothing", func(s *broken) {
		s.after = func(l *lane, r, _ any, err error) {
			if r, ok := r.(*session.Begin); ok && err == session.ErrStale {
				for _, t := range r.Take {
					if l != nil && l.slot[t.Ticket] != nil {
						delete(l.slot, t.Ticket)
						s.stats.Consumed++
					}
				}
			}
		}
	}},
	{"begin without a memo", "begin/F9", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Begin) { r.Op = "" })
	}},
	{"M5 commit without a memo", "memo/F9 a commit asked again", func(s *broken) {
		askedOf(s, func(_ *lane, r *leased) { r.commit.Op = "" })
	}},
	{"the fence before the memo", "memo/F9 a commit asked again after a takeover", func(s *broken) {
		askedOf(s, func(l *lane, r *leased) {
			if r.lease.Epoch != l.Epoch || r.lease.Nonce != l.Nonce {
				r.commit.Op = ""
			}
		})
	}},
	{"claim by the holder takes a new epoch", "claim/the holder", func(s *broken) {
		askedOf(s, func(l *lane, r *claimed) {
			if l.leased(s.clock()) && l.Nonce == r.nonce {
				l.Epoch++
			}
		})
	}},
	{"a release counts as a crash", "claim/F33", func(s *broken) {
		answeredOf(s, func(l *lane, _ *releasing, _ *any) { l.Released = false })
	}},
	{"M6 drain ignores sent", "drain/F5", func(s *broken) {
		drainsOf(s, func(l *lane) {
			if l.Last == session.RowTool {
				l.Sent = 0
			}
		})
	}},
	{"a drain that moves nothing leaves sent", "drain/", func(s *broken) {
		var sent int64
		drainsOf(s, func(l *lane) { sent = l.Sent })
		answeredOf(s, func(l *lane, r *leased, c *session.Committed) {
			if r.commit.Drain && len(c.Steers) == 0 {
				l.Sent = sent
			}
		})
	}},
	{"drain takes steers of any turn", "drain/only steers of this turn", func(s *broken) {
		drainsOf(s, func(l *lane) {
			for _, e := range l.slot {
				if e.Want == steer.Steer {
					e.Turn = l.Turn
				}
			}
		})
	}},
	{"drain passes open entries", "drain/stops at the first open", func(s *broken) {
		drainsOf(s, func(l *lane) {
			for _, e := range l.slot {
				e.Open = time.Time{}
			}
		})
	}},
	{"drain takes held entries", "drain/never what is held", func(s *broken) {
		drainsOf(s, func(l *lane) {
			for _, e := range l.slot {
				e.Held = false
			}
		})
	}},
	{"M3 the steer is removed by a second call", "drain/steers go", func(s *broken) {
		answeredOf(s, func(l *lane, r *leased, c *session.Committed) {
			for _, st := range c.Steers {
				l.slot[st.Tick] = &session.Entry{Ticket: st.Tick, Version: 1, Want: steer.Steer, Turn: st.Turn, Data: st.Data}
			}
		})
	}},
	{"each steer has a note number of its own", "drain/", func(s *broken) {
		answeredOf(s, func(l *lane, r *leased, c *session.Committed) {
			for i := range c.Steers {
				l.rows[l.Gen][int(c.Steers[i].Seq)-1].N += int64(i)
				l.Notes += int64(min(i, 1))
			}
		})
	}},
	{"M7 a drop without a tombstone", "cell/drop/", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Amend) {
			if r.Kind == session.AmendDrop {
				r.Dedupe = ""
			}
		})
	}},
	{"an edit leaves the version", "edit/", func(s *broken) {
		answeredOf(s, func(l *lane, r *session.Amend, a *session.Amended) {
			if a.Done && !a.Dup && r.Kind == session.AmendEdit {
				l.slot[r.Ticket].Version--
			}
		})
	}},
	{"a stale amend leaves its mark", "edit/of another version", func(s *broken) {
		s.after = func(l *lane, r, _ any, err error) {
			if r, ok := r.(*session.Amend); ok && err == session.ErrStale {
				l.mark(s.clock(), r.Dedupe, mark{})
			}
		}
	}},
	{"set leaves the hold", "set/", func(s *broken) {
		var held bool
		askedOf(s, func(l *lane, r *session.Amend) { held = l.slot[r.Ticket] != nil && l.slot[r.Ticket].Held })
		answeredOf(s, func(l *lane, r *session.Amend, _ *session.Amended) {
			if e := l.slot[r.Ticket]; e != nil {
				e.Held = held
			}
		})
	}},
	{"stop leaves entries open", "stop/holds", func(s *broken) {
		open := map[int64]time.Time{}
		askedOf(s, func(l *lane, _ *session.Stop) {
			for t, e := range l.slot {
				open[t] = e.Open
			}
		})
		answeredOf(s, func(l *lane, _ *session.Stop, _ *session.Stopped) {
			for t, e := range l.slot {
				e.Open = open[t]
			}
		})
	}},
	{"stop acts on whatever turn is open", "stop/only", func(s *broken) {
		askedOf(s, func(l *lane, r *session.Stop) { r.Only = 0 })
	}},
	{"a stop that keeps holds all the same", "stop/one that keeps", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Stop) { r.Keep = false })
	}},
	{"stop acts twice", "stop/the same again", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Stop) { r.Dedupe = "" })
	}},
	{"stop outlives its turn", "end/what belongs", func(s *broken) {
		answeredOf(s, func(l *lane, r *leased, _ *session.Committed) {
			if r.commit.End {
				l.Stop = l.Turns
			}
		})
	}},
	{"F32 new does not fence", "reset/F32", func(s *broken) {
		var was session.Lane
		askedOf(s, func(l *lane, _ *session.Reset) { was = l.Lane })
		answeredOf(s, func(l *lane, _ *session.Reset, _ *session.Lane) {
			if was.Exists {
				l.Epoch, l.Nonce, l.Until = was.Epoch, was.Nonce, was.Until
			}
		})
	}},
	{"new runs twice", "cell/reset/", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Reset) { r.Dedupe = "" })
	}},
	{"new throws old rows away", "reset/F32", func(s *broken) {
		answeredOf(s, func(l *lane, _ *session.Reset, _ *session.Lane) { clear(l.rows) })
	}},
	{"a command runs twice", "cell/post/", func(s *broken) {
		askedOf(s, func(_ *lane, r *session.Post) { r.Dedupe = "" })
	}},
	{"F27 the lease is dropped with work left", "end/F27", func(s *broken) {
		answeredOf(s, func(l *lane, _ *leased, c *session.Committed) {
			if c.More {
				l.Nonce, l.Until = "", time.Time{}
			}
		})
	}},
	{"a running job does not keep the lease", "end/a running job", func(s *broken) {
		answeredOf(s, func(l *lane, r *leased, c *session.Committed) {
			if r.commit.End && !c.More {
				l.Nonce, l.Until = "", time.Time{}
			}
		})
	}},
	{"final fates move", "fates/a final state", func(s *broken) {
		askedOf(s, func(l *lane, r *settling) {
			for _, set := range r.sets {
				if f := l.fate(set.Ticket); f != nil && f.State.Final() {
					f.State = session.FateRunning
				}
			}
		})
	}},
	{"what failed is not taken again", "fates/a later turn", func(s *broken) {
		var was []session.Fate
		askedOf(s, func(l *lane, _ *session.Begin) { was = slices.Clone(l.fates) })
		answeredOf(s, func(l *lane, _ *session.Begin, _ *session.Begun) {
			for _, f := range was {
				if g := l.fate(f.Ticket); g != nil && f.State.Final() {
					*g = f
				}
			}
		})
	}},
	{"a late settle moves a fate back", "fates/a settle", func(s *broken) {
		askedOf(s, func(l *lane, r *settling) {
			for _, set := range r.sets {
				if f := l.fate(set.Ticket); f != nil && f.State.Stage() > set.State.Stage() && !f.State.Final() {
					f.State = session.FateAccepted
				}
			}
		})
	}},
	{"a settle releases what is held", "fates/a settle", func(s *broken) {
		askedOf(s, func(l *lane, r *settling) {
			for _, set := range r.sets {
				if f := l.fate(set.Ticket); f != nil && f.State == session.FateHeld {
					f.State = session.FateQueued
				}
			}
		})
	}},
	{"waited is forgotten", "fates/waited", func(s *broken) {
		answeredOf(s, func(l *lane, r *settling, _ *any) {
			for _, set := range r.sets {
				if f := l.fate(set.Ticket); f != nil {
					f.Waited = f.State.Waits()
				}
			}
		})
	}},
	{"I9 an unknown part is sent blindly", "outbox/F7", func(s *broken) {
		answeredOf(s, func(_ *lane, _ *taking, a *taken) {
			if a.ok {
				a.part.State = session.PartSending
			}
		})
	}},
	{"a part that is still being sent is taken over", "outbox/F7 one", func(s *broken) {
		askedOf(s, func(l *lane, r *taking) {
			if len(l.out) > 0 && l.out[0].State == session.PartSending && l.outOwner != r.nonce {
				l.out[0].Since = l.outGiven.Since.Add(-takeover)
			}
		})
	}},
	{"what is kept for a sender is given to all", "outbox/the rest", func(s *broken) {
		askedOf(s, func(l *lane, r *taking) {
			if len(l.out) > 0 && l.out[0].State == session.PartPlanned {
				l.outOwner = r.nonce
			}
		})
	}},
	{"the sender is not given its part again", "outbox/F9", func(s *broken) {
		held := false
		askedOf(s, func(l *lane, r *taking) {
			held = len(l.out) > 0 && l.out[0].State == session.PartSending && l.outOwner == r.nonce
		})
		answeredOf(s, func(_ *lane, _ *taking, a *taken) { a.ok = a.ok && !held })
	}},
	{"every part is said to be alone", "outbox/F6", func(s *broken) {
		answeredOf(s, func(_ *lane, _ *taking, a *taken) { a.part.Alone = a.ok })
	}},
	{"a part is taken twice", "outbox/sends in order", func(s *broken) {
		askedOf(s, func(l *lane, _ *taking) {
			if len(l.out) > 0 && l.out[0].State == session.PartSending {
				l.out[0].State = session.PartPlanned
			}
		})
	}},
	{"delete forgets what it dropped", "delete/", func(s *broken) {
		askedOf(s, func(l *lane, _ *deleting) {
			if !l.leased(s.clock()) {
				s.stats.Dropped -= int64(len(l.slot))
			}
		})
	}},
	{"expire takes what was touched since", "expire/", func(s *broken) {
		askedOf(s, func(_ *lane, r *expiring) { r.idle = 0 })
	}},
	{"expire takes what is to be sent", "expire/", func(s *broken) {
		askedOf(s, func(l *lane, _ *expiring) {
			if l != nil {
				l.out = nil
			}
		})
	}},
}
