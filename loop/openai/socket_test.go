package openai

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"coxswain/loop"
	"coxswain/modeltest"
)

// Over real connections and with the client's own transport: break, retry,
// answer, cancel, and nothing left running (goleak in TestMain).
func TestOverSockets(t *testing.T) {
	srv := modeltest.New(
		modeltest.Stream(modeltest.Say("Hel"), modeltest.Hang()),
		modeltest.Text("Good ", "day"),
		modeltest.Stream(modeltest.Say("x"), modeltest.Silence()),
	)
	srv.SetKey("sk-key-0123456")
	srv.SetModels(`{"data":[{"id":"m","context_length":4096}]}`)
	ts := httptest.NewServer(srv)
	defer ts.Close()
	c := testClient(t, func(o *Options) {
		o.BaseURL = ts.URL + "/v1/"
		o.APIKey = func() string { return "sk-key-0123456" }
	})
	if got := c.ContextWindow(t.Context()); got != 4096 {
		t.Errorf("got window %d; want 4096", got)
	}
	askWith(t.Context(), t, c, loop.Request{}).want(t, "Good day", "Hel 2/5 ! Good  day")

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	reply, err := c.Stream(ctx, loop.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}},
		func(d loop.Delta) {
			if d.Text == "x" {
				cancel(errStopped)
			}
		}, nil)
	if err != errStopped || reply.Text != "x" {
		t.Errorf("got %q, %v; want x and the cause", reply.Text, err)
	}
	clean(t, srv, 3)
}

// Many at once over one client, some of them refused an optional field.
func TestConcurrentStreams(t *testing.T) {
	srv := modeltest.New()
	srv.When(func(r modeltest.Request) bool { return r.CacheKey != "" },
		modeltest.Status(400, `{"error":{"message":"Unknown parameter: prompt_cache_key"}}`))
	srv.When(func(modeltest.Request) bool { return true }, modeltest.Text("a", "b"))
	ts := httptest.NewServer(srv)
	defer ts.Close()
	c := testClient(t, func(o *Options) { o.BaseURL = ts.URL; o.Hosted = true })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 5 {
				s := askWith(ctx, t, c, loop.Request{Session: "s"})
				s.want(t, "ab", "a b")
				c.ContextWindow(ctx)
			}
		})
	}
	wg.Wait()
	if v := srv.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
}
