package session

import (
	"context"
	"fmt"
	"time"
)

// stop is /stop: see Store.Stop. A late one acts only on a turn that was
// running when it was written.
func (h *Hub) stop(ctx context.Context, p Principal, m Message, drop bool) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if lane.Turn != 0 && !h.maySteer(lane.Owner, p.ID, p.Admin) {
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
		return fmt.Errorf("store stop: %w", err)
	}
	jobs := 0
	if !s.Dup { // what runs now may have begun since
		if a := h.actorOf(m.Key); a != nil {
			a.stopNow(s.Turn)
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
	return h.reply(ctx, m, text, buttons...)
}

// stopLate is how old a /stop may be before it counts as one from a backlog.
const stopLate = 60 * time.Second

// stopJobs ends the session's background jobs and counts them; their ends wake
// nobody.
func (h *Hub) stopJobs(ctx context.Context, m Message, lane Lane) (int, error) {
	var told []Job
	for _, j := range lane.Jobs {
		if j.Name != asideJob {
			j.Told = true
			told = append(told, j)
		}
	}
	if len(told) == 0 {
		return 0, nil
	}
	// Until it is stored: delivered again the command touches no job.
	err := h.persist(ctx, "stop jobs", func(ctx context.Context) error {
		_, err := h.Store.Post(ctx, Post{Key: m.Key, Jobs: told})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store stopped jobs: %w", err)
	}
	h.Agent.StopJobs(ctx, m.Key)
	return len(told), nil
}

// stopNow cancels the turn before the store is asked again.
func (a *actor) stopNow(turn int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil && a.active.number == turn {
		a.active.cancel(ErrStopped)
	}
}
