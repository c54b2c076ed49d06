package session

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// stop is /stop: see Store.Stop. A late one acts only on a turn that was
// running when it was written.
func (h *Hub) stop(ctx context.Context, p Principal, m Message, drop bool) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		// The store is away: what runs here stops all the same. The command comes
		// again and is stored then.
		h.stopHere(ctx, p, m.Key)
		return fmt.Errorf("load session: %w", err)
	}
	if !h.mayStop(p, lane) {
		return h.reply(ctx, m, textNotYours)
	}
	r := Stop{Key: m.Key, Dedupe: m.Dedupe, Drop: drop}
	if late := m.Received.Sub(m.Sent); !m.Sent.IsZero() && late > stopLate {
		if lane.Turn == 0 || lane.TurnAt.After(m.Sent) {
			return h.reply(ctx, m, textNothingRuns)
		}
		r.Only = lane.Turn
	}
	if lane.Turn == 0 && len(lane.Slot) == 0 && len(lane.Jobs) == 0 {
		return h.reply(ctx, m, textNothingRuns)
	}
	s, err := h.Store.Stop(ctx, r)
	if err != nil {
		// It may be stored all the same; delivered again it is then a duplicate
		// that touches no job. What runs now is older than this /stop.
		h.endHere(ctx, m.Key, runningTurn(lane))
		return fmt.Errorf("store stop: %w", err)
	}
	var jobs stoppedJobs
	if !s.Dup { // what runs now may have begun since
		if a := h.actorOf(m.Key); a != nil && s.Turn != 0 {
			a.stopNow(s.Turn) // first: no call of it can become a job any more
		}
		if jobs, err = h.stopJobs(ctx, m, s.Lane); err != nil {
			return err
		}
	}
	h.nudge(m.Key, nil)
	for _, e := range s.Held {
		state := FateHeld
		if drop {
			state = FateDropped
		}
		h.Outbox.Sign(m.Key, Fate{Ticket: e.Ticket, Msgs: e.Msgs, State: state, Waited: true})
	}
	text, buttons := stoppedAnswer(s, lane, drop, jobs)
	return h.announce(ctx, m, text, buttons...)
}

// stopLate is how old a /stop may be before it counts as one from a backlog.
const stopLate = 60 * time.Second

// mayStop reports whether p may stop what the lane does: the turn's owner and
// admins while a turn runs; in an idle lane whoever disturbs only their own.
func (h *Hub) mayStop(p Principal, lane Lane) bool {
	if lane.Turn != 0 {
		return h.maySteer(lane.Owner, p.ID, p.Admin)
	}
	if p.Admin || h.SteerFrom == "participants" {
		return true
	}
	for _, e := range lane.Slot {
		if e.Author != p.ID {
			return false
		}
	}
	for _, j := range lane.Jobs {
		if j.Name != asideJob && jobOwner(j) != string(p.ID) {
			return false
		}
	}
	return true
}

// stopHere stops what runs in this process and is p's to stop, whatever the
// store would say of it.
func (h *Hub) stopHere(ctx context.Context, p Principal, key Key) {
	a := h.actorOf(key)
	if a == nil || !a.owned(h, p) {
		return
	}
	h.endHere(ctx, key, 0)
}

// endHere ends a turn of this process (0 = whichever runs) and then all jobs
// of the session: its calls can become jobs no more.
func (h *Hub) endHere(ctx context.Context, key Key, turn int64) {
	if a := h.actorOf(key); a != nil {
		a.stopNow(turn)
	}
	h.Agent.StopJobs(context.WithoutCancel(ctx), key)
}

// owned reports whether the running turn is p's to stop.
func (a *actor) owned(h *Hub, p Principal) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active != nil && h.maySteer(a.active.owner.ID, p.ID, p.Admin)
}

// stoppedJobs counts what ended beside the turn.
type stoppedJobs struct{ jobs, asides int }

// stopJobs ends the session's background jobs and the questions beside it, and
// counts them; their ends wake nobody.
func (h *Hub) stopJobs(ctx context.Context, m Message, lane Lane) (stoppedJobs, error) {
	if a := h.actorOf(m.Key); a != nil {
		a.stopAsides()
	}
	// First the processes: what is stored of them can be told again.
	h.Agent.StopJobs(context.WithoutCancel(ctx), m.Key)
	var told []Job
	var n stoppedJobs
	for _, j := range lane.Jobs {
		j.Told = true
		told = append(told, j)
		n.jobs += boolInt(j.Name != asideJob)
		n.asides += boolInt(j.Name == asideJob)
	}
	if len(told) == 0 {
		return n, nil
	}
	// Until it is stored: delivered again the command touches no job.
	err := h.persist(ctx, "stop jobs", func(ctx context.Context) error {
		_, err := h.Store.Post(ctx, Post{Key: m.Key, Jobs: told})
		return err
	})
	if err != nil {
		return n, fmt.Errorf("store stopped jobs: %w", err)
	}
	return n, nil
}

// stopNow cancels the running turn if it is this one (0 = whichever).
func (a *actor) stopNow(turn int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil && (turn == 0 || a.active.number == turn) {
		a.active.cancel(ErrStopped)
	}
}

// runningTurn is the lane's open turn, or noTurn: what begins in an idle lane
// meanwhile is not meant.
func runningTurn(lane Lane) int64 {
	if lane.Turn == 0 {
		return noTurn
	}
	return lane.Turn
}

// A place is where a lane stood.
type place struct{ gen, seq int64 }

// began takes note of jobs that begin here. Called by the turn's goroutine.
func (a *actor) began(jobs []Job, at place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range jobs {
		if j.State == JobRunning && j.Owner == a.h.Nonce && !j.Told {
			a.mine[j.ID] = at
		}
	}
}

// endGone ends the jobs here that another process took out of the lane: it was
// told to stop them and has only their names.
func (a *actor) endGone(life context.Context, lane Lane) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, at := range a.mine {
		if lane.Gen < at.gen || lane.Gen == at.gen && lane.Seq < at.seq {
			continue // read before it began
		}
		i := slices.IndexFunc(lane.Jobs, func(j Job) bool { return j.ID == id })
		if i >= 0 && lane.Jobs[i].State == JobRunning {
			continue
		}
		delete(a.mine, id)
		if i < 0 {
			a.h.Agent.KillJob(life, a.key, id) // over by itself: nothing happens
		}
	}
}

// stopped ends t because the store says that it was stopped. Who stopped it here
// has ended its jobs as well; another process could not.
func (a *actor) stopped(life context.Context, t *Turn) {
	if context.Cause(t.ctx) == ErrStopped {
		return
	}
	t.cancel(ErrStopped) // first: no call of it can become a job any more
	a.h.Agent.StopJobs(life, a.key)
}
