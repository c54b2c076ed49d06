package session_test

import (
	"fmt"
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/steer"
)

// A button's data is no authority: who pressed is judged against what its
// number means now, and in this chat (T32, I10).
func TestButtons(t *testing.T) {
	const gone, old = "does not wait any more", "out of date"
	for _, c := range []struct {
		name   string
		who    session.UserID
		chat   session.ChatID
		button string
		said   string
		want   session.FateState // of bob's queued message
	}{
		{"drop, own", "bob", lobby, "drop:2", "", session.FateDropped},
		{"drop, admin", "root", lobby, "drop:2", "", session.FateDropped},
		{"drop, another's", "eve", lobby, "drop:2", "owner or an admin", session.FateQueued},
		{"drop, the owner of the task is not that of the message", "ann", lobby, "drop:2", "owner or an admin", session.FateQueued},
		{"now, the owner lets it in", "ann", lobby, "now:2", "", session.FatePending},
		{"now, by its author", "bob", lobby, "now:2", "steer or stop it", session.FateQueued},
		{"queue, another's", "eve", lobby, "queue:2", "owner or an admin", session.FateQueued},
		{"run, own", "bob", lobby, "run:2", "", session.FateQueued},
		{"another chat's number", "bob", den, "drop:2", gone, session.FateQueued},
		{"another chat's turn", "bob", den, "stop:1", old, session.FateQueued},
		{"a number that was never given", "bob", lobby, "drop:99", gone, session.FateQueued},
		{"no number", "bob", lobby, "drop:", gone, session.FateQueued},
		{"words for a number", "bob", lobby, "drop:2x", gone, session.FateQueued},
		{"an unknown verb", "bob", lobby, "erase:2", old, session.FateQueued},
		{"nothing", "bob", lobby, "", gone, session.FateQueued},
		{"a finished turn's stop", "ann", lobby, "stop:0", old, session.FateQueued},
		{"a later turn's stop", "ann", lobby, "stop:2", old, session.FateQueued},
		{"stop, a bystander", "eve", lobby, "stop:1", "owner or an admin", session.FateQueued},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, set{mode: steer.Queue}, func(w *world) {
				w.deliver(w.says("ann", lobby, "a task"))
				bobs := w.deliver(w.says("bob", lobby, "mine"))
				w.press(c.who, c.chat, c.button)
				w.wantSaid(c.chat, c.said)
				if got := w.out.of(bobs); got != c.want {
					t.Errorf("bob's message is %s; want %s", got, c.want)
				}
				if l := w.lane(lobby); l.Turn != 1 || l.Stop != 0 {
					t.Errorf("turn %d, stop %d; want the task to run", l.Turn, l.Stop)
				}
			})
		})
	}
}

// A press delivered twice is one, and a button that has done its work says so
// to the next who presses it (I2, T32).
func TestButtonTwice(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		w.deliver(w.says("ann", "ann", "next"))
		m := w.says("ann", "ann", "")
		m.Kind, m.Button, m.Dedupe = session.KindPress, "drop:2", "i:1"
		w.deliver(m)
		w.wantSaid("ann", "")
		w.press("ann", "ann", "drop:2")
		w.wantSaid("ann", "does not wait any more")
		w.press("ann", "ann", "stop:1")
		w.wantSaid("ann", "Stopped.")
		w.press("ann", "ann", "stop:1")
		w.wantSaid("ann", "out of date")
	})
}

// What fits as a steer at the door fits by button too, and what does not, does
// not: the text counts, in bytes, not how it is stored (§2.3).
func TestSendNowSize(t *testing.T) {
	for _, c := range []struct {
		text string
		fits bool
	}{
		{strings.Repeat("\"\n", 4096), true},
		{strings.Repeat("\"\n", 4096) + "x", false},
	} {
		play(t, set{mode: steer.Queue}, func(w *world) {
			w.deliver(w.says("ann", "ann", "a task"))
			w.deliver(w.says("ann", "ann", c.text))
			w.press("ann", "ann", "now:2")
			if got := w.said("ann") == ""; got != c.fits {
				t.Errorf("%d bytes fit: %v; want %v", len(c.text), got, c.fits)
			}
			if got := w.entry("ann").Want == steer.Steer; got != c.fits {
				t.Errorf("%d bytes are a steer: %v; want %v", len(c.text), got, c.fits)
			}
		})
	}
}

// An edit of what waits replaces it in its place; one of the running task's
// own message is one steer; one of history, or by another, is nothing (T1-T3).
func TestEdits(t *testing.T) {
	edit := func(m session.Message, text string) session.Message {
		m.Kind, m.Text, m.Dedupe = session.KindEdit, text, "e:"+string(m.ID)+":"+text
		return m
	}
	play(t, set{mode: steer.Steer}, func(w *world) {
		done := w.deliver(w.says("ann", lobby, "first"))
		w.finish("done")
		w.deliver(edit(done, "first, again"))
		if l := w.lane(lobby); l.Turn != 0 || l.Tickets != 1 {
			t.Fatalf("an edit of history began turn %d; %d inputs", l.Turn, l.Tickets)
		}
		task := w.deliver(w.says("ann", lobby, "a task"))
		waits := w.deliver(w.says("ann", lobby, "/queue next"))
		foreign := edit(waits, "something else")
		foreign.From.ID = "eve"
		w.deliver(foreign)
		if e := w.entry(lobby); !strings.Contains(string(e.Data), `"next"`) {
			t.Errorf("another's edit is taken: %s", e.Data)
		}
		w.deliver(edit(waits, "next, but better"))
		w.deliver(edit(waits, "next, but better")) // delivered twice (I2)
		e := w.entry(lobby)
		if e.Ticket != 3 || e.Want != steer.Queue || !strings.Contains(string(e.Data), `"next, but better"`) {
			t.Errorf("got ticket %d as %v: %s", e.Ticket, e.Want, e.Data)
		}
		w.deliver(edit(task, "a task")) // nothing changed: a link preview came
		if n := len(w.lane(lobby).Slot); n != 1 {
			t.Errorf("%d wait after an edit that changed nothing; want 1", n)
		}
		w.deliver(edit(task, "a better task"))
		w.deliver(edit(task, "a better task"))
		l := w.lane(lobby)
		if len(l.Slot) != 2 || l.Slot[1].Want != steer.Steer || l.Slot[1].Turn != 2 || !strings.Contains(string(l.Slot[1].Data), "edited: a better task") {
			t.Errorf("got %+v; want one steer", l.Slot)
		}
	})
}

// A deleted message that waits is dropped, by its author or when the platform
// does not say by whom; one that runs runs on (D1).
func TestDeletes(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		del := func(m session.Message, who session.UserID) {
			m.Kind, m.Text, m.From.ID, m.Dedupe = session.KindDelete, "", who, "d:"+string(m.ID)+":"+string(who)
			w.deliver(m)
		}
		task := w.deliver(w.says("ann", lobby, "a task"))
		waits := w.deliver(w.says("ann", lobby, "next"))
		del(waits, "eve")
		del(task, "ann")
		if l := w.lane(lobby); l.Turn != 1 || len(l.Slot) != 1 {
			t.Fatalf("turn %d, %d wait; want 1 and 1", l.Turn, len(l.Slot))
		}
		del(task, "")
		other := w.deliver(w.says("bob", lobby, "mine"))
		if del(other, ""); w.out.of(other) != session.FateDropped {
			t.Errorf("gone on the platform, and here %s; want dropped", w.out.of(other))
		}
		del(waits, "ann")
		if l := w.lane(lobby); len(l.Slot) != 0 || w.out.of(waits) != session.FateDropped {
			t.Errorf("%d wait, shown as %s; want dropped", len(l.Slot), w.out.of(waits))
		}
	})
}

// A redelivered event changes nothing and is answered with nil (I2); a
// redelivered command answers once.
func TestRedelivery(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		for _, text := range []string{"a task", "next", "/queue more", "/busy interrupt", "/help"} {
			m := w.deliver(w.says("ann", "ann", text))
			before, said := w.lane("ann"), w.sent("ann")
			w.deliver(m)
			after := w.lane("ann")
			if before.Tickets != after.Tickets || len(before.Slot) != len(after.Slot) || len(w.sent("ann")) != 0 {
				t.Errorf("%q delivered twice: %d inputs, then %d; said %d before", text, before.Tickets, after.Tickets, len(said))
			}
		}
	})
}

// A /stop or /new that is delivered again after the next task began touches
// neither that task nor its jobs nor what waits for it (I2): a restart before
// the offset moved delivers both again.
func TestStopRedelivered(t *testing.T) {
	for _, text := range []string{"/stop", "/stop all", "/new", "halt"} {
		play(t, set{mode: steer.Queue}, func(w *world) {
			w.deliver(w.says("ann", "ann", "a task"))
			stop := w.deliver(w.says("ann", "ann", text))
			w.sent("ann")
			w.deliver(w.says("ann", "ann", "a new task"))
			waits := w.deliver(w.says("ann", "ann", "more"))
			job := session.Job{ID: "j1", Name: "build", State: session.JobRunning, Owner: "life1"}
			if _, err := w.store.Post(t.Context(), session.Post{Key: key("ann"), Add: []session.Job{job}}); err != nil {
				t.Fatal(err)
			}
			before := w.agent.stops.Load()
			w.deliver(stop)
			l := w.lane("ann")
			if l.Turn != 2 || len(l.Slot) != 1 || l.Slot[0].Held || w.out.of(waits) != session.FateQueued {
				t.Errorf("%s again: turn %d, %+v, shown as %s; want turn 2 and one queued", text, l.Turn, l.Slot, w.out.of(waits))
			}
			if n := w.agent.stops.Load() - before; n != 0 || len(l.Jobs) != 1 {
				t.Errorf("%s again: jobs were ended %d times, %d left; want 0 and 1", text, n, len(l.Jobs))
			}
			if got := w.said("ann"); got != "" {
				t.Errorf("%s again: said %q", text, got)
			}
		})
	}
}

// /stop ends the task and its jobs, and holds what waits; /new does it too and
// begins a conversation in which nothing of it is left (§2.3).
func TestStopEndsJobs(t *testing.T) {
	for _, text := range []string{"/stop", "/new"} {
		play(t, set{mode: steer.Queue}, func(w *world) {
			w.deliver(w.says("ann", "ann", "a task"))
			waits := w.deliver(w.says("ann", "ann", "more"))
			job := session.Job{ID: "j1", Name: "build", State: session.JobRunning, Owner: "life1"}
			if _, err := w.store.Post(t.Context(), session.Post{Key: key("ann"), Add: []session.Job{job}}); err != nil {
				t.Fatal(err)
			}
			w.deliver(w.says("ann", "ann", text))
			l := w.lane("ann")
			if l.Turn != 0 || len(l.Jobs) != 0 || len(l.Slot) != 1 || !l.Slot[0].Held || w.out.of(waits) != session.FateHeld {
				t.Errorf("%s: turn %d, %d jobs, %+v; want idle, no job, one held", text, l.Turn, len(l.Jobs), l.Slot)
			}
			if n := w.agent.stops.Load(); n != 1 {
				t.Errorf("%s: jobs were ended %d times; want 1", text, n)
			}
			all := w.sent("ann")
			if len(all) != 1 || len(all[0].Buttons) != 2 || all[0].Buttons[0].Data != "run:2" {
				t.Errorf("%s: said %+v; want one answer with buttons to run and drop", text, all)
			}
		})
	}
}

// A /cancel or a button whose answer died with the process is delivered again:
// it says what it did then, not that there is nothing to do (I2).
func TestDropRedelivered(t *testing.T) {
	for _, how := range []string{"/cancel", "drop"} {
		play(t, set{mode: steer.Queue}, func(w *world) {
			w.deliver(w.says("ann", "ann", "a task"))
			waits := w.deliver(w.says("ann", "ann", "more"))
			m := w.says("ann", "ann", "/cancel")
			m.ReplyTo = waits.ID
			if how == "drop" {
				m.Text, m.Kind, m.Button = "", session.KindPress, fmt.Sprintf("drop:%d", w.entry("ann").Ticket)
			}
			ticket := w.entry("ann").Ticket
			if _, err := w.store.Amend(t.Context(), session.Amend{Key: key("ann"), Dedupe: m.Dedupe, Kind: session.AmendDrop, Ticket: ticket}); err != nil {
				t.Fatal(err) // the life before came as far as this
			}
			w.deliver(m)
			if got := w.said("ann"); strings.Contains(got, "does not wait") {
				t.Errorf("%s, delivered again, said %q", how, got)
			}
			// Another one finds nothing.
			m.Dedupe += "again"
			w.deliver(m)
			w.wantSaid("ann", "does not wait")
		})
	}
}

// A reaction on a message that waits: by its author it is taken back, by the
// turn's owner or an admin it is let in. By anybody else, on anything else and
// in an idle session it means nothing, and nothing is said.
func TestReactions(t *testing.T) {
	react := func(w *world, who session.UserID, on session.MessageID) {
		m := w.says(who, lobby, "")
		m.Kind, m.ID, m.Dedupe = session.KindReact, on, "x:"+m.Dedupe
		w.deliver(m)
		w.deliver(m)
	}
	play(t, set{mode: steer.Steer}, func(w *world) {
		task := w.deliver(w.says("ann", lobby, "a task"))
		waits := w.deliver(w.says("bob", lobby, "me too"))
		for _, who := range []session.UserID{"ann", "bob"} {
			react(w, who, task.ID)
		}
		react(w, "eve", waits.ID)
		if e := w.entry(lobby); e.Want != steer.Queue || w.out.of(waits) != session.FateQueued {
			t.Errorf("eve's reaction made it %v, %s", e.Want, w.out.of(waits))
		}
		react(w, "ann", waits.ID)
		if e := w.entry(lobby); e.Want != steer.Steer || w.out.of(waits) != session.FatePending {
			t.Errorf("the owner's reaction made it %v, %s; want a steer, pending", e.Want, w.out.of(waits))
		}
		react(w, "bob", waits.ID)
		if n := len(w.lane(lobby).Slot); n != 0 || w.out.of(waits) != session.FateDropped {
			t.Errorf("after its author's reaction %d wait, %s; want none, dropped", n, w.out.of(waits))
		}
		w.wantSaid(lobby, "")
	})
	play(t, set{mode: steer.Queue}, func(w *world) { // held: it is not let in by a gesture
		w.deliver(w.says("ann", lobby, "a task"))
		waits := w.deliver(w.says("bob", lobby, "me too"))
		w.deliver(w.says("ann", lobby, "/stop"))
		w.deliver(w.says("ann", lobby, "a new task"))
		react(w, "ann", waits.ID)
		if e := w.entry(lobby); !e.Held {
			t.Error("a reaction released a held message")
		}
	})
}
