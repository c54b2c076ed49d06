package telegram

import (
	"fmt"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// key is the session of a chat.
func key(chat int64) session.Key {
	return session.Key{Platform: Name, Chat: session.ChatID(fmt.Sprint(chat))}
}

func TestPlainMessage(t *testing.T) {
	play(t, Options{}, func(w *world) {
		id := w.api.Say(ann, ann, "hello")
		m := w.one()
		want := session.Message{
			Key: key(ann), ID: session.MessageID(fmt.Sprint(id)), From: session.Person{ID: "7001", Name: "Ann Lee"},
			Private: true, Addressed: true, Dedupe: fmt.Sprintf("m:%d:%d", ann, id), Text: "hello", Group: "paste",
			Sent: m.Sent, Received: m.Received,
		}
		if got, want := fmt.Sprintf("%+v", m), fmt.Sprintf("%+v", want); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if m.Sent.Unix() != m.Received.Unix() {
			t.Errorf("sent %v, received %v; want the same second", m.Sent, m.Received)
		}
	})
}

// T5: a text of 2,000 units or more may have a rest.
func TestT05Paste(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T05_paste.json")
		ms := w.got()
		for i, want := range []time.Duration{pasteOpen, pasteOpen, 0} {
			if ms[i].Group != "paste" || ms[i].OpenFor != want {
				t.Errorf("piece %d: group %q open %v; want paste, %v", i, ms[i].Group, ms[i].OpenFor, want)
			}
		}
		w.golden("T05_short.json")
		ms = w.got()
		for i, want := range []time.Duration{0, 0, pasteOpen} { // 1,000 emoji are 2,000 units
			if ms[i].OpenFor != want {
				t.Errorf("text %d stays open %v; want %v", i, ms[i].OpenFor, want)
			}
		}
	})
}

// The bot's name is asked for only when a text has one to compare; while it
// cannot be had, the message waits and is not lost.
func TestNameUnknownYet(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.settle(time.Minute)
		w.a.me.name = "" // as if getMe had not been answered
		w.api.Fault(telegramtest.Fault{Method: "getMe", Times: 3, HTML: 502})
		w.api.Say(ann, ann, "no name in it")
		if m := w.one(); m.Text != "no name in it" {
			t.Errorf("got %+v", m)
		}
		w.api.Say(group, bob, "@cox_test_bot hi")
		if ms := w.got(); len(ms) != 0 {
			t.Errorf("taken without knowing the name: %+v", ms)
		}
		w.settle(time.Minute)
		if m := w.one(); !m.Addressed {
			t.Errorf("got %+v", m)
		}
	})
}

// Sessions of one person each: the key names the person; a button leads to the
// session it was shown for, whoever presses it.
func TestSessionsPerUser(t *testing.T) {
	play(t, Options{GroupSessions: "user"}, func(w *world) {
		w.api.Say(group, bob, "hi")
		if m := w.one(); m.Key.User != "7002" {
			t.Errorf("key %v", m.Key)
		}
		w.api.Say(ann, ann, "hi")
		if m := w.one(); m.Key.User != "" {
			t.Errorf("private key %v", m.Key)
		}
		k := key(group)
		k.User = "7002"
		parts := w.a.Parts(session.Outgoing{Key: k, Markdown: "may I?", Buttons: []session.Button{{Text: "Yes", Data: "y:1"}}})
		if _, err := w.send(session.Part{PartNew: session.PartNew{ID: "x", Data: parts[0]}, Key: k}); err != nil {
			t.Fatal(err)
		}
		msg := w.api.Messages(group)[0]
		w.api.Press(group, msg.ID, ann, msg.Keyboard[0][0].Data)
		if m := w.one(); m.Key != k || m.From.ID != "7001" || m.Button != "y:1" {
			t.Errorf("press is %+v", m)
		}
	})
}
