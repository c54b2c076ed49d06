package session

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Outside text in a line that people read: no control or format characters
// (bidi overrides, U+2066.., tag characters), one line, bounded (I8). The
// joiner stays: without it one family is four people.
func TestCleanLine(t *testing.T) {
	for _, c := range []struct {
		name, in string
		most     int
		want     string
	}{
		{"plain", "Ann Lee", 40, "Ann Lee"},
		{"empty", "", 40, ""},
		{"spaces", " \t a \r\n\n b\u00a0\u2028c ", 40, "a b c"},
		{"controls", "a\x00b\x1b[31mc\x7f\u0085d", 40, "ab[31mc d"},
		{"bidi override", "user\u202egnp.exe\u202c", 40, "usergnp.exe"},
		{"bidi isolates", "\u2066m1\u2069: hi", 40, "m1: hi"},
		{"zero width and tags", "a\u200bb\ufeffc\U000e0041d", 40, "abcd"},
		{"joined emoji", "👨\u200d👩\u200d👧 x", 40, "👨\u200d👩\u200d👧 x"},
		{"broken UTF-8", "a\xffb\xc3", 40, "ab"},
		{"exactly as long", "abcdefghij", 10, "abcdefghij"},
		{"one too long", "abcdefghijk", 10, "abcdefghi…"},
		{"trailing space is no length", "abcdefghij \n", 10, "abcdefghij"},
		{"the bound falls on a space", "abcdefgh ijk", 10, "abcdefgh…"},
		{"the bound falls behind a space", "abcdefghi jk", 10, "abcdefghi…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := CleanLine(c.in, c.most); got != c.want {
				t.Errorf("got %q; want %q", got, c.want)
			}
		})
	}
}

func TestCleanLineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\u202e\u200d\u0000…")))).Draw(t, "in")
		most := rapid.IntRange(1, 20).Draw(t, "most")
		got := CleanLine(in, most)
		if n := utf8.RuneCountInString(got); n > most {
			t.Fatalf("%q: %d runes; want at most %d", got, n, most)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || unicode.IsSpace(r) && r != ' ' {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if got != strings.Join(strings.Fields(got), " ") {
			t.Fatalf("%q is not one line of single spaces", got)
		}
		if again := CleanLine(got, most); again != got {
			t.Fatalf("cleaned again %q becomes %q", got, again)
		}
	})
}

// What is a command and what is text (T7, T11: the adapter has taken "@bot"
// off; a foreign suffix is not ours).
func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		text, name, args string
		ok               bool
	}{
		{"/stop", "stop", "", true},
		{"/STOP", "stop", "", true},
		{"/Stop All", "stop", "All", true},
		{"/stop\n", "stop", "", true},
		{"/steer  use\nthe March data ", "steer", "use\nthe March data", true},
		{"/q\tnext", "q", "next", true},
		{"/s\u00a0x", "s", "x", true},
		{"/no_such_2", "no_such_2", "", true},
		{"/" + strings.Repeat("a", 32), strings.Repeat("a", 32), "", true},
		{"/" + strings.Repeat("a", 33), "", "", false},
		{"", "", "", false},
		{"/", "", "", false},
		{"/ stop", "", "", false},
		{"//stop", "", "", false},
		{" /stop", "", "", false},
		{"stop", "", "", false},
		{"/etc/hosts", "", "", false},
		{"/etc/hosts is broken", "", "", false},
		{"/2 of them", "", "", false},
		{"/_x", "", "", false},
		{"/stop@otherbot", "", "", false},
		{"/stop.", "", "", false},
		{"/стоп", "", "", false},
		{"/ſtop", "", "", false}, // U+017F folds to s
		{"/stop\u200b", "", "", false},
	} {
		name, args, ok := parseCommand(c.text)
		if name != c.name || args != c.args || ok != c.ok {
			t.Errorf("parseCommand(%q): got %q, %q, %v; want %q, %q, %v", c.text, name, args, ok, c.name, c.args, c.ok)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"/stop", "/q x", "/etc/hosts", "/\x00", "/stop\u2003x", "text"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, args, ok := parseCommand(s)
		switch {
		case !ok && (name != "" || args != ""):
			t.Fatalf("%q: no command, but %q and %q", s, name, args)
		case !ok:
			return
		}
		if len(name) < 1 || len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Fatalf("%q: name %q", s, name)
		}
		if args != strings.TrimSpace(args) || !strings.HasSuffix(strings.TrimSpace(s), args) {
			t.Fatalf("%q: args %q are not its own end", s, args)
		}
		if !strings.EqualFold(s[1:1+len(name)], name) {
			t.Fatalf("%q: name %q", s, name)
		}
	})
}

// An unknown command is answered with the nearest one, if one is near (§2.4).
func TestNearest(t *testing.T) {
	h := &Hub{}
	for name, want := range map[string]string{
		"stp": "stop", "statsu": "status", "pendign": "pending", "halp": "help", "stop2": "stop",
		"rollback": "", "xyzzy": "", "canceled": "cancel", "sttus": "status",
	} {
		if got := h.nearest(name); got != want {
			t.Errorf("/%s: got %q; want %q", name, got, want)
		}
	}
	for a, cases := range map[string]map[string]int{
		"stop": {"stop": 0, "sto": 1, "step": 1, "": 4, "tsop": 1},
		"":     {"": 0, "a": 1},
	} {
		for b, want := range cases {
			if got := distance(a, b); got != want {
				t.Errorf("distance(%q, %q): got %d; want %d", a, b, got, want)
			}
		}
	}
}

// The registry's names are unique, and every command parses as itself.
func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Commands() {
		for _, name := range []string{c.Name, c.Short} {
			if name == "" {
				continue
			}
			if seen[name] {
				t.Errorf("/%s is there twice", name)
			}
			seen[name] = true
			if got, _, ok := parseCommand("/" + name); !ok || got != name {
				t.Errorf("/%s is parsed as %q, %v", name, got, ok)
			}
		}
		if c.Help == "" || c.run == nil {
			t.Errorf("/%s has no help, or does nothing", c.Name)
		}
	}
}

// An entry of several parts is several JSON documents; the first says what
// holds for all (T4-T6).
func TestDecodeInput(t *testing.T) {
	doc := func(in Input) string { return string(mustJSON(in)) }
	first := doc(Input{From: Person{ID: "ann", Name: "Ann"}, Admin: true, Shared: true, Explicit: "steer", Parts: []InputPart{{ID: "1", Text: "one\ntwo"}}})
	second := doc(Input{From: Person{ID: "eve"}, Parts: []InputPart{{ID: "2"}, {ID: "3", Text: "three"}}})
	want := Input{
		Ticket: 7, From: Person{ID: "ann", Name: "Ann"}, Admin: true, Shared: true, Explicit: "steer",
		Parts: []InputPart{{ID: "1", Text: "one\ntwo"}, {ID: "2"}, {ID: "3", Text: "three"}},
	}
	got := decodeInput(Entry{Ticket: 7, Data: []byte(first + "\n" + second)})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if got.Text() != "one\ntwo\nthree" {
		t.Errorf("text %q", got.Text())
	}
	if ids := got.msgs(); !reflect.DeepEqual(ids, []MessageID{"1", "2", "3"}) {
		t.Errorf("messages %v", ids)
	}
	row := DecodeSteer(Row{Type: RowSteer, Tick: 9, Data: []byte(first + "\n" + second)})
	if want.Ticket = 9; !reflect.DeepEqual(row, want) {
		t.Errorf("steer row: got %+v; want %+v", row, want)
	}
	// An edit writes one document again: nothing is lost by it.
	again := decodeInput(Entry{Ticket: 9, Data: mustJSON(row)})
	if !reflect.DeepEqual(again, want) {
		t.Errorf("written as one: got %+v; want %+v", again, want)
	}
	if cut := decodeInput(Entry{Ticket: 1, Data: []byte(first + "\n{\"par")}); len(cut.Parts) != 1 || cut.From.ID != "ann" {
		t.Errorf("a broken second document: got %+v", cut)
	}
}

// Bytes of a store that was tampered with decode to something, never to a
// panic.
func FuzzDecodeInput(f *testing.F) {
	f.Add([]byte(`{"from":{"id":"a"},"parts":[{"id":"1"}]}` + "\n" + `{"parts":[{"id":"2"}]}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := decodeInputData(data)
		again := decodeInputData(mustJSON(in))
		a, errA := json.Marshal(in)
		b, errB := json.Marshal(again)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("%q: %s, then %s", data, a, b)
		}
	})
}
