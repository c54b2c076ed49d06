package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// fleetEvents are what a schedule with several replicas is drawn from: what
// people do, and what becomes of the processes and of their ways to the store.
var fleetEvents = []string{
	"message", "message", "other", "edit", "drop", "steer", "steer", "queue", "interrupt", "stop", "press", "btw", "retry", "new", "twice", "error",
	"kill", "term", "cut", "deaf", "slow", "freeze", "down", "full", "skew", "everywhere", "flood", "burst", "grant",
}

// A fleet is two or three processes over one store (issue 4). Whatever people do
// comes to one of them, or to several.
type fleet struct {
	*schedule
	rest    map[int]int     // place → events until somebody starts it again
	stopped bool            // a /stop was pressed
	granted map[string]bool // buttons that an admin pressed

	mu     sync.Mutex
	ending int // commits of an end that are under way
}

// TestFleet plays schedules of messages, faults, crashes and partitions with
// several replicas, and holds each against the invariants. It prints what was
// reached, also of the fault table, and fails on what never was.
func TestFleet(t *testing.T) {
	hit := newReached()
	if playSeeds(t, hit, newFleet) {
		report(t, "phase × event", hit.phases, wantPhases(fleetEvents))
		report(t, "failpoint × fault", hit.faults, wantFaults("reserve", "spent", "grant"))
		report(t, "outcome", hit.outcomes, outcomes)
		report(t, "fault table", hit.rows, fleetRows)
	}
}

// fleetRows are the rows of the fault table (testdata/FAULTS.md) that happen to
// processes and to the store. The others are of a platform's wire, of one
// server's settings, or of its files.
var fleetRows = []string{
	"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F13", "F14", "F15", "F16", "F26", "F27", "F28", "F29", "F30",
	"F31", "F32", "F33", "F34", "F36", "F38", "F39", "F43", "F44",
}

func newFleet(t testing.TB, seed uint64, hit *reached) *schedule {
	s := newSchedule(t, seed, hit)
	w := s.w
	w.conf.replicas = 2 + s.rng.IntN(2)
	if s.rng.IntN(6) == 0 { // some requests each
		w.conf.spend = session.Spend{Unit: session.UnitTokens, Turn: 2000 + s.rng.Int64N(5000), Day: 10000 + s.rng.Int64N(40000)}
	}
	f := &fleet{schedule: s, rest: map[int]int{}, granted: map[string]bool{}}
	w.bus = newBus(func() bool { return s.chance(5) })
	w.struck = f.struck
	s.fleet = f
	return s
}

// chance is true once in n. It is asked from many goroutines.
func (s *schedule) chance(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modelRng.IntN(n) == 0
}

func (f *fleet) row(name string) { f.hit.add(f.hit.rows, name) }

// living are the processes that take what is sent to them.
func (f *fleet) living() []*process {
	return slices.DeleteFunc(slices.Clone(f.w.procs), func(p *process) bool { return p.isDead() || p.asked })
}

// holder is the process that runs the session's turn, nil if none does.
func (f *fleet) holder() *process {
	l, err := f.w.store.Load(context.Background(), room)
	if err != nil || l.Turn == 0 {
		return nil
	}
	for _, p := range f.w.procs {
		if p.nonce == l.Nonce && !p.isDead() {
			return p
		}
	}
	return nil
}

// some is the holder, mostly: what happens to the others tells less.
func (f *fleet) some() *process {
	if p := f.holder(); p != nil && f.rng.IntN(4) > 0 {
		return p
	}
	if up := f.living(); len(up) > 0 {
		return up[f.rng.IntN(len(up))]
	}
	return nil
}

// aims are the points that hardly anything leads to but these events: a plan drawn
// among all points meets them too seldom to be sure that it ever does.
var aims = map[string][]string{
	"press": {"amend.set"}, "new": {"reset"}, "edit": {"amend.edit"}, "message": {"commit.join"}, "term": {"commit.drain", "commit.drain", "release"}, "grant": {"grant"},
}

// aim plans a fault, now and then, for what an event leads to.
func (f *fleet) aim(kind string) {
	if points := aims[kind]; points != nil && (kind == "term" || f.rng.IntN(3) == 0) {
		f.strikeAt(points[f.rng.IntN(len(points))])
	}
}

// event does what only a fleet knows.
func (f *fleet) event(kind string) {
	w := f.w
	d := 500*time.Millisecond + time.Duration(f.rng.Int64N(int64(longest-500*time.Millisecond)))
	links := map[string]linkKind{"cut": linkCut, "deaf": linkDeaf, "slow": linkSlow, "freeze": linkFrozen}
	switch kind {
	case "kill":
		if p := f.some(); p != nil {
			w.logf("gateway: kill%s", p.at())
			f.died(p, "", storetest.Before)
			p.crash()
		}
	case "term":
		if p := f.some(); p != nil {
			if p == f.holder() {
				f.row("F33")
			}
			w.logf("gateway: term%s", p.at())
			p.asked = true
			p.run()
		}
	case "cut", "deaf", "slow", "freeze":
		p := f.some()
		if p == nil {
			return
		}
		if p == f.holder() && d > w.conf.ttl {
			f.row(map[string]string{"cut": "F15", "deaf": "F26", "slow": "F15", "freeze": "F13"}[kind])
		}
		w.logf("gateway: %s%s for %s", kind, p.at(), d)
		w.breaks++
		p.link.set(links[kind], d)
	case "down":
		f.row("F16")
		w.breaks++
		for _, p := range w.procs {
			p.link.set(linkCut, d)
		}
	case "full":
		f.row("F39")
		w.bus.mu.Lock()
		w.bus.full = time.Now().Add(d)
		w.bus.mu.Unlock()
	case "skew":
		f.row("F38")
		hours := []time.Duration{0, 2 * time.Second, 5 * time.Minute, time.Hour}
		w.mu.Lock()
		w.jumps = append(w.jumps, time.Now())
		w.mu.Unlock()
		w.breaks++
		w.skew.Store(int64(hours[f.rng.IntN(len(hours))]))
	case "everywhere":
		f.everywhere()
	case "flood":
		f.row("F43")
		w.plat.mu.Lock()
		for range 1 + f.rng.IntN(3) {
			w.plat.next = append(w.plat.next, []sendFault{sendFlood, sendLost, sendDown, sendSlow}[f.rng.IntN(4)])
		}
		w.plat.mu.Unlock()
	case "burst":
		f.burst()
	case "grant":
		f.letGoOn()
	default:
		panic(kind)
	}
}

// everywhere delivers one message to all at once (F10).
func (f *fleet) everywhere() {
	m := f.message("alice", fmt.Sprintf("text %d", f.n+1))
	f.ids = append(f.ids, m.ID)
	var wg sync.WaitGroup
	for _, p := range f.living() {
		wg.Go(func() {
			if f.hand(p, m) == nil {
				f.schedule.mu.Lock()
				defer f.schedule.mu.Unlock()
				f.accepted(m)
			}
		})
	}
	wg.Wait()
	f.row("F10")
	f.deliver(m)
}

// burst writes more than a session takes (F44).
func (f *fleet) burst() {
	if f.holder() == nil {
		return
	}
	for range session.SlotCap + 8 {
		f.deliver(f.message("alice", fmt.Sprintf("/queue text %d", f.n+1)))
	}
	if st, err := f.w.store.Stats(context.Background()); err == nil && st.Full > 0 {
		f.row("F44")
	}
	if f.rng.IntN(2) == 0 { // else they take hours
		f.jumped = true
		f.deliver(f.message("alice", "/stop all"))
	}
}

// letGoOn has an admin press the newest button that lets a budget go on; false: there
// is none that was not pressed. A few times somebody else presses it, for nothing.
func (f *fleet) letGoOn() bool {
	f.w.plat.mu.Lock()
	var data string
	for _, s := range f.w.plat.sent {
		for _, b := range s.buttons {
			if strings.HasPrefix(b.Data, "more:") && !f.granted[b.Data] {
				data = b.Data
			}
		}
	}
	f.w.plat.mu.Unlock()
	if data == "" {
		return false
	}
	if f.rng.IntN(4) == 0 {
		f.press("alice", data)
	}
	f.granted[data] = true
	f.press("root", data)
	return true
}

func (f *fleet) press(who, data string) {
	m := f.message(who, "")
	m.Kind, m.Button = session.KindPress, data
	f.deliver(m)
}

// letAllGoOn lets every turn that waits for a budget end.
func (f *fleet) letAllGoOn() {
	for range 1000 {
		l, err := f.w.store.Load(context.Background(), room)
		if err != nil {
			f.w.t.Errorf("load: %v", err)
			return
		}
		idle := l.Turn == 0 && !slices.ContainsFunc(l.Slot, func(e session.Entry) bool { return !e.Held })
		if !f.letGoOn() && idle {
			return
		}
		time.Sleep(10 * time.Second)
	}
}

// patience is how long a platform waits for an answer before it tries another
// process.
const patience = 3 * time.Second

// hand gives one process a message, as a webhook does.
func (f *fleet) hand(p *process, m session.Message) error {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	return p.hub.Deliver(ctx, m)
}

// deliver hands a message to one replica after another until it is accepted.
func (f *fleet) deliver(m session.Message) {
	f.about(m)
	tries := 0
	for range 300 {
		f.bury()
		up := f.living()
		if len(up) == 0 {
			f.w.missed = append(f.w.missed, m)
			return
		}
		p := up[f.rng.IntN(len(up))]
		if tries++; tries > 1 {
			f.row("F11")
		}
		if f.hand(p, m) == nil {
			f.accepted(m)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.w.t.Errorf("message %s was refused 300 times", m.ID)
}

// about counts the rows of the table that a message comes to.
func (f *fleet) about(m session.Message) {
	f.mu.Lock()
	ending := f.ending
	f.mu.Unlock()
	l, err := f.w.store.Load(context.Background(), room)
	if err != nil {
		f.w.t.Errorf("load: %v", err)
		return
	}
	steers := slices.ContainsFunc(l.Slot, func(e session.Entry) bool { return e.Want == steer.Steer && e.Turn == l.Turn && l.Turn != 0 })
	text := m.Text
	switch {
	case text == "/stop" || text == "stop" || text == "/stop all":
		f.stopped = true
	case ending > 0:
		f.row("F27")
	case l.Turn == 0 && f.stopped && isVerb(text):
		f.row("F28")
	case steers && (m.Kind == session.KindEdit || m.Kind == session.KindDelete || text == "/cancel"):
		f.row("F29")
	case len(text) > 9 && text[:9] == "/interrup" && f.w.phase() == steer.PhaseTools:
		f.row("F30")
	case text == "/new" && l.Turn != 0:
		f.row("F32")
	}
}

// struck hears of the calls of every process, and of their faults.
func (f *fleet) struck(p *process, point string, when storetest.When, fault storetest.Fault) {
	if point == "commit.end" {
		f.mu.Lock()
		if f.ending++; when == storetest.After {
			f.ending -= 2
		}
		f.mu.Unlock()
	}
	switch {
	case fault == storetest.Crash:
		f.died(p, point, when)
	case fault == storetest.LostReply && point == "accept":
		f.row("F8")
	case fault == storetest.LostReply && len(point) > 6 && point[:6] == "commit":
		f.row("F9")
	}
}

// died counts the rows of the table that a death is.
func (f *fleet) died(p *process, point string, when storetest.When) {
	f.w.model.mu.Lock()
	asks := f.w.model.outBy[p] > 0
	f.w.model.mu.Unlock()
	f.w.box.mu.Lock()
	runs := f.w.box.by[p] > 0
	f.w.box.mu.Unlock()
	before := when == storetest.Before
	for row, hit := range map[string]bool{
		"F1": asks, "F2": runs, "F3": point == "commit.tool" && before, "F4": point == "commit.drain" && before || point == "commit.tool" && before,
		"F5": (point == "commit.drain" || point == "commit.tool") && !before, "F6": point == "commit.end" && !before,
		"F7": point == "outdone" && before, "F34": p.asked,
	} {
		if hit {
			f.row(row)
		}
	}
}

// bury sees to processes that a fault has killed or that have stopped.
func (f *fleet) bury() {
	for _, p := range f.w.procs {
		if p.isDead() {
			continue
		}
		select {
		case <-p.faulty.Crashed():
			p.crash()
			continue
		default:
		}
		select {
		case <-p.gone:
			p.stop()
		default:
		}
	}
}

// alive starts processes again that died a while ago; one that is stopping may
// be killed before it is done (F34).
func (f *fleet) alive() {
	f.bury()
	if l, err := f.w.store.Load(context.Background(), room); err == nil && l.Attempts >= 3 {
		f.row("F36")
	}
	for place, p := range f.w.procs {
		if !p.isDead() {
			if p.asked && f.rng.IntN(6) == 0 {
				f.died(p, "", storetest.Before)
				p.crash()
			}
			continue
		}
		if f.rest[place]--; f.rest[place] > 0 {
			continue
		}
		f.w.procs[place] = f.w.spawn(place)
		f.rest[place] = 1 + f.rng.IntN(5)
	}
	if up := f.living(); len(up) > 0 {
		missed := f.w.missed
		f.w.missed = nil
		for _, m := range missed {
			f.deliver(m)
		}
	}
	f.w.bus.mu.Lock()
	lost, held := f.w.bus.lost, f.w.bus.held
	f.w.bus.lost, f.w.bus.held = 0, 0
	f.w.bus.mu.Unlock()
	if lost > 0 {
		f.row("F31")
	}
	if held > 0 {
		f.row("F14")
	}
}

// heal ends every fault that lasts.
func (f *fleet) heal() {
	for place, p := range f.w.procs {
		p.link.set(linkWhole, 0)
		f.rest[place] = 0
	}
	f.w.bus.mu.Lock()
	f.w.bus.full = time.Time{}
	f.w.bus.mu.Unlock()
	f.w.plat.mu.Lock()
	f.w.plat.next = nil
	f.w.plat.mu.Unlock()
}
