package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// chats is a message that does not speak to the bot.
func (w *world) chats(who session.UserID, chat session.ChatID, text string) session.Message {
	m := w.says(who, chat, text)
	m.Addressed = false
	return m
}

// toldIn are the messages that a turn was told of, each with who wrote it.
func (w *world) toldIn(k session.Key, turn int64) (texts []string) {
	w.t.Helper()
	l, err := w.store.Load(w.t.Context(), k)
	if err != nil {
		w.t.Fatal(err)
	}
	rows, err := w.store.Rows(w.t.Context(), k, l.Gen, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Type == session.RowUser && r.Turn == turn {
			for _, o := range session.DecodeUser(r).Observed {
				texts = append(texts, string(o.From.ID)+": "+o.Text)
			}
		}
	}
	return texts
}

// told is the mark of the newest turn.
func (w *world) told(l session.Lane) (to int64) {
	rows, err := w.store.Rows(w.t.Context(), l.Key, l.Gen, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Type == session.RowUser {
			to = session.DecodeUser(r).ObservedTo
		}
	}
	return to
}

// wantTold checks what the newest turn of the lobby was told of.
func (w *world) wantTold(want ...string) {
	w.t.Helper()
	if got := w.toldIn(key(lobby), w.lane(lobby).Turns); !slices.Equal(got, want) {
		w.t.Errorf("turn %d was told %q; want %q", w.lane(lobby).Turns, got, want)
	}
}

// asks begins a turn in the lobby and ends it.
func (w *world) asks() {
	w.t.Helper()
	w.deliver(w.says("ann", lobby, "what do you say?"))
	w.finish("well")
}

// kept is the stored document of the lobby.
func (w *world) kept() string {
	w.t.Helper()
	data, _, err := w.store.Doc(w.t.Context(), "observed:"+key(lobby).String())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// What a group says beside the bot is told with the next message that speaks to
// it: in order, once in a conversation, the newest only; a new one begins anew.
func TestObserved(t *testing.T) {
	play(t, set{observe: 3}, func(w *world) {
		w.asks()
		w.wantTold()
		for i := range 5 {
			w.deliver(w.chats("bob", lobby, fmt.Sprint("talk ", i)))
		}
		if l := w.lane(lobby); l.Tickets != 1 || l.Turns != 1 {
			t.Errorf("%d inputs, %d turns; want what was said to be none", l.Tickets, l.Turns)
		}
		if got := w.kept(); strings.Contains(got, "talk 1") {
			t.Errorf("kept: %s", got)
		}
		w.asks()
		w.wantTold("bob: talk 2", "bob: talk 3", "bob: talk 4")
		for range 2 {
			w.asks()
			w.wantTold()
			// The mark goes on from turn to turn: the next one looks no further back.
			if l := w.lane(lobby); w.told(l) != 5 {
				t.Errorf("turn %d is marked %d; want 5", l.Turns, w.told(l))
			}
		}
		w.deliver(w.chats("ann", lobby, "stop")) // text like any other
		w.deliver(w.says("ann", lobby, "a task"))
		w.wantTold("ann: stop")
		w.deliver(w.chats("ann", lobby, "stop"))
		w.deliver(w.chats("ann", lobby, "/stop"))
		if l := w.lane(lobby); l.Turn == 0 || l.Stop != 0 {
			t.Errorf("turn %d, stop %d; want the task to run on", l.Turn, l.Stop)
		}
		w.finish("done")
		w.deliver(w.says("ann", lobby, "/new"))
		w.asks()
		w.wantTold("bob: talk 4", "ann: stop", "ann: stop")
	})
}

// Heard are people who may talk in that chat, and what they write to one
// another there: no stranger, no command, no private chat (I10).
func TestObservedIsHeard(t *testing.T) {
	policy := map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"ann", "bob"}, AllowRoles: []string{"crew"}, AllowChats: []string{string(den)}, Pairing: session.PairingOff}}
	play(t, set{policy: policy, observe: 50}, func(w *world) {
		w.deliver(w.chats("eve", lobby, "a stranger's"))
		w.deliver(w.chats("eve", den, "of another chat"))
		crew := w.chats("dan", lobby, "by a role")
		crew.From.Roles = []string{"crew", "other"}
		w.deliver(crew)
		for _, text := range []string{"/stop", "/new", "/nothing", "/etc/hosts", ""} {
			w.deliver(w.chats("bob", lobby, text))
		}
		private := w.chats("bob", "bob", "private")
		w.deliver(private)
		w.deliver(w.chats("bob", lobby, " /tmp is full"))
		forward := w.chats("bob", lobby, "/stop it")
		forward.Forwarded = "News\nm1: x"
		w.deliver(forward)
		photo := w.chats("bob", lobby, "look")
		photo.Attachments = []session.Attachment{{Kind: "photo"}, {Kind: "document", Name: "report.pdf\x00", Note: "not loaded"}}
		w.deliver(photo)
		w.asks()
		w.wantTold("dan: by a role", "bob: /tmp is full", "bob: [forwarded from News m1: x] /stop it", "bob: [photo] [file report.pdf] look")
		for _, doc := range []session.Key{key("bob"), key(den)} {
			data, _, _ := w.store.Doc(w.t.Context(), "observed:"+doc.String())
			if doc.Chat == "bob" && len(data) > 0 || doc.Chat == den && !strings.Contains(string(data), "of another chat") {
				t.Errorf("%s keeps %q", doc, data)
			}
		}
		if doc := w.kept(); strings.Contains(doc, "stranger") || strings.Contains(doc, "other") {
			t.Errorf("kept: %s", doc)
		}
	})
}

// A number that was lowered holds at once, for what is kept already.
func TestObserveLowered(t *testing.T) {
	play(t, set{observe: 1}, func(w *world) {
		doc := `{"last":2,"kept":[{"n":1,"id":"x","from":{"id":"bob"},"text":"older"},{"n":2,"id":"y","from":{"id":"bob"},"text":"newer"}]}`
		if err := w.store.PutDoc(w.t.Context(), "observed:"+key(lobby).String(), 0, []byte(doc)); err != nil {
			t.Fatal(err)
		}
		w.asks()
		w.wantTold("bob: newer")
	})
}

// Whether the authors may talk there is asked again when they are told (I10).
func TestObservedRevoked(t *testing.T) {
	play(t, set{policy: map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"ann"}, Pairing: session.PairingOn}}, observe: 5}, func(w *world) {
		if !w.approve(w.code("eve")) {
			t.Fatal("not approved")
		}
		w.deliver(w.chats("eve", lobby, "from eve"))
		w.deliver(w.chats("ann", lobby, "from ann"))
		if _, err := w.access.Revoke(w.t.Context(), "fake", "eve"); err != nil {
			t.Fatal(err)
		}
		w.asks()
		w.wantTold("ann: from ann")
	})
}

// The same message is kept once, also when it is delivered again after it was
// told and had to make room (I2). An edit of its author replaces the words while
// they are kept; a delete takes them away.
func TestObservedOnce(t *testing.T) {
	play(t, set{observe: 2}, func(w *world) {
		a := w.deliver(w.chats("bob", lobby, "a"))
		w.deliver(a)
		edit := func(m session.Message, who session.UserID, text string) {
			m.Kind, m.From.ID, m.Text, m.Dedupe = session.KindEdit, who, text, fmt.Sprint("e:", m.ID, text)
			w.deliver(m)
		}
		edit(a, "bob", "a, better")
		edit(a, "eve", "not hers")
		w.deliver(a)
		w.asks()
		w.wantTold("bob: a, better")
		edit(a, "bob", "a, too late")
		for _, text := range []string{"b", "c"} {
			w.deliver(w.chats("bob", lobby, text))
		}
		w.deliver(a)
		w.asks()
		w.wantTold("bob: b", "bob: c")
		d := w.deliver(w.chats("bob", lobby, "d"))
		e := w.deliver(w.chats("bob", lobby, "e"))
		gone := session.Message{Key: key(lobby), ID: d.ID, Kind: session.KindDelete, Dedupe: "d:d", Addressed: true, Received: time.Now()}
		w.deliver(gone)
		w.deliver(d) // the event of its writing comes again
		edit(e, "bob", "/new")
		w.deliver(w.chats("bob", lobby, "f"))
		other := gone
		other.ID, other.From.ID, other.Dedupe = session.MessageID(fmt.Sprint("m", w.n)), "eve", "d:f"
		w.deliver(other) // of somebody else's message
		w.asks()
		w.wantTold("bob: f")
		if got := w.kept(); strings.Contains(got, `"text":"e"`) || strings.Contains(got, `"text":"d"`) {
			t.Errorf("kept: %s", got)
		}
	})
}

// A message is cut at 500 bytes, at a character; the document has its bound
// whatever is written.
func TestObservedBounds(t *testing.T) {
	play(t, set{observe: 1000}, func(w *world) {
		w.deliver(w.chats("bob", lobby, strings.Repeat("ж", 2000)))
		w.asks()
		told := w.toldIn(key(lobby), 1)
		if len(told) != 1 || len(told[0]) > 500+len("bob: ") || len(told[0]) < 490 || !utf8.ValidString(told[0]) || !strings.HasSuffix(told[0], "ж…") {
			t.Errorf("told %q", told)
		}
		for range 60 {
			m := w.chats("bob", lobby, strings.Repeat("\x01", 2000))
			m.From.Name = strings.Repeat("𝔅", 2000)
			for range 20 {
				m.Attachments = append(m.Attachments, session.Attachment{Kind: "document", Name: strings.Repeat("<", 3000)})
			}
			w.deliver(m)
			if n := len(w.kept()); n > 32<<10 {
				t.Fatalf("%d bytes kept; want at most 32 KiB", n)
			}
		}
		for i := range 60 {
			w.deliver(w.chats("bob", lobby, fmt.Sprint("t", i)))
		}
		w.asks()
		if told := w.toldIn(key(lobby), 2); len(told) != 50 || told[0] != "bob: t10" || told[49] != "bob: t59" {
			t.Errorf("told %d: %q", len(told), told)
		}
	})
}

// With sessions.group: user the people of a chat share what it said, and each
// conversation is told once. Deleting one empties it for all, and what is said
// later is news to the others still.
func TestObservedPerUser(t *testing.T) {
	play(t, set{observe: 5}, func(w *world) {
		of := func(who session.UserID) session.Key {
			k := key(lobby)
			k.User = who
			return k
		}
		say := func(who session.UserID, text string, addressed bool) {
			m := w.says(who, lobby, text)
			m.Key, m.Addressed = of(who), addressed
			w.deliver(m)
			if addressed {
				w.finish("well")
			}
		}
		want := func(who session.UserID, turn int64, want ...string) {
			t.Helper()
			if got := w.toldIn(of(who), turn); !slices.Equal(got, want) {
				t.Errorf("turn %d of %s was told %q; want %q", turn, who, got, want)
			}
		}
		say("ann", "one", false)
		say("bob", "two", false)
		say("ann", "to the bot", true)
		say("bob", "to the bot", true)
		want("ann", 1, "ann: one", "bob: two")
		want("bob", 1, "ann: one", "bob: two")
		if err := session.ForgetObserved(w.t.Context(), w.store, of("ann")); err != nil {
			t.Fatal(err)
		}
		if got := w.kept(); got != "" {
			t.Errorf("kept: %s", got)
		}
		say("ann", "three", false)
		say("bob", "again", true)
		want("bob", 2, "ann: three")
	})
}

// A named is a store that remembers which documents were asked for, and what
// else was asked how often.
type named struct {
	session.Store
	mu   sync.Mutex
	docs []string
	fail func(name string) error // of PutDoc, before it is done
	lost bool                    // the replies of PutDoc
}

func (n *named) Doc(ctx context.Context, name string) ([]byte, int64, error) {
	n.mu.Lock()
	n.docs = append(n.docs, name)
	n.mu.Unlock()
	return n.Store.Doc(ctx, name)
}

func (n *named) PutDoc(ctx context.Context, name string, version int64, data []byte) error {
	n.mu.Lock()
	n.docs = append(n.docs, name)
	fail, lost := n.fail, n.lost
	n.mu.Unlock()
	if fail != nil {
		if err := fail(name); err != nil {
			return err
		}
	}
	if err := n.Store.PutDoc(ctx, name, version, data); err != nil || !lost {
		return err
	}
	return storetest.ErrLostReply
}

func (n *named) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// Where nothing is observed the store is asked for nothing: not if it is off,
// not in private chats.
func TestObserveCostsNothing(t *testing.T) {
	for _, most := range []int{0, -1, 10} {
		var st *named
		play(t, set{observe: most, wrap: func(s session.Store) session.Store { st = &named{Store: s}; return st }}, func(w *world) {
			for _, chat := range []session.ChatID{"ann", lobby} {
				if chat == lobby && most > 0 {
					continue
				}
				m := w.deliver(w.chats("ann", chat, "talk"))
				edit := m
				edit.Kind, edit.Text = session.KindEdit, "more talk"
				w.deliver(edit)
				gone := m
				gone.Kind = session.KindDelete
				w.deliver(gone)
				w.deliver(w.says("ann", chat, "a task"))
				w.finish("done")
			}
			st.mu.Lock()
			defer st.mu.Unlock()
			for _, name := range st.docs {
				if !strings.HasPrefix(name, "access:") && name != "routes" {
					t.Errorf("observe %d: the store was asked for %s", most, name)
				}
			}
		})
	}
}

// Two processes keep messages of one chat at the same time, replies get lost and
// the store is away: each message is kept once, or the platform is told to
// deliver it again. It never waits for room in the slot.
func TestObservedFaults(t *testing.T) {
	var st *named
	wrap := func(s session.Store) session.Store { st = &named{Store: s}; return st }
	play(t, set{observe: 20, mode: steer.Queue, wrap: wrap}, func(w *world) {
		// Another process comes before each of three writes.
		doc, n := "observed:"+key(lobby).String(), 0
		st.set(func() {
			st.fail = func(name string) error {
				if n++; name != doc || n > 3 {
					return nil
				}
				data, version, err := w.store.Doc(w.t.Context(), doc)
				if err != nil {
					return err
				}
				if len(data) == 0 {
					data = []byte(`{"last":1,"kept":[{"n":1,"id":"other","from":{"id":"bob"},"text":"of another process"}]}`)
				}
				return w.store.PutDoc(w.t.Context(), doc, version, data)
			}
		})
		w.deliver(w.chats("ann", lobby, "of this one"))
		st.set(func() { st.fail, st.lost = nil, true })
		m := w.chats("ann", lobby, "reply lost")
		if err := w.hub.Deliver(w.t.Context(), m); !errors.Is(err, storetest.ErrLostReply) {
			t.Errorf("got %v; want an error, for it is not known to be kept", err)
		}
		st.set(func() { st.lost = false })
		w.deliver(m)
		down := errors.New("the store is away")
		st.set(func() { st.fail = func(string) error { return down } })
		m = w.chats("ann", lobby, "not kept at first")
		if err := w.hub.Deliver(w.t.Context(), m); !errors.Is(err, down) {
			t.Errorf("got %v; want the store's error", err)
		}
		st.set(func() { st.fail = func(string) error { return session.ErrStale } })
		if err := w.hub.Deliver(w.t.Context(), m); !errors.Is(err, session.ErrStale) {
			t.Errorf("got %v; want to give up", err)
		}
		st.set(func() { st.fail = nil })
		w.deliver(m)
		w.deliver(w.says("ann", lobby, "a task"))
		w.wantTold("bob: of another process", "ann: of this one", "ann: reply lost", "ann: not kept at first")
		for range 40 {
			w.deliver(w.says("bob", lobby, "waits"))
		}
		w.sent(lobby)
		w.deliver(w.chats("bob", lobby, "beside a full slot"))
		if got := w.kept(); !strings.Contains(got, "beside a full slot") {
			t.Errorf("kept: %s", got)
		}
		w.wantSaid(lobby, "")
	})
}

// The step that begins a turn is the record of what it was told. Its reply lost,
// the process dead before or after it: nothing is told twice, nothing is missing.
func TestObservedAtBegin(t *testing.T) {
	for _, c := range []struct {
		name  string
		when  storetest.When
		fault storetest.Fault
	}{
		{"reply lost", storetest.After, storetest.LostReply},
		{"refused", storetest.Before, storetest.Down},
		{"dead before", storetest.Before, storetest.Crash},
		{"dead behind", storetest.After, storetest.Crash},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrap := func(s session.Store) session.Store {
				return &storetest.Faulty{Store: s, Hook: storetest.Nth(1, "begin", c.when, c.fault)}
			}
			var left *storetest.Model
			play(t, set{observe: 5, wrap: wrap}, func(w *world) {
				left = w.store
				w.deliver(w.chats("bob", lobby, "before"))
				w.deliver(w.says("ann", lobby, "a task"))
				time.Sleep(time.Second)
				synctest.Wait()
				if c.fault == storetest.Crash {
					return
				}
				w.wantTold("bob: before")
				w.finish("done")
				w.asks()
				w.wantTold()
			})
			if c.fault != storetest.Crash {
				return
			}
			play(t, set{observe: 5, wrap: func(session.Store) session.Store { return left }}, func(w *world) {
				w.store = left
				time.Sleep(time.Minute) // the lease of the dead one
				synctest.Wait()
				w.wantTold("bob: before")
				w.finish("done")
				w.n = 100 // new ids
				w.asks()
				w.wantTold()
				if l := w.lane(lobby); l.Turns != 2 {
					t.Errorf("%d turns; want 2", l.Turns)
				}
			})
		})
	}
}

// A session that was brought into a group is told what is said there, by that
// chat's own numbers, and its people are who they are in the session.
func TestObservedAway(t *testing.T) {
	play(t, set{policy: abroad, mode: steer.Queue, observe: 10}, func(w *world) {
		w.join()
		w.deliver(w.at(annHere, "ann", "build"))
		w.finish("built")
		w.reached(annHere)
		w.deliver(w.at(crowd, "77", "/resume build"))
		w.wantReached(annHere, crowd, "Here it is")
		aside := func(who session.UserID, text string) {
			m := w.at(crowd, who, text)
			m.Addressed = false
			w.deliver(m)
		}
		told := func() (all []string) {
			rows, err := w.store.Rows(w.t.Context(), annHere, 1, 0, 0)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, o := range session.DecodeUser(rows[len(rows)-2]).Observed {
				all = append(all, string(o.From.ID)+": "+o.Text)
			}
			return all
		}
		aside("77", "the owner aside")
		aside("88", "somebody aside")
		aside("stranger", "not heard")
		w.deliver(w.at(crowd, "77", "go on"))
		w.finish("on")
		if got, want := told(), []string{"ann: the owner aside", "@other:88: somebody aside"}; !slices.Equal(got, want) {
			w.t.Errorf("told %q; want %q", got, want)
		}
		aside("88", "more")
		w.deliver(w.at(crowd, "77", "on and on"))
		w.finish("on")
		if got, want := told(), []string{"@other:88: more"}; !slices.Equal(got, want) {
			w.t.Errorf("then told %q; want %q", got, want)
		}
		// In another group numbers begin anew.
		second := session.Key{Platform: "other", Chat: "second"}
		m := w.at(second, "77", "/resume build")
		m.Private = false
		w.deliver(m)
		for _, text := range []string{"aside in the second", "go on there"} {
			m := w.at(second, "77", text)
			m.Private, m.Addressed = false, text == "go on there"
			w.deliver(m)
		}
		w.finish("on")
		if got, want := told(), []string{"ann: aside in the second"}; !slices.Equal(got, want) {
			w.t.Errorf("in the second group told %q; want %q", got, want)
		}
	})
}
