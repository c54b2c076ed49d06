package discord

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// D13: after a break the session is resumed; what is replayed although it was
// taken already is one message, with and without RESUMED.
func TestD13Resume(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]discordtest.Script{
		"replay":  {Replay: 2},
		"no word": {Replay: 2, OmitResumed: true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				w.api.Say(dm, ann, "one")
				w.api.Say(dm, ann, "two")
				w.next()
				w.next()
				w.api.Next(script)
				w.api.Drop(0)
				w.api.Say(dm, ann, "while away")
				if m := w.next(); m.Text != "while away" {
					t.Errorf("got %+v; want what was missed", m)
				}
				w.nothing()
				w.once()
				if s := w.a.Status(); s.Logins != 1 || s.Replaced != 0 {
					t.Errorf("status %+v; want the one login", s)
				}
			})
		})
	}
}

// Op 7 asks for a new connection; the session goes on.
func TestOp7(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Op7()
		w.until("resumed", func() bool { return w.a.Status().Resumes == 1 })
		w.nothing()
	})
}

// D14: a session that is not known any more is begun anew, and what was missed
// is read by REST, before what comes live and through the same door.
func TestD14InvalidSession(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Say(dm, ann, "before")
		w.api.Say(room, bob, me+" before")
		w.next()
		w.next()
		w.api.Next(discordtest.Script{RefuseResume: true})
		w.api.Drop(0)
		w.api.Say(dm, ann, "missed 1")
		w.api.Say(dm, ann, "missed 2")
		w.api.Say(room, bob, me+" missed 3")
		got := map[session.ChatID]string{}
		for range 3 {
			m := w.next()
			got[m.Key.Chat] += m.Text + "; "
		}
		if got[dm] != "missed 1; missed 2; " || got[room] != "missed 3; " {
			t.Errorf("got %v", got)
		}
		w.nothing()
		if s := w.a.Status(); s.Logins != 2 {
			t.Errorf("status %+v; want a second login", s)
		}
	})
}

// D14, D13: after a restart the backlog is read from where the door was, oldest
// first, no older than a day, and never twice.
func TestD14Restart(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Say(dm, ann, "before")
		w.api.Say(topic, bob, me+" before")
		w.next()
		w.next()
		w.stop()
		w.api.Say(dm, ann, "one")
		w.api.Post(discordtest.Message{Channel: dm, Author: discordtest.User{ID: "5", Bot: true}, Content: "from a bot"})
		w.api.Say(dm, ann, "two")
		w.api.Say(topic, bob, "in the thread")
		w.fresh()
		w.run()
		got := map[session.Key]string{}
		for range 3 {
			m := w.next()
			got[m.Key] += m.Text + "; "
			if m.Key.Thread != "" && !m.Addressed {
				t.Errorf("the thread was forgotten: %+v", m)
			}
		}
		if got[keyOf(dm, "")] != "one; two; " || got[keyOf(room, topic)] != "in the thread; " {
			t.Errorf("got %v", got)
		}
		w.stop()
		w.fresh()
		w.run()
		w.connected()
		w.nothing()
		w.once() // cursors are stored when Run ends
	})
}

func TestD14OldBacklog(t *testing.T) {
	w := newWorld(t, Options{})
	old := discordtest.IDAt(time.Now().Add(-30 * time.Hour))
	// A channel that is not there any more is forgotten, not asked for ever.
	_ = w.docs.PutDoc(w.ctx, "discord:"+discordtest.BotID+":cursors", 0, fmt.Appendf(nil, `{"%s":"%s","1":"%[2]s"}`, dm, old))
	w.api.Post(discordtest.Message{ID: discordtest.IDAt(time.Now().Add(-25 * time.Hour)), Channel: dm, Author: discordtest.User{ID: ann}, Content: "too old"})
	w.api.Post(discordtest.Message{ID: discordtest.IDAt(time.Now().Add(-23 * time.Hour)), Channel: dm, Author: discordtest.User{ID: ann}, Content: "yesterday"})
	w.run()
	if m := w.next(); m.Text != "yesterday" {
		t.Errorf("got %q", m.Text)
	}
	w.until("forgotten", func() bool { c := w.docs.get("cursors"); return strings.Contains(c, dm) && !strings.Contains(c, `"1"`) })
	w.end()
}

// D14: what is read again comes before what comes live, also when reading it
// takes several tries.
func TestD14BacklogBeforeLive(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Say(dm, ann, "before")
		w.next()
		w.api.Next(discordtest.Script{RefuseResume: true})
		w.api.Fault(discordtest.Fault{Method: "GET", Path: dm + "/messages", Status: 500, Times: 4})
		w.api.Drop(0)
		w.api.Say(dm, ann, "missed")
		w.until("new login", func() bool { return w.a.Status().Logins >= 2 })
		w.api.Say(dm, ann, "live")
		for _, want := range []string{"missed", "live"} {
			if m := w.next(); m.Text != want {
				t.Errorf("got %q; want %q", m.Text, want)
			}
		}
	})
}

// D14: what was missed in a channel without a cursor is read from the newest
// message that the gateway told of before. That stays so when the session that
// finds it out ends before its guilds have told, and when REST has shown newer
// messages of other channels meanwhile.
func TestD14FreshChannel(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *world {
		w := newWorld(t, Options{})
		w.a.timing.open = stuckOpen // how long a silent connection lasts
		w.run()
		w.connected()
		w.api.Say(dm, ann, "before")
		w.next()
		return w
	}
	again := func(w *world, logins int64) {
		w.api.Drop(0)
		w.until("login", func() bool { s := w.a.Status(); return s.Logins >= logins && s.Connected })
	}
	want := func(w *world, list ...string) {
		w.t.Helper()
		for len(list) > 0 {
			m := w.next()
			at := slices.Index(list, m.Text)
			if at < 0 {
				w.t.Fatalf("got %q; want %q", m.Text, list)
			}
			list = slices.Delete(list, at, at+1)
		}
		w.end()
	}
	t.Run("no guild told", func(t *testing.T) {
		w := start(t)
		w.api.Next(discordtest.Script{Close: 4009}, discordtest.Script{NoGuilds: true})
		w.api.Drop(0)
		w.api.Say(room, bob, me+" missed")
		w.until("login", func() bool { s := w.a.Status(); return s.Logins >= 2 && s.Connected })
		w.api.Say(dm, ann, "live") // newer than what was missed
		if m := w.next(); m.Text != "live" {
			t.Errorf("got %q", m.Text)
		}
		w.api.Next(discordtest.Script{RefuseResume: true})
		again(w, 3)
		want(w, "missed")
	})
	t.Run("newer by REST", func(t *testing.T) {
		w := start(t)
		w.api.Fault(discordtest.Fault{Method: "GET", Path: dm + "/messages", Status: 500, Times: -1})
		w.api.Next(discordtest.Script{RefuseResume: true})
		again(w, 2)
		// The socket is down; the backlog of the private chat can be read now, and
		// shows what was said after what nobody has told of.
		w.api.Next(discordtest.Script{Silent: true}, discordtest.Script{})
		w.api.Drop(0)
		w.api.Say(room, bob, me+" missed")
		w.api.Say(dm, ann, "by REST")
		w.api.Mend()
		if m := w.next(); m.Text != "by REST" || w.api.Connected() != 0 {
			t.Errorf("got %q over %d connections", m.Text, w.api.Connected())
		}
		want(w, "missed")
	})
}

// D23: READY that never comes, Op 7 in its place (the library locks itself up),
// heartbeats without an answer: the session is replaced, and nothing is lost.
func TestD23Stuck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script discordtest.Script
		leaked int64
	}{
		{"silent", discordtest.Script{Silent: true}, 0},
		{"op 7 first", discordtest.Script{Op7First: true}, 1},
		{"deaf", discordtest.Script{NoAcks: true}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.api.Interval = 500 * time.Millisecond // the library itself gives up after five
			w.a.timing.open, w.a.timing.ack, w.a.timing.tick = stuckOpen, 1500*time.Millisecond, 20*time.Millisecond
			w.api.Next(c.script)
			w.run()
			w.until("replaced", func() bool { s := w.a.Status(); return s.Replaced >= 1 && s.Connected })
			w.nothing()
			if s := w.a.Status(); s.Leaked < c.leaked {
				t.Errorf("leaked %d; want %d", s.Leaked, c.leaked)
			}
			w.end()
		})
	}
}

// stuckOpen is how long a session may take to be ready in these tests: they run
// over real sockets, and a busy machine takes a second for what an idle one does
// in ten milliseconds. One that is slower still is replaced once more.
const stuckOpen = 2 * time.Second

// D23: Op 7 as the answer to a Resume.
func TestD23Op7AtResume(t *testing.T) {
	w := newWorld(t, Options{})
	w.a.timing.open, w.a.timing.end = stuckOpen, 1500*time.Millisecond
	w.run()
	w.connected()
	w.api.Say(dm, ann, "before")
	w.next()
	w.api.Next(discordtest.Script{Op7First: true})
	w.api.Drop(0)
	w.api.Say(dm, ann, "missed")
	if m := w.next(); m.Text != "missed" {
		t.Errorf("got %+v", m)
	}
	if s := w.a.Status(); s.Leaked < 1 || s.Replaced < 1 || s.Logins < 2 {
		t.Errorf("status %+v", s)
	}
	w.end()
}

// D24: close codes that say no for good end the platform, others do not.
func TestD24CloseCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]error{4004: ErrToken, 4010: ErrRefused, 4011: ErrRefused, 4012: ErrRefused, 4013: ErrIntents, 4014: ErrIntents} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := newWorld(t, Options{})
			w.api.Next(discordtest.Script{Close: code})
			if err := w.a.Run(w.ctx); err != want {
				t.Errorf("Run: %v; want %v", err, want)
			}
			if s := w.a.Status(); s.Err != want.Error() || w.api.Dials() != 1 {
				t.Errorf("status %+v after %d connections", s, w.api.Dials())
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.Next(discordtest.Script{Close: 4000}, discordtest.Script{Close: 4009}, discordtest.Script{Close: 1001})
		w.run()
		w.connected()
		w.nothing()
		w.end()
	})
	t.Run("revoked while running", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.run()
		w.connected()
		w.api.Next(discordtest.Script{Close: 4004})
		w.api.Drop(4004)
		w.until("stopped", func() bool { return w.a.Status().Err == wordsBadToken })
		w.stop()
		if w.err != ErrToken {
			t.Errorf("Run: %v", w.err)
		}
	})
}

// D24: when the day's logins are nearly used up, connecting is slow.
func TestD24Budget(t *testing.T) {
	w := newWorld(t, Options{})
	for range loginsMost {
		w.a.logins.add()
	}
	if d := w.a.rested(time.Second); d != slowLogin {
		t.Errorf("waits %v; want %v", d, slowLogin)
	}
	w.a.logins.at[0] = time.Now().Add(-25 * time.Hour)
	if d := w.a.rested(time.Second); d != time.Second {
		t.Errorf("waits %v a day later", d)
	}
}
