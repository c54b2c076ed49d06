package discord

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"coxswain/session"
)

// A shelf is the workspace files are sent from.
type shelf struct {
	mu     sync.Mutex
	files  map[string][]byte
	broken func(r io.Reader) io.Reader // what reading gives; nil = the file
	opened int
	closed int
}

func (s *shelf) open(_ context.Context, _ session.Key, path string) (io.ReadCloser, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.files[path]
	if !ok {
		return nil, 0, os.ErrNotExist
	}
	s.opened++
	r := io.Reader(bytes.NewReader(data))
	if s.broken != nil {
		r = s.broken(r)
	}
	return &leaf{r, s}, int64(len(data)), nil
}

func (s *shelf) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shelf) allClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed == s.opened
}

// A leaf is an open file of a shelf.
type leaf struct {
	io.Reader
	s *shelf
}

func (l *leaf) Close() error {
	l.s.set(func() { l.s.closed++ })
	return nil
}

func newShelf() *shelf {
	return &shelf{files: map[string][]byte{
		"out/chart.png": bytes.Repeat([]byte("pixel"), 1000), "out/report.txt": []byte("all is well\r\n--\n"), "out/dump.zip": make([]byte, uploadMost+1),
		"out/full.zip": make([]byte, uploadMost), "out/empty": nil, "out/a\n`b\u202etxt.exe": []byte("x"),
	}}
}

// sendAs sends a message with files as the outbox would, ids beginning with id.
func (w *world) sendAs(id string, key session.Key, o session.Outgoing, files ...session.File) {
	w.t.Helper()
	o.Key, o.Files, o.Kind = key, files, session.PartFile
	for i, data := range w.a.FileParts(o) {
		p := session.Part{PartNew: session.PartNew{ID: fmt.Sprint(id, i), Kind: o.Kind, Data: data}, Key: key, State: session.PartSending, Since: time.Now()}
		if _, err := w.a.Send(w.ctx, p); err != nil {
			w.t.Errorf("part %d: %v", i, err)
		}
	}
}

// standing gives what stands in a channel, "[name] text" each.
func (w *world) standing(channel string) []string {
	var out []string
	for _, m := range w.api.Bot(channel) {
		s := m.Content
		for _, f := range m.Files {
			s = strings.TrimSpace("[" + f.Name + "] " + s)
			if f.Field != "files[0]" {
				w.t.Errorf("%s came as %q", f.Name, f.Field)
			}
		}
		if len(m.Components) > 0 {
			s += " {buttons}"
		}
		if m.ReplyTo != "" {
			s = "> " + s
		}
		out = append(out, s)
	}
	return out
}

func (w *world) stands(channel string, want ...string) {
	w.t.Helper()
	if got := w.standing(channel); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		w.t.Errorf("stands\n%q\nwant\n%q", got, want)
	}
}
