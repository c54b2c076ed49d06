package session_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// fails ends the running turn as failed.
func (w *world) fails() {
	w.agent.end <- session.Outcome{End: session.EndFailed, Public: "The model is away."}
	synctest.Wait()
}

// again are the texts that a turn took once more, each with who wrote it.
func (w *world) again(chat session.ChatID, turn int64) (texts []string) {
	w.t.Helper()
	l := w.lane(chat)
	rows, err := w.store.Rows(w.t.Context(), key(chat), l.Gen, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Type == session.RowUser && r.Turn == turn {
			for _, in := range session.DecodeUser(r).Again {
				texts = append(texts, string(in.From.ID)+": "+in.Text())
			}
		}
	}
	return texts
}

// What was sent again and answered is not sent again, however long ago its mark
// was forgotten and whatever waited meanwhile (I6).
func TestRetryOnce(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", "ann", "pay the invoice"))
		w.fails()
		w.deliver(w.says("ann", "ann", "another task"))
		w.press("ann", "ann", "retry:1")
		again := w.says("ann", "ann", "") // the same button, so the same message, once more
		again.Kind, again.Button, again.ID = session.KindPress, "retry:1", w.entry("ann").Msgs[0]
		w.deliver(again)
		w.deliver(w.says("ann", "ann", "/stop"))
		held := w.entry("ann").Ticket
		w.sent("ann")
		w.press("ann", "ann", "retry:1")
		w.wantSaid("ann", "held already")
		time.Sleep(60 * time.Hour)
		// A second one comes in by another way: another process's door, say.
		if _, err := w.store.Accept(t.Context(), session.Accept{Key: key("ann"), Dedupe: "other", Author: "ann", Msg: "x", Fate: session.FateAccepted,
			Data: []byte(`{"from":{"id":"ann"},"parts":[{"id":"x"}],"retry":1}`)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.again("ann", 3); len(got) != 1 || got[0] != "ann: pay the invoice" {
			t.Fatalf("turn 3 took %q again", got)
		}
		w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "paid"}
		synctest.Wait()
		w.sent("ann")
		w.press("ann", "ann", fmt.Sprintf("run:%d", held))
		if l := w.lane("ann"); l.Turn != 0 || l.Turns != 3 || len(l.Slot) != 0 {
			t.Errorf("it was paid twice: turn %d of %d, %d wait", l.Turn, l.Turns, len(l.Slot))
		}
		w.press("ann", "ann", "retry:1")
		w.wantSaid("ann", "sent again already")
	})
}

// An admin may send a task again; it stays the task of whose it was, with the
// role by which they may talk.
func TestRetryByAdmin(t *testing.T) {
	pol := map[session.PlatformName]session.Policy{"fake": {AllowRoles: []string{"100"}, Admins: []string{"root"}, Pairing: session.PairingOff}}
	play(t, set{policy: pol, mode: steer.Queue}, func(w *world) {
		m := w.says("ann", lobby, "a task")
		m.From.Roles = []string{"100"}
		w.deliver(m)
		w.fails()
		w.sent(lobby)
		w.press("root", lobby, "retry:1")
		if l := w.lane(lobby); l.Turn != 2 || l.Owner != "ann" || len(w.again(lobby, 2)) != 1 {
			t.Errorf("turn %d of %s took %q again, said %+v", l.Turn, l.Owner, w.again(lobby, 2), w.sent(lobby))
		}
	})
}

// Whose access was revoked since is not heard again (I10).
func TestRetryAsksAgainWhoMayTalk(t *testing.T) {
	pol := map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"ann"}, Pairing: session.PairingOn}}
	play(t, set{policy: pol, mode: steer.Queue, together: true}, func(w *world) {
		w.deliver(w.says("bob", "bob", "hi"))
		pairs, err := w.access.Pairs(t.Context(), "fake")
		if err != nil || len(pairs) != 1 {
			t.Fatalf("%d codes, %v", len(pairs), err)
		}
		if _, ok, err := w.access.Approve(t.Context(), "fake", pairs[0].Code); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.deliver(w.says("ann", lobby, "task"))
		w.deliver(w.says("ann", lobby, "ann's next"))
		w.deliver(w.says("bob", lobby, "bob's text"))
		w.agent.end <- session.Outcome{End: session.EndAnswered, Text: "done"}
		synctest.Wait()
		w.fails()
		if ok, err := w.access.Revoke(t.Context(), "fake", "bob"); !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(3 * time.Second)
		w.press("ann", lobby, "retry:2")
		if got := w.again(lobby, 3); len(got) != 1 || got[0] != "ann: ann's next" {
			t.Errorf("took %q again; want ann's alone", got)
		}
	})
}

// A button is for whose task it was and for admins; after /new there is nothing
// to send again, and a late edit of what failed is told to be one.
func TestRetryWhose(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		task := w.deliver(w.says("ann", "ann", "a task"))
		w.fails()
		w.sent("ann")
		edit := task
		edit.Kind, edit.Text, edit.Dedupe = session.KindEdit, "another task", "e:1"
		w.deliver(edit)
		w.wantSaid("ann", "ended before your edit")
		w.deliver(w.says("ann", "ann", "/new"))
		w.sent("ann")
		w.press("ann", "ann", "retry:1")
		w.wantSaid("ann", "Nothing to send again")
	})
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", lobby, "a task"))
		w.fails()
		w.sent(lobby)
		w.press("bob", lobby, "retry:1")
		w.wantSaid(lobby, "Only the task's owner")
	})
}
