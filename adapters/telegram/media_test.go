package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// T4: the five updates of an album name one group that stays open.
func TestT04Album(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for i := range 5 {
			w.api.AddFile(fmt.Sprintf("p%d", i), []byte{byte(i)})
		}
		w.golden("T04_album.json")
		ms := w.got()
		if len(ms) != 5 {
			t.Fatalf("took %d; want 5", len(ms))
		}
		for i, m := range ms {
			if m.Group != "album:13577531" || m.OpenFor != 800*time.Millisecond {
				t.Errorf("part %d: group %q open %v", i, m.Group, m.OpenFor)
			}
			if len(m.Attachments) != 1 || m.Attachments[0].Kind != "photo" || m.Attachments[0].Path != fmt.Sprintf("inbox/photo-%d", 20+i) {
				t.Errorf("part %d: attachments %+v; want the biggest picture, saved", i, m.Attachments)
			}
		}
		if ms[0].Text != "sort these" || ms[1].Text != "" {
			t.Errorf("texts %q, %q; want the caption on the first", ms[0].Text, ms[1].Text)
		}
	})
}

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

// T33: what has no text is described or named.
func TestT33Media(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for _, id := range []string{"v1", "vn1", "an1"} {
			w.api.AddFile(id, []byte(id))
		}
		w.golden("T33_media.json")
		var got []string
		for _, m := range w.got() {
			s := m.Text
			for _, at := range m.Attachments {
				s += fmt.Sprintf("<%s %s %s>", at.Kind, at.Path, at.Note)
			}
			got = append(got, s)
		}
		want := []string{
			"<voice inbox/voice-120 >", "<video_note inbox/video_note-121 >", "👍", "[location: 52.520000, 13.405000]",
			"[place: Café, Main St 1, at 52.520000, 13.405000]", "[contact: Carl, +49123]", "[dice 🎲: 4]", "[poll: Lunch? (Yes / No)]",
			"<animation inbox/cat.mp4 >", "<checklist  " + wordsUnreadable + ">", "<paid media  " + wordsUnreadable + ">",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// T34: what cannot be loaded is told, and the message counts without it.
func TestT34Files(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddFile("liar", make([]byte, 20<<20+1))
		w.api.AddFile("d1", []byte("12345"))
		w.golden("T34_files.json")
		w.settle(time.Minute)
		ms := w.got()
		for i, want := range []session.Attachment{
			{Kind: "document", Name: "dump.zip", Size: 31457280, Note: wordsTooBig},
			{Kind: "document", Name: "old.txt", Size: 10, Note: wordsNoFile},
			{Kind: "document", Name: "liar.bin", Size: 10, Note: wordsTooBig},
			{Kind: "document", Name: "../../etc/pass\u202ewd .txt", Size: 5, Path: "inbox/pass_wd_.txt"},
		} {
			if ms[i].Attachments[0] != want {
				t.Errorf("got  %+v\nwant %+v", ms[i].Attachments[0], want)
			}
		}
		if ms[0].Text != "read it" {
			t.Errorf("text %q", ms[0].Text)
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
