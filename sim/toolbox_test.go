package sim

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"coxswain/loop"
	"coxswain/session"
)

// toolArgs are the arguments of the scripted tools.
type toolArgs struct {
	Do   string `json:"do"`
	For  string `json:"for"`
	Dies string `json:"dies,omitempty"`
	ID   string `json:"id,omitempty"` // of the job that is polled
}

// toolbox runs scripted tools: a call takes as long as its arguments say, and
// what it did is remembered, in all lives of the process.
type toolbox struct {
	w *world

	mu      sync.Mutex
	effects map[string]int      // call id → times run
	jobs    map[string]*running // id → job
	ended   map[string]string   // id → what a job that is over gave
	by      map[*process]int    // calls running
	bad     []string            // calls of who may not begin them
}

type running struct {
	box     *toolbox
	proc    *process // that runs it
	call    loop.ToolCall
	args    toolArgs
	began   time.Time
	done    chan struct{}
	stop    chan struct{}
	kill    func() // closes stop
	result  loop.ToolResult
	adopted bool
	over    func(loop.ToolResult, bool)
	job     string
}

func (b *toolbox) Specs() []loop.ToolSpec {
	return []loop.ToolSpec{
		{Name: "shell", Description: "run", Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "read", Description: "read", Schema: json.RawMessage(`{"type":"object"}`), Pure: true},
		{Name: "poll", Description: "poll", Schema: json.RawMessage(`{"type":"object"}`), Polls: true},
	}
}

// A toolPort is the tools of one process. What they did is remembered for all.
type toolPort struct {
	*toolbox
	proc *process
}

func (o toolPort) Start(ctx context.Context, c loop.ToolCall) loop.Running {
	return o.start(ctx, o.proc, c)
}

func (b *toolbox) start(ctx context.Context, proc *process, c loop.ToolCall) loop.Running {
	r := &running{box: b, proc: proc, call: c, began: time.Now(), done: make(chan struct{}), stop: make(chan struct{})}
	r.kill = sync.OnceFunc(func() { close(r.stop) })
	if err := json.Unmarshal([]byte(c.Call.Args), &r.args); err != nil {
		panic(err)
	}
	took, err := time.ParseDuration(r.args.For)
	if err != nil {
		panic(err)
	}
	owner := proc.stranger(c.Key.String())
	b.mu.Lock()
	b.effects[c.Call.ID]++
	b.by[proc]++
	if owner != "" {
		b.bad = append(b.bad, "I4: "+owner+" runs "+c.Key.String()+", and "+proc.nonce+" begins a call")
	}
	b.mu.Unlock()
	b.w.logIn(c.Key, "tool%s %s %q%s begins", where(c.Key), c.Call.Name, r.args.Do, proc.at())
	proc.tools.Go(func() { r.run(ctx, took) })
	return r
}

func (r *running) run(ctx context.Context, took time.Duration) {
	t := time.NewTimer(took)
	defer t.Stop()
	done := ctx.Done()
	for {
		select {
		case <-t.C:
			body := r.args.Do + " ok"
			if r.call.Call.Name == "poll" {
				body = r.box.poll(r.args.ID)
			}
			r.end(loop.ToolResult{Body: body}, "ends")
			return
		case <-r.stop:
			r.end(loop.ToolResult{Body: "killed", Failed: true}, "is killed")
			return
		case <-done:
			r.box.mu.Lock()
			adopted := r.adopted
			r.box.mu.Unlock()
			if adopted {
				done = r.proc.dead // a job lives as long as its process
				select {
				case <-done:
				default:
					continue
				}
			}
			r.die()
			r.end(loop.ToolResult{Body: "killed", Failed: true}, "is killed")
			return
		}
	}
}

// die takes as long as the call takes to die.
func (r *running) die() {
	if r.args.Dies == "" {
		return
	}
	d, err := time.ParseDuration(r.args.Dies)
	if err != nil {
		panic(err)
	}
	time.Sleep(d)
}

// poll is what a job that is over gave.
func (b *toolbox) poll(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if body, ok := b.ended[id]; ok {
		return "ended: " + body
	}
	return "still running"
}

func (r *running) end(res loop.ToolResult, how string) {
	r.box.mu.Lock()
	r.result = res
	r.box.by[r.proc]--
	over := r.over
	delete(r.box.jobs, r.job)
	if r.job != "" {
		r.box.ended[r.job] = res.Body
	}
	close(r.done)
	r.box.mu.Unlock()
	select {
	case <-r.proc.dead:
		return
	default:
	}
	r.box.w.logIn(r.call.Key, "tool%s %s %q %s", where(r.call.Key), r.call.Call.Name, r.args.Do, how)
	if over != nil {
		over(res, how == "is killed") // who kills needs no waking
	}
}

func (r *running) Done() <-chan struct{}   { return r.done }
func (r *running) Result() loop.ToolResult { return r.result }
func (r *running) Tail() string            { return r.args.Do + " so far" }

func (b *toolbox) Adopt(_ session.Key, id string, _ int64, run loop.Running, over func(loop.ToolResult, bool)) bool {
	r := run.(*running)
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-r.done:
		return false
	default:
	}
	r.adopted, r.over, r.job = true, over, id
	b.jobs[id] = r
	return true
}

func (o toolPort) Kill(_ session.Key, id string) {
	o.mu.Lock()
	r := o.jobs[id]
	mine := r != nil && r.proc == o.proc
	o.mu.Unlock()
	if mine {
		r.kill() // by several at once
		<-r.done
	}
}

func (o toolPort) KillAll(session.Key) {
	o.mu.Lock()
	var ids []string
	for id := range o.jobs {
		ids = append(ids, id)
	}
	o.mu.Unlock()
	for _, id := range ids {
		o.Kill(session.Key{}, id)
	}
}
