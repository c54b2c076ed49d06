package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A principal holds for the chat it was made in, and reading asks for one:
// nobody's session is shown in another chat (I10, I13).
func TestPrincipalHoldsForItsChat(t *testing.T) {
	play(t, set{}, func(w *world) {
		w.deliver(w.says("ann", "ann", "my secret"))
		w.deliver(w.says("eve", lobby, "hello"))
		ann, _, _ := w.hub.Identify(t.Context(), key("ann"), session.Person{ID: "ann"}, true)
		eve, _, _ := w.hub.Identify(t.Context(), key(lobby), session.Person{ID: "eve"}, false)
		root, _, _ := w.hub.Identify(t.Context(), key(lobby), session.Person{ID: "root"}, false)
		thread := key(lobby)
		thread.Thread = "7"
		other := key("ann")
		other.Platform = "other"
		for _, c := range []struct {
			name string
			p    session.Principal
			key  session.Key
			want bool
		}{
			{"own", ann, key("ann"), true},
			{"own chat's thread", eve, thread, true},
			{"another's private chat", eve, key("ann"), false},
			{"an admin, of another chat", root, key("ann"), false},
			{"same chat id, another platform", ann, other, false},
			{"nobody", session.Principal{}, key("ann"), false},
			{"made by hand", session.Principal{Platform: "fake", ID: "ann", Admin: true}, session.Key{Platform: "fake"}, false},
		} {
			if got := c.p.May(c.key); got != c.want {
				t.Errorf("%s: may %v; want %v", c.name, got, c.want)
			}
			tr, err := w.hub.Read(t.Context(), c.p, c.key, 0, 0)
			if refused := errors.Is(err, session.ErrNotYours); refused == c.want || refused && len(tr.Rows)+len(tr.Fates) > 0 {
				t.Errorf("%s: read %d rows, %v; want %v", c.name, len(tr.Rows), err, c.want)
			}
			s, err := w.hub.Status(t.Context(), c.p, c.key)
			if refused := errors.Is(err, session.ErrNotYours); refused == c.want || refused && s != (session.Status{}) {
				t.Errorf("%s: status %+v, %v; want %v", c.name, s, err, c.want)
			}
		}
	})
}

// What comes in is a command only where a person wrote one now: forwarded text
// and edits never are (T3, T7), and what does not speak to the bot is nothing.
func TestCommandsAreTypedNow(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		task := w.deliver(w.says("ann", "ann", "a task"))
		forward := w.says("ann", "ann", "/stop")
		forward.Forwarded = "Eve"
		w.deliver(forward)
		word := w.says("ann", "ann", "stop")
		word.Forwarded = "Eve"
		w.deliver(word)
		if l := w.lane("ann"); l.Turn != 1 || l.Stop != 0 || len(l.Slot) != 2 {
			t.Fatalf("turn %d, stop %d, %d wait; want the task running and 2 waiting", l.Turn, l.Stop, len(l.Slot))
		}
		for _, text := range []string{"/stop", "/new", "/stop all"} {
			edit := task
			edit.Kind, edit.Text, edit.Dedupe = session.KindEdit, text, "e:"+text
			w.deliver(edit)
		}
		waiting := forward
		waiting.Kind, waiting.Forwarded, waiting.Text, waiting.Dedupe = session.KindEdit, "", "/new", "e:w"
		w.deliver(waiting)
		side := w.says("ann", "ann", "/stop")
		side.Addressed = false
		w.deliver(side)
		if l := w.lane("ann"); l.Turn != 1 || l.Gen != 1 || l.Stop != 0 || len(l.Slot) != 2 {
			t.Errorf("turn %d, generation %d, stop %d, %d wait; want all as it was", l.Turn, l.Gen, l.Stop, len(l.Slot))
		}
		w.wantSaid("ann", "")
		w.deliver(w.says("ann", "ann", "/stop"))
		if l := w.lane("ann"); l.Turn != 0 {
			t.Errorf("turn %d runs after a /stop that was typed", l.Turn)
		}
	})
}

// A known command never reaches the model, an unknown one is named with the
// nearest, and a path is text (§2.4, T11). Commands create no session.
func TestCommandsReachNoModel(t *testing.T) {
	play(t, set{}, func(w *world) {
		for _, c := range []struct{ text, want string }{
			{"/help", "/status"}, {"/WhoAmI", "ann on fake"}, {"/stop", "Nothing is running"}, {"/pending", "Nothing waits"},
			{"/stauts", "Did you mean /status?"}, {"/stat", "Did you mean /status?"}, {"/unl", "Did you mean /unlink?"}, {"/qqqqqqq x", "no command /qqqqqqq. /help"}, {"/cancel", "Reply to"},
			{"/steer", "Usage: /steer TEXT"}, {"/q", "Usage: /queue TEXT"}, {"/busy sideways", "Usage: /busy"},
		} {
			w.deliver(w.says("ann", "ann", c.text))
			w.wantSaid("ann", c.want)
		}
		if l := w.lane("ann"); l.Tickets != 0 || l.Turns != 0 {
			t.Errorf("%d inputs, %d turns; want none", l.Tickets, l.Turns)
		}
		w.deliver(w.says("ann", "ann", "/etc/hosts is wrong"))
		if got := w.inputs("ann"); !slices.Equal(got, []string{"/etc/hosts is wrong"}) {
			t.Errorf("the turn began with %q", got)
		}
	})
}

// A message that is exactly a stop word is /stop when the owner says it to a
// running task, and a message like any other else (§2.3).
func TestStopWords(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", lobby, "stop")) // nothing runs: a task
		if got := w.inputs(lobby); !slices.Equal(got, []string{"stop"}) {
			t.Fatalf("the turn began with %q", got)
		}
		w.deliver(w.says("bob", lobby, "stop"))
		w.deliver(w.says("root", lobby, "stop"))
		w.deliver(w.says("ann", lobby, "stop it"))
		w.deliver(w.says("ann", lobby, "stop."))
		if l := w.lane(lobby); l.Turn != 1 || l.Stop != 0 || len(l.Slot) != 4 {
			t.Fatalf("turn %d, stop %d, %d wait; want turn 1 running, 4 waiting", l.Turn, l.Stop, len(l.Slot))
		}
		w.deliver(w.says("ann", lobby, "  HALT\n"))
		l := w.lane(lobby)
		if l.Turn != 0 || l.Tickets != 5 {
			t.Errorf("turn %d, %d inputs; want stopped, 5", l.Turn, l.Tickets)
		}
		for _, e := range l.Slot {
			if !e.Held {
				t.Errorf("ticket %d is not held", e.Ticket)
			}
		}
		w.wantSaid(lobby, "Stopped.")
	})
}

// A /stop that comes over 60 s late acts only on a turn that had begun when it
// was written: it must not kill what was asked for since (§2.3).
func TestLateStop(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrote time.Duration // after the turn began; negative: before
		age   time.Duration // at receipt
		stops bool
	}{
		{"at once, turn older", time.Second, 0, true},
		{"a minute late, turn younger", -30 * time.Second, 60 * time.Second, true},
		{"late, turn younger", -30 * time.Second, 61 * time.Second, false},
		{"late, turn older", 30 * time.Second, 61 * time.Second, true},
		{"a day late, turn younger", -time.Hour, 24 * time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, set{}, func(w *world) {
				w.deliver(w.says("ann", "ann", "a task"))
				began := w.lane("ann").TurnAt
				time.Sleep(c.wrote + c.age)
				m := w.says("ann", "ann", "/stop")
				m.Sent = began.Add(c.wrote)
				m.Received = m.Sent.Add(c.age)
				w.deliver(m)
				if stopped := w.lane("ann").Turn == 0; stopped != c.stops {
					t.Errorf("stopped: %v; want %v", stopped, c.stops)
				}
				if want := map[bool]string{true: "Stopped.", false: "Nothing is running."}[c.stops]; !c.stops {
					w.wantSaid("ann", want)
				}
			})
		})
	}
}

// A steer's text is at most 8 KiB, counted in bytes; a longer one is queued
// and says so. A message over the entry's size is not taken and says so.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       steer.Mode
		said       string
		taken      bool
	}{
		{"8,192 bytes", strings.Repeat("x", 8192), steer.Steer, "", true},
		{"8,192 bytes of 4,096 letters", strings.Repeat("ж", 4096), steer.Steer, "", true},
		{"8,193 bytes", strings.Repeat("x", 8193), steer.Queue, "Too long to steer in", true},
		{"fewer letters, more bytes", strings.Repeat("ж", 4097), steer.Queue, "Too long to steer in", true},
		{"a page of markup", strings.Repeat("<p>a & b</p>\n", 4000), steer.Queue, "Too long to steer in", true},
		{"over 64 kB", strings.Repeat("x", 64<<10+1), 0, "over 64 kB", false},
		{"over 64 kB as it is stored", strings.Repeat("\x01", 50<<10), 0, "over 64 kB", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, set{mode: steer.Steer}, func(w *world) {
				w.deliver(w.says("ann", "ann", "a task"))
				w.deliver(w.says("ann", "ann", c.text))
				w.wantSaid("ann", c.said)
				if !c.taken {
					if n := len(w.lane("ann").Slot); n != 0 {
						t.Errorf("%d entries wait; want none", n)
					}
					return
				}
				e := w.entry("ann")
				if e.Want != c.want || e.Turn != 1 {
					t.Errorf("it waits as %v for turn %d; want %v for 1", e.Want, e.Turn, c.want)
				}
				if len(e.Data) > session.EntryMaxBytes {
					t.Errorf("the entry has %d bytes; at most %d", len(e.Data), session.EntryMaxBytes)
				}
			})
		})
	}
}

// While nothing runs there is no steer, so nothing is too long for one.
func TestLongMessageStarts(t *testing.T) {
	play(t, set{mode: steer.Steer}, func(w *world) {
		text := strings.Repeat("x", 20000)
		w.deliver(w.says("ann", "ann", text))
		if got := w.inputs("ann"); len(got) != 1 || got[0] != text {
			t.Errorf("the turn began with %d inputs", len(got))
		}
		w.wantSaid("ann", "")
	})
}

// Who may steer, interrupt or stop a task: its owner and admins. A bystander's
// message waits, and says so if it asked for more (I10, steer.from: owner).
func TestBystander(t *testing.T) {
	for _, c := range []struct {
		text, said string
		who        session.UserID
		want       steer.Mode
	}{
		{"me too", "", "bob", steer.Queue},
		{"/steer me too", "Only the task's owner", "bob", steer.Queue},
		{"/interrupt me first", "Only the task's owner", "bob", steer.Queue},
		{"/queue later", "", "bob", steer.Queue},
		{"do", "", "root", steer.Steer},
		{"/steer do", "", "ann", steer.Steer},
		{"/queue do", "", "ann", steer.Queue},
	} {
		play(t, set{mode: steer.Steer}, func(w *world) {
			w.deliver(w.says("ann", lobby, "a task"))
			w.deliver(w.says(c.who, lobby, c.text))
			w.wantSaid(lobby, c.said)
			if e := w.entry(lobby); e.Want != c.want {
				t.Errorf("%s: %q waits as %v; want %v", c.who, c.text, e.Want, c.want)
			}
			for _, cmd := range []string{"/stop", "/new", "/stop all"} {
				w.deliver(w.says("bob", lobby, cmd))
				w.wantSaid(lobby, "Only the task's owner or an admin can do that.")
			}
			if l := w.lane(lobby); l.Turn != 1 || l.Gen != 1 || len(l.Slot) != 1 || l.Slot[0].Held {
				t.Errorf("a bystander changed the task: %+v", l)
			}
		})
	}
}

// The parts of a split paste may each be short enough for a note and the whole
// not: it is queued, once, and says so once, also when a part is delivered
// again.
func TestLongPaste(t *testing.T) {
	play(t, set{mode: steer.Steer}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		for i := range 4 {
			m := w.says("ann", "ann", strings.Repeat("x", 3000))
			m.Group, m.OpenFor = "paste", time.Second
			for range 2 {
				w.deliver(m)
			}
			e := w.entry("ann")
			if want := map[bool]steer.Mode{true: steer.Queue, false: steer.Steer}[i >= 2]; e.Want != want || len(e.Msgs) != i+1 || e.Open.IsZero() {
				t.Errorf("after %d parts: %v, messages %v, open till %v; want %v", i+1, e.Want, e.Msgs, e.Open, want)
			}
		}
		w.wantSaid("ann", "Too long to steer in")
	})
}
