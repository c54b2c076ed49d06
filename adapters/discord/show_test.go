package discord

import (
	"strings"
	"testing"
	"time"

	"coxswain/adapters/bubble"
	"coxswain/discordtest"
	"coxswain/session"
)

func quick(w *world) {
	w.a.timing.typingAfter, w.a.timing.typingEvery = 10*time.Millisecond, 30*time.Millisecond
	w.a.timing.bubbleAfter, w.a.timing.editEvery = 30*time.Millisecond, 20*time.Millisecond
}

// A turn that lasts has typing, one bubble with Stop that is edited, and one
// line at the end. A reply to the bubble steers.
func TestBubble(t *testing.T) {
	w := newWorld(t, Options{})
	quick(w)
	w.run()
	w.connected()
	asked := w.api.Say(dm, ann, "build it")
	w.next()
	v := session.View{Key: keyOf(dm, ""), Turn: 3, Rev: 1, Asked: session.MessageID(asked), Step: 2, Steps: 60, Since: time.Now(),
		Tools: []session.ToolView{{Name: "shell", Args: "echo `@everyone`", State: session.ToolRunning, Began: time.Now(), Tail: "a\nb\n"}}}
	w.a.Show(v)
	w.until("bubble", func() bool { return len(w.api.Bot(dm)) == 1 })
	b := w.api.Bot(dm)[0]
	if !strings.HasPrefix(b.Content, "**Step 2/60 · ") || !strings.Contains(b.Content, "`echo '@everyone'`") || !strings.Contains(b.Content, "\n`b`") ||
		!strings.Contains(string(b.Components), `"stop:3"`) || !b.Silent || b.ReplyTo != asked {
		t.Errorf("bubble %+v %s", b, b.Components)
	}
	v.Rev, v.Waiting, v.Notice = 2, 2, "waiting for *the* model"
	w.a.Show(v)
	w.until("edited", func() bool { return strings.Contains(string(w.api.Bot(dm)[0].Components), "Waiting 2") })
	if got := w.api.Bot(dm)[0].Content; !strings.Contains(got, `waiting for \*the\* model`) {
		t.Errorf("bubble %q", got)
	}
	w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: ann}, Content: "use March", ReplyTo: b.ID, Type: 19})
	if m := w.next(); m.Text != "/steer use March" {
		t.Errorf("got %+v", m)
	}
	w.until("typing goes on", func() bool { return len(w.api.Calls("POST", "typing")) >= 2 })
	v.Rev, v.Done = 3, true
	w.a.Show(v)
	w.until("closed", func() bool { return strings.HasPrefix(w.api.Bot(dm)[0].Content, "✓ 2 steps, ") })
	if got := w.api.Bot(dm); len(got) != 1 || string(got[0].Components) != "[]" {
		t.Errorf("left: %+v %s", got, got[0].Components)
	}
	w.end()
}

// A turn that is over soon shows nothing; Close leaves a word at the bubbles.
func TestShortTurnAndClose(t *testing.T) {
	w := newWorld(t, Options{})
	w.run()
	w.connected()
	v := session.View{Key: keyOf(dm, ""), Turn: 1, Rev: 1}
	w.a.Show(v)
	v.Done = true
	w.a.Show(v)
	w.nothing()
	if n := len(w.api.Calls("POST", dm)); n != 0 {
		t.Errorf("%d calls for a short turn", n)
	}
	w.stop()
	w.fresh()
	quick(w)
	w.run()
	w.connected()
	w.a.Show(session.View{Key: keyOf(room, ""), Turn: 2, Rev: 1})
	w.until("bubble", func() bool { return len(w.api.Bot(room)) == 1 })
	w.end()
	if got := texts(w.api.Bot(room)); got != wordsRestarting {
		t.Errorf("left %q", got)
	}
}

// Edits of a bubble keep their distance.
func TestBubbleRhythm(t *testing.T) {
	w := newWorld(t, Options{})
	quick(w)
	w.a.timing.editEvery = 100 * time.Millisecond
	w.run()
	w.connected()
	v := session.View{Key: keyOf(dm, ""), Turn: 1}
	for n := range 200 {
		v.Rev, v.Step = int64(n), n
		w.a.Show(v)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for len(w.api.Calls("PATCH", dm)) < 6 {
		<-tick.C
		v.Rev++
		v.Step++
		w.a.Show(v)
	}
	// When they arrived, not when they left: one that was held up on a busy machine
	// comes closer to the next, so all are looked at together.
	calls := w.api.Calls("PATCH", dm)[:6]
	if d := calls[5].At.Sub(calls[0].At); d < 5*60*time.Millisecond {
		t.Errorf("six edits in %v; want 100 ms between two", d)
	}
	w.end()
}

// One sign per state; the one before is taken away, also after a restart.
func TestSigns(t *testing.T) {
	play(t, Options{}, func(w *world) {
		id := w.api.Say(dm, ann, "x")
		w.next()
		f := session.Fate{Ticket: 1, Msgs: []session.MessageID{session.MessageID(id)}, Waited: true}
		for _, c := range []struct {
			state session.FateState
			want  string
		}{
			{session.FatePending, "👀"}, {session.FateQueued, "😴"}, {session.FateHeld, "😴"}, {session.FateAttached, "😴"},
			{session.FateSteered, "✍️"}, {session.FateAnswered, "👍"}, {session.FateDropped, "👎"}, {session.FateFailed, "💔"}, {session.FateStopped, "🫡"},
		} {
			if c.state == session.FateAnswered {
				w.stop()
				w.fresh()
				w.run()
			}
			f.State = c.state
			if err := w.a.Sign(w.ctx, keyOf(dm, ""), f); err != nil {
				t.Fatal(err)
			}
			got := w.api.Messages(dm)[0].Reactions
			if len(got) != 1 || !got[c.want] {
				t.Errorf("%s: %v; want %s", c.state, got, c.want)
			}
		}
		// What did not wait needs none; what is gone is no error (D1).
		other := w.api.Say(dm, ann, "y")
		w.next()
		if err := w.a.Sign(w.ctx, keyOf(dm, ""), session.Fate{Msgs: []session.MessageID{session.MessageID(other)}, State: session.FateAnswered}); err != nil {
			t.Error(err)
		}
		if got := w.api.Messages(dm)[1].Reactions; len(got) != 0 {
			t.Errorf("signed: %v", got)
		}
		f.Msgs = []session.MessageID{"123"}
		if err := w.a.Sign(w.ctx, keyOf(dm, ""), f); err != nil {
			t.Error(err)
		}
	})
}

// No two states look alike, but those that wait; words begin with the same sign.
func TestSignsDiffer(t *testing.T) {
	of := map[string]session.FateState{}
	for state, sign := range reactions {
		if other, ok := of[sign]; ok && !(state.Waits() && other.Waits()) {
			t.Errorf("%s and %s are both %s", state, other, sign)
		}
		of[sign] = state
		if words := wordsState(state, 1); !strings.HasPrefix(words, sign+" ") {
			t.Errorf("%s is %q in words; want it to begin with %s", state, words, sign)
		}
	}
}

// Where reactions are refused, one silent message lists what waits; it is
// edited, and done with when nothing waits.
func TestNoSigns(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChannel(discordtest.Channel{ID: room, Guild: guild, NoReactions: true})
		one, two := w.api.Say(room, ann, "first *thing*"), w.api.Say(room, ann, "second")
		w.next()
		w.next()
		for _, c := range []struct {
			msg   string
			state session.FateState
			want  string
		}{
			{one, session.FateQueued, "What became of your messages:\n“first \\*thing\\*” 😴 waits its turn"},
			{two, session.FatePending, "What became of your messages:\n“first \\*thing\\*” 😴 waits its turn\n“second” 👀 goes in at the next step"},
			{two, session.FateSteered, "What became of your messages:\n“first \\*thing\\*” 😴 waits its turn\n“second” ✍️ went in at step 4"},
			{two, session.FateAnswered, "What became of your messages:\n“first \\*thing\\*” 😴 waits its turn"},
			{one, session.FateDropped, "✓ nothing waits"},
		} {
			f := session.Fate{Msgs: []session.MessageID{session.MessageID(c.msg)}, State: c.state, Waited: true, Step: 4}
			if err := w.a.Sign(w.ctx, keyOf(room, ""), f); err != session.ErrNoSigns {
				t.Errorf("Sign: %v; want ErrNoSigns", err)
			}
			if got := w.api.Bot(room); len(got) != 1 || got[0].Content != c.want || !got[0].Silent {
				t.Errorf("%s: %q; want %q", c.state, texts(got), c.want)
			}
		}
		if n := len(w.api.Calls("PUT", "reactions")); n != 1 {
			t.Errorf("tried %d times; want once", n)
		}
	})
}

// The bubble's first line says at once that long work goes on; one line stands
// for several calls of a tool in a row, and in a chat that is shown no calls
// notes and steps are there all the same.
func TestBubbleWords(t *testing.T) {
	v := session.View{Step: 7, Steps: 60, Notes: []session.NoteView{{N: 1, Step: 6, From: "Ann", Sent: true}}}
	const note = "\n✍️ note from Ann went in at step 6"
	counted := []session.ToolView{{Name: "read_file", Args: "c.go", State: session.ToolRunning, Times: 3}}
	for _, c := range []struct {
		tools []session.ToolView
		d     time.Duration
		want  string
	}{
		{nil, 30 * time.Second, "**Step 7/60 · 30 s**" + note},
		{nil, 4*time.Minute + 9*time.Second, "**Still running, 4 min, step 7/60**" + note},
		{counted, 5 * time.Second, "**Step 7/60 · 4 s**\n▸ `read_file` `c.go` ×3" + note},
	} {
		v.Tools = c.tools
		if got := bubbleText(v, c.d, time.Now()); got != c.want {
			t.Errorf("after %v: %q; want %q", c.d, got, c.want)
		}
	}
	for d, want := range map[time.Duration]string{time.Second: "Working · 1 s", 2 * time.Minute: "Still running, 2 min"} {
		if got := bubble.Step(0, 60, d); got != want {
			t.Errorf("before the first step, after %v: %q; want %q", d, got, want)
		}
	}
}
