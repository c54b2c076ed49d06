package telegram

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

func fate(msg int, state session.FateState) session.Fate {
	return session.Fate{Msgs: []session.MessageID{session.MessageID(fmt.Sprint(msg)), "999"}, State: state, Waited: true, Step: 3}
}

// One sign per state, replacing the one before; on the first message of an
// input (albums).
func TestSigns(t *testing.T) {
	play(t, Options{}, func(w *world) {
		msg := w.api.Say(ann, ann, "use March")
		for _, c := range []struct {
			state session.FateState
			want  string
		}{
			{session.FatePending, "👀"}, {session.FateQueued, "😴"}, {session.FateHeld, "😴"}, {session.FateRunning, "😴"},
			{session.FateAttached, "😴"}, {session.FateSteered, "✍"}, {session.FateAnswered, "👍"}, {session.FateDropped, "👎"},
			{session.FateFailed, "💔"}, {session.FateStopped, "🫡"}, {session.FateAccepted, "🫡"},
		} {
			if err := w.a.Sign(w.ctx, key(ann), fate(msg, c.state)); err != nil {
				t.Errorf("%s: %v", c.state, err)
			}
			if m, _ := w.api.Message(ann, msg); m.Reaction != c.want {
				t.Errorf("%s shows %q; want %q", c.state, m.Reaction, c.want)
			}
		}
		n := len(w.api.Calls("setMessageReaction"))
		f := fate(msg, session.FateAnswered)
		f.Waited = false
		if err := w.a.Sign(w.ctx, key(ann), f); err != nil || len(w.api.Calls("setMessageReaction")) != n {
			t.Errorf("an input that began a turn at once is signed: %v", err)
		}
	})
}

// Chats without reactions: one silent message per session, edited, that says
// what became of each message by its first words.
func TestSignsRefused(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: group, NoReactions: true})
		one := w.api.Say(group, ann, "use the March data\nand more")
		two := w.api.Say(group, bob, strings.Repeat("long ", 30))
		w.got()
		sign := func(msg int, s session.FateState) {
			t.Helper()
			if err := w.a.Sign(w.ctx, key(group), fate(msg, s)); !errors.Is(err, session.ErrNoSigns) {
				t.Errorf("%s: %v; want ErrNoSigns", s, err)
			}
			w.settle(5 * time.Second)
		}
		sign(one, session.FatePending)
		sign(two, session.FateQueued)
		sign(one, session.FateSteered)
		ms := w.api.Messages(group)
		want := wordsWaitingHead + "\n“use the March data” ✍️ went in at step 3\n“" + strings.Repeat("long ", 7) + "long…” 😴 waits its turn"
		if len(ms) != 1 || !ms[0].Silent || ms[0].Text != want {
			t.Fatalf("shown %+v\nwant %q", ms, want)
		}
		sign(one, session.FateAnswered)
		sign(two, session.FateAnswered)
		if m := w.api.Messages(group)[0]; m.Text != wordsNothing {
			t.Errorf("at the end: %q", m.Text)
		}
		if n := len(w.api.Calls("setMessageReaction")); n != 1 {
			t.Errorf("tried %d times", n)
		}
		sign(two, session.FateHeld)
		if n := len(w.api.Messages(group)); n != 2 {
			t.Errorf("%d messages; want a new list further down", n)
		}
	})
}

// The list waits for the chat's budget and says how long.
func TestSignListIsPaced(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: group, NoReactions: true})
		var waited bool
		for i := range 12 {
			msg := w.api.Say(group, ann, fmt.Sprint("m", i))
			w.got()
			err := w.a.Sign(w.ctx, key(group), fate(msg, session.FateQueued))
			if !errors.Is(err, session.ErrNoSigns) {
				e := outcome(t, err)
				waited = waited || e.Outcome == session.SendNot && e.Wait > 0
			}
		}
		if !waited || len(w.api.Calls("sendMessage", "editMessageText")) > 3 {
			t.Errorf("waited %v, %d calls", waited, len(w.api.Calls("sendMessage", "editMessageText")))
		}
	})
}

func TestSignErrors(t *testing.T) {
	play(t, Options{}, func(w *world) {
		msg := w.api.Say(ann, ann, "x")
		for _, c := range []struct {
			fault telegramtest.Fault
			want  session.SendOutcome
		}{
			{telegramtest.Fault{Refuse: true}, session.SendNot},
			{telegramtest.Fault{Code: 400, Description: "Bad Request: message to react not found"}, session.SendRefused},
			{telegramtest.Fault{Code: 429, RetryAfter: 5, Description: "Too Many Requests: retry after 5"}, session.SendNot},
		} {
			c.fault.Method = "setMessageReaction"
			w.api.Fault(c.fault)
			err := w.a.Sign(w.ctx, key(ann), fate(msg, session.FateQueued))
			if e := outcome(t, err); e.Outcome != c.want {
				t.Errorf("%+v: outcome %d; want %d", c.fault, e.Outcome, c.want)
			}
		}
		w.settle(10 * time.Second)
		if err := w.a.Sign(w.ctx, key(ann), fate(msg, session.FateQueued)); err != nil {
			t.Errorf("in the end: %v", err)
		}
	})
}

// T16: a message from before the group moved cannot be signed, and is not
// mistaken for a new one with its number.
func TestT16OldMessagesAreNotSigned(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T16_migrate.json")
		ms := w.got()
		for _, m := range ms {
			err := w.a.Sign(w.ctx, m.Key, session.Fate{Msgs: []session.MessageID{m.ID}, State: session.FateQueued, Waited: true})
			if err != nil {
				t.Errorf("%q: %v", m.ID, err)
			}
		}
		calls := w.api.Calls("setMessageReaction")
		if len(calls) != 1 || calls[0].Int("chat_id") != group || calls[0].Int("message_id") != 2 {
			t.Errorf("calls %+v", calls)
		}
	})
}
