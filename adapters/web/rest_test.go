package web

import (
	"encoding/json"
	"testing"
)

// TestItemKeepsUnknown: the memo of a chat is written by whichever gateway answers
// there. What a newer one put into an item stays when an older one adds another (F35).
func TestItemKeepsUnknown(t *testing.T) {
	const stored = `[{"kind":"reply","id":"r:1","text":"<b>","at":5,"later":{"x":[1]}}]`
	var items []item
	if err := json.Unmarshal([]byte(stored), &items); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"kind":"reply","id":"r:1","text":"\u003cb\u003e","at":5,"later":{"x":[1]}}]`; string(got) != want {
		t.Errorf("%s; want %s", got, want)
	}
}
