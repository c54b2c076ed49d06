package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"coxswain/loop"

	"pgregory.net/rapid"
)

func testClient(t testing.TB, mod func(*Options)) *Client {
	t.Helper()
	o := Options{BaseURL: "http://model/v1", Name: "m"}
	if mod != nil {
		mod(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The bytes are frozen: a change of them is a change of the renderer version,
// since it breaks the prompt cache of every open conversation (I11).
func TestEncodeBytes(t *testing.T) {
	deepseek := func(o *Options) { o.BaseURL = "https://api.deepseek.com" }
	private := json.RawMessage(`{"reasoning_content":"hm","extra_content":{"a":1}}`)
	tests := []struct {
		name string
		mod  func(*Options)
		in   loop.Wire
		want string // begins with "error: " for a refusal
	}{
		{"system", nil, loop.Wire{Role: "system", Text: "s"}, `{"role":"system","content":"s"}`},
		{"user", nil, loop.Wire{Role: "user", Text: "a <b> & \"c\"\n\u2028é"}, `{"role":"user","content":"a <b> & \"c\"\n\u2028é"}`},
		{"invalid UTF-8", nil, loop.Wire{Role: "user", Text: "a\xffb"}, `{"role":"user","content":"a\ufffdb"}`},
		{"image", nil, loop.Wire{Role: "user", Text: "see", Images: []loop.Image{{MIME: "image/png", Data: []byte("png")}, {MIME: "image/jpeg", Data: []byte("j")}}},
			`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,ag=="}}]}`},
		{"image alone", nil, loop.Wire{Role: "user", Images: []loop.Image{{MIME: "image/png", Data: []byte("png")}}},
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}`},
		{"assistant", nil, loop.Wire{Role: "assistant", Text: "a"}, `{"role":"assistant","content":"a"}`},
		{"calls without text: content is there", nil, loop.Wire{Role: "assistant", Calls: []loop.Call{{ID: "abcdefghi", Name: "read", Args: `{"p":1}`}, {ID: "jklmnopqr", Name: "list"}}},
			`{"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}},{"id":"jklmnopqr","type":"function","function":{"name":"list","arguments":"{}"}}]}`},
		{"bad arguments and names are not replayed (DSpark#55)", nil, loop.Wire{Role: "assistant", Calls: []loop.Call{{ID: "abcdefghi", Name: "re.ad<|x|>é", Args: `{"p`}, {ID: "jklmnopqr", Args: `[]`}}},
			`{"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"re_ad__x___","arguments":"{}"}},{"id":"jklmnopqr","type":"function","function":{"name":"unnamed","arguments":"{}"}}]}`},
		{"the provider's own of a call", nil, loop.Wire{Role: "assistant", Calls: []loop.Call{{ID: "abcdefghi", Name: "f", Args: "{}", Private: json.RawMessage(`{"id":"call_1","extra_content":{"g":"s"}}`)}}},
			`{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"g":"s"}}]}`},
		{"tool", nil, loop.Wire{Role: "tool", Text: "out", CallID: "abcdefghi"}, `{"role":"tool","content":"out","tool_call_id":"abcdefghi"}`},
		{"tool of a call with the provider's id", nil, loop.Wire{Role: "tool", Text: "out", CallID: "abcdefghi", Private: json.RawMessage(`{"id":"call_1"}`)}, `{"role":"tool","content":"out","tool_call_id":"call_1"}`},
		{"empty tool result", nil, loop.Wire{Role: "tool", CallID: "abcdefghi"}, `{"role":"tool","content":"(no output)","tool_call_id":"abcdefghi"}`},
		{"reasoning goes back with calls", nil, loop.Wire{Role: "assistant", Private: private, Calls: []loop.Call{{ID: "abcdefghi", Name: "f", Args: "{}"}}},
			`{"role":"assistant","content":"","reasoning_content":"hm","extra_content":{"a":1},"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"and not without", nil, loop.Wire{Role: "assistant", Text: "a", Private: private}, `{"role":"assistant","content":"a","extra_content":{"a":1}}`},
		{"reasoning_details always, and not the same text again", nil, loop.Wire{Role: "assistant", Text: "a", Calls: []loop.Call{{ID: "abcdefghi", Name: "f", Args: "{}"}}, Private: json.RawMessage(`{"reasoning":"hm","reasoning_details":[{"x":1},{"y":2}]}`)},
			`{"role":"assistant","content":"a","reasoning_details":[{"x":1},{"y":2}],"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"DeepSeek wants the key even empty (opencode#25058)", deepseek, loop.Wire{Role: "assistant", Calls: []loop.Call{{ID: "abcdefghi", Name: "f", Args: "{}"}}},
			`{"role":"assistant","content":"","reasoning_content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"private that cannot be read", nil, loop.Wire{Role: "assistant", Text: "a", Private: json.RawMessage(`{"reasoning_details":7}`)}, `{"role":"assistant","content":"a"}`},

		{"no role", nil, loop.Wire{Text: "x"}, `error: encode message: role ""`},
		{"empty user", nil, loop.Wire{Role: "user"}, `error: encode message: empty user row`},
		{"empty assistant", nil, loop.Wire{Role: "assistant", Private: private}, `error: encode message: empty assistant row`},
		{"tool without a call", nil, loop.Wire{Role: "tool", Text: "x"}, `error: encode message: tool row without a call`},
		{"call without an id", nil, loop.Wire{Role: "assistant", Calls: []loop.Call{{Name: "f"}}}, `error: encode message: tool call without an id`},
		{"calls of a user", nil, loop.Wire{Role: "user", Text: "x", Calls: []loop.Call{{ID: "a"}}}, `error: encode message: tool calls in a user row`},
		{"image of a tool (OpenHands#7700)", nil, loop.Wire{Role: "tool", CallID: "a", Text: "x", Images: []loop.Image{{MIME: "image/png", Data: []byte("x")}}}, `error: encode message: an image in a tool row`},
		{"not an image", nil, loop.Wire{Role: "user", Images: []loop.Image{{MIME: `image/x";`, Data: []byte("x")}}}, `error: encode message: not an image: "image/x\";", 1 bytes`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testClient(t, tt.mod)
			got, err := c.Encode(tt.in)
			if err != nil {
				got = []byte("error: " + err.Error())
			} else if !json.Valid(got) {
				t.Errorf("not JSON: %s", got)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if again, _ := c.Encode(tt.in); err == nil && !bytes.Equal(again, got) {
				t.Errorf("second time: %s", again)
			}
		})
	}
}

// Any text survives the wire; what is not UTF-8 becomes U+FFFD.
func TestEncodeAnyText(t *testing.T) {
	c := testClient(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, "text")
		if text == "" {
			text = "x"
		}
		raw, err := c.Encode(loop.Wire{Role: "user", Text: text})
		if err != nil {
			rt.Fatal(err)
		}
		var back struct{ Content string }
		if err := json.Unmarshal(raw, &back); err != nil || bytes.ContainsAny(raw, "\n\r") {
			rt.Fatalf("got %s, %v; want one line of JSON", raw, err)
		}
		if want := string([]rune(text)); back.Content != want {
			rt.Fatalf("got %q; want %q", back.Content, want)
		}
	})
}

func TestNew(t *testing.T) {
	for _, base := range []string{"", "api.openai.com/v1", "ftp://x", "http://user:sekret-password@[", "http://"} {
		_, err := New(Options{BaseURL: base, Name: "m"})
		if err == nil || strings.Contains(err.Error(), "sekret") {
			t.Errorf("%q: got %v; want an error without the URL", base, err)
		}
	}
	if _, err := New(Options{BaseURL: "http://x"}); err == nil {
		t.Error("no name: want an error")
	}
	c := testClient(t, func(o *Options) { o.BaseURL = "https://user:pass@api.example.com:8443/v1/"; o.Name = "org/model" })
	if got, want := c.Name(), "api.example.com:8443/org/model"; got != want {
		t.Errorf("got name %q; want %q", got, want)
	}
}
