package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/steer"
)

// An actor is the one goroutine that looks after a session while there is
// something to do. Fields below run are its own; nothing else touches them.
type actor struct {
	h    *Hub
	key  Key
	wake chan struct{} // holds at most one token: look at the lane
	hint atomic.Pointer[Lane]

	// place is held for reading while something is shown of the turn, and for
	// writing while the session moves to another chat.
	place sync.RWMutex

	mu     sync.Mutex
	active *Turn                         // what hurry may cancel; the actor sets it
	asking map[string]context.CancelFunc // questions being answered
	cut    map[string]time.Time          // questions whose answer was ended, and when
	again  []int64                       // tickets to decide on once more
	mine   map[string]place              // jobs whose processes run here, and since when

	// Owned by run.
	turn   *Turn
	done   chan ended
	lease  Lease           // valid while a turn or a job of ours runs
	held   bool            // lease is valid
	seen   map[int64]int64 // ticket → version already decided on
	queued map[int64]bool  // ticket → shown as queued though it came while idle
	asides map[string]bool // questions beside the turn that are being answered
	jobs   sync.WaitGroup  // asides
	pace   pace            // why the next turn waits
	missed bool            // woken when the turn was over in the store and not yet here
	ops    int64           // counts this actor's Begins
	errs   int             // store errors in a row
}

// ended is what a turn's goroutine reports.
type ended struct {
	more    bool // something may run now, or must be looked at
	parked  bool
	lost    bool // fenced, or the process ends: nothing more may be written
	waiting bool
}

func newActor(h *Hub, key Key) *actor {
	return &actor{
		h: h, key: key, wake: make(chan struct{}, 1), done: make(chan ended, 1),
		seen: map[int64]int64{}, queued: map[int64]bool{}, asides: map[string]bool{}, asking: map[string]context.CancelFunc{},
		mine: map[string]place{}, cut: map[string]time.Time{},
	}
}

// poke makes the actor look. lane, if given, is as fresh as the poke.
func (a *actor) poke(lane *Lane) {
	if lane != nil {
		a.hint.Store(lane)
	} else {
		a.hint.Store(nil)
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// hurry cancels the running turn because the drain has passed.
func (a *actor) hurry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		a.active.cancel(ErrParked)
	}
}

// decideAgain makes the actor look at entries anew that did not join after all.
func (a *actor) decideAgain(entries []Entry) {
	a.mu.Lock()
	for _, e := range entries {
		a.again = append(a.again, e.Ticket)
	}
	a.mu.Unlock()
	a.poke(nil)
}

// Results of a look: how long until the next one.
const (
	never  time.Duration = -1 // nothing to do: the actor may end
	onWake time.Duration = 0  // something will wake it
)

// lostWait is how long an actor waits before it looks at a lane whose turn it
// has lost.
const lostWait = 100 * time.Millisecond

// run looks after the session until there is nothing to do or life ends.
func (a *actor) run(life context.Context) {
	defer a.jobs.Wait()
	renew := time.NewTicker(a.h.LeaseTTL / 3)
	defer renew.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	look := false // the poke that made the actor left a token
	for {
		if look {
			wait := a.look(life)
			if a.turn == nil && (wait <= 0 || wait > keepRoom) {
				a.h.call(a.h.gate.leave(a.key)) // it did not begin, for whatever reason
			}
			if wait == never && a.mayLeave() && a.h.leave(a) {
				return
			}
			// Only a look sets the timer: a renewal between leaves it alone.
			timer.Stop()
			if wait > 0 {
				timer.Reset(wait)
			}
		}
		look = false
		select {
		case <-life.Done():
			if a.turn != nil {
				<-a.done
			}
			return
		case <-a.wake:
			look = true
		case <-timer.C:
			look = true
		case <-renew.C:
			a.renew(life)
		case e := <-a.done:
			look = a.ended(e)
			switch {
			case e.lost:
				look = false
				timer.Reset(lostWait) // not at once: what fails for good must not spin
			case !look && a.mayLeave() && a.h.leave(a):
				return
			}
		}
	}
}

// mayLeave reports whether nothing of the session runs here.
func (a *actor) mayLeave() bool {
	return a.turn == nil && (len(a.asides) == 0 || a.h.Draining())
}

// ended takes note of a turn that is over; it reports whether to look again.
func (a *actor) ended(e ended) bool {
	a.setTurn(nil)
	a.h.call(a.h.gate.leave(a.key)) // before it looks: others come first now
	a.held = a.held && !e.lost && !e.parked && e.more
	missed := a.missed
	a.missed = false
	return e.more || e.waiting || e.lost || missed
}

func (a *actor) setTurn(t *Turn) {
	a.turn = t
	a.mu.Lock()
	a.active = t
	a.mu.Unlock()
}

// renew extends the lease; what came in beside is a reason to look.
func (a *actor) renew(life context.Context) {
	if !a.held {
		return
	}
	ctx, stop := context.WithTimeout(life, a.lease.TTL/3)
	defer stop()
	asked := time.Now()
	f, err := a.h.Store.Renew(ctx, a.lease)
	switch {
	case errors.Is(err, ErrFenced):
		a.held = false
		if a.turn != nil {
			a.turn.cancel(ErrFenced)
		}
	case err != nil:
		a.h.note(ctx, "renew", err)
	case a.turn != nil:
		a.turn.renewed(asked)
		if a.turn.flagged(f) {
			a.poke(nil)
		}
	}
}

// lane is the state to act on: what the poke brought, or read anew.
func (a *actor) lane(life context.Context) (Lane, error) {
	if l := a.hint.Swap(nil); l != nil && a.turn == nil {
		return *l, nil
	}
	return a.h.Store.Load(life, a.key)
}

// look reads the lane and does what it asks for. It answers how long until it
// must look again without being woken.
func (a *actor) look(life context.Context) time.Duration {
	lane, err := a.lane(life)
	if err != nil {
		a.h.note(life, "load", err)
		a.errs++
		return min(time.Duration(a.errs)*50*time.Millisecond, time.Second)
	}
	a.errs = 0
	if lane.Form > Form && a.turn == nil {
		a.h.leaveNewer(life, a.key)
		return never
	}
	a.answerAsides(life, lane)
	a.endGone(life, lane)
	if a.turn != nil {
		return a.lookBusy(life, lane)
	}
	if a.h.Draining() {
		a.unpace(life)
		return never
	}
	if lane.Turn != 0 {
		return a.resume(life, lane)
	}
	return a.lookIdle(life, lane)
}

// lookBusy decides what the entries mean to the running turn. The verbs are
// steer.Decide's; here they are only carried out.
func (a *actor) lookBusy(life context.Context, lane Lane) time.Duration {
	t := a.turn
	if a.h.Draining() {
		t.park()
		return onWake
	}
	if lane.Turn != t.number || lane.Gen != t.gen {
		// The turn ended in this very moment, or /new fenced it off.
		if lane.Gen != t.gen {
			t.cancel(ErrFenced)
		}
		a.missed = true // the poke was for what comes after it
		return onWake
	}
	if lane.Stop == t.number {
		a.stopped(life, t)
	}
	a.mu.Lock()
	for _, ticket := range a.again {
		delete(a.seen, ticket)
	}
	a.again = nil
	a.mu.Unlock()
	wait, steers := onWake, 0
	for _, e := range lane.Slot {
		if e.Held {
			continue
		}
		if e.IsOpen(lane.Now) {
			wait = e.Open.Sub(lane.Now)
			break // it stops the drain: those behind it wait too
		}
		if e.Want == steer.Steer && e.Turn == t.number {
			steers++
		}
		if a.seen[e.Ticket] != e.Version {
			if !a.decide(life, t, e) {
				return 50 * time.Millisecond
			}
			a.seen[e.Ticket] = e.Version
		}
	}
	t.waits(lane, steers)
	return wait
}

// decide carries out the verb of one entry; false means the store refused for
// now.
func (a *actor) decide(life context.Context, t *Turn, e Entry) bool {
	in := decodeInput(e)
	may, admin, err := a.h.Access.Still(life, a.key, writer(e, in))
	if err != nil {
		a.h.note(life, "read access", err)
		return false
	}
	if !may {
		return a.refuse(life, e)
	}
	mode := e.Want
	steers := mode == steer.Steer && e.Turn == t.number
	v := steer.Decide(steer.Input{
		Phase: t.Phase(), Mode: mode, Explicit: in.Explicit != "",
		FirstRequest: t.firstRequest(), WithinJoin: t.withinJoin(e.At), SameAuthor: e.Author == t.lastAuthor(),
		// The door judged authority against this very turn (a bystander's message
		// was made to wait, or the owner let it in).
		MaySteer: e.Turn == t.number || admin || a.maySteer(t.owner.ID, e.Author),
	})
	switch v {
	case steer.Join:
		t.join(e)
	case steer.Replace, steer.ReplaceAfter, steer.DenyThenReplace:
		t.cancel(ErrReplaced)
	case steer.Pend, steer.WithdrawThenPend:
		if steers {
			return true // waits told the turn
		}
		a.showQueued(life, e)
	case steer.Enqueue, steer.Store, steer.Start, steer.Answer:
		a.showQueued(life, e)
	default:
		panic(fmt.Sprintf("no such verb: %v", v))
	}
	return true
}

// maySteer reports whether author may steer, interrupt or join owner's turn.
func (h *Hub) maySteer(owner, author UserID, admin bool) bool {
	return admin || owner == author || h.SteerFrom == "participants"
}

func (a *actor) maySteer(owner, author UserID) bool { return a.h.maySteer(owner, author, false) }

// resume takes over an open turn that nobody runs (I6).
func (a *actor) resume(life context.Context, lane Lane) time.Duration {
	if left, held := lane.heldByOther(a.h.Nonce, a.h.LeaseTTL); held {
		return left + time.Millisecond
	}
	// A turn that was stopped only has to end.
	if !a.h.gate.enter(a.key, a.h.crowd(a.key), true, lane.Stop == lane.Turn) {
		return never
	}
	asked := time.Now()
	b, err := a.h.Store.Claim(life, a.key, a.h.Nonce, a.h.LeaseTTL)
	if err != nil {
		if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrGone) {
			a.h.note(life, "claim", err)
		}
		return 100 * time.Millisecond
	}
	a.lease, a.held = b.Lease, true
	if b.Lane.Turn == 0 {
		return a.lookIdle(life, b.Lane)
	}
	if !a.jobsLost(life, b.Lane) {
		return 100 * time.Millisecond
	}
	rows, err := a.rows(life, b.Lane)
	if err != nil {
		a.h.note(life, "read rows", err)
		return 100 * time.Millisecond
	}
	return a.start(life, newTurn(life, a, b, asked, rows, true), b.Lane, map[int64]bool{})
}

// rows gives all rows of the lane's generation; only new ones are read.
func (a *actor) rows(life context.Context, lane Lane) ([]Row, error) {
	known := a.h.history.get(a.key, lane.Gen)
	if int64(len(known)) > lane.Seq {
		known = nil
	}
	if int64(len(known)) == lane.Seq {
		return known, nil
	}
	more, err := a.h.Store.Rows(life, a.key, lane.Gen, int64(len(known)), 0)
	if err != nil {
		return nil, err
	}
	rows := append(known, more...)
	if int64(len(rows)) > lane.Seq {
		rows = rows[:lane.Seq]
	}
	a.h.history.put(a.key, lane.Gen, rows)
	return rows, nil
}

// start runs an open turn in its own goroutine. What waits is decided on
// before: a turn that is to be replaced sends no request.
func (a *actor) start(life context.Context, t *Turn, lane Lane, waited map[int64]bool) time.Duration {
	t.waited = waited
	a.lease, a.held = t.lease, true
	clear(a.seen)
	a.setTurn(t)
	wait := onWake
	if len(lane.Slot) > 0 || len(lane.Jobs) > 0 || lane.Stop == t.number {
		wait = a.lookBusy(life, lane)
	}
	go func() { a.done <- t.run() }()
	return wait
}
