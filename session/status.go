package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNotYours is answered to a principal who asks about a session of a chat
// their authority does not hold for (I10, I13).
var ErrNotYours = errors.New("not this principal's session")

// Status is the state of one session, as /status and the web page show it.
// Field names are stable.
type Status struct {
	Session  string  `json:"session"`
	Title    string  `json:"title,omitempty"`
	Mode     string  `json:"mode"`
	Phase    string  `json:"phase"`
	Turn     int64   `json:"turn,omitempty"`
	Elapsed  float64 `json:"elapsed_s,omitempty"`
	Step     int     `json:"step,omitempty"`
	Steps    int     `json:"steps,omitempty"`
	Tool     string  `json:"tool,omitempty"`
	Pending  int     `json:"pending"` // steers that wait to go in
	Queued   int     `json:"queued"`
	Held     int     `json:"held"`
	Oldest   float64 `json:"oldest_s,omitempty"` // age of the oldest that waits
	Jobs     int     `json:"jobs"`
	Messages int64   `json:"rows"`
	Model    string  `json:"model,omitempty"`
	// NoRoom says that something could begin, or go on, and waits for room.
	NoRoom bool   `json:"waits_for_room,omitempty"`
	Waits  string `json:"waits,omitempty"` // why a running turn does not move
}

// Status reads a session's state for p.
func (h *Hub) Status(ctx context.Context, p Principal, key Key) (Status, error) {
	if !p.May(key) {
		return Status{}, ErrNotYours
	}
	key, err := h.Routes.Lane(ctx, key)
	if err != nil {
		return Status{}, err
	}
	lane, err := h.Store.Load(ctx, key)
	if err != nil {
		return Status{}, fmt.Errorf("load session: %w", err)
	}
	return h.statusOf(lane, key), nil
}

func (h *Hub) statusOf(lane Lane, key Key) Status {
	s := Status{
		Session: key.String(), Title: lane.Title, Mode: h.mode(key, lane).String(), Phase: lane.Phase.String(),
		Turn: lane.Turn, Messages: lane.Seq, Jobs: 0, NoRoom: h.waitsForRoom(lane),
	}
	for _, j := range lane.Jobs {
		s.Jobs += boolInt(j.Name != asideJob)
	}
	for _, e := range lane.Slot {
		switch {
		case e.Held:
			s.Held++
			continue
		case lane.Turn != 0 && e.Turn == lane.Turn && e.Want.String() == "steer":
			s.Pending++
		default:
			s.Queued++
		}
		if s.Oldest == 0 {
			s.Oldest = lane.Now.Sub(e.At).Seconds()
		}
	}
	if lane.Turn != 0 {
		s.Elapsed = lane.Now.Sub(lane.TurnAt).Seconds()
	}
	if v, ok := h.laneView(key); ok && v.Turn == lane.Turn {
		s.Phase, s.Step, s.Steps, s.Waits = v.Phase.String(), v.Step, v.Steps, v.Notice
		for _, t := range v.Tools {
			if t.State == ToolRunning {
				s.Tool = t.Name
			}
		}
	}
	if n, ok := h.Agent.(interface{ ModelName(Key) string }); ok {
		s.Model = n.ModelName(key)
	}
	return s
}

// View is the newest live view of the running turn of a chat's session in this
// process.
func (h *Hub) View(chat Key) (View, bool) {
	lane := h.Routes.Current(chat)
	v, ok := h.laneView(lane)
	v.Key, v.Mark, v.Asked = chat, markOf(lane, chat), here(lane, chat, v.Asked)
	return v, ok
}

func (h *Hub) laneView(key Key) (View, bool) {
	a := h.actorOf(key)
	if a == nil {
		return View{}, false
	}
	a.mu.Lock()
	t := a.active
	a.mu.Unlock()
	if t == nil {
		return View{}, false
	}
	return t.View(), true
}

// text writes the status for a chat.
func (s Status) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**, mode %s", cmp.Or(phaseWords[s.Phase], s.Phase), s.Mode)
	if s.Turn != 0 {
		fmt.Fprintf(&b, ", for %s", ago(time.Duration(s.Elapsed*float64(time.Second))))
		if s.Step > 0 {
			fmt.Fprintf(&b, ", step %d", s.Step)
			if s.Steps > 0 {
				fmt.Fprintf(&b, "/%d", s.Steps)
			}
		}
		if s.Tool != "" {
			fmt.Fprintf(&b, ", tool %s", s.Tool)
		}
	}
	if s.NoRoom {
		b.WriteString(", " + textWaitsForRoom)
	}
	if s.Waits != "" {
		fmt.Fprintf(&b, "\nwaits: %s", s.Waits)
	}
	fmt.Fprintf(&b, "\nto be steered in %d, queued %d, held %d", s.Pending, s.Queued, s.Held)
	if s.Oldest >= 1 {
		fmt.Fprintf(&b, " (oldest %s)", ago(time.Duration(s.Oldest*float64(time.Second))))
	}
	fmt.Fprintf(&b, "\njobs %d, rows %d", s.Jobs, s.Messages)
	if s.Model != "" {
		fmt.Fprintf(&b, ", model %s", s.Model)
	}
	fmt.Fprintf(&b, "\nsession `%s`", s.Session)
	return b.String()
}

// Overview is the state of the process for operators: GET /api/status.
type Overview struct {
	Uptime   float64  `json:"uptime_s"`
	Draining bool     `json:"draining"`
	Active   int      `json:"active_sessions"` // with an actor in this process
	Running  []Status `json:"running"`
	Turns    int64    `json:"turns_ended"` // in this process
	Failed   int64    `json:"turns_failed"`
	Room     Room     `json:"room"`
	Newer    int      `json:"left_to_newer"` // sessions, since the start
	Store    Stats    `json:"store"`
	LastErr  string   `json:"last_store_error,omitempty"`
}

// Room is how many turns run here, and how many sessions wait for that.
type Room struct {
	Used    int  `json:"used"`
	Most    int  `json:"most"` // 0 = no cap
	Waiting int  `json:"waiting"`
	Short   bool `json:"short_of_memory"`
}

// Overview reads the process's state. It is for operators: it lists sessions
// of all chats.
func (h *Hub) Overview(ctx context.Context) (Overview, error) {
	o := Overview{Uptime: time.Since(h.began).Seconds(), Draining: h.Draining(), Turns: h.turns.Load(), Failed: h.failed.Load(), Newer: h.leftToNewer(), Room: h.gate.state(), Running: []Status{}}
	if e := h.lastErr.Load(); e != nil {
		o.LastErr = *e
	}
	h.mu.Lock()
	o.Active = len(h.actors)
	var keys []Key
	for k, a := range h.actors {
		a.mu.Lock()
		if a.active != nil {
			keys = append(keys, k)
		}
		a.mu.Unlock()
	}
	h.mu.Unlock()
	var err error
	if o.Store, err = h.Store.Stats(ctx); err != nil {
		return o, fmt.Errorf("read counters: %w", err)
	}
	for _, k := range keys {
		lane, err := h.Store.Load(ctx, k)
		if err != nil {
			return o, fmt.Errorf("load session: %w", err)
		}
		if lane.Turn != 0 {
			o.Running = append(o.Running, h.statusOf(lane, k))
		}
	}
	return o, nil
}

func (h *Hub) cmdJobs(ctx context.Context, p Principal, m Message, args string) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	verb, id, _ := strings.Cut(args, " ")
	if verb == "kill" {
		return h.killJob(ctx, p, m, lane, strings.TrimSpace(id))
	}
	var b strings.Builder
	for _, j := range lane.Jobs {
		if j.Name == asideJob {
			continue
		}
		fmt.Fprintf(&b, "- `%s` %s, %s, since %s\n", j.ID, CleanLine(j.Name, 60), j.State, ago(lane.Now.Sub(time.UnixMilli(j.At))))
	}
	if b.Len() == 0 {
		return h.reply(ctx, m, textNoJobs)
	}
	return h.reply(ctx, m, b.String())
}

func (h *Hub) killJob(ctx context.Context, p Principal, m Message, lane Lane, id string) error {
	for _, j := range lane.Jobs {
		if j.ID != id || j.Name == asideJob {
			continue
		}
		if !p.Admin && jobOwner(j) != string(p.ID) {
			return h.reply(ctx, m, textNotYours)
		}
		if j.Owner == h.Nonce {
			h.Agent.KillJob(ctx, m.Key, id)
		} else {
			// Its process is another gateway's, which ends it when the lane has it no more.
			j.Told = true
			if _, err := h.Store.Post(ctx, Post{Key: m.Key, Jobs: []Job{j}}); err != nil {
				return fmt.Errorf("store ended job: %w", err)
			}
		}
		return h.announce(ctx, m, fmt.Sprintf("Job %s is being ended.", CleanLine(id, 20)))
	}
	return h.reply(ctx, m, textNoJobs)
}

// JobData is what the agent keeps with a job it began.
type JobData struct {
	Owner UserID `json:"owner"` // whose turn began it
	Call  string `json:"call"`
	// From is the account of theirs that asked, with whose authority a turn begins
	// that is told of the end; empty: the session's own platform's.
	From Person `json:"from,omitzero"`
}

// JobData is what is kept with a job that a call of the turn becomes.
func (t *Turn) JobData(call string) []byte {
	return mustJSON(JobData{Owner: t.owner.ID, Call: call, From: t.asker})
}

func jobOwner(j Job) string { return string(jobAsker(j).ID) }

// jobAsker is who asked for a job.
func jobAsker(j Job) Person {
	var d JobData
	if json.Unmarshal(j.Data, &d) != nil {
		return Person{}
	}
	if d.From.ID != d.Owner {
		return Person{ID: d.Owner}
	}
	return d.From
}
