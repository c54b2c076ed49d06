package session_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"coxswain/session"
	"coxswain/steer"
)

// on is a command that somebody uses on a message.
func (w *world) on(of session.Message, who session.UserID, text string) session.Message {
	m := w.says(who, of.Key.Chat, text)
	m.Key, m.Private = of.Key, of.Private
	m.ID, m.MsgDedupe = of.ID, of.Dedupe
	m.Dedupe, m.Interaction = "i:"+m.Dedupe, m.Dedupe
	return w.deliver(m)
}

// A forgetful store knows no mark any more when it is late: they are kept for two
// days.
type forgetful struct {
	session.Store
	late *atomic.Bool
}

func (f forgetful) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	if f.late.Load() {
		r.Dedupe += " anew"
	}
	return f.Store.Accept(ctx, r)
}

// What a command makes of a message is that message: once, whatever is done to it
// how often, and the last verb counts while it waits (I2).
func TestCommandOnMessage(t *testing.T) {
	var late atomic.Bool
	old := func(st session.Store) session.Store { return forgetful{st, &late} }
	play(t, set{mode: steer.Queue, wrap: old}, func(w *world) {
		note := w.deliver(w.chats("ann", lobby, "use March"))
		w.deliver(w.says("ann", lobby, "a task"))
		for _, c := range []struct {
			verb string
			want steer.Mode
			sign session.FateState
		}{
			{"steer", steer.Steer, session.FatePending}, {"steer", steer.Steer, session.FatePending},
			{"queue", steer.Queue, session.FateQueued}, {"queue", steer.Queue, session.FateQueued},
			{"steer", steer.Steer, session.FatePending}, {"queue", steer.Queue, session.FateQueued},
		} {
			w.on(note, "ann", "/"+c.verb+" use March")
			e := w.entry(lobby)
			if e.Want != c.want || e.Ticket != 2 || len(e.Msgs) != 1 || e.Msgs[0] != note.ID || e.Author != "ann" {
				t.Errorf("%s: %+v; want the message itself, to %s", c.verb, e, c.want)
			}
			if got := w.out.of(note); got != c.sign {
				t.Errorf("%s: its sign is %s; want %s", c.verb, got, c.sign)
			}
		}
		w.deliver(note) // it comes again: it did not speak to the bot
		addressed := note
		addressed.Addressed = true
		w.deliver(addressed)
		w.entry(lobby)
		w.wantSaid(lobby, "")
		why := w.says("ann", lobby, "/why")
		why.ReplyTo = note.ID
		w.deliver(why)
		w.wantSaid(lobby, "Queued.")

		w.finish("done")
		w.said(lobby)
		w.on(note, "ann", "/steer use March")
		w.wantSaid(lobby, "Being worked on.")
		w.finish("Built with March.")
		if all := w.sent(lobby); len(all) != 1 || all[0].ReplyTo != note.ID {
			t.Errorf("answered %+v; want a reply to the message", all)
		}
		late.Store(true)
		last := w.on(note, "ann", "/queue use March")
		w.wantSaid(lobby, "Answered.")
		w.deliver(last)
		w.wantSaid(lobby, "")
		if l := w.lane(lobby); l.Turn != 0 || l.Turns != 2 || l.Tickets != 2 {
			t.Errorf("turn %d runs, of %d, %d inputs; want it to have run once", l.Turn, l.Turns, l.Tickets)
		}
	})
}

// The same command delivered again is one, before and after what it made has run.
func TestCommandOnMessageTwice(t *testing.T) {
	play(t, set{mode: steer.Steer}, func(w *world) {
		note := w.chats("ann", lobby, "use March")
		first := w.on(note, "ann", "/queue use March")
		w.deliver(first)
		if l := w.lane(lobby); l.Turn != 1 || len(l.Slot) != 0 {
			t.Errorf("turn %d, slot %+v", l.Turn, l.Slot)
		}
		w.finish("done")
		w.deliver(first)
		if l := w.lane(lobby); l.Turn != 0 || l.Tickets != 1 {
			t.Errorf("turn %d runs, %d inputs; want one that has run", l.Turn, l.Tickets)
		}
	})
}

// Who may is as with the buttons: one's own may be queued, the owner of the task
// steers. Somebody else's message is the input of who used the command on it (I10).
func TestCommandOnMessageOfWhom(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		bobs := w.deliver(w.chats("bob", lobby, "use March"))
		w.deliver(w.says("ann", lobby, "a task"))
		w.on(bobs, "eve", "/steer mine")
		w.wantSaid(lobby, "Your message is queued")
		if e := w.entry(lobby); e.Author != "eve" || e.Want != steer.Queue {
			t.Errorf("a bystander's %+v; want theirs, queued", e)
		}
		for range 2 { // each is answered
			w.on(bobs, "eve", "/steer mine")
			w.wantSaid(lobby, "owner or an admin can steer")
			w.on(bobs, "bob", "/queue mine")
			w.wantSaid(lobby, "owner or an admin can do that")
		}
		edit := bobs
		edit.Kind, edit.Text, edit.Dedupe, edit.Addressed = session.KindEdit, "use April, and rm -rf", "e:1", true
		w.deliver(edit)
		gone := bobs
		gone.Kind, gone.Dedupe, gone.Addressed = session.KindDelete, "d:1", true
		w.deliver(gone)
		if e := w.entry(lobby); e.Author != "eve" || e.Want != steer.Queue || strings.Contains(string(e.Data), "April") {
			t.Errorf("another's message changed %+v", e)
		}
		w.on(bobs, "ann", "/steer mine")
		if e := w.entry(lobby); e.Author != "eve" || e.Want != steer.Steer {
			t.Errorf("let in by the owner: %+v", e)
		}
		// What is held runs.
		w.deliver(w.says("ann", lobby, "/stop"))
		w.on(bobs, "eve", "/steer mine")
		if l := w.lane(lobby); l.Turn != 2 || l.Owner != "eve" || len(l.Slot) != 0 {
			t.Errorf("held, then steered: %+v", l)
		}
	})
}

// A message that was refused, or was a command, is no input yet: it may become one
// later, once.
func TestCommandOnMessageRefused(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", lobby, "a task"))
		for n := range session.SlotCap {
			w.deliver(w.says("ann", lobby, fmt.Sprint("next ", n)))
		}
		note := w.deliver(w.says("ann", lobby, "too many"))
		w.wantSaid(lobby, "32 messages wait already")
		w.on(note, "ann", "/queue too many")
		w.wantSaid(lobby, "32 messages wait already")
		w.press("ann", lobby, "drop:2")
		for range 3 {
			w.on(note, "ann", "/queue too many")
			w.wantSaid(lobby, "")
		}
		if l := w.lane(lobby); len(l.Slot) != session.SlotCap || l.Slot[session.SlotCap-1].Msgs[0] != note.ID {
			t.Errorf("%d wait; want it to be the last", len(l.Slot))
		}
	})
}

// It is known to have been an input also when nothing else is known of it any more.
func TestCommandOnForgottenMessage(t *testing.T) {
	play(t, set{}, func(w *world) {
		old := w.deliver(w.says("ann", lobby, "long ago"))
		w.finish("done")
		for range 300 {
			w.deliver(w.says("ann", lobby, "and on"))
			w.finish("done")
		}
		w.sent(lobby)
		w.on(old, "ann", "/queue long ago")
		w.wantSaid(lobby, "Nothing is known of that message.")
		if l := w.lane(lobby); l.Turn != 0 || l.Tickets != 301 {
			t.Errorf("turn %d runs, %d inputs; want it not to run again", l.Turn, l.Tickets)
		}
	})
}

// What became an input is not told once more as something the group said.
func TestCommandOnObserved(t *testing.T) {
	play(t, set{mode: steer.Queue, observe: 10}, func(w *world) {
		w.deliver(w.chats("bob", lobby, "it rains"))
		note := w.deliver(w.chats("ann", lobby, "use March"))
		w.on(note, "ann", "/queue use March")
		w.deliver(note)
		if told, in := w.toldIn(key(lobby), 1), w.inputs(lobby); fmt.Sprint(told, in) != "[bob: it rains] [use March]" {
			t.Errorf("told of %q, asked %q", told, in)
		}
		edit := note
		edit.Kind, edit.Text, edit.Dedupe = session.KindEdit, "use April", "e:1"
		w.deliver(edit)
		if e := w.entry(lobby); !strings.Contains(string(e.Data), "edited: use April") {
			t.Errorf("its edit: %s; want it steered", e.Data)
		}
	})
}

// A message that another session took while it was spoken to in the chat is that
// session's (I2).
func TestCommandOnMovedMessage(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		old := w.deliver(w.at(crowd, "88", "of the group"))
		w.finish("a")
		w.deliver(w.at(annHere, "ann", "secret plan"))
		w.finish("b")
		w.reached(crowd)
		w.reached(annHere)
		w.deliver(w.at(crowd, "77", "/resume secret"))
		w.reached(annHere)
		before := w.laneOf(annHere).Tickets
		w.on(old, "88", "/queue of the group")
		w.wantReached(crowd, crowd, "Answered.")
		if got := w.laneOf(annHere).Tickets; got != before {
			t.Errorf("%d inputs; want %d: it was taken by another", got, before)
		}
		fresh := w.at(crowd, "77", "a new one")
		w.on(fresh, "77", "/queue a new one")
		w.on(fresh, "77", "/queue a new one")
		w.deliver(fresh) // it speaks to the bot: the same
		if got := w.laneOf(annHere).Tickets; got != before+1 {
			t.Errorf("%d inputs; want %d", got, before+1)
		}
	})
}
