//go:build linux

package chaos

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"coxswain/store/storetest"
)

// unreachable are failpoints that the run cannot pass.
var unreachable = map[string]string{
	"delete":       "sessions are deleted by operators only",
	"expire":       "no session may go before 48 hours",
	"commit.state": "every step of the loop has rows or drains",
	"grant":        "the budget is wide; sim grants",
}

// sides are the failpoints, each before and after its call.
func sides() (all []string) {
	for _, p := range storetest.Points() {
		if unreachable[p] == "" {
			all = append(all, "before:"+p, "after:"+p)
		}
	}
	return all
}

// The kinds of faults besides SIGKILL of a gateway.
const (
	faultStop    = "SIGSTOP for longer than the lease"
	faultTerm    = "SIGTERM"
	faultRedis   = "SIGKILL of Redis"
	faultReset   = "connections reset after 50 ms"
	faultLatency = "replies 200 ± 200 ms late"
	faultOneWay  = "requests arrive, replies do not"
	faultSlow    = "10 kB/s each way"
	faultPause   = "Redis answers nobody (CLIENT PAUSE)"
)

var faults = []string{faultStop, faultTerm, faultRedis, faultReset, faultLatency, faultOneWay, faultSlow, faultPause}

// Kinds of kills.
const (
	killPoint  = "SIGKILL at a failpoint"
	killRandom = "SIGKILL at any moment"
)

// A storm is the faults of one run. It belongs to the goroutine that draws them.
type storm struct {
	f       *fleet
	struck  map[string]int // faults by kind
	hits    map[string]int // kills by failpoint and side
	tries   map[string]int
	left    []string // kinds still to be struck in this round
	next    time.Time
	calm    bool // no more faults: what is gone comes back and stays
	reached bool // all that was to be struck was
	starts  int  // that ended by themselves, and were made again
}

func newStorm(f *fleet) *storm {
	return &storm{f: f, struck: map[string]int{}, hits: map[string]int{}, tries: map[string]int{}}
}

func (s *storm) struckAll() bool {
	return !slices.ContainsFunc(s.f.kinds, func(k string) bool { return s.struck[k] == 0 })
}

func (s *storm) kills() int { return s.struck[killPoint] + s.struck[killRandom] }

// blow runs until so many gateways were killed and each kind of fault has struck,
// at most for a time. It reports whether it came that far.
func (s *storm) blow(kills int, most time.Duration) bool {
	late := time.Now().Add(most)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	s.next = time.Now().Add(time.Second)
	for time.Now().Before(late) {
		if s.kills() >= kills && s.struck[killRandom] > 0 && s.struck[killPoint] > 0 && s.struckAll() {
			return true
		}
		<-tick.C
		began := time.Now()
		for _, g := range s.f.ships {
			s.tend(g)
		}
		if began.After(s.next) {
			s.strike()
			s.next = time.Now().Add(time.Duration(300+s.f.rng.IntN(1200)) * time.Millisecond)
		}
		if d := time.Since(began); d > 2*time.Second {
			s.f.log.note(0, "the faults themselves took %s", d)
		}
	}
	return false
}

// tend starts what is gone, ends what has lasted and kills what has not passed
// its failpoint in time.
func (s *storm) tend(g *ship) {
	now := time.Now()
	if !g.until.IsZero() && now.After(g.until) {
		s.mend(g)
	}
	if g.isGone() {
		s.bury(g)
		s.launch(g)
		return
	}
	if !s.calm && !g.stopped && !g.leaves && now.After(g.patient) {
		s.f.log.note(0, "%s: SIGKILL (it waited for %s)", g.name, g.point)
		g.kill()
		if !g.passed() { // else it was just then
			s.struck[killRandom]++
			s.disarm(g)
			g.cmd = nil
		}
	}
	if g.leaves && now.Sub(g.began) > 20*time.Second {
		s.f.log.wrong(stuck, 0, "%s did not end within 20 s of SIGTERM", g.name)
		g.kill()
	}
}

// bury says why a gateway is gone.
func (s *storm) bury(g *ship) {
	if g.cmd == nil {
		return
	}
	state := g.cmd.ProcessState
	switch {
	case g.point != "" && g.passed():
		s.f.log.note(0, "%s: SIGKILL %s", g.name, g.point)
		s.struck[killPoint]++
		s.hits[g.point]++
	case g.leaves:
		if !state.Success() && g.served() { // else it was still asking for Redis
			s.f.log.wrong(ended, 0, "%s: SIGTERM ended in %s", g.name, state)
		}
	default:
		if sys, ok := state.Sys().(syscall.WaitStatus); ok && sys.Signaled() && sys.Signal() == syscall.SIGKILL {
			s.struck[killPoint]++ // while the file was read
			break
		}
		// One that cannot reach the store at its start ends, and is started again.
		s.f.log.note(0, "%s: ended by itself: %s", g.name, state)
		s.starts++
		if time.Since(g.began) > 35*time.Second || state.ExitCode() != 1 {
			s.f.log.wrong(ended, 0, "%s: %s after %s", g.name, state, time.Since(g.began).Round(time.Second))
		}
	}
	s.disarm(g)
	g.cmd = nil
}

func (s *storm) disarm(g *ship) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if g.point != "" {
		delete(s.f.armed, pointOf(g.point))
	}
	g.point = ""
}

func pointOf(side string) string {
	for i, c := range side {
		if c == ':' {
			return side[i+1:]
		}
	}
	return side
}

// launch starts a gateway with the failpoint that was hit least.
func (s *storm) launch(g *ship) {
	if s.calm {
		g.start("")
		return
	}
	var best []string
	least := 0.0
	for _, side := range sides() {
		if slices.ContainsFunc(s.f.ships, func(o *ship) bool { return o.point == side }) {
			continue
		}
		worth := float64(s.hits[side]) + float64(s.tries[side])/4
		if len(best) == 0 || worth < least {
			best, least = nil, worth
		}
		if worth == least {
			best = append(best, side)
		}
	}
	side := best[s.f.rng.IntN(len(best))]
	s.tries[side]++
	g.point = side
	nth := 1
	if !slices.Contains(rare, pointOf(side)) {
		nth += s.f.rng.IntN(3)
	}
	g.patient = time.Now().Add(time.Duration(2500+s.f.rng.IntN(3000)) * time.Millisecond)
	s.f.mu.Lock()
	s.f.armed[pointOf(side)] = true
	s.f.mu.Unlock()
	g.start(fmt.Sprintf("%s:%d", side, nth))
}

// rare are failpoints that a gateway does not pass often in a few seconds.
var rare = []string{"claim", "release", "reset", "stop", "amend.edit", "amend.drop", "amend.set", "putdoc", "commit.join", "commit.drain"}

// strike strikes with a fault: every kind once, in an order of its own, then
// again.
func (s *storm) strike() {
	f := s.f
	if len(s.left) == 0 {
		s.left = slices.Clone(f.kinds)
		f.rng.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	}
	kind, leaver := s.left[0], s.leaver()
	if !s.struckAll() {
		leaver = nil // every kind once, first
	}
	if leaver != nil {
		kind = faultTerm
	}
	var well []*ship
	for _, g := range f.ships {
		if g.until.IsZero() && !g.isGone() && !g.leaves && (kind != faultTerm || time.Since(g.began) > 500*time.Millisecond) {
			well = append(well, g)
		}
	}
	if len(well) < 2 { // one is left as it is, or all only wait
		return
	}
	g := well[f.rng.IntN(len(well))]
	if leaver != nil {
		g = leaver
	} else {
		s.left = s.left[1:]
	}
	s.struck[kind]++
	span := func(least, more time.Duration) {
		g.until = time.Now().Add(least + time.Duration(f.rng.Int64N(int64(more))))
	}
	f.log.note(0, "%s: %s", g.name, kind)
	switch kind {
	case faultStop:
		g.stopped = true
		g.signal(syscall.SIGSTOP)
		span(ttl*3/2, ttl)
	case faultTerm:
		g.leaves, g.began = true, time.Now()
		g.signal(syscall.SIGTERM)
	case faultRedis:
		f.redis.Kill9()
		time.Sleep(time.Duration(f.rng.IntN(400)) * time.Millisecond)
		f.redis.Restart()
	case faultPause:
		f.redis.Do("CLIENT", "PAUSE", (ttl + ttl/2).Milliseconds(), "ALL")
	case faultReset:
		g.line.spoil(f.t, "reset_peer", "downstream", `"timeout":50`)
		span(500*time.Millisecond, ttl)
	case faultLatency:
		g.line.spoil(f.t, "latency", "downstream", `"latency":200,"jitter":200`)
		span(ttl, 2*ttl)
	case faultOneWay:
		g.line.spoil(f.t, "timeout", "downstream", `"timeout":0`)
		span(ttl/2, 2*ttl)
	case faultSlow:
		g.line.spoil(f.t, "bandwidth", "downstream", `"rate":10`)
		g.line.spoil(f.t, "bandwidth", "upstream", `"rate":10`)
		span(ttl, 2*ttl)
	}
}

// leaver is who should be told to leave next, if anybody: one that waits to pass
// a release, or another than the one that waits to find a tool row without its
// drain, which a parked turn has.
func (s *storm) leaver() *ship {
	var parks, other *ship
	for _, g := range s.f.ships {
		if g.isGone() || g.stopped || g.leaves || time.Since(g.began) < 500*time.Millisecond {
			continue
		}
		switch pointOf(g.point) {
		case "release":
			return g
		case "commit.drain":
			parks = g
		default:
			other = g
		}
	}
	if parks == nil {
		return nil
	}
	return other
}

// mend ends what is wrong with a gateway or its line.
func (s *storm) mend(g *ship) {
	g.until = time.Time{}
	g.line.heal(s.f.t)
	if g.stopped {
		g.stopped = false
		g.signal(syscall.SIGCONT)
		g.patient = g.patient.Add(2 * ttl)
	}
	s.f.log.note(0, "%s: mended", g.name)
}

// settle ends all faults, has every gateway up, and waits until nothing is to be
// done any more. It gives how long that took.
func (s *storm) settle(most time.Duration) time.Duration {
	f := s.f
	s.calm = true
	began := time.Now()
	for _, g := range f.ships {
		s.mend(g)
		if !g.isGone() && !g.leaves { // it may die at its failpoint yet
			f.log.note(0, "%s: SIGKILL, the last", g.name)
			g.kill()
			if !g.passed() {
				s.struck[killRandom]++
				s.disarm(g)
				g.cmd = nil
			}
		}
	}
	look := newLook(f)
	defer look.close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	quiet := 0
	for {
		for _, g := range f.ships {
			s.tend(g)
		}
		open := look.open()
		if unconfirmed, _ := f.tg.Pending(); unconfirmed > 0 {
			open = append(open, violation{text: fmt.Sprintf("%d updates are not confirmed", unconfirmed)})
		}
		if n := f.model.busy(); n > 0 {
			open = append(open, violation{text: "a model request is out"})
		}
		if quiet++; len(open) > 0 {
			quiet = 0
			f.log.note(0, "%d things to be done, the first: %s", len(open), open[0].text)
		}
		if quiet == 15 {
			return time.Since(began) - 1500*time.Millisecond
		}
		if time.Since(began) > most {
			for _, v := range open {
				f.log.wrong(stuck, v.chat, "%s after the last fault: %s", most, v.text)
			}
			return time.Since(began)
		}
		<-tick.C
	}
}
