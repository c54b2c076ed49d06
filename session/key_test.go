package session_test

import (
	"strings"
	"testing"

	"coxswain/session"

	"pgregory.net/rapid"
)

// The text form of a key is reversible, whatever a platform's ids are made of
// (STORE: sessions are named by it), and it is one line without braces, which
// Redis would read as a hash tag.
func TestKeyRoundTrip(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune(":%{}25A3B7D0\n-x"))))
	full := part.Filter(func(s string) bool { return s != "" })
	rapid.Check(t, func(t *rapid.T) {
		k := session.Key{
			Platform: session.PlatformName(full.Draw(t, "platform")), Chat: session.ChatID(full.Draw(t, "chat")),
			Thread: session.ThreadID(part.Draw(t, "thread")), User: session.UserID(part.Draw(t, "user")),
		}
		s := k.String()
		if strings.ContainsAny(s, "{}\n") {
			t.Fatalf("%q holds a brace or a line break", s)
		}
		got, err := session.ParseKey(s)
		if err != nil || got != k {
			t.Fatalf("%q: got %+v, %v; want %+v", s, got, err, k)
		}
	})
}

// Two keys never share a text: that would be two conversations in one lane.
func TestKeyTexts(t *testing.T) {
	for _, c := range []struct {
		key  session.Key
		want string
	}{
		{session.Key{Platform: "telegram", Chat: "-100"}, "telegram:-100"},
		{session.Key{Platform: "telegram", Chat: "-100", Thread: "7"}, "telegram:-100:7"},
		{session.Key{Platform: "discord", Chat: "1", User: "2"}, "discord:1::2"},
		{session.Key{Platform: "a:b", Chat: "c"}, "a%3Ab:c"},
		{session.Key{Platform: "a", Chat: "%3A"}, "a:%253A"},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("%+v: got %q; want %q", c.key, got, c.want)
		}
	}
	for _, bad := range []string{"", "telegram", ":", "telegram:", ":1", "a:b:c:d:e"} {
		if k, err := session.ParseKey(bad); err == nil {
			t.Errorf("ParseKey(%q): got %+v; want an error", bad, k)
		}
	}
}

// FuzzParseKey: what an operator types after "sessions show" is refused or is a
// key that keeps its name.
func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"telegram:1", "a:b:c:d", "a:b::", "a%3Ab:c", "%:%25", "a:%3a", ":::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := session.ParseKey(s)
		if err != nil {
			return
		}
		if k.Platform == "" || k.Chat == "" {
			t.Fatalf("%q: a key without platform or chat: %+v", s, k)
		}
		if again, err := session.ParseKey(k.String()); err != nil || again != k {
			t.Fatalf("%q: %+v is written %q and read %+v, %v", s, k, k.String(), again, err)
		}
	})
}
