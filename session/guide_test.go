package session_test

import (
	"strings"
	"testing"

	"coxswain/session"
)

// guide is a platform with words of its own for some commands.
type guide struct{ platform }

func (guide) HowTo(command string) string {
	return map[string]string{"why": "Tap it.", "cancel": "Shake it.", "help": "Tap and shake."}[command]
}

// Where a message is meant in another way than by replying to it, people are told
// that way; elsewhere to reply.
func TestGuide(t *testing.T) {
	said := func(w *world, who string, text, want string) {
		t.Helper()
		w.deliver(w.says(session.UserID(who), session.ChatID(who), text))
		if got := w.said(session.ChatID(who)); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q; want %q at its end", text, got, want)
		}
	}
	play(t, set{shows: guide{"fake"}}, func(w *world) {
		said(w, "ann", "/why", "Tap it.")
		said(w, "ann", "/cancel", "Shake it.")
		said(w, "ann", "/help", "count.\nTap and shake.")
	})
	play(t, set{}, func(w *world) {
		for _, text := range []string{"/why", "/cancel"} {
			said(w, "ann", text, "its sign, or its buttons).")
		}
		said(w, "ann", "/help", "deletions count.")
	})
}
