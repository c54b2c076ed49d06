package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/telegramtest"
)

// A shelf is the workspace files are sent from.
type shelf struct {
	files  map[string][]byte
	opened int
}

func (s *shelf) open(_ context.Context, _ session.Key, path string) (io.ReadCloser, int64, error) {
	data, ok := s.files[path]
	if !ok {
		return nil, 0, os.ErrNotExist
	}
	s.opened++
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

var picture = append([]byte("\x89PNG\r\n"), bytes.Repeat([]byte("pixel"), 1000)...)

// sendFiles sends a message with files and gives what stands in the chat, one
// "kind name: text" each.
func (w *world) sendFiles(o session.Outgoing, files ...session.File) []string {
	w.t.Helper()
	o.Key, o.Files = key(ann), files
	w.api.AddChat(telegramtest.Chat{ID: ann})
	for i, data := range w.a.FileParts(o) {
		p := session.Part{PartNew: session.PartNew{ID: fmt.Sprint("f", i), Kind: session.PartFinal, Data: data}, Key: key(ann)}
		if _, err := w.send(p); err != nil {
			w.t.Errorf("part %d: %v", i, err)
		}
	}
	return w.standing()
}

func (w *world) standing() []string {
	var out []string
	for _, m := range w.api.Messages(ann) {
		s := m.Text
		if m.Kind != "" {
			s = fmt.Sprintf("%s %s: %s", m.Kind, m.FileName, m.Text)
		}
		if len(m.Keyboard) > 0 {
			s += " [buttons]"
		}
		if m.ReplyTo != 0 {
			s = "> " + s
		}
		out = append(out, s)
	}
	return out
}

func TestSendFiles(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 400))
	for _, c := range []struct {
		name  string
		md    string
		files []session.File
		chat  telegramtest.Chat
		want  []string
	}{
		{"picture by its ending, text below", "the **chart**", []session.File{{Path: "out/chart.png"}}, telegramtest.Chat{}, []string{"> photo chart.png: the chart [buttons]"}},
		{"document by default", "done", []session.File{{Path: "out/report.txt", Name: "Report for Ann.txt"}}, telegramtest.Chat{}, []string{"> document Report_for_Ann.txt: done [buttons]"}},
		{"no text", "", []session.File{{Path: "out/report.txt"}}, telegramtest.Chat{}, []string{"> document report.txt:  [buttons]"}},
		{"several", "both", []session.File{{Path: "out/chart.png"}, {Path: "out/report.txt"}}, telegramtest.Chat{}, []string{"> photo chart.png: both", "document report.txt:  [buttons]"}},
		{"as a tool sends it", "the chart", []session.File{{Path: "out/chart.png", Caption: "the chart"}}, telegramtest.Chat{}, []string{"> photo chart.png: the chart [buttons]"}},
		{"words for each and for all", "both", []session.File{{Path: "out/chart.png", Caption: "one"}, {Path: "out/report.txt", Caption: long}}, telegramtest.Chat{},
			[]string{"> photo chart.png: one", "document report.txt: ", long, "both [buttons]"}},
		{"text too long to stand below", long, []session.File{{Path: "out/report.txt"}}, telegramtest.Chat{}, []string{"> document report.txt: ", long + " [buttons]"}},
		{"picture over 10 MB", "", []session.File{{Path: "out/huge.png"}}, telegramtest.Chat{}, []string{"> document huge.png:  [buttons]"}},
		{"picture that is none", "look", []session.File{{Path: "out/report.txt", Kind: "photo"}}, telegramtest.Chat{}, []string{"> document report.txt: look [buttons]"}},
		{"voice", "", []session.File{{Path: "out/hello.ogg", Kind: "voice"}}, telegramtest.Chat{}, []string{"> voice hello.ogg:  [buttons]"}},
		{"voice where it is forbidden", "", []session.File{{Path: "out/hello.ogg", Kind: "voice"}}, telegramtest.Chat{NoVoice: true}, []string{"> document hello.ogg:  [buttons]"}},
		{"over 50 MB", "done", []session.File{{Path: "out/dump.zip"}}, telegramtest.Chat{}, []string{"> done\n" + wordsFileTooBig("dump.zip", 50<<20+1) + " [buttons]"}},
		{"gone", "done", []session.File{{Path: "out/gone.txt"}}, telegramtest.Chat{}, []string{"> done\n" + wordsFileGone("gone.txt") + " [buttons]"}},
		{"empty", "", []session.File{{Path: "out/empty"}}, telegramtest.Chat{}, []string{"> " + wordsFileEmpty("empty") + " [buttons]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{files: map[string][]byte{"out/chart.png": picture, "out/report.txt": []byte("all is well\r\n--\n"), "out/huge.png": append(bytes.Clone(picture), make([]byte, photoMost)...),
				"out/hello.ogg": []byte("OggS…"), "out/dump.zip": make([]byte, uploadMost+1), "out/empty": nil}}
			play(t, Options{Open: s.open}, func(w *world) {
				asked := w.api.Say(ann, ann, "go")
				c.chat.ID = ann
				w.api.AddChat(c.chat)
				o := session.Outgoing{Markdown: c.md, ReplyTo: session.MessageID(fmt.Sprint(asked)), Buttons: []session.Button{{Text: "Again", Data: "r:1"}}}
				o.Key, o.Files = key(ann), c.files
				for i, data := range w.a.FileParts(o) {
					if _, err := w.send(session.Part{PartNew: session.PartNew{ID: fmt.Sprint(i), Data: data}, Key: key(ann)}); err != nil {
						t.Errorf("part %d: %v", i, err)
					}
				}
				if got := w.standing(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
					t.Errorf("stands\n%q\nwant\n%q", got, c.want)
				}
				tries := len(w.api.Calls("sendMessage", "sendDocument", "sendPhoto", "sendVoice"))
				if cured := c.chat.NoVoice || strings.HasPrefix(c.name, "picture that"); tries != len(c.want)+map[bool]int{true: 1}[cured] {
					t.Errorf("%d tries for %d messages", tries, len(c.want))
				}
				for _, m := range w.api.Messages(ann) {
					for _, f := range c.files {
						if m.Kind != "" && strings.HasSuffix(f.Path, m.FileName) && !bytes.Equal(m.Data, s.files[f.Path]) {
							t.Errorf("%s arrived with %d bytes; want %d", m.FileName, len(m.Data), len(s.files[f.Path]))
						}
					}
				}
			})
		})
	}
}

// The file is read anew for every try; one whose outcome is unknown says so
// when it is sent again (I9).
func TestSendFileAgain(t *testing.T) {
	s := &shelf{files: map[string][]byte{"a.txt": []byte(strings.Repeat("line\n", 10000))}}
	play(t, Options{Open: s.open}, func(w *world) {
		w.api.AddChat(telegramtest.Chat{ID: ann})
		p := session.Part{PartNew: session.PartNew{Data: w.a.FileParts(session.Outgoing{Key: key(ann), Markdown: "**here**", Files: []session.File{{Path: "a.txt"}}})[0]}, Key: key(ann)}
		for _, c := range []struct {
			fault telegramtest.Fault
			want  session.SendOutcome
		}{
			{telegramtest.Fault{Refuse: true}, session.SendNot},
			{telegramtest.Fault{Code: 429, RetryAfter: 1, Description: "Too Many Requests: retry after 1"}, session.SendNot},
			{telegramtest.Fault{LoseReply: true}, session.SendUnknown},
		} {
			c.fault.Method = "sendDocument"
			w.api.Fault(c.fault)
			_, err := w.send(p)
			if e := outcome(t, err); e.Outcome != c.want {
				t.Errorf("%+v: outcome %d; want %d", c.fault, e.Outcome, c.want)
			}
			w.settle(5e9)
		}
		p.State = session.PartUnknown
		if _, err := w.send(p); err != nil {
			t.Fatal(err)
		}
		ms := w.api.Messages(ann)
		if len(ms) != 2 || ms[1].Text != "(possible repeat) here" || !bytes.Equal(ms[1].Data, s.files["a.txt"]) || slice(ms[1].Text, ms[1].Entities[0].Offset, 4) != "here" {
			t.Errorf("stands %q", w.standing())
		}
	})
}

// A body can be read more than once, for a connection that died before it took
// anything, and is as long as it says.
func TestFormCanBeReadAgain(t *testing.T) {
	s := &shelf{files: map[string][]byte{"a": picture}}
	b, err := form(map[string]any{"chat_id": 5, "caption": "c"}, "photo", "a.png", int64(len(picture)), func() (io.ReadCloser, error) {
		r, _, err := s.open(t.Context(), key(ann), "a")
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for i := range 3 {
		r, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || int64(len(data)) != b.size || i > 0 && !bytes.Equal(data, first) || !bytes.Contains(data, picture) {
			t.Errorf("reading %d: %d bytes, %v; want %d", i, len(data), err, b.size)
		}
		first = data
	}
	if s.opened != 3 {
		t.Errorf("opened %d times; want 3", s.opened)
	}
}

// T20: a text that is too long below a file after all stands behind it; the
// topic and formatting are cured as those of any message.
func TestT20CaptionTooLong(t *testing.T) {
	s := &shelf{files: map[string][]byte{"a.txt": []byte("x")}}
	play(t, Options{Open: s.open}, func(w *world) {
		for _, why := range []string{"message caption is too long", "can't parse entities: bad offset"} {
			w.api.Fault(telegramtest.Fault{Method: "sendDocument", Code: 400, Description: "Bad Request: " + why})
		}
		text := strings.TrimSpace(strings.Repeat("word ", 20))
		got := w.sendFiles(session.Outgoing{Markdown: text}, session.File{Path: "a.txt"})
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", []string{"document a.txt: ", text}) {
			t.Errorf("stands %q", got)
		}
	})
}

// A file the server says is too large is told of, and not tried again.
func TestServerSaysTooLarge(t *testing.T) {
	s := &shelf{files: map[string][]byte{"a.txt": []byte("x")}}
	play(t, Options{Open: s.open}, func(w *world) {
		w.api.Fault(telegramtest.Fault{Method: "sendDocument", Code: 413, Description: "Request Entity Too Large", Times: -1})
		got := w.sendFiles(session.Outgoing{Markdown: "here"}, session.File{Path: "a.txt", Name: "a.txt"})
		if len(got) != 1 || got[0] != "here\n"+wordsFileRefused("a.txt") || len(w.api.Calls("sendDocument")) != 1 {
			t.Errorf("stands %q", got)
		}
	})
}

// Without a way to read files the words for it arrive all the same, and so does
// a message without files.
func TestSendFileWithoutShelf(t *testing.T) {
	play(t, Options{}, func(w *world) {
		if got := w.sendFiles(session.Outgoing{Markdown: "here"}, session.File{Path: "a.txt"}); got[0] != "here\n"+wordsFileGone("a.txt") {
			t.Errorf("stands %q", got)
		}
		if got := w.sendFiles(session.Outgoing{Markdown: "plain"}); got[1] != "plain" {
			t.Errorf("stands %q", got)
		}
	})
}

const table = "Sales:\n\n| month | sum |\n|---|---:|\n| May | 4 |\n"

// Rich messages carry tables where they are wanted and the server knows them;
// else the same text goes with entities.
func TestRichMessages(t *testing.T) {
	for _, c := range []struct {
		name  string
		rich  bool
		md    string
		lacks []string
		fault *telegramtest.Fault
		rows  int // rich messages that stand in the end, of two sent
		tries int
	}{
		{name: "off", md: table},
		{name: "on", rich: true, md: table, rows: 2, tries: 2},
		{name: "no table", rich: true, md: "a | b is a pipe\n\n---\n"},
		{name: "raw HTML", rich: true, md: table + "\n<b>x</b>"},
		{name: "formula", rich: true, md: table + "\ncosts $4 or $5"},
		{name: "too long", rich: true, md: table + strings.Repeat("word ", 2000)},
		{name: "server of before 10.1 is asked once", rich: true, md: table, lacks: []string{"sendRichMessage"}, tries: 1},
		{name: "refused", rich: true, md: table, fault: &telegramtest.Fault{Method: "sendRichMessage", Code: 400, Description: "Bad Request: RICH_MESSAGE_INVALID"}, rows: 1, tries: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, Options{Rich: c.rich}, func(w *world) {
				w.api.Lacks = c.lacks
				w.api.AddChat(telegramtest.Chat{ID: ann})
				if c.fault != nil {
					w.api.Fault(*c.fault)
				}
				for range 2 {
					for _, data := range w.a.Parts(session.Outgoing{Key: key(ann), Markdown: c.md}) {
						p := session.Part{PartNew: session.PartNew{Data: data}, Key: key(ann)}
						_, err := w.send(p)
						if se, ok := errors.AsType[*session.SendError](err); ok && se.Outcome == session.SendNot {
							w.settle(se.Wait)
							_, err = w.send(p)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				rich := 0
				for _, m := range w.api.Messages(ann) {
					if m.Rich != "" {
						rich++
					}
					if m.Rich == "" && m.Text == "" {
						t.Errorf("an empty message: %+v", m)
					}
				}
				if n := len(w.api.Calls("sendRichMessage")); rich != c.rows || n != c.tries {
					t.Errorf("%d rich messages, %d tries; want %d, %d", rich, n, c.rows, c.tries)
				}
			})
		})
	}
}
