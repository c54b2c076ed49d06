package openai

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func normalise(r io.Reader) (string, error) {
	f := newFrames(io.NopCloser(r), "sk-secret-key", &pulse{start: time.Now()})
	b, err := io.ReadAll(f)
	return string(b), err
}

func TestFrames(t *testing.T) {
	tests := []struct{ name, in, want, err string }{
		{"ordinary", "data: {\"a\":1}\n\ndata: [DONE]\n\n", "data: {\"a\":1}\ndata: [DONE]\n", ""},
		{"no space, CRLF", "data:{\"a\":1}\r\n\r\ndata:[DONE]\r\n\r\n", "data: {\"a\":1}\ndata: [DONE]\n", ""},
		{"comments, event, id, retry", ": ping\n\nevent: x\nid: 7\nretry: 1\ndata: {}\n\n:\n\n", "data: {}\n", ""},
		{"joins lines of one frame", "data: {\"a\":\ndata: 1}\n\n", "data: {\"a\": 1}\n", ""},
		{"no blank line between frames", "data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n", "data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n", ""},
		{"no newline at the end", "data: {\"a\":1}", "data: {\"a\":1}\n", ""},
		{"blank data", "data:\n\ndata: \n\ndata: {}\n\n", "data: {}\n", ""},
		{"byte order mark", "\xEF\xBB\xBFdata: {}\n\n", "data: {}\n", ""},
		{"plain body", "\n{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n", "data: {\"a\":1,\"b\":\"x\"}\n", ""},
		{"JSON lines", "{\"a\":1}\n{\"b\":2}\n", "data: {\"a\":1}\ndata: {\"b\":2}\n", ""},
		{"empty", "", "", ""},
		{"error: null is no error", "data: {\"error\":null,\"a\":1}\n\n", "data: { \"error\":null,\"a\":1}\n", ""},
		{"the word error in text", `data: {"choices":[{"delta":{"content":"\"error\": no"}}]}` + "\n\n", `data: {"choices":[{"delta":{"content":"\"error\": no"}}]}` + "\n", ""},

		{"error frame", "data: {\"a\":1}\n\ndata: {\"error\":{\"message\":\"boom\",\"code\":502}}\n\ndata: {}\n\n", "data: {\"a\":1}\n", "(502): boom"},
		{"error behind other keys (OpenRouter)", `data: {"id":"x","choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"boom"}}` + "\n\n", "", "(server_error): boom"},
		{"error in the choice", `data: {"choices":[{"error":{"message":"boom"}}]}` + "\n\n", "", "boom"},
		{"error as text", `data: {"error":"boom"}` + "\n\n", "", "boom"},
		{"event: error", "event: error\ndata: {\"message\":\"boom\"}\n\n", "", "boom"},
		{"error thrown into the stream without data:", "data: {\"a\":1}\n\n{\"error\":{\"message\":\"boom\"}}\n", "data: {\"a\":1}\n", "boom"},
		{"plain error", `{"error":{"message":"boom"}}`, "", "boom"},
		{"plain error in an array (Gemini)", `[{"error":{"message":"boom","status":"UNAVAILABLE"}}]`, "", "(UNAVAILABLE): boom"},
		{"the key in an error", `{"error":{"message":"bad key sk-secret-key!"}}`, "", "bad key [key]!"},
		{"web page", "<!DOCTYPE html><html>", "", "status 0"},
		{"cut JSON body", `{"a":`, "", "unexpected EOF"},
		{"broken JSON body", `{"a" 1}`, "", "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
				"data with the end": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got, err := normalise(r)
				if got != tt.want {
					t.Errorf("%s: got %q; want %q", how, got, tt.want)
				}
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Errorf("%s: got error %v; want %q", how, err, tt.err)
				}
				if err != nil && strings.Contains(err.Error(), "sk-secret-key") {
					t.Errorf("%s: the key is in %v (I13)", how, err)
				}
			}
		})
	}
}

// endless gives the text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at%len(e.text)]
		e.at++
	}
	return len(p), nil
}

func TestFramesAreCapped(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"a line without end":         &endless{text: "x"},
		"a data line without end":    io.MultiReader(strings.NewReader("data: "), &endless{text: "x"}),
		"a frame of lines":           &endless{text: "data: [1,\n"},
		"comments without end":       &endless{text: ": ping\n\n"},
		"a plain value without end":  io.MultiReader(strings.NewReader(`{"a":"`), &endless{text: "x"}),
		"plain space without end":    &endless{text: "\n"},
		"small frames without end":   &endless{text: "data: {}\n\n"},
		"plain values without end":   &endless{text: "{}\n"},
		"a list without end":         &endless{text: "["},
		"a web page without end":     &endless{text: "<"},
		"data of blanks without end": &endless{text: "data: \n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFrames(io.NopCloser(r), "", &pulse{start: time.Now()})
			f.frameCap, f.streamCap = 64<<10, 256<<10
			n, err := io.Copy(io.Discard, f)
			var ae *answerError
			if !errors.Is(err, errTooLong) && !errors.As(err, &ae) || n > 2*int64(f.streamCap) {
				t.Fatalf("got %d bytes, %v; want an end", n, err)
			}
			if name != "a list without end" && name != "a web page without end" && !errors.Is(err, errTooLong) {
				t.Fatalf("got %v; want errTooLong", err)
			}
		})
	}
}

// A broken connection is not the end of the stream.
func TestFramesPassReadErrors(t *testing.T) {
	for _, in := range []string{"", "data: {\"a\":1}\n\n", "data: {\"a\":1}\n\ndata: {\"b", `{"a":1`} {
		_, err := normalise(io.MultiReader(strings.NewReader(in), iotest.ErrReader(io.ErrUnexpectedEOF)))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: got %v; want the read error", in, err)
		}
	}
}

// Whatever comes, go-openai gets lines of "data: " and nothing else, the same
// ones however the bytes are cut.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"data: {}\n\n", ": c\n\ndata: [DONE]", "{\"a\":1}\n{}", "event: error\ndata: x\n\n", "data: {\ndata: }\n\n", "<html>", "[1]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := normalise(bytes.NewReader(in))
		again, err2 := normalise(iotest.OneByteReader(bytes.NewReader(in)))
		if got != again || (err == nil) != (err2 == nil) {
			t.Fatalf("whole %q %v; by byte %q %v", got, err, again, err2)
		}
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, "data: ") || !strings.HasSuffix(line, "\n") {
				t.Fatalf("got line %q", line)
			}
		}
	})
}
