package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A process is one life of a gateway.
type process struct {
	w     *world
	place int // among replicas
	nonce string
	link  link // to the store

	faulty *storetest.Faulty
	hub    *session.Hub
	out    *outbox.Outbox
	run    context.CancelFunc // asks it to stop
	asked  bool               // to stop
	dead   chan struct{}      // closed when it is dead
	gone   chan struct{}      // closed when its Run has returned
	tools  sync.WaitGroup
}

// spawn starts a process.
func (w *world) spawn(place int) *process {
	w.lives++
	p := &process{w: w, place: place, nonce: fmt.Sprintf("life%d", w.lives), dead: make(chan struct{}), gone: make(chan struct{})}
	var st session.Store = w.store
	if w.wrap != nil {
		st = w.wrap(st)
	}
	if w.bus != nil {
		st = &shared{Store: st, bus: w.bus, p: p}
	}
	p.faulty = &storetest.Faulty{Store: st, Hook: p.fault}
	st = p.faulty
	log := slog.New(slog.DiscardHandler)
	ctx := context.Background()
	p.out = outbox.New(ctx, outbox.Options{Store: st, Nonce: p.nonce + "/out", HubNonce: p.nonce, UnknownAfter: 10 * time.Second, Log: log})
	l, err := loop.New(loop.Options{
		Profile: loop.Profile{Model: modelPort{w.model, p}, System: "You help.", Hosted: true}, Tools: w.tools(toolPort{w.box, p}),
		YieldAfter: w.conf.yield, SkipUnstarted: w.conf.skip, Steps: w.conf.steps, Time: w.conf.time, CacheBytes: 1 << 20,
		JobEnded: func(key session.Key, j session.Job) { p.hub.JobEnded(ctx, key, j) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var spend func(session.Key) session.Spend
	if w.conf.spend != (session.Spend{}) {
		spend = func(session.Key) session.Spend { return w.conf.spend }
	}
	p.hub = session.NewHub(ctx, session.Options{
		Spend: spend,
		Store: st, Agent: l, Outbox: p.out,
		Access: session.NewAccess(st, map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"*"}, Admins: []string{"root"}}}),
		Nonce:  p.nonce, Mode: func(session.Key) steer.Mode { return w.conf.mode }, JoinWindow: w.conf.join,
		StopWords: []string{"stop", "halt", "cancel"}, SteerFrom: w.conf.from, Together: w.conf.together, DeleteStops: w.conf.deletes,
		Observe:  func(session.Key) int { return w.conf.observe },
		LeaseTTL: w.conf.ttl, JobsOnEnd: w.conf.onEnd, HistoryBytes: 1 << 20, Log: log,
	})
	p.hub.Register(port{w.plat, p})
	p.out.Register(port{w.plat, p})
	p.begin()
	return p
}

// begin runs it until it is asked to stop or dies.
func (p *process) begin() {
	run, stop := context.WithCancel(context.Background())
	p.run = stop
	if p.w.bus != nil {
		p.tools.Go(func() { p.w.bus.sit(run, p) })
	}
	go func() {
		defer close(p.gone)
		if err := p.hub.Run(run, p.w.conf.drain); err != nil && !p.isDead() {
			p.w.t.Errorf("hub: %v", err)
		}
	}()
}

// fault is the hook of its store.
func (p *process) fault(point string, when storetest.When) storetest.Fault {
	if p.isDead() {
		return storetest.Crash // a dead process stores nothing
	}
	if f := p.link.fault(when); f != storetest.None {
		return f
	}
	if p.w.hook == nil {
		return storetest.None
	}
	f := p.w.hook(point, when)
	if p.w.struck != nil {
		p.w.struck(p, point, when, f)
	}
	return f
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// crash kills the process, as SIGKILL would: no more of it is stored or sent.
func (p *process) crash() {
	if p.isDead() {
		return
	}
	close(p.dead)
	p.run()
	p.hub.Kill()
	p.out.Close(0)
	<-p.gone
	p.tools.Wait()
}

// stop asks the process to stop and waits for it.
func (p *process) stop() {
	p.run()
	<-p.gone
	p.out.Close(2 * time.Second)
	if !p.isDead() {
		close(p.dead)
	}
	p.tools.Wait()
}

// at names the process in what is logged, where there are several.
func (p *process) at() string {
	if p.w.bus == nil {
		return ""
	}
	return " at " + p.nonce
}

// stranger names who holds the session's lease if that is another process: this
// one may then begin nothing more of its turn (I4). A /new takes the lease away in
// the middle of its time: who held it hears of it as of a /stop, or with its next
// write (F32).
func (p *process) stranger(id string) string {
	if p.w.bus == nil {
		return ""
	}
	key, err := session.ParseKey(id)
	if err != nil {
		p.w.t.Errorf("session %q: %v", id, err)
	}
	lane, err := p.w.store.Load(context.Background(), key)
	switch {
	case err != nil:
		p.w.t.Errorf("load: %v", err)
	case lane.Nonce == p.nonce || p.isDead() || p.w.jumping() || p.w.bus.wasReset():
		return ""
	}
	return lane.Nonce
}

// jumping reports that the store's clock has just jumped: leases ran out before
// their time, and who held one hears of it with its next call (F38).
func (w *world) jumping() bool { return w.jumpedBefore(time.Now()) }

// jumpedBefore reports that it had just jumped at that time.
func (w *world) jumpedBefore(t time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.jumps, func(j time.Time) bool { return !t.Before(j) && t.Sub(j) < max(2*w.conf.ttl, longest) })
}
