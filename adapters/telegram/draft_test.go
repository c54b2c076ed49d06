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

// Typing begins after a second, comes every four, and ends with the turn
// (openclaw 27419). It costs no budget.
func TestTyping(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		began := time.Now()
		v := view(ann, began, 1)
		w.a.Show(v)
		w.settle(14 * time.Second)
		var at []time.Duration
		for _, c := range w.api.Calls("sendChatAction") {
			at = append(at, c.At.Sub(began))
		}
		if fmt.Sprint(at) != "[1s 5s 9s 13s]" {
			t.Errorf("typing at %v", at)
		}
		v.Rev, v.Phase = 2, steer.PhaseAsking
		w.a.Show(v)
		w.settle(time.Minute)
		v.Rev, v.Done = 3, true
		w.a.Show(v)
		w.settle(time.Minute)
		if n := len(w.api.Calls("sendChatAction")); n != 4 {
			t.Errorf("%d typing signs; want none while a question is open, none after the turn", n)
		}
	})
}

// A final leaves at once, however lively the bubble and the draft were.
func TestFinalGoesFirst(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Flood = true
		for _, chat := range []int64{ann, group} {
			w.api.AddChat(telegramtest.Chat{ID: chat})
			since := time.Now()
			for i := range int64(120) {
				v := view(chat, since, i+1)
				v.Step, v.Text = int(i), strings.Repeat("word ", int(i)+10)
				w.a.Show(v)
				w.settle(500 * time.Millisecond)
			}
			at := time.Now()
			if _, err := w.send(w.part(chat, "the answer")); err != nil || time.Since(at) != 0 {
				t.Errorf("chat %d: %v after %v", chat, err, time.Since(at))
			}
			w.a.Show(session.View{Key: key(chat), Turn: 17, Rev: 999, Done: true})
			w.settle(time.Minute)
		}
		for _, c := range w.api.Calls() {
			if !c.OK {
				t.Errorf("refused: %s %v", c.Method, c.Params)
			}
		}
	})
}

// Drafts: private chats only, a number that is not zero, at most two a second,
// kept alive while nothing changes, none after the final is on its way.
func TestDrafts(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		began := time.Now()
		v := view(ann, began, 1)
		v.Phase = steer.PhaseShowing
		for i := range 20 {
			v.Rev, v.Text = int64(i+1), "# Report\n\nThe answer to **all of this"+strings.Repeat(" word", i)
			w.a.Show(v)
			w.settle(100 * time.Millisecond)
		}
		calls := w.api.Calls("sendMessageDraft")
		if len(calls) < 3 || len(calls) > 5 {
			t.Fatalf("%d drafts in two seconds", len(calls))
		}
		if c := calls[0]; c.Int("draft_id") != 17 || c.At != began || strings.Contains(c.String("text"), "*") {
			t.Errorf("first draft %+v", c)
		}
		for i := 1; i < len(calls); i++ {
			if d := calls[i].At.Sub(calls[i-1].At); d < draftEvery {
				t.Errorf("drafts %v apart", d)
			}
		}
		w.settle(45 * time.Second)
		if n := len(w.api.Calls("sendMessageDraft")) - len(calls); n < 2 || n > 4 {
			t.Errorf("%d drafts in 45 s without a change; want it kept alive", n)
		}
		p := w.part(ann, "done")
		p.Turn = 17
		if _, err := w.send(p); err != nil {
			t.Fatal(err)
		}
		n := len(w.api.Calls("sendMessageDraft"))
		v.Rev, v.Text = 99, v.Text+" more"
		w.a.Show(v)
		w.settle(time.Minute)
		if got := len(w.api.Calls("sendMessageDraft")); got != n {
			t.Errorf("%d drafts after the final", got-n)
		}
	})
}

// A chat without drafts is not asked again, and shows the text nowhere but in
// the answer.
func TestDraftsRefused(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann, NoDrafts: true})
		v := view(ann, time.Now(), 1)
		for i := range 10 {
			v.Rev, v.Text = int64(i+1), strings.Repeat("word ", i+10)
			w.a.Show(v)
			w.settle(time.Second)
		}
		if n := len(w.api.Calls("sendMessageDraft")); n != 1 {
			t.Errorf("asked %d times", n)
		}
		if m := w.api.Messages(ann)[0]; strings.Contains(m.Text, "word") {
			t.Errorf("bubble %q", m.Text)
		}
	})
}

// Groups have no drafts: the bubble shows the end of the text.
func TestGroupBubbleShowsText(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: group})
		v := view(group, time.Now(), 1)
		v.Text = strings.Repeat("old words. ", 200) + "The **newest** words."
		w.a.Show(v)
		w.settle(4 * time.Second)
		m := w.api.Messages(group)[0]
		if !strings.HasSuffix(m.Text, "The newest words.") || len(m.Text) > 800 || len(w.api.Calls("sendMessageDraft")) != 0 {
			t.Errorf("bubble %q", m.Text)
		}
		e := m.Entities[len(m.Entities)-1]
		if got := slice(m.Text, e.Offset, e.Length); e.Type != "bold" || got != "newest" {
			t.Errorf("entity %+v is %q", e, got)
		}
	})
}
