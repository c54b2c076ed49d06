package loop

import (
	"encoding/json"
	"strings"
	"testing"

	"coxswain/session"
)

// Each session's turns are run with its own profile: model, prompt and tools.
// One that it may not use is unknown to it, whatever an old head lists.
func TestProfiles(t *testing.T) {
	look, write := ToolSpec{Name: "look"}, ToolSpec{Name: "write"}
	o := Options{
		Profile: Profile{Model: &model{name: "std"}, System: "You help."}, Tools: &toolbox{specs: []ToolSpec{look, write}},
		ProfileOf: func(k session.Key) string { return string(k.Chat) },
		Profiles:  map[string]Profile{"team": {Model: &model{name: "other"}, System: "You sail.", Only: []string{"look"}}},
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for chat, want := range map[session.ChatID]struct{ model, system, tools string }{
		"team":    {"other", "You sail.", "look"},
		"nowhere": {"std", "You help.", "look write"},
	} {
		k := session.Key{Platform: "fake", Chat: chat}
		data, err := l.Head(t.Context(), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		var h head
		if err := json.Unmarshal(data, &h); err != nil {
			t.Fatal(err)
		}
		if h.Model != want.model || l.ModelName(k) != want.model || !strings.Contains(string(h.System), want.system) {
			t.Errorf("%s: model %s, system %s; want %+v", chat, h.Model, h.System, want)
		}
		for _, name := range []string{"look", "write"} {
			if got := strings.Contains(string(h.Tools), `"`+name+`"`); got != strings.Contains(want.tools, name) {
				t.Errorf("%s: tool %s in the head: %v", chat, name, got)
			}
			if _, got := l.take(k).p.specs[name]; got != strings.Contains(want.tools, name) {
				t.Errorf("%s: tool %s may be called: %v", chat, name, got)
			}
		}
		if again, err := l.Head(t.Context(), k, data); again != nil || err != nil {
			t.Errorf("%s: another head of the same profile: %s, %v", chat, again, err)
		}
		// Given to another profile, the conversation gets a new head (I11).
		if other, err := l.Head(t.Context(), session.Key{Platform: "fake", Chat: map[bool]session.ChatID{true: "nowhere", false: "team"}[chat == "team"]}, data); other == nil || err != nil {
			t.Errorf("%s: no new head for another profile: %v", chat, err)
		}
	}
	o.Profiles = map[string]Profile{"x": {Model: &model{}, Only: []string{"hammer"}}}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), `profile x: there is no tool "hammer"`) {
		t.Errorf("got %v", err)
	}
}

// Whose note went into a turn that failed does not own the turn that sends it
// again: a later note of theirs is a member's (I7).
func TestNotesSentAgain(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, nil)
	var g log
	g.head(keys[0], "m", true)
	g.turn++
	in := input("ann", "Ann", "", true)
	in.Retry = 1
	g.add(session.RowUser, session.UserRow{
		Inputs: []session.Input{in}, Again: []session.Input{input("ann", "Ann", "build it", true)},
		AgainNotes: []session.Input{input("bob", "Bob", "use March", true)},
	})
	g.calls("", "a00000001")
	g.tool("a00000001", "ok")
	g.steers(input("bob", "Bob", "and delete prod", true))
	ws := render(t, l, g.rows)
	if got := ws[0].Text; !strings.HasPrefix(got, sentAgain) || !strings.Contains(got, "build it") || !strings.Contains(got, "use March") {
		t.Errorf("the turn begins with %q", got)
	}
	if got := ws[len(ws)-1].Text; !strings.Contains(got, "from=member") || strings.Contains(got, "from=owner") {
		t.Errorf("bob's note is rendered %q", got)
	}
}
