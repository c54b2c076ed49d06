package modeltest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tool = `"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}]`

// body makes a request of messages.
func body(messages string) string {
	return `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + tool + `,"messages":[` + messages + `]}`
}

const (
	sys   = `{"role":"system","content":"s"}`
	user  = `{"role":"user","content":"u"}`
	said  = `{"role":"assistant","content":"a"}`
	asks  = `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"read","arguments":"{\"a\":1}"}}]}`
	done1 = `{"role":"tool","content":"r","tool_call_id":"1"}`
	done2 = `{"role":"tool","content":"r","tool_call_id":"2"}`
)

func TestStrictRules(t *testing.T) {
	row := func(s ...string) string { return body(strings.Join(s, ",")) }
	tests := []struct{ name, body, want string }{
		{"plain", row(sys, user), ""},
		{"no system", row(user, said, user), ""},
		{"tools answered", row(sys, user, asks, done1, done2), ""},
		{"after tools", row(sys, user, asks, done1, done2, said, user), ""},
		{"tools twice", row(user, asks, done1, done2, asks, done1, done2), ""},
		{"user parts", row(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:x"}}]}`), ""},
		{"reasoning", row(user, `{"role":"assistant","content":"a","reasoning_content":""}`, user), ""},

		{"no JSON", `{`, "body"},
		{"key at the top", strings.Replace(row(user), `"model"`, `"session":"x","model"`, 1), `unknown key "session"`},
		{"key twice", strings.Replace(row(user), `"model"`, `"model":"m","model"`, 1), `key "model" twice`},
		{"no model", strings.Replace(row(user), `"model":"m",`, ``, 1), "model is missing"},
		{"no messages", row(), "messages is empty"},
		{"options without stream", strings.Replace(row(user), `"stream":true,`, ``, 1), "stream_options without stream"},
		{"choice without tools", strings.Replace(row(user), tool, `"tool_choice":"none"`, 1), "tool_choice without tools"},
		{"empty tools", strings.Replace(row(user), tool, `"tools":[]`, 1), "tools is not a filled array"},
		{"tool name", strings.Replace(row(user), `"read"`, `"re ad"`, 1), "bad name"},
		{"tool schema", strings.Replace(row(user), `{"type":"object"}`, `{}`, 1), "not an object schema"},
		{"limit 0", strings.Replace(row(user), `"model"`, `"max_tokens":0,"model"`, 1), "not a positive number"},

		{"role", row(`{"role":"developer","content":"x"}`), `role "developer"`},
		{"key in a message", row(`{"role":"user","content":"x","name":"n"}`), `unknown key "name"`},
		{"key in a call", row(user, strings.Replace(asks, `"id":"1"`, `"index":0,"id":"1"`, 1), done1, done2), `unknown key "index"`},
		{"no content", row(user, `{"role":"assistant","tool_calls":[]}`), "content is missing"},
		{"null content", row(`{"role":"user","content":null}`), "content is neither"},
		{"empty user", row(`{"role":"user","content":""}`), "empty user message"},
		{"empty assistant", row(user, `{"role":"assistant","content":""}`, user), "empty assistant message"},
		{"empty tool", row(user, asks, `{"role":"tool","content":"","tool_call_id":"1"}`, done2), "empty tool message"},
		{"image in a tool row", row(user, asks, `{"role":"tool","tool_call_id":"1","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, done2), "only allowed for role user"},
		{"no type", row(user, strings.Replace(asks, `"type":"function",`, ``, 1), done1, done2), "type is"},
		{"no arguments", row(user, strings.Replace(asks, `,"arguments":"{}"`, ``, 1), done1, done2), "arguments is missing"},
		{"bad arguments", row(user, strings.Replace(asks, `"{}"`, `"{\"a\":"`, 1), done1, done2), "arguments"},
		{"arguments no object", row(user, strings.Replace(asks, `"{}"`, `"[]"`, 1), done1, done2), "arguments"},
		{"id twice", row(user, strings.Replace(asks, `"id":"2"`, `"id":"1"`, 1), done1, done1), `id "1" twice`},

		{"second system", row(sys, sys, user), "not the first"},
		{"system only", row(sys), "the last row is system"},
		{"ends in assistant", row(user, said), "the last row is assistant"},
		{"user after user", row(user, user), "user after user"},
		{"user after tool", row(user, asks, done1, done2, user), "user after tool"},
		{"assistant first", row(sys, said, user), "assistant after system"},
		{"assistant twice", row(user, said, said, user), "assistant after assistant"},
		{"orphan", row(user, said, done1), "no open call"},
		{"answered twice", row(user, asks, done1, done1), `want "2"`},
		{"out of order", row(user, asks, done2, done1), `want "1"`},
		{"one missing", row(user, asks, done1), "call 2 has no tool row"},
		{"not next to it", row(user, asks, done1, user, done2), "call 2 has no tool row"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Text("ok"))
			status, answer := post(t, s, tt.body)
			v := s.Violations()
			if tt.want == "" {
				if status != 200 || len(v) != 0 {
					t.Fatalf("got %d %v; want no violation", status, v)
				}
				return
			}
			if status != 400 || len(v) != 1 || !strings.Contains(v[0], tt.want) || !strings.Contains(answer, "modeltest: ") {
				t.Fatalf("got %d %q, answer %s; want a violation with %q", status, v, answer, tt.want)
			}
			if s.Left() != 1 || len(s.Requests()) != 1 {
				t.Fatalf("got %d steps left, %d requests; want 1 and 1", s.Left(), len(s.Requests()))
			}
		})
	}
}

func post(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestStepsPlayInOrderAndRulesWin(t *testing.T) {
	s := New(Text("one"), Calls(Call{Name: "read", Args: `{"path":"a/b/c"}`}))
	s.When(func(r Request) bool { return r.Says("special") }, Text("rule"))
	var got []string
	for _, m := range []string{user, `{"role":"user","content":"special"}`, user, user} {
		_, text := post(t, s, body(m))
		got = append(got, text)
	}
	for i, want := range []string{`"content":"one"`, `"content":"rule"`, `"id":"call_1"`, "no step is left"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("answer %d: got %s; want %s in it", i+1, got[i], want)
		}
	}
	if !strings.Contains(got[2], `"finish_reason":"tool_calls"`) || !strings.Contains(got[0], `"usage":{`) || !strings.HasSuffix(got[0], "data: [DONE]\n\n") {
		t.Errorf("got %q; want finish, usage and [DONE]", got[:3])
	}
	if v := s.Violations(); len(v) != 1 {
		t.Errorf("got violations %q; want the one about steps", v)
	}
	last := s.Requests()[3].Request
	if last.N != 4 || last.Last().Text != "u" || last.Tools[0] != "read" {
		t.Errorf("got %+v; want request 4 decoded", last)
	}
}

func TestPrefixOf(t *testing.T) {
	s := New(Text("1"), Text("2"), Text("3"))
	post(t, s, body(sys+","+user))
	post(t, s, body(sys+","+user+","+said+","+user))
	post(t, s, body(sys+","+strings.Replace(user, `:`, `: `, 1)+","+said+","+user))
	r := s.Requests()
	if err := PrefixOf(r[0], r[1]); err != nil {
		t.Errorf("got %v; want nil", err)
	}
	if err := PrefixOf(r[1], r[0]); err == nil || !strings.Contains(err.Error(), "messages[2] is gone") {
		t.Errorf("got %v; want messages[2] gone", err)
	}
	if err := PrefixOf(r[0], r[2]); err == nil || !strings.Contains(err.Error(), "messages[1] changed") {
		t.Errorf("one byte more: got %v; want messages[1] changed", err)
	}
}

// send asks through the transport and gives the body read so far and its end.
func send(ctx context.Context, s *Server) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://model/v1/chat/completions", strings.NewReader(body(user)))
	if err != nil {
		return 0, "", err
	}
	resp, err := (&http.Client{Transport: s.Transport()}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestTransport(t *testing.T) {
	tests := []struct {
		name   string
		step   Step
		status int
		text   string
		err    error
		after  time.Duration
	}{
		{"text", Text("hello"), 200, `"content":"hello"`, nil, 0},
		{"status", Status(429, "", "Retry-After", "3"), 429, "Too Many Requests", nil, 0},
		{"hang up mid-stream", Stream(Say("he"), Hang()), 200, `"he"`, io.ErrUnexpectedEOF, 0},
		{"clean end without finish", Stream(Say("he"), Drop()), 200, `"he"`, nil, 0},
		{"silence ends with the request", Stream(Say("he"), Silence()), 200, `"he"`, context.DeadlineExceeded, time.Minute},
		{"head held back", Text("x").After(nil), 0, "", context.DeadlineExceeded, time.Minute},
		{"time", Stream(Wait(20*time.Second), Say("late")), 200, "late", nil, 20 * time.Second},
		{"error frame", Stream(Say("a"), Fail("overloaded", "busy")), 200, `"busy"`, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				status, text, err := send(ctx, New(tt.step))
				if status != tt.status || !strings.Contains(text, tt.text) || !errors.Is(err, tt.err) {
					t.Errorf("got %d %q %v; want %d %q %v", status, text, err, tt.status, tt.text, tt.err)
				}
				if d := time.Since(start); d != tt.after {
					t.Errorf("took %v; want %v", d, tt.after)
				}
			})
		})
	}
}

// Hanging up before the status line is a connection that closed.
func TestTransportHangBeforeHead(t *testing.T) {
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://model/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := memory{h}.RoundTrip(req)
	if !errors.Is(err, io.EOF) {
		if err == nil {
			resp.Body.Close()
		}
		t.Fatalf("got %v; want EOF", err)
	}
}

func TestGateAndAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := New(Stream(Say("a"), Gate(gate), Say("b")))
		got := make(chan string)
		go func() {
			_, text, _ := send(t.Context(), s)
			got <- text
		}()
		if err := s.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case text := <-got:
			t.Fatalf("got %q before the gate opened", text)
		default:
		}
		close(gate)
		if text := <-got; !strings.Contains(text, `"b"`) {
			t.Fatalf("got %q; want b", text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Await(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v; want the end of ctx", err)
		}
	})
}

// The same server over a real connection.
func TestOverSockets(t *testing.T) {
	s := New(Stream(Say("he"), Hang()), Text("ok"))
	s.SetKey("k")
	s.SetModels(`{"data":[{"id":"m"}]}`)
	ts := httptest.NewServer(s)
	defer ts.Close()
	get := func(path, key, body string) (int, string, error) {
		method := "GET"
		if body != "" {
			method = "POST"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := ts.Client().Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
	if code, _, _ := get("/v1/chat/completions", "wrong", body(user)); code != 401 {
		t.Errorf("wrong key: got %d; want 401", code)
	}
	if _, text, err := get("/v1/chat/completions", "k", body(user)); err == nil || !strings.Contains(text, `"he"`) {
		t.Errorf("got %q, %v; want a broken body", text, err)
	}
	if code, text, err := get("/v1/chat/completions", "k", body(user)); code != 200 || err != nil || !strings.Contains(text, `"ok"`) {
		t.Errorf("got %d %q %v; want ok", code, text, err)
	}
	if code, text, _ := get("/v1/models", "k", ""); code != 200 || !strings.Contains(text, `"m"`) {
		t.Errorf("models: got %d %q", code, text)
	}
	if code, _, _ := get("/v1/other", "k", ""); code != 404 {
		t.Errorf("other path: got %d; want 404", code)
	}
}
