package session_test

import (
	"testing"
	"testing/synctest"

	"coxswain/session"
	"coxswain/steer"
)

// What rings is what notify says: answers and failures always but with none,
// replies to commands only with all.
func TestNotify(t *testing.T) {
	for _, c := range []struct {
		notify        session.Notify
		answer, reply bool // rings
	}{
		{"", true, false}, {session.NotifyImportant, true, false}, {session.NotifyAll, true, true}, {session.NotifyNone, false, false},
	} {
		play(t, set{notify: c.notify}, func(w *world) {
			w.deliver(w.says("ann", "ann", "/whoami"))
			if o := w.sent("ann"); len(o) != 1 || !o[0].Silent != c.reply {
				t.Errorf("%s: reply %+v; rings: %v", c.notify, o, c.reply)
			}
			w.deliver(w.says("ann", "ann", "a task"))
			w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "done"}
			synctest.Wait()
			if o := w.sent("ann"); len(o) != 1 || !o[0].Silent != c.answer {
				t.Errorf("%s: answer %+v; rings: %v", c.notify, o, c.answer)
			}
		})
	}
}

// An answer hangs on the message it answers when others stand between: what
// waited was overtaken.
func TestAnswerOfWhatWaitedIsAReply(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		second := w.deliver(w.says("ann", "ann", "and then this"))
		for i, want := range []session.MessageID{"m1", second.ID} {
			w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "done"}
			synctest.Wait()
			if o := w.sent("ann"); len(o) != 1 || o[0].ReplyTo != want {
				t.Errorf("answer %d: %+v; want it to reply to %s", i+1, o, want)
			}
		}
		w.deliver(w.says("ann", "ann", "a plain question"))
		w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "done"}
		synctest.Wait()
		if o := w.sent("ann"); len(o) != 1 || o[0].ReplyTo != "" {
			t.Errorf("nothing stands between: %+v", o)
		}
	})
}
