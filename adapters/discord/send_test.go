package discord

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// Parts of an answer come in order, with the reply on the first and the buttons
// on the last; equal input gives equal payloads.
func TestParts(t *testing.T) {
	play(t, Options{}, func(w *world) {
		asked := w.api.Say(dm, ann, "tell me")
		w.next()
		o := session.Outgoing{Key: keyOf(dm, ""), Kind: session.PartFinal, Markdown: strings.Repeat("word ", 900), ReplyTo: session.MessageID(asked),
			Buttons: []session.Button{{Text: "Run", Data: "run:1"}, {Text: "", Data: "x"}, {Text: "Twice", Data: "run:1"}}, Silent: true}
		list := w.a.Parts(o)
		if len(list) != 3 {
			t.Fatalf("%d parts; want 3", len(list))
		}
		for i, data := range list {
			if again := w.a.Parts(o)[i]; string(again) != string(data) {
				t.Errorf("part %d differs the second time", i)
			}
			if _, err := w.a.Send(w.ctx, session.Part{PartNew: session.PartNew{ID: string(rune('a' + i)), Data: data}, Key: o.Key}); err != nil {
				t.Fatal(err)
			}
		}
		got := w.api.Bot(dm)
		if got[0].ReplyTo != asked || got[1].ReplyTo != "" || len(got[0].Components) != 0 || !got[0].Silent {
			t.Errorf("got %+v", got)
		}
		if !strings.Contains(string(got[2].Components), `"custom_id":"run:1"`) {
			t.Errorf("buttons %s", got[2].Components)
		}
	})
}

// D2: the message replied to is gone: the answer comes all the same.
func TestD2ReplyGone(t *testing.T) {
	play(t, Options{}, func(w *world) {
		data := w.a.Parts(session.Outgoing{Key: keyOf(dm, ""), Markdown: "answer", ReplyTo: "123"})
		if _, err := w.a.Send(w.ctx, session.Part{PartNew: session.PartNew{ID: "p", Data: data[0]}, Key: keyOf(dm, "")}); err != nil {
			t.Error(err)
		}
	})
}

// D6: an archived thread opens by itself; from a locked one the answer goes to
// its channel.
func TestD6Threads(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChannel(discordtest.Channel{ID: topic, Guild: guild, Type: discordtest.TypeThread, Parent: room, Archived: true})
		p := w.part(room, "one")
		p.Key = keyOf(room, topic)
		if _, err := w.a.Send(w.ctx, p); err != nil {
			t.Error(err)
		}
		w.api.AddChannel(discordtest.Channel{ID: topic, Guild: guild, Type: discordtest.TypeThread, Parent: room, Locked: true})
		p.ID = "p2"
		if _, err := w.a.Send(w.ctx, p); err != nil {
			t.Error(err)
		}
		if in, out := texts(w.api.Bot(topic)), texts(w.api.Bot(room)); in != "one" || out != "(<#"+topic+"> is closed to me, so the answer is here) one" {
			t.Errorf("thread %q, channel %q", in, out)
		}
	})
}

// D17: a text that is too long after all is cut; a component that is refused is
// left away.
func TestD17Refused(t *testing.T) {
	play(t, Options{}, func(w *world) {
		long, _ := json.Marshal(payload{Text: strings.Repeat("word ", 500)})
		p := w.part(dm, "x")
		p.Data = long
		w.api.Fault(discordtest.Fault{Method: "POST", Path: dm, Status: 503, Times: 0})
		if _, err := w.a.Send(w.ctx, p); outcome(t, err).Outcome != session.SendNot {
			t.Fatalf("first: %v", err)
		}
		for range 2 { // a second try gives the same messages
			if _, err := w.a.Send(w.ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(w.api.Bot(dm)); n != 2 {
			t.Errorf("%d messages; want 2 halves", n)
		}
		bad, _ := json.Marshal(payload{Text: "choose", Rows: []row{{Type: 1}}})
		p.ID, p.Data = "p2", bad
		if _, err := w.a.Send(w.ctx, p); err != nil {
			t.Fatal(err)
		}
		if got := w.api.Bot(dm); got[2].Content != "choose" || len(got[2].Components) != 0 {
			t.Errorf("got %+v", got[2])
		}
	})
}

// D18: a 429 is waited out by the outbox, holds for its channel alone, or for
// all when it is global, or comes from the wall before Discord: then the body is
// HTML. No lock is slept under.
func TestD18RateLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault discordtest.Fault
		all   bool
	}{
		{"route", discordtest.Fault{Status: 429, RetryAfter: 30}, false},
		{"global", discordtest.Fault{Status: 429, RetryAfter: 30, Global: true}, true},
		{"html", discordtest.Fault{HTML: 429, RetryAfter: 30}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				c.fault.Method, c.fault.Path = "POST", dm
				w.api.Fault(c.fault)
				for range 2 { // the second is not even tried
					began := time.Now()
					_, err := w.a.Send(w.ctx, w.part(dm, "x"))
					if e := outcome(t, err); e.Outcome != session.SendNot || e.Wait < 25*time.Second || e.Wait > 30*time.Second || time.Since(began) > 5*time.Second {
						t.Errorf("outcome %+v after %v", e, time.Since(began))
					}
				}
				if n := len(w.api.Calls("POST", dm)); n != 1 {
					t.Errorf("%d calls; want 1", n)
				}
				if _, err := w.a.Send(w.ctx, w.part(room, "x")); (err != nil) != c.all {
					t.Errorf("another channel: %v", err)
				}
			})
		})
	}
}

// D19: a send whose answer is lost, or a 5xx, is tried with the same nonce: one
// message. The library does not repeat it by itself.
func TestD19SameNonce(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]discordtest.Fault{
		"lost": {LoseReply: true}, "500": {Status: 500}, "502": {HTML: 502}, "503": {Status: 503}, "504": {HTML: 504},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				f.Method, f.Path = "POST", dm
				w.api.Fault(f)
				p := w.part(dm, "once")
				_, err := w.a.Send(w.ctx, p)
				if e := outcome(t, err); e.Outcome != session.SendNot {
					t.Fatalf("outcome %+v", e)
				}
				p.Attempt, p.State, p.Since = 2, session.PartUnknown, time.Now()
				id, err := w.a.Send(w.ctx, p)
				got := w.api.Bot(dm)
				if err != nil || len(got) != 1 || got[0].Content != "once" || got[0].ID != string(id) {
					t.Errorf("%v; messages %q", err, texts(got))
				}
				if n := len(w.api.Calls("POST", dm)); n != 2 {
					t.Errorf("%d calls; want 2", n)
				}
			})
		})
	}
}

// D19, I9: after the time of nonces the outcome is unknown; a part that comes
// back so is looked for, and marked if it is not there.
func TestD19AfterNonces(t *testing.T) {
	play(t, Options{}, func(w *world) {
		p := w.part(dm, "once")
		w.a.lost.note(nonceOf(p.Key, p.ID), time.Now().Add(-nonceTime)) // first lost then
		w.api.Fault(discordtest.Fault{Method: "POST", Path: dm, LoseReply: true})
		_, err := w.a.Send(w.ctx, p)
		if e := outcome(t, err); e.Outcome != session.SendUnknown {
			t.Fatalf("outcome %+v", e)
		}
		w.api.ForgetNonces()
		w.fresh() // a process that knows nothing of it
		p.ID, p.State, p.Since = "p2", session.PartUnknown, time.Now().Add(-3*time.Minute)
		data, _ := json.Marshal(payload{Text: "twice"})
		p.Data = data
		id, err := w.a.Send(w.ctx, p)
		if err != nil || texts(w.api.Bot(dm)) != "(possible repeat) once | (possible repeat) twice" {
			t.Fatalf("%v; messages %q", err, texts(w.api.Bot(dm)))
		}
		_ = id
		p.ID = "p3"
		p.Data, _ = json.Marshal(payload{Text: "(possible repeat) twice"})
		found, err := w.a.Send(w.ctx, p)
		if err != nil || found != id || len(w.api.Bot(dm)) != 2 {
			t.Errorf("found %s, %v; want %s and no third message", found, err, id)
		}
	})
}

// The ids of parts are unique within one session, nonces within the bot.
func TestNonceOfSession(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for _, chat := range []string{dm, room} {
			if _, err := w.a.Send(w.ctx, w.part(chat, "same id")); err != nil {
				t.Fatal(err)
			}
			if n := len(w.api.Bot(chat)); n != 1 {
				t.Errorf("%d messages in %s; want 1", n, chat)
			}
		}
		if n := nonceOf(keyOf(dm, ""), "p1"); len(n) != 24 {
			t.Errorf("nonce %q", n)
		}
	})
}

// A connection that is refused has sent nothing.
func TestNotSent(t *testing.T) {
	w := newWorld(t, Options{})
	w.o.APIURL = "http://127.0.0.1:1"
	w.fresh()
	_, err := w.a.Send(w.ctx, w.part(dm, "x"))
	if e := outcome(t, err); e.Outcome != session.SendNot || !w.a.lost.get(nonceOf(keyOf(dm, ""), "p1")).IsZero() {
		t.Errorf("outcome %+v", e)
	}
}

// D20: nothing a model writes pings anybody: allowed_mentions is closed on
// every message, and what looks like a ping is made inert.
func TestD20NoPings(t *testing.T) {
	play(t, Options{}, func(w *world) {
		if _, err := w.a.Send(w.ctx, w.part(room, "@everyone <@"+ann+"> <@&5>")); err != nil {
			t.Fatal(err)
		}
		c := w.api.Calls("POST", room)[0]
		am, _ := json.Marshal(c.Body["allowed_mentions"])
		if string(am) != `{"parse":[]}` || strings.Contains(w.api.Bot(room)[0].Content, "@everyone") {
			t.Errorf("allowed_mentions %s, text %q", am, w.api.Bot(room)[0].Content)
		}
	})
}

// D7, D22: a closed channel is refused at once and not asked again, until
// something is heard from it.
func TestD22Closed(t *testing.T) {
	t.Parallel()
	for _, code := range []int{50007, 50013, 50001} {
		t.Run(map[int]string{50007: "dm", 50013: "permission", 50001: "access"}[code], func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				w.api.AddChannel(discordtest.Channel{ID: dm, Type: discordtest.TypeDM, NoSend: code})
				for range 3 {
					_, err := w.a.Send(w.ctx, w.part(dm, "x"))
					if e := outcome(t, err); e.Outcome != session.SendRefused {
						t.Errorf("outcome %+v", e)
					}
				}
				if n := len(w.api.Calls("POST", dm)); n != 1 {
					t.Errorf("%d calls; want 1", n)
				}
				if n := strings.Count(w.logs.String(), "may not write there"); n != 1 {
					t.Errorf("told %d times; want once", n)
				}
				w.api.AddChannel(discordtest.Channel{ID: dm, Type: discordtest.TypeDM})
				w.api.Say(dm, ann, "again")
				w.next()
				if _, err := w.a.Send(w.ctx, w.part(dm, "x")); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestSendRefusesStrangeParts(t *testing.T) {
	w := newWorld(t, Options{})
	for _, p := range []session.Part{
		{PartNew: session.PartNew{Data: []byte("{}")}, Key: keyOf(dm, "")},
		{PartNew: session.PartNew{Data: []byte(`{"text":"x"}`)}, Key: session.Key{Platform: "web", Chat: "1"}},
		{PartNew: session.PartNew{Data: []byte(`{"text":"x"}`)}, Key: keyOf("../x", "")},
	} {
		_, err := w.a.Send(w.ctx, p)
		if e := outcome(t, err); e.Outcome != session.SendRefused {
			t.Errorf("%+v: %+v", p, e)
		}
	}
}
