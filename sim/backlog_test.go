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
