package loop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// batch stores the model's message and runs its calls one after another. The
// commit of the last row is the drain point of the next request.
func (r *runner) batch(ctx context.Context, reply Reply) *session.Outcome {
	for i, c := range reply.Calls {
		switch _, hits := r.clean.Sanitize(c.Args + "\n" + c.Name); {
		case hits > 0:
			// A key in arguments is on its way out of the gateway: refused, and
			// not stored either.
			reply.Calls[i].Args, reply.Calls[i].Bad, reply.Calls[i].Private = "{}", bodyKeyInArgs, nil
			reply.Calls[i].Name, _ = r.clean.Sanitize(c.Name)
		case reply.Cut:
			reply.Calls[i].Bad = bodyCut
		}
	}
	if reply.Cut {
		if r.cuts++; r.cuts > 2 {
			return &session.Outcome{End: session.EndFailed, Public: publicCut}
		}
	} else {
		r.cuts = 0
	}
	data, err := json.Marshal(session.AssistantRow{Text: reply.Text, Calls: reply.Calls, Private: reply.Private, Model: r.tr.p.Model.Name()})
	if err != nil {
		return &session.Outcome{Err: fmt.Errorf("encode assistant row: %w", err)}
	}
	step := session.Step{Rows: []session.Row{{Type: session.RowAssistant, Data: data}}, Phase: steer.PhaseTools, Say: reply.Text}
	if _, err := r.t.Commit(ctx, step); err != nil {
		return &session.Outcome{Err: err}
	}
	limit := ""
	switch {
	case r.l.Steps > 0 && r.requests >= r.l.Steps:
		limit = bodySteps
	case r.l.Time > 0 && time.Since(r.began) >= r.l.Time:
		limit = bodyTime
	}
	r.noTools = limit != ""
	return r.calls(ctx, reply.Calls, limit)
}

// callsMost is how many calls of one message are run: more is a model that runs
// wild, and each costs a row.
const callsMost = 128

// calls runs a batch. Each call gets exactly one row (I14); those that are not
// started say why.
func (r *runner) calls(ctx context.Context, calls []session.Call, limit string) *session.Outcome {
	var rest []session.Row // rows of calls that are not started
	for i, c := range calls {
		skip := r.skip(ctx, c, limit)
		if i >= callsMost && limit == "" {
			skip = bodyMany
		}
		if skip != "" {
			rest = append(rest, toolRow(session.ToolRow{Call: c.ID, Name: c.Name, Body: skip, Failed: true, NotRun: true}))
			r.breaker.add(c, skip)
			r.showSkipped(c)
			continue
		}
		row, out := r.call(ctx, c)
		if out != nil {
			return r.cutOff(out, rest)
		}
		r.breaker.add(c, row.result.Body)
		last := i == len(calls)-1
		if last && r.breaker.repeats() {
			return &session.Outcome{End: session.EndFailed, Public: publicLoop, Rows: append(rest, row.rows()...)}
		}
		s := session.Step{Rows: append(rest, row.rows()...), Phase: steer.PhaseTools, Jobs: row.jobs, Files: r.files(row)}
		rest = nil
		if last && !r.t.Parking() {
			s.Drain, s.Phase = true, steer.PhaseModel
		}
		if _, err := r.t.Commit(ctx, s); err != nil {
			row.stored(false)
			return &session.Outcome{Err: err}
		}
		row.stored(true)
	}
	if len(rest) > 0 {
		if r.breaker.repeats() {
			return &session.Outcome{End: session.EndFailed, Public: publicLoop, Rows: rest}
		}
		s := session.Step{Rows: rest, Phase: steer.PhaseModel, Drain: !r.t.Parking()}
		if _, err := r.t.Commit(ctx, s); err != nil {
			return &session.Outcome{Err: err}
		}
	}
	return nil
}

// files are those that a call sends, with captions fit to be shown (I8).
func (r *runner) files(row callRow) []session.File {
	files := slices.Clone(row.result.Files)
	for i := range files {
		files[i].Caption, _ = r.clean.Sanitize(files[i].Caption)
		files[i].Name, _ = r.clean.Sanitize(files[i].Name)
	}
	return files
}

// cutOff puts the rows of skipped calls before those of an outcome: results
// stand in call order.
func (r *runner) cutOff(out *session.Outcome, rest []session.Row) *session.Outcome {
	if out.End == "" {
		return out
	}
	have := map[string]bool{}
	for _, row := range rest {
		have[session.DecodeTool(row).Call] = true
	}
	for _, row := range out.Rows {
		if !have[session.DecodeTool(row).Call] {
			rest = append(rest, row)
		}
	}
	out.Rows = rest
	return out
}

// skip says why a call must not start, "" if it may.
func (r *runner) skip(ctx context.Context, c session.Call, limit string) string {
	_, known := r.tr.p.specs[c.Name]
	switch {
	case limit != "":
		return limit
	case c.Bad != "":
		return c.Bad
	case !known:
		return bodyUnknownTool(session.CleanLine(c.Name, 60), r.tr.p.names)
	case r.t.Parking():
		return bodyNeverRun
	case r.l.SkipUnstarted && r.t.Steers() > 0:
		return bodySteered
	}
	return ""
}

// A callRow is what a call that was started comes to.
type callRow struct {
	row    session.ToolRow
	result ToolResult
	jobs   []session.Job
	stored func(ok bool) // says whether the row is in the store
}

func (c callRow) rows() []session.Row { return []session.Row{toolRow(c.row)} }

// call starts a call and waits for its result, or for the moment in which it
// gives way to a steer and goes on as a job. A non-nil outcome ends the turn.
func (r *runner) call(ctx context.Context, c session.Call) (callRow, *session.Outcome) {
	tc := ToolCall{Call: c, Key: r.t.Key(), Turn: r.t.Number(), Person: r.t.Owner(), Admin: r.t.Admin(), Sends: r.t.SendsFiles(), SendMost: r.t.FileMost()}
	// Last of all: what stands above may ask the store, and take its time.
	if err := r.t.Guard(ctx); err != nil {
		if ctx.Err() != nil {
			return callRow{}, r.failed(ctx, err, "")
		}
		return callRow{}, &session.Outcome{Err: err}
	}
	began := time.Now()
	run := r.l.Tools.Start(ctx, tc)
	r.showStarted(c, began)
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	yield := time.NewTimer(time.Hour)
	defer yield.Stop()
	r.armYield(yield, began)
	for {
		select {
		case <-run.Done():
			return r.result(ctx, c, run, began)
		case <-ctx.Done():
			<-run.Done() // the toolbox kills it at once
			return r.result(ctx, c, run, began)
		case <-r.t.Bell():
			r.armYield(yield, began)
		case <-tick.C:
			r.showTail(c, run.Tail())
		case <-yield.C:
			if r.t.Steers() == 0 {
				continue
			}
			row, ok := r.adopt(c, run, began)
			if !ok {
				continue // it ended in this moment: its result counts
			}
			return row, nil
		}
	}
}

// tailEvery is how often people see new output of a running call.
const tailEvery = 500 * time.Millisecond

// armYield sets the timer at which a call gives way: at once if a steer waits
// and the call has run long enough.
func (r *runner) armYield(timer *time.Timer, began time.Time) {
	if r.l.YieldAfter > 0 && r.t.Steers() > 0 {
		timer.Reset(max(0, r.l.YieldAfter-time.Since(began)))
	}
}

// result makes the row of a call that is over, or the outcome of a turn that
// was cut off in it.
func (r *runner) result(ctx context.Context, c session.Call, run Running, began time.Time) (callRow, *session.Outcome) {
	res := run.Result()
	took := time.Since(began)
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, session.ErrStopped) || errors.Is(cause, session.ErrReplaced) {
			body, _ := r.clean.Sanitize(bodyKilled(run.Tail()))
			out := r.failed(ctx, cause, "")
			for k, row := range out.Rows {
				if t := session.DecodeTool(row); t.Call == c.ID {
					out.Rows[k] = toolRow(session.ToolRow{Call: c.ID, Name: c.Name, Body: body, Stopped: true})
				}
			}
			r.showEnded(c, took, true) // it was cut off
			return callRow{}, out
		}
		return callRow{}, r.failed(ctx, cause, "")
	}
	row := callRow{result: res, stored: func(bool) {}}
	body := res.Body
	told := r.polled(c)
	for _, j := range r.t.Over() {
		if j.ID != told {
			body += "\n\n" + fmt.Sprintf("[background job %s (%s) is over: %s]\n%s", j.ID, j.Name, j.State, j.Body)
		}
		j.Told = true
		row.jobs = append(row.jobs, j)
	}
	body, _ = r.clean.Sanitize(body)
	row.row = session.ToolRow{Call: c.ID, Name: c.Name, Body: body, Failed: res.Failed}
	r.showEnded(c, took, res.Failed)
	return row, nil
}

// polled is the job whose end this call's result tells, if it was such a call.
func (r *runner) polled(c session.Call) string {
	if !r.tr.p.specs[c.Name].Polls {
		return ""
	}
	var args struct {
		ID string `json:"id"`
	}
	if json.Unmarshal([]byte(c.Args), &args) != nil {
		return ""
	}
	return args.ID
}

// adopt turns a running call into a background job. The row that names the job
// and the job's record are one commit; until that is stored, the job's end
// waits.
func (r *runner) adopt(c session.Call, run Running, began time.Time) (callRow, bool) {
	key := r.t.Key()
	id := fmt.Sprintf("j%d-%d", r.t.Number(), len(r.t.Rows())+1) // the seq of its row: unique also after a resume
	job := session.Job{
		ID: id, Turn: r.t.Number(), Owner: r.t.Nonce(), Name: c.Name + " " + session.CleanLine(r.brief(c), 60),
		State: session.JobRunning, Data: r.t.JobData(c.ID), At: began.UnixMilli(),
	}
	stored := make(chan bool, 1)
	clean := r.clean
	over := func(res ToolResult, polled bool) {
		if !<-stored {
			return
		}
		end := job
		end.Body, _ = clean.Sanitize(res.Body)
		end.Told = polled
		r.l.JobEnded(key, end)
	}
	tail := run.Tail()
	if !r.l.Tools.Adopt(key, id, r.t.Number(), run, over) {
		return callRow{}, false
	}
	body, _ := r.clean.Sanitize(bodyJob(tail, id, time.Since(began)))
	r.showJob(c)
	return callRow{
		row:    session.ToolRow{Call: c.ID, Name: c.Name, Body: body, Job: id},
		result: ToolResult{Body: id}, jobs: []session.Job{job},
		stored: func(ok bool) { stored <- ok },
	}, true
}

// A breaker notices a model that goes in circles: the same calls with the same
// arguments and the same results in more than 5 of the last 10 steps. Polling
// that shows something new is no circle; a tool that does not exist, asked for
// again and again, is one.
type breaker struct {
	step hash.Hash // of the calls of this step and what they gave
	last [10][sha256.Size]byte
	n    int // steps so far
}

// add takes note of one call of the step.
func (b *breaker) add(c session.Call, result string) {
	if b.step == nil {
		b.step = sha256.New()
	}
	fmt.Fprintf(b.step, "%q %q %q\n", c.Name, c.Args, result)
}

// repeats ends the step and reports whether it is one too many.
func (b *breaker) repeats() bool {
	if b.step == nil {
		return false
	}
	sum := [sha256.Size]byte(b.step.Sum(nil))
	b.step.Reset()
	b.last[b.n%len(b.last)] = sum
	b.n++
	same := 0
	for _, s := range b.last[:min(b.n, len(b.last))] {
		if s == sum {
			same++
		}
	}
	return same > 5
}
