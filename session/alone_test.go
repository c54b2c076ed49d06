package session_test

import (
	"fmt"
	"testing"

	"coxswain/session"
	"coxswain/steer"
)

// What is answered concerns who asked alone, or it is for everybody in the chat
// to see that something has changed.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		who   session.UserID
		text  string
		alone bool
	}{
		{"eve", "/stop", true}, // refused
		{"eve", "/new", true},
		{"eve", "/steer mine", true}, // queued instead
		{"ann", "/steer", true},      // usage
		{"ann", "/thread", true},
		{"ann", "/busy nonsense", true},
		{"ann", "/busy", true}, // tells
		{"ann", "/status", true},
		{"ann", "/pending", true},
		{"ann", "/help", true},
		{"ann", "/whoami", true},
		{"ann", "/jobs", true},
		{"ann", "/why", true},
		{"ann", "/cancel", true},
		{"ann", "/resume", true},
		{"ann", "/retry", true},
		{"ann", "/nonsense", true},
		{"ann", "/link", true},
		{"ann", "/busy queue", false}, // changes
		{"ann", "/stop", false},
		{"ann", "/new", false},
	} {
		play(t, set{mode: steer.Steer}, func(w *world) {
			w.deliver(w.says("ann", lobby, "a task"))
			w.deliver(w.says(c.who, lobby, c.text))
			if all := w.sent(lobby); len(all) != 1 || all[0].Alone != c.alone {
				t.Errorf("%s of %s is answered %+v; want alone: %v", c.text, c.who, all, c.alone)
			}
		})
	}
	play(t, set{}, func(w *world) {
		w.deliver(w.says("ann", lobby, "/stop"))
		if all := w.sent(lobby); len(all) != 1 || !all[0].Alone {
			t.Errorf("nothing to stop: %+v; want it for who asked alone", all)
		}
		w.deliver(w.says("ann", lobby, "a task"))
		for n := range session.SlotCap + 1 {
			m := w.says("ann", lobby, fmt.Sprint("/queue ", n))
			m.Interaction = "asked"
			w.deliver(m)
		}
		if all := w.sent(lobby); len(all) != 1 || !all[0].Alone || all[0].Interaction != "asked" {
			t.Errorf("too many: %+v; want it for who asked alone", all)
		}
	})
}
