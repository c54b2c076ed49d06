package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"coxswain/loop"
)

// A stream of 1,000 text chunks of ordinary size, from bytes to reply.
func BenchmarkStreamDecode(b *testing.B) {
	var s strings.Builder
	for range 1000 {
		s.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n")
	}
	s.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	body := s.String()
	c := testClient(b, func(o *Options) {
		o.HTTPClient = &http.Client{Transport: doerFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})}
	})
	r := loop.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		reply, err := c.Stream(b.Context(), r, nil, nil)
		if err != nil || len(reply.Text) != 5000 {
			b.Fatal(len(reply.Text), err)
		}
	}
}

func request400() (small []byte, r loop.Request) {
	r = loop.Request{System: json.RawMessage(`{"role":"system","content":"s"}`), MaxTokens: 100, Session: "s",
		Tools: json.RawMessage(`[{"type":"function"}]`)}
	for i := range 400 {
		r.Messages = append(r.Messages, fmt.Appendf(nil, `{"role":"user","content":"%d %s"}`, i, strings.Repeat("x", 500)))
	}
	small = []byte(`{"model":"m","messages":null,"stream":true}`)
	return small, r
}

// I12: a request of a long history is one copy into one buffer.
func BenchmarkBodySplice400(b *testing.B) {
	small, r := request400()
	b.ReportAllocs()
	for b.Loop() {
		out, err := splice(small, r, traitCacheKey)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(out)))
	}
}

func TestSpliceAllocatesOneBuffer(t *testing.T) {
	small, r := request400()
	out, err := splice(small, r, traitCacheKey)
	if err != nil || !json.Valid(out) || len(out) != cap(out) && cap(out) > len(out)+len(out)/8 {
		t.Fatalf("got %d of %d bytes, %v", len(out), cap(out), err)
	}
	for _, m := range r.Messages {
		if !bytes.Contains(out, m) {
			t.Fatalf("message changed: %s", m)
		}
	}
	if n := testing.AllocsPerRun(20, func() { _, _ = splice(small, r, traitCacheKey) }); n > 1 {
		t.Errorf("got %v allocations; want the buffer alone (I12)", n)
	}
}
