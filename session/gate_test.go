package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// topic is a session of one topic of a group.
func topic(chat session.ChatID, n int) session.Key {
	return session.Key{Platform: "fake", Chat: chat, Thread: session.ThreadID(fmt.Sprint(n))}
}

// room is how many turns run, and how many sessions stand in line.
func (w *world) room() session.Room {
	w.t.Helper()
	o, err := w.hub.Overview(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if o.Active > o.Room.Used {
		w.t.Errorf("%d sessions have actors and %d turns run; want none for those in line", o.Active, o.Room.Used)
	}
	return o.Room
}

func (w *world) wantRoom(used, waiting int) {
	w.t.Helper()
	if r := w.room(); r.Used != used || r.Waiting != waiting {
		w.t.Errorf("%d turns have room, %d sessions wait; want %d and %d", r.Used, r.Waiting, used, waiting)
	}
}

// in gives a message of a chat to another of its sessions.
func in(k session.Key, m session.Message) session.Message {
	m.Key = k
	return m
}

// TestRoom: a session that finds no room waits, is shown so, costs no actor, and
// begins when there is room.
func TestRoom(t *testing.T) {
	play(t, set{mode: steer.Steer, running: 2}, func(w *world) {
		first := w.deliver(w.says("ann", "ann", "one"))
		w.deliver(w.says("bob", "bob", "two"))
		late := w.deliver(w.says("cid", "cid", "three"))
		w.wantRoom(2, 1)
		if s := w.out.of(first); s != session.FateRunning {
			t.Errorf("what runs is shown as %q", s)
		}
		if s := w.out.of(late); s != session.FateQueued {
			t.Errorf("what waits for room is shown as %q; want queued", s)
		}
		for _, c := range []string{"/status", "/pending"} {
			w.deliver(w.says("cid", "cid", c))
			w.wantSaid("cid", "waits for room")
			w.deliver(w.says("bob", "bob", c))
			if got := w.said("bob"); strings.Contains(got, "room") {
				t.Errorf("of a session that runs %s says %q", c, got)
			}
		}
		time.Sleep(5 * time.Second) // sweeps find it due and leave it
		w.wantRoom(2, 1)
		w.finish("done")
		w.wantRoom(2, 0)
		if l := w.lane("cid"); l.Turn != 1 || w.out.of(late) != session.FateRunning {
			t.Errorf("when there is room: turn %d, shown as %q", l.Turn, w.out.of(late))
		}
		fates, err := w.store.Fates(t.Context(), key("cid"), 1)
		if err != nil || len(fates) != 1 || !fates[0].Waited {
			t.Errorf("fates %+v, %v; want one that people saw wait", fates, err)
		}
		w.finish("done")
		w.finish("done")
		w.wantRoom(0, 0)
	})
}

// TestRoomFair: one chat after another has a turn, of a chat the session that waits
// longest; one whose turn ends stands behind the others with what else it has.
func TestRoomFair(t *testing.T) {
	play(t, set{mode: steer.Queue, running: 1}, func(w *world) {
		for n := range 20 {
			w.deliver(in(topic("forum", n), w.says("ann", "forum", "work")))
		}
		w.deliver(in(topic("forum", 0), w.says("ann", "forum", "more work")))
		w.deliver(w.says("bob", "bob", "hello"))
		w.deliver(w.says("bob", "bob", "hello again"))
		w.deliver(w.says("cid", "cid", "hello"))
		w.wantRoom(1, 21)
		for range 24 {
			w.finish("done")
		}
		w.wantRoom(0, 0)
		want := []session.Key{topic("forum", 0), topic("forum", 1), key("bob"), key("cid"), topic("forum", 2), key("bob")}
		for n := 3; n < 20; n++ {
			want = append(want, topic("forum", n))
		}
		want = append(want, topic("forum", 0))
		if got := w.agent.order(); !slices.Equal(got, want) {
			t.Errorf("turns began in the order\n%v; want\n%v", got, want)
		}
	})
}

// TestRoomOfChat: the sessions of a chat do not take all the room.
func TestRoomOfChat(t *testing.T) {
	play(t, set{mode: steer.Queue, running: 3, chat: 2}, func(w *world) {
		for n := range 5 {
			w.deliver(in(topic("forum", n), w.says("ann", "forum", "work")))
		}
		w.wantRoom(2, 3)
		w.deliver(w.says("bob", "bob", "hello"))
		w.wantRoom(3, 3)
		w.deliver(w.says("cid", "cid", "hello"))
		w.wantRoom(3, 4)
		for range 7 {
			w.finish("done")
		}
		w.wantRoom(0, 0)
		if got := w.agent.order(); len(got) != 7 {
			t.Errorf("%d turns began; want 7", len(got))
		}
	})
}

// TestRoomVerbs: what waits for room can be stopped, dropped, edited, listed and
// interrupted as whatever waits, and who has nothing left to begin keeps no place.
func TestRoomVerbs(t *testing.T) {
	play(t, set{mode: steer.Steer, running: 1}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		m := w.deliver(w.says("bob", "bob", "first words"))
		edit := w.says("bob", "bob", "second words")
		edit.ID, edit.Kind = m.ID, session.KindEdit
		w.deliver(edit)
		w.deliver(w.says("bob", "bob", "/stop"))
		w.wantSaid("bob", "Held")
		w.wantRoom(1, 0)
		w.press("bob", "bob", fmt.Sprintf("run:%d", w.entry("bob").Ticket))
		w.wantRoom(1, 1)
		other := w.deliver(w.says("bob", "bob", "/queue other words"))
		drop := w.says("bob", "bob", "/cancel")
		drop.ReplyTo = other.ID
		w.deliver(drop)
		if s := w.out.of(other); s != session.FateDropped {
			t.Errorf("what was dropped is shown as %q", s)
		}
		w.deliver(w.says("cid", "cid", "early"))
		w.deliver(w.says("cid", "cid", "/queue late"))
		w.deliver(w.says("cid", "cid", "/interrupt urgent"))
		w.wantRoom(1, 2)
		w.finish("done")
		if got := w.inputs("bob"); !slices.Equal(got, []string{"second words"}) {
			t.Errorf("the turn of bob began with %q", got)
		}
		w.finish("done")
		if got := w.inputs("cid"); !slices.Equal(got, []string{"early", "urgent"}) {
			t.Errorf("the turn of cid began with %q; the interrupt comes first, with the steers before it", got)
		}
	})
}

// TestRoomGivenBack: room that was given to a session with nothing to begin any
// more goes to the next one at once.
func TestRoomGivenBack(t *testing.T) {
	play(t, set{mode: steer.Queue, running: 1}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		w.deliver(w.says("bob", "bob", "never mind"))
		w.deliver(w.says("cid", "cid", "hello"))
		drop := session.Amend{Key: key("bob"), Dedupe: "x", Kind: session.AmendDrop, Ticket: 1}
		if _, err := w.store.Amend(t.Context(), drop); err != nil { // by another process
			t.Fatal(err)
		}
		w.finish("done")
		w.wantRoom(1, 0)
		if l := w.lane("cid"); l.Turn != 1 {
			t.Errorf("the next one has turn %d; want 1", l.Turn)
		}
	})
}

// TestRoomFull: who waits for room waits with the cap of a busy session, or a slot
// would grow without an end.
func TestRoomFull(t *testing.T) {
	play(t, set{mode: steer.Queue, running: 1}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		for n := range session.SlotCap + 3 {
			w.deliver(w.says("bob", "bob", fmt.Sprint(n)))
		}
		if n := len(w.lane("bob").Slot); n != session.SlotCap {
			t.Errorf("%d messages wait; want %d", n, session.SlotCap)
		}
		if all := w.sent("bob"); len(all) != 3 || !strings.Contains(all[0].Markdown, "not taken") {
			t.Errorf("sent %+v; want three that say it is full", all)
		}
	})
}

// TestRoomTakenOver: turns that a dead process left open come before new ones, and
// one of them that was stopped meanwhile needs no room to end.
func TestRoomTakenOver(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Queue, running: 1}, func(w *world, other *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		for n := range 3 {
			w.hands(other, in(topic("forum", n), w.says("bob", "forum", "work")))
		}
		w.kills = true
		other.Kill()
		w.deliver(w.says("cid", "cid", "hello"))
		w.deliver(w.says("dan", "dan", "hello"))
		time.Sleep(10 * time.Second) // their leases have run out
		w.wantRoom(1, 5)
		w.deliver(in(topic("forum", 1), w.says("bob", "forum", "/stop")))
		w.wantRoom(1, 4)
		l, err := w.store.Load(t.Context(), topic("forum", 1))
		if err != nil || l.Turn != 0 {
			t.Errorf("the turn that was stopped: %d is open, %v", l.Turn, err)
		}
		for range 5 {
			w.finish("done")
		}
		got := w.agent.order()
		if len(got) == 6 && got[2] == topic("forum", 2) { // their leases ran out together
			got[2], got[3] = got[3], got[2]
		}
		want := []session.Key{key("ann"), topic("forum", 1), topic("forum", 0), topic("forum", 2), key("cid"), key("dan")}
		if !slices.Equal(got, want) {
			t.Errorf("turns began in the order %v; want %v", got, want)
		}
	})
}

// TestRoomElsewhere: what a full process has accepted another one with room runs
// within a second and a bit, and it is run once.
func TestRoomElsewhere(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Queue, running: 1, takes: time.Minute}, func(w *world, other *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		w.deliver(w.says("bob", "bob", "one"))
		w.deliver(w.says("bob", "bob", "two")) // in line behind its first
		w.deliver(w.says("cid", "cid", "three"))
		time.Sleep(1100 * time.Millisecond)
		if got := w.other.order(); len(got) != 2 {
			t.Errorf("the other process began %v; want two turns", got)
		}
		time.Sleep(4 * time.Minute)
		if s, _ := w.store.Stats(t.Context()); s.Turns != 4 {
			t.Errorf("%d turns were begun; want 4", s.Turns)
		}
		w.wantRoom(0, 0)
	})
}

// TestRoomMore: a session whose turn ends and has more gives its lease up when
// others come first, so that another process can go on with it.
func TestRoomMore(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Queue, running: 1}, func(w *world, other *session.Hub) {
		w.other.takes = time.Second
		w.deliver(w.says("ann", "ann", "one"))
		w.deliver(w.says("ann", "ann", "two"))
		w.deliver(w.says("bob", "bob", "a task"))
		time.Sleep(1100 * time.Millisecond) // bob runs elsewhere and is done; ann runs here
		w.deliver(w.says("cid", "cid", "hello"))
		w.finish("done")
		if l := w.lane("ann"); l.Nonce != "" {
			t.Errorf("the session that waits is held by %q; want nobody", l.Nonce)
		}
	})
}

// TestSpare: a process short of memory runs one turn after another, and more of
// them with each that ends when that is over.
func TestSpare(t *testing.T) {
	play(t, set{mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("ann", "ann", "one"))
		w.deliver(w.says("bob", "bob", "two"))
		w.hub.Spare(true)
		for _, who := range []session.UserID{"cid", "dan", "eve"} {
			w.deliver(w.says(who, session.ChatID(who), "hello"))
		}
		w.wantRoom(2, 3)
		w.finish("done")
		w.wantRoom(1, 3)
		w.finish("done")
		w.wantRoom(1, 2)
		w.hub.Spare(false)
		synctest.Wait()
		w.wantRoom(1, 2)
		w.finish("done")
		w.wantRoom(2, 0)
	})
}

// TestRoomSwept: what is found in the store and finds no room is shown to wait, and
// a chat with more of it than a sweep reads does not hide the others.
func TestRoomSwept(t *testing.T) {
	play(t, set{mode: steer.Queue, running: 1}, func(w *world) {
		w.deliver(w.says("ann", "ann", "a task"))
		accept := func(k session.Key) {
			r := session.Accept{Key: k, Dedupe: "m", Author: "bob", Msg: "m:" + session.MessageID(k.String()), Data: []byte("{}"), Fate: session.FateAccepted}
			if _, err := w.store.Accept(t.Context(), r); err != nil { // by a process that is gone
				t.Fatal(err)
			}
		}
		for n := range 300 {
			accept(topic("forum", n))
		}
		time.Sleep(time.Millisecond)
		accept(key("bob"))
		time.Sleep(3 * time.Second)
		w.wantRoom(1, 301)
		if s := w.out.of(session.Message{ID: "m:fake:bob"}); s != session.FateQueued {
			t.Errorf("it is shown as %q; want queued", s)
		}
		if e := w.entry("bob"); e.Turn >= 0 {
			t.Errorf("the entry is of turn %d; want the store to know that people see it wait", e.Turn)
		}
	})
}

// TestRoomOfOne: a platform whose people are one counts as one chat.
func TestRoomOfOne(t *testing.T) {
	play(t, set{mode: steer.Queue, running: 3, chat: 2, policy: map[session.PlatformName]session.Policy{"fake": {Open: true}}}, func(w *world) {
		for _, chat := range []session.ChatID{"one", "two", "three"} {
			w.deliver(w.says("me", chat, "a task"))
		}
		w.wantRoom(2, 1)
	})
}
