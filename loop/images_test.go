package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
)

// album is a store of pictures by path; each copy has a name of its own.
type album struct {
	files  map[string]string
	copies map[string]string
}

func (a *album) Keep(_ context.Context, _ session.Key, path string) (string, string, error) {
	data, ok := a.files[path]
	if !ok {
		return "", "", errors.New("no picture")
	}
	name := fmt.Sprintf("copy%d", len(a.copies))
	a.copies[name] = data
	return name, "image/png", nil
}

func (a *album) Load(_ session.Key, name string) ([]byte, error) {
	data, ok := a.copies[name]
	if !ok {
		return nil, errors.New("gone")
	}
	return []byte(data), nil
}

// Pictures in what people write go to a model that sees, as they were when the
// turn began: later requests begin with the same bytes, whatever became of the
// files (I5, I14). A model that does not see is told of the files alone.
func TestPictures(t *testing.T) {
	for _, sees := range []bool{true, false} {
		a := &album{files: map[string]string{"inbox/a.png": "picture a", "inbox/b.png": "picture b"}, copies: map[string]string{}}
		m := &model{name: "m", rule: func(int, Request, func(Delta)) (Reply, error) { return Reply{Text: "seen"}, nil }}
		play(t, m, &toolbox{}, func(o *Options) { o.Images, o.Profile.Images = a, sees }, func(s *stage) {
			say := func(id, text string, files ...string) {
				t.Helper()
				msg := session.Message{
					Key: room, ID: session.MessageID(id), From: session.Person{ID: "ann"}, Private: true, Addressed: true, Dedupe: "m:" + id, Text: text,
				}
				for _, f := range files {
					msg.Attachments = append(msg.Attachments, session.Attachment{Kind: "photo", Path: f, Size: 9})
				}
				if err := s.hub.Deliver(s.t.Context(), msg); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
			}
			say("1", "what is this?", "inbox/a.png", "inbox/report.pdf", "inbox/b.png")
			a.files["inbox/a.png"] = "painted over"
			say("2", "and now?")
			if len(m.reqs) != 2 {
				t.Fatalf("%d requests", len(m.reqs))
			}
			var w Wire
			if err := json.Unmarshal(m.reqs[0].Messages[0], &w); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range w.Images {
				got = append(got, i.MIME+" "+string(i.Data))
			}
			want := ""
			if sees {
				want = "image/png picture a, image/png picture b"
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("sees %v: the model was shown %q; want %q", sees, got, want)
			}
			for _, f := range []string{"inbox/a.png", "inbox/report.pdf", "inbox/b.png"} {
				if !strings.Contains(w.Text, f) {
					t.Errorf("sees %v: %s is not named in %q", sees, f, w.Text)
				}
			}
			if string(m.reqs[1].Messages[0]) != string(m.reqs[0].Messages[0]) {
				t.Errorf("sees %v: the second request does not begin with the first", sees)
			}
			if (len(a.copies) > 0) != sees {
				t.Errorf("sees %v: %d copies were kept", sees, len(a.copies))
			}
		})
	}
}

// A conversation that goes on with a model that does not see keeps its rows: the
// pictures are left out of what is rendered, not of what is stored.
func TestPicturesOfAnotherModel(t *testing.T) {
	a := &album{copies: map[string]string{"copy0": "picture"}}
	l := newLoop(t, &model{name: "m"}, &toolbox{}, func(o *Options) { o.Images = a })
	u := session.UserRow{Inputs: []session.Input{{Parts: []session.InputPart{{Attachments: []session.Attachment{
		{Path: "a.png", Image: "copy0", MIME: "image/png"}, {Path: "b.png", Image: "gone", MIME: "image/png"}, {Path: "c.pdf"}}}}}}}
	for _, sees := range []bool{true, false} {
		got := l.pictures(&transcript{head: head{Images: sees}}, u)
		if want := map[bool]int{true: 1}[sees]; len(got) != want {
			t.Errorf("sees %v: %d pictures; want %d", sees, len(got), want)
		}
	}
}
