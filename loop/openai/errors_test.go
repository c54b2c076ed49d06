package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"coxswain/loop"
)

// Error bodies as providers send them, and what the loop makes of them.
func TestClassify(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		kind   loop.ErrKind
		retry  bool
		says   string // public text, if not the kind's own
	}{
		{"OpenAI key", 401, `{"error":{"message":"Incorrect API key provided: sk-…","type":"invalid_request_error","code":"invalid_api_key"}}`, loop.ErrAuth, false, ""},
		{"Gemini key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, loop.ErrAuth, false, ""},
		{"forbidden", 403, `{"message":"no"}`, loop.ErrAuth, false, ""},
		{"OpenRouter moderation", 403, `{"error":{"code":403,"message":"openai/gpt requires moderation. Your input was flagged"}}`, loop.ErrFiltered, false, ""},
		{"out of credit", 429, `{"error":{"message":"You exceeded your current quota, please check your plan","type":"insufficient_quota","code":"insufficient_quota"}}`, loop.ErrQuota, false, ""},
		{"Gemini per minute", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan","status":"RESOURCE_EXHAUSTED"}}]`, loop.ErrOverloaded, true, ""},
		{"DeepSeek out of credit", 402, `{"error":{"message":"Insufficient Balance"}}`, loop.ErrQuota, false, ""},
		{"Anthropic out of credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, loop.ErrQuota, false, ""},
		{"rate limit that names a context", 429, `{"error":{"message":"Rate limit reached for the context window"}}`, loop.ErrOverloaded, true, ""},

		{"OpenAI context", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, loop.ErrContextLength, false, ""},
		{"llama.cpp context", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, loop.ErrContextLength, false, ""},
		{"vLLM context, flat", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`, loop.ErrContextLength, false, ""},
		{"Anthropic context", 400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, loop.ErrContextLength, false, ""},
		{"too large", 413, `<html>`, loop.ErrContextLength, false, ""},
		{"Azure filter", 400, `{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, loop.ErrFiltered, false, ""},

		{"OpenAI model", 404, `{"error":{"message":"The model 'x' does not exist","code":"model_not_found"}}`, loop.ErrUnknownModel, false, ""},
		{"OpenRouter model", 400, `{"error":{"message":"x is not a valid model ID","code":400}}`, loop.ErrUnknownModel, false, ""},
		{"Ollama model", 404, `{"error":{"message":"model \"x\" not found, try pulling it first"}}`, loop.ErrUnknownModel, false, ""},
		{"wrong path", 404, `404 page not found`, loop.ErrBadRequest, false, sayNoPath},
		{"moved", 301, ``, loop.ErrBadRequest, false, sayMoved},

		{"FastAPI", 422, `{"detail":[{"type":"missing","loc":["body","messages",3,"content"],"msg":"Field required","input":{"content":"maximum context length"}}]}`, loop.ErrBadRequest, false, ""},
		{"bad request", 400, `{"error":"nope"}`, loop.ErrBadRequest, false, ""},
		{"Jinja (picoclaw#207)", 500, `{"error":{"code":500,"message":"Jinja Exception: Conversation roles must alternate","type":"server_error"}}`, loop.ErrBadRequest, false, sayJinja},
		{"not implemented", 501, ``, loop.ErrBadRequest, false, ""},

		{"timeout", 408, ``, loop.ErrOverloaded, true, ""},
		{"conflict", 409, ``, loop.ErrOverloaded, true, ""},
		{"500", 500, `{"error":{"message":"oops"}}`, loop.ErrOverloaded, true, ""},
		{"502 page", 502, `<html><body>Bad Gateway</body></html>`, loop.ErrOverloaded, true, ""},
		{"503", 503, ``, loop.ErrOverloaded, true, ""},
		{"504", 504, ``, loop.ErrOverloaded, true, ""},
		{"529", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, loop.ErrOverloaded, true, ""},

		{"in a stream: busy", 0, `{"error":{"message":"Overloaded","type":"overloaded_error"}}`, loop.ErrOverloaded, true, ""},
		{"in a stream: unknown", 0, `{"error":{"message":"oops"}}`, loop.ErrOverloaded, true, ""},
		{"in a stream: 502", 0, `{"error":{"message":"oops","code":502}}`, loop.ErrOverloaded, true, ""},
		{"in a stream: 400", 0, `{"error":{"message":"oops","code":400}}`, loop.ErrBadRequest, false, ""},
		{"in a stream: context", 0, `{"error":{"message":"context_length_exceeded"}}`, loop.ErrContextLength, false, ""},
		{"in a stream: no credit", 0, `{"error":{"message":"Insufficient credits","code":402}}`, loop.ErrQuota, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			if tt.status == 0 {
				f := &frames{}
				err = f.streamError([]byte(tt.body))
			} else {
				err = failure(&http.Response{StatusCode: tt.status, Body: io.NopCloser(strings.NewReader(tt.body)), Header: http.Header{}}, "")
			}
			got := classify(fmt.Errorf("through go-openai: %w", err))
			says := tt.says
			if says == "" {
				says = sayKind[tt.kind]
			}
			if got.Kind != tt.kind || got.Retryable != tt.retry || got.Public != says {
				t.Errorf("got kind %d retry %v %q; want kind %d retry %v %q\n%v", got.Kind, got.Retryable, got.Public, tt.kind, tt.retry, says, got.Err)
			}
			if tt.status != 0 && got.Status != tt.status {
				t.Errorf("got status %d; want %d", got.Status, tt.status)
			}
			if strings.Contains(got.Public, "oops") || strings.Contains(got.Error(), "Field required") && !strings.Contains(got.Error(), "body.messages.3.content") {
				t.Errorf("got %q, %v; want the place in the chain and no provider's words in public", got.Public, got)
			}
			if strings.Contains(tt.body, "input") && strings.Contains(got.Error(), "maximum context") {
				t.Errorf("the input is repeated in %v (I13)", got)
			}
		})
	}
}

func TestClassifyLocal(t *testing.T) {
	tests := []struct {
		err   error
		kind  loop.ErrKind
		retry bool
	}{
		{io.EOF, loop.ErrNetwork, true},
		{io.ErrUnexpectedEOF, loop.ErrNetwork, true},
		{errNoFinish, loop.ErrNetwork, true},
		{errBadFrame, loop.ErrNetwork, true},
		{errAborted, loop.ErrNetwork, true},
		{errSilent, loop.ErrSilent, true},
		{errEmpty, loop.ErrEmpty, true},
		{errTooLong, loop.ErrBadRequest, false},
		{request("x"), loop.ErrBadRequest, false},
	}
	for _, tt := range tests {
		got := classify(tt.err)
		if got.Kind != tt.kind || got.Retryable != tt.retry || !errors.Is(got, tt.err) || got.Public == "" {
			t.Errorf("%v: got kind %d retry %v public %q; want %d %v", tt.err, got.Kind, got.Retryable, got.Public, tt.kind, tt.retry)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		header []string
		want   time.Duration
		ok     bool
	}{
		{nil, 0, false},
		{[]string{"Retry-After", "3"}, 3 * time.Second, true},
		{[]string{"Retry-After", "0"}, 0, true},
		{[]string{"Retry-After", "1.5"}, 1500 * time.Millisecond, true},
		{[]string{"Retry-After", "-4"}, 0, true},
		{[]string{"Retry-After", "NaN"}, 0, true},
		{[]string{"Retry-After", "86400"}, time.Minute, true},
		{[]string{"Retry-After", "1e300"}, time.Minute, true},
		{[]string{"Retry-After", "soon"}, 0, false},
		{[]string{"Retry-After", "Wed, 02 Jan 2030 03:04:15 GMT"}, 10 * time.Second, true},
		{[]string{"Retry-After", "Wed, 02 Jan 2030 03:00:00 GMT"}, 0, true},
		{[]string{"Retry-After", "3", "retry-after-ms", "250"}, 250 * time.Millisecond, true},
		{[]string{"x-ratelimit-reset-tokens", "6m0s"}, 0, false},
		{[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "1m30s"}, time.Minute, true},
		{[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "2s", "x-ratelimit-remaining-requests", "5", "x-ratelimit-reset-requests", "20s"}, 2 * time.Second, true},
	}
	for _, tt := range tests {
		h := http.Header{}
		for i := 0; i < len(tt.header); i += 2 {
			h.Set(tt.header[i], tt.header[i+1])
		}
		if got, ok := retryAfter(h, now); got != tt.want || ok != tt.ok {
			t.Errorf("%v: got %v %v; want %v %v", tt.header, got, ok, tt.want, tt.ok)
		}
	}
}

// I13: no key in any error, however the transport or the provider repeats it.
func TestNoKeyInErrors(t *testing.T) {
	const key = "sk-live-0123456789"
	in := &url.Error{Op: "Post", URL: "https://u:" + key + "@host/v1?key=" + key, Err: io.ErrUnexpectedEOF}
	got := scrub(fmt.Errorf("wrapped: %w", in), key)
	if strings.Contains(got.Error(), key) || strings.Contains(got.Error(), "host") || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("got %v; want no URL and the cause", got)
	}
	if got := scrub(fmt.Errorf("proxy says %s", key), key); strings.Contains(got.Error(), key) {
		t.Errorf("got %v", got)
	}
	e := failure(&http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"bad ` + key + `","code":"` + key + `"}}`)), Header: http.Header{}}, key)
	if strings.Contains(e.Error(), key) || !strings.Contains(e.Error(), "[key]") {
		t.Errorf("got %v", e)
	}
}

func TestErrorBodiesAreBounded(t *testing.T) {
	e := failure(&http.Response{StatusCode: 500, Body: io.NopCloser(&endless{text: "é"}), Header: http.Header{}}, "")
	if len(e.Error()) > 2*messageCap || !utf8.ValidString(e.message) {
		t.Errorf("got %d bytes", len(e.Error()))
	}
}

func TestWordsFitAndAreWhole(t *testing.T) {
	all := []string{sayMoved, sayNoPath, sayWebPage, sayTooLong, sayJinja, callCut, callNoName, callNotObj}
	for k := loop.ErrNetwork; k <= loop.ErrEmpty; k++ {
		if sayKind[k] == "" {
			t.Errorf("kind %d has no words", k)
		}
		all = append(all, sayKind[k])
	}
	for _, s := range all {
		if utf8.RuneCountInString(s) > 120 {
			t.Errorf("%d characters, want at most 120: %s", utf8.RuneCountInString(s), s)
		}
	}
}
