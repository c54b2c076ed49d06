package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// windowGuess is small, because too large a guess loses a conversation (the
	// endpoint refuses it or cuts it silently) and too small a one only
	// summarises early.
	windowGuess = 32_000
	// windowOpenAI is what every current chat model of OpenAI has at least; its
	// /models does not tell.
	windowOpenAI = 128_000
	windowWait   = 10 * time.Second // for the answer
	windowAgain  = 5 * time.Minute  // before asking again an endpoint that did not tell
	modelsCap    = 16 << 20
)

// ContextWindow is the model's context window in tokens: as configured, else
// as the endpoint's /models says (context_length or max_model_len), else a
// safe guess. What the endpoint said is kept for the life of the client; a
// failed lookup is repeated at most every five minutes. It waits 10 s at most.
func (c *Client) ContextWindow(ctx context.Context) int {
	if c.o.ContextWindow > 0 {
		return c.o.ContextWindow
	}
	c.windowMu.Lock()
	defer c.windowMu.Unlock()
	if c.window == 0 && !time.Now().Before(c.windowNext) {
		n, err := c.askWindow(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.DebugContext(ctx, "context window lookup failed", "model", c.Name(), "err", err)
		}
		if ctx.Err() == nil {
			c.window, c.windowNext = n, time.Now().Add(windowAgain)
		}
	}
	switch {
	case c.window > 0:
		return c.window
	case c.isOpenAI():
		return windowOpenAI
	}
	return windowGuess
}

func (c *Client) isOpenAI() bool {
	if h, _, _ := strings.Cut(c.host, ":"); !under(h, "openai.com") {
		return false
	}
	for _, p := range []string{"gpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "o1", "o3", "o4"} {
		if strings.HasPrefix(c.o.Name, p) {
			return true
		}
	}
	return false
}

// askWindow asks the endpoint; 0 if it does not tell.
func (c *Client) askWindow(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, windowWait)
	defer cancel()
	u, err := url.Parse(c.base)
	if err != nil {
		return 0, fmt.Errorf("context window: base_url")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("models").String(), nil)
	if err != nil {
		return 0, fmt.Errorf("context window: base_url")
	}
	key := c.o.APIKey()
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, scrub(err, key)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, failure(resp, key)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, modelsCap))
	if err != nil {
		return 0, scrub(err, key)
	}
	return findWindow(raw, c.o.Name), nil
}

// findWindow reads a /models answer. Of several numbers for one model the
// smallest holds: OpenRouter gives the model's own and that of the provider it
// would use.
func findWindow(raw []byte, name string) int {
	var list struct {
		Data []struct {
			ID          looseString `json:"id"`
			Context     looseInt    `json:"context_length"`
			MaxModelLen looseInt    `json:"max_model_len"` // vLLM
			Top         struct {
				Context looseInt `json:"context_length"`
			} `json:"top_provider"`
		} `json:"data"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return 0
	}
	for _, m := range list.Data {
		if string(m.ID) != name {
			continue
		}
		window := 0
		for _, n := range []int{m.Context.n, m.MaxModelLen.n, m.Top.Context.n} {
			if n > 0 && (window == 0 || n < window) {
				window = n
			}
		}
		return window
	}
	return 0
}
