package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"coxswain/steer"
)

// run runs the turn and stores its end. It is the turn's own goroutine.
func (t *Turn) run() ended {
	defer t.cancel(nil)
	if t.resumed {
		t.recall()
	}
	out := t.guarded()
	switch {
	case out.Err != nil:
		t.close(EndStopped)
		return ended{lost: true}
	case out.Parked:
		if err := t.h.Store.Release(t.life, t.lease); err != nil && !errors.Is(err, ErrFenced) {
			t.h.note(t.life, "release", err) // its lease runs out by itself
		}
		return ended{parked: true}
	}
	return t.finish(out)
}

// guarded runs the agent; a panic of it fails the turn and nothing else.
func (t *Turn) guarded() (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			t.h.Log.ErrorContext(t.life, "turn panicked", "session", t.a.key.String(), "turn", t.number, "panic", p)
			out = Outcome{End: EndFailed, Public: textBroken, Rows: t.pairs()}
		}
	}()
	return t.h.Agent.Run(t.ctx, t)
}

// pairs gives every open call of the turn's newest assistant row the result
// that its fate is unknown (I14).
func (t *Turn) pairs() []Row {
	var calls []Call
	done := map[string]bool{}
	for _, r := range t.rows[turnStart(t.rows, t.number):] {
		switch r.Type {
		case RowAssistant:
			var a AssistantRow
			if json.Unmarshal(r.Data, &a) == nil {
				calls = a.Calls
			}
		case RowTool:
			done[decodeTool(r).Call] = true
		}
	}
	var rows []Row
	for _, c := range calls {
		if !done[c.ID] {
			rows = append(rows, Row{Type: RowTool, Data: mustJSON(ToolRow{
				Call: c.ID, Name: c.Name, Body: bodyInterrupted, Failed: true, Unknown: true,
			})})
		}
	}
	return rows
}

// recall reads what people saw of the turn's messages before the crash.
func (t *Turn) recall() {
	for _, r := range t.rows[turnStart(t.rows, t.number):] {
		if r.Type == RowUser {
			u := DecodeUser(r)
			for _, in := range slices.Concat(u.Again, u.AgainNotes) {
				t.waited[in.Ticket] = true // people saw it fail
			}
		}
	}
	fates, err := t.h.Store.Fates(t.life, t.a.key, 64)
	if err != nil {
		t.h.note(t.life, "read fates", err)
		return
	}
	for _, f := range fates {
		if f.Waited {
			t.waited[f.Ticket] = true
		}
		if f.Waited && !f.State.Final() {
			t.h.Outbox.Sign(t.a.key, f) // the sign may have died with the process
		}
		if f.State == FateAttached && f.Turn == t.number {
			t.attached = append(t.attached, f)
		}
	}
}

// finish stores the end of the turn with all that follows from it, in one
// step: rows, what people are told, what became of their messages.
func (t *Turn) finish(out Outcome) ended {
	c := Commit{Rows: out.Rows, Phase: steer.PhaseIdle, End: true, HoldRest: out.HoldRest}
	row := AssistantRow{Text: out.Text, Private: out.Private, Model: out.Model, End: out.End}
	fate := FateAnswered
	switch out.End {
	case EndAnswered:
		c.Outs = t.outs(PartFinal, out.Text, "final")
	case EndStopped, EndReplaced:
		fate = FateStopped
		if out.Text == "" {
			row.Text = rowStopped
		} else {
			// What people saw of the answer stays, marked.
			c.Outs = t.outs(PartNotice, out.Text+"\n\n"+markInterrupted, "cut")
		}
	case EndFailed:
		fate = FateFailed
		for ticket, in := range t.inputs {
			if in.Retry == 0 {
				t.waited[ticket] = true // the sign stays when the notice is gone
			}
		}
		if out.Text == "" {
			row.Text = rowFailed
		} else {
			c.Outs = t.outs(PartNotice, out.Text+"\n\n"+markInterrupted, "cut")
		}
		c.Outs = append(c.Outs, t.failure(out)...)
	default:
		panic("a turn cannot end as " + string(out.End))
	}
	c.Rows = append(c.Rows, Row{Type: RowAssistant, Data: mustJSON(row)})
	tickets := make([]int64, 0, len(t.inputs))
	for ticket := range t.inputs {
		tickets = append(tickets, ticket)
	}
	slices.Sort(tickets)
	for _, ticket := range tickets {
		c.Fates = append(c.Fates, FateSet{Ticket: ticket, State: fate})
	}
	r, err := t.commit(t.life, c)
	if err != nil {
		t.close(EndStopped)
		return ended{lost: true}
	}
	if out.End == EndFailed {
		t.h.tells(t.a.key, out.Public)
	}
	if len(c.Outs) > 0 {
		t.h.Outbox.Nudge(t.a.key, r.Out)
	}
	for _, ticket := range tickets {
		if in := t.inputs[ticket]; in.Retry == 0 || t.waited[ticket] { // a retry stands for messages with signs of their own
			t.sign(in, fate, 0, t.waited[ticket])
		}
	}
	t.close(out.End)
	t.h.ended(out.End)
	return ended{more: r.More, waiting: r.Flags.Waiting > 0 || len(t.Over()) > 0 || t.jobs}
}

// outs cuts a text of the turn into parts. It hangs on the message it answers
// when other messages came between, and in groups always.
func (t *Turn) outs(kind PartKind, text, id string) []PartNew {
	return t.send(Outgoing{Kind: kind, Markdown: text}, id)
}

func (t *Turn) send(o Outgoing, id string) []PartNew {
	o.Key = t.a.key
	t.mu.Lock()
	between := t.waiting > 0
	t.mu.Unlock()
	for ticket := range t.inputs {
		between = between || t.waited[ticket] // others were written while it waited
	}
	if between || len(t.inputs) > 1 || t.a.key.Thread != "" || t.a.key.Chat != ChatID(t.owner.ID) {
		o.ReplyTo = t.asked
	}
	return t.h.parts(o, t.number, fmt.Sprintf("t:%d:%s", t.number, id))
}

// failure tells people that the turn failed, with a button to send it again. The
// same reason is written out at most once a minute in a session; in between a
// short word says so, silently, for every failure must be seen and be mended.
func (t *Turn) failure(out Outcome) []PartNew {
	o := Outgoing{Kind: PartNotice, Markdown: "⚠ " + out.Public}
	if t.h.toldLately(t.a.key, out.Public) {
		o.Markdown, o.Silent = "⚠ "+textSameReason, true
	}
	t.mu.Lock()
	waiting := t.waiting
	t.mu.Unlock()
	switch {
	case len(t.inputs) == 0:
		o.Markdown += " " + textOfJob
	case !out.HoldRest: // else an admin must do something first
		o.Buttons = []Button{{Text: buttonRetry, Data: fmt.Sprintf("retry:%d", t.number)}}
	case waiting > 0:
		o.Markdown += " " + textRestHeld
	}
	return t.send(o, "fail")
}

// Show changes the live view and hands the platform what progress lets it see.
// Any goroutine.
func (t *Turn) Show(f func(*View)) {
	t.mu.Lock()
	f(&t.view)
	t.view.Rev++
	t.view.Waiting = t.waiting
	v := t.view
	v.Tools = slices.Clone(v.Tools)
	v.Notes = slices.Clone(v.Notes)
	t.mu.Unlock()
	t.a.place.RLock()
	defer t.a.place.RUnlock()
	chat := t.h.Routes.Home(t.a.key)
	t.mu.Lock()
	left := t.chat
	t.chat = chat
	t.mu.Unlock()
	if left != chat { // whoever has moved it, this process has shown it there
		t.h.leaveChat(v, left)
	}
	plat := t.h.platform(t.a.key)
	if plat == nil {
		return // it is off here
	}
	v.Mark, v.Asked = markOf(t.a.key, chat), here(t.a.key, chat, v.Asked) // else it hangs on nothing here
	plat.Show(v.reduced(t.h.progressOf(chat)))
}

// ShowText adds to the text people see of the model's message; reset begins
// it anew.
func (t *Turn) ShowText(reset bool, text string) {
	t.mu.Lock()
	if reset {
		t.text.Reset() // earlier views keep the old buffer
	}
	t.text.WriteString(text)
	shown := t.text.String()
	if text != "" {
		t.first, t.spoke = false, true
		t.phase, t.view.Phase = steer.PhaseShowing, steer.PhaseShowing
	}
	t.mu.Unlock()
	t.Show(func(v *View) { v.Text, v.Notice = shown, "" })
}

// RequestOver says that the first request is answered: nothing joins it now.
func (t *Turn) RequestOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.first = false
}

// View is the newest live view. Any goroutine.
func (t *Turn) View() View {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.view
	v.Tools = slices.Clone(v.Tools)
	v.Notes = slices.Clone(v.Notes)
	return v
}

func (t *Turn) close(end EndKind) {
	t.Show(func(v *View) { v.Done, v.End, v.Phase, v.Ended = true, end, steer.PhaseIdle, time.Now() })
}

// toldLately reports whether an error was told in a session within a minute.
func (h *Hub) toldLately(key Key, public string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.told[toldKey{key, public}]
	return ok && time.Since(at) < time.Minute
}

// tells notes that an error is told. It is called when the end of the turn is
// stored: a runner that was fenced off has told nobody, and who ends the turn after
// it, here too, must say why it failed.
func (h *Hub) tells(key Key, public string) {
	if h.toldLately(key, public) {
		return // the short word: the minute is the first one's
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told == nil || len(h.told) > 4096 {
		h.told = map[toldKey]time.Time{}
	}
	h.told[toldKey{key, public}] = time.Now()
}

type toldKey struct {
	key    Key
	public string
}

func (h *Hub) ended(end EndKind) {
	if end == EndFailed {
		h.failed.Add(1)
	}
	h.turns.Add(1)
}

// JobEnded stores the end of a background job; whoever must know is woken.
// It waits while the store is away.
func (h *Hub) JobEnded(ctx context.Context, key Key, j Job) {
	j.State = JobEnded
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(h.life, func() { stop(context.Cause(h.life)) })()
	var r Posted
	err := h.persist(ctx, "job end", func(ctx context.Context) error {
		var err error
		r, err = h.Store.Post(ctx, Post{Key: key, Jobs: []Job{j}})
		return err
	})
	if err == nil {
		h.nudge(key, &r.Lane)
	}
}

// Log logs a fault of the turn that people are told of in general words only.
func (t *Turn) Log(what string, err error) {
	t.h.Log.ErrorContext(t.life, "turn failed", "step", what, "session", t.a.key.String(), "turn", t.number, "err", err)
}
