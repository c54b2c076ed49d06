package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// grid says what each operation answers in each state of a lane. An operation
// that is refused writes nothing; one that is done is asked a second time with
// the same OpID or Dedupe, must give the same answer, and writes nothing then.
//
//	ok      done                  missed  done: there was no such entry
//	dup     seen before           full    the slot is full
//	stale, fenced, held, gone     the errors
//	1/2     stop: turn 1 stopped, 2 entries held or dropped
//	g2      reset: now generation 2
//
// begin takes the first entry that waits, if any; begin.old takes it by an
// earlier version; edit.old edits an earlier version.
const grid = `
state     accept join   begin begin.old claim renew  commit commit.old release edit   edit.old drop   set    stop stopall reset post delete due
absent    ok     ok     stale stale     gone  fenced fenced fenced     fenced  missed missed   missed missed 0/0  0/0     g2    ok   ok     no
idle      ok     ok     ok    ok        ok    fenced fenced fenced     fenced  missed missed   missed missed 0/0  0/0     g2    ok   ok     no
waiting   ok     ok     ok    stale     ok    fenced fenced fenced     fenced  ok     stale    ok     ok     0/1  0/1     g2    ok   ok     yes
open      ok     joined ok    stale     ok    fenced fenced fenced     fenced  ok     stale    ok     ok     0/1  0/1     g2    ok   ok     no
waited    ok     ok     ok    stale     ok    fenced fenced fenced     fenced  ok     stale    ok     ok     0/1  0/1     g2    ok   ok     yes
held      ok     ok     ok    ok        ok    fenced fenced fenced     fenced  ok     stale    ok     ok     0/0  0/1     g2    ok   ok     no
mine      ok     ok     stale stale     ok    ok     ok     stale      ok      ok     stale    ok     ok     1/1  1/1     g2    ok   held   no
theirs    ok     ok     held  held      held  fenced fenced fenced     fenced  ok     stale    ok     ok     1/1  1/1     g2    ok   held   no
expired   ok     ok     stale stale     ok    fenced fenced fenced     fenced  ok     stale    ok     ok     1/1  1/1     g2    ok   ok     yes
lapsed    ok     ok     stale stale     ok    ok     ok     stale      ok      ok     stale    ok     ok     1/1  1/1     g2    ok   ok     yes
taken     ok     ok     held  held      held  fenced fenced fenced     fenced  ok     stale    ok     ok     1/1  1/1     g2    ok   held   no
released  ok     ok     stale stale     ok    fenced fenced fenced     fenced  ok     stale    ok     ok     1/1  1/1     g2    ok   ok     yes
stopped   ok     ok     stale stale     ok    ok     ok     stale      ok      ok     stale    ok     ok     1/0  1/1     g2    ok   held   no
full      full   full   stale stale     ok    ok     ok     stale      ok      ok     stale    ok     ok     1/32 1/32    g2    ok   held   no
reset     ok     ok     ok    ok        ok    fenced fenced fenced     fenced  ok     stale    ok     ok     0/0  0/1     g3    ok   ok     no
ended     ok     ok     ok    ok        ok    fenced fenced fenced     fenced  missed missed   missed missed 0/0  0/0     g2    ok   ok     no
kept      ok     ok     ok    stale     ok    ok     stale  stale      ok      ok     stale    ok     ok     0/1  0/1     g2    ok   held   no
`

// A scene is a lane brought into a state: the lease that me has or had, and an
// entry of the slot.
type scene struct {
	lease  session.Lease
	ticket int64
}

// scenes bring a fresh lane into each state of the grid.
var scenes = map[string]func(e *env) scene{
	"absent": func(e *env) scene { return scene{lease: e.forged(), ticket: 1} },
	"idle": func(e *env) scene { // it exists, nothing else
		_, err := e.st.Post(e.ctx, session.Post{Key: e.key, Dedupe: e.id("busy"), Prefs: []byte(`{"mode":"queue"}`)})
		e.must(err, "post")
		return scene{lease: e.forged(), ticket: 1}
	},
	"waiting": func(e *env) scene { return scene{lease: e.forged(), ticket: e.put()} },
	"open":    func(e *env) scene { return scene{lease: e.forged(), ticket: e.put(opens("g", time.Minute))} },
	"waited": func(e *env) scene { // an open entry whose time came
		t := e.put(opens("g", time.Second))
		e.clk.step(time.Second)
		return scene{lease: e.forged(), ticket: t}
	},
	"held": func(e *env) scene {
		t := e.put()
		e.stop()
		return scene{lease: e.forged(), ticket: t}
	},
	"mine":   func(e *env) scene { return scene{lease: e.turn(), ticket: e.put()} },
	"theirs": func(e *env) scene { return e.theirs() },
	"expired": func(e *env) scene {
		s := e.theirs()
		e.clk.step(ttl + time.Millisecond)
		return s
	},
	"lapsed": func(e *env) scene { // my lease ran out, nobody took over
		s := scene{lease: e.turn(), ticket: e.put()}
		e.clk.step(ttl + time.Millisecond)
		return s
	},
	"taken": func(e *env) scene { // another took over
		s := scene{lease: e.turn(), ticket: e.put()}
		e.clk.step(ttl + time.Millisecond)
		e.claim(other)
		return s
	},
	"released": func(e *env) scene {
		s := scene{lease: e.turn(), ticket: e.put()}
		e.must(e.st.Release(e.ctx, s.lease), "release")
		return s
	},
	"stopped": func(e *env) scene {
		s := scene{lease: e.turn(), ticket: e.put()}
		e.stop()
		return s
	},
	"full": func(e *env) scene {
		s := scene{lease: e.turn(), ticket: e.put()}
		for range session.SlotCap - 1 {
			e.put()
		}
		return s
	},
	"reset": func(e *env) scene {
		s := scene{lease: e.turn(), ticket: e.put()}
		e.reset()
		return s
	},
	"ended": func(e *env) scene {
		l := e.turn()
		e.end(l)
		return scene{lease: l, ticket: 1}
	},
	"kept": func(e *env) scene { // the turn ended, work waits, the lease is kept
		s := scene{lease: e.turn(), ticket: e.put()}
		e.end(s.lease)
		return s
	},
}

// forged is a lease that nobody gave.
func (e *env) forged() session.Lease {
	return session.Lease{Key: e.key, Epoch: 1, Nonce: me, TTL: ttl}
}

// theirs opens a turn of other; me holds its epoch and not its nonce (F20).
func (e *env) theirs() scene {
	l := e.begin(other, e.put()).Lease
	l.Nonce = me
	return scene{lease: l, ticket: e.put()}
}

// An asked is one request that can be made again: its word in the grid and
// the parts of its answer that a repeat must give again.
type asked func() (word string, answer any, err error)

// asking makes the request of each column of the grid.
var asking = map[string]func(e *env, s scene) asked{
	"accept": func(e *env, _ scene) asked { return e.askAccept() },
	"join":   func(e *env, _ scene) asked { return e.askAccept(joins("g", time.Minute)) },
	"begin": func(e *env, _ scene) asked {
		return e.askBegin(e.beginning(me, e.first()...))
	},
	"begin.old": func(e *env, _ scene) asked {
		r := e.beginning(me, e.first()...)
		for i := range r.Take {
			r.Take[i].Version--
		}
		return e.askBegin(r)
	},
	"claim": func(e *env, _ scene) asked {
		return func() (string, any, error) {
			b, err := e.st.Claim(e.ctx, e.key, me, ttl)
			return "ok", b, err
		}
	},
	"renew": func(e *env, s scene) asked {
		return func() (string, any, error) {
			f, err := e.st.Renew(e.ctx, s.lease)
			return "ok", f, err
		}
	},
	"commit": func(e *env, s scene) asked { return e.askCommit(s, e.step(toolRow("c"))) },
	"commit.old": func(e *env, s scene) asked {
		c := e.step(toolRow("c"))
		c.Seq--
		return e.askCommit(s, c)
	},
	"release": func(e *env, s scene) asked {
		return func() (string, any, error) { return "ok", nil, e.st.Release(e.ctx, s.lease) }
	},
	"edit": func(e *env, s scene) asked { return e.askAmend(s, session.AmendEdit, 0) },
	"edit.old": func(e *env, s scene) asked {
		version := int64(9) // none has it
		return e.askAmend(s, session.AmendEdit, version)
	},
	"drop":    func(e *env, s scene) asked { return e.askAmend(s, session.AmendDrop, 0) },
	"set":     func(e *env, s scene) asked { return e.askAmend(s, session.AmendSet, 0) },
	"stop":    func(e *env, _ scene) asked { return e.askStop(false) },
	"stopall": func(e *env, _ scene) asked { return e.askStop(true) },
	"reset": func(e *env, _ scene) asked {
		r := session.Reset{Key: e.key, Dedupe: e.id("new"), Outs: e.parts("r", 1)}
		return func() (string, any, error) {
			l, err := e.st.Reset(e.ctx, r)
			return fmt.Sprintf("g%d", l.Gen), l, err
		}
	},
	"post": func(e *env, _ scene) asked {
		r := session.Post{Key: e.key, Dedupe: e.id("title"), Title: "a title", Outs: e.parts("p", 1)}
		return func() (string, any, error) {
			p, err := e.st.Post(e.ctx, r)
			return "ok", p.Lane, err
		}
	},
	"delete": func(e *env, _ scene) asked {
		return func() (string, any, error) { return "ok", nil, e.st.Delete(e.ctx, e.key) }
	},
	"due": func(e *env, _ scene) asked {
		return func() (string, any, error) {
			keys, err := e.st.Due(e.ctx, 0)
			if slices.Contains(keys, e.key) {
				return "yes", keys, err
			}
			return "no", keys, err
		}
	},
}

// first is the lowest ticket that waits, or nothing.
func (e *env) first() []int64 {
	for _, en := range e.lane().Slot {
		if !en.Held {
			return []int64{en.Ticket}
		}
	}
	return nil
}

func (e *env) askAccept(change ...func(*session.Accept)) asked {
	id := e.id("m")
	r := session.Accept{
		Key: e.key, Dedupe: id, Author: ann, Msg: session.MessageID(id), Data: text("hello"),
		Fate: session.FateQueued, Full: e.parts("full", 1),
	}
	for _, f := range change {
		f(&r)
	}
	words := []string{"ok", "dup", "full", "joined"}
	return func() (string, any, error) {
		a, err := e.st.Accept(e.ctx, r)
		return words[a.Outcome], a.Ticket, err
	}
}

func (e *env) askBegin(r session.Begin) asked {
	return func() (string, any, error) {
		b, err := e.st.Begin(e.ctx, r)
		return "ok", b, err
	}
}

func (e *env) askCommit(s scene, c session.Commit) asked {
	c.Outs = e.parts("c", 1)
	return func() (string, any, error) {
		r, err := e.st.Commit(e.ctx, s.lease, c)
		return "ok", r, err
	}
}

func (e *env) askAmend(s scene, kind session.AmendKind, version int64) asked {
	r := session.Amend{
		Key: e.key, Dedupe: e.id("e"), Kind: kind, Ticket: s.ticket, Version: version, Data: text("edited"),
		Want: steer.Queue, Fate: session.FateQueued, Outs: e.parts("a", 1),
	}
	return func() (string, any, error) {
		a, err := e.st.Amend(e.ctx, r)
		if !a.Done {
			return "missed", a.Done, err
		}
		return "ok", a.Done, err
	}
}

func (e *env) askStop(drop bool) asked {
	r := session.Stop{Key: e.key, Dedupe: e.id("stop"), Drop: drop, Outs: e.parts("s", 1)}
	return func() (string, any, error) {
		s, err := e.st.Stop(e.ctx, r)
		return fmt.Sprintf("%d/%d", s.Turn, len(s.Held)), nil, err
	}
}

// parts makes n parts to be sent.
func (e *env) parts(name string, n int) []session.PartNew {
	var p []session.PartNew
	for i := range n {
		p = append(p, session.PartNew{ID: e.id(fmt.Sprintf("%s%d", name, i)), Kind: session.PartReply, Data: text(name)})
	}
	return p
}

// cellRules is one rule for each cell of the grid.
func cellRules() []rule {
	var rules []rule
	lines := strings.Split(strings.TrimSpace(grid), "\n")
	ops := strings.Fields(lines[0])[1:]
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		state := words[0]
		for i, op := range ops {
			want := words[1+i]
			rules = append(rules, rule{"cell/" + op + "/" + state, func(e *env) { e.cell(state, op, want) }})
		}
	}
	return rules
}

var refusals = map[string]error{
	"stale": session.ErrStale, "fenced": session.ErrFenced, "held": session.ErrHeld, "gone": session.ErrGone,
}

// cell holds one cell of the grid.
func (e *env) cell(state, op, want string) {
	s := scenes[state](e)
	ask := asking[op](e, s)
	if err := refusals[want]; err != nil {
		e.unchanged("a refused "+op, func() {
			_, _, got := ask()
			e.want(got, err, op)
		})
		return
	}
	word, first, err := ask()
	e.must(err, op)
	if word != want {
		e.errorf("%s: got %s; want %s", op, word, want)
	}
	e.unchanged("a second "+op, func() {
		again, second, err := ask()
		switch {
		case op == "release": // without a lease there is nothing to give up
			e.want(err, session.ErrFenced, "second release")
			return
		case (op == "accept" || op == "join") && want != "dup":
			want = "dup"
		case (op == "stop" || op == "stopall"): // says Dup, and needs say no more
			want = again
		}
		e.must(err, "second "+op)
		if again != want {
			e.errorf("second %s: got %s; want %s", op, again, want)
		}
		e.equal(second, first, "answer of a second "+op)
	})
}
