package telegram

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// T4: when files take their time, the input stays open for the parts behind.
func TestT04AlbumThatLoadsSlowly(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddFile("p0", []byte("x"))
		w.api.Fault(telegramtest.Fault{Method: "getFile", Delay: 3 * time.Second})
		w.golden("T04_album.json")
		w.settle(time.Minute)
		ms := w.got()
		if len(ms) != 5 || ms[0].OpenFor < 3*time.Second {
			t.Errorf("first part of %d stays open %v; want longer than its file took", len(ms), ms[0].OpenFor)
		}
	})
}

// T34: a file that is longer than it was said to be is refused, not cut.
func TestT34FileThatGrows(t *testing.T) {
	for n, want := range map[int]error{3: nil, 4: errTooBig} {
		if _, err := io.ReadAll(&limited{strings.NewReader("abcd"[:n]), 3}); !errors.Is(err, want) {
			t.Errorf("%d bytes of 3: %v; want %v", n, err, want)
		}
	}
}

// Files of people who may not talk are not loaded (I10).
func TestFilesOfStrangersStayOut(t *testing.T) {
	deny := func(m session.Message) bool { return m.From.ID == "7001" && m.Key == key(ann) }
	play(t, Options{Files: func(_ context.Context, m session.Message) bool { return !deny(m) }}, func(w *world) {
		w.golden("T34_files.json")
		ms := w.got()
		if ms[3].Attachments[0].Note != wordsNotLoaded || len(w.api.Calls("getFile", "file")) != 0 {
			t.Errorf("attachment %+v after %v", ms[3].Attachments[0], w.api.Calls("getFile"))
		}
	})
}
