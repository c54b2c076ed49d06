package session_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
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

// What sleeps in a group is nobody's to wake or to see there (I10, I13): an
// account without a link counts for its private chat only.
func TestMovedIntoAGroupIsNotForAll(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(crowd, "88", "of the group"))
		w.finish("a")
		w.deliver(w.at(annHere, "ann", "secret plan"))
		w.finish("b")
		w.reached(crowd)
		w.reached(annHere)
		w.deliver(w.at(crowd, "77", "/resume secret"))
		w.wantReached(annHere, crowd, "Here it is: secret plan")
		w.deliver(w.at(crowd, "88", "/resume group"))
		w.wantReached(annHere, crowd, "No session of yours")
		if got := w.hubLane(crowd); got != annHere {
			t.Errorf("a bystander took %v's place away: %v", annHere, got)
		}
		asked := w.at(crowd, "88", "/resume") // a slash command: its answer is for who asked
		asked.Interaction = "slash"
		w.deliver(asked)
		if got := w.reached(w.hubLane(crowd)); len(got) != 1 || strings.Contains(got[0].out.Markdown, "of the group") || len(got[0].out.Buttons) > 0 {
			t.Errorf("a bystander was shown %+v", got)
		}
	})
}

// A message stays its author's to change and to take away where they wrote it,
// wherever its session lives by now.
func TestMovedMessagesAreStillTheirAuthors(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "build"))
		var waits []session.Message
		for _, text := range []string{"one", "two", "three"} {
			waits = append(waits, w.deliver(w.at(annHere, "ann", text)))
		}
		w.bring(annThere, "77")
		away := w.deliver(w.at(annThere, "77", "four"))
		edit := waits[0]
		edit.Kind, edit.Dedupe, edit.Text = session.KindEdit, "e:1", "one, but not prod"
		w.deliver(edit)
		w.deliver(edit)
		if got := session.DecodeSteer(session.Row{Data: w.laneOf(annHere).Slot[0].Data}).Text(); got != "one, but not prod" {
			t.Errorf("edited where it was written: still %q", got)
		}
		gone := waits[1]
		gone.Kind, gone.Dedupe, gone.From = session.KindDelete, "d:1", session.Person{}
		w.deliver(gone)
		back := waits[2]
		back.Kind, back.Dedupe = session.KindReact, "a:1"
		w.deliver(back)
		if l := w.laneOf(annHere); len(l.Slot) != 2 {
			t.Errorf("%d wait; want what was deleted and what was taken back gone", len(l.Slot))
		}
		// The same the other way round, and by nobody else.
		w.reached(annHere)
		w.deliver(w.at(annHere, "ann", "/resume build"))
		edit = away
		edit.Kind, edit.Dedupe, edit.Text, edit.From.ID = session.KindEdit, "e:2", "by another", "88"
		w.deliver(edit)
		edit.Dedupe, edit.Text, edit.From.ID = "e:3", "four, in May", "77"
		w.deliver(edit)
		slot := w.laneOf(annHere).Slot
		if got := session.DecodeSteer(session.Row{Data: slot[len(slot)-1].Data}).Text(); got != "four, in May" {
			t.Errorf("edited in the chat that the session came home from: %q", got)
		}
		w.deliver(w.at(annHere, "ann", "/stop all"))
	})
}

// A chat keeps its session while a job of it runs: its end would begin a turn that
// nobody can speak to.
func TestMovedSessionLeavesNoJobAsleep(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "alpha"))
		w.finish("a")
		w.deliver(w.at(annThere, "77", "beta"))
		w.finish("b")
		w.reached(annThere)
		job := session.Job{ID: "j1", Turn: 1, Owner: "life1", Name: "make", State: session.JobRunning, Data: []byte(`{"owner":"77"}`)}
		if _, err := w.store.Post(w.t.Context(), session.Post{Key: annThere, Add: []session.Job{job}}); err != nil {
			t.Fatal(err)
		}
		w.deliver(w.at(annThere, "77", "/resume alpha"))
		w.wantReached(annThere, annThere, "runs or waits here")
	})
}

// A command whose answer was cut off is delivered again when its session has gone
// on: it does not say that it is here, and tells no chat that it has left.
func TestMovedAndBackBeforeTheAnswer(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "alpha"))
		w.finish("a")
		w.reached(annHere)
		m := w.at(annThere, "77", "/resume alpha")
		w.fail("post", storetest.Before)
		if err := w.hub.Deliver(w.t.Context(), m); err == nil {
			t.Fatal("the answer was stored")
		}
		w.fail("", 0)
		w.deliver(w.at(annHere, "ann", "/resume alpha"))
		w.wantReached(annHere, annHere, "Here it is: alpha")
		w.reached(annThere)
		w.deliver(m)
		if got := w.hubLane(annHere); got != annHere {
			t.Errorf("at home lives %v", got)
		}
		for _, lane := range []session.Key{annHere, annThere} {
			for _, o := range w.reached(lane) {
				if strings.Contains(o.out.Markdown, "goes on in") || strings.Contains(o.out.Markdown, "Here it is") {
					t.Errorf("%v was told %q", o.chat, o.out.Markdown)
				}
			}
		}
	})
}

// fail makes each call of the store at point fail; "" = none.
func (w *world) fail(point string, when storetest.When) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = func(p string, at storetest.When) storetest.Fault {
		if p == point && at == when {
			return storetest.Down
		}
		return storetest.None
	}
}

// An unlink that was cut off after it was stored tells the others all the same.
func TestUnlinkTellsAfterAFault(t *testing.T) {
	play(t, set{policy: abroad}, func(w *world) {
		w.join()
		m := w.at(annThere, "77", "/unlink")
		w.fail("post", storetest.Before)
		if err := w.hub.Deliver(w.t.Context(), m); err == nil {
			t.Fatal("it was told")
		}
		w.fail("", 0)
		w.deliver(m)
		w.deliver(m)
		w.wantReached(annThere, annThere, "stands alone")
		w.wantReached(annHere, annHere, "not linked with")
	})
}

// However often sessions take turns in a chat, what any of them accepted there is
// not taken again (I2).
func TestMovedOftenTakesNothingTwice(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "alpha"))
		w.finish("a")
		w.deliver(w.at(annHere, "ann", "/resume nothing"))
		first := w.deliver(w.at(annThere, "77", "beta"))
		w.finish("b")
		w.deliver(w.at(annThere, "77", "/resume alpha"))
		w.deliver(w.at(annHere, "ann", "gamma"))
		w.finish("c")
		for range 6 {
			w.deliver(w.at(annThere, "77", "/resume gamma"))
			w.deliver(w.at(annThere, "77", "/resume alpha"))
		}
		lane := w.hubLane(annThere)
		before := w.laneOf(lane).Tickets
		w.deliver(first)
		if got := w.laneOf(lane).Tickets; got != before || w.laneOf(lane).Turn != 0 {
			t.Error("a message of the session before was taken again")
		}
	})
}

// second is a hub of another process over the same store. end is to be called at
// the end.
func (w *world) second(on map[session.PlatformName]session.Policy, shows *views) (h *session.Hub, end func()) {
	a := &agent{end: make(chan session.Outcome)}
	h = session.NewHub(w.t.Context(), session.Options{
		Store: w.store, Agent: a, Outbox: &signs{}, Access: session.NewAccess(w.store, on), Nonce: "life2",
		Mode: func(session.Key) steer.Mode { return steer.Steer }, SteerFrom: "owner",
		LeaseTTL: 5 * time.Second, JobsOnEnd: "turn", HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	})
	for name := range on {
		h.Register(showing{platform(name), shows})
	}
	run, stop := context.WithCancel(w.t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); _ = h.Run(run, time.Second) }()
	synctest.Wait()
	return h, func() { stop(); <-gone }
}

// A session that another process brings elsewhere is shown to have left its chat
// by the one that runs its turn: else its bubble would run, with Stop, for ever.
func TestMovedByAnotherProcess(t *testing.T) {
	var shows, others views
	play(t, set{policy: abroad, mode: steer.Steer, views: &shows}, func(w *world) {
		hub, end := w.second(abroad, &others)
		defer end()
		w.join()
		w.deliver(w.at(annHere, "ann", "build"))
		m := w.at(annThere, "77", "/resume build")
		time.Sleep(3 * time.Second) // until the other knows of the link
		if err := hub.Deliver(w.t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.wantReached(annHere, annThere, "Here it is: build")
		time.Sleep(3 * time.Second)
		w.deliver(w.at(annThere, "77", "use March"))
		if v := shows.last(annHere); !v.Done || v.End != session.EndMoved {
			t.Errorf("in the old chat its turn still runs: %+v", v)
		}
		if v := shows.last(annThere); v.Done || v.Turn != 1 || v.Waiting != 1 {
			t.Errorf("in the new chat: %+v", v)
		}
		w.deliver(w.at(annThere, "77", "/stop all"))
	})
}

// A process without the platform to which another has brought a running session
// shows nothing and goes on.
func TestMovedToAPlatformThatIsOffHere(t *testing.T) {
	here := map[session.PlatformName]session.Policy{"fake": abroad["fake"], "web": abroad["web"]}
	var shows, others views
	play(t, set{policy: here, mode: steer.Steer, views: &shows}, func(w *world) {
		hub, end := w.second(abroad, &others)
		defer end()
		links := `{"people":[[{"platform":"fake","id":"ann","chat":{"platform":"fake","chat":"ann"}},{"platform":"other","id":"77","chat":{"platform":"other","chat":"d77"}}]]}`
		if err := w.store.PutDoc(w.t.Context(), "links", 0, []byte(links)); err != nil {
			t.Fatal(err)
		}
		w.deliver(w.at(annHere, "ann", "build"))
		if err := hub.Deliver(w.t.Context(), w.at(annThere, "77", "/resume build")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := hub.Deliver(w.t.Context(), w.at(annThere, "77", "use March")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		w.finish("done")
	})
}

// The end of a job begins a turn with the authority of the account that asked for
// the job, not of one that it is linked with (I10).
func TestMovedJobHasItsAskersAuthority(t *testing.T) {
	policy := map[session.PlatformName]session.Policy{
		"fake":  {Admins: []string{"ann"}, Pairing: session.PairingOff},
		"other": {AllowUsers: []string{"77"}, Pairing: session.PairingOff},
	}
	play(t, set{policy: policy, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "first"))
		w.finish("a")
		w.bring(annThere, "77")
		w.deliver(w.at(annThere, "77", "fetch it"))
		turn := w.agent.turn.Load()
		if turn.Admin() {
			t.Fatal("77 is no admin")
		}
		job := session.Job{ID: "j1", Turn: 2, Owner: "life1", Name: "fetch", State: session.JobRunning, Data: turn.JobData("c1")}
		if _, err := w.store.Post(w.t.Context(), session.Post{Key: annHere, Add: []session.Job{job}}); err != nil {
			t.Fatal(err)
		}
		w.finish("b")
		w.hub.JobEnded(w.t.Context(), annHere, job)
		synctest.Wait()
		told := w.agent.turn.Load()
		if told == turn {
			t.Fatal("no turn tells of the job's end")
		}
		on, id := told.Owner().Known(annHere)
		if told.Admin() || on != "other" || id != "77" || w.laneOf(annHere).Owner != "ann" {
			t.Errorf("the turn is %s's on %s, admin %v; want 77's on other, and no admin", id, on, told.Admin())
		}
		w.finish("c")
	})
}

// The code that was shown is the one that counts, also when the question for it is
// delivered again; and a wrong code that comes again is one try.
func TestLinkAgainKeepsTheCode(t *testing.T) {
	play(t, set{policy: abroad}, func(w *world) {
		wrong := w.at(annThere, "77", "/link AAAAAAAAAA")
		for range 5 {
			w.deliver(wrong)
		}
		m := w.deliver(w.at(annHere, "ann", "/link"))
		code := codeIn.FindStringSubmatch(w.wantReached(annHere, annHere, "/link").Markdown)[1]
		w.deliver(m)
		w.deliver(w.at(session.Key{Platform: "other", Chat: "d88"}, "88", "/link "+code))
		if all := w.reached(session.Key{Platform: "other", Chat: "d88"}); len(all) != 1 || !strings.Contains(all[0].out.Markdown, "one person") {
			t.Errorf("the code that was shown: %+v", all)
		}
		w.reached(annThere)
		w.deliver(w.at(annThere, "77", "/link BBBBBBBBBB"))
		w.wantReached(annThere, annThere, "wrong or out of date")
	})
}

// A task that is steered from an account with less authority goes on with that:
// a link gives none (I10). A process that takes it over sees it the same.
func TestMovedSteerHasItsWritersAuthority(t *testing.T) {
	policy := map[session.PlatformName]session.Policy{
		"fake":  {Admins: []string{"ann"}, Pairing: session.PairingOff},
		"other": {AllowUsers: []string{"77"}, Pairing: session.PairingOff},
	}
	play(t, set{policy: policy, mode: steer.Steer}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "build"))
		turn := w.agent.turn.Load()
		if !turn.Admin() {
			t.Fatal("ann is an admin")
		}
		w.bring(annThere, "77")
		w.deliver(w.at(annThere, "77", "and delete the old ones"))
		rows := []session.Row{
			{Type: session.RowAssistant, Data: []byte(`{"calls":[{"id":"c00000001","name":"read","args":"{}"}]}`)},
			{Type: session.RowTool, Data: []byte(`{"call":"c00000001","name":"read","body":"x"}`)},
		}
		if got, err := turn.Commit(w.t.Context(), session.Step{Rows: rows, Phase: steer.PhaseModel, Drain: true}); err != nil || len(got) != 1 {
			t.Fatal(len(got), err)
		}
		on, id := turn.Owner().Known(annHere)
		if turn.Admin() || on != "other" || id != "77" {
			t.Errorf("steered by 77 on other it is %s's on %s, admin %v; want 77's, and no admin's", id, on, turn.Admin())
		}
		w.finish("done")
	})
}

// While a turn streams its session goes to and fro: what a chat was shown last is
// the end when it lives elsewhere.
func TestMovedWhileItStreams(t *testing.T) {
	var shows views
	play(t, set{policy: abroad, mode: steer.Steer, views: &shows}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "build"))
		turn, stop, gone := w.agent.turn.Load(), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					turn.ShowText(false, "word ")
				}
			}
		}()
		for i := range 20 {
			to, who, left := annThere, session.UserID("77"), annHere
			if i%2 == 1 {
				to, who, left = annHere, "ann", annThere
			}
			if err := w.hub.Deliver(w.t.Context(), w.at(to, who, "/resume build")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(i) * time.Millisecond / 3)
			if v := shows.last(left); !v.Done || v.End != session.EndMoved {
				t.Errorf("move %d: in the chat it left it still runs: %+v", i, v)
			}
			if v := shows.last(to); v.Done {
				t.Errorf("move %d: where it lives it does not run: %+v", i, v)
			}
		}
		close(stop)
		<-gone
		w.deliver(w.at(annHere, "ann", "/stop all"))
	})
}

// Who unlinks has their sessions back: what was brought to the other account's
// chats goes home, and is neither read nor spoken to there any more (I13).
func TestUnlinkTakesSessionsHome(t *testing.T) {
	t.Run("who began it", func(t *testing.T) { unlinks(t, annHere, "ann") })
	t.Run("the other", func(t *testing.T) { unlinks(t, annThere, "77") })
}

func unlinks(t *testing.T, chat session.Key, who session.UserID) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "secret plan"))
		w.bring(annThere, "77")
		w.reached(annHere)
		w.deliver(w.at(annThere, "77", "/resume none"))
		w.deliver(w.at(chat, who, "/unlink"))
		w.deliver(w.at(annThere, "77", "what was the plan?"))
		if got := w.hubLane(annThere); got != annThere || w.laneOf(annThere).Tickets != 1 || w.laneOf(annHere).Tickets != 1 {
			t.Errorf("who is not linked any more speaks to %v", got)
		}
		if got := w.hubLane(annHere); got != annHere {
			t.Errorf("at home lives %v", got)
		}
		w.reached(annHere)
		w.finish("the plan")
		w.finish("none")
		for _, o := range w.reached(annHere) {
			if o.chat != annHere {
				t.Errorf("%v was told %q", o.chat, o.out.Markdown)
			}
		}
		w.deliver(w.at(annHere, "ann", "go on"))
		if l := w.laneOf(annHere); l.Turn != 2 || l.Owner != "ann" {
			t.Errorf("at home: %+v", l)
		}
		w.finish("done")
	})
}

// In reply to a message of the chat that a session has left, /why and /cancel mean
// that message, and answer there.
func TestMovedMessagesAreStillKnown(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue}, func(w *world) {
		w.join()
		task := w.deliver(w.at(annHere, "ann", "build"))
		waits := w.deliver(w.at(annHere, "ann", "and test"))
		w.bring(annThere, "77")
		w.reached(annHere)
		fresh := w.hubLane(annHere)
		w.reached(fresh)
		ask := func(k session.Key, who session.UserID, command string, about session.Message) {
			m := w.at(k, who, command)
			m.ReplyTo = about.ID
			w.deliver(m)
		}
		ask(annHere, "ann", "/why", task)
		w.wantReached(fresh, annHere, "Being worked on")
		ask(annHere, "bob", "/cancel", waits)
		w.wantReached(fresh, annHere, "Only the task's owner")
		ask(annHere, "ann", "/cancel", waits)
		w.wantReached(fresh, annHere, "Dropped.")
		if n := len(w.laneOf(annHere).Slot); n != 0 {
			t.Errorf("%d wait", n)
		}
		// And the other way round.
		there := w.deliver(w.at(annThere, "77", "from there"))
		w.deliver(w.at(annHere, "ann", "/resume build"))
		w.reached(annHere)
		w.reached(annThere)
		ask(annThere, "77", "/why", there)
		w.wantReached(annThere, annThere, "Queued")
		ask(annThere, "77", "/cancel", there)
		w.wantReached(annThere, annThere, "Dropped.")
		if n := len(w.laneOf(annHere).Slot); n != 0 {
			t.Errorf("%d wait", n)
		}
		w.deliver(w.at(annHere, "ann", "/stop all"))
	})
}
