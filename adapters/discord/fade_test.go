package discord

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// waitingList is the buttons of a list of messages that wait: two each.
func waitingList(n int) []session.Button {
	var list []session.Button
	for i := range n {
		arg := string(rune('1' + i))
		list = append(list, session.Button{Text: "Run " + arg, Data: "run:" + arg, Row: true}, session.Button{Text: "Drop " + arg, Data: "drop:" + arg})
	}
	return list
}

// withButtons sends a message and gives its id.
func (w *world) withButtons(text string, list ...session.Button) string {
	w.t.Helper()
	id, err := w.say(keyOf(room, ""), text, session.Outgoing{Markdown: text, Buttons: list})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(id)
}

// buttonsOf writes the buttons of components: a row's apart by spaces, rows by
// strokes, a menu's choices in brackets.
func buttonsOf(components json.RawMessage) string {
	var rows []row
	_ = json.Unmarshal(components, &rows)
	var out []string
	for _, r := range rows {
		var ids []string
		for _, b := range r.Components {
			for _, o := range b.Options {
				ids = append(ids, "["+o.Value+"]")
			}
			if b.Type == 2 {
				ids = append(ids, b.CustomID)
			}
		}
		out = append(out, strings.Join(ids, " "))
	}
	return strings.Join(out, " | ")
}

// standsWith waits until a message of the room has these buttons.
func (w *world) standsWith(id, want string) {
	w.t.Helper()
	got := ""
	w.until("buttons "+want, func() bool {
		for _, m := range w.api.Bot(room) {
			if m.ID == id {
				got = buttonsOf(m.Components)
			}
		}
		return got == want
	})
}

// A button that had its effect goes with its row; the text and the other rows
// stay. Two presses one after the other take two rows away, though the second
// was made while the first row still stood there.
func TestPressedRowGoes(t *testing.T) {
	first := make(chan struct{})
	var o Options
	o.Spent = func(ctx context.Context, m session.Message) (bool, error) {
		if m.Button == "drop:1" {
			<-first
		}
		return true, nil
	}
	play(t, o, func(w *world) {
		id := w.withButtons("Waiting:", waitingList(3)...)
		w.standsWith(id, "run:1 drop:1 | run:2 drop:2 | run:3 drop:3")
		for _, data := range []string{"drop:1", "run:3"} {
			w.api.Press(room, id, ann, data)
			if m := w.next(); m.Button != data {
				t.Fatalf("door took %+v", m)
			}
		}
		if n := len(w.api.Calls("PATCH", id)); n != 0 {
			t.Errorf("%d edits before the first press was judged", n)
		}
		close(first)
		w.until("edits", func() bool { return len(w.api.Calls("PATCH", id)) == 2 })
		w.standsWith(id, "run:2 drop:2")
		w.api.Press(room, id, ann, "run:2")
		w.next()
		w.standsWith(id, "")
		m := w.api.Bot(room)[0]
		if m.Content != "Waiting:" || string(m.Components) != "[]" {
			t.Errorf("stands %q with %s", m.Content, m.Components)
		}
	})
}

// What may not go: the running bubble's buttons, those that had no effect, and
// those whose press is not stored yet.
func TestPressedRowStays(t *testing.T) {
	refused := make(chan string, 10)
	var o Options
	o.Spent = func(_ context.Context, m session.Message) (bool, error) {
		refused <- m.Button
		if m.Button == "retry:1" {
			return false, errDown
		}
		return m.Button == "drop:2", nil
	}
	play(t, o, func(w *world) {
		bubble := w.withButtons("Step 1", session.Button{Text: "Stop", Data: "stop:1"}, session.Button{Text: "Waiting 1", Data: "pending"})
		list := w.withButtons("Waiting:", waitingList(2)...)
		failed := w.withButtons("It failed.", session.Button{Text: "Retry", Data: "retry:1"})
		w.api.Press(room, bubble, ann, "stop:1")
		w.api.Press(room, bubble, ann, "pending")
		w.api.Press(room, list, bob, "drop:1")
		w.api.Press(room, failed, ann, "retry:1")
		for range 4 {
			w.next()
		}
		for _, want := range []string{"drop:1", "retry:1"} {
			if got := <-refused; got != want {
				t.Errorf("asked of %s; want %s", got, want)
			}
		}
		w.door.failing(func(m session.Message) error {
			if m.Kind == session.KindPress {
				return errDown
			}
			return nil
		})
		token := w.api.Press(room, list, ann, "drop:2")
		w.until("acked", func() bool { kind, _ := w.api.Answer(token); return kind == ackDeferredUpdate })
		w.nothing()
		if n := len(w.api.Calls("PATCH", room)); n != 0 {
			t.Errorf("%d edits; want none", n)
		}
		w.door.failing(nil)
		w.next()
		w.standsWith(list, "run:1 drop:1")
		w.standsWith(bubble, "stop:1 pending")
		w.standsWith(failed, "retry:1")
	})
}

// A message that only who asked sees is changed by the token of the press.
func TestPressedRowOfPrivateAnswer(t *testing.T) {
	play(t, Options{}, func(w *world) {
		token := w.api.Slash(room, bob, "pending", "")
		asked := w.next()
		o := session.Outgoing{Kind: session.PartReply, Markdown: "Waiting:", Interaction: asked.Interaction, Buttons: waitingList(2)}
		if _, err := w.say(keyOf(room, ""), "r", o); err != nil {
			t.Fatal(err)
		}
		m := w.api.Private(token)[0]
		w.api.Press(room, m.ID, bob, "run:1")
		w.next()
		w.until("edited", func() bool { return buttonsOf(w.api.Private(token)[0].Components) == "run:2 drop:2" })
		if m := w.api.Private(token)[0]; m.Content != "Waiting:" {
			t.Errorf("says %q", m.Content)
		}
		if n := len(w.api.Calls("PATCH", "channels/")); n != 0 {
			t.Errorf("%d edits by the channel, where it is not", n)
		}
	})
}

// Without room the button stays: it is not tried again, and nothing waits for it.
func TestPressedRowWithoutRoom(t *testing.T) {
	play(t, Options{}, func(w *world) {
		id := w.withButtons("Waiting:", waitingList(3)...)
		w.api.Fault(discordtest.Fault{Method: "PATCH", Path: id, Status: 429, RetryAfter: 30})
		w.api.Press(room, id, ann, "run:1")
		w.next()
		w.until("refused", func() bool { return len(w.api.Calls("PATCH", id)) == 1 })
		w.until("cooling off", func() bool { return w.a.pace.wait("edit:"+room) > 0 })
		token := w.api.Press(room, id, ann, "run:2")
		w.next()
		w.until("acked", func() bool { kind, _ := w.api.Answer(token); return kind == ackDeferredUpdate })
		w.until("given up", func() bool { return strings.Count(w.logs.String(), "button not taken away") == 2 })
		if n := len(w.api.Calls("PATCH", id)); n != 1 {
			t.Errorf("%d calls; want one", n)
		}
	})
}

// While one press is judged, others are taken and acked; Run waits for the
// fader.
func TestFaderHoldsNothingUp(t *testing.T) {
	judging, ending, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var o Options
	o.Spent = func(ctx context.Context, _ session.Message) (bool, error) {
		close(judging)
		<-ctx.Done()
		close(ending)
		<-release
		return true, nil
	}
	play(t, o, func(w *world) {
		id := w.withButtons("Waiting:", waitingList(1)...)
		for range fadesMost + 5 {
			w.api.Press(room, id, ann, "run:1")
			w.next()
		}
		<-judging
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			w.stop()
		}()
		<-ending
		w.a.flight.Load().wait()
		late := time.NewTimer(1500 * time.Millisecond) // the library needs a second to close
		defer late.Stop()
		select {
		case <-stopped:
			t.Error("Run returned before the fader")
		case <-late.C:
		}
		close(release)
		<-stopped
	})
}

// A choice from a menu goes alone: a menu says nothing of rows.
func TestWithout(t *testing.T) {
	menu := buttons(keyOf(room, ""), waitingList(8))
	packed := buttons(keyOf(room, ""), append([]session.Button{{Text: "x", Data: "x"}}, waitingList(5)[1:]...))
	for _, c := range []struct {
		rows []row
		gone string
		want string
	}{
		{menu, "drop:2", "[run:1] [drop:1] [run:2] [run:3] [drop:3] [run:4] [drop:4] [run:5] [drop:5] [run:6] [drop:6] [run:7] [drop:7] [run:8] [drop:8]"},
		{[]row{{Type: 1, Components: []button{{Type: 3, CustomID: menuData, Options: []choice{{"a", "a"}}}}}}, "a", ""},
		{packed, "none", "x drop:1 | run:2 drop:2 | run:3 drop:3 | run:4 drop:4 | run:5 drop:5"},
		{packed, "run:5", "x drop:1 | run:2 drop:2 | run:3 drop:3 | run:4 drop:4"},
	} {
		var raw []json.RawMessage
		for _, r := range c.rows {
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, data)
		}
		raw = append(raw, json.RawMessage(`{"type":99}`), json.RawMessage(`7`)) // whatever comes one day
		left, changed := without(raw, []string{c.gone})
		data, _ := json.Marshal(left[:len(left)-2])
		if got := buttonsOf(data); got != c.want || changed != (c.gone != "none") || string(left[len(left)-1]) != "7" {
			t.Errorf("without %s: %s, changed %v; want %s", c.gone, got, changed, c.want)
		}
	}
}
