package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// TestBacklog is T31: what was written while the gateway was away is one input
// per author, none is lost, and a /stop among it stops nothing that began
// later.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, defaults())
		w.model.script = []reply{{say: "caught up", first: time.Second}, {say: "and bob", first: time.Second}}
		w.start()
		old := time.Now().Add(-3 * time.Hour)
		for i, m := range []struct{ who, text string }{{"alice", "one"}, {"alice", "two"}, {"bob", "hi"}, {"alice", "three"}, {"alice", "/stop"}} {
			w.deliver(session.Message{
				Key: room, ID: session.MessageID(fmt.Sprintf("#%d", i)), From: session.Person{ID: session.UserID(m.who), Name: m.who},
				Private: true, Addressed: true, Text: m.text, Dedupe: fmt.Sprintf("m:room:%d", i),
				Sent: old.Add(time.Duration(i) * time.Minute), Received: time.Now(),
			})
		}
		w.quiet()
		w.stop()
		for _, v := range check(w) {
			t.Errorf("invariant: %s", v)
		}
		if n := len(w.plat.finals()); n != 2 {
			t.Errorf("%d answers; want 2, one for each author", n)
		}
		first := decodeMsg(w.model.reqs[0].msgs[0]).Content
		for _, want := range []string{"one", "two", "three", "received late"} {
			if !strings.Contains(first, want) {
				t.Errorf("the first request lacks %q: %s", want, first)
			}
		}
		if strings.Contains(first, "hi") {
			t.Errorf("another author's message is in it: %s", first)
		}
	})
}

// TestEditAppliedOnce: an edit that was applied while its message waited comes
// again (its acknowledgement was lost) when the message runs: it is no second
// input (I2). Killing the gateway showed it.
func TestEditAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := defaults()
		c.mode = 0 // queue
		w := newWorld(t, c)
		w.model.script = []reply{{say: "first", first: 2 * time.Second}, {say: "second", first: 5 * time.Second}}
		w.start()
		message := func(id, text string) session.Message {
			return session.Message{
				Key: room, ID: session.MessageID(id), From: session.Person{ID: "alice", Name: "alice"}, Private: true, Addressed: true,
				Text: text, Dedupe: "m:room:" + id, Sent: time.Now(), Received: time.Now(),
			}
		}
		w.deliver(message("#1", "one"))
		time.Sleep(time.Second)
		w.deliver(message("#2", "two"))
		edit := message("#2", "two, edited")
		edit.Kind, edit.Dedupe = session.KindEdit, "e:room:#2:1"
		w.deliver(edit)
		time.Sleep(3 * time.Second) // the second turn runs
		w.deliver(edit)
		w.quiet()
		w.stop()
		for _, v := range check(w) {
			t.Errorf("invariant: %s", v)
		}
		if st, err := w.store.Stats(t.Context()); err != nil || st.Accepted != 2 {
			t.Errorf("accepted %d inputs, %v; want 2", st.Accepted, err)
		}
	})
}
