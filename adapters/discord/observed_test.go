package discord

import (
	"testing"

	"coxswain/discordtest"
	"coxswain/session"
)

// What a channel says beside the bot reaches the door, so that it can be
// observed: words, edits and deletions, and files by their names alone.
func TestBesideTheBot(t *testing.T) {
	play(t, Options{}, func(w *world) {
		url := w.api.AddFile("report.pdf", []byte("data"))
		id := w.api.Post(discordtest.Message{Channel: room, Author: discordtest.User{ID: bob}, Content: "these",
			Extra: map[string]any{"attachments": []any{map[string]any{"id": "4", "filename": "report.pdf", "size": 4, "url": url}}}})
		m := w.next()
		if m.Addressed || m.Text != "these" || len(m.Attachments) != 1 || m.Attachments[0].Name != "report.pdf" || m.Attachments[0].Path != "" {
			t.Errorf("got %+v", m)
		}
		w.api.Edit(room, id, "all of these")
		if m = w.next(); m.Kind != session.KindEdit || m.Addressed || string(m.ID) != id || m.Text != "all of these" {
			t.Errorf("got %+v; want the edit", m)
		}
		w.api.Delete(room, id)
		if m = w.next(); m.Kind != session.KindDelete || string(m.ID) != id || m.From.ID != bob {
			t.Errorf("got %+v; want the deletion", m)
		}
		w.nothing()
		w.save.mu.Lock()
		defer w.save.mu.Unlock()
		if len(w.save.files) > 0 {
			t.Errorf("saved %v", w.save.files)
		}
	})
}

// With sessions.group: user a deletion whose author is not known any more is of
// no session. Where the channel is observed it takes away what is kept of it.
func TestDeletionsOfTheForgotten(t *testing.T) {
	for name, observes := range map[string]bool{"observed": true, "not observed": false} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{GroupSessions: "user", Observes: func(k session.Key) bool { return observes && k == keyOf(room, "") }}, func(w *world) {
				const id = "1100000000000000001" // written long ago
				w.api.Delete(room, id)
				if observes {
					if m := w.next(); m.Kind != session.KindDelete || m.Key != keyOf(room, "") || string(m.ID) != id || m.From.ID != "" {
						t.Errorf("got %+v; want the deletion", m)
					}
				}
				w.api.Say(room, bob, me+" barrier")
				if m := w.next(); m.Text != "barrier" {
					t.Errorf("door took %+v; want nothing", m)
				}
			})
		})
	}
}
