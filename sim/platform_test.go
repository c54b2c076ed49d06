package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"coxswain/session"
)

// platform is a chat network that remembers what it was told to show.
type platform struct {
	w *world

	mu    sync.Mutex
	sent  []sent
	signs map[string]string // message → newest state shown
	ids   int
	// fail decides the fate of the n-th send.
	fail func(p session.Part) sendFault
	next []sendFault   // the fates of the next sends, before fail is asked
	wait time.Duration // of a flood; 0 = 20 s
	last map[session.Key]session.View
}

type sent struct {
	key     session.Key
	id      session.MessageID
	kind    session.PartKind
	text    string
	reply   session.MessageID
	repeat  bool
	part    string
	buttons []session.Button
	at      time.Time
}

type sendFault uint8

const (
	sendOK sendFault = iota
	sendDown
	sendLost // shown, but the answer is lost
	sendFlood
	sendSlow // takes three seconds
)

// setFaults decides what becomes of sends from now on: an event of a script.
func (p *platform) setFaults(t interface{ Fatalf(string, ...any) }, in input) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kinds := map[string]sendFault{
		"ok": sendOK, "lost": sendLost, "flood": sendFlood, "slow": sendSlow,
		"flood begins": sendFlood, "send replies get lost": sendLost, "flood ends": sendOK,
	}
	words := strings.Fields(in.text)
	if in.verb == "next sends" {
		for _, word := range words {
			f, ok := kinds[word]
			if !ok {
				t.Fatalf("no such fate: %q", in.raw)
			}
			p.next = append(p.next, f)
		}
		return
	}
	p.wait = 0
	if len(words) > 0 {
		d, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatalf("%q: %v", in.raw, err)
		}
		p.wait = d
	}
	f := kinds[in.verb]
	p.fail = func(session.Part) sendFault { return f }
}

type payload struct {
	Text    string            `json:"text"`
	Reply   session.MessageID `json:"reply,omitempty"`
	Buttons []session.Button  `json:"buttons,omitempty"`
	Silent  bool              `json:"silent,omitempty"`
}

func newPlatform(w *world) *platform {
	return &platform{w: w, signs: map[string]string{}, last: map[session.Key]session.View{}}
}

func (p *platform) Name() session.PlatformName { return "fake" }

func (p *platform) Parts(o session.Outgoing) [][]byte {
	var parts [][]byte
	for text := o.Markdown; ; {
		d := payload{Text: text, Reply: o.ReplyTo, Silent: o.Silent}
		rest := ""
		if n := p.w.conf.cut; n > 0 && len(text) > n {
			n = max(1, strings.LastIndexByte(text[:n+1], ' '))
			d.Text, rest = text[:n], strings.TrimSpace(text[n:])
		}
		if rest == "" {
			d.Buttons = o.Buttons
		}
		data, err := json.Marshal(d)
		if err != nil {
			panic(err)
		}
		if parts = append(parts, data); rest == "" {
			return parts
		}
		text, o.ReplyTo = rest, ""
	}
}

// A port is the network as one process reaches it.
type port struct {
	*platform
	proc *process
}

func (o port) Send(ctx context.Context, part session.Part) (session.MessageID, error) {
	return o.send(ctx, o.proc, part)
}

func (p *platform) send(ctx context.Context, proc *process, part session.Part) (session.MessageID, error) {
	p.mu.Lock()
	fault := sendOK
	switch {
	case len(p.next) > 0:
		fault, p.next = p.next[0], p.next[1:]
	case p.fail != nil:
		fault = p.fail(part)
	}
	wait := cmp.Or(p.wait, 20*time.Second)
	p.mu.Unlock()
	if fault == sendSlow {
		time.Sleep(3 * time.Second)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil || proc.isDead() {
		return "", &session.SendError{Outcome: session.SendNot, Err: ctx.Err()}
	}
	switch fault {
	case sendDown:
		return "", &session.SendError{Outcome: session.SendNot, Err: errors.New("connection refused")}
	case sendFlood:
		p.w.logIn(part.Key, "platform refuses%s: wait %d s", where(part.Key), int(wait.Seconds()))
		return "", &session.SendError{Outcome: session.SendNot, Wait: wait, Err: errors.New("flood")}
	}
	var d payload
	if err := json.Unmarshal(part.Data, &d); err != nil {
		panic(err)
	}
	p.ids++
	s := sent{
		key: part.Key, id: session.MessageID(fmt.Sprintf("b%d", p.ids)), kind: part.Kind, text: d.Text, reply: d.Reply,
		repeat: part.State == session.PartUnknown, part: part.ID, buttons: d.Buttons, at: time.Now(),
	}
	p.sent = append(p.sent, s)
	p.w.logSent(s)
	if fault == sendLost {
		return "", &session.SendError{Outcome: session.SendUnknown, Err: errors.New("reply lost")}
	}
	return s.id, nil
}

func (p *platform) Show(v session.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.last[v.Key]
	p.last[v.Key] = v
	if v.Notice != "" && v.Notice != old.Notice {
		p.w.logIn(v.Key, "bot notes%s: %s", where(v.Key), v.Notice)
	}
	if v.Text != old.Text && v.Text != "" {
		p.w.shows = append(p.w.shows, v.Text)
	}
}

func (p *platform) Sign(_ context.Context, key session.Key, f session.Fate) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	msg := string(f.Msgs[0])
	if f.State == session.FateAttached {
		return nil // no platform shows it: the row is there, the request is not out
	}
	if f.Waited && p.signs[msg] != string(f.State) {
		p.w.logIn(key, "bot signs %s: %s", msg, f.State)
		p.signs[msg] = string(f.State)
	}
	return nil
}

// saidFull reports that the sender was told that the slot is full.
func (p *platform) saidFull(id session.MessageID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.sent, func(s sent) bool { return s.reply == id && strings.Contains(s.text, "was not taken") })
}

// finals lists the final answers shown.
func (p *platform) finals() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	var f []sent
	for _, s := range p.sent {
		if s.kind == session.PartFinal {
			f = append(f, s)
		}
	}
	return f
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", " / ") }
