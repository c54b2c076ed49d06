package web

import (
	"strings"
	"testing"
)

// TestShortOfMemory (F44): what is written is answered 503 in words, and not taken;
// a stop is, and so are presses.
func TestShortOfMemory(t *testing.T) {
	hub := newFakeHub()
	a := newTestAdapter(t, hub, "")
	short := true
	a.short = func() bool { return short }
	hello := `{"id":"aaaaaaaa-1","text":"hello"}`
	for _, body := range []string{hello, `{"id":"aaaaaaaa-4","text":"/stopwatch"}`} {
		if w := ask(a, "POST", postPath, body); w.Code != 503 || !strings.Contains(w.Body.String(), "short of memory") {
			t.Errorf("%s: got %d %s; want 503 with the reason", body, w.Code, w.Body)
		}
	}
	for path, body := range map[string]string{
		postPath: `{"id":"aaaaaaaa-2","text":"/Stop all"}`, readPath + "/press": `{"id":"aaaaaaaa-3","button":"stop:1"}`,
	} {
		if w := ask(a, "POST", path, body); w.Code != 200 {
			t.Errorf("%s: got %d %s; want 200", body, w.Code, w.Body)
		}
	}
	if n := len(hub.messages()); n != 2 {
		t.Errorf("%d were taken; want 2", n)
	}
	short = false
	if w := ask(a, "POST", postPath, hello); w.Code != 200 {
		t.Errorf("sent again: got %d %s; want 200", w.Code, w.Body)
	}
}
