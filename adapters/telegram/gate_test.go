package telegram

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
	"coxswain/telegramtest"
)

// A gate is a world whose door is a real hub, over a store in memory and with a
// real outbox: what a row of the platform suite is judged on.
type gate struct {
	*world
	set   gateSet
	store *storetest.Model
	hub   *session.Hub
	agent *agent
	down  func() // ends the hub and the outbox
	life  int
}

// A gateSet is what a row changes of the set-up. Ann is an admin; everyone may
// talk.
type gateSet struct {
	mode    steer.Mode
	policy  *session.Policy
	options Options
	quiet   bool // the client may do what the API forgives
	pushed  bool // by a webhook
	asleep  bool // nothing runs until the row calls up
	observe int  // messages of a group that do not speak to the bot
}

// gated runs f with a running gateway in a bubble.
func gated(t *testing.T, s gateSet, f func(g *gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{world: newWorld(t, s.options), set: s, store: storetest.NewModel(time.Now), agent: &agent{}}
		g.world.a = nil // made by up, over the hub's store
		if !s.asleep {
			g.up()
		}
		f(g)
		g.off()
		if p := g.api.Problems(); len(p) > 0 && !s.quiet {
			t.Errorf("the API would have forgiven: %q", p)
		}
	})
}

// up starts a process.
func (g *gate) up() {
	g.t.Helper()
	g.life++
	nonce := fmt.Sprint("life", g.life)
	log := slog.New(slog.DiscardHandler)
	policy := session.Policy{AllowUsers: []string{"*"}, Admins: []string{fmt.Sprint(ann)}, Pairing: session.PairingOff}
	if g.set.policy != nil {
		policy = *g.set.policy
	}
	ctx, kill := context.WithCancel(context.WithoutCancel(g.ctx))
	out := outbox.New(ctx, outbox.Options{Store: g.store, Nonce: nonce + "/out", HubNonce: nonce, UnknownAfter: 10 * time.Second, Log: log})
	g.hub = session.NewHub(ctx, session.Options{
		Store: g.store, Agent: g.agent, Outbox: out, Nonce: nonce, Mode: func(session.Key) steer.Mode { return g.set.mode },
		Access:     session.NewAccess(g.store, map[session.PlatformName]session.Policy{Name: policy}),
		JoinWindow: 0, StopWords: []string{"stop"}, SteerFrom: "owner", LeaseTTL: 5 * time.Second, JobsOnEnd: "turn",
		HistoryBytes: 1 << 20, Log: log, Observe: func(session.Key) int { return g.set.observe },
	})
	g.world.door.set(func(d *door) { d.next = g.hub })
	o := g.set.options
	o.Docs = g.store
	if g.set.pushed {
		o.Webhook = goodHook()
	}
	g.remake(o)
	g.hub.Register(g.a)
	out.Register(g.a)
	hubbed := make(chan struct{})
	run, stop := context.WithCancel(ctx)
	go func() {
		defer close(hubbed)
		if err := g.hub.Run(run, 0); err != nil {
			g.t.Errorf("hub: %v", err)
		}
	}()
	g.run()
	pushed := make(chan struct{})
	push, stopPush := context.WithCancel(ctx)
	go func() {
		defer close(pushed)
		if g.set.pushed {
			g.api.Push(push, g.a.Handler())
		}
	}()
	g.down = func() {
		stopPush()
		<-pushed
		stop()
		<-hubbed
		out.Close(0)
		kill()
	}
}

// off ends the process; what is left is in the store.
func (g *gate) off() {
	if g.down == nil {
		return
	}
	g.stop()
	g.down()
	g.close()
	g.down = nil
}

// answers ends the running turn of a chat.
func (g *gate) answers(key session.Key, text string) {
	g.t.Helper()
	if !g.agent.do(key, func(context.Context, *session.Turn) *session.Outcome {
		return &session.Outcome{End: session.EndAnswered, Text: text}
	}) {
		g.t.Fatalf("no turn of %v runs to answer %q", key, text)
	}
	synctest.Wait()
}

// shows makes the running turn of a chat show v.
func (g *gate) shows(key session.Key, change func(v *session.View)) {
	g.t.Helper()
	if !g.agent.do(key, func(_ context.Context, t *session.Turn) *session.Outcome {
		t.Show(change)
		return nil
	}) {
		g.t.Fatalf("no turn of %v runs to show anything", key)
	}
	synctest.Wait()
}

// lane is what the store has of a session.
func (g *gate) lane(key session.Key) session.Lane {
	g.t.Helper()
	synctest.Wait()
	l, err := g.store.Load(g.t.Context(), key)
	if err != nil {
		g.t.Fatal(err)
	}
	return l
}

// slot is what waits in a session, one "verb: text" each.
func (g *gate) slot(key session.Key) string {
	g.t.Helper()
	var out []string
	for _, e := range g.lane(key).Slot {
		verb := e.Want.String()
		if e.Held {
			verb = "held"
		}
		var in session.Input
		for _, r := range []session.Row{{Type: session.RowSteer, Data: e.Data}} {
			in = session.DecodeSteer(r)
		}
		out = append(out, verb+": "+inputText(in))
	}
	return strings.Join(out, "\n")
}

// turns are the inputs that began the session's turns, one turn a line.
func (g *gate) turns(key session.Key) string {
	g.t.Helper()
	l := g.lane(key)
	rows, err := g.store.Rows(g.t.Context(), key, l.Gen, 0, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		if r.Type != session.RowUser {
			continue
		}
		var inputs []string
		for _, in := range session.DecodeUser(r).Inputs {
			inputs = append(inputs, inputText(in))
		}
		out = append(out, strings.Join(inputs, " + "))
	}
	return strings.Join(out, "\n")
}

// inputText writes an input as a row of the suite reads: parts, what they quote
// and their files.
func inputText(in session.Input) string {
	var parts []string
	for _, p := range in.Parts {
		s := p.Text
		if p.Forwarded != "" {
			s = "<" + p.Forwarded + "> " + s
		}
		for _, at := range p.Attachments {
			s += fmt.Sprintf("[%s %s%s]", at.Kind, at.Path, at.Note)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " | ")
}

// said are the texts of the bot's messages in a chat, oldest first.
func (g *gate) said(chat int64) []string {
	synctest.Wait()
	var out []string
	for _, m := range g.api.Messages(chat) {
		out = append(out, m.Text)
	}
	return out
}

// words joins values with blanks.
func words(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

// want compares; what names what is compared.
func (g *gate) want(what string, got, want any) {
	g.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		g.t.Errorf("%s:\ngot  %q\nwant %q", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// sign is the reaction on a message.
func (g *gate) sign(chat int64, msg int) string {
	synctest.Wait()
	m, _ := g.api.Message(chat, msg)
	return m.Reaction
}

// An agent holds every turn open until it is cancelled or told what to do.
type agent struct {
	script func(ctx context.Context, t *session.Turn) session.Outcome // runs turns instead, if set

	mu    sync.Mutex
	turns map[session.Key]chan func(context.Context, *session.Turn) *session.Outcome
}

func (a *agent) of(key session.Key) chan func(context.Context, *session.Turn) *session.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turns == nil {
		a.turns = make(map[session.Key]chan func(context.Context, *session.Turn) *session.Outcome)
	}
	c := a.turns[key]
	if c == nil {
		c = make(chan func(context.Context, *session.Turn) *session.Outcome)
		a.turns[key] = c
	}
	return c
}

// do makes the running turn do f, and reports whether one ran.
func (a *agent) do(key session.Key, f func(context.Context, *session.Turn) *session.Outcome) bool {
	select {
	case a.of(key) <- f:
		return true
	case <-time.After(10 * time.Second):
		return false
	}
}

func (*agent) Head(_ context.Context, _ session.Key, cur []byte) ([]byte, error) {
	if cur == nil {
		return []byte("{}"), nil
	}
	return nil, nil
}

func (a *agent) Run(ctx context.Context, t *session.Turn) session.Outcome {
	if a.script != nil {
		return a.script(ctx, t)
	}
	told := a.of(t.Key())
	t.Show(func(v *session.View) { v.Step, v.Steps = 1, 60 })
	for {
		select {
		case f := <-told:
			if out := f(ctx, t); out != nil {
				return *out
			}
		case <-t.Bell():
			if t.Parking() {
				return session.Outcome{Parked: true}
			}
		case <-ctx.Done():
			switch err := context.Cause(ctx); err {
			case session.ErrStopped:
				return session.Outcome{End: session.EndStopped, Text: t.View().Text}
			case session.ErrReplaced:
				return session.Outcome{End: session.EndReplaced}
			case session.ErrParked:
				return session.Outcome{Parked: true}
			default:
				return session.Outcome{Err: err}
			}
		}
	}
}

func (*agent) Aside(context.Context, session.Key, []session.Row, string, session.Input, session.Payer) (string, error) {
	return "aside", nil
}
func (*agent) Keep(context.Context, session.Key, *session.Input) {}
func (*agent) StopJobs(context.Context, session.Key)             {}
func (*agent) KillJob(context.Context, session.Key, string)      {}
func (*agent) Forget(session.Key)                                {}

// topicKey is the session of a topic.
func topicKey(chat int64, topic int) session.Key {
	k := key(chat)
	k.Thread = session.ThreadID(fmt.Sprint(topic))
	return k
}

// api errors in the API's own words, as rows need them.
var (
	tooLong    = telegramtest.Fault{Method: "sendMessage", Code: 400, Description: "Bad Request: message is too long"}
	cantParse  = telegramtest.Fault{Method: "sendMessage", Code: 400, Description: "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 7"}
	notChanged = telegramtest.Fault{Method: "editMessageText", Code: 400, Description: "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"}
)
