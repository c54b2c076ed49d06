package discord

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// D4: an interaction is answered at once, also while the store is away; its
// effect is stored before it is shown as done (I1). Its id is its dedupe id.
func TestD4Interactions(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.door.failing(func(session.Message) error { return errDown })
		token := w.api.Slash(room, bob, "queue", "the next thing")
		w.until("answered", func() bool { kind, _ := w.api.Answer(token); return kind == ackDeferred })
		if _, content := w.api.Answer(token); content != "" {
			t.Errorf("shown as done before it was stored: %q", content)
		}
		w.door.failing(nil)
		m := w.next()
		if m.Text != "/queue the next thing" || !m.Addressed || m.Private || m.From.ID != bob || m.Key != keyOf(room, "") || !strings.HasPrefix(m.Dedupe, "i:") {
			t.Errorf("got %+v", m)
		}
		// Its receipt is its answer, which shows to all what was asked for; further
		// signs are put on that.
		if err := w.a.Sign(w.ctx, m.Key, session.Fate{Ticket: 1, Msgs: []session.MessageID{m.ID}, State: session.FateQueued}); err != nil {
			t.Errorf("sign on a slash command: %v", err)
		}
		if _, content := w.api.Answer(token); content != "» the next thing" || !w.api.Bot(room)[0].Reactions["😴"] {
			t.Errorf("answered %q, signs %v", content, w.api.Bot(room))
		}

		id, err := w.a.Send(w.ctx, w.part(dm, "x"))
		if err != nil {
			t.Fatal(err)
		}
		token = w.api.Press(dm, string(id), ann, "stop:3")
		if m = w.next(); m.Kind != session.KindPress || m.Button != "stop:3" || m.ID != id || !m.Private || m.From.ID != ann {
			t.Errorf("press %+v", m)
		}
		w.until("press answered", func() bool { kind, _ := w.api.Answer(token); return kind == ackDeferredUpdate })

		// Too late, or answered already: the effect is the same.
		w.api.Fault(discordtest.Fault{Path: "callback", Status: 404, Code: 10062, Message: "Unknown interaction"})
		w.api.Slash(dm, ann, "status", "")
		if m = w.next(); m.Text != "/status" {
			t.Errorf("got %+v", m)
		}
		w.api.Fault(discordtest.Fault{Path: "callback", Status: 400, Code: 40060, Message: "acknowledged"})
		w.api.Slash(dm, ann, "help", "")
		if m = w.next(); m.Text != "/help" {
			t.Errorf("got %+v", m)
		}
	})
}

// Slash commands are set once for each list, over restarts too.
func TestCommandsOnlyWhenChanged(t *testing.T) {
	cmds := []Command{{"stop", "stops the task", "[all]"}, {"Bad Name", "x", ""}, {"help", strings.Repeat("x", 300), ""}}
	play(t, Options{Commands: cmds}, func(w *world) {
		w.until("stored", func() bool { return w.docs.get("commands") != "" })
		var list []map[string]any
		if err := json.Unmarshal(w.api.Commands(), &list); err != nil || len(list) != 7 || list[0]["name"] != "stop" || list[6]["name"] != menuWhy {
			t.Errorf("commands %v, %v; want the two with good names, /thread and four on messages", list, err)
		}
		again := func(o []Command) {
			w.stop()
			w.o.Commands = o
			w.fresh()
			w.run()
			w.connected()
		}
		again(cmds)
		w.nothing()
		w.stop()
		if n := len(w.api.Calls("PUT", "commands")); n != 1 {
			t.Errorf("set %d times; want once", n)
		}
		again(append(cmds, Command{"new", "a new session", ""}))
		w.until("set again", func() bool { return len(w.api.Calls("PUT", "commands")) == 2 })
		cmds[0].Args = "[all|some]" // another list too, though the names are the same
		again(append(cmds, Command{"new", "a new session", ""}))
		w.until("set again", func() bool { return len(w.api.Calls("PUT", "commands")) == 3 })
	})
}

// A command takes what its usage says: nothing, something, or maybe something.
func TestCommandOptions(t *testing.T) {
	w := newWorld(t, Options{Commands: []Command{{"status", "x", ""}, {"busy", "x", "[queue|interrupt|steer]"}, {"steer", "x", "TEXT"},
		{"jobs", "x", "[kill ID]"}, {"link", "x", "[CODE]"}, {"stop", "x", "[all]"}}})
	for i, want := range []string{"", "queue, interrupt or steer", "the text!", "kill ID", "the code", "all", "the text!"} {
		c := w.a.commandList()[i]
		got := ""
		for _, o := range c.Options {
			got += o.Description
			if o.Name != optionName || o.Type != 3 {
				t.Errorf("/%s has option %+v", c.Name, o)
			}
			if o.Required {
				got += "!"
			}
		}
		if got != want {
			t.Errorf("/%s takes %q; want %q", c.Name, got, want)
		}
	}
}

// D15: without the intent the platform stops with words that say what to do.
func TestD15NoIntent(t *testing.T) {
	w := newWorld(t, Options{})
	w.api.NoContent = true
	if err := w.a.Run(w.ctx); err != ErrIntents {
		t.Errorf("Run: %v; want ErrIntents", err)
	}
	if s := w.a.Status(); s.Err != wordsNoIntent || s.Connected || w.api.Dials() != 1 {
		t.Errorf("status %+v after %d connections; want one", s, w.api.Dials())
	}
}

// D15: at run time an empty text in a guild starts nothing and is told of once.
func TestD15EmptyText(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for range 3 {
			w.api.Say(room, bob, "")
		}
		w.api.Say(room, bob, "barrier")
		if m := w.next(); m.Text != "barrier" {
			t.Errorf("got %+v", m)
		}
		if n := strings.Count(w.logs.String(), "without their text"); n != 1 {
			t.Errorf("told %d times; want once", n)
		}
	})
}

// A panic in the door or an event that cannot be read ends nothing.
func TestStrangeEvents(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for _, raw := range []string{
			`{"id":"1","channel_id":"` + dm + `","type":0,"content":"no author"}`,
			`{"id":"2","channel_id":"` + dm + `","type":"text"}`,
			`{"id":"3"}`, `null`, `{}`,
		} {
			w.api.Dispatch("MESSAGE_CREATE", raw)
			w.api.Dispatch("MESSAGE_UPDATE", raw)
			w.api.Dispatch("INTERACTION_CREATE", raw)
		}
		w.api.Dispatch("A_NEW_EVENT", `{"x":1}`)
		// A component nobody knows: the library gives an empty message for it.
		w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Content: "with parts", Components: json.RawMessage(`[{"type":99}]`)})
		if m := w.next(); m.Text != "with parts" {
			t.Errorf("got %+v", m)
		}
		w.door.failing(func(m session.Message) error {
			if m.Text == "boom" {
				panic("boom")
			}
			return nil
		})
		w.api.Say(dm, ann, "boom")
		w.nothing()
		if s := w.a.Status(); s.Undecodable == 0 || s.Replaced != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// I13: the token is in no error or log line, and people's words in none at info.
func TestNothingPrivateInLogs(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Fault(discordtest.Fault{Path: "callback", LoseReply: true})
		token := w.api.Slash(dm, ann, "queue", "hunter2")
		w.next()
		w.api.Fault(discordtest.Fault{Method: "POST", Path: "messages", LoseReply: true})
		_, err := w.a.Send(w.ctx, w.part(dm, "hunter2"))
		if err == nil {
			t.Fatal("sent")
		}
		w.until("lost", func() bool { return strings.Contains(w.logs.String(), "interaction not answered") })
		all := w.logs.String() + err.Error() + fmt.Sprintf("%+v", w.a.Status())
		if strings.Contains(all, discordtest.Token) || strings.Contains(all, token) {
			t.Errorf("a token is in %s", all)
		}
		for line := range strings.Lines(w.logs.String()) {
			if strings.Contains(line, "hunter2") && !strings.Contains(line, "level=DEBUG") {
				t.Errorf("log line %q", line)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := Options{Token: func() string { return discordtest.Token }, Door: newDoor(), Docs: &docs{}, Save: (&inbox{}).save}
	for name, change := range map[string]func(*Options){
		"no door":   func(o *Options) { o.Door = nil },
		"no token":  func(o *Options) { o.Token = nil },
		"bad token": func(o *Options) { o.Token = func() string { return "secretsecret" } },
		"bad url":   func(o *Options) { o.APIURL = "localhost:1234" },
		"bad group": func(o *Options) { o.GroupSessions = "all" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Errorf("good: %v", err)
	}
	if d := idTime(idAt(time.UnixMilli(1700000000000))).UnixMilli(); d != 1700000000000 {
		t.Errorf("id time %d", d)
	}
}
