package web

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// said is a transcript's memo in words.
func said(tr transcript) string {
	var out []string
	for _, it := range tr.Memo {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", it.Kind, it.Text, it.State)))
	}
	return strings.Join(out, " / ")
}

func sendPart(a *Adapter, key session.Key, kind session.PartKind, id, text string) error {
	_, err := a.Send(context.Background(), session.Part{Key: key, PartNew: session.PartNew{
		ID: id, Kind: kind, Turn: 3, Data: a.Parts(session.Outgoing{Key: key, Kind: kind, Markdown: text})[0],
	}})
	return err
}

func fetch(t *testing.T, a *Adapter) transcript {
	t.Helper()
	return decode[transcript](t, ask(a, "GET", readPath, ""))
}

// A command, its answer and a dropped message are shown as they were after a
// restart, by a process that knows nothing but the store. Plain messages cost
// no write: they are rows.
func TestMemoOutlivesProcess(t *testing.T) {
	hub, st := newFakeHub(), newFakeStore()
	steered(hub)
	a := newStoredAdapter(t, hub, st, "")
	// The answer is sent while the command is still at the door.
	hub.deliver = func(_ context.Context, m session.Message) error {
		if m.Text == "/status" {
			return sendPart(a, testKey, session.PartReply, "r:m:chat-one:aaaaaaaa-7/1", "**tools**, mode steer")
		}
		return nil
	}
	ask(a, "POST", postPath, `{"id":"aaaaaaaa-6","text":"a plain one"}`)
	if err := a.Sign(t.Context(), testKey, session.Fate{Ticket: 9, Msgs: []session.MessageID{"aaaaaaaa-6"}, State: session.FateAccepted}); err != nil {
		t.Fatal(err)
	}
	if err := sendPart(a, testKey, session.PartFinal, "t:3:final/1", "an answer"); err != nil {
		t.Fatal(err)
	}
	if st.writes != 0 {
		t.Fatalf("%d writes for a plain turn; want none", st.writes)
	}
	ask(a, "POST", postPath, `{"id":"aaaaaaaa-7","text":"/status"}`)
	if st.writes != 1 {
		t.Errorf("%d writes for a command; want one", st.writes)
	}
	// Dropped by a process that never saw it typed nor read: the text is taken
	// from the slot before it is gone.
	b := newStoredAdapter(t, hub, st, "")
	hub.deliver = func(_ context.Context, m session.Message) error {
		if m.Button == "drop:3" {
			if got := fetch(t, newStoredAdapter(t, hub, st, "")); !strings.Contains(said(got), "and this") {
				t.Error("the text is not in the store before the message is dropped")
			}
			hub.edit(testKey, func(l *session.Transcript, _ *session.View) { l.Slot = l.Slot[1:] })
		}
		return nil
	}
	if w := ask(b, "POST", readPath+"/press", `{"id":"aaaaaaaa-8","button":"drop:3"}`); w.Code != 200 {
		t.Fatalf("press: got %d %s", w.Code, w.Body)
	}
	f := session.Fate{Ticket: 3, Msgs: []session.MessageID{"aaaaaaaa-3"}, State: session.FateDropped}
	if err := b.Sign(t.Context(), testKey, f); err != nil {
		t.Fatal(err)
	}
	got := fetch(t, newStoredAdapter(t, hub, st, ""))
	if want := "said and this dropped / said /status / reply **tools**, mode steer"; !sameParts(said(got), want) {
		t.Errorf("after two restarts: got %s; want %s", said(got), want)
	}
	for _, it := range got.Memo {
		if it.Kind == kindSaid && it.Text == "and this" && it.ID != "aaaaaaaa-3" {
			t.Errorf("dropped: got id %s; want the message's, by which its fate is found", it.ID)
		}
	}
}

func sameParts(got, want string) bool {
	g, w := strings.Split(got, " / "), strings.Split(want, " / ")
	for _, x := range w {
		if !strings.Contains(got, x) {
			return false
		}
	}
	return len(g) == len(w)
}

// Every way to drop keeps the text, as it was last edited; what drops nothing
// keeps nothing.
func TestMemoDrops(t *testing.T) {
	for name, tt := range map[string]struct{ path, body, want string }{
		"button":      {"press", `{"id":"bbbbbbbb-1","button":"drop:4"}`, "said old steer"},
		"other press": {"press", `{"id":"bbbbbbbb-1","button":"now:4"}`, ""},
		"delete":      {"delete", `{"id":"aaaaaaaa-5"}`, "said then that"},
		"/cancel":     {"messages", `{"id":"bbbbbbbb-1","text":"/cancel","reply_to":"aaaaaaaa-3"}`, "said and this"},
		"/stop all":   {"messages", `{"id":"bbbbbbbb-1","text":"/stop  ALL"}`, "said and this / said old steer / said then that"},
		"/stop":       {"messages", `{"id":"bbbbbbbb-1","text":"/stop"}`, ""},
		"gone before": {"press", `{"id":"bbbbbbbb-1","button":"drop:77"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hub, st := newFakeHub(), newFakeStore()
			steered(hub)
			a := newStoredAdapter(t, hub, st, "")
			if w := ask(a, "POST", readPath+"/"+tt.path, tt.body); w.Code != 200 {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			var kept []string
			for _, it := range strings.Split(said(fetch(t, newStoredAdapter(t, hub, st, ""))), " / ") {
				if it != "" && !strings.HasPrefix(it, "said /") {
					kept = append(kept, it)
				}
			}
			if got := strings.Join(kept, " / "); !sameParts(got, tt.want) {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}

// I1 of the memo: a reply counts as sent, and a drop goes through the door, only
// when the store has what the page will show of it.
func TestMemoStoreAway(t *testing.T) {
	hub, st := newFakeHub(), newFakeStore()
	steered(hub)
	a := newStoredAdapter(t, hub, st, "")
	st.setFault(errStore)
	err := sendPart(a, testKey, session.PartReply, "r:1/1", "pong")
	if se, ok := errors.AsType[*session.SendError](err); !ok || se.Outcome != session.SendNot {
		t.Errorf("send: got %v; want not sent, so that it is sent again", err)
	}
	if w := ask(a, "POST", readPath+"/press", `{"id":"bbbbbbbb-1","button":"drop:3"}`); w.Code != 503 || strings.Contains(w.Body.String(), "inner") {
		t.Errorf("drop: got %d %s; want 503", w.Code, w.Body)
	}
	if n := len(hub.messages()); n != 0 {
		t.Errorf("%d messages went through the door; want none", n)
	}
	if w := ask(a, "GET", readPath, ""); w.Code != 503 {
		t.Errorf("read: got %d; want 503 and not a page without its memo", w.Code)
	}
	err = a.Sign(t.Context(), testKey, session.Fate{Ticket: 3, Msgs: []session.MessageID{"aaaaaaaa-3"}, State: session.FateDropped})
	if se, ok := errors.AsType[*session.SendError](err); !ok || se.Outcome != session.SendNot {
		t.Errorf("sign: got %v; want it again", err)
	}
	st.setFault(nil)
	if err := sendPart(a, testKey, session.PartReply, "r:1/1", "pong"); err != nil {
		t.Fatal(err)
	}
	if got := said(fetch(t, newStoredAdapter(t, hub, st, ""))); got != "reply pong" {
		t.Errorf("got %q; want the reply once", got)
	}
}

// Two processes write one conversation's memo at once: neither takes anything
// from the other, and both show all of it.
func TestMemoTwoProcesses(t *testing.T) {
	hub, st := newFakeHub(), newFakeStore()
	a, b := newStoredAdapter(t, hub, st, ""), newStoredAdapter(t, hub, st, "")
	var wg sync.WaitGroup
	for i := range 20 {
		for _, x := range []*Adapter{a, b} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for sendPart(x, testKey, session.PartReply, fmt.Sprintf("r:%p:%d/1", x, i), "x") != nil {
				}
			}()
		}
	}
	wg.Wait()
	for _, x := range []*Adapter{a, b, newStoredAdapter(t, hub, st, "")} {
		if got := fetch(t, x); len(got.Memo) != 40 {
			t.Errorf("got %d replies; want 40", len(got.Memo))
		}
	}
}

// A write that another process came before is made again with what that one
// wrote; a drop that no page asked for keeps the text a page has read.
func TestMemoStale(t *testing.T) {
	hub, st := newFakeHub(), newFakeStore()
	steered(hub)
	a, b := newStoredAdapter(t, hub, st, ""), newStoredAdapter(t, hub, st, "")
	st.before = func() {
		st.before = nil
		if err := sendPart(b, testKey, session.PartReply, "r:b/1", "theirs"); err != nil {
			t.Error(err)
		}
	}
	if err := sendPart(a, testKey, session.PartReply, "r:a/1", "ours"); err != nil {
		t.Fatal(err)
	}
	if got := said(fetch(t, b)); got != "reply theirs / reply ours" {
		t.Errorf("got %q; want both", got)
	}
	if err := b.Sign(t.Context(), testKey, session.Fate{Ticket: 3, Msgs: []session.MessageID{"aaaaaaaa-3"}, State: session.FateDropped}); err != nil {
		t.Fatal(err)
	}
	if got := said(fetch(t, a)); !strings.Contains(got, "said and this dropped") {
		t.Errorf("got %q; want the dropped message", got)
	}
}

// A message typed here and dropped through another process is dropped here too.
func TestMemoDroppedElsewhere(t *testing.T) {
	hub, st := newFakeHub(), newFakeStore()
	a, b := newStoredAdapter(t, hub, st, ""), newStoredAdapter(t, hub, st, "")
	ask(a, "POST", postPath, `{"id":"aaaaaaaa-3","text":"and this"}`)
	steered(hub)
	ask(b, "POST", readPath+"/press", `{"id":"bbbbbbbb-1","button":"drop:3"}`)
	if err := b.Sign(t.Context(), testKey, session.Fate{Ticket: 3, Msgs: []session.MessageID{"aaaaaaaa-3"}, State: session.FateDropped}); err != nil {
		t.Fatal(err)
	}
	if got := said(fetch(t, a)); got != "said and this dropped" {
		t.Errorf("got %q; want it once, dropped", got)
	}
}

// The stored memo stays small however much is asked, and it is the oldest that
// goes.
func TestMemoBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, st := newFakeHub(), newFakeStore()
		a := newStoredAdapter(t, hub, st, "")
		many := keepReplies + 20
		for i := range many {
			if err := sendPart(a, testKey, session.PartReply, fmt.Sprintf("r:%d/1", i), fmt.Sprintf("%d %s", i, strings.Repeat("x", i*200))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // in the bubble
		}
		size := len(st.docs[MemoName(testKey)])
		if size > memoMost+memoMost/10 || size < memoMost/2 {
			t.Errorf("the memo has %d bytes; want about %d", size, memoMost)
		}
		got := fetch(t, newStoredAdapter(t, hub, st, ""))
		if n := len(got.Memo); n == 0 || n > keepReplies || !strings.HasPrefix(got.Memo[n-1].Text, fmt.Sprintf("%d x", many-1)) {
			t.Errorf("got %d items; want the newest", n)
		}
		// A reply that comes before the stored ones are read is newer than they.
		for i := range keepReplies {
			if err := sendPart(a, testKey, session.PartReply, fmt.Sprintf("s:%d/1", i), "small"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // in the bubble
		}
		c := newStoredAdapter(t, hub, st, "")
		if err := sendPart(c, testKey, session.PartReply, "z:1/1", "the newest"); err != nil {
			t.Fatal(err)
		}
		if got := said(fetch(t, newStoredAdapter(t, hub, st, ""))); !strings.Contains(got, "the newest") || strings.Count(got, "small") != keepReplies-1 {
			t.Errorf("got %d of the old and the newest: %v", strings.Count(got, "small"), strings.Contains(got, "the newest"))
		}
	})
}

// What the store has is not believed: a memo that does not decode is no reason
// to show nothing.
func TestMemoUnreadable(t *testing.T) {
	st := newFakeStore()
	st.docs[MemoName(testKey)], st.version[MemoName(testKey)] = []byte(`{"no`), 1
	a := newStoredAdapter(t, newFakeHub(), st, "")
	if got := fetch(t, a); len(got.Memo) != 0 {
		t.Errorf("got %+v", got.Memo)
	}
	if err := sendPart(a, testKey, session.PartReply, "r:1/1", "pong"); err != nil {
		t.Fatal(err)
	}
	if got := said(fetch(t, newStoredAdapter(t, newFakeHub(), st, ""))); got != "reply pong" {
		t.Errorf("got %q; want it written anew", got)
	}
}

// A question is answered in place and leaves nothing in the conversation; only
// commands that leave nothing behind may be asked.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, st := newFakeHub(), newFakeStore()
		a := newStoredAdapter(t, hub, st, "")
		hub.deliver = func(_ context.Context, m session.Message) error {
			if m.Text == "/jobs" {
				return nil // its answer is lost
			}
			return sendPart(a, m.Key, session.PartReply, "r:"+m.Dedupe+"/1", "Message 2: answered.")
		}
		w := ask(a, "POST", readPath+"/ask", `{"id":"aaaaaaaa-1","text":"/why","reply_to":"bbbbbbbb-2"}`)
		if got := decode[map[string]string](t, w)["text"]; w.Code != 200 || got != "Message 2: answered." {
			t.Errorf("got %d %q; want the answer", w.Code, got)
		}
		m := <-hub.arrived
		if m.Kind != session.KindText || m.Text != "/why" || m.ReplyTo != "bbbbbbbb-2" || m.Dedupe != "q:aaaaaaaa-1" || m.Key != testKey || m.From.ID != person.ID {
			t.Errorf("got %+v", m)
		}
		if w := ask(a, "POST", readPath+"/ask", `{"id":"aaaaaaaa-2","text":"/jobs"}`); w.Code != 200 || !strings.Contains(w.Body.String(), "no answer came") {
			t.Errorf("no answer: got %d %s", w.Code, w.Body)
		}
		// Sent again, or after the asker has gone: it is sent all the same.
		if err := sendPart(a, testKey, session.PartReply, "r:q:aaaaaaaa-1/1", "again"); err != nil {
			t.Errorf("late: %v", err)
		}
		if tr := fetch(t, a); len(tr.Memo) != 0 || st.writes != 0 {
			t.Errorf("got %+v and %d writes; want nothing of it in the conversation", tr.Memo, st.writes)
		}
		if n := len(a.rooms.of(testKey).asks); n != 0 {
			t.Errorf("%d ears are still open", n)
		}
		for _, bad := range []string{"hello", "/steer left", "/new", "/stop", "/whyever", "", "/btw x"} {
			if w := ask(a, "POST", readPath+"/ask", fmt.Sprintf(`{"id":"aaaaaaaa-3","text":%q}`, bad)); w.Code != 400 {
				t.Errorf("ask %q: got %d; want 400", bad, w.Code)
			}
		}
		if w := ask(a, "POST", readPath+"/ask", `{"id":"`+strings.Repeat("a", 41)+`","text":"/why"}`); w.Code != 400 {
			t.Errorf("long id: got %d; want 400: the id of its answer would not tell whose it is", w.Code)
		}
		if w := ask(a, "POST", readPath+"/ask", `{"id":"aaaaaaaa-4","text":"/why"}`, "Origin", "http://evil.example"); w.Code != 403 {
			t.Errorf("foreign: got %d; want 403", w.Code)
		}
		if n := len(hub.messages()); n != 2 {
			t.Errorf("%d messages went through the door; want the two that were asked", n)
		}
	})
}

// A session's jobs are told; questions beside the turn are none.
func TestJobs(t *testing.T) {
	hub := newFakeHub()
	steered(hub)
	a := newTestAdapter(t, hub, "")
	if tr := fetch(t, a); tr.Jobs == nil || len(tr.Jobs) != 0 {
		t.Errorf("got %+v; want an empty list", tr.Jobs)
	}
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) {
		l.Jobs = []session.Job{
			{ID: "j1", Turn: 3, Name: "make\u202e test", State: session.JobRunning, At: 1000, Body: "SECRET", Data: []byte(`{}`)},
			{ID: "btw:aaaaaaaa-1", Name: "btw", State: session.JobRunning},
			{ID: "j2", Name: "sleep", State: session.JobLost},
		}
	})
	w := ask(a, "GET", readPath, "")
	tr := decode[transcript](t, w)
	if len(tr.Jobs) != 2 || tr.Jobs[0] != (job{ID: "j1", Name: "make test", State: "running", Turn: 3, Since: 1000}) || tr.Jobs[1].State != "lost" {
		t.Errorf("got %+v", tr.Jobs)
	}
	if strings.Contains(w.Body.String(), "SECRET") {
		t.Error("a job's output is told before its end is")
	}
}
