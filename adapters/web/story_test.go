package web

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"coxswain/session"
	"coxswain/steer"
)

// browserTime bounds a browser test: generous, for a busy machine with one
// core takes ten times as long as an idle one.
const browserTime = 3 * time.Minute

// newBrowser starts a real Chromium with a profile of its own. A machine
// without one fails the test: what only a browser can tell must not go untold.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("no chromium, chromium-browser or google-chrome in PATH: the page cannot be tested without a browser; install one")
	}
	ctx, stop := context.WithTimeout(t.Context(), browserTime)
	t.Cleanup(stop)
	dir, err := os.MkdirTemp("", "coxswain-web-*") // not t.TempDir: helpers of the browser may still write when it is removed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, stop = chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.NoFirstRun, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("no-default-browser-check", true),
	)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // it waits for the browser; how it ended is no matter
	return ctx
}

// A story is one task as the hub would tell it, step by step.
type story struct {
	t   *testing.T
	hub *fakeHub
	a   *Adapter // the one that runs now
	ctx context.Context
	key session.Key
}

func (s *story) run(acts ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	if err := chromedp.Do(s.ctx, acts...); err != nil {
		s.t.Fatalf("browser: %v", err)
	}
}

// eval gives an expression's value, of a promise what it becomes.
func eval[T any](s *story, expr string) T {
	s.t.Helper()
	v, err := chromedp.Run(s.ctx, chromedp.Evaluate[T](expr, chromedp.EvalAwaitPromise))
	if err != nil {
		s.t.Fatalf("browser: %v in %s", err, expr)
	}
	return v
}

// until waits until an expression of the page is true. It asks from outside:
// the page's policy lets nobody compile a condition inside.
func (s *story) until(what, expr string) {
	s.t.Helper()
	late := time.NewTimer(40 * time.Second)
	defer late.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		ok, err := chromedp.Run(s.ctx, chromedp.Evaluate[bool]("Boolean("+expr+")"))
		if ok && err == nil {
			return
		}
		select {
		case <-again.C: // an error: the page is being loaded
		case <-late.C:
			s.t.Fatalf("never: %s (%v)\nThe page reads:\n%s", what, err, eval[string](s, `document.body.innerText`))
		case <-s.ctx.Done():
			s.t.Fatalf("never: %s: %v", what, context.Cause(s.ctx))
		}
	}
}

func (s *story) text(sel, want string) {
	s.t.Helper()
	s.until(sel+" with "+want, fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", sel, want))
}

// got is the next message that reached the hub.
func (s *story) got(kind session.MessageKind) session.Message {
	s.t.Helper()
	select {
	case m := <-s.hub.arrived:
		if m.Kind != kind {
			s.t.Fatalf("got %+v; want one of kind %d", m, kind)
		}
		return m
	case <-s.ctx.Done():
		s.t.Fatal("no message came from the page")
	}
	panic("unreachable")
}

func (s *story) edit(f func(*session.Transcript, *session.View)) {
	s.hub.edit(s.key, f)
	if v, ok := s.hub.View(s.key); ok {
		s.a.Show(v)
	} else {
		s.a.Show(session.View{Key: s.key, Done: true})
	}
}

func (s *story) fate(ticket int64, m session.MessageID, state session.FateState, step int) {
	f := session.Fate{Ticket: ticket, Msgs: []session.MessageID{m}, State: state, Turn: 1, Step: step, Waited: ticket > 1}
	s.hub.edit(s.key, func(l *session.Transcript, _ *session.View) { setFate(l, f) })
	if err := s.a.Sign(s.ctx, s.key, f); err != nil {
		s.t.Fatal(err)
	}
}

// begin opens turn 1 for the first message.
func (s *story) begin(m session.Message) {
	s.key = m.Key
	s.edit(func(l *session.Transcript, v *session.View) {
		l.Turn, l.Title = 1, "Report on the data folder"
		addRow(l, session.RowUser, session.UserRow{Inputs: []session.Input{inputOf(1, string(m.ID), m.Text)}})
		*v = session.View{Turn: 1, Phase: steer.PhaseModel, Since: time.Now(), Step: 1, Steps: 60, Asked: m.ID, Owner: person}
	})
	s.fate(1, m.ID, session.FateRunning, 0)
}

// call stores a model's call and shows it running.
func (s *story) call(step int, id, name, args, tail string) {
	s.edit(func(l *session.Transcript, v *session.View) {
		addRow(l, session.RowAssistant, session.AssistantRow{Calls: []session.Call{{ID: id, Name: name, Args: args}}})
		v.Phase, v.Step, v.Text = steer.PhaseTools, step, ""
		v.Tools = append(append([]session.ToolView{}, v.Tools...), session.ToolView{
			Call: id, Name: name, Args: args, Step: step, State: session.ToolRunning, Tail: tail, Began: time.Now(),
		})
	})
}

// result stores a call's result, and on it the steers, by ticket.
func (s *story) result(id, name, body string, steers ...session.Message) {
	s.edit(func(l *session.Transcript, v *session.View) {
		on := addRow(l, session.RowTool, session.ToolRow{Call: id, Name: name, Body: body}).Seq
		v.Tools = append([]session.ToolView{}, v.Tools...)
		last := &v.Tools[len(v.Tools)-1]
		last.State, last.Took = session.ToolDone, 3.2
		for _, m := range steers {
			for i, e := range l.Slot {
				if e.Msgs[0] != m.ID {
					continue
				}
				r := addRow(l, session.RowSteer, inputOf(0, string(m.ID), m.Text))
				r.On, r.N, r.Tick = on, 1, e.Ticket
				l.Slot = append(l.Slot[:i:i], l.Slot[i+1:]...)
				v.Notes = append(v.Notes, session.NoteView{N: 1, Step: v.Step + 1, From: "you", Text: m.Text, Call: id})
				break
			}
		}
		v.Phase, v.Step, v.Waiting = steer.PhaseModel, v.Step+1, len(l.Slot)
	})
}

func (s *story) wait(ticket int64, m session.Message, want steer.Mode) {
	s.edit(func(l *session.Transcript, v *session.View) {
		l.Slot = append(l.Slot, entryFor(ticket, string(m.ID), m.Text, want, 1))
		v.Waiting = len(l.Slot)
	})
	state := session.FateQueued
	if want == steer.Steer {
		state = session.FatePending
	}
	s.fate(ticket, m.ID, state, 0)
}

func (s *story) say(kind session.PartKind, id, text string, buttons ...session.Button) {
	data := s.a.Parts(session.Outgoing{Key: s.key, Kind: kind, Markdown: text, Buttons: buttons})[0]
	if _, err := s.a.Send(s.ctx, session.Part{Key: s.key, PartNew: session.PartNew{ID: id, Kind: kind, Turn: 1, Data: data}}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) write(text string) {
	s.run(chromedp.SendKeys(chromedp.ID("text"), text+kb.Enter))
}

// asked takes a question of the page and answers it as the hub would.
func (s *story) asked(text string, about session.MessageID, answer string) {
	s.t.Helper()
	m := s.got(session.KindText)
	id, ok := strings.CutPrefix(m.Dedupe, askPrefix)
	if m.Text != text || m.ReplyTo != about || !ok || id != string(m.ID) {
		s.t.Fatalf("asked: got %q to %q as %s; want %q to %q", m.Text, m.ReplyTo, m.Dedupe, text, about)
	}
	s.say(session.PartReply, "r:"+m.Dedupe+"/1", answer)
}

// artifacts reports whether go test keeps what tests write.
func artifacts() bool {
	f := flag.Lookup("test.artifacts")
	return f != nil && f.Value.String() == "true"
}

// shoot takes the page on a phone and on a desk, light and dark. They are kept
// with go test -artifacts.
func (s *story) shoot(dir, name string) {
	for _, wide := range []bool{false, true} {
		for _, scheme := range []string{"light", "dark"} {
			w, h := int64(390), int64(844)
			if wide {
				w, h = 1280, 800
			}
			s.run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
					Width: w, Height: h, DeviceScaleFactor: 1, Mobile: !wide,
				})
				if err != nil {
					return err
				}
				_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
				}})
				return err
			}))
			eval[bool](s, `new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(true))))`)
			// Nothing may stick out sideways, on the smallest screen least of all.
			if eval[bool](s, `document.documentElement.scrollWidth > innerWidth || document.getElementById('log').scrollWidth > document.getElementById('log').clientWidth`) {
				s.t.Errorf("%s at %d: the page scrolls sideways", name, w)
			}
			if !artifacts() {
				continue // nobody would see it
			}
			png, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				s.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, w, scheme)), png, 0o600); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}
