package screens

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// adapter is what a platform's adapter is here.
type adapter interface {
	session.Platform
	Run(ctx context.Context) error
	Close(ctx context.Context) error
}

// gateway starts a hub with one adapter, which connect makes for it; the
// function it gives stops both.
func gateway(t testing.TB, b *box, name session.PlatformName, connect func(*session.Hub, *storetest.Model) adapter) func() {
	t.Helper()
	life := t.Context()
	ctx, stop := context.WithCancel(life)
	store, log := storetest.NewModel(time.Now), slog.New(slog.DiscardHandler)
	out := outbox.New(life, outbox.Options{Store: store, Nonce: "s/out", HubNonce: "s", UnknownAfter: 10 * time.Second, Log: log})
	agent, err := loop.New(loop.Options{
		Profile: loop.Profile{Model: &script{}, System: "You help.", Hosted: true}, Tools: b, SkipUnstarted: true,
		Steps: 60, Time: time.Hour, CacheBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	hub := session.NewHub(life, session.Options{
		Store: store, Agent: agent, Outbox: out, Nonce: "s", Mode: func(session.Key) steer.Mode { return steer.Steer },
		Access:     session.NewAccess(store, map[session.PlatformName]session.Policy{name: {AllowUsers: []string{"*"}}}),
		JoinWindow: time.Second, SteerFrom: "owner", LeaseTTL: 5 * time.Second, JobsOnEnd: "turn", HistoryBytes: 1 << 20, Log: log,
	})
	a := connect(hub, store)
	hub.Register(a)
	out.Register(a)
	heard, ran := make(chan error, 1), make(chan error, 1)
	go func() { heard <- a.Run(ctx) }()
	go func() { ran <- hub.Run(ctx, 0) }()
	return func() {
		cleanup, done := context.WithTimeout(life, 10*time.Second)
		defer done()
		stop()
		for what, err := range map[string]error{"adapter": <-heard, "hub": <-ran, "close": a.Close(cleanup)} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		out.Close(time.Second)
	}
}

// noFile is where files would be saved.
func noFile(context.Context, session.Key, string, io.Reader) (string, int64, error) {
	return "", 0, nil
}

// script is a model that plays its part. It builds for the month that it was
// told of: the answer shows whether the note went in.
type script struct{ asked int }

func (*script) Name() string { return "scripted" }

func (*script) Encode(w loop.Wire) (json.RawMessage, error) { return json.Marshal(w) }

func (s *script) Stream(_ context.Context, r loop.Request, on func(loop.Delta), accepted func()) (loop.Reply, error) {
	s.asked++ // requests of one turn come one after another
	accepted()
	month, args := "February", "make report"
	for _, m := range r.Messages {
		if strings.Contains(string(m), "March") {
			month, args = "March", "make report MONTH=03"
		}
	}
	file := "reports/" + strings.ToLower(month) + ".pdf"
	call := func(say, tool, key, value string) (loop.Reply, error) {
		data, err := json.Marshal(map[string]string{key: value})
		on(loop.Delta{Text: say})
		return loop.Reply{Text: say, Finish: loop.FinishTools, Calls: []session.Call{{ID: "call_" + string(rune('0'+s.asked)), Name: tool, Args: string(data)}}}, err
	}
	switch s.asked {
	case 1:
		return call("I'll see which data there are, then build.", "list_files", "path", "data")
	case 2, 3:
		return call("", "terminal", "command", args)
	case 4:
		return call("", "terminal", "command", "python3 check.py "+file)
	}
	text := "**The " + month + " report is built.**\n\n- 1,204 orders, `€48,310` in all\n- its totals match the ledger\n\n```\n" + file + "   214 kB\n```"
	on(loop.Delta{Text: text})
	return loop.Reply{Text: text}, nil
}

// A box has tools that end when the story says so, but for the quick ones.
type box struct{ runs chan *run }

func newBox() *box { return &box{make(chan *run, 1)} }

func (*box) Specs() []loop.ToolSpec {
	object := json.RawMessage(`{"type":"object"}`)
	return []loop.ToolSpec{{Name: "list_files", Description: "list", Schema: object, Pure: true}, {Name: "terminal", Description: "run", Schema: object}}
}

func (b *box) Start(ctx context.Context, c loop.ToolCall) loop.Running {
	r := &run{done: make(chan struct{}), stop: ctx.Done()}
	if c.Call.Name == "list_files" {
		r.end()
		return r
	}
	if strings.Contains(c.Call.Args, "make") {
		r.tail = "data/orders.csv, row 412 of 1204"
	}
	b.runs <- r
	return r
}

func (*box) Adopt(session.Key, string, int64, loop.Running, func(loop.ToolResult, bool)) bool {
	return false
}
func (*box) Kill(session.Key, string) {}
func (*box) KillAll(session.Key)      {}

// A run is a call.
type run struct {
	done chan struct{}
	stop <-chan struct{}
	tail string
}

func (r *run) end() { close(r.done) }

func (r *run) Done() <-chan struct{} {
	select {
	case <-r.stop: // its turn was cut off: nothing here has to be killed
		return r.stop
	default:
		return r.done
	}
}
func (*run) Result() loop.ToolResult { return loop.ToolResult{Body: "ok"} }
func (r *run) Tail() string          { return r.tail }
