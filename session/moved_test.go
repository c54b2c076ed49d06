package session_test

import (
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/steer"
)

// pressed presses a button in a chat of any platform.
func (w *world) pressed(chat session.Key, who session.UserID, button string) session.Message {
	w.t.Helper()
	m := w.at(chat, who, "")
	m.Kind, m.Button, m.Dedupe = session.KindPress, button, "i:"+m.Dedupe
	return w.deliver(m)
}

// A button means something to the session it was made by: after a move the chat
// has another, whose turns and tickets have the same numbers (T32).
func TestMovedButtonsAreOfTheirSession(t *testing.T) {
	var shows views
	play(t, set{policy: abroad, mode: steer.Queue, views: &shows}, func(w *world) {
		w.join()
		fresh := session.Key{Platform: "fake", Chat: "ann", Line: 1}
		w.deliver(w.at(annHere, "ann", "alpha"))
		stop := "stop:1" + shows.last(annHere).Mark
		w.deliver(w.at(annHere, "ann", "alpha, later"))
		w.deliver(w.at(annHere, "ann", "/stop"))
		var held []session.Button
		for _, o := range w.reached(annHere) {
			held = append(held, o.out.Buttons...)
		}
		if len(held) != 2 {
			t.Fatalf("got buttons %+v; want Run and Drop", held)
		}
		w.bring(annThere, "77")
		w.reached(annHere)
		w.reached(fresh)

		// The old chat's new session: its turn 1 runs and its ticket 2 waits.
		w.deliver(w.at(annHere, "ann", "gamma"))
		w.deliver(w.at(annHere, "ann", "delta"))
		for _, data := range []string{stop, held[0].Data, held[1].Data, "retry:1"} {
			w.pressed(annHere, "ann", data)
			w.wantReached(fresh, annHere, "out of date")
		}
		if l := w.laneOf(fresh); l.Turn != 1 || l.Stop == 1 || len(l.Slot) != 1 || l.Slot[0].Held {
			t.Errorf("buttons of the session before: %+v; want its turn running and one that waits", l)
		}
		// Its own do what they say, and so do those of the one that is away.
		w.deliver(w.at(annHere, "ann", "/pending"))
		list := w.wantReached(fresh, annHere, "delta").Buttons
		w.pressed(annHere, "ann", list[len(list)-1].Data)
		if l := w.laneOf(fresh); len(l.Slot) != 0 {
			t.Errorf("its own Drop dropped nothing: %+v", l.Slot)
		}
		w.pressed(annHere, "ann", "stop:1"+shows.last(annHere).Mark)
		if l := w.laneOf(fresh); l.Turn != 0 {
			t.Error("its own Stop stopped nothing")
		}
		w.reached(fresh)
		w.deliver(w.at(annThere, "77", "/pending"))
		list = w.wantReached(annHere, annThere, "alpha, later").Buttons
		w.pressed(annThere, "77", strings.Split(list[0].Data, "@")[0]) // as the chat's own session would have it
		w.wantReached(annHere, annThere, "out of date")
		w.pressed(annThere, "77", list[0].Data)
		if l := w.laneOf(annHere); l.Turn == 0 {
			t.Error("Run of the session that is away ran nothing")
		}
		w.finish("done")

		// At home again its old buttons are its own again.
		w.deliver(w.at(annHere, "ann", "/resume alpha"))
		w.reached(annHere)
		w.pressed(annHere, "ann", "retry:1")
		if l := w.laneOf(annHere); l.Turn == 0 {
			t.Error("at home again its Retry does nothing")
		}
		w.finish("done")
	})
}
