package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

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
