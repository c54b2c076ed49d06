package telegram

import (
	"fmt"
	"strings"
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

// T1: an edit carries the new words, the old id and an identity of its own.
func TestT01Edit(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T01_edit.json")
		ms := w.got()
		if len(ms) != 2 {
			t.Fatalf("took %d; want 2", len(ms))
		}
		m, e := ms[0], ms[1]
		if e.Kind != session.KindEdit || e.ID != m.ID || e.Text != "use the February data" {
			t.Errorf("edit is %+v", e)
		}
		if !strings.HasPrefix(e.Dedupe, "e:7001:11:1790000005:") || e.Dedupe == m.Dedupe {
			t.Errorf("edit's dedupe is %q", e.Dedupe)
		}
		if e.OpenFor != 0 || e.Group != "" {
			t.Errorf("edit opens an input: %q %v", e.Group, e.OpenFor)
		}
	})
}

// T3: what is no change of words is no edit; a change of formatting is one.
func TestT03EditThatChangesNothing(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T03_edit_same.json")
		ms := w.got()
		if len(ms) != 2 || ms[1].Kind != session.KindEdit || ms[1].Sent.Unix() != 1790000003 {
			t.Errorf("took %+v; want the message and the edit that made a word bold", ms)
		}
		w.golden("T03_live_location.json")
		if ms := w.got(); len(ms) != 0 {
			t.Errorf("a moving live location was taken: %+v", ms)
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

// T6: a forward joins the words around it.
func TestT06Forward(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T06_forward.json")
		ms := w.got()
		if f := ms[1]; f.Forwarded != "Bob" || f.Group != "paste" || f.OpenFor != time.Second || ms[0].Group != "paste" {
			t.Errorf("forward is %+v", f)
		}
	})
}

// T7: in a forward nothing is a command and no one is addressed by it.
func TestT07ForwardedCommand(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T07_forward_command.json")
		ms := w.byID()
		if ms[0].Forwarded != "Mallory" || ms[0].Text != "/stop now" {
			t.Errorf("got %+v", ms[0])
		}
		if ms[1].Forwarded != "News" || ms[1].Addressed {
			t.Errorf("a forwarded mention addresses the bot: %+v", ms[1])
		}
		if ms[2].Forwarded != "unknown" {
			t.Errorf("origin of an unknown kind is %q; it must not be empty", ms[2].Forwarded)
		}
	})
}

// T8: a reply to the bot addresses it and brings what it answers.
func TestT08Reply(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T08_reply.json")
		ms := w.byID()
		for i, want := range []struct {
			to    session.MessageID
			bot   bool
			quote string
		}{
			{"49", true, "I took report A, then report B."},
			{"49", true, "then report B"},
			{"48", false, "lunch?"},
			{"", false, "Prices rise"},
		} {
			m := ms[i]
			if m.ReplyTo != want.to || m.ReplyToBot != want.bot || m.Quote != want.quote {
				t.Errorf("%d: to %q bot %v quote %q; want %+v", i, m.ReplyTo, m.ReplyToBot, m.Quote, want)
			}
			if m.Addressed != (want.bot || m.Private) {
				t.Errorf("%d: addressed %v", i, m.Addressed)
			}
		}
	})
}

// T8: a reply to the bubble of the running turn steers it; to one of a turn that
// is over, or with a command, it is what it says.
func TestT08ReplyToTheBubble(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		v := view(ann, time.Now(), 1)
		w.a.Show(v)
		w.settle(4 * time.Second)
		bubble := w.api.Messages(ann)[0].ID
		reply := telegramtest.Fields{"reply_to_message": map[string]any{"message_id": bubble, "date": 1, "chat": map[string]any{"id": ann, "type": "private"}, "from": map[string]any{"id": telegramtest.BotID, "is_bot": true, "first_name": "Cox"}}}
		w.api.Say(ann, ann, "use March", reply)
		w.api.Say(ann, ann, "/stop", reply)
		w.api.Say(ann, ann, "no reply")
		if ms := w.got(); texts(ms) != "/steer use March /stop no reply" || ms[0].Group != "" || !ms[0].ReplyToBot {
			t.Errorf("took %q %+v", texts(ms), ms[0])
		}
		v.Rev, v.Done = 2, true
		w.a.Show(v)
		w.settle(10 * time.Second)
		w.api.Say(ann, ann, "use March", reply)
		if got := texts(w.got()); got != "use March" {
			t.Errorf("after the turn: %q", got)
		}
	})
}

// T10: entities say who is mentioned, in UTF-16 units and whatever the case.
func TestT10Mentions(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T10_mentions.json")
		w.settle(10 * time.Second) // the picture is not to be had
		ms := w.got()
		for i, want := range []bool{true, false, false, true} {
			if ms[i].Addressed != want {
				t.Errorf("%q addressed = %v; want %v", ms[i].Text, ms[i].Addressed, want)
			}
		}
	})
}

// T11: the bot's own suffix goes, another bot's command is not ours, and a
// slash that Telegram has not marked is text.
func TestT11Commands(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T11_commands.json")
		var got []string
		for _, m := range w.byID() {
			got = append(got, fmt.Sprintf("%s|%v|%s", m.Text, m.Addressed, m.Group))
		}
		want := []string{"/stop all|true|", "/stop|false|", "please /stop|false|paste", " / is the root|true|paste", "/steer use the March data|true|"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %q\nwant %q", got, want)
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

// T13: an anonymous admin is nobody a list could name.
func TestT13AnonymousAdmin(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T13_anonymous_admin.json")
		if m := w.one(); m.From.ID != "chat:-1001234567890" || m.From.Name != "owner" {
			t.Errorf("from %+v", m.From)
		}
	})
}

// T14, T15: what no person wrote is passed over, and confirmed.
func TestT14T15NotPeople(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T14_not_people.json")
		if ms := w.got(); len(ms) != 0 {
			t.Errorf("taken: %+v", ms)
		}
		w.golden("T15_bots.json")
		if m := w.one(); m.Forwarded != "@inline_bot" {
			t.Errorf("text by way of an inline bot is %+v; want it marked as another's words", m)
		}
		w.settle(time.Minute)
		if n, _ := w.api.Pending(); n != 0 {
			t.Errorf("%d updates unconfirmed; want 0", n)
		}
	})
}

// T18: a thread is a topic only if the message says so; General has no id.
func TestT18Topics(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T18_topics.json")
		ms := w.byID()
		for i, want := range []session.ThreadID{"77", "", "", "9"} {
			if ms[i].Key.Thread != want {
				t.Errorf("%q: thread %q; want %q", ms[i].Text, ms[i].Key.Thread, want)
			}
		}
		if ms[0].ReplyTo != "" || ms[0].ReplyToBot || ms[0].Addressed {
			t.Errorf("the topic's first message counts as a reply: %+v", ms[0])
		}
		if ms[2].ReplyTo != "55" {
			t.Errorf("reply to %q; want 55", ms[2].ReplyTo)
		}
	})
}

// T26, I2: the same message by another update has the same identity.
func TestT26SameIdentityAgain(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T01_edit.json")
		w.golden("T01_edit.json")
		ms := w.got()
		if len(ms) != 4 {
			t.Fatalf("took %d; want 4", len(ms))
		}
		if ms[2].Dedupe != ms[0].Dedupe || ms[3].Dedupe != ms[1].Dedupe {
			t.Errorf("dedupe %q %q, then %q %q", ms[0].Dedupe, ms[1].Dedupe, ms[2].Dedupe, ms[3].Dedupe)
		}
	})
}

// T32: presses are answered at once, also one whose message cannot be seen.
func TestT32Presses(t *testing.T) {
	play(t, Options{}, func(w *world) {
		release := make(chan struct{})
		w.door.set(func(d *door) { d.hold = release })
		w.golden("T32_presses.json")
		w.got()
		if un := w.api.Unanswered(); len(un) != 0 {
			t.Errorf("unanswered while the door is busy: %v", un)
		}
		close(release)
		ms := w.got()
		if len(ms) != 3 {
			t.Fatalf("took %d; want 3: that of an inline message is not ours", len(ms))
		}
		by := make(map[string]session.Message)
		for _, m := range ms { // chats are delivered side by side
			by[m.Interaction] = m
		}
		m := by["4382bfdwdsb323b2d9"]
		if m.Kind != session.KindPress || m.Button != "stop:17" || m.ID != "110" || m.Dedupe != "i:4382bfdwdsb323b2d9" || m.From.ID != "7001" {
			t.Errorf("press is %+v", m)
		}
		if m := by["4382bfdwdsb323b2da"]; m.Key != key(group) || m.ID != "111" || m.Private {
			t.Errorf("press below a message too old to see is %+v", m)
		}
		if m := by["4382bfdwdsb323b2db"]; m.Key.Thread != "77" {
			t.Errorf("press in a topic has key %v", m.Key)
		}
	})
}

// T32: a press that comes too late to be answered is a press all the same.
func TestT32QueryTooOld(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Fault(telegramtest.Fault{Method: "answerCallbackQuery", Code: 400, Description: "Bad Request: query is too old and response timeout expired or query ID is invalid"})
		w.golden("T32_presses.json")
		if ms := w.got(); len(ms) != 3 {
			t.Errorf("took %d; want 3", len(ms))
		}
	})
}

// T35: Stop on a draft is the Stop button of its turn.
func TestT35StopOnDraft(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		w.a.Show(session.View{Key: key(ann), Turn: 17, Rev: 1, Text: "a text that is being streamed now"})
		w.api.Update(`{"stopped_message_generation":{"chat":{"id":7001,"type":"private","first_name":"Ann"},"draft_id":17}}`)
		w.api.Update(`{"stopped_message_generation":{"chat":{"id":7001,"type":"private","first_name":"Ann"},"draft_id":3}}`)
		m := w.one()
		if m.Kind != session.KindPress || m.Button != "stop:17" || m.From.ID != "7001" || !strings.HasPrefix(m.Dedupe, "u:") {
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
