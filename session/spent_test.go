package session_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"coxswain/session"
	"coxswain/steer"
)

// A pressed button may be taken away when it has had its effect, and not when
// somebody pressed it who may not.
func TestSpent(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		spent := func(button string, want bool) {
			t.Helper()
			m := w.says("ann", lobby, "")
			m.Kind, m.Button = session.KindPress, button
			if got, err := w.hub.Spent(t.Context(), m); err != nil || got != want {
				t.Errorf("%s: spent %v, %v; want %v", button, got, err, want)
			}
		}
		// press presses for somebody, and says whether the button is spent then.
		press := func(who session.UserID, button string, want bool) {
			t.Helper()
			w.press(who, lobby, button)
			spent(button, want)
		}
		w.deliver(w.says("ann", lobby, "a task"))
		one := w.deliver(w.says("ann", lobby, "one"))
		button := func(verb string) string { return fmt.Sprintf("%s:%d", verb, w.entry(lobby).Ticket) }
		press("eve", button("drop"), false)
		press("eve", button("now"), false)
		press("ann", button("now"), true)
		if w.out.of(one) != session.FatePending {
			t.Fatalf("sent now, and %s", w.out.of(one))
		}
		press("eve", button("queue"), false)
		press("ann", button("queue"), true)
		drop := button("drop")
		w.deliver(w.says("ann", lobby, "/stop"))
		press("eve", button("run"), false)
		run := button("run")
		press("ann", run, true) // it runs: it does not wait any more
		spent(drop, true)
		spent("stop:2", false)
		spent("pending", false)
		spent("nonsense", true)

		w.agent.end <- session.Outcome{End: session.EndFailed, Public: "It failed."}
		synctest.Wait()
		press("eve", "retry:2", false)
		press("ann", "retry:2", true)
		w.agent.end <- session.Outcome{End: session.EndFailed, Public: "It failed."}
		synctest.Wait()
		spent("retry:2", true) // the newest failure has a button of its own
		spent("retry:3", false)
		w.deliver(w.says("bob", lobby, "another task"))
		press("ann", "retry:3", true) // it waits to be sent again
		w.finish("done")
		w.finish("done")
	})
}
