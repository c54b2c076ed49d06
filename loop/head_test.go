package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"coxswain/session"
)

// Private fields go back only to the model they came from; a tool row carries
// those of its call (I11: a change of model is a new head).
func TestPrivateStaysWithItsModel(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, nil)
	for _, c := range []struct {
		model string
		want  bool
	}{{"m", true}, {"other", false}} {
		var g log
		g.head(keys[0], c.model, true)
		g.user(input("ann", "", "go", false))
		g.add(session.RowAssistant, session.AssistantRow{
			Text: "a", Model: "m", Private: json.RawMessage(`"reasoning"`),
			Calls: []session.Call{{ID: "call00001", Name: "look", Args: "{}", Private: json.RawMessage(`"signature"`)}},
		})
		g.tool("call00001", "one")
		got := render(t, l, g.rows)
		if has := strings.Contains(string(got[1].Private), "reasoning"); has != c.want {
			t.Errorf("head of %s: the message's private field is there: %v; want %v", c.model, has, c.want)
		}
		if has := strings.Contains(string(got[1].Calls[0].Private), "signature"); has != c.want {
			t.Errorf("head of %s: the call's private field is there: %v; want %v", c.model, has, c.want)
		}
		if has := strings.Contains(string(got[2].Private), "signature"); has != c.want {
			t.Errorf("head of %s: the result's private field is there: %v; want %v", c.model, has, c.want)
		}
		if session.DecodeAssistant(g.rows[2]).Calls[0].Private == nil {
			t.Error("rendering changed the stored row")
		}
	}
}

// A new head renders every kept row afresh with its key, notes keep their
// numbers, and no trace of either key is left elsewhere (I11, I8).
func TestNewHeadRendersAll(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, nil)
	var g log
	g.head(keys[0], "m", true)
	g.user(input("ann", "", "key is "+string(keys[1]), false))
	g.calls("I saw "+string(keys[0]), "call00001")
	g.tool("call00001", "read "+string(keys[1]))
	g.steers(input("ann", "", "use March", false))
	g.add(session.RowAssistant, session.AssistantRow{Text: "done", Model: "m"})
	tr := &transcript{p: l.std}
	if err := l.render(tr, 1, g.rows); err != nil {
		t.Fatal(err)
	}
	old := texts(tr.msgs)
	if !strings.Contains(old[2], "key="+string(keys[0])+" n=1") || !strings.Contains(old[2], "read "+string(keys[1])) {
		t.Fatalf("first epoch: %q", old[2])
	}
	g.head(keys[1], "m", true)
	g.user(input("ann", "", "go on", false))
	if err := l.render(tr, 1, g.rows); err != nil {
		t.Fatal(err)
	}
	now := texts(tr.msgs)
	if len(now) != len(old)+1 {
		t.Fatalf("%d messages; want %d", len(now), len(old)+1)
	}
	if !strings.Contains(now[2], "key="+string(keys[1])+" n=1") || strings.Contains(now[2], string(keys[0])) || strings.Contains(now[2], "read "+string(keys[1])) {
		t.Errorf("second epoch's note: %q", now[2])
	}
	if strings.Contains(now[0], string(keys[1])) {
		t.Errorf("the new key stands in a person's text: %q", now[0])
	}
}

// Another generation is rendered from its beginning, whatever is known of the
// one before (/new).
func TestNewGeneration(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, nil)
	tr := &transcript{p: l.std}
	for gen, texts := range [][]string{{"one", "two"}, {"three"}, {"four", "five", "six"}} {
		var g log
		g.head(keys[gen], "m", true)
		for _, text := range texts {
			g.user(input("ann", "", text, false))
		}
		if err := l.render(tr, int64(gen+1), g.rows); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range wires(tr.msgs) {
			got = append(got, w.Text)
		}
		if !slices.Equal(got, texts) || tr.head.Key != keys[gen] {
			t.Errorf("generation %d: %q with its own key: %v; want %q", gen+1, got, tr.head.Key == keys[gen], texts)
		}
	}
}

// Without a head, or with one whose key is none, nothing is sent: to render
// would be to sanitise nothing (I8).
func TestBrokenHead(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, nil)
	for name, rows := range map[string][]session.Row{
		"no rows": nil, "no head": {{Type: session.RowUser, Data: []byte("{}")}}, "not JSON": {{Type: session.RowHead, Data: []byte("x")}},
		"no key": {{Type: session.RowHead, Data: []byte("{}")}}, "a bad key": {{Type: session.RowHead, Data: []byte(`{"key":"123"}`)}},
	} {
		var tr transcript
		if err := l.render(&tr, 1, rows); err == nil {
			t.Errorf("%s: rendered", name)
		}
	}
}

// A new epoch begins when this build or configuration would render another
// head, and not otherwise (I11).
func TestHeadChangesWithItsParts(t *testing.T) {
	base := func() *Loop { return newLoop(t, &model{name: "m"}, &toolbox{specs: []ToolSpec{look}}, nil) }
	cur, err := base().Head(t.Context(), room, nil)
	if err != nil || cur == nil {
		t.Fatalf("first head: %q, %v", cur, err)
	}
	if again, err := base().Head(t.Context(), room, cur); err != nil || again != nil {
		t.Errorf("another process of the same build makes a new head: %q, %v", again, err)
	}
	other := look
	other.Description = "looks closely"
	for name, l := range map[string]*Loop{
		"system prompt": newLoop(t, &model{name: "m"}, &toolbox{specs: []ToolSpec{look}}, func(o *Options) { o.System = "You help well." }),
		"model":         newLoop(t, &model{name: "n"}, &toolbox{specs: []ToolSpec{look}}, nil),
		"hosted":        newLoop(t, &model{name: "m"}, &toolbox{specs: []ToolSpec{look}}, func(o *Options) { o.Hosted = false }),
		"a tool":        newLoop(t, &model{name: "m"}, &toolbox{specs: []ToolSpec{other}}, nil),
		"no tool":       newLoop(t, &model{name: "m"}, &toolbox{}, nil),
	} {
		data, err := l.Head(t.Context(), room, cur)
		if err != nil || data == nil {
			t.Errorf("%s changed: no new head, %v", name, err)
			continue
		}
		var was, is head
		if err := json.Unmarshal(cur, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &is); err != nil {
			t.Fatal(err)
		}
		if is.Key == was.Key {
			t.Errorf("%s changed: the new epoch has the old key", name)
		}
		if !strings.Contains(string(is.System), string(is.Key)) {
			t.Errorf("%s: the system prompt does not give the key", name)
		}
	}
	for _, bad := range []string{"", "{", `{"print":""}`} {
		if data, err := base().Head(t.Context(), room, []byte(bad)); err != nil || data == nil {
			t.Errorf("stored head %q is gone on with: %v", bad, err)
		}
	}
	if _, err := New(Options{Profile: Profile{Model: &model{}}, Tools: &toolbox{specs: []ToolSpec{look, look}}}); err == nil {
		t.Error("two tools of one name")
	}
}

// On endpoints that read control tokens in text, no row but the system prompt
// holds one, whoever wrote it (I8); on the others text stands as it is.
func TestControlTokens(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, nil)
	const token, broken = "<|im_end|>", "< |im_end|>"
	for _, hosted := range []bool{false, true} {
		var g log
		g.head(keys[0], "m", hosted)
		g.user(input("ann", token, token, true))
		g.add(session.RowFold, session.UserRow{Inputs: []session.Input{input("ann", "", token, true)}, Event: token})
		g.add(session.RowAssistant, session.AssistantRow{Text: token, Model: "m", Calls: []session.Call{{
			ID: "call00001", Name: "look" + token, Args: `{"q":"` + token + `"}`,
		}}})
		g.tool("call00001", token)
		g.steers(input("ann", "", token, true), input("bob", token, token, true))
		for i, w := range render(t, l, g.rows) {
			all := w.Text
			for _, c := range w.Calls {
				all += c.Name + c.Args
				if !json.Valid([]byte(c.Args)) {
					t.Errorf("hosted %v: arguments are no JSON any more: %s", hosted, c.Args)
				}
			}
			if strings.Contains(all, token) != hosted || strings.Contains(all, broken) == hosted {
				t.Errorf("hosted %v: message %d: %q", hosted, i, all)
			}
		}
		if a := session.DecodeAssistant(g.rows[3]); a.Calls[0].Args != `{"q":"`+token+`"}` {
			t.Error("rendering changed the stored row")
		}
	}
}

// The same calls with the same results in more than five of the last ten steps
// are a circle, however many calls a step has; polling that shows something new
// is none.
func TestBreaker(t *testing.T) {
	step := func(b *breaker, calls ...string) bool { // name, arguments, result; …
		for c := range slices.Chunk(calls, 3) {
			b.add(session.Call{Name: c[0], Args: c[1]}, c[2])
		}
		return b.repeats()
	}
	for _, calls := range [][]string{{"look", "{}", "same"}, {"look", "1", "same", "look", "2", "same", "look", "3", "same"}} {
		var b breaker
		for i := range 6 {
			if got := step(&b, calls...); got != (i == 5) {
				t.Errorf("%d calls, step %d: %v", len(calls)/3, i+1, got)
			}
		}
	}
	for name, calls := range map[string]func(i int) []string{
		"new results":             func(i int) []string { return []string{"look", "{}", fmt.Sprint(i)} },
		"one new result of two":   func(i int) []string { return []string{"look", "1", "same", "look", "2", fmt.Sprint(i)} },
		"five of ten":             func(i int) []string { return []string{"look", "{}", fmt.Sprint(i * (i % 2))} },
		"other arguments":         func(i int) []string { return []string{"look", fmt.Sprint(i % 3), "same"} },
		"parts that run together": func(i int) []string { return [][]string{{"a", "b", "c"}, {"a", "", "bc"}}[i%2] },
		"calls that run together": func(i int) []string { return [][]string{{"a", "b", "c", "a", "b", "c"}, {"a", "b", "c"}}[i%2] },
	} {
		var b breaker
		for i := range 100 {
			if step(&b, calls(i)...) {
				t.Errorf("%s: counts as a circle at step %d", name, i+1)
				break
			}
		}
	}
}

// The wire cache is bounded by bytes and counts them truly (I12).
func TestCacheIsBounded(t *testing.T) {
	l := newLoop(t, &model{name: "m"}, &toolbox{}, func(o *Options) { o.CacheBytes = 1000 })
	k := func(i int) session.Key { return session.Key{Platform: "fake", Chat: session.ChatID(fmt.Sprint(i))} }
	for i := range 5 {
		l.put(k(i), &transcript{size: 400, rows: 1})
	}
	for i, want := range []int{0, 0, 0, 1, 1} {
		if got := l.take(k(i)).rows; got != want {
			t.Errorf("session %d: cached %d; want %d", i, got, want)
		}
	}
	l.put(k(9), &transcript{size: 5000, rows: 1})
	l.put(k(9), &transcript{size: 6000, rows: 1})
	if l.size != 6000 || l.order.Len() != 1 {
		t.Errorf("%d bytes of %d sessions; want 6000 of 1", l.size, l.order.Len())
	}
	l.Forget(k(9))
	l.Forget(k(9))
	if l.size != 0 || len(l.cache) != 0 {
		t.Errorf("%d bytes of %d sessions; want none", l.size, len(l.cache))
	}
}
