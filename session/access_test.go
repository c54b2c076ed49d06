package session_test

import (
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// Access fails closed (I10): who is not named is nobody, ids are compared
// whole, and a chat that is allowed opens no other.
func TestAccess(t *testing.T) {
	only := func(p session.Policy) map[session.PlatformName]session.Policy {
		return map[session.PlatformName]session.Policy{"fake": p, "other": {AllowUsers: []string{"*"}, Admins: []string{"ann"}}}
	}
	for _, c := range []struct {
		name       string
		policy     session.Policy
		who        session.UserID
		chat       session.ChatID
		may, admin bool
	}{
		{"empty policy", session.Policy{}, "ann", "ann", false, false},
		{"empty policy, group", session.Policy{}, "ann", lobby, false, false},
		{"empty id", session.Policy{AllowUsers: []string{"*"}, AllowChats: []string{"lobby"}}, "", lobby, false, false},
		{"empty id in the list", session.Policy{AllowUsers: []string{""}, Admins: []string{""}}, "", "", false, false},
		{"named, private", session.Policy{AllowUsers: []string{"ann"}}, "ann", "ann", true, false},
		{"named, any group", session.Policy{AllowUsers: []string{"ann"}}, "ann", lobby, true, false},
		{"not named", session.Policy{AllowUsers: []string{"ann"}}, "eve", "eve", false, false},
		{"not named, group of one who is", session.Policy{AllowUsers: []string{"ann"}}, "eve", lobby, false, false},
		{"ids are compared whole", session.Policy{AllowUsers: []string{"ann1", "an", "ANN"}}, "ann", "ann", false, false},
		{"a name is no id", session.Policy{AllowUsers: []string{"Name of ann"}}, "ann", "ann", false, false},
		{"everyone", session.Policy{AllowUsers: []string{"*"}}, "eve", "eve", true, false},
		{"everyone are no admins", session.Policy{AllowUsers: []string{"ann"}, Admins: []string{"*"}}, "ann", "ann", true, false},
		{"a star in admins lets nobody in", session.Policy{Admins: []string{"*"}}, "eve", "eve", false, false},
		{"a star in chats is no wildcard", session.Policy{AllowChats: []string{"*"}}, "eve", lobby, false, false},
		{"allowed chat", session.Policy{AllowChats: []string{"lobby"}}, "eve", lobby, true, false},
		{"allowed chat opens no other", session.Policy{AllowChats: []string{"lobby"}}, "eve", den, false, false},
		{"allowed chat opens no private one", session.Policy{AllowChats: []string{"lobby"}}, "eve", "eve", false, false},
		{"admin", session.Policy{Admins: []string{"ann"}}, "ann", den, true, true},
		{"authenticated by the adapter", session.Policy{Open: true}, "", "web", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, set{policy: only(c.policy)}, func(w *world) {
				who := session.Person{ID: c.who, Name: "Name of " + string(c.who)}
				p, may, err := w.hub.Identify(t.Context(), key(c.chat), who, string(c.who) == string(c.chat))
				if err != nil || may != c.may || p.Admin != c.admin {
					t.Errorf("got may %v, admin %v, %v; want %v, %v", may, p.Admin, err, c.may, c.admin)
				}
				if !may && !reflect.DeepEqual(p, session.Principal{}) {
					t.Errorf("got %+v for nobody", p)
				}
				if p.May(key(c.chat)) != c.may {
					t.Errorf("the principal may: %v; want %v", !c.may, c.may)
				}
				m := w.says(c.who, c.chat, "hello")
				m.Private = string(c.who) == string(c.chat)
				w.deliver(m)
				if got := w.lane(c.chat).Tickets; got != 0 != c.may {
					t.Errorf("%d inputs accepted; allowed: %v", got, c.may)
				}
			})
		})
	}
}

// A platform without a policy is closed.
// Who has a role that the policy names may talk where they have it, and what
// they wrote is used later by the roles they wrote it with (I10). Other roles
// are nobody's business and are not kept.
func TestAccessByRole(t *testing.T) {
	pol := session.Policy{AllowRoles: []string{"100", "200"}, Pairing: session.PairingAuto}
	play(t, set{policy: map[session.PlatformName]session.Policy{"fake": pol}}, func(w *world) {
		for _, roles := range [][]string{nil, {"99"}, {""}, {"1", "00"}} {
			m := w.says("eve", lobby, "hello")
			m.From.Roles = roles
			w.deliver(m)
			m = w.says("eve", "eve", "hello")
			m.From.Roles = roles
			w.deliver(m)
		}
		if n := w.lane(lobby).Tickets + w.lane("eve").Tickets; n != 0 || w.said("eve") != "" {
			t.Errorf("%d inputs of somebody without the role were accepted; want none, and no code", n)
		}
		m := w.says("ann", lobby, "a task")
		m.From.Roles = []string{"99", "100"}
		w.deliver(m)
		if got := w.inputs(lobby); len(got) != 1 {
			t.Fatalf("the turn began with %q; want ann's message", got)
		}
		rows, err := w.store.Rows(t.Context(), key(lobby), 1, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Type == session.RowUser {
				if got := session.DecodeUser(r).Inputs[0].From.Roles; !slices.Equal(got, []string{"100"}) {
					t.Errorf("kept roles %q; want those of the policy", got)
				}
			}
		}
	})
}

func TestAccessUnknownPlatform(t *testing.T) {
	play(t, set{}, func(w *world) {
		m := w.says("root", "root", "hello")
		m.Key.Platform = "unheard-of"
		w.deliver(m)
		if l, err := w.store.Load(t.Context(), m.Key); err != nil || l.Exists {
			t.Errorf("got a session: %+v, %v", l, err)
		}
		if may, admin, _ := w.access.Still(t.Context(), m.Key, session.Person{ID: "root"}); may || admin {
			t.Error("root still may")
		}
	})
}

// With no word from the store nobody new is let in, and what waits is judged
// by the configuration alone (I10).
func TestAccessWithoutStore(t *testing.T) {
	st := &storetest.Faulty{Store: storetest.NewModel(time.Now), Hook: func(point string, _ storetest.When) storetest.Fault {
		if point == "doc" {
			return storetest.Down
		}
		return storetest.None
	}}
	a := session.NewAccess(st, map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"ann"}}})
	hub := session.NewHub(t.Context(), session.Options{Store: st, Access: a})
	if _, ok, err := hub.Identify(t.Context(), key(lobby), session.Person{ID: "ann"}, false); ok || err == nil {
		t.Errorf("got %v, %v; want an error", ok, err)
	}
	if err := hub.Deliver(t.Context(), session.Message{Key: key(lobby), From: session.Person{ID: "ann"}, Addressed: true}); err == nil {
		t.Error("the message counts as received though nobody could say whether it may come in (I1)")
	}
	if may, _, err := a.Still(t.Context(), key(lobby), session.Person{ID: "ann"}); !may || err != nil {
		t.Errorf("configured, but not allowed (%v)", err)
	}
	if may, _, err := a.Still(t.Context(), key(lobby), session.Person{ID: "eve"}); may || err == nil {
		t.Errorf("not configured: allowed is %v, %v; want no, and that it is not known", may, err)
	}
}

// A process that has just begun and cannot read who was let in refuses nobody's
// accepted message: it waits until that is known (I1, I10).
func TestAccessUnknownForNow(t *testing.T) {
	pol := map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"ann"}, Pairing: session.PairingOn}}
	play(t, set{policy: pol, mode: steer.Queue}, func(w *world) {
		w.deliver(w.says("bob", "bob", "hi"))
		pairs, err := w.access.Pairs(t.Context(), "fake")
		if err != nil || len(pairs) != 1 {
			t.Fatalf("%d codes, %v", len(pairs), err)
		}
		if _, ok, err := w.access.Approve(t.Context(), "fake", pairs[0].Code); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.deliver(w.says("ann", lobby, "task"))
		w.deliver(w.says("bob", lobby, "bob's text"))
		var down atomic.Bool
		down.Store(true)
		w.hub.Access = session.NewAccess(&storetest.Faulty{Store: w.store, Hook: func(point string, _ storetest.When) storetest.Fault {
			if point == "doc" && down.Load() {
				return storetest.Down
			}
			return storetest.None
		}}, pol)
		w.finish("done")
		time.Sleep(2 * time.Second)
		if l := w.lane(lobby); l.Turn != 0 || len(l.Slot) != 1 {
			t.Fatalf("turn %d, %d wait; want bob's message to wait", l.Turn, len(l.Slot))
		}
		down.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.inputs(lobby); !slices.Equal(got, []string{"bob's text"}) {
			t.Errorf("the turn began with %q; want bob's text", got)
		}
	})
}

// code is the pairing code somebody was sent, "" for no answer.
func (w *world) code(who session.UserID) string {
	w.t.Helper()
	w.deliver(w.says(who, session.ChatID(who), "let me in"))
	text := w.said(session.ChatID(who))
	if text == "" {
		return ""
	}
	_, after, ok := strings.Cut(text, "gateway pair approve ")
	if !ok || len(after) < 8 {
		w.t.Fatalf("got %q; want a code", text)
	}
	return after[:8]
}

func (w *world) approve(code string) bool {
	w.t.Helper()
	_, ok, err := w.access.Approve(w.t.Context(), "fake", code)
	if err != nil {
		w.t.Fatal(err)
	}
	return ok
}

// Strangers get a code as the setting says, in private only.
func TestPairingSettings(t *testing.T) {
	for _, c := range []struct {
		pairing session.Pairing
		users   []string
		want    bool
	}{
		{session.PairingAuto, nil, true},
		{session.PairingAuto, []string{"ann"}, false},
		{"", nil, true}, // the default
		{session.PairingOn, []string{"ann"}, true},
		{session.PairingOff, nil, false},
	} {
		play(t, set{policy: map[session.PlatformName]session.Policy{"fake": {AllowUsers: c.users, Pairing: c.pairing}}}, func(w *world) {
			w.deliver(w.says("eve", lobby, "let me in"))
			w.wantSaid(lobby, "")
			m := w.says("eve", "eve", "")
			m.Kind, m.Button = session.KindPress, "pending"
			w.deliver(m)
			w.wantSaid("eve", "")
			if got := w.code("eve") != ""; got != c.want {
				t.Errorf("pairing %q, users %v: a code: %v; want %v", c.pairing, c.users, got, c.want)
			}
			if c.pairing == session.PairingAuto && c.want {
				// Somebody is allowed now: auto is over.
				w.approve(w.code("eve"))
				if w.code("bob") != "" {
					t.Error("auto goes on although somebody is allowed")
				}
			}
			if got := w.lane("eve").Tickets; got != 0 {
				t.Errorf("a stranger's text was accepted %d times", got)
			}
		})
	}
}

var pairing = set{policy: map[session.PlatformName]session.Policy{
	"fake": {Pairing: session.PairingOn}, "other": {Pairing: session.PairingOn},
}}

// A code lives ten minutes, is used once, and belongs to one person, who gets
// no second one meanwhile.
func TestPairingCodes(t *testing.T) {
	play(t, pairing, func(w *world) {
		code := w.code("eve")
		if again := w.code("eve"); again != code {
			t.Errorf("the same person gets %q, then %q", code, again)
		}
		time.Sleep(10*time.Minute - time.Second)
		if pairs, err := w.access.Pairs(t.Context(), "fake"); err != nil || len(pairs) != 1 || pairs[0].User != "eve" {
			t.Errorf("pending: got %+v, %v", pairs, err)
		}
		time.Sleep(2 * time.Second)
		if w.approve(code) {
			t.Error("a code of over ten minutes ago is good")
		}
		code = w.code("eve")
		if w.approve("") || w.approve("AAAAAAAA") {
			t.Error("a code that was never given is good")
		}
		if !w.approve(" " + strings.ToLower(code) + "\n") {
			t.Error("the code as an operator types it is not good")
		}
		if w.approve(code) {
			t.Error("a code is good twice")
		}
	})
}

// At most twenty codes an hour on a platform, whoever asks.
func TestPairingLimit(t *testing.T) {
	play(t, pairing, func(w *world) {
		given := 0
		ask := func(n int) {
			for range n {
				w.n++
				if w.code(session.UserID("s"+strings.Repeat("x", w.n))) != "" {
					given++
				}
			}
		}
		ask(25)
		if given != 20 {
			t.Errorf("%d codes in one hour; want 20", given)
		}
		time.Sleep(time.Hour - time.Second)
		if ask(2); given != 20 {
			t.Errorf("%d codes within the hour; want 20", given)
		}
		time.Sleep(2 * time.Second)
		if ask(2); given != 22 {
			t.Errorf("%d codes after the hour; want 22", given)
		}
	})
}

// A person let in by pairing talks in private and, addressing the bot, in
// groups; nobody else of those groups does, and no other platform is opened
// (GHSA-2gvc-4f3c-2855). Taken back, it ends at once, also for what waits.
func TestPairingOpensOnlyItsPerson(t *testing.T) {
	play(t, pairing, func(w *world) {
		if !w.approve(w.code("eve")) {
			t.Fatal("not approved")
		}
		unaddressed := w.says("eve", lobby, "by the way")
		unaddressed.Addressed = false
		w.deliver(unaddressed)
		cmd := w.says("eve", lobby, "/new")
		cmd.Addressed = false
		w.deliver(cmd)
		w.deliver(w.says("bob", lobby, "me too"))
		if l := w.lane(lobby); l.Exists {
			t.Errorf("a session began: %+v", l)
		}
		foreign := w.says("eve", "eve", "hello")
		foreign.Key.Platform = "other"
		w.deliver(foreign)
		if l, _ := w.store.Load(t.Context(), foreign.Key); l.Tickets != 0 {
			t.Error("let in on a platform where nobody approved it")
		}
		if _, may, _ := w.hub.Identify(t.Context(), key("eve"), session.Person{ID: "eve"}, true); !may {
			t.Fatal("eve may not talk in private")
		}
		w.deliver(w.says("eve", lobby, "a task"))
		waits := w.deliver(w.says("eve", lobby, "/queue another"))
		w.sent(lobby)
		if ok, err := w.access.Revoke(t.Context(), "fake", "eve"); !ok || err != nil {
			t.Fatalf("revoke: %v, %v", ok, err)
		}
		if ok, _ := w.access.Revoke(t.Context(), "fake", "eve"); ok {
			t.Error("revoked twice")
		}
		w.deliver(w.says("eve", lobby, "and this"))
		w.finish("done")
		if got := w.out.of(waits); got != session.FateDropped {
			t.Errorf("what waited is %s; want dropped", got)
		}
		if l := w.lane(lobby); l.Turn != 0 || l.Tickets != 2 || l.Turns != 1 {
			t.Errorf("turn %d of %d, %d inputs; want idle after 1 turn and 2 inputs", l.Turn, l.Turns, l.Tickets)
		}
	})
}

func (w *world) link() string {
	w.t.Helper()
	code, err := w.access.AdminLink(w.t.Context(), "fake")
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

func (w *world) start(who session.UserID, chat session.ChatID, code string) string {
	w.t.Helper()
	w.deliver(w.says(who, chat, "/start "+code))
	return w.said(chat)
}

// The one-time link makes its first opener an admin, once, in private, within
// ten minutes; five wrong codes are the end of a person's tries for an hour.
func TestAdminLink(t *testing.T) {
	const yes, no = "You are an admin", "does not know you"
	want := func(w *world, got, want string) {
		w.t.Helper()
		if want == "" && got != "" || !strings.Contains(got, want) {
			w.t.Errorf("got %q; want %q in it", got, want)
		}
	}
	play(t, pairing, func(w *world) {
		code := w.link()
		want(w, w.start("ann", lobby, code), "")    // a group reads along
		want(w, w.start("ann", "ann", "wrong"), no) // a stranger like any other
		want(w, w.start("ann", "ann", code), yes)
		want(w, w.start("bob", "bob", code), no)
		if _, admin, _ := w.access.Still(t.Context(), key(den), session.Person{ID: "ann"}); !admin {
			t.Error("ann is no admin")
		}
		if _, admin, _ := w.access.Still(t.Context(), key(den), session.Person{ID: "bob"}); admin {
			t.Error("bob is an admin")
		}
		if got := w.link(); got != "" {
			t.Errorf("a second link %q though there is an admin", got)
		}
	})
	open := map[session.PlatformName]session.Policy{"fake": {AllowUsers: []string{"*"}}}
	play(t, set{policy: open}, func(w *world) { // where others read along nobody redeems it
		code := w.link()
		want(w, w.start("ann", lobby, code), "Hello.")
		if _, admin, _ := w.access.Still(t.Context(), key(lobby), session.Person{ID: "ann"}); admin {
			t.Error("an admin by a code that a group has read")
		}
		want(w, w.start("ann", "ann", code), yes)
	})
	play(t, pairing, func(w *world) { // too old
		code := w.link()
		time.Sleep(10*time.Minute + time.Second)
		want(w, w.start("ann", "ann", code), no)
	})
	play(t, pairing, func(w *world) { // five tries
		code := w.link()
		for range 5 {
			want(w, w.start("eve", "eve", "guess"), no)
		}
		want(w, w.start("eve", "eve", code), no)
		want(w, w.start("ann", "ann", code), yes)
	})
	play(t, set{}, func(w *world) { // configured admins
		if got := w.link(); got != "" {
			t.Errorf("a link %q though an admin is configured", got)
		}
	})
}

// Bots and channels that may talk are no people: strangers are still given codes
// while no person is allowed.
func TestOthersLeavePairingAlone(t *testing.T) {
	policy := map[session.PlatformName]session.Policy{"fake": {AllowOther: []string{"bot"}, Pairing: session.PairingAuto}}
	play(t, set{policy: policy}, func(w *world) {
		w.deliver(w.says("bot", lobby, "do it"))
		if w.lane(lobby).Turn == 0 {
			t.Error("the bot that may talk was not heard")
		}
		w.deliver(w.says("stranger", "stranger", "hello"))
		w.wantSaid("stranger", "gateway pair approve")
		w.finish("done")
	})
}
