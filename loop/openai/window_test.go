package openai

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/modeltest"
)

func TestFindWindow(t *testing.T) {
	tests := []struct {
		body string
		want int
	}{
		{`{"data":[{"id":"other","context_length":9},{"id":"m","context_length":131072}]}`, 131072},
		{`{"data":[{"id":"m","max_model_len":32768}]}`, 32768},
		{`{"data":[{"id":"m","context_length":200000,"top_provider":{"context_length":163840}}]}`, 163840},
		{`{"data":[{"id":"m","context_length":"65536"}]}`, 65536},
		{`{"data":[{"id":"m"}]}`, 0},
		{`{"data":[{"id":"m","context_length":null,"top_provider":null}]}`, 0},
		{`{"data":[{"id":"m","context_length":-1}]}`, 0},
		{`{"data":null}`, 0},
		{`[]`, 0},
		{``, 0},
	}
	for _, tt := range tests {
		if got := findWindow([]byte(tt.body), "m"); got != tt.want {
			t.Errorf("%s: got %d; want %d", tt.body, got, tt.want)
		}
	}
}

func TestContextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		srv := modeltest.New()
		srv.SetModels(`{"data":[]}`)
		count := doerFunc(func(r *http.Request) (*http.Response, error) {
			asked++
			return srv.Transport().RoundTrip(r)
		})
		c := testClient(t, func(o *Options) { o.HTTPClient = &http.Client{Transport: count} })
		get := func(want, requests int) {
			t.Helper()
			if got := c.ContextWindow(t.Context()); got != want || asked != requests {
				t.Errorf("got %d after %d lookups; want %d after %d", got, asked, want, requests)
			}
		}
		get(windowGuess, 1)
		srv.SetModels(`{"data":[{"id":"m","context_length":5000}]}`)
		get(windowGuess, 1) // not asked again so soon
		time.Sleep(windowAgain)
		get(5000, 2)
		srv.SetModels(`{"data":[]}`)
		time.Sleep(windowAgain)
		get(5000, 2) // kept

		c = testClient(t, func(o *Options) { o.HTTPClient = &http.Client{Transport: count}; o.ContextWindow = 77 })
		get(77, 2)
		c = testClient(t, func(o *Options) {
			o.HTTPClient = &http.Client{Transport: count}
			o.BaseURL, o.Name = "https://api.openai.com/v1", "gpt-5-mini"
		})
		get(windowOpenAI, 3)

		// A cancelled lookup is no answer, and a silent endpoint costs ten seconds.
		silent := doerFunc(func(r *http.Request) (*http.Response, error) {
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c = testClient(t, func(o *Options) { o.HTTPClient = &http.Client{Transport: silent} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := c.ContextWindow(ctx); got != windowGuess {
			t.Errorf("cancelled: got %d", got)
		}
		start := time.Now()
		get(windowGuess, 5)
		if d := time.Since(start); d != windowWait {
			t.Errorf("silent endpoint: took %v; want %v", d, windowWait)
		}
		get(windowGuess, 5)
	})
}
