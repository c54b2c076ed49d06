package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"coxswain/loop"
	"coxswain/modeltest"
)

func TestStreamRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := json.RawMessage(`[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`)
		r := loop.Request{
			System: json.RawMessage(`{"role":"system","content":"\u0073 \"messages\":null"}`), Tools: tools,
			Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"a  b"}`)}, MaxTokens: 100, Session: "s-1\"",
		}
		srv := modeltest.New(modeltest.Text("1"), modeltest.Text("2"), modeltest.Text("3"))
		c := testClient(t, func(o *Options) {
			o.HTTPClient = &http.Client{Transport: srv.Transport()}
			o.Hosted, o.Name = true, `o1-"messages":null`
			o.APIKey = func() string { return "sk-key" }
		})
		askWith(t.Context(), t, c, r).want(t, "1", "1")
		r.NoTools, r.MaxTokens, r.Model = true, 0, "other"
		r.Messages = append(r.Messages, json.RawMessage(`{"role":"assistant","content":"1"}`), json.RawMessage(`{"role":"user","content":"c"}`))
		askWith(t.Context(), t, c, r).want(t, "2", "2")
		r.Tools = nil
		askWith(t.Context(), t, c, r).want(t, "3", "3")
		if v := srv.Violations(); len(v) > 0 {
			t.Fatalf("violations: %q", v)
		}
		rs := srv.Requests()
		want := `{"model":"o1-\"messages\":null","messages":[{"role":"system","content":"\u0073 \"messages\":null"},{"role":"user","content":"a  b"}],` +
			`"tools":` + string(tools) + `,"max_tokens":100,"prompt_cache_key":"4e8590c3610ca0b4ba548f482cbce65a","stream":true,"stream_options":{"include_usage":true}}`
		if got := string(rs[0].Body); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := rs[0].Header.Get("Authorization"); got != "Bearer sk-key" {
			t.Errorf("got authorization %q", got)
		}
		if err := modeltest.PrefixOf(rs[0], rs[1]); err != nil {
			t.Errorf("I5: %v", err)
		}
		if q := rs[1].Request; !q.NoTools || q.Model != "other" || q.Max != 0 || !bytes.Equal(rs[1].Tools, tools) {
			t.Errorf("got %+v, tools %s; want the same tools and tool_choice none", q, rs[1].Tools)
		}
		if rs[2].Request.NoTools {
			t.Error("tool_choice without tools")
		}
	})
}

// An endpoint that refuses an optional field gets the same messages without
// it, at once, and is not asked with it again.
func TestStreamAdapts(t *testing.T) {
	refusal := `{"detail":[{"type":"extra_forbidden","loc":["body","%s"],"msg":"Extra inputs are not permitted"}]}`
	openAI := `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`
	has := func(b []byte, field string) bool { return bytes.Contains(b, []byte(`"`+field+`":`)) }
	tests := []struct{ field, then, body string }{
		{"prompt_cache_key", "", fmt.Sprintf(refusal, "prompt_cache_key")},
		{"stream_options", "", fmt.Sprintf(refusal, "stream_options")},
		{"max_tokens", "max_completion_tokens", openAI},
	}
	for _, tt := range tests {
		bubble(t, tt.field, func(t *testing.T) {
			srv := modeltest.New(modeltest.Status(422, tt.body), modeltest.Text("a"), modeltest.Text("b"), modeltest.Status(422, tt.body))
			c := testClient(t, func(o *Options) { o.HTTPClient = &http.Client{Transport: srv.Transport()}; o.Hosted = true })
			r := loop.Request{MaxTokens: 9, Session: "s"}
			s := askWith(t.Context(), t, c, r)
			s.want(t, "a", "a")
			askWith(t.Context(), t, c, r).want(t, "b", "b")
			rs := srv.Requests()
			if !has(rs[0].Body, tt.field) || has(rs[1].Body, tt.field) || has(rs[2].Body, tt.field) || tt.then != "" && !has(rs[1].Body, tt.then) {
				t.Errorf("got bodies\n%s\n%s\n%s", rs[0].Body, rs[1].Body, rs[2].Body)
			}
			if err := modeltest.PrefixOf(rs[0], rs[1]); err != nil || s.took != 0 {
				t.Errorf("got %v after %v", err, s.took)
			}
			// Refused both ways: no more turning.
			askWith(t.Context(), t, c, r).failed(t, loop.ErrBadRequest, "")
			if n := len(srv.Requests()); n != 4 {
				t.Errorf("got %d requests; want 4", n)
			}
		})
	}
	bubble(t, "a limit too large is no refusal of the field", func(t *testing.T) {
		srv := modeltest.New(modeltest.Status(400, `{"error":{"message":"max_tokens is too large: 99"}}`))
		ask(t.Context(), t, srv, nil, loop.Request{MaxTokens: 99}).failed(t, loop.ErrBadRequest, "")
		clean(t, srv, 1)
	})
}

// doerFunc is a transport of one function.
type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestStreamTransportErrors(t *testing.T) {
	const key = "sk-live-0123456789"
	run := func(t *testing.T, rt http.RoundTripper) seen {
		c := testClient(t, func(o *Options) {
			o.HTTPClient = &http.Client{Transport: rt}
			o.BaseURL = "http://u:" + key + "@host/v1"
			o.APIKey = func() string { return key }
			o.Attempts = 2
		})
		return askWith(t.Context(), t, c, loop.Request{})
	}
	bubble(t, "dial error", func(t *testing.T) {
		n := 0
		s := run(t, doerFunc(func(*http.Request) (*http.Response, error) { n++; return nil, io.EOF }))
		me := s.failed(t, loop.ErrNetwork, "")
		if n != 2 || strings.Contains(me.Error(), key) || strings.Contains(me.Error(), "host") {
			t.Errorf("got %d tries, %v; want 2 and no URL (I13)", n, me)
		}
	})
	bubble(t, "redirect is refused", func(t *testing.T) {
		n := 0
		s := run(t, doerFunc(func(r *http.Request) (*http.Response, error) {
			n++
			return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"http://other/"}}, Body: http.NoBody, Request: r}, nil
		}))
		if me := s.failed(t, loop.ErrBadRequest, ""); me.Public != sayMoved || n != 1 {
			t.Errorf("got %q after %d requests", me.Public, n)
		}
	})
	bubble(t, "web page", func(t *testing.T) {
		s := run(t, doerFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>")), Request: r}, nil
		}))
		if me := s.failed(t, loop.ErrBadRequest, ""); me.Public != sayWebPage {
			t.Errorf("got %q", me.Public)
		}
	})
	bubble(t, "an answer without end", func(t *testing.T) {
		s := run(t, doerFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(&endless{text: "x"}), Request: r}, nil
		}))
		if me := s.failed(t, loop.ErrBadRequest, ""); me.Public != sayTooLong {
			t.Errorf("got %q", me.Public)
		}
	})
}
