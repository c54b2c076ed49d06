package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"coxswain/session"
	"coxswain/steer"
)

var errStore = errors.New("dial tcp 10.0.0.9: inner secret")

// I2: the page's id is the message's, so a retried POST is the same message.
func TestMessage(t *testing.T) {
	hub := newFakeHub()
	a := newTestAdapter(t, hub, "")
	for range 2 {
		if w := ask(a, "POST", postPath, `{"id":"aaaaaaaa-1","text":" use March\n","reply_to":"bbbbbbbb-2","age":61000}`); w.Code != 200 {
			t.Fatalf("got %d %s; want 200", w.Code, w.Body)
		}
	}
	got := hub.messages()
	if len(got) != 2 || got[0].Dedupe != "m:chat-one:aaaaaaaa-1" || got[1].Dedupe != got[0].Dedupe {
		t.Fatalf("got %+v; want the same Dedupe twice", got)
	}
	m := got[0]
	if m.Key != testKey || m.ID != "aaaaaaaa-1" || m.Kind != session.KindText || m.From.ID != person.ID || !m.Private || !m.Addressed ||
		m.Text != "use March" || m.ReplyTo != "bbbbbbbb-2" {
		t.Errorf("got %+v", m)
	}
	if late := m.Received.Sub(m.Sent); late != 61*time.Second {
		t.Errorf("age: got %v; want 61s, so that a late /stop is known as late", late)
	}
	tr := decode[transcript](t, ask(a, "GET", readPath, ""))
	if len(tr.Memo) != 1 || tr.Memo[0].Kind != kindSaid || tr.Memo[0].Text != "use March" {
		t.Errorf("memo: got %+v; want the typed message once", tr.Memo)
	}
}

func TestOtherEvents(t *testing.T) {
	hub := newFakeHub()
	a := newTestAdapter(t, hub, "")
	for _, tt := range []struct {
		path, body string
		want       session.Message
	}{
		{"press", `{"id":"aaaaaaaa-1","button":"drop:7"}`, session.Message{Kind: session.KindPress, ID: "aaaaaaaa-1", Button: "drop:7", Dedupe: "i:aaaaaaaa-1"}},
		{"delete", `{"id":"aaaaaaaa-2"}`, session.Message{Kind: session.KindDelete, ID: "aaaaaaaa-2", Dedupe: "d:chat-one:aaaaaaaa-2"}},
		{"edit", `{"id":"aaaaaaaa-3","text":"new","op":"bbbbbbbb-1"}`, session.Message{
			Kind: session.KindEdit, ID: "aaaaaaaa-3", Text: "new", Dedupe: "e:chat-one:aaaaaaaa-3:bbbbbbbb-1:11507a0e2f5e69d5",
		}},
	} {
		if w := ask(a, "POST", readPath+"/"+tt.path, tt.body); w.Code != 200 {
			t.Errorf("%s: got %d %s", tt.path, w.Code, w.Body)
			continue
		}
		got := <-hub.arrived
		tt.want.Key, tt.want.From, tt.want.Private, tt.want.Addressed, tt.want.Received = testKey, person, true, true, got.Received
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
			t.Errorf("%s: got %+v; want %+v", tt.path, got, tt.want)
		}
	}
	for _, bad := range []string{`{"id":"aaaaaaaa-1","button":""}`, `{"id":"aaaaaaaa-1","button":"` + strings.Repeat("x", 65) + `"}`, `{"id":"aaaaaaaa-1","button":"a b"}`, `{"id":"aaaaaaaa-1","button":"ä"}`} {
		if w := ask(a, "POST", readPath+"/press", bad); w.Code != 400 {
			t.Errorf("press %s: got %d; want 400", bad, w.Code)
		}
	}
	// An edit back to an earlier text is another edit.
	first := `{"id":"aaaaaaaa-3","text":"new","op":"bbbbbbbb-9"}`
	ask(a, "POST", readPath+"/edit", first)
	if got := <-hub.arrived; got.Dedupe == "e:chat-one:aaaaaaaa-3:bbbbbbbb-1:11507a0e2f5e69d5" {
		t.Error("two edits to the same text have one Dedupe")
	}
}

// I1: a message the hub did not take is not answered as taken, and nothing of
// the fault is told (I13).
func TestNotTaken(t *testing.T) {
	hub := newFakeHub()
	hub.deliver = func(context.Context, session.Message) error { return errStore }
	a := newTestAdapter(t, hub, "")
	w := ask(a, "POST", postPath, goodBody)
	if w.Code != 503 || strings.Contains(w.Body.String(), "inner secret") {
		t.Errorf("got %d %s; want 503 and public words", w.Code, w.Body)
	}
	if tr := decode[transcript](t, ask(a, "GET", readPath, "")); len(tr.Memo) != 0 {
		t.Errorf("memo: got %+v; want nothing of a message that was not taken", tr.Memo)
	}
}

// Messages of one conversation go through the door one after another, those of
// others beside them.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newFakeHub()
		first := make(chan struct{})
		hub.deliver = func(_ context.Context, m session.Message) error {
			if m.ID == "aaaaaaaa-1" {
				<-first
			}
			return nil
		}
		a := newTestAdapter(t, hub, "")
		done := make(chan string, 3)
		post := func(chat, id string) {
			ask(a, "POST", "/api/sessions/"+chat+"/messages", `{"id":"`+id+`","text":"x"}`)
			done <- id
		}
		go post("chat-one", "aaaaaaaa-1")
		synctest.Wait()
		go post("chat-one", "aaaaaaaa-2")
		go post("chat-two", "aaaaaaaa-3")
		synctest.Wait()
		if len(done) != 1 || <-done != "aaaaaaaa-3" {
			t.Fatal("want only the other conversation's message through while the first is at the door")
		}
		close(first)
		synctest.Wait()
		if got := hub.messages(); len(got) != 3 || got[1].ID != "aaaaaaaa-1" || got[2].ID != "aaaaaaaa-2" {
			t.Errorf("got %v; want them in order", got)
		}
	})
}

// steered is a conversation with a steer that went in and two that wait.
func steered(hub *fakeHub) {
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) {
		l.Turn, l.Title = 3, "report"
		addRow(l, session.RowHead, map[string]string{"system": "SECRET HEAD"})
		in := inputOf(1, "aaaaaaaa-1", "write the report")
		addRow(l, session.RowUser, session.UserRow{Inputs: []session.Input{in}})
		addRow(l, session.RowAssistant, session.AssistantRow{Text: "looking", Private: json.RawMessage(`"opaque"`), Calls: []session.Call{{ID: "call00001", Name: "read_file", Args: `{"path":"april.csv"}`}}})
		addRow(l, session.RowTool, session.ToolRow{Call: "call00001", Name: "read_file", Body: strings.Repeat("é", bodyShown), Failed: true})
		s := addRow(l, session.RowSteer, inputOf(0, "aaaaaaaa-2", "use March"))
		s.On, s.N, s.Tick = 4, 1, 2
		l.Slot = []session.Entry{
			entryFor(3, "aaaaaaaa-3", "and this", steer.Steer, 3),
			entryFor(4, "aaaaaaaa-4", "old steer", steer.Steer, 2),
			entryFor(5, "aaaaaaaa-5", "then that", steer.Queue, 3),
		}
		l.Slot[2].Held = true
		setFate(l, session.Fate{Ticket: 1, Msgs: []session.MessageID{"aaaaaaaa-1"}, State: session.FateRunning, Turn: 3})
		setFate(l, session.Fate{Ticket: 2, Msgs: []session.MessageID{"aaaaaaaa-2"}, State: session.FateSteered, Turn: 3, Step: 2, Waited: true})
	})
}

func TestTranscript(t *testing.T) {
	hub := newFakeHub()
	steered(hub)
	a := newTestAdapter(t, hub, "")
	w := ask(a, "GET", readPath, "")
	for _, private := range []string{"SECRET HEAD", "opaque"} {
		if strings.Contains(w.Body.String(), private) {
			t.Errorf("the transcript tells %q (I13)", private)
		}
	}
	tr := decode[transcript](t, w)
	if !tr.Whole || tr.Turn != 3 || tr.Title != "report" || len(tr.Rows) != 4 {
		t.Fatalf("got %+v; want a whole transcript of four rows", tr)
	}
	user, call, tool, st := tr.Rows[0], tr.Rows[1], tr.Rows[2], tr.Rows[3]
	if user.Type != "user" || len(user.Inputs) != 1 || user.Inputs[0].Ticket != 1 || user.Inputs[0].ID != "aaaaaaaa-1" ||
		user.Inputs[0].Text != "write the report" || user.Inputs[0].Fate == nil || user.Inputs[0].Fate.State != session.FateRunning {
		t.Errorf("user: got %+v", user)
	}
	if call.Type != "assistant" || call.Text != "looking" || len(call.Calls) != 1 || call.Calls[0].Args != `{"path":"april.csv"}` {
		t.Errorf("assistant: got %+v", call)
	}
	if tool.Type != "tool" || !tool.Failed || tool.Call != "call00001" || len(tool.Body) > bodyShown+100 || !utf8.ValidString(tool.Body) || !strings.Contains(tool.Body, "bytes are left out") {
		t.Errorf("tool: got %d bytes, %+v", len(tool.Body), tool.Call)
	}
	if st.Type != "steer" || st.On != 4 || st.N != 1 || st.Step != 2 || st.Inputs[0].Text != "use March" || st.Inputs[0].Ticket != 2 {
		t.Errorf("steer: got %+v; want it on its tool row with note and step", st)
	}
	var states []string
	for _, e := range tr.Slot {
		states = append(states, e.State+" "+e.Input.Text)
	}
	if got := strings.Join(states, ", "); got != "pending and this, queued old steer, held then that" {
		t.Errorf("slot: got %s", got)
	}
}

// A reader that gives its cursor back gets what is new and nothing else.
func TestCursor(t *testing.T) {
	hub := newFakeHub()
	steered(hub)
	a := newTestAdapter(t, hub, "")
	send := func(id, text string) {
		if _, err := a.Send(t.Context(), session.Part{Key: testKey, PartNew: session.PartNew{ID: id, Kind: session.PartReply, Data: a.Parts(session.Outgoing{Markdown: text})[0]}}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(cursor string) transcript {
		return decode[transcript](t, ask(a, "GET", readPath+"?cursor="+cursor, ""))
	}
	send("r:1/1", "one")
	first := read("")
	send("r:2/1", "two")
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) {
		addRow(l, session.RowAssistant, session.AssistantRow{Text: "done", End: session.EndAnswered})
		l.Turn = 0
		setFate(l, session.Fate{Ticket: 1, State: session.FateAnswered})
		l.Fates[len(l.Fates)-1].Changed = time.Now().Add(time.Second).UnixMilli()
	})
	next := read(first.Cursor)
	if next.Whole || len(next.Rows) != 1 || next.Rows[0].End != "answered" || len(next.Memo) != 1 || next.Memo[0].Text != "two" {
		t.Errorf("got %+v; want the new row and the new reply", next)
	}
	var answered bool
	for _, f := range next.Fates {
		answered = answered || f.Ticket == 1 && f.State == session.FateAnswered
	}
	if !answered {
		t.Errorf("fates: got %+v; want the one that changed", next.Fates)
	}
	last := read(next.Cursor)
	if len(last.Rows) != 0 || len(last.Memo) != 0 || len(last.Fates) != 1 {
		t.Errorf("got %+v; want nothing new but the newest fate again", last)
	}
	// Another process knows other replies; rows are the store's.
	b := newTestAdapter(t, hub, "")
	reply(t, b, 1, session.PartReply)
	if tr := decode[transcript](t, ask(b, "GET", readPath+"?cursor="+last.Cursor, "")); tr.Whole || len(tr.Rows) != 0 || len(tr.Memo) != 1 || tr.Boot == last.Boot {
		t.Errorf("after a restart: got %+v; want the rows to go on and all of its replies", tr)
	}
	// A session that was deleted and begun anew has fewer rows.
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) { l.Rows = l.Rows[:2] })
	if tr := read(last.Cursor); !tr.Whole || len(tr.Rows) != 1 {
		t.Errorf("deleted: got %+v; want it whole", tr)
	}
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) { l.Gen = 2 })
	if tr := read(last.Cursor); !tr.Whole || tr.Gen != 2 {
		t.Errorf("new generation: got %+v; want it whole", tr)
	}
	for _, bad := range []string{"x", "a.b.c.d.e", "b.1.-1.0.0", strings.Repeat("9", 400)} {
		if tr := read(bad); !tr.Whole {
			t.Errorf("cursor %q: not whole", bad)
		}
	}
}

func TestListAndCommands(t *testing.T) {
	hub := newFakeHub()
	for i := range listMost + 5 {
		key := session.Key{Platform: Name, Chat: session.ChatID(fmt.Sprintf("chat-%04d", i))}
		hub.edit(key, func(l *session.Transcript, _ *session.View) {
			l.Now, l.Title = time.UnixMilli(int64(i+1)*1000), "line one\nline\u202e two"
		})
	}
	hub.edit(session.Key{Platform: "telegram", Chat: "secret"}, func(*session.Transcript, *session.View) {})
	a := newTestAdapter(t, hub, "")
	got := decode[[]listing](t, ask(a, "GET", "/api/sessions", ""))
	if len(got) != listMost || got[0].Chat != fmt.Sprintf("chat-%04d", listMost+4) || got[0].Title != "line one line two" {
		t.Errorf("got %d, first %+v; want the newest %d, titles on one line", len(got), got[0], listMost)
	}
	if cs := decode[[]Command](t, ask(a, "GET", "/api/commands", "")); len(cs) != 2 || cs[1].Args != "TEXT" {
		t.Errorf("commands: got %+v", cs)
	}
}

func TestFiles(t *testing.T) {
	a := newTestAdapter(t, newFakeHub(), "")
	for path, kind := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/app.css": "text/css", "/icon.svg": "image/svg+xml"} {
		w := ask(a, "GET", path, "")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || w.Body.Len() == 0 {
			t.Errorf("%s: got %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		if again := ask(a, "GET", path, "", "If-None-Match", w.Header().Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s again: got %d; want 304", path, again.Code)
		}
	}
	// The policy allows no inline script or style, so the page must not need
	// them; nothing is ever parsed as HTML, and nothing comes from elsewhere.
	for path, f := range files {
		for _, bad := range []string{"innerHTML =", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\"", "onclick=\"", "src=\"http", "href=\"http", "from 'http"} {
			if strings.Contains(string(f.data), bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
	}
}

// The wire form of a text that is cut off in the middle of a character.
func TestSettled(t *testing.T) {
	for in, want := range map[string]string{"": "", "abc": "abc", "né": "né", "n\xc3": "n", "n\xe2\x82": "n", "n€": "n€", "\xf0\x9f\x98": "", "bad\xff": "bad\xff"} {
		if got := settled(in); got != want {
			t.Errorf("settled(%q): got %q; want %q", in, got, want)
		}
	}
}
