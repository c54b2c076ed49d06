package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"coxswain/steer"
)

// buttonMark ends the data of a button, and behind it stands whose it is: turns and
// tickets of all sessions have the same numbers, and a chat has one after another
// (Routes). A button of the session whose own chat it is has neither. With nothing
// behind it, one means what is spoken to now: a page that shows just that says so.
const buttonMark = "@"

func markOf(lane, chat Key) string {
	if lane == chat {
		return ""
	}
	return buttonMark + lane.tag()
}

// deliverPress handles a button. Its data is verb:number and no authority: who
// pressed is checked against what the number means now (T32).
func (h *Hub) deliverPress(ctx context.Context, p Principal, m Message) error {
	data, mark, marked := strings.Cut(m.Button, buttonMark)
	verb, arg, _ := strings.Cut(data, ":")
	n, _ := strconv.ParseInt(arg, 10, 64)
	if verb == "pending" {
		return h.cmdPending(ctx, p, m, "")
	}
	if verb == "resume" {
		return h.cmdResume(ctx, p, m, arg)
	}
	if verb == verbMore { // of a meter, not of a session
		return h.deliverMore(ctx, p, m, arg)
	}
	if chat := m.written(p).Key; m.Button != data+markOf(m.Key, chat) && (!marked || mark != "") {
		return h.reply(ctx, m, textExpired) // of a session that is not spoken to here any more
	}
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if verb == "stop" {
		if n != lane.Turn || n == 0 {
			return h.reply(ctx, m, textExpired)
		}
		return h.stop(ctx, p, m, false)
	}
	if verb == "retry" {
		return h.retry(ctx, p, m, lane, n)
	}
	var entry *Entry
	for i := range lane.Slot {
		if lane.Slot[i].Ticket == n {
			entry = &lane.Slot[i]
		}
	}
	if entry == nil {
		return h.gone(ctx, m, m, n, "")
	}
	return h.change(ctx, p, m, lane, *entry, verb)
}

// change does to an entry what a button's verb says.
func (h *Hub) change(ctx context.Context, p Principal, m Message, lane Lane, entry Entry, verb string) (err error) {
	own := entry.Author == p.ID || p.Admin
	owner := lane.Turn != 0 && h.maySteer(lane.Owner, p.ID, p.Admin)
	var done bool
	switch verb {
	case "drop":
		if !own {
			return h.reply(ctx, m, textNotYours)
		}
		done, err = h.drop(ctx, m, entry)
	case "run", "queue":
		if !own {
			return h.reply(ctx, m, textNotYours)
		}
		done, err = h.reroute(ctx, m, lane, entry, steer.Queue)
	case "now":
		// The owner lets another's message in; nobody steers a foreign turn.
		if !owner {
			return h.reply(ctx, m, textNotSteer)
		}
		if decodeInput(entry).Retry != 0 {
			return h.reply(ctx, m, textExpired)
		}
		if len(decodeInput(entry).text()) > SteerMaxBytes {
			return h.reply(ctx, m, textLongSteer)
		}
		done, err = h.reroute(ctx, m, lane, entry, steer.Steer)
	default:
		return h.reply(ctx, m, textExpired)
	}
	if err == nil && !done {
		return h.reply(ctx, m, textNotPending)
	}
	return err
}

// Spent reports whether the button of a press that was delivered has had its
// effect, or can have none any more: it may be taken away. A button that somebody
// pressed in vain who may not press it is not spent, nor are those of the running
// view. An error means that it is not known.
func (h *Hub) Spent(ctx context.Context, m Message) (bool, error) {
	verb, arg, _ := strings.Cut(m.Button, ":")
	n, _ := strconv.ParseInt(arg, 10, 64)
	if verb == "stop" || verb == "pending" {
		return false, nil
	}
	if verb == verbMore {
		arg, _, _ = strings.Cut(arg, buttonMark)
		return h.spentMore(ctx, arg)
	}
	key, err := h.Routes.Lane(ctx, m.Key)
	if err != nil {
		return false, err
	}
	if verb == "resume" {
		return key.tag() == arg, nil
	}
	lane, err := h.Store.Load(ctx, key)
	if err != nil {
		return false, fmt.Errorf("load session: %w", err)
	}
	if verb == "retry" {
		if slices.ContainsFunc(lane.Slot, func(e Entry) bool { return decodeInput(e).Retry == n }) {
			return true, nil // it waits to be sent again
		}
		fates, err := h.Store.Fates(ctx, key, 0)
		if err != nil {
			return false, fmt.Errorf("read fates: %w", err)
		}
		return !slices.ContainsFunc(fates, func(f Fate) bool {
			return f.Turn == n && (f.State == FateFailed || f.State == FateStopped)
		}), nil
	}
	for _, e := range lane.Slot {
		if e.Ticket == n {
			switch verb { // it waits still
			case "drop":
				return false, nil
			case "run":
				return !e.Held, nil
			case "queue":
				return !e.Held && e.Want == steer.Queue, nil
			case "now":
				return e.Want == steer.Steer && e.Turn == lane.Turn, nil
			}
		}
	}
	return true, nil
}

// deliverReact handles a reaction on a message that waits: its author takes it
// back, the turn's owner lets it in. Anything else it means nothing, and
// nothing is said.
func (h *Hub) deliverReact(ctx context.Context, p Principal, m Message) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	e, ok := entryOf(lane, m.ID)
	if !ok {
		return nil
	}
	if e.Author == p.ID {
		_, err := h.drop(ctx, m, e)
		return err
	}
	in := decodeInput(e)
	if lane.Turn == 0 || e.Held || in.Retry != 0 || len(in.text()) > SteerMaxBytes || !h.maySteer(lane.Owner, p.ID, p.Admin) {
		return nil
	}
	_, err = h.reroute(ctx, m, lane, e, steer.Steer)
	return err
}

// gone answers what asks for an entry that does not wait any more: with done
// if m itself took it out, was cut off before its answer and is delivered
// again; its mark says so. at is m as the entry's session has it.
func (h *Hub) gone(ctx context.Context, m, at Message, ticket int64, done string) error {
	r, err := h.Store.Amend(ctx, Amend{Key: at.Key, Dedupe: at.Dedupe, Kind: AmendDrop, Ticket: ticket})
	if err != nil {
		return fmt.Errorf("look for the change: %w", err)
	}
	switch {
	case !r.Dup || !r.Done:
		return h.reply(ctx, m, textNotPending)
	case done == "":
		return nil
	}
	return h.announce(ctx, m, done)
}

// asideJob is the name of the stored job that is a question beside the turn.
// It is kept as a job so that a crash does not lose it; asked again it does no
// harm, for it has no tools.
const asideJob = "btw"

func (h *Hub) cmdBtw(ctx context.Context, p Principal, m Message, args string) error {
	if args == "" {
		return h.reply(ctx, m, textUsage(h.commands["btw"]))
	}
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	asked := 0
	for _, j := range lane.Jobs {
		asked += boolInt(j.Name == asideJob)
	}
	if asked >= asidesKept {
		return h.reply(ctx, m, textBtwMany)
	}
	m.Text = args
	in := Input{From: p.person(), Admin: p.Admin, Shared: !m.Private, Parts: []InputPart{partOf(m)}}
	data, err := json.Marshal(aside{Input: in, ReplyTo: replyTo(m), Asked: m.Interaction, Dedupe: m.Dedupe})
	if err != nil {
		return fmt.Errorf("encode question: %w", err)
	}
	r, err := h.Store.Post(ctx, Post{Key: m.Key, Dedupe: m.Dedupe, Add: []Job{{
		ID: "btw:" + string(m.ID), Name: asideJob, State: JobRunning, Owner: h.Nonce, Data: data, At: m.Received.UnixMilli(),
	}}})
	if err != nil {
		return fmt.Errorf("store question: %w", err)
	}
	h.nudge(m.Key, &r.Lane)
	return nil
}

// aside is the Data of a question's job.
type aside struct {
	Input   Input     `json:"input"`
	ReplyTo MessageID `json:"reply_to,omitempty"`
	Asked   string    `json:"asked,omitempty"` // Message.Interaction
	Dedupe  string    `json:"dedupe"`
}

// How many questions of a session are answered at once, and may wait.
const (
	asidesAtOnce = 2
	asidesKept   = 8
)

// stopAsides ends the answers being made (/stop, a shutdown).
func (a *actor) stopAsides() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.asking {
		cancel()
	}
}

func (a *actor) stopAside(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.asking[id]; cancel != nil {
		cancel()
	}
}

// asideOrphan is how old a question of another process is before it counts as one
// whose process died. Asked twice it is answered once, and costs a request more.
const asideOrphan = 30 * time.Second

// othersAside reports whether another process that shares the store is about to
// answer j.
func (h *Hub) othersAside(j Job, now time.Time) bool {
	if _, shared := WakerOf(h.Store); !shared {
		return false
	}
	return j.Owner != h.Nonce && now.Sub(time.UnixMilli(j.At)) < asideOrphan
}

// answerAsides starts an answer for each question that has none running.
func (a *actor) answerAsides(life context.Context, lane Lane) {
	if a.h.Draining() {
		a.stopAsides() // asked again by the next process
		return
	}
	for id := range a.asides {
		there := slices.ContainsFunc(lane.Jobs, func(j Job) bool { return j.ID == id })
		if !there {
			a.stopAside(id) // answered, or stopped at another process
		}
		if !there || a.halfStopped(id) {
			delete(a.asides, id)
		}
	}
	for _, j := range lane.Jobs {
		if j.Name != asideJob || a.asides[j.ID] || len(a.asides) >= asidesAtOnce || a.h.othersAside(j, lane.Now) {
			continue
		}
		var q aside
		if err := json.Unmarshal(j.Data, &q); err != nil {
			a.h.Log.ErrorContext(life, "stored question does not decode", "session", a.key.String(), "err", err)
			continue
		}
		rows, tail, err := a.sofar(life, lane)
		if err != nil {
			a.h.note(life, "read rows", err)
			continue
		}
		ctx, cancel := context.WithCancel(life)
		a.mu.Lock()
		// A lane read before the question was stored looks as if it had been
		// answered: its goroutine may still be at its end.
		ending := a.asking[j.ID] != nil
		if !ending {
			a.asking[j.ID] = cancel
		}
		a.mu.Unlock()
		if ending {
			cancel() // its end is a poke
			continue
		}
		a.asides[j.ID] = true
		a.jobs.Go(func() {
			a.answerAside(ctx, life, j, q, rows, tail)
			a.mu.Lock()
			if ctx.Err() != nil {
				a.cut[j.ID] = time.Now()
			}
			delete(a.asking, j.ID)
			a.mu.Unlock()
			cancel()
			a.poke(nil)
		})
	}
}

// halfStopped reports whether the answer to a stored question was ended, and yet the
// question stands there long after: who ended it could not store that (the store
// was away), and gave up. It is asked again.
func (a *actor) halfStopped(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.cut[id]
	if !ok || a.asking[id] != nil || time.Since(at) < 2*deliverTime {
		return false
	}
	delete(a.cut, id)
	return true
}

// sofar is what a question beside the turn is answered from.
func (a *actor) sofar(life context.Context, lane Lane) (rows []Row, tail string, err error) {
	if a.turn == nil {
		rows, err = a.rows(life, lane)
		return rows, "", err
	}
	// The running turn appends to these rows; what is there does not change.
	for _, tool := range a.turn.View().Tools {
		if tool.State == ToolRunning {
			tail = tool.Tail
		}
	}
	return a.h.history.get(a.key, lane.Gen), tail, nil
}

func (a *actor) answerAside(ctx, life context.Context, j Job, q aside, rows []Row, tail string) {
	text, err := a.h.Agent.Aside(ctx, a.key, rows, tail, q.Input, asidePayer{a.h, bill{lane: a.key, who: q.Input.From}})
	if ctx.Err() != nil {
		return // stopped, or asked again by the next process
	}
	switch {
	case errors.Is(err, ErrSpent):
		text = textBtwSpent
	case err != nil:
		a.h.Log.WarnContext(life, "aside failed", "session", a.key.String(), "err", err)
		text = textBtwFailed
	}
	j.Told = true
	outs := a.h.parts(Outgoing{Key: a.key, Kind: PartReply, Markdown: text, ReplyTo: q.ReplyTo, Interaction: q.Asked}, 0, "r:"+q.Dedupe)
	err = a.h.persist(life, "answer question", func(ctx context.Context) error {
		_, err := a.h.Store.Post(ctx, Post{Key: a.key, Dedupe: "r:" + q.Dedupe, Jobs: []Job{j}, Outs: outs})
		return err
	})
	if err == nil {
		a.h.Outbox.Nudge(a.key, nil)
	}
}
