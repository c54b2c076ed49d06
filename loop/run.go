package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// crashes is how often a turn may be taken over before it is closed: a turn
// that kills its process must not do so for ever (F36). One that waits for a
// budget, for a day perhaps, is not what did it.
const crashes = 3

// A runner runs one turn.
type runner struct {
	l        *Loop
	t        *session.Turn
	tr       *transcript
	clean    *steer.Sanitizer
	began    time.Time
	requests int
	cuts     int  // messages cut off by the output limit, in a row
	noTools  bool // the step or time limit was reached: one last request
	breaker  breaker
}

// Run implements session.Agent.
func (l *Loop) Run(ctx context.Context, t *session.Turn) session.Outcome {
	r := &runner{l: l, t: t, tr: l.take(t.Key()), began: time.Now()}
	r.requests = t.StepsDone() // of an earlier runner too: limits are the turn's
	defer func() { l.put(t.Key(), r.tr) }()
	if err := l.render(r.tr, t.Gen(), t.Rows()); err != nil {
		return r.broken(err)
	}
	r.clean = r.tr.clean
	t.Show(func(v *session.View) { v.Steps = l.Steps })
	if t.Attempts() >= crashes && !t.Stalled(ctx, r.cost) {
		return session.Outcome{End: session.EndFailed, Public: publicCrashed, Rows: r.pair(bodyInterrupted, bodyNeverRun)}
	}
	if t.Resumed() {
		if out := r.resume(ctx); out != nil {
			return *out
		}
	}
	for {
		if out := r.step(ctx); out != nil {
			return *out
		}
	}
}

// broken ends a turn whose stored rows cannot be rendered.
func (r *runner) broken(err error) session.Outcome {
	r.t.Log("render", err)
	return session.Outcome{End: session.EndFailed, Public: publicBroken, Rows: r.pair(bodyInterrupted, bodyNeverRun)}
}

// step is one model request and the calls it asks for. A non-nil outcome ends
// the turn.
func (r *runner) step(ctx context.Context) *session.Outcome {
	if out := r.ready(ctx); out != nil {
		return out
	}
	reply, shown, err := r.request(ctx)
	switch {
	case errors.Is(err, session.ErrJoined):
		return nil // the loop begins again with the fold row
	case err != nil:
		return r.failed(ctx, err, shown)
	}
	r.t.RequestOver()
	reply.Text, _ = r.clean.Sanitize(reply.Text)
	if reply.Finish == FinishFilter {
		return &session.Outcome{End: session.EndFailed, Public: publicFilter}
	}
	if len(reply.Calls) == 0 || r.noTools {
		text := reply.Text
		if strings.TrimSpace(text) == "" {
			if !r.noTools {
				return &session.Outcome{End: session.EndFailed, Public: publicEmpty}
			}
			text = publicSteps // asked for a report, and silent
		}
		return &session.Outcome{End: session.EndAnswered, Text: text, Private: reply.Private, Model: r.tr.p.Model.Name()}
	}
	return r.batch(ctx, reply)
}

// ready brings everything to the state in which a request may go out: drained,
// joined, rendered.
func (r *runner) ready(ctx context.Context) *session.Outcome {
	if r.t.Parking() {
		return &session.Outcome{Parked: true}
	}
	if ctx.Err() != nil {
		return r.failed(ctx, context.Cause(ctx), "")
	}
	if _, err := r.t.Join(ctx); err != nil {
		return &session.Outcome{Err: err}
	}
	// A tool row that was stored without its drain (parked, or the process
	// died in between) gets it now; one whose steers are in is a steer row.
	if r.t.MayDrain() && r.t.Undrained() {
		if _, err := r.t.Commit(ctx, session.Step{Phase: steer.PhaseModel, Drain: true}); err != nil {
			return &session.Outcome{Err: err}
		}
	}
	if err := r.l.render(r.tr, r.t.Gen(), r.t.Rows()); err != nil {
		out := r.broken(err)
		return &out
	}
	return nil
}

// request sends one model request and shows what comes. shown is the text
// people saw, whatever became of it.
func (r *runner) request(ctx context.Context) (reply Reply, shown string, err error) {
	req, done := r.t.Request(ctx)
	defer done()
	if r.requests++; r.requests > 1 || r.t.Resumed() {
		r.t.SetPhase(steer.PhaseModel)
	}
	var raw strings.Builder
	dirty, next := false, 0
	step := r.requests
	r.t.Show(func(v *session.View) { v.Step, v.Text, v.Notice = max(v.Step+1, step), "", "" })
	r.t.ShowText(true, "")
	on := func(d Delta) {
		switch {
		case d.Silent > 0:
			r.t.Show(func(v *session.View) { v.Notice = noticeSilent(d.Attempt, d.Attempts) })
			return
		case d.Reset:
			raw.Reset()
			shown, dirty = "", false
			r.t.ShowText(true, "")
			return
		}
		raw.WriteString(d.Text)
		// A trace of the key is cut out of what is shown too (I8); once one was
		// found every frame is made anew. A trace ends in what is new, so its
		// neighbourhood is enough to find it.
		if !dirty {
			_, hits := r.clean.Sanitize(raw.String()[max(0, raw.Len()-len(d.Text)-traceSpan):])
			dirty = hits > 0
		}
		if dirty {
			// Seldom: each frame costs the whole text. The end is always whole.
			if raw.Len() >= next {
				next = raw.Len() + raw.Len()/4 + 256
				shown, _ = r.clean.Sanitize(raw.String())
				r.t.ShowText(true, shown)
			}
			return
		}
		shown = raw.String()
		r.t.ShowText(false, d.Text)
	}
	paid, err := r.afford(req)
	accepted := false
	if err == nil {
		reply, err = r.tr.p.Model.Stream(req, Request{
			System: r.tr.head.System, Tools: r.tr.head.Tools, Messages: r.tr.msgs, NoTools: r.noTools, Session: r.t.Key().String(),
		}, on, func() { accepted = true; r.t.Accepted() })
		r.tr.used(reply.Usage)
		r.tr.p.settle(paid, reply.Usage, accepted, err)
	}
	if dirty {
		shown, _ = r.clean.Sanitize(raw.String())
	}
	if err != nil && req.Err() != nil && ctx.Err() == nil {
		err = context.Cause(req) // called back by the session: joined or parked
	}
	return reply, shown, err
}

// traceSpan is more bytes than the shortest trace of a key can span: 12 digits
// with gaps of 32 runes, escaped. The finished text is sanitised whole.
const traceSpan = 4096

// failed turns the end of a request into the end of the turn.
func (r *runner) failed(ctx context.Context, err error, shown string) *session.Outcome {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	switch {
	case errors.Is(err, session.ErrParked):
		return &session.Outcome{Parked: true}
	case errors.Is(err, session.ErrStopped):
		return &session.Outcome{End: session.EndStopped, Text: shown, Rows: r.pair(bodyStopped, bodyStopped)}
	case errors.Is(err, session.ErrReplaced):
		return &session.Outcome{End: session.EndReplaced, Text: shown, Rows: r.pair(bodyStopped, bodyStopped)}
	}
	var me *ModelError
	if !errors.As(err, &me) {
		return &session.Outcome{Err: err} // fenced, or the process ends
	}
	hold := me.Kind == ErrAuth || me.Kind == ErrQuota || me.Kind == ErrUnknownModel
	partial, _ := r.clean.Sanitize(me.Partial)
	return &session.Outcome{End: session.EndFailed, Public: me.Public, Text: partial, HoldRest: hold}
}

// pair gives each open call of the newest assistant row its one result (I14):
// the first may have begun, the others have not.
func (r *runner) pair(first, rest string) []session.Row {
	var rows []session.Row
	for i, c := range r.open() {
		body := rest
		if i == 0 {
			body = first
		}
		unknown := body == bodyInterrupted
		rows = append(rows, toolRow(session.ToolRow{Call: c.ID, Name: c.Name, Body: body, Failed: true, NotRun: !unknown, Unknown: unknown}))
	}
	return rows
}

// open lists the calls of this turn's newest assistant row without a result.
func (r *runner) open() []session.Call { return openCalls(r.t.Rows()) }

func toolRow(t session.ToolRow) session.Row {
	data, err := json.Marshal(t)
	if err != nil {
		panic("loop: a tool row does not encode: " + err.Error())
	}
	return session.Row{Type: session.RowTool, Data: data}
}

// resume goes on with a turn of a dead runner: calls that may have begun are
// not run again, unless they have no effect (I6).
func (r *runner) resume(ctx context.Context) *session.Outcome {
	open := r.open()
	if len(open) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return r.failed(ctx, context.Cause(ctx), "") // stopped or replaced before it was taken over
	}
	var rows []session.Row
	var jobs []session.Job
	stored := func(bool) {}
	if spec, ok := r.tr.p.specs[open[0].Name]; ok && spec.Pure && open[0].Bad == "" {
		row, out := r.call(ctx, open[0])
		if out != nil {
			return out
		}
		rows, jobs, stored = append(rows, row.rows()...), row.jobs, row.stored
		open = open[1:]
		for _, c := range open {
			rows = append(rows, toolRow(session.ToolRow{Call: c.ID, Name: c.Name, Body: bodyNeverRun, Failed: true, NotRun: true}))
		}
	} else {
		rows = r.pair(bodyInterrupted, bodyNeverRun)
	}
	_, err := r.t.Commit(ctx, session.Step{Rows: rows, Phase: steer.PhaseModel, Drain: true, Jobs: jobs})
	stored(err == nil)
	if err != nil {
		return &session.Outcome{Err: err}
	}
	return nil
}
