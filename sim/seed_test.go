package sim

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

var (
	seedCount = flag.Int("seeds", 400, "how many schedules TestSeeds plays")
	seedFirst = flag.Uint64("seed", 1, "the first of them")
)

// events are what a schedule is drawn from.
var events = []string{
	"message", "other", "edit", "drop", "steer", "queue", "interrupt", "stop", "press", "btw", "retry", "new", "twice",
	"crash", "restart", "error",
}

// reached counts what all schedules of a run came to.
type reached struct {
	mu       sync.Mutex
	phases   map[string]int // phase × event
	faults   map[string]int // failpoint × fault
	outcomes map[string]int
	rows     map[string]int // of the fault table
}

func newReached() *reached {
	return &reached{phases: map[string]int{}, faults: map[string]int{}, outcomes: map[string]int{}, rows: map[string]int{}}
}

func (r *reached) add(m map[string]int, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m[what]++
}

// A schedule is one seed's run.
type schedule struct {
	w     *world
	rng   *rand.Rand
	hit   *reached
	ids   []session.MessageID        // of alice's messages
	sent  map[session.MessageID]bool // accepted inputs: Deliver has returned nil
	edits map[session.MessageID]bool
	n     int

	mu       sync.Mutex
	modelRng *rand.Rand
	fault    *planned // armed, strikes once
	errs     int      // model failures left to give
	// jumped: something happened after which a later ticket may go first (I3).
	jumped bool
	fleet  *fleet // several processes; nil: one
}

// planned is a fault that waits for its point.
type planned struct {
	point string
	when  storetest.When
	fault storetest.Fault
}

// TestSeeds plays schedules of messages, faults and crashes and holds each one
// against the invariants I1-I9, I14 and the conservation law. It prints what
// was reached, and fails on what never was.
func TestSeeds(t *testing.T) {
	hit := newReached()
	if playSeeds(t, hit, newSchedule) {
		report(t, "phase × event", hit.phases, wantPhases(events))
		report(t, "failpoint × fault", hit.faults, wantFaults())
		report(t, "outcome", hit.outcomes, outcomes)
	}
}

// playSeeds plays the schedules the flags ask for, as many at once as there are
// cores: each is a bubble of its own. False means that some failed.
func playSeeds(t *testing.T, hit *reached, draw drawer) bool {
	var failed atomic.Int32
	next := atomic.Uint64{}
	next.Store(*seedFirst)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for failed.Load() < 3 {
				seed := next.Add(1) - 1
				if seed >= *seedFirst+uint64(*seedCount) {
					return
				}
				if bad, transcript := playSeed(t, seed, hit, draw); len(bad) > 0 {
					failed.Add(1)
					t.Errorf("seed %d:\n  %s\n%s", seed, strings.Join(bad, "\n  "), transcript)
				}
			}
		})
	}
	wg.Wait()
	return failed.Load() == 0
}

// A drawer makes the schedule of a seed.
type drawer func(t testing.TB, seed uint64, hit *reached) *schedule

// wantPhases are the cells every run must reach.
func wantPhases(events []string) []string {
	var want []string
	for _, p := range []steer.Phase{steer.PhaseIdle, steer.PhasePreparing, steer.PhaseModel, steer.PhaseShowing, steer.PhaseTools} {
		for _, e := range events {
			want = append(want, p.String()+" × "+e)
		}
	}
	return want
}

// unreachable are points that no schedule can reach.
var unreachable = map[string]string{
	"delete":       "sessions are deleted by operators only",
	"expire":       "the gateway's sweeper is not in the simulation",
	"reserve":      "nothing is limited but in fleets",
	"spent":        "nothing is limited but in fleets",
	"grant":        "nothing is limited but in fleets",
	"putdoc":       "grants are written by pairing only",
	"commit.state": "every step of the loop has rows or drains",
}

// wantFaults are the points every run must reach, each with every fault; but are
// those among the unreachable that it can.
func wantFaults(but ...string) []string {
	var want []string
	for _, p := range storetest.Points() {
		if unreachable[p] != "" && !slices.Contains(but, p) {
			continue
		}
		for _, f := range []storetest.Fault{storetest.Crash, storetest.LostReply, storetest.Pause(time.Second)} {
			want = append(want, p+" × "+f.String())
		}
	}
	return want
}

// enough is how many schedules must reach every cell; fewer are a smoke test.
const enough = 8000

func report(t *testing.T, what string, got map[string]int, want []string) {
	var b strings.Builder
	zero := 0
	keys := slices.Sorted(maps.Keys(got))
	for _, k := range want {
		if got[k] == 0 {
			zero++
			fmt.Fprintf(&b, "  never reached: %s\n", k)
		}
	}
	for _, k := range keys {
		fmt.Fprintf(&b, "  %s: %d\n", k, got[k])
	}
	t.Logf("%s\n%s", what, b.String())
	if zero > 0 && *seedCount >= enough {
		t.Errorf("%s: %d cells were never reached", what, zero)
	}
}

// playSeed runs one schedule in a bubble of its own and gives the violations
// and the conversation.
func playSeed(t *testing.T, seed uint64, hit *reached, draw drawer) (bad []string, transcript string) {
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := draw(t, seed, hit)
			bad = s.play()
			transcript = (&script{head: []string{fmt.Sprintf("# seed %d", seed)}}).render(s.w)
		})
	})
	return bad, transcript
}

func newSchedule(t testing.TB, seed uint64, hit *reached) *schedule {
	rng := rand.New(rand.NewPCG(seed, 42))
	c := defaults()
	c.mode = steer.Mode(rng.IntN(3))
	c.join = []time.Duration{0, time.Second}[rng.IntN(2)]
	c.skip = rng.IntN(3) > 0
	c.together = rng.IntN(5) == 0
	c.yield = []time.Duration{2 * time.Second, 5 * time.Second}[rng.IntN(2)]
	c.from = []string{"owner", "owner", "participants"}[rng.IntN(3)]
	c.onEnd = []string{"turn", "tell", "nothing"}[rng.IntN(3)]
	c.drain = []time.Duration{time.Second, 20 * time.Second}[rng.IntN(2)]
	w := newWorld(t, c)
	s := &schedule{
		w: w, rng: rng, hit: hit, sent: map[session.MessageID]bool{}, edits: map[session.MessageID]bool{},
		modelRng: rand.New(rand.NewPCG(seed, 7)),
	}
	w.model.rule = s.reply
	w.hook = s.strike
	return s
}

// reply is the model of a schedule: some steps with tools, then an answer.
func (s *schedule) reply(req request) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.modelRng
	rep := reply{first: time.Duration(r.IntN(1500)) * time.Millisecond}
	if s.errs > 0 {
		s.errs--
		kinds := []loop.ErrKind{loop.ErrAuth, loop.ErrNetwork, loop.ErrOverloaded}
		rep.err = &loop.ModelError{Kind: kinds[r.IntN(len(kinds))], Public: "The model failed.", Err: errScripted}
		if r.IntN(2) == 0 {
			rep.say, rep.talk = "half an answer", time.Second
		}
		return rep
	}
	leak := ""
	if r.IntN(8) == 0 {
		// A model that gives the key away, in words and in arguments (I8).
		leak = " " + req.system[strings.Index(req.system, "note key=")+len("note key="):][:27]
	}
	if !req.noTools && r.IntN(10) < 6 {
		for range 1 + r.IntN(3) {
			took := time.Duration(r.IntN(2500)) * time.Millisecond
			if r.IntN(6) == 0 {
				took = time.Duration(3+r.IntN(12)) * time.Second
			}
			rep.calls = append(rep.calls, scriptCall{tool: "shell", arg: fmt.Sprintf("job%d", r.IntN(1000)) + leak, took: took})
		}
		if r.IntN(4) == 0 {
			rep.say = "looking"
		}
		return rep
	}
	rep.say = "answer in several words" + leak
	rep.talk = time.Duration(r.IntN(2000)) * time.Millisecond
	return rep
}

// strike is the hook of the store.
func (s *schedule) strike(point string, when storetest.When) storetest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.fault
	if p == nil || p.point != point || p.when != when {
		return storetest.None
	}
	s.fault = nil
	s.hit.add(s.hit.faults, point+" × "+p.fault.String())
	s.w.logf("gateway: %s %s %s", p.fault, when, point)
	return p.fault
}

// play runs the schedule to its end and checks.
func (s *schedule) play() []string {
	w := s.w
	w.start()
	draw := events
	if s.fleet != nil {
		draw = fleetEvents
	}
	steps := 8 + s.rng.IntN(25)
	for range steps {
		time.Sleep(s.gap())
		if s.rng.IntN(2) == 0 {
			synctest.Wait()
		}
		s.arm()
		kind := draw[s.rng.IntN(len(draw))]
		if s.fleet != nil {
			s.fleet.aim(kind)
		}
		s.event(kind)
		s.alive()
	}
	s.mu.Lock()
	s.fault, s.errs = nil, 0
	s.mu.Unlock()
	s.settle()
	bad := append(check(w), storetest.Check(context.Background(), w.store, nil)...)
	bad = append(bad, s.accounted()...)
	for _, p := range w.procs {
		p.stop()
	}
	return bad
}

// settle lets everything end: held entries stay held.
func (s *schedule) settle() {
	for range 4 {
		if s.fleet != nil {
			s.fleet.heal()
		}
		s.alive()
		s.w.quiet()
		if s.fleet != nil {
			s.fleet.letAllGoOn()
		}
	}
}

func (s *schedule) gap() time.Duration {
	switch s.rng.IntN(4) {
	case 0:
		return time.Duration(s.rng.IntN(50)) * time.Millisecond
	case 1:
		return time.Duration(s.rng.IntN(700)) * time.Millisecond
	}
	return time.Duration(s.rng.IntN(4000)) * time.Millisecond
}

// arm plans a fault for the next time its point is passed.
func (s *schedule) arm() {
	if s.rng.IntN(3) > 0 {
		return
	}
	points := storetest.Points()
	if s.w.conf.spend.Turn > 0 && s.rng.IntN(2) == 0 { // few seeds have them
		points = []string{"reserve", "spent"}
	}
	s.strikeAt(points[s.rng.IntN(len(points))])
}

// strikeAt plans a fault for the next time a point is passed.
func (s *schedule) strikeAt(point string) {
	p := planned{point: point, when: storetest.When(s.rng.IntN(2))}
	switch s.rng.IntN(4) {
	case 0:
		p.fault = storetest.LostReply
	case 1:
		p.fault = storetest.Pause(time.Duration(1+s.rng.IntN(7)) * time.Second)
	case 2:
		p.fault = storetest.Down
	default:
		p.fault = storetest.Crash
	}
	s.mu.Lock()
	s.fault = &p
	s.mu.Unlock()
}

// alive restarts a process that a fault has killed; what the platform could
// not deliver comes again.
func (s *schedule) alive() {
	if s.fleet != nil {
		s.fleet.alive()
		return
	}
	w := s.w
	select {
	case <-w.faulty.Crashed():
		w.crash()
	default:
	}
	if !w.isDead() {
		return
	}
	w.restart()
	missed := w.missed
	w.missed = nil
	for _, m := range missed {
		s.deliver(m)
	}
}

// deliver hands a message in as a platform would; one that a dead process did
// not accept is kept for the next.
func (s *schedule) deliver(m session.Message) {
	if s.fleet != nil {
		s.fleet.deliver(m)
		return
	}
	w := s.w
	for range 200 {
		select {
		case <-w.faulty.Crashed():
			w.crash()
		default:
		}
		if w.isDead() {
			w.missed = append(w.missed, m)
			return
		}
		if err := w.hub.Deliver(context.Background(), m); err == nil {
			s.accepted(m)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Errorf("message %s was refused for 20 s", m.ID)
}

// accepted notes what must come to something.
func (s *schedule) accepted(m session.Message) {
	if m.Kind == session.KindText && !strings.HasPrefix(m.Text, "/") && m.Text != "stop" || isVerb(m.Text) {
		s.sent[m.ID] = true
	}
}

func isVerb(text string) bool {
	return strings.HasPrefix(text, "/steer ") || strings.HasPrefix(text, "/queue ") || strings.HasPrefix(text, "/interrupt ")
}

func (s *schedule) message(who, text string) session.Message {
	s.n++
	id := session.MessageID(fmt.Sprintf("#%d", s.n))
	return session.Message{
		Key: room, ID: id, From: session.Person{ID: session.UserID(who), Name: who}, Private: true, Addressed: true,
		Text: text, Dedupe: "m:room:" + string(id), Received: time.Now(), Sent: time.Now(),
	}
}

// event does one thing and counts in which phase.
func (s *schedule) event(kind string) {
	w := s.w
	phase := w.phase()
	s.hit.add(s.hit.phases, phase.String()+" × "+kind)
	text := fmt.Sprintf("text %d", s.n+1)
	switch kind {
	case "interrupt", "stop", "press", "new", "error":
		s.jumped = true
	}
	w.logf("\x00+%.3fs (%s) %s %s", time.Since(w.began).Seconds(), phase, kind, text)
	switch kind {
	case "message", "steer", "queue", "interrupt":
		if kind != "message" {
			text = "/" + kind + " " + text
		}
		m := s.message("alice", text)
		s.ids = append(s.ids, m.ID)
		s.deliver(m)
	case "other":
		s.deliver(s.message("bob", text))
	case "twice":
		m := s.message("alice", text)
		s.deliver(m)
		s.deliver(m)
	case "edit":
		if id, ok := s.recent(); ok {
			m := s.message("alice", text+" edited")
			m.Kind, m.ID = session.KindEdit, id
			s.edits[id] = true
			m.Dedupe = fmt.Sprintf("e:room:%s:%d", id, s.n)
			s.deliver(m)
		}
	case "drop":
		if id, ok := s.recent(); ok {
			m := s.message("alice", "/cancel")
			m.ReplyTo = id
			if s.rng.IntN(2) == 0 { // D1, D2
				m.Kind, m.ID, m.Text, m.Dedupe = session.KindDelete, id, "", "d:room:"+string(id)
			}
			s.deliver(m)
		}
	case "press":
		ticket := int64(max(1, s.n-s.rng.IntN(8)))
		// Mostly of what waits: by number alone a button hardly ever does anything.
		if l, err := w.store.Load(context.Background(), room); err == nil && len(l.Slot) > 0 && s.rng.IntN(4) > 0 {
			ticket = l.Slot[s.rng.IntN(len(l.Slot))].Ticket
		}
		m := s.message("alice", "")
		m.Kind = session.KindPress
		m.Button = fmt.Sprintf("%s:%d", []string{"now", "run", "drop", "queue"}[s.rng.IntN(4)], ticket)
		s.deliver(m)
	case "retry":
		m := s.message("alice", "/retry")
		if turn := s.rng.Int64N(8); turn > 0 {
			m.Kind, m.Text, m.Button = session.KindPress, "", fmt.Sprintf("retry:%d", turn)
		}
		s.deliver(m)
	case "stop":
		s.deliver(s.message("alice", []string{"/stop", "stop", "/stop all"}[s.rng.IntN(3)]))
	case "btw":
		s.deliver(s.message("alice", "/btw "+text))
	case "new":
		if s.rng.IntN(3) == 0 {
			s.deliver(s.message("alice", "/new"))
		}
	case "crash":
		w.process.crash()
	case "restart":
		w.process.stop()
	case "error":
		s.mu.Lock()
		s.errs++
		s.mu.Unlock()
	default:
		if s.fleet == nil {
			panic(kind)
		}
		s.fleet.event(kind)
	}
}

// phase is the session's, as the process that runs it sees it.
func (w *world) phase() steer.Phase {
	for _, p := range w.procs {
		if v, ok := p.hub.View(room); ok && !p.isDead() {
			return v.Phase
		}
	}
	return steer.PhaseIdle
}

// recent is one of alice's last messages.
func (s *schedule) recent() (session.MessageID, bool) {
	if len(s.ids) == 0 {
		return "", false
	}
	return s.ids[len(s.ids)-1-s.rng.IntN(min(3, len(s.ids)))], true
}

// outcomes are what schedules must come to.
var outcomes = []string{
	"begun", "joined", "steered", "sent again", "job told",
	string(session.EndAnswered), string(session.EndStopped), string(session.EndReplaced), string(session.EndFailed),
}

// outcomeOf is what a row says came of something.
func outcomeOf(r session.Row) string {
	switch r.Type {
	case session.RowUser:
		u := session.DecodeUser(r)
		switch {
		case len(u.Again) > 0:
			return "sent again"
		case u.Event != "":
			return "job told"
		}
		return "begun"
	case session.RowFold:
		return "joined"
	case session.RowSteer:
		return "steered"
	case session.RowAssistant:
		if end := session.DecodeAssistant(r).End; end != "" {
			return string(end)
		}
	}
	return "a step"
}

// accounted holds the end of a schedule against I1, I2, I9: every accepted
// message is in the rows once, or dropped, or held; nothing is left running;
// every answered turn's final was sent.
func (s *schedule) accounted() []string {
	var bad []string
	badf := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	ctx := context.Background()
	lane, err := s.w.store.Load(ctx, room)
	if err != nil {
		return []string{err.Error()}
	}
	if lane.Turn != 0 {
		badf("I6: turn %d is still open", lane.Turn)
	}
	for _, e := range lane.Slot {
		if !e.Held {
			badf("I1: ticket %d still waits in an idle session", e.Ticket)
		}
	}
	for _, j := range lane.Jobs {
		badf("job %s (%s) was never told", j.ID, j.State)
	}
	if lane.Out > 0 {
		badf("I9: %d parts are still in the outbox", lane.Out)
	}
	carried := map[int64]int{}
	lowest := int64(0) // ticket that the newest turn began with
	finals := map[string]int{}
	for _, f := range s.w.plat.finals() {
		finals[f.part]++
	}
	for gen := int64(1); gen <= lane.Gen; gen++ {
		rows, err := s.w.store.Rows(ctx, room, gen, 0, 0)
		if err != nil {
			return []string{err.Error()}
		}
		for _, r := range rows {
			s.hit.add(s.hit.outcomes, outcomeOf(r))
			switch r.Type {
			case session.RowUser, session.RowFold:
				for i, in := range session.DecodeUser(r).Inputs {
					carried[in.Ticket]++
					if i > 0 || r.Type != session.RowUser || s.jumped || s.w.conf.mode == steer.Interrupt {
						continue
					}
					if in.Ticket < lowest {
						badf("I3: ticket %d begins a turn after ticket %d", in.Ticket, lowest)
					}
					lowest = in.Ticket
				}
			case session.RowSteer:
				carried[r.Tick]++
			case session.RowAssistant:
				if session.DecodeAssistant(r).End == session.EndAnswered && finals[fmt.Sprintf("t:%d:final/1", r.Turn)] == 0 {
					badf("I9: the final of turn %d was never sent", r.Turn)
				}
			}
		}
	}
	fates, err := s.w.store.Fates(ctx, room, 0)
	if err != nil {
		return []string{err.Error()}
	}
	times := map[session.MessageID]int{}
	for _, f := range fates {
		for _, id := range f.Msgs {
			times[id]++
		}
	}
	for id := range s.sent {
		if times[id] == 0 && !s.w.plat.saidFull(id) {
			badf("I1: message %s was accepted and is nowhere", id)
		}
		if times[id] > 1 && !s.edits[id] {
			badf("I2: message %s is %d inputs", id, times[id])
		}
	}
	for _, f := range fates {
		switch {
		case f.State == session.FateHeld || f.State == session.FateDropped:
			if carried[f.Ticket] > 0 {
				badf("I2: ticket %d is %s and in the rows", f.Ticket, f.State)
			}
		case !f.State.Final():
			badf("fate of ticket %d is still %s", f.Ticket, f.State)
		case carried[f.Ticket] != 1:
			badf("I1, I2: ticket %d is %s and in the rows %d times", f.Ticket, f.State, carried[f.Ticket])
		}
	}
	return bad
}
