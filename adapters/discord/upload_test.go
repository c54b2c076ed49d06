package discord

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"coxswain/adapters/markup"
	"coxswain/discordtest"
	"coxswain/session"
)

func TestSendFiles(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("word ", 370)) // fits one message
	over := strings.TrimSpace(strings.Repeat("word ", 390)) // does not, with room for what may stand before it
	cut := markup.DiscordMarkdown(over, partMost)
	files := func(list ...session.File) []session.File { return list }
	for _, c := range []struct {
		name  string
		md    string
		files []session.File
		want  []string
	}{
		{"words with the file", "the **chart**", files(session.File{Path: "out/chart.png"}), []string{"> [chart.png] the **chart** {buttons}"}},
		{"a name of its own", "done", files(session.File{Path: "out/report.txt", Name: "Report for Ann.txt"}), []string{"> [Report_for_Ann.txt] done {buttons}"}},
		{"no words", "", files(session.File{Path: "out/report.txt", Kind: "photo"}), []string{"> [report.txt] {buttons}"}},
		{"two", "both", files(session.File{Path: "out/chart.png"}, session.File{Path: "out/report.txt"}), []string{"> [chart.png] both", "[report.txt] {buttons}"}},
		{"as a tool sends it", "the chart", files(session.File{Path: "out/chart.png", Caption: "the chart"}), []string{"> [chart.png] the chart {buttons}"}},
		{"words for each and for all", "both", files(session.File{Path: "out/chart.png", Caption: "one"}, session.File{Path: "out/report.txt", Caption: long}),
			[]string{"> [chart.png] one", "[report.txt] " + long, "both {buttons}"}},
		{"caption too long", over, files(session.File{Path: "out/report.txt"}), []string{"> [report.txt]", cut[0], cut[1] + " {buttons}"}},
		{"as large as may be", "", files(session.File{Path: "out/full.zip"}), []string{"> [full.zip] {buttons}"}},
		{"too large", "done", files(session.File{Path: "out/dump.zip"}),
			[]string{"> done\n(`dump.zip` is 11 MB, and Discord takes 10 MB at most: it stays in the workspace) {buttons}"}},
		{"too large, with words that leave no room", long, files(session.File{Path: "out/dump.zip"}), nil},
		{"gone", "done", files(session.File{Path: "out/gone.txt"}), []string{"> done\n(`gone.txt` could not be read any more) {buttons}"}},
		{"empty", "", files(session.File{Path: "out/empty"}), []string{"> (`empty` is empty, so it was not sent) {buttons}"}},
		{"quotes", "", files(session.File{Path: "out/report.txt", Name: `a"; filename="b\c.exe`}), []string{"> [c.exe] {buttons}"}},
		{"lines", "", files(session.File{Path: "out/report.txt", Name: "a\r\nContent-Type: text/html\r\n\r\nb.txt"}), []string{"> [html____b.txt] {buttons}"}},
		{"bidi and marks", "", files(session.File{Path: "out/report.txt", Name: "`@everyone`\u202etxt.exe"}), []string{"> [__everyone__txt.exe] {buttons}"}},
		{"bidi in the path", "", files(session.File{Path: "out/a\n`b\u202etxt.exe"}), []string{"> [a__b_txt.exe] {buttons}"}},
		{"nothing of a name", "", files(session.File{Path: "out/report.txt", Name: "???"}), []string{"> [file-1] {buttons}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			play(t, Options{Open: s.open}, func(w *world) {
				asked := w.api.Say(room, ann, me+" go")
				w.next()
				o := session.Outgoing{Markdown: c.md, ReplyTo: session.MessageID(asked), Buttons: []session.Button{{Text: "Again", Data: "r:1"}}, Silent: true}
				w.sendAs("f", keyOf(room, ""), o, c.files...)
				if c.want != nil {
					w.stands(room, c.want...)
				} else if got := strings.Join(w.standing(room), " "); !strings.HasPrefix(got, "> word") || !strings.HasSuffix(got, "workspace) {buttons}") {
					t.Errorf("stands %q", got)
				}
				if n := len(w.api.Calls("POST", room+"/messages")); c.want != nil && n != len(c.want) {
					t.Errorf("%d calls for %d messages", n, len(c.want))
				}
				for i, m := range w.api.Bot(room) {
					if len(m.Files) > 0 && i < len(c.files) && !bytes.Equal(m.Files[0].Data, s.files[c.files[i].Path]) || !m.Silent {
						t.Errorf("message %d arrived with %d bytes, silent %v", i, len(m.Files[0].Data), m.Silent)
					}
				}
				for _, c := range w.api.Calls("POST", room+"/messages") {
					if c.Body["enforce_nonce"] != true || fmt.Sprint(c.Body["allowed_mentions"]) != "map[parse:[]]" {
						t.Errorf("call %v", c.Body)
					}
				}
				w.until("files closed", s.allClosed)
			})
		})
	}
}

// D18, D19: whatever becomes of a try, the next one reads the file anew and has
// the same nonce: one message.
func TestSendFileAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault discordtest.Fault
		gone  bool   // the file, after the first try
		want  string // that stands in the end
	}{
		{name: "lost", fault: discordtest.Fault{LoseReply: true}, want: "[a.txt] here"},
		{name: "lost, and gone since", fault: discordtest.Fault{LoseReply: true}, gone: true, want: "[a.txt] here"},
		{name: "500", fault: discordtest.Fault{Status: 500}, want: "[a.txt] here"},
		{name: "502", fault: discordtest.Fault{HTML: 502}, want: "[a.txt] here"},
		{name: "429", fault: discordtest.Fault{Status: 429, RetryAfter: 0.2}, want: "[a.txt] here"},
		{name: "429, and gone since", fault: discordtest.Fault{Status: 429, RetryAfter: 0.2}, gone: true, want: "here\n(`a.txt` could not be read any more)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{files: map[string][]byte{"a.txt": bytes.Repeat([]byte("line\n"), 100_000)}}
			play(t, Options{Open: s.open}, func(w *world) {
				c.fault.Method, c.fault.Path = "POST", room
				w.api.Fault(c.fault)
				o := session.Outgoing{Key: keyOf(room, ""), Markdown: "here", Files: []session.File{{Path: "a.txt"}}}
				p := session.Part{PartNew: session.PartNew{ID: "p", Kind: session.PartFile, Data: w.a.FileParts(o)[0]}, Key: o.Key, State: session.PartSending, Since: time.Now()}
				_, err := w.a.Send(w.ctx, p)
				if e := outcome(t, err); e.Outcome != session.SendNot || c.fault.Status == 429 && e.Wait == 0 {
					t.Fatalf("outcome %+v", e)
				}
				s.set(func() {
					s.files["a.txt"] = append(s.files["a.txt"], "more"...)
					if c.gone {
						delete(s.files, "a.txt")
					}
				})
				p.Attempt, p.State, p.Since = 2, session.PartUnknown, time.Now()
				if _, err := w.a.Send(w.ctx, p); err != nil {
					t.Fatal(err)
				}
				w.stands(room, c.want)
				calls := w.api.Calls("POST", room)
				if len(calls) != 2 || calls[0].Body["nonce"] != calls[1].Body["nonce"] || calls[0].Body["nonce"] == "" {
					t.Errorf("calls %+v", calls)
				}
				if m := w.api.Bot(room)[0]; len(m.Files) > 0 && bytes.HasSuffix(m.Files[0].Data, []byte("more")) == c.fault.LoseReply {
					t.Error("not the file as it was when it was sent")
				}
				w.until("files closed", s.allClosed)
			})
		})
	}
}

// D18: while a channel cools off nothing is read, and what is said is not kept
// up: a file is told to wait with it.
func TestD18FileCoolsOff(t *testing.T) {
	s := newShelf()
	play(t, Options{Open: s.open}, func(w *world) {
		w.api.Fault(discordtest.Fault{Method: "POST", Path: room, Status: 429, RetryAfter: 30})
		data := w.a.FileParts(session.Outgoing{Files: []session.File{{Path: "out/chart.png"}}})[0]
		for range 2 {
			_, err := w.a.Send(w.ctx, session.Part{PartNew: session.PartNew{ID: "p", Data: data}, Key: keyOf(room, "")})
			if e := outcome(t, err); e.Outcome != session.SendNot || e.Wait < 25*time.Second {
				t.Errorf("outcome %+v", e)
			}
		}
		_, err := w.a.Send(w.ctx, w.part(room, "text"))
		if e := outcome(t, err); e.Outcome != session.SendNot || len(w.api.Calls("POST", room)) != 1 {
			t.Errorf("outcome %+v after %d calls", e, len(w.api.Calls("POST", room)))
		}
		w.until("files closed", s.allClosed)
	})
}

// D19, I9: after the time of nonces a message with a file is looked for by its
// words and its file.
func TestD19FileAfterNonces(t *testing.T) {
	s := newShelf()
	play(t, Options{Open: s.open}, func(w *world) {
		send := func(id, path string) session.MessageID {
			data := w.a.FileParts(session.Outgoing{Files: []session.File{{Path: path}}})[0]
			p := session.Part{PartNew: session.PartNew{ID: id, Data: data}, Key: keyOf(room, "")}
			if w.api.ForgetNonces(); id == "again" {
				p.State, p.Since = session.PartUnknown, time.Now().Add(-3*time.Minute)
			}
			got, err := w.a.Send(w.ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		chart := send("first", "out/chart.png")
		if again := send("again", "out/chart.png"); again != chart {
			t.Errorf("found %s; want %s", again, chart)
		}
		w.fresh()
		send("again", "out/report.txt") // another one, which is not there
		w.stands(room, "[chart.png]", "[report.txt] (possible repeat)")
	})
}

// What Discord does not take, or the bot may not attach, stands there in words,
// and is not tried again; the channel stays open for texts.
func TestFileRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault discordtest.Fault
		room  discordtest.Channel
		want  string
	}{
		{"40005", discordtest.Fault{Status: 413, Code: 40005, Message: "Request entity too large"}, discordtest.Channel{},
			"here\n(`report.txt`, 1 kB, is too large for Discord, whose limit is 10 MB: it stays in the workspace)"},
		{"40005 as a bad request", discordtest.Fault{Status: 400, Code: 40005, Message: "Request entity too large"}, discordtest.Channel{},
			"here\n(`report.txt`, 1 kB, is too large for Discord, whose limit is 10 MB: it stays in the workspace)"},
		{"413 of what stands before Discord", discordtest.Fault{HTML: 413}, discordtest.Channel{},
			"here\n(`report.txt`, 1 kB, is too large for Discord, whose limit is 10 MB: it stays in the workspace)"},
		{"400", discordtest.Fault{Status: 400, Code: 50046, Message: "Invalid file uploaded"}, discordtest.Channel{},
			"here\n(Discord does not take `report.txt`: it stays in the workspace)"},
		{"no permission", discordtest.Fault{}, discordtest.Channel{NoFiles: true},
			"here\n(I may not attach `report.txt`: give me the Attach Files permission here)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			play(t, Options{Open: s.open}, func(w *world) {
				c.room.ID, c.room.Guild = room, guild
				w.api.AddChannel(c.room)
				if c.fault.Method, c.fault.Path, c.fault.Times = "POST", room, 1; !c.room.NoFiles {
					w.api.Fault(c.fault)
				}
				w.sendAs("f", keyOf(room, ""), session.Outgoing{Markdown: "here"}, session.File{Path: "out/report.txt"})
				if _, err := w.a.Send(w.ctx, w.part(room, "text")); err != nil {
					t.Error(err)
				}
				w.stands(room, c.want, "text")
				if n := len(w.api.Calls("POST", room)); n != 3 {
					t.Errorf("%d calls; want 3", n)
				}
				w.until("files closed", s.allClosed)
			})
		})
	}
}

// D6: a file whose thread is locked, or may not be written to, goes to its
// channel, as a file; D7: where nothing may be written it ends.
func TestD6FileOfThread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]discordtest.Channel{"locked": {Locked: true}, "permission": {NoSend: 50013}} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			play(t, Options{Open: s.open}, func(w *world) {
				c.ID, c.Guild, c.Type, c.Parent = topic, guild, discordtest.TypeThread, room
				w.api.AddChannel(c)
				w.sendAs("f", keyOf(room, topic), session.Outgoing{Markdown: "here"}, session.File{Path: "out/report.txt"})
				w.stands(room, "[report.txt] (<#"+topic+"> is closed to me, so the answer is here) here")
				w.api.AddChannel(discordtest.Channel{ID: room, Guild: guild, NoSend: 50013})
				data := w.a.FileParts(session.Outgoing{Files: []session.File{{Path: "out/report.txt"}}})[0]
				_, err := w.a.Send(w.ctx, session.Part{PartNew: session.PartNew{ID: "g", Data: data}, Key: keyOf(room, topic)})
				if e := outcome(t, err); e.Outcome != session.SendRefused {
					t.Errorf("outcome %+v", e)
				}
			})
		})
	}
}

// A file that cannot be read to its end is told of; one that has become shorter
// is tried again, as it is then. Nothing of either was taken.
func TestFileBreaksOff(t *testing.T) {
	t.Parallel()
	half := func(r io.Reader) io.Reader { return io.LimitReader(r, 2000) }
	bad := func(r io.Reader) io.Reader { return io.MultiReader(half(r), iotest.ErrReader(errors.New("disk"))) }
	for name, broken := range map[string]func(io.Reader) io.Reader{"shorter": half, "unreadable": bad} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.broken = broken
			play(t, Options{Open: s.open}, func(w *world) {
				data := w.a.FileParts(session.Outgoing{Markdown: "here", Files: []session.File{{Path: "out/chart.png"}}})[0]
				p := session.Part{PartNew: session.PartNew{ID: "p", Data: data}, Key: keyOf(room, "")}
				_, err := w.a.Send(w.ctx, p)
				want := "here\n(`chart.png` could not be read any more)"
				if name == "shorter" {
					if e := outcome(t, err); e.Outcome != session.SendNot || !w.a.lost.get(nonceOf(p.Key, p.ID)).IsZero() {
						t.Errorf("outcome %+v", e)
					}
					s.set(func() { s.broken = nil })
					want = "[chart.png] here"
					_, err = w.a.Send(w.ctx, p)
				}
				if err != nil {
					t.Fatal(err)
				}
				w.stands(room, want)
				w.until("files closed", s.allClosed)
			})
		})
	}
}

// A call that ends early closes the file while it is read: that is no fault of
// the file.
func TestFileClosedEarly(t *testing.T) {
	early := errors.New("timeout")
	for _, closed := range []bool{false, true} {
		f, err := newForm(outMessage{}, "a", &leaf{iotest.ErrReader(os.ErrClosed), newShelf()}, 5, uploadMost)
		if err != nil {
			t.Fatal(err)
		}
		if closed {
			f.Close()
		}
		if _, err := f.Read(make([]byte, 9)); err == nil {
			t.Error("reading gives no error")
		}
		if fe, blamed := errors.AsType[*fileError](f.blame(early, "a")); blamed == closed {
			t.Errorf("closed %v: blamed %v", closed, fe)
		}
	}
}

// A file that grows while it is sent goes as long as it was.
func TestFileGrows(t *testing.T) {
	s := newShelf()
	s.broken = func(io.Reader) io.Reader {
		return strings.NewReader(string(s.files["out/chart.png"]) + "written since")
	}
	play(t, Options{Open: s.open}, func(w *world) {
		w.sendAs("f", keyOf(room, ""), session.Outgoing{}, session.File{Path: "out/chart.png"})
		if got := w.api.Bot(room); len(got) != 1 || !bytes.Equal(got[0].Files[0].Data, s.files["out/chart.png"]) {
			t.Errorf("stands %q", w.standing(room))
		}
	})
}

// Without a way to read files people are told where the file is.
func TestSendFileWithoutShelf(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.sendAs("f", keyOf(room, ""), session.Outgoing{Markdown: "here"}, session.File{Path: "out/re`po\u202ert.txt"})
		w.sendAs("g", keyOf(room, ""), session.Outgoing{Markdown: "plain"})
		w.stands(room, "here\n(files cannot be sent here: it is in the workspace at `out/re'po_rt.txt`)", "plain")
	})
}

// D17: words that are too long after all are cut; the file stands with the
// first piece.
func TestD17FileWithLongWords(t *testing.T) {
	s := newShelf()
	play(t, Options{Open: s.open}, func(w *world) {
		data := []byte(`{"text":"` + strings.Repeat("word ", 500) + `","file":{"path":"out/report.txt"}}`)
		p := session.Part{PartNew: session.PartNew{ID: "p", Data: data}, Key: keyOf(room, "")}
		for range 2 { // a second try gives the same messages
			if _, err := w.a.Send(w.ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		got := w.api.Bot(room)
		if len(got) != 2 || len(got[0].Files) != 1 || len(got[1].Files) != 0 {
			t.Errorf("stands %q", w.standing(room))
		}
	})
}
