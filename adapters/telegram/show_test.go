package telegram

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

// view makes the view of turn 17 that began at since.
func view(chat int64, since time.Time, rev int64) session.View {
	return session.View{Key: key(chat), Turn: 17, Rev: rev, Since: since, Phase: steer.PhaseModel, Step: 1, Steps: 60}
}

// A quick answer shows nothing beside it: no bubble, no typing, no edit.
func TestQuickTurnIsQuiet(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		v := view(ann, time.Now(), 1)
		w.a.Show(v)
		w.settle(900 * time.Millisecond)
		v.Rev, v.Done, v.End = 2, true, session.EndAnswered
		w.a.Show(v)
		w.settle(time.Minute)
		if calls := w.api.Calls("sendMessage", "editMessageText", "sendChatAction", "sendMessageDraft"); len(calls) != 0 {
			t.Errorf("calls %+v", calls)
		}
	})
}

// The bubble: after three seconds, silent, with its buttons; edited as things
// happen; one line without buttons at the end. No 429 on the way.
func TestBubble(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Flood = true
		w.api.AddChat(telegramtest.Chat{ID: group})
		asked := w.api.Say(group, ann, "go")
		began := time.Now()
		v := view(group, began, 1)
		v.Asked = session.MessageID(fmt.Sprint(asked))
		w.a.Show(v)
		w.settle(2900 * time.Millisecond)
		if n := len(w.api.Messages(group)); n != 0 {
			t.Fatalf("%d messages before three seconds", n)
		}
		w.settle(200 * time.Millisecond)
		m := w.api.Messages(group)[0]
		if !m.Silent || m.ReplyTo != asked || m.Text != "Step 1/60 · 2 s" || fmt.Sprint(m.Keyboard) != "[[{Stop stop:17}]]" {
			t.Errorf("bubble %+v", m)
		}
		v.Rev, v.Step, v.Waiting, v.Phase = 2, 3, 2, steer.PhaseTools
		v.Tools = []session.ToolView{{Name: "shell", Args: "make report", Step: 3, State: session.ToolRunning, Began: time.Now(), Tail: "cc a.c\ncc <b>&_c*\n"}}
		v.Notes = []session.NoteView{{N: 1, Step: 3, From: "Ann", Sent: true}}
		w.a.Show(v)
		w.settle(5 * time.Second)
		m = w.api.Messages(group)[0]
		want := "Step 3/60 · 6 s\n▸ shell make report · 4 s\ncc <b>&_c*\n✍️ note from Ann went in at step 3"
		if m.Text != want || fmt.Sprint(m.Keyboard) != "[[{Stop stop:17} {Waiting 2 pending}]]" {
			t.Errorf("bubble %q %v; want %q", m.Text, m.Keyboard, want)
		}
		w.settle(4 * time.Minute)
		m = w.api.Messages(group)[0]
		if !strings.HasPrefix(m.Text, "Still running, 4 min, step 3/60\n▸ shell make report · 4 min\n") || fmt.Sprint(m.Keyboard) != "[[{Stop stop:17} {Waiting 2 pending}]]" {
			t.Errorf("after long: %q %v", m.Text, m.Keyboard)
		}
		w.settle(6 * time.Minute)
		v.Rev, v.Done, v.End, v.Step = 3, true, session.EndAnswered, 5
		v.Tools = []session.ToolView{{Name: "shell", Args: "make report", Step: 3, State: session.ToolDone, Took: 360}}
		w.a.Show(v)
		w.settle(time.Minute)
		m = w.api.Messages(group)[0]
		if m.Text != "✓ 5 steps, 10 min 8 s\n✍️ note from Ann went in at step 3\n✓ shell make report · 6 min" || m.Keyboard != nil || len(w.api.Messages(group)) != 1 {
			t.Errorf("at the end: %+v", m)
		}
		if m.Edits > 60 {
			t.Errorf("%d edits in ten minutes", m.Edits)
		}
		var last time.Time
		for _, c := range w.api.Calls("editMessageText") {
			if !c.OK {
				t.Errorf("edit refused: %+v", c)
			}
			if d := c.At.Sub(last); d < editEvery {
				t.Errorf("edits %v apart", d)
			}
			last = c.At
		}
	})
}

// However lively a long turn is, its edits grow rarer: hundreds of them get a
// bot banned for minutes.
func TestEditsGrowRarer(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		since := time.Now()
		for i := range int64(600) {
			v := view(ann, since, i+1)
			v.Step = int(i)
			w.a.Show(v)
			w.settle(time.Second)
		}
		if n := w.api.Messages(ann)[0].Edits; n < 60 || n > 130 {
			t.Errorf("%d edits in ten minutes", n)
		}
	})
}

// A tool that runs a second shows the bubble before the three are up.
func TestBubbleForATool(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		v := view(ann, time.Now(), 1)
		v.Tools = []session.ToolView{{Name: "shell", State: session.ToolRunning, Began: time.Now()}}
		w.a.Show(v)
		w.settle(1100 * time.Millisecond)
		if n := len(w.api.Messages(ann)); n != 1 {
			t.Errorf("%d bubbles after 1.1 s of a tool", n)
		}
		v.Rev, v.Done, v.End = 2, true, session.EndStopped
		w.a.Show(v)
		w.settle(10 * time.Second)
		if m := w.api.Messages(ann)[0]; m.Text != "■ stopped · 1 step, 1 s\n✗ shell" {
			t.Errorf("at the end: %q", m.Text)
		}
	})
}

// Latest wins: of many views between two frames only the newest is shown, and
// an old one that comes late changes nothing.
func TestLatestViewWins(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		since := time.Now()
		w.a.Show(view(ann, since, 1))
		w.settle(3 * time.Second)
		for i := range int64(500) {
			v := view(ann, since, 2+i)
			v.Step = int(2 + i)
			w.a.Show(v)
		}
		w.a.Show(view(ann, since, 3))
		w.settle(2 * time.Second)
		if m := w.api.Messages(ann)[0]; !strings.HasPrefix(m.Text, "Step 501/60") || m.Edits > 2 {
			t.Errorf("bubble %+v", m)
		}
	})
}

// A new turn of the session takes the place of one whose last view was lost.
func TestNextTurnEndsTheOldBubble(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		w.a.Show(view(ann, time.Now(), 1))
		w.settle(4 * time.Second)
		v := view(ann, time.Now(), 1)
		v.Turn = 18
		w.a.Show(v)
		w.a.Show(view(ann, time.Now(), 9)) // a late one of the old turn
		w.settle(10 * time.Second)
		ms := w.api.Messages(ann)
		if len(ms) != 2 || ms[0].Keyboard != nil || ms[1].Keyboard[0][0].Data != "stop:18" {
			t.Errorf("bubbles %+v", ms)
		}
	})
}

// The bubble may stand there although nothing came back: not many are sent.
func TestBubbleOutcomeUnknown(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		w.api.Fault(telegramtest.Fault{Method: "sendMessage", LoseReply: true, Times: 2})
		w.a.Show(view(ann, time.Now(), 1))
		w.settle(10 * time.Second)
		if n := len(w.api.Messages(ann)); n > 3 {
			t.Errorf("%d bubbles", n)
		}
		w.settle(time.Minute)
	})
}

// X4: views go on after the poll has ended, and Close leaves no live bubble.
func TestCloseEndsBubbles(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		w.api.AddChat(telegramtest.Chat{ID: bob})
		since := time.Now()
		w.a.Show(view(ann, since, 1))
		w.a.Show(view(bob, since, 1))
		w.settle(4 * time.Second)
		w.stop()
		v := view(ann, since, 2)
		v.Done = true
		w.a.Show(v)
		w.settle(10 * time.Second)
		if m := w.api.Messages(ann)[0]; m.Text != "✓ 1 step, 4 s" {
			t.Errorf("drained turn shows %q", m.Text)
		}
		w.close()
		if m := w.api.Messages(bob)[0]; m.Text != wordsRestarting || m.Keyboard != nil {
			t.Errorf("left turn shows %+v", m)
		}
		w.a.Show(view(bob, since, 3))
		w.settle(10 * time.Second)
		if m := w.api.Messages(bob)[0]; m.Text != wordsRestarting {
			t.Errorf("shown after Close: %q", m.Text)
		}
	})
}

// Show before Run, and a last view of a turn never shown, do nothing.
func TestShowOutOfTime(t *testing.T) {
	a, err := New(Options{Token: func() string { return telegramtest.Token }, Door: &door{}, Docs: &docs{}, Save: (&inbox{}).save})
	if err != nil {
		t.Fatal(err)
	}
	a.Show(session.View{Key: key(ann), Turn: 1})
	if err := a.Close(t.Context()); err != nil {
		t.Errorf("Close before Run: %v", err)
	}
	play(t, Options{}, func(w *world) {
		w.a.Show(session.View{Key: key(ann), Turn: 1, Done: true})
		w.settle(time.Minute)
		if n := len(w.api.Calls("sendMessage")); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// A turn that another process began has its bubble already: this one goes on
// with it, and ends it with the time the task took, however late the last edit
// goes out.
func TestBubbleTakenOver(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Say(ann, ann, "go")
		began := time.Now()
		v := view(ann, began, 1)
		v.Tools = []session.ToolView{{Name: "shell", Args: "make", State: session.ToolRunning, Began: began}}
		w.a.Show(v)
		w.settle(4 * time.Second)
		first := w.api.Messages(ann)
		if len(first) != 1 || first[0].Keyboard == nil {
			t.Fatalf("bubble %+v", first)
		}
		w.stop()
		w.close()
		if m := w.api.Messages(ann)[0]; m.Text != wordsRestarting {
			t.Errorf("while nothing runs it says %q", m.Text)
		}
		w.remake(Options{Docs: w.docs})
		w.run()
		v.Resumed, v.Rev = true, 1
		w.a.Show(v)
		w.settle(4 * time.Second)
		v.Rev, v.Done, v.End, v.Ended = 2, true, session.EndAnswered, began.Add(9*time.Second)
		v.Tools = nil
		w.settle(30 * time.Second)
		w.a.Show(v)
		w.settle(time.Minute)
		if all := w.api.Messages(ann); len(all) != 1 || all[0].Text != "✓ 1 step, 9 s" || all[0].Keyboard != nil {
			t.Errorf("at the end: %+v", all)
		}
		// The next turn has a bubble of its own.
		v = view(ann, time.Now(), 1)
		v.Turn, v.Resumed = v.Turn+1, true
		w.a.Show(v)
		w.settle(5 * time.Second)
		if n := len(w.api.Messages(ann)); n != 2 {
			t.Errorf("%d messages; want two bubbles", n)
		}
	})
}

// Turns are counted in each session, and a chat has one after another: a lower
// number of another session is no late view, and the end of one does not end what
// is shown of the other.
func TestBubblesOfTwoSessions(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: group})
		old := view(group, time.Now(), 5)
		w.a.Show(old)
		w.settle(4 * time.Second)
		next := view(group, time.Now(), 1)
		next.Turn, next.Mark = 1, "@0011aabb"
		w.a.Show(next)
		w.settle(4 * time.Second)
		old.Done, old.End = true, session.EndMoved
		w.a.Show(old)
		next.Rev, next.Step = 2, 7
		w.a.Show(next)
		w.settle(10 * time.Second)
		all := w.api.Messages(group)
		if len(all) != 2 || !strings.HasPrefix(all[1].Text, "Step 7/60") || fmt.Sprint(all[1].Keyboard) != "[[{Stop stop:1@0011aabb}]]" {
			t.Errorf("shown: %+v", all)
		}
	})
}
