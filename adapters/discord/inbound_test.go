package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"coxswain/discordtest"
	"coxswain/session"
)

func TestPrivateMessage(t *testing.T) {
	play(t, Options{}, func(w *world) {
		id := w.api.Say(dm, ann, "hello")
		m := w.next()
		if !m.Private || !m.Addressed || m.Text != "hello" || m.Key != keyOf(dm, "") || m.ID != session.MessageID(id) ||
			m.Dedupe != "m:"+dm+":"+id || m.From.ID != ann || m.From.Name != "Ann Lee" || m.Sent.IsZero() || m.Kind != session.KindText {
			t.Errorf("got %+v", m)
		}
	})
}

// Who is spoken to: mentions, replies, threads the bot opened or was mentioned
// in. A thread is a session within its channel (D11).
func TestAddressed(t *testing.T) {
	play(t, Options{}, func(w *world) {
		bot, err := w.a.Send(w.ctx, w.part(room, "an answer"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			channel, text, reply string
			want                 bool
			saw                  string
			key                  session.Key
		}{
			{room, "just talk", "", false, "just talk", keyOf(room, "")},
			{room, me + " do it", "", true, "do it", keyOf(room, "")},
			{room, "hey " + me, "", true, "hey " + me, keyOf(room, "")},
			{room, me + " /stop", "", true, "/stop", keyOf(room, "")},
			{room, me, "", true, me, keyOf(room, "")},
			{room, "and now?", string(bot), true, "and now?", keyOf(room, "")},
			{topic, "in a thread", "", false, "in a thread", keyOf(room, topic)},
			{topic, "<@!" + discordtest.BotID + "> come", "", true, "come", keyOf(room, topic)},
			{topic, "from now on", "", true, "from now on", keyOf(room, topic)},
			{opened, "hi", "", true, "hi", keyOf(room, opened)},
			{post, me + " post", "", true, "post", keyOf(forum, post)},
		} {
			kind := 0
			if c.reply != "" {
				kind = 19
			}
			w.api.Post(discordtest.Message{Channel: c.channel, Author: discordtest.User{ID: bob}, Content: c.text, ReplyTo: c.reply, Type: kind})
			m := w.next()
			if m.Addressed != c.want || m.Text != c.saw || m.Key != c.key || m.Private {
				t.Errorf("%q: addressed %v, text %q, key %v; want %v %q %v", c.text, m.Addressed, m.Text, m.Key, c.want, c.saw, c.key)
			}
			if c.reply != "" && (!m.ReplyToBot || m.Quote != "an answer" || m.ReplyTo != bot) {
				t.Errorf("reply read as %+v", m)
			}
		}
		if got := w.docs.get("threads"); got != `["`+topic+`","`+post+`"]` {
			t.Errorf("threads stored: %s", got)
		}
	})
}

// With sessions.group: user every person has a session, and a button leads to
// the one it was made for.
func TestGroupUser(t *testing.T) {
	play(t, Options{GroupSessions: "user"}, func(w *world) {
		w.api.Say(room, bob, me+" hi")
		m := w.next()
		if m.Key.User != bob {
			t.Fatalf("key %v", m.Key)
		}
		data := w.a.Parts(session.Outgoing{Key: m.Key, Markdown: "x", Buttons: []session.Button{{Text: "Drop", Data: "drop:1"}}})
		id, err := w.a.Send(w.ctx, session.Part{PartNew: session.PartNew{ID: "p", Data: data[0]}, Key: m.Key})
		if err != nil {
			t.Fatal(err)
		}
		w.api.Press(room, string(id), ann, "@"+bob+";drop:1")
		if p := w.next(); p.Key != m.Key || p.From.ID != ann || p.Button != "drop:1" || p.Kind != session.KindPress {
			t.Errorf("press %+v", p)
		}
	})
}

// I1, I3: what the door refuses comes again, before what was written after it;
// other channels do not wait.
func TestRetryKeepsOrder(t *testing.T) {
	play(t, Options{}, func(w *world) {
		var tries atomic.Int32
		w.door.failing(func(m session.Message) error {
			if m.Text == "one" && tries.Add(1) <= 4 {
				return errDown
			}
			return nil
		})
		w.api.Say(dm, ann, "one")
		w.api.Say(dm, ann, "two")
		w.api.Say(room, bob, me+" elsewhere")
		var dms []string
		for range 3 {
			if m := w.next(); m.Key.Chat == dm {
				dms = append(dms, m.Text)
			}
		}
		if fmt.Sprint(dms) != "[one two]" {
			t.Errorf("order %v", dms)
		}
		if s := w.a.Status(); s.Retries < 4 {
			t.Errorf("retries %d; want at least 4", s.Retries)
		}
	})
}

// I1: the cursor stands before a message the door has not taken.
func TestCursorWaitsForTheDoor(t *testing.T) {
	play(t, Options{}, func(w *world) {
		first := w.api.Say(dm, ann, "one")
		w.next()
		w.until("cursor", func() bool { return strings.Contains(w.docs.get("cursors"), first) })
		refused := make(chan struct{}, 100)
		w.door.failing(func(session.Message) error { refused <- struct{}{}; return errDown })
		second := w.api.Say(dm, ann, "two")
		<-refused
		<-refused
		w.stop()
		var got map[string]string
		if err := json.Unmarshal([]byte(w.docs.get("cursors")), &got); err != nil || before(got[dm], first) || !before(got[dm], second) {
			t.Errorf("cursors %v, %v; want %s or later, before %s", got, err, first, second)
		}
		// The next process reads it again.
		w.door.failing(nil)
		w.fresh()
		w.run()
		if m := w.next(); m.Text != "two" {
			t.Errorf("got %+v", m)
		}
	})
}

// D1: one deletion, and several at once.
func TestD1Delete(t *testing.T) {
	play(t, Options{}, func(w *world) {
		a, b, c := w.api.Say(dm, ann, "a"), w.api.Say(dm, ann, "b"), w.api.Say(dm, ann, "c")
		for range 3 {
			w.next()
		}
		w.api.Delete(dm, a)
		w.api.Delete(dm, b, c)
		for _, id := range []string{a, b, c} {
			m := w.next()
			if m.Kind != session.KindDelete || string(m.ID) != id || m.From.ID != ann || m.Key != keyOf(dm, "") || m.Dedupe != "d:"+dm+":"+id {
				t.Errorf("got %+v; want the deletion of %s", m, id)
			}
		}
	})
}

// D3: an edit has an edited_timestamp; an unfurl has not, and has no author.
// The same words again are no edit.
func TestD3EditOrUnfurl(t *testing.T) {
	play(t, Options{}, func(w *world) {
		id := w.api.Say(dm, ann, "see https://example.org")
		w.next()
		w.api.Unfurl(dm, id)
		w.nothing()
		w.api.Edit(dm, id, "see the other page")
		m := w.next()
		if m.Kind != session.KindEdit || m.Text != "see the other page" || string(m.ID) != id || !strings.HasPrefix(m.Dedupe, "e:"+dm+":"+id+":") {
			t.Errorf("got %+v", m)
		}
		w.api.Edit(dm, id, "see the other page") // a later update carries the time of edit too
		w.nothing()
		// Partial: without author; it is asked for.
		w.api.Edit(dm, id, "third")
		if m := w.next(); m.Text != "third" {
			t.Errorf("got %+v", m)
		}
		w.api.Dispatch("MESSAGE_UPDATE", `{"id":"`+id+`","channel_id":"`+dm+`","edited_timestamp":"2026-01-01T00:00:00Z"}`)
		w.nothing()
		if n := len(w.api.Calls("GET", "messages/"+id)); n != 1 {
			t.Errorf("asked %d times for the author; want once", n)
		}
	})
}

// D8, D9: webhooks, bots, the bot itself and system messages mean nothing.
func TestD8D9NotAPerson(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Content: "from a webhook", Extra: map[string]any{"webhook_id": "99"}})
		w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: "5", Bot: true}, Content: "from a bot"})
		if _, err := w.a.Send(w.ctx, w.part(dm, "from me")); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []int{3, 6, 7, 18, 20, 21, 23, 46} {
			w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Content: "system", Type: kind})
		}
		w.nothing()
		w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Content: "a reply", Type: 19})
		if m := w.next(); m.Text != "a reply" {
			t.Errorf("got %+v", m)
		}
	})
}

// D12: what has no text is described; a forward is data, never a command.
func TestD12NoText(t *testing.T) {
	play(t, Options{}, func(w *world) {
		say := func(extra map[string]any) session.Message {
			w.t.Helper()
			w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Extra: extra})
			return w.next()
		}
		if m := say(map[string]any{"sticker_items": []any{map[string]any{"id": "1", "name": "Wumpus"}}}); m.Text != "[sticker: Wumpus]" {
			t.Errorf("sticker: %+v", m)
		}
		poll := map[string]any{"question": map[string]any{"text": "When?"}, "answers": []any{
			map[string]any{"poll_media": map[string]any{"text": "now"}}, map[string]any{"poll_media": map[string]any{"text": "later"}}}}
		if m := say(map[string]any{"poll": poll}); m.Text != "[poll: When? (now / later)]" {
			t.Errorf("poll: %+v", m)
		}
		m := say(map[string]any{"message_reference": map[string]any{"type": 1, "message_id": "3"},
			"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "/stop " + me}}}})
		if m.Forwarded == "" || m.Text != "/stop "+me || m.ReplyTo != "" || m.Group == "" || m.OpenFor == 0 {
			t.Errorf("forward: %+v", m)
		}
		url := w.api.AddFile("voice.ogg", []byte("OggS"))
		m = say(map[string]any{"flags": 1 << 13, "attachments": []any{map[string]any{"id": "4", "filename": "voice.ogg", "content_type": "audio/ogg", "size": 4, "url": url}}})
		if f := w.next(); m.Text != "[files: voice.ogg]" || m.OpenFor == 0 || f.Group != m.Group || len(f.Attachments) != 1 ||
			f.Attachments[0].Kind != "voice" || f.Attachments[0].Path != "inbox/voice.ogg" {
			t.Errorf("voice: %+v then %+v", m, f)
		}
	})
}

// D16: files are loaded when the message comes, within the limit, and only for
// who speaks to the bot. Those that are loaded come as a part of the input that
// the message has opened; a /stop behind it does not wait for them.
func TestD16Files(t *testing.T) {
	play(t, Options{Files: func(_ context.Context, m session.Message) bool { return m.From.ID == ann }}, func(w *world) {
		url := w.api.AddFile("a.txt", []byte("data"))
		big := w.api.AddFile("big", make([]byte, fileMost+1))
		file := func(name, url string, size int) map[string]any {
			return map[string]any{"attachments": []any{map[string]any{"id": "4", "filename": name, "size": size, "url": url}}}
		}
		for _, c := range []struct {
			channel, user, text string
			extra               map[string]any
			path, note          string
			open                bool // comes beside
		}{
			{dm, ann, "", file("../a.txt", url, 4), "inbox/a.txt", "", true},
			{dm, ann, "look", file("../a.txt", url, 4), "inbox/a.txt", "", true},
			{dm, ann, "/queue look", file("../a.txt", url, 4), "inbox/a.txt", "", false},
			{dm, ann, "", file("big", big, fileMost+1), "", wordsTooBig, false},
			{dm, ann, "", file("liar", big, 10), "", wordsTooBig, true},
			{dm, ann, "", file("gone", url+"x", 4), "", wordsNoFile, true},
			{dm, bob, "", file("a.txt", url, 4), "", wordsNotLoaded, false},
			{room, ann, "", file("a.txt", url, 4), "", wordsNotLoaded, false},
		} {
			id := w.api.Post(discordtest.Message{Channel: c.channel, Author: discordtest.User{ID: c.user}, Content: c.text, Extra: c.extra})
			m := w.next()
			if c.open {
				first := m
				if m = w.next(); len(first.Attachments) != 0 || first.OpenFor < fileTime || first.Text == "" || m.Group != first.Group || m.ID != first.ID ||
					m.OpenFor != 0 || m.Text != "" || m.Dedupe != "f:"+c.channel+":"+id {
					t.Errorf("%v: %+v then %+v", c.extra, first, m)
				}
			}
			if len(m.Attachments) != 1 || m.Attachments[0].Path != c.path || m.Attachments[0].Note != c.note {
				t.Errorf("%v: %+v", c.extra, m.Attachments)
			}
		}
	})
}

// I1: the cursor stands before a message whose files the door has not; the next
// process hands them on.
func TestFilesOverRestart(t *testing.T) {
	play(t, Options{}, func(w *world) {
		url := w.api.AddFile("a.txt", []byte("data"))
		stuck := make(chan struct{}, 1)
		w.save.before = func(ctx context.Context) {
			select {
			case stuck <- struct{}{}:
			default:
			}
			<-ctx.Done()
		}
		w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Content: "look",
			Extra: map[string]any{"attachments": []any{map[string]any{"id": "4", "filename": "a.txt", "size": 4, "url": url}}}})
		if m := w.next(); m.Text != "look" {
			t.Errorf("got %+v", m)
		}
		<-stuck
		w.api.Say(dm, ann, "/stop")
		if m := w.next(); m.Text != "/stop" {
			t.Errorf("got %+v; want /stop at once", m)
		}
		w.stop()
		w.save.before = nil
		w.fresh()
		w.run()
		if m := w.next(); len(m.Attachments) != 1 || m.Attachments[0].Path != "inbox/a.txt" {
			t.Errorf("got %+v; want the file", m)
		}
	})
}
