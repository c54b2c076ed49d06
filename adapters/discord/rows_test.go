package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// The rows D1 to D24 of the platform table. Each replays what came over the wire
// (testdata/D*.json: events of the gateway, answers of REST, how connections
// went) and checks what the door was given, how the adapter ended it and what was
// sent. `go test -run D13` plays one.

type row24 struct {
	name string
	o    Options
	own  bool // it runs the adapter itself
	play func(w *world, g *golden)
}

// A golden is a row's input.
type golden struct {
	w       *world
	base    time.Time
	Events  []wireEvent
	Answers []wireAnswer
	Gateway []discordtest.Script
}

type wireEvent struct {
	T string
	D json.RawMessage
}

type wireAnswer struct {
	Method, Path string
	Times        int
	discordtest.Raw
}

var rows = [25]row24{
	1:  {name: "message deleted while queued", play: rowDeletedQueued},
	2:  {name: "message deleted while its turn runs", play: rowDeletedRunning},
	3:  {name: "edit or unfurl, pin, thread flag", play: rowEdits},
	4:  {name: "slash command, button, modal", play: rowInteractions},
	5:  {name: "turn outlives the token", play: rowToken},
	6:  {name: "thread archived or locked", play: rowThreads},
	7:  {name: "missing permissions", play: rowPermissions},
	8:  {name: "webhooks, bots, own messages", o: Options{Bots: []string{"79"}}, play: rowBots},
	9:  {name: "system messages", play: rowSystem},
	10: {name: "auto-thread", o: Options{Threads: true}, play: rowAutoThread},
	11: {name: "forum post", play: rowForum},
	12: {name: "sticker, voice, forward, poll", play: rowNoText},
	13: {name: "replayed events", play: rowReplay},
	14: {name: "invalid session, backfill", play: rowBackfill},
	15: {name: "empty content without intent", own: true, play: rowEmpty},
	16: {name: "attachment read after a day", play: rowExpired},
	17: {name: "overflow and invalid component", play: rowOverflow},
	18: {name: "429 per route, global, shared, Cloudflare", play: rowLimits},
	19: {name: "send timeout or 5xx", play: rowNonce},
	20: {name: "mentions in the output", play: rowPings},
	21: {name: "guild outage or kicked", play: rowGuilds},
	22: {name: "DM closed", play: rowClosedDM},
	23: {name: "gateway deaf, nil author", own: true, play: rowDeaf},
	24: {name: "bad token, intents, identify budget", own: true, play: rowFatal},
}

func TestD1(t *testing.T)  { playRow(t, 1) }
func TestD2(t *testing.T)  { playRow(t, 2) }
func TestD3(t *testing.T)  { playRow(t, 3) }
func TestD4(t *testing.T)  { playRow(t, 4) }
func TestD5(t *testing.T)  { playRow(t, 5) }
func TestD6(t *testing.T)  { playRow(t, 6) }
func TestD7(t *testing.T)  { playRow(t, 7) }
func TestD8(t *testing.T)  { playRow(t, 8) }
func TestD9(t *testing.T)  { playRow(t, 9) }
func TestD10(t *testing.T) { playRow(t, 10) }
func TestD11(t *testing.T) { playRow(t, 11) }
func TestD12(t *testing.T) { playRow(t, 12) }
func TestD13(t *testing.T) { playRow(t, 13) }
func TestD14(t *testing.T) { playRow(t, 14) }
func TestD15(t *testing.T) { playRow(t, 15) }
func TestD16(t *testing.T) { playRow(t, 16) }
func TestD17(t *testing.T) { playRow(t, 17) }
func TestD18(t *testing.T) { playRow(t, 18) }
func TestD19(t *testing.T) { playRow(t, 19) }
func TestD20(t *testing.T) { playRow(t, 20) }
func TestD21(t *testing.T) { playRow(t, 21) }
func TestD22(t *testing.T) { playRow(t, 22) }
func TestD23(t *testing.T) { playRow(t, 23) }
func TestD24(t *testing.T) { playRow(t, 24) }

func playRow(t *testing.T, n int) {
	t.Parallel()
	r := rows[n]
	id := "D" + strconv.Itoa(n)
	t.Run(id+" "+r.name, func(t *testing.T) {
		w := newWorld(t, r.o)
		w.api.SetDM(ann, dm)
		g := w.golden(id)
		if !r.own {
			w.run()
			w.connected()
		}
		r.play(w, g)
		if !r.own {
			w.end()
		}
	})
}

// wireID is an id in the golden files: 1380… and a number. It is made one of a
// few minutes ago, for Discord's ids tell their time.
var wireID = regexp.MustCompile(`13800000000(\d{8})`)

func (w *world) golden(id string) *golden {
	w.t.Helper()
	data, err := os.ReadFile("testdata/" + id + ".json")
	if err != nil {
		w.t.Fatal(err)
	}
	g := &golden{w: w, base: time.Now().Add(-5 * time.Minute)}
	data = wireID.ReplaceAllFunc(data, func(m []byte) []byte {
		n, _ := strconv.Atoi(string(wireID.FindSubmatch(m)[1]))
		return []byte(g.id(n))
	})
	data = bytes.ReplaceAll(data, []byte(`{files}`), []byte(strings.TrimSuffix(w.api.AddFile("x", nil), "/x")))
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(g); err != nil {
		w.t.Fatalf("%s: %v", id, err)
	}
	return g
}

// id is the n-th message or interaction of the row.
func (g *golden) id(n int) string {
	return discordtest.IDAt(g.base.Add(time.Duration(n) * time.Millisecond))
}

// feed plays events of the row, from one to before another.
func (g *golden) feed(from, to int) {
	for _, e := range g.Events[from:to] {
		g.w.api.Play(e.T, e.D)
	}
}

// all plays every event.
func (g *golden) all() { g.feed(0, len(g.Events)) }

// answer makes REST give the row's n-th answer.
func (g *golden) answer(list ...int) {
	for _, n := range list {
		a := g.Answers[n]
		g.w.api.Fault(discordtest.Fault{Method: a.Method, Path: a.Path, Times: a.Times, Raw: &a.Raw})
	}
}

// line writes what came to the door: verb, where, who, what.
func (g *golden) line(m session.Message) string {
	names := map[string]string{dm: "dm", room: "room", topic: "topic", opened: "opened", forum: "forum", post: "post"}
	name := func(id string) string {
		if n, ok := names[id]; ok {
			return n
		}
		for n := range 40 {
			if id == g.id(n) || id == askMark+g.id(n) {
				return "#" + strconv.Itoa(n)
			}
		}
		return id
	}
	where := name(string(m.Key.Chat))
	if m.Key.Thread != "" {
		where += "/" + name(string(m.Key.Thread))
	}
	who := map[session.UserID]string{ann: "ann", bob: "bob"}[m.From.ID]
	if who == "" {
		who = string(m.From.ID)
	}
	out := []string{[]string{"say", "edit", "delete", "press"}[m.Kind], where, who, name(string(m.ID))}
	switch {
	case m.Kind == session.KindPress:
		out = append(out, m.Button)
	case m.Kind != session.KindDelete:
		out = append(out, strconv.Quote(m.Text))
	}
	if !m.Addressed {
		out = append(out, "unaddressed")
	}
	if m.Forwarded != "" {
		out = append(out, "forwarded")
	}
	for _, a := range m.Attachments {
		out = append(out, strings.TrimSpace(a.Kind+" "+a.Path+" "+a.Note))
	}
	return strings.Join(out, " ")
}

// stored checks what the door was given, in this order within a session.
func (g *golden) stored(want ...string) {
	g.w.t.Helper()
	for len(want) > 0 {
		got := g.line(g.w.next())
		where := strings.Fields(got)[1]
		at := slices.IndexFunc(want, func(s string) bool { return strings.Fields(s)[1] == where })
		if at < 0 || want[at] != got {
			g.w.t.Fatalf("the door was given %q; want %q", got, want)
		}
		want = slices.Delete(want, at, at+1)
	}
}

// silent checks that a channel's events gave nothing more: what is said there
// last comes next.
func (g *golden) silent(channel string) {
	g.w.t.Helper()
	g.w.api.Say(channel, bob, me+" barrier")
	for {
		switch m := g.w.next(); {
		case m.Text == "barrier":
			g.w.once()
			return
		default:
			g.w.t.Errorf("the door was given %q besides", g.line(m))
		}
	}
}

// silentTwice is silent where the door may be given the same again, which it
// knows by its dedupe id.
func (g *golden) silentTwice(channel string) {
	g.w.t.Helper()
	g.w.api.Say(channel, bob, "barrier")
	if m := g.w.next(); m.Text != "barrier" {
		g.w.t.Errorf("the door was given %q besides", g.line(m))
	}
}

// again waits until the door is given something it has taken before.
func (g *golden) again(dedupe string) {
	g.w.t.Helper()
	g.w.until(dedupe+" again", func() bool {
		g.w.door.mu.Lock()
		defer g.w.door.mu.Unlock()
		return g.w.door.seen[dedupe] > 1
	})
}

// sent checks what the bot has said in a channel.
func (g *golden) sent(channel string, want ...string) {
	g.w.t.Helper()
	said := slices.DeleteFunc(g.w.api.Bot(channel), func(m discordtest.Message) bool { return m.Type == 21 }) // a thread's first
	if got := texts(said); got != strings.Join(want, " | ") {
		g.w.t.Errorf("sent %q; want %q", got, want)
	}
}

// say sends one part; ids make nonces.
func (w *world) say(key session.Key, id string, o session.Outgoing) (session.MessageID, error) {
	w.t.Helper()
	o.Key = key
	if o.Kind == "" {
		o.Kind = session.PartFinal
	}
	list := w.a.Parts(o)
	if len(list) != 1 {
		w.t.Fatalf("%d parts; want 1", len(list))
	}
	return w.a.Send(w.ctx, session.Part{PartNew: session.PartNew{ID: id, Kind: o.Kind, Data: list[0]}, Key: key, State: session.PartSending, Since: time.Now()})
}

// sign shows a state of a message's input.
func (w *world) sign(key session.Key, ticket int64, state session.FateState, msgs ...string) error {
	f := session.Fate{Ticket: ticket, State: state, Waited: state != session.FateAccepted}
	for _, m := range msgs {
		f.Msgs = append(f.Msgs, session.MessageID(m))
	}
	return w.a.Sign(w.ctx, key, f)
}

// TestRowsAreAllThere: none is left out and none is empty.
func TestRowsAreAllThere(t *testing.T) {
	for n := 1; n < len(rows); n++ {
		if rows[n].play == nil || rows[n].name == "" {
			t.Errorf("D%d has no test", n)
		}
		if _, err := os.Stat(fmt.Sprintf("testdata/D%d.json", n)); err != nil {
			t.Error(err)
		}
	}
}
