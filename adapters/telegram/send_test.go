package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"coxswain/adapters/markup"
	"coxswain/session"
	"coxswain/telegramtest"
)

func TestSendPlain(t *testing.T) {
	play(t, Options{}, func(w *world) {
		asked := w.api.Say(ann, ann, "compute")
		parts := w.a.Parts(session.Outgoing{Key: key(ann), Kind: session.PartFinal, Markdown: "It is **42** 😀, see [why](https://example.org) and `code`.",
			ReplyTo: session.MessageID(fmt.Sprint(asked)), Buttons: []session.Button{{Text: "Again", Data: "r:1"}}})
		at := time.Now()
		id, err := w.send(session.Part{PartNew: session.PartNew{ID: "f1", Kind: session.PartFinal, Data: parts[0]}, Key: key(ann)})
		if err != nil || time.Since(at) != 0 {
			t.Fatalf("%v after %v; want nil at once", err, time.Since(at))
		}
		m := w.api.Messages(ann)[0]
		if fmt.Sprint(m.ID) != string(id) || m.ReplyTo != asked || m.Silent || m.Text != "It is 42 😀, see why and code." {
			t.Errorf("sent %+v", m)
		}
		var kinds []string
		for _, e := range m.Entities {
			kinds = append(kinds, e.Type+" "+slice(m.Text, e.Offset, e.Length))
		}
		if got := strings.Join(kinds, ","); got != "bold 42,text_link why,code code" {
			t.Errorf("entities %s", got)
		}
		if m.Keyboard[0][0] != (telegramtest.Button{Text: "Again", Data: "r:1"}) {
			t.Errorf("keyboard %v", m.Keyboard)
		}
		c := w.api.Calls("sendMessage")[0]
		if prev, _ := json.Marshal(c.Params["link_preview_options"]); string(prev) != `{"is_disabled":true}` {
			t.Errorf("link preview %s", prev)
		}
		if c.Params["parse_mode"] != nil {
			t.Errorf("parse_mode %v", c.Params["parse_mode"])
		}
	})
}

// Parts: equal input gives equal payloads; each is within the limits with room
// for the words a send may add; reply first, buttons last.
func TestParts(t *testing.T) {
	a, err := New(Options{Token: func() string { return telegramtest.Token }, Door: &door{}, Docs: &docs{}, Save: (&inbox{}).save})
	if err != nil {
		t.Fatal(err)
	}
	o := session.Outgoing{Key: key(ann), ReplyTo: "5", Buttons: []session.Button{{Text: "Run", Data: "run"}, {Text: "No data"}, {Text: "Too long", Data: strings.Repeat("x", 65)}},
		Markdown: strings.Repeat("**bold** and `code` 😀 ", 900) + "\n\n```go\n" + strings.Repeat("x := 1\n", 900) + "```"}
	parts := a.Parts(o)
	again := a.Parts(o)
	if len(parts) < 6 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, data := range parts {
		if !bytes.Equal(data, again[i]) {
			t.Errorf("part %d differs the second time", i)
		}
		var p payload
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		var ents []telegramtest.Entity
		for _, e := range p.Entities {
			ents = append(ents, telegramtest.Entity{Type: string(e.Type), Offset: e.Offset, Length: e.Length, URL: e.URL})
		}
		if err := telegramtest.CheckEntities(p.Text, ents); err != nil {
			t.Errorf("part %d: %v", i, err)
		}
		if n := markup.Units(p.Text); n > partMost {
			t.Errorf("part %d: %d units", i, n)
		}
		if (p.ReplyTo == "5") != (i == 0) || (p.Keyboard != nil) != (i == len(parts)-1) {
			t.Errorf("part %d: reply %q keyboard %v", i, p.ReplyTo, p.Keyboard)
		}
	}
	var last payload
	_ = json.Unmarshal(parts[len(parts)-1], &last)
	if len(last.Keyboard.Rows) != 1 || len(last.Keyboard.Rows[0]) != 1 {
		t.Errorf("keyboard %+v; want only the button Telegram takes", last.Keyboard)
	}
	if got := a.Parts(session.Outgoing{Key: key(ann), Markdown: " \n"}); len(got) != 0 {
		t.Errorf("nothing to say makes %d parts", len(got))
	}
	if n := markup.Units(wordsRepeat + wordsTopicGone); n > textMost-partMost {
		t.Errorf("words in front may take %d units; room is %d", n, textMost-partMost)
	}
}

// STORE §2.7, F43: what each failure means for the part.
func TestSendOutcomes(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault telegramtest.Fault
		want  session.SendOutcome
		wait  time.Duration
		sent  int // messages in the chat afterwards
	}{
		{"dial refused", telegramtest.Fault{Refuse: true}, session.SendNot, 0, 0},
		{"reply lost", telegramtest.Fault{LoseReply: true}, session.SendUnknown, 0, 1},
		{"T25 no reply in time", telegramtest.Fault{Hang: true}, session.SendUnknown, 0, 0},
		{"502 of a proxy", telegramtest.Fault{HTML: 502}, session.SendUnknown, 0, 0},
		{"504 of a proxy", telegramtest.Fault{HTML: 504}, session.SendUnknown, 0, 0},
		{"502 of the API", telegramtest.Fault{Code: 502, Description: "Bad Gateway"}, session.SendUnknown, 0, 0},
		{"403 of a proxy", telegramtest.Fault{HTML: 403}, session.SendNot, 0, 0},
		{"500 of the API", telegramtest.Fault{Code: 500, Description: "Internal Server Error"}, session.SendNot, 0, 0},
		{"T24 429", telegramtest.Fault{Code: 429, Description: "Too Many Requests: retry after 7", RetryAfter: 7}, session.SendNot, 7 * time.Second, 0},
		{"401", telegramtest.Fault{Code: 401, Description: "Unauthorized"}, session.SendNot, time.Minute, 0},
		{"T19 403", telegramtest.Fault{Code: 403, Description: "Forbidden: bot was blocked by the user"}, session.SendRefused, 0, 0},
		{"400", telegramtest.Fault{Code: 400, Description: "Bad Request: chat not found"}, session.SendRefused, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				w.api.AddChat(telegramtest.Chat{ID: ann})
				c.fault.Method = "sendMessage"
				w.api.Fault(c.fault)
				_, err := w.send(w.part(ann, "hello"))
				if e := outcome(t, err); e.Outcome != c.want || e.Wait != c.wait {
					t.Errorf("outcome %d wait %v (%v); want %d, %v", e.Outcome, e.Wait, err, c.want, c.wait)
				}
				if n := len(w.api.Messages(ann)); n != c.sent {
					t.Errorf("%d messages stand there; want %d", n, c.sent)
				}
			})
		})
	}
}

// A send whose context ends before it goes out has not been sent.
func TestSendCancelledBefore(t *testing.T) {
	play(t, Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		_, err := w.a.Send(ctx, w.part(ann, "hello"))
		if e := outcome(t, err); e.Outcome != session.SendNot {
			t.Errorf("outcome %d", e.Outcome)
		}
	})
}

// I9, T25: a part that may have been sent before says so, and its formatting
// moves along.
func TestSendPossibleRepeat(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		p := w.part(ann, "it is **42**")
		p.State = session.PartUnknown
		if _, err := w.send(p); err != nil {
			t.Fatal(err)
		}
		m := w.api.Messages(ann)[0]
		if m.Text != "(possible repeat) it is 42" || slice(m.Text, m.Entities[0].Offset, m.Entities[0].Length) != "42" {
			t.Errorf("sent %+v", m)
		}
	})
}

// T20: too long after all: cut, nothing lost, buttons on the last piece.
func TestT20TooLong(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		text := strings.Repeat("word ", 2000)
		data, _ := json.Marshal(payload{Text: text, Keyboard: &keyboard{[][]button{{{"Run", "run"}}}}})
		id, err := w.send(session.Part{PartNew: session.PartNew{Data: data}, Key: key(ann)})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		ms := w.api.Messages(ann)
		for i, m := range ms {
			got += m.Text + " "
			if (m.Keyboard != nil) != (i == len(ms)-1) {
				t.Errorf("piece %d: keyboard %v", i, m.Keyboard)
			}
		}
		if got != text || string(id) != fmt.Sprint(ms[0].ID) {
			t.Errorf("%d pieces do not make the text; id %q", len(ms), id)
		}
	})
}

// T20: when a later piece fails, repeating must be said to be a repeat.
func TestT20HalfSent(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		data, _ := json.Marshal(payload{Text: strings.Repeat("word ", 1000)})
		w.api.Fault(telegramtest.Fault{Method: "sendMessage", Code: 400, Description: "Bad Request: message is too long"})
		w.api.Fault(telegramtest.Fault{Method: "sendMessage", Delay: 1})
		w.api.Fault(telegramtest.Fault{Method: "sendMessage", Code: 500, Description: "Internal Server Error"})
		_, err := w.send(session.Part{PartNew: session.PartNew{Data: data}, Key: key(ann)})
		if e := outcome(t, err); e.Outcome != session.SendUnknown || len(w.api.Messages(ann)) != 1 {
			t.Errorf("outcome %d with %d pieces there", e.Outcome, len(w.api.Messages(ann)))
		}
	})
}

// Finals in a burst arrive in the pace Telegram allows, without one 429, in
// private and in groups (20 a minute).
func TestPaceOfFinals(t *testing.T) {
	for _, chat := range []int64{ann, group} {
		play(t, Options{}, func(w *world) {
			w.api.Flood = true
			w.api.AddChat(telegramtest.Chat{ID: chat})
			began := time.Now()
			for i := 0; i < 45; {
				_, err := w.send(w.part(chat, fmt.Sprint("part ", i)))
				if err == nil {
					i++
					continue
				}
				e := outcome(t, err)
				if e.Outcome != session.SendNot || e.Wait <= 0 {
					t.Fatalf("part %d: %v", i, err)
				}
				w.settle(e.Wait) // as the outbox does
			}
			if n := len(w.api.Messages(chat)); n != 45 || n != len(w.api.Calls("sendMessage")) {
				t.Errorf("%d sent with %d calls", n, len(w.api.Calls("sendMessage")))
			}
			if most := map[bool]time.Duration{true: 50 * time.Second, false: 150 * time.Second}[chat > 0]; time.Since(began) > most {
				t.Errorf("took %v; want at most %v", time.Since(began), most)
			}
		})
	}
}

// A key that is not this platform's, and data that is no payload.
func TestSendNonsense(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for _, p := range []session.Part{
			{Key: session.Key{Platform: "discord", Chat: "1"}, PartNew: session.PartNew{Data: []byte(`{"text":"x"}`)}},
			{Key: session.Key{Platform: Name, Chat: "abc"}, PartNew: session.PartNew{Data: []byte(`{"text":"x"}`)}},
			{Key: key(ann), PartNew: session.PartNew{Data: []byte(`{"text":""}`)}},
			{Key: key(ann), PartNew: session.PartNew{Data: []byte(`nonsense`)}},
		} {
			_, err := w.send(p)
			if e := outcome(t, err); e.Outcome != session.SendRefused {
				t.Errorf("%v: outcome %d", p.Key, e.Outcome)
			}
		}
	})
}
