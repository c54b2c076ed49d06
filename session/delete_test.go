package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// deletes is the event that m is gone; by is whom the platform names, empty =
// nobody.
func (w *world) deletes(m session.Message, by session.UserID) {
	w.t.Helper()
	w.deliver(deletion(m, by))
}

func deletion(m session.Message, by session.UserID) session.Message {
	m.Kind, m.Text, m.From, m.Dedupe = session.KindDelete, "", session.Person{ID: by}, "d:"+string(m.ID)+":"+string(by)
	return m
}

// fate is the recorded state of the input that m is.
func (w *world) fate(m session.Message) session.FateState {
	w.t.Helper()
	fates, err := w.store.Fates(w.t.Context(), m.Key, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range fates {
		if f.Msgs[0] == m.ID {
			return f.State
		}
	}
	return ""
}

// D2: who may take a running task back by deleting its message, and until when.
func TestDeleteStopsTurn(t *testing.T) {
	show := func(w *world) { w.agent.turn.Load().ShowText(false, "The") }
	for _, c := range []struct {
		name   string
		off    bool
		by     session.UserID
		before func(w *world)
		stops  bool
	}{
		{name: "its owner", by: "ann", stops: true},
		{name: "nobody is named", stops: true},
		{name: "another", by: "bob"},
		{name: "an admin", by: "root"},
		{name: "switched off", by: "ann", off: true},
		{name: "a word was shown", by: "ann", before: show},
		{name: "a word was shown and taken back", by: "ann", before: func(w *world) {
			show(w)
			w.agent.turn.Load().ShowText(true, "")
		}},
		{name: "the first request was answered, by calls", by: "ann", stops: true, before: func(w *world) { w.agent.turn.Load().RequestOver() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, set{mode: steer.Queue, deletes: !c.off}, func(w *world) {
				task := w.deliver(w.says("ann", lobby, "a task"))
				w.deliver(w.says("bob", lobby, "next"))
				if c.before != nil {
					c.before(w)
				}
				w.deletes(task, c.by)
				w.deletes(task, c.by)
				turn, fate := int64(1), session.FateRunning
				if c.stops {
					turn, fate = 2, session.FateStopped // and what waits runs: it is not held
				}
				if l := w.lane(lobby); l.Turn != turn || w.fate(task) != fate {
					t.Fatalf("turn %d runs, the message %s; want %d, %s", l.Turn, w.fate(task), turn, fate)
				}
				w.wantSaid(lobby, "") // nothing is said of it
				w.finish("done")
				w.wantSaid(lobby, "done")
				if got := w.lane(lobby).Slot; len(got) != 0 {
					t.Errorf("still waiting: %+v", got)
				}
			})
		})
	}
}

// D2: a task that was asked by several messages goes on while one is left.
func TestDeleteOfOneOfSeveral(t *testing.T) {
	play(t, set{mode: steer.Queue, deletes: true, together: true}, func(w *world) {
		w.deliver(w.says("ann", lobby, "a task"))
		one := w.deliver(w.says("ann", lobby, "one"))
		two, three := w.says("ann", lobby, "two"), w.says("ann", lobby, "three")
		two.Group, three.Group, two.OpenFor = "album", "album", time.Second // one input of two parts
		w.deliver(two)
		w.deliver(three)
		w.finish("done")
		if got := w.inputs(lobby); len(got) != 2 {
			t.Fatalf("the turn has %q; want both", got)
		}
		w.deletes(one, "ann")
		w.deletes(one, "")
		w.deletes(two, "ann")
		if l := w.lane(lobby); l.Turn != 2 || l.Stop != 0 {
			t.Fatalf("turn %d, stopped %d; want it to go on for the last", l.Turn, l.Stop)
		}
		if w.deletes(three, "ann"); w.lane(lobby).Turn != 0 || w.fate(one) != session.FateStopped || w.fate(two) != session.FateStopped {
			t.Errorf("turn %d, %s, %s; want both stopped", w.lane(lobby).Turn, w.fate(one), w.fate(two))
		}
	})
}

// D2: a steer that waits for a task that was taken back runs by itself, and what
// is held stays held.
func TestDeleteKeepsWhatWaits(t *testing.T) {
	play(t, set{mode: steer.Steer, deletes: true}, func(w *world) {
		w.deliver(w.says("ann", lobby, "the first"))
		held := w.deliver(w.says("ann", lobby, "held"))
		w.deliver(w.says("ann", lobby, "/stop"))
		w.sent(lobby)
		task := w.deliver(w.says("ann", lobby, "a task"))
		note := w.deliver(w.says("ann", lobby, "a note"))
		if w.out.of(note) != session.FatePending {
			t.Fatalf("the note is %s; want pending", w.out.of(note))
		}
		w.deletes(task, "ann")
		l := w.lane(lobby)
		if got := w.inputs(lobby); l.Turn != 3 || len(got) != 1 || got[0] != "a note" {
			t.Errorf("turn %d began with %q; want 3 with the note", l.Turn, got)
		}
		if len(l.Slot) != 1 || !l.Slot[0].Held || w.fate(held) != session.FateHeld {
			t.Errorf("waiting: %+v; want the held one, held", l.Slot)
		}
	})
}

// D1, D2: a message may be deleted in the moment in which its turn begins, on
// either side of it.
func TestDeleteAtBegin(t *testing.T) {
	for _, c := range []struct {
		when storetest.When
		want session.FateState
	}{{storetest.Before, session.FateDropped}, {storetest.After, session.FateStopped}} {
		var w *world
		var task session.Message
		hook := func(point string, when storetest.When) storetest.Fault {
			if point == "begin" && when == c.when && task.ID != "" {
				gone := deletion(task, "")
				task.ID = ""
				if err := w.hub.Deliver(w.t.Context(), gone); err != nil {
					w.t.Error(err)
				}
			}
			return storetest.None
		}
		play(t, set{mode: steer.Queue, deletes: true, hook: hook}, func(in *world) {
			w = in
			asked := w.says("ann", lobby, "a task")
			task = asked
			if w.deliver(asked); w.lane(lobby).Turn != 0 || w.fate(asked) != c.want {
				t.Errorf("turn %d, the message %s; want %s", w.lane(lobby).Turn, w.fate(asked), c.want)
			}
			w.wantSaid(lobby, "")
		})
	}
}

// D1, D2: the slot is read, and then the turn takes the message before it can be
// dropped. It is stopped in the store, not only here.
func TestDeleteWhileTaken(t *testing.T) {
	var w *world
	var drops, begun, stored chan struct{}
	var stop int64
	hook := func(point string, when storetest.When) storetest.Fault {
		switch {
		case point == "begin" && when == storetest.Before:
			<-drops
		case point == "begin":
			close(begun)
		case point == "amend.drop" && when == storetest.Before:
			close(drops)
			<-begun
		case point == "stop" && when == storetest.After:
			stop = w.lane(lobby).Stop
			close(stored)
		case point == "commit.end" && when == storetest.Before:
			<-stored
		}
		return storetest.None
	}
	play(t, set{mode: steer.Queue, deletes: true, hook: hook}, func(in *world) {
		w, drops, begun, stored = in, make(chan struct{}), make(chan struct{}), make(chan struct{}) // of the bubble
		task := w.deliver(w.says("ann", lobby, "a task"))
		w.deletes(task, "ann")
		if l := w.lane(lobby); l.Turns != 1 || l.Turn != 0 || stop != 1 || w.fate(task) != session.FateStopped {
			t.Errorf("turn %d of %d, stopped %d, the message %s; want it stopped", l.Turn, l.Turns, stop, w.fate(task))
		}
	})
}

// D2: a follow-up that is about to join the task is a message of it that is left.
func TestDeleteBesideJoin(t *testing.T) {
	play(t, set{mode: steer.Steer, deletes: true, join: time.Second}, func(w *world) {
		task := w.deliver(w.says("ann", lobby, "a task"))
		w.deliver(w.says("ann", lobby, "and more")) // this agent never takes it in
		if w.deletes(task, "ann"); w.lane(lobby).Turn != 1 || w.lane(lobby).Stop != 0 {
			t.Errorf("turn %d, stopped %d; want it to go on", w.lane(lobby).Turn, w.lane(lobby).Stop)
		}
	})
}

// D2: the message of a task that is asked again stands for it; what the retry
// was asked for by does not.
func TestDeleteOfRetried(t *testing.T) {
	for _, own := range []bool{false, true} {
		play(t, set{mode: steer.Queue, deletes: true}, func(w *world) {
			task := w.deliver(w.says("ann", lobby, "a task"))
			w.agent.end <- session.Outcome{End: session.EndFailed, Public: "It failed."}
			synctest.Wait()
			gone, turn := w.deliver(w.says("ann", lobby, "/retry")), int64(2)
			if own {
				gone, turn = task, 0
			}
			if w.deletes(gone, "ann"); w.lane(lobby).Turn != turn {
				t.Errorf("turn %d after its own message (%v) was deleted; want %d", w.lane(lobby).Turn, own, turn)
			}
		})
	}
}
