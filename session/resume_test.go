package session_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// Two platforms and the web, on which everybody is one person.
var abroad = map[session.PlatformName]session.Policy{
	"fake":  {AllowUsers: []string{"ann", "bob"}, Pairing: session.PairingOff},
	"other": {AllowUsers: []string{"77", "88", "ann"}, Pairing: session.PairingOff},
	"web":   {Open: true, Pairing: session.PairingOff},
}

var (
	annHere  = session.Key{Platform: "fake", Chat: "ann"}
	annThere = session.Key{Platform: "other", Chat: "d77"}
	crowd    = session.Key{Platform: "other", Chat: "crowd"}
)

// at is a message of a person in a chat of any platform.
func (w *world) at(k session.Key, who session.UserID, text string) session.Message {
	m := w.says(who, k.Chat, text)
	m.Key, m.Private = k, k != crowd
	return m
}

// A told is a text as it reaches a chat.
type told struct {
	chat session.Key
	out  session.Outgoing
}

// reached takes what waits in a session's outbox and says where it went.
func (w *world) reached(lane session.Key) []told {
	w.t.Helper()
	of := map[session.PlatformName]session.Platform{}
	for name := range abroad {
		of[name] = platform(name)
	}
	var all []told
	for {
		p, ok, _, err := w.store.OutTake(w.t.Context(), lane, "life1", 1<<40)
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return all
		}
		plat, there, err := session.Destination(p, of)
		if err != nil {
			w.t.Fatal(err)
		}
		var o session.Outgoing
		if err := json.Unmarshal(there.Data, &o); err != nil {
			w.t.Fatal(err)
		}
		if plat.Name() != there.Key.Platform || o.Key != there.Key || there.Session() != lane {
			w.t.Errorf("a part for %v goes to %v on %s, of session %v; want %v", o.Key, there.Key, plat.Name(), there.Session(), lane)
		}
		all = append(all, told{there.Key, o})
		if err := w.store.OutDone(w.t.Context(), lane, "life1", session.PartDone{ID: p.ID, State: session.PartSent}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// wantReached checks the one text that reached a chat from a session.
func (w *world) wantReached(lane, chat session.Key, part string) session.Outgoing {
	w.t.Helper()
	all := w.reached(lane)
	if len(all) != 1 || all[0].chat != chat || !strings.Contains(all[0].out.Markdown, part) {
		w.t.Errorf("from %v: got %+v; want %q in %v", lane, all, part, chat)
		if len(all) == 0 {
			return session.Outgoing{}
		}
	}
	return all[0].out
}

var codeIn = regexp.MustCompile(`/link ([A-Z0-9]{10})`)

// join joins ann's account with 77 of the other platform.
func (w *world) join() {
	w.t.Helper()
	w.deliver(w.at(annHere, "ann", "/link"))
	code := codeIn.FindStringSubmatch(w.wantReached(annHere, annHere, "/link").Markdown)
	if code == nil {
		w.t.Fatal("no code")
	}
	w.deliver(w.at(annThere, "77", "/link "+strings.ToLower(code[1])))
	w.wantReached(annThere, annThere, "You are one person")
	w.wantReached(annHere, annHere, "was linked with Name of 77 on other")
}

// bring resumes the one session that can be brought to a chat.
func (w *world) bring(to session.Key, who session.UserID) session.Message {
	w.t.Helper()
	lane := w.hubLane(to)
	w.deliver(w.at(to, who, "/resume"))
	list := w.wantReached(lane, to, "What can go on here")
	if len(list.Buttons) != 1 {
		w.t.Fatalf("got %d buttons: %q", len(list.Buttons), list.Markdown)
	}
	m := w.at(to, who, "")
	m.Kind, m.Button, m.Dedupe = session.KindPress, list.Buttons[0].Data, "i:"+m.Dedupe
	return w.deliver(m)
}

// hubLane is the session spoken to in a chat.
func (w *world) hubLane(chat session.Key) session.Key {
	w.t.Helper()
	lane, err := w.hub.Routes.Lane(w.t.Context(), chat)
	if err != nil {
		w.t.Fatal(err)
	}
	return lane
}

func (w *world) laneOf(k session.Key) session.Lane {
	w.t.Helper()
	l, err := w.store.Load(w.t.Context(), k)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// A session goes on in another chat with its running turn: it is steered and
// answered there, the old chat is told and begins anew, and it comes back.
func TestResumeMovesARunningTurn(t *testing.T) {
	var shows views
	play(t, set{policy: abroad, mode: steer.Steer, views: &shows}, func(w *world) {
		w.join()
		task := w.deliver(w.at(annHere, "ann", "build the report"))
		press := w.bring(annThere, "77")
		w.wantReached(annHere, annThere, "Here it is: build the report. Its task runs on")
		fresh := session.Key{Platform: "fake", Chat: "ann", Line: 1}
		w.wantReached(fresh, annHere, "goes on in other")
		if got := w.hubLane(annThere); got != annHere {
			t.Fatalf("in the new chat %v is spoken to; want %v", got, annHere)
		}

		// What is shown of it ends here and goes on there.
		if v := shows.last(annHere); !v.Done || v.End != session.EndMoved {
			t.Errorf("shown in the old chat at last: %+v", v)
		}
		if v := shows.last(annThere); v.Done || v.Turn != 1 || v.Asked != "" {
			t.Errorf("shown in the new chat: %+v", v)
		}

		// The same person there: their word is a steer of their own task.
		note := w.deliver(w.at(annThere, "77", "use March"))
		l := w.laneOf(annHere)
		if len(l.Slot) != 1 || l.Slot[0].Want != steer.Steer || l.Slot[0].Turn != l.Turn || l.Slot[0].Author != "ann" || l.Owner != "ann" {
			t.Fatalf("the word of the owner from there: %+v, owner %s", l.Slot, l.Owner)
		}
		// The other platform may name its events as this one does.
		twin := w.at(annThere, "77", "and April")
		twin.Dedupe = task.Dedupe
		w.deliver(twin)
		if n := len(w.laneOf(annHere).Slot); n != 2 {
			t.Errorf("a message whose mark is that of another platform's: %d wait; want 2", n)
		}
		w.deliver(w.at(annThere, "77", "/stop all"))
		w.reached(annHere)
		w.deliver(w.at(annThere, "77", "build on"))
		note = w.deliver(w.at(annThere, "77", "use May"))
		// Read there, it has the id it has there.
		p, _, err := w.hub.Identify(w.t.Context(), annThere, session.Person{ID: "77"}, true)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := w.hub.Read(w.t.Context(), p, annThere, 0, 0)
		if err != nil || tr.Key != annThere || len(tr.Slot) != 1 || tr.Slot[0].Msgs[0] != note.ID || tr.Fates[0].Msgs[0] != note.ID {
			t.Errorf("read in the new chat: %v, %+v, fates %+v", err, tr.Slot, tr.Fates)
		}
		if got := session.LocalID(annThere, session.DecodeSteer(session.Row{Data: tr.Slot[0].Data}).Parts[0].ID); got != note.ID {
			t.Errorf("the id of its words: %s; want %s", got, note.ID)
		}
		if other, _ := w.hub.Read(w.t.Context(), p, annThere, tr.Gen, tr.After); other.Gen != tr.Gen || tr.Gen == 1 {
			t.Errorf("generation %d, then %d; want one that is not the chat's own", tr.Gen, other.Gen)
		}
		// Delivered again it is one.
		w.deliver(note)
		if n := len(w.laneOf(annHere).Slot); n != 1 {
			t.Errorf("delivered again: %d wait; want 1", n)
		}
		// The press again, too: nobody is told twice.
		w.deliver(press)
		if got := append(w.reached(annHere), w.reached(fresh)...); len(got) != 0 {
			t.Errorf("the press delivered again says %+v", got)
		}

		// The old chat begins anew; the id of its old message is not the new session's.
		w.deliver(w.at(annHere, "ann", "something else"))
		if l := w.laneOf(fresh); l.Turn == 0 {
			t.Error("the old chat has no session of its own")
		}
		w.finish("else done")
		w.finish("done")
		if got := w.reached(fresh); len(got) != 1 || got[0].chat != annHere || got[0].out.Markdown != "else done" && got[0].out.Markdown != "done" {
			t.Errorf("the new session of the old chat said %+v", got)
		}
		got := w.reached(annHere)
		if len(got) == 0 || got[0].chat != annThere || got[0].out.ReplyTo == task.ID {
			t.Errorf("the answer went %+v; want it in the new chat, and not as a reply to a message of the old one", got)
		}
		if v := shows.last(annThere); !v.Done || v.End != session.EndAnswered {
			t.Errorf("shown in the new chat at last: %+v", v)
		}
		synctest.Wait()
	})
	if len(shows.bad) > 0 {
		t.Error(shows.bad)
	}
}

// What is delivered again after a move is not taken by the session that lives
// there now (I2).
func TestResumeTakesNothingTwice(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "in the old chat"))
		w.finish("one")
		before := w.deliver(w.at(annThere, "77", "in the new chat"))
		w.finish("two")
		status := w.deliver(w.at(annThere, "77", "/busy queue"))
		w.reached(annThere)
		w.reached(annHere)
		old := w.at(annHere, "ann", "last words")
		w.deliver(old)
		w.bring(annThere, "77")
		w.reached(annHere)
		turns := w.laneOf(annHere).Turns
		for _, m := range []session.Message{before, status, old} {
			w.deliver(m)
		}
		if l := w.laneOf(annHere); l.Turns != turns || len(l.Slot) != 0 {
			t.Errorf("delivered again: %d turns, %d wait; want %d and none", l.Turns, len(l.Slot), turns)
		}
		if fresh := w.hubLane(annHere); w.laneOf(fresh).Tickets != 0 {
			t.Error("the last words were taken again by the old chat's new session")
		}
		if got := w.reached(annHere); len(got) != 0 {
			t.Errorf("said %+v", got)
		}
		w.finish("three")
	})
}

// A command that fails at any call of the store, before or after it, is delivered
// again: the session has moved once, and each chat is told once.
func TestResumeSurvivesEachFault(t *testing.T) {
	reached := map[string]bool{}
	for n := 1; ; n++ {
		struck := ""
		play(t, set{policy: abroad, mode: steer.Steer}, func(w *world) {
			w.join()
			w.deliver(w.at(annThere, "77", "before"))
			w.finish("x")
			w.reached(annThere)
			w.deliver(w.at(annHere, "ann", "build"))
			m := w.at(annThere, "77", "/resume build")
			calls := 0
			w.mu.Lock()
			w.faults = func(point string, when storetest.When) storetest.Fault {
				if calls++; calls != n {
					return storetest.None
				}
				struck = fmt.Sprint(point, " ", when)
				return storetest.Down
			}
			w.mu.Unlock()
			var err error
			for range 3 {
				if err = w.hub.Deliver(w.t.Context(), m); err == nil {
					break
				}
			}
			w.mu.Lock()
			w.faults = nil
			w.mu.Unlock()
			if err != nil {
				w.t.Fatalf("%s: %v", struck, err)
			}
			w.deliver(m) // and once more
			if got := w.hubLane(annThere); got != annHere {
				w.t.Errorf("%s: %v lives there; want %v", struck, got, annHere)
			}
			if got := w.hubLane(annHere); got.Line != 1 {
				w.t.Errorf("%s: %v lives in the old chat", struck, got)
			}
			w.wantReached(annHere, annThere, "Here it is: build")
			w.wantReached(w.hubLane(annHere), annHere, "goes on in other")
			w.finish("done")
		})
		if struck == "" {
			break
		}
		reached[struck] = true
	}
	t.Logf("reached: %v", slices.Sorted(maps.Keys(reached)))
	for _, want := range []string{"putdoc before", "putdoc after", "post before", "post after", "load before", "doc before"} {
		if !reached[want] {
			t.Errorf("no fault struck %s", want)
		}
	}
}

// Who is somebody else on another platform is not the owner there, whatever
// their id (I10), and a session is brought by its owner alone.
func TestResumeIsTheOwners(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Steer}, func(w *world) {
		w.deliver(w.at(annHere, "ann", "build"))
		w.deliver(w.at(annThere, "77", "/resume")) // not linked
		w.wantReached(annThere, annThere, "no other session")
		w.join()
		w.deliver(w.at(session.Key{Platform: "other", Chat: "d88"}, "88", "/resume build"))
		w.wantReached(session.Key{Platform: "other", Chat: "d88"}, session.Key{Platform: "other", Chat: "d88"}, "No session of yours")

		// Into a chat of many: titles are not shown there.
		w.deliver(w.at(crowd, "77", "/resume"))
		w.wantReached(crowd, crowd, "in a private chat")
		w.deliver(w.at(crowd, "77", "/resume build"))
		w.wantReached(annHere, crowd, "Here it is")
		// On that platform there is an account with the id of the owner's here.
		w.deliver(w.at(crowd, "ann", "delete all"))
		l := w.laneOf(annHere)
		if len(l.Slot) != 1 || l.Slot[0].Want != steer.Queue || l.Slot[0].Author == "ann" {
			t.Errorf("another account of the same id: %+v; want it queued as somebody else", l.Slot)
		}
		w.deliver(w.at(crowd, "ann", "/stop"))
		if l := w.laneOf(annHere); l.Stop == l.Turn {
			t.Error("another account of the same id stopped the task")
		}
		w.wantReached(annHere, crowd, "Only the task's owner")
		w.deliver(w.at(crowd, "77", "/stop all"))
		if l := w.laneOf(annHere); l.Turn != 0 {
			t.Error("the owner did not stop it from there")
		}
	})
}

// What is taken away on the platform it was written on counts no more, wherever
// its session lives (I10).
func TestResumeAuthorityStaysWhereItWasGiven(t *testing.T) {
	policy := map[session.PlatformName]session.Policy{
		"fake":  {AllowUsers: []string{"ann"}, Pairing: session.PairingOff},
		"other": {AllowUsers: []string{"77"}, AllowChats: []string{}, Pairing: session.PairingOff},
	}
	play(t, set{policy: policy, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "first"))
		w.bring(annThere, "77")
		w.deliver(w.at(annThere, "77", "second"))
		w.reached(annHere)
		p := policy["other"]
		p.AllowUsers = nil
		policy["other"] = p
		w.finish("done")
		if l := w.laneOf(annHere); l.Turn != 0 || len(l.Slot) != 0 || l.Turns != 1 {
			t.Errorf("turn %d of %d, %d wait; want what they wrote refused", l.Turn, l.Turns, len(l.Slot))
		}
	})
}

// A chat in which something runs or waits keeps its session; one that was left
// wakes what slept there.
func TestResumeSleepsAndWakes(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "alpha"))
		w.finish("a")
		w.deliver(w.at(annThere, "77", "beta"))
		w.reached(annHere)
		w.reached(annThere)
		w.deliver(w.at(annThere, "77", "/resume alpha"))
		w.wantReached(annThere, annThere, "A task runs or waits here")
		w.deliver(w.at(annThere, "77", "/resume"))
		press := w.at(annThere, "77", "")
		press.Kind, press.Button = session.KindPress, w.wantReached(annThere, annThere, "alpha").Buttons[0].Data
		spent := func(want bool) {
			w.t.Helper()
			if got, err := w.hub.Spent(w.t.Context(), press); err != nil || got != want {
				w.t.Errorf("the button is spent: %v, %v; want %v", got, err, want)
			}
		}
		spent(false)
		w.finish("b")
		w.reached(annThere)
		w.deliver(w.at(annThere, "77", "/resume alpha"))
		w.wantReached(annHere, annThere, "Here it is: alpha")
		spent(true)
		// beta sleeps here; it can be woken, and then alpha sleeps.
		w.deliver(w.at(annThere, "77", "/resume beta"))
		w.wantReached(annThere, annThere, "Here it is: beta")
		if got := w.hubLane(annThere); got != annThere {
			t.Errorf("spoken to: %v; want %v", got, annThere)
		}
		// Back home: what slept elsewhere comes.
		w.reached(session.Key{Platform: "fake", Chat: "ann", Line: 1})
		w.deliver(w.at(annThere, "77", "/resume alpha"))
		w.deliver(w.at(annThere, "77", "asked away"))
		w.reached(annHere)
		w.deliver(w.at(annHere, "ann", "/resume alpha")) // with a turn that was asked for elsewhere
		w.wantReached(annHere, annHere, "Here it is: alpha")
		w.deliver(w.at(annHere, "ann", "and one more")) // so the answer would hang on its question
		w.finish("answered at home")
		if got := w.reached(annHere); len(got) != 1 || got[0].chat != annHere || got[0].out.ReplyTo != "" {
			t.Errorf("the answer to what was asked elsewhere: %+v", got)
		}
		w.finish("one more")
		w.reached(annHere)
		if got := w.hubLane(annHere); got != annHere {
			t.Errorf("at home %v is spoken to; want %v", got, annHere)
		}
		w.deliver(w.at(annHere, "ann", "go on"))
		w.finish("done")
		w.wantReached(annHere, annHere, "done")
	})
}

// Codes are for private chats, for ten minutes, for one use, and not to be
// guessed; unlinking is told too.
func TestLink(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Steer}, func(w *world) {
		w.deliver(w.at(crowd, "77", "/link"))
		w.wantReached(crowd, crowd, "in a private chat")
		w.deliver(w.at(annThere, "77", "/unlink"))
		w.wantReached(annThere, annThere, "not linked")
		for range 5 {
			w.deliver(w.at(annThere, "77", "/link AAAAAAAAAA"))
			w.wantReached(annThere, annThere, "wrong or out of date")
		}
		w.deliver(w.at(annHere, "ann", "/link"))
		code := codeIn.FindStringSubmatch(w.wantReached(annHere, annHere, "/link").Markdown)[1]
		w.deliver(w.at(annThere, "77", "/link "+code))
		w.wantReached(annThere, annThere, "Too many wrong codes")
		w.deliver(w.at(annHere, "ann", "/link "+code))
		w.wantReached(annHere, annHere, "own code")
		d88 := session.Key{Platform: "other", Chat: "d88"}
		m := w.deliver(w.at(d88, "88", "/link "+code))
		w.wantReached(d88, d88, "You are one person")
		w.wantReached(annHere, annHere, "was linked")
		w.deliver(m) // again: nothing is said twice
		if got := append(w.reached(d88), w.reached(annHere)...); len(got) != 0 {
			t.Errorf("delivered again: %+v", got)
		}
		w.deliver(w.at(session.Key{Platform: "web", Chat: "abcdef"}, "web", "/link "+code))
		w.wantReached(session.Key{Platform: "web", Chat: "abcdef"}, session.Key{Platform: "web", Chat: "abcdef"}, "wrong or out of date")
		w.deliver(w.at(annHere, "ann", "/whoami"))
		w.wantReached(annHere, annHere, "linked with 88 on other")
		un := w.deliver(w.at(annHere, "ann", "/unlink"))
		w.wantReached(annHere, annHere, "stands alone")
		w.wantReached(d88, d88, "not linked with")
		w.deliver(un)
		if got := append(w.reached(d88), w.reached(annHere)...); len(got) != 0 {
			t.Errorf("unlinked again: %+v", got)
		}
		w.deliver(w.at(annHere, "ann", "/whoami"))
		if got := w.wantReached(annHere, annHere, "ann on fake").Markdown; strings.Contains(got, "linked") {
			t.Errorf("still linked: %q", got)
		}
	})
}
