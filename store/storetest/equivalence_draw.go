package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"coxswain/session"
	"coxswain/steer"
)

// A command is one drawn step. It names no id: what exists when its turn comes
// is looked up then, so that a stream stays meaningful while it shrinks.
type command struct {
	Op    string
	Lane  int  // 0 … 2
	Again bool // ask the last one of its kind again, or use an old dedupe key
	Wrong int  // 0 = ask rightly; else one of the things that can be wrong
	Mode  steer.Mode
	Pick  int // 0 … 3
	N     int // 0 … 3
	Bits  uint8
}

func (c command) bit(i int) bool { return c.Bits&(1<<i) != 0 }

// verbs resolve and ask each operation.
var verbs map[string]func(p *player, l *played, c command)

func init() { // a map literal would refer to itself through play
	verbs = map[string]func(p *player, l *played, c command){
		"accept": (*player).accept, "flood": (*player).flood, "begin": (*player).begin, "claim": (*player).claim,
		"renew": (*player).renew, "release": (*player).release, "commit": (*player).commit, "amend": (*player).amend,
		"stop": (*player).stop, "reset": (*player).reset, "post": (*player).post, "outtake": (*player).outTake,
		"outdone": (*player).outDone, "send": (*player).send, "settle": (*player).settle, "delete": (*player).remove, "expire": (*player).expire, "doc": (*player).doc,
		"meter": (*player).meter, "seat": (*player).seat, "read": (*player).read, "wait": (*player).wait,
	}
}

// often draws each operation as often as it is listed.
var often = func() []string {
	var ops []string
	for op, n := range map[string]int{
		"accept": 20, "flood": 1, "begin": 6, "claim": 5, "renew": 3, "release": 2, "commit": 34, "amend": 16, "stop": 5, "reset": 3,
		"post": 4, "outtake": 10, "outdone": 9, "settle": 2, "delete": 2, "expire": 4, "doc": 3, "meter": 12, "send": 3, "seat": 5, "read": 6, "wait": 9,
	} {
		ops = append(ops, slices.Repeat([]string{op}, n)...)
	}
	slices.Sort(ops)
	return ops
}()

// even draws 0 … n-1, each as often as another; rapid's own integers are mostly
// small, and streams of them open no turn. It shrinks to 0.
func even(t *rapid.T, n int) int {
	v := 0
	for range 8 {
		v *= 2
		if rapid.Bool().Draw(t, "bit") {
			v++
		}
	}
	return v * n >> 8
}

func drawCommand(t *rapid.T) command {
	c := command{
		Op:   often[even(t, len(often))],
		Lane: []int{0, 0, 0, 0, 1, 2}[even(t, 6)],
		Mode: []steer.Mode{steer.Queue, steer.Steer, steer.Steer, steer.Interrupt}[even(t, 4)],
		Pick: even(t, 4),
		N:    even(t, 4),
		Bits: uint8(even(t, 256)),
	}
	c.Again = even(t, 5) == 4
	if even(t, 5) == 4 {
		c.Wrong = 1 + even(t, 4)
	}
	return c
}

// drawStream draws some 50 commands, in slices of slices: rapid's slices are
// short, unless they must be long, and then they do not shrink.
func drawStream(t *rapid.T) []command {
	runs := rapid.SliceOf(rapid.SliceOf(rapid.Custom(drawCommand)))
	return slices.Concat(append(runs.Draw(t, "stream"), runs.Draw(t, "and then")...)...)
}

var nonces = []string{me, other}

// id gives an id that was not given before.
func (p *player) id(kind string) string {
	p.ids++
	return fmt.Sprintf("%s:%d", kind, p.ids)
}

// dedupe gives a new key, or an old one of those.
func (p *player) dedupe(c command, kind string, used *[]string) string {
	if c.Again && len(*used) > 0 {
		return (*used)[len(*used)-1-c.N%len(*used)]
	}
	*used = append(*used, p.id(kind))
	return (*used)[len(*used)-1]
}

func (p *player) parts(n int, turn int64) []session.PartNew {
	var parts []session.PartNew
	for range n {
		id := p.id("part")
		parts = append(parts, session.PartNew{ID: id, Kind: session.PartFinal, Turn: turn, Data: []byte(id)})
	}
	return parts
}

// lane is the lane as the model has it.
func (p *player) lane(l *played) session.Lane {
	lane, _ := p.model.Load(p.ctx, l.key)
	return lane
}

// lease is the lane's lease, or one that is wrong.
func (p *player) leaseOf(lane session.Lane, c command) session.Lease {
	l := session.Lease{Key: lane.Key, Epoch: lane.Epoch, Nonce: lane.Nonce, TTL: time.Duration(2+c.N) * time.Second}
	switch c.Wrong {
	case 1:
		l.Epoch--
	case 2:
		l.Epoch++
	case 3:
		l.Nonce = nonces[c.Pick%2]
	}
	return l
}

// waiting gives the entries that wait, from the lowest; with bit 7 the held
// ones too.
func (c command) entries(lane session.Lane) []session.Entry {
	return slices.DeleteFunc(slices.Clone(lane.Slot), func(e session.Entry) bool { return e.Held && !c.bit(7) })
}

// taken names the first n entries, the last one wrongly if so asked.
func (c command) taken(lane session.Lane, n int) []session.Take {
	var t []session.Take
	for i, e := range c.entries(lane) {
		if i < n {
			t = append(t, session.Take{Ticket: e.Ticket, Version: e.Version})
		}
	}
	if c.Wrong == 4 && len(t) > 0 {
		t[len(t)-1].Version++
	}
	return t
}

func (p *player) accept(l *played, c command) {
	lane := p.lane(l)
	id := p.id("msg")
	r := session.Accept{
		Key: l.key, Dedupe: p.dedupe(c, "m", &l.marks), Want: c.Mode, Turn: max(0, lane.Turn-int64(c.N/3)),
		Author: []session.UserID{ann, ann, ann, bob}[c.Pick], Msg: session.MessageID(id), Data: text(id),
		Fate: []session.FateState{session.FateQueued, session.FatePending, session.FateAccepted, session.FateQueued}[c.N], Full: p.parts(1, 0),
	}
	if c.bit(0) || c.bit(1) {
		r.Group = []string{"g", "g", "g", "h"}[c.N]
		r.Append = c.bit(1)
		if c.bit(2) || !r.Append {
			r.Open = time.Duration(1+c.Pick) * 700 * time.Millisecond
		}
	}
	if c.bit(3) && c.bit(4) {
		r.Title = id
	}
	if c.bit(5) && c.bit(6) && c.bit(7) {
		r.Data = []byte(strings.Repeat("x", session.EntryMaxBytes/2))
	}
	p.acceptOf(r)
}

func (p *player) acceptOf(r session.Accept) {
	a, refused := both(p, r, func(st session.Store) (session.Accepted, error) { return st.Accept(p.ctx, r) })
	if refused == "" {
		refused = []string{"ok", "dup", "full", "joined"}[a.Outcome]
	}
	p.note("accept", refused)
}

// flood fills the slot beyond its cap.
func (p *player) flood(l *played, c command) {
	for range session.SlotCap + 1 {
		id := p.id("m")
		p.acceptOf(session.Accept{Key: l.key, Dedupe: id, Want: c.Mode, Turn: int64(c.N%2) - 1, Author: ann, Msg: session.MessageID(id), Data: text(id), Fate: session.FateQueued})
	}
}

func (p *player) replayed() int64 {
	s, _ := p.model.Stats(p.ctx)
	return s.Replayed
}

func (p *player) begin(l *played, c command) {
	lane := p.lane(l)
	if !lane.Exists && c.Wrong == 0 {
		p.accept(l, c)
		return
	}
	before := p.replayed()
	r := l.begin
	if !c.Again || r.Op == "" {
		r = session.Begin{
			Op: session.OpID(p.id("op")), Key: l.key, Nonce: nonces[c.Pick%2], TTL: time.Duration(2+c.N) * time.Second, Gen: lane.Gen,
			Seq: lane.Seq, Owner: ann, Phase: steer.Phase(1 + c.Pick), Take: c.taken(lane, c.N), Rows: []session.Row{userRow(int64(p.ids))},
		}
		if lane.Nonce != "" && c.bit(0) {
			r.Nonce = lane.Nonce
		}
		if c.bit(1) {
			r.Rows = append([]session.Row{row(session.RowHead, p.ids)}, r.Rows...)
		}
		for _, t := range r.Take {
			r.Fates = append(r.Fates, session.FateSet{Ticket: t.Ticket, State: session.FateRunning})
		}
		if c.bit(4) { // what an earlier turn left, taken again
			r.Fates = append(r.Fates, session.FateSet{Ticket: 1 + int64(c.Pick), State: session.FateRunning})
		}
		for _, j := range lane.Jobs {
			if c.bit(2) && j.State != session.JobRunning {
				r.Jobs = append(r.Jobs, j.ID)
			}
		}
		if c.bit(3) {
			r.Outs = p.parts(1, lane.Turns+1)
		}
		switch c.Wrong {
		case 1:
			r.Gen++
		case 2:
			r.Seq++
		case 3:
			r.Jobs = append(r.Jobs, "unknown")
		}
	}
	l.begin, l.began = r, true
	_, word := both(p, r, func(st session.Store) (session.Begun, error) { return st.Begin(p.ctx, r) })
	if word == "" {
		word = "ok"
		if p.replayed() > before {
			word = "replay"
		}
	}
	p.note("begin", word)
}

func (p *player) claim(l *played, c command) {
	lane := p.lane(l)
	b, word := both(p, c, func(st session.Store) (session.Begun, error) {
		return st.Claim(p.ctx, l.key, nonces[c.Pick%2], time.Duration(2+c.N)*time.Second)
	})
	if word == "" {
		word = "ok"
		if b.Lease.Epoch == lane.Epoch {
			word = "again"
		}
	}
	p.note("claim", word)
}

func (p *player) renew(l *played, c command) {
	lease := p.leaseOf(p.lane(l), c)
	_, word := both(p, lease, func(st session.Store) (session.Flags, error) { return st.Renew(p.ctx, lease) })
	p.note("renew", okay(word))
}

func (p *player) release(l *played, c command) {
	lease := p.leaseOf(p.lane(l), c)
	_, word := both(p, lease, func(st session.Store) (any, error) { return nil, st.Release(p.ctx, lease) })
	p.note("release", okay(word))
}

// seat asks for the one seat, by either process.
func (p *player) seat(_ *played, c command) {
	key := session.SeatKey("drawn")
	lane, _ := p.model.Load(p.ctx, key)
	lane.Key = key
	lease, word, did := p.leaseOf(lane, c), "", "claimed"
	switch c.N {
	case 2:
		_, word = both(p, lease, func(st session.Store) (session.Flags, error) { return st.Renew(p.ctx, lease) })
		did = "renewed"
	case 3:
		_, word = both(p, lease, func(st session.Store) (any, error) { return nil, st.Release(p.ctx, lease) })
		did = "released"
	default:
		_, word = both(p, c, func(st session.Store) (session.Begun, error) {
			return st.Claim(p.ctx, key, nonces[c.Pick%2], time.Duration(2+c.Pick)*time.Second)
		})
	}
	if word == "" {
		word = did
	}
	p.note("seat", word)
	p.compare(key)
}

func okay(refused string) string {
	if refused == "" {
		return "ok"
	}
	return refused
}

// wait moves the clock: a little, past leases, once in a while past marks.
func (p *player) wait(_ *played, c command) {
	d := []time.Duration{time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 6 * time.Second}[c.Pick]
	if c.Wrong == 4 {
		d = MarkLife + time.Hour
	}
	p.clk.step(d)
}
