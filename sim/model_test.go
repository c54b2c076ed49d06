package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	hang  bool   // never answers
	room  string // of the session it is for; "" = the room
}

type scriptCall struct {
	tool string
	arg  string
	took time.Duration
	dies time.Duration // how long it takes to die
}

// model answers requests from a script, or by a rule; it keeps every request.
type model struct {
	w *world

	mu     sync.Mutex
	script []reply
	rule   func(req request) reply // when the script is used up
	reqs   []request
	ids    int
	out    map[string]int // session → requests that are out
	outBy  map[*process]int
	bad    []string // requests of who may not ask

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

// A modelPort is the provider as one process asks it.
type modelPort struct {
	*model
	proc *process
}

// Stream implements loop.Model.
func (o modelPort) Stream(ctx context.Context, r loop.Request, on func(loop.Delta), accepted func()) (loop.Reply, error) {
	return o.stream(ctx, o.proc, r, on, accepted)
}

func (m *model) stream(ctx context.Context, proc *process, r loop.Request, on func(loop.Delta), accepted func()) (loop.Reply, error) {
	m.mu.Lock()
	req := request{session: r.Session, system: string(r.System), msgs: append([]json.RawMessage(nil), r.Messages...), at: time.Now(), noTools: r.NoTools}
	m.reqs = append(m.reqs, req)
	n := len(m.reqs) - 1
	var rep reply
	next := slices.IndexFunc(m.script, func(next reply) bool { return keyOf(next.room).String() == r.Session })
	switch {
	case next >= 0:
		rep = m.script[next]
		m.script = slices.Delete(m.script, next, next+1)
	case m.rule != nil:
		rep = m.rule(req)
	default:
		rep = reply{say: "(no script left)"}
	}
	if !asideRequest(req) {
		id := r.Session + proc.nonce
		m.outBy[proc]++
		if m.out[id]++; m.out[id] > 1 {
			m.bad = append(m.bad, "I4: "+id+" had two requests out at once")
		}
		if owner := proc.stranger(r.Session); owner != "" {
			m.bad = append(m.bad, "I4: "+owner+" runs "+r.Session+", and "+proc.nonce+" asks the model")
		}
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.out[id]--
			m.outBy[proc]--
		}()
	}
	m.mu.Unlock()
	m.w.logRequest(n, proc)
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
	return m.ask(n, rep), nil
}

// ask makes the answer to request n out of a scripted reply.
func (m *model) ask(n int, rep reply) loop.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reqs[n].done = true
	out := loop.Reply{Text: rep.say}
	for _, c := range rep.calls {
		m.ids++
		a := toolArgs{Do: c.arg, For: c.took.String()}
		if c.tool == "poll" {
			a.ID = c.arg
		}
		if c.dies > 0 {
			a.Dies = c.dies.String()
		}
		args, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		out.Calls = append(out.Calls, session.Call{ID: fmt.Sprintf("call%05d", m.ids), Name: c.tool, Args: string(args)})
		out.Finish = loop.FinishTools
	}
	return out
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
