package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// T16: the session of a group goes on when the group becomes a supergroup.
func TestT16Migrate(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T16_migrate.json")
		ms := w.got()
		if len(ms) != 2 || ms[0].Key != ms[1].Key || ms[1].Key != key(basic) {
			t.Fatalf("keys %v; want the old one twice", ms)
		}
		if ms[1].ID != "s2" || ms[1].Dedupe != "m:-1001234567890:2" {
			t.Errorf("id %q dedupe %q; want one that no old message has", ms[1].ID, ms[1].Dedupe)
		}
		if got := w.docs.get("chats"); got != `{"-4321":-1001234567890}` {
			t.Errorf("stored %s", got)
		}
		id, err := w.send(w.part(basic, "here"))
		if err != nil || len(w.api.Messages(group)) != 1 || !strings.HasPrefix(string(id), "s") {
			t.Errorf("sent %q, %v; want it in the new chat", id, err)
		}
	})
}

// T19: a chat that blocked the bot gets nothing more until it is unblocked.
func TestT19Blocked(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T19_blocked.json")
		w.got()
		_, err := w.send(w.part(ann, "hello"))
		if outcome(t, err).Outcome != session.SendRefused || len(w.api.Calls("sendMessage")) != 0 {
			t.Errorf("send to a chat that blocked the bot: %v, %d calls", err, len(w.api.Calls("sendMessage")))
		}
		w.golden("T19_unblocked.json")
		w.got()
		w.api.AddChat(telegramtest.Chat{ID: ann})
		if _, err := w.send(w.part(ann, "hello")); err != nil {
			t.Errorf("after unblocking: %v", err)
		}
	})
}

// T36, F37: what cannot be read is kept raw and passed over; values and kinds
// that came after this build do not make an update unreadable.
func TestT36Undecodable(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.golden("T36_unknown.json")
		var got []string
		for _, m := range w.got() {
			got = append(got, m.Text)
		}
		if fmt.Sprint(got) != "[before poison for typed decoders after]" {
			t.Errorf("took %q", got)
		}
		w.settle(time.Minute)
		if n, _ := w.api.Pending(); n != 0 {
			t.Errorf("%d updates unconfirmed; want 0", n)
		}
		var kept []quarantined
		if err := json.Unmarshal([]byte(w.docs.get("quarantine")), &kept); err != nil || len(kept) != 1 || !strings.Contains(kept[0].Raw, "not a number") {
			t.Errorf("kept %+v, %v", kept, err)
		}
		if s := w.a.Status(); s.Undecodable != 1 || s.Ignored != 2 {
			t.Errorf("status %+v; want 1 undecodable, 2 ignored", s)
		}
	})
}

// The quarantine is bounded in number and bytes, newest kept.
func TestQuarantineIsBounded(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for i := range 30 {
			w.api.Update(fmt.Sprintf(`{"message":{"message_id":"%d"}}`, i))
		}
		w.api.Update(`{"message":{"message_id":"` + strings.Repeat("x", 300<<10) + `"}}`)
		w.got()
		var kept []quarantined
		if err := json.Unmarshal([]byte(w.docs.get("quarantine")), &kept); err != nil {
			t.Fatal(err)
		}
		if n := len(kept); n != quarantineMost || len(kept[n-1].Raw) != quarantineBytes/4 || kept[0].Update >= kept[n-1].Update {
			t.Errorf("kept %d, last of %d bytes", n, len(kept[n-1].Raw))
		}
	})
}

// The quarantine could not be written: the update is not confirmed before it
// can be.
func TestT36StoreDown(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.got()
		w.api.Say(ann, ann, "first") // so that the aliases are loaded
		w.got()
		w.docs.mu.Lock()
		w.docs.fail = errors.New("disk full")
		w.docs.mu.Unlock()
		w.api.Update(`{"message":{"message_id":"bad"}}`)
		w.settle(5 * time.Minute)
		if n, _ := w.api.Pending(); n != 1 {
			t.Errorf("%d unconfirmed; want 1", n)
		}
		w.docs.mu.Lock()
		w.docs.fail = nil
		w.docs.mu.Unlock()
		w.settle(time.Minute)
		if n, _ := w.api.Pending(); n != 0 {
			t.Errorf("%d unconfirmed; want 0", n)
		}
	})
}
