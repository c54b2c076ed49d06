package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"coxswain/loop"
	"coxswain/session"
)

// A reply is what the scripted model does with one request.
type reply struct {
	calls []scriptCall
	say   string
	first time.Duration // until the first byte
	talk  time.Duration // from the first byte to the end
	err   *loop.ModelError
	hang  bool // never answers
}

type scriptCall struct {
	tool string
	arg  string
	took time.Duration
}

// model answers requests from a script, or by a rule; it keeps every request.
type model struct {
	w *world

	mu     sync.Mutex
	script []reply
	rule   func(req request) reply // when the script is used up
	reqs   []request
	ids    int

	dirty    bool // mutation: the newest key gets into what is sent
	restless bool // mutation: equal messages are not equal bytes
	key      string
	encoded  int
}

// request is one captured model request.
type request struct {
	session string
	system  string
	msgs    []json.RawMessage
	at      time.Time
	noTools bool
	life    int  // of the process that sent it
	first   bool // got its first byte
	done    bool
}

func (m *model) Name() string { return "scripted" }

type wireMsg struct {
	Role    string         `json:"role"`
	Content string         `json:"content"`
	Calls   []session.Call `json:"calls,omitempty"`
	CallID  string         `json:"call_id,omitempty"`
}

func (m *model) Encode(w loop.Wire) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := strings.Index(w.Text, "[[end-gateway-note key="); w.Role == "system" && i >= 0 {
		m.key = w.Text[i+len("[[end-gateway-note key="):][:27]
	}
	if m.dirty && w.Role == "assistant" {
		w.Text += m.key
	}
	if m.encoded++; m.restless && w.Role != "system" {
		w.Text += fmt.Sprint(m.encoded)
	}
	return json.Marshal(wireMsg{w.Role, w.Text, w.Calls, w.CallID})
}

func decodeMsg(raw json.RawMessage) wireMsg {
	var msg wireMsg
	if err := json.Unmarshal(raw, &msg); err != nil {
		panic(err)
	}
	return msg
}

func (m *model) Stream(ctx context.Context, r loop.Request, on func(loop.Delta), accepted func()) (loop.Reply, error) {
	m.mu.Lock()
	req := request{session: r.Session, system: string(r.System), msgs: append([]json.RawMessage(nil), r.Messages...), at: time.Now(), noTools: r.NoTools, life: m.w.life}
	m.reqs = append(m.reqs, req)
	n := len(m.reqs) - 1
	var rep reply
	switch {
	case len(m.script) > 0:
		rep = m.script[0]
		m.script = m.script[1:]
	case m.rule != nil:
		rep = m.rule(req)
	default:
		rep = reply{say: "(no script left)"}
	}
	m.mu.Unlock()
	m.w.logRequest(n)
	if rep.hang {
		<-ctx.Done()
		return loop.Reply{}, context.Cause(ctx)
	}
	if err := m.wait(ctx, rep.first); err != nil {
		return loop.Reply{}, err
	}
	if rep.err != nil && rep.say == "" {
		return loop.Reply{}, rep.err
	}
	accepted()
	m.mu.Lock()
	m.reqs[n].first = true
	m.mu.Unlock()
	words := strings.SplitAfter(rep.say, " ")
	for _, word := range words {
		if word == "" {
			continue
		}
		on(loop.Delta{Text: word})
		if err := m.wait(ctx, rep.talk/time.Duration(len(words))); err != nil {
			return loop.Reply{}, err
		}
	}
	if rep.err != nil {
		e := *rep.err
		e.Partial = rep.say
		return loop.Reply{}, &e
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reqs[n].done = true
	out := loop.Reply{Text: rep.say}
	for _, c := range rep.calls {
		m.ids++
		args, err := json.Marshal(toolArgs{c.arg, c.took.String()})
		if err != nil {
			panic(err)
		}
		out.Calls = append(out.Calls, session.Call{ID: fmt.Sprintf("call%05d", m.ids), Name: c.tool, Args: string(args)})
		out.Finish = loop.FinishTools
	}
	return out, nil
}

func (m *model) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errScripted = errors.New("scripted failure")

// toolArgs are the arguments of the scripted tools.
type toolArgs struct {
	Do  string `json:"do"`
	For string `json:"for"`
}

// toolbox runs scripted tools: a call takes as long as its arguments say, and
// what it did is remembered, in all lives of the process.
type toolbox struct {
	w *world

	mu      sync.Mutex
	effects map[string]int      // call id → times run
	jobs    map[string]*running // id → job
}

type running struct {
	box     *toolbox
	call    loop.ToolCall
	args    toolArgs
	began   time.Time
	done    chan struct{}
	stop    chan struct{}
	result  loop.ToolResult
	adopted bool
	over    func(loop.ToolResult, bool)
	job     string
}

func (b *toolbox) Specs() []loop.ToolSpec {
	return []loop.ToolSpec{
		{Name: "shell", Description: "run", Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "read", Description: "read", Schema: json.RawMessage(`{"type":"object"}`), Pure: true},
	}
}

func (b *toolbox) Start(ctx context.Context, c loop.ToolCall) loop.Running {
	r := &running{box: b, call: c, began: time.Now(), done: make(chan struct{}), stop: make(chan struct{})}
	if err := json.Unmarshal([]byte(c.Call.Args), &r.args); err != nil {
		panic(err)
	}
	took, err := time.ParseDuration(r.args.For)
	if err != nil {
		panic(err)
	}
	b.mu.Lock()
	b.effects[c.Call.ID]++
	b.mu.Unlock()
	b.w.logf("tool %s %q begins", c.Call.Name, r.args.Do)
	b.w.wg.Add(1)
	go r.run(ctx, took)
	return r
}

func (r *running) run(ctx context.Context, took time.Duration) {
	defer r.box.w.wg.Done()
	t := time.NewTimer(took)
	defer t.Stop()
	done := ctx.Done()
	for {
		select {
		case <-t.C:
			r.end(loop.ToolResult{Body: r.args.Do + " ok"}, "ends")
			return
		case <-r.stop:
			r.end(loop.ToolResult{Body: "killed", Failed: true}, "is killed")
			return
		case <-done:
			r.box.mu.Lock()
			adopted := r.adopted
			r.box.mu.Unlock()
			if adopted {
				done = r.box.w.dead // a job lives as long as its process
				select {
				case <-done:
				default:
					continue
				}
			}
			r.end(loop.ToolResult{Body: "killed", Failed: true}, "is killed")
			return
		}
	}
}

func (r *running) end(res loop.ToolResult, how string) {
	r.box.mu.Lock()
	r.result = res
	over := r.over
	delete(r.box.jobs, r.job)
	close(r.done)
	r.box.mu.Unlock()
	select {
	case <-r.box.w.dead:
		return
	default:
	}
	r.box.w.logf("tool %s %q %s", r.call.Call.Name, r.args.Do, how)
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

func (b *toolbox) Kill(_ session.Key, id string) {
	b.mu.Lock()
	r := b.jobs[id]
	b.mu.Unlock()
	if r != nil {
		close(r.stop)
		<-r.done
	}
}

func (b *toolbox) KillAll(session.Key) {
	b.mu.Lock()
	var ids []string
	for id := range b.jobs {
		ids = append(ids, id)
	}
	b.mu.Unlock()
	for _, id := range ids {
		b.Kill(session.Key{}, id)
	}
}
