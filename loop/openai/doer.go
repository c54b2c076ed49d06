package openai

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
)

// errorCap bounds what is read of an error's body.
const errorCap = 64 << 10

// doer is the http layer beneath go-openai for one try. The try's goroutine
// alone uses it.
type doer struct {
	http *http.Client
	key  string
	body *body
	beat *pulse
}

var _ goopenai.HTTPDoer = (*doer)(nil)

// Do sends the request with the real body. Any status but 2xx becomes an
// *answerError: go-openai would read its body without a limit, drop its
// headers, and take 3xx for success. The body of a 2xx is normalised.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	if err := d.body.put(req); err != nil {
		return nil, err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, scrub(err, d.key)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, failure(resp, d.key)
	}
	d.beat.beat()
	resp.Body = newFrames(resp.Body, d.key, d.beat)
	return resp, nil
}

// failure reads and closes a response that is no success.
func failure(resp *http.Response, key string) *answerError {
	defer resp.Body.Close()
	// What could be read of a broken body is still the best explanation.
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, errorCap))
	e := readError(raw)
	e.redact(key)
	e.status = resp.StatusCode
	e.retryAfter, e.hasRetry = retryAfter(resp.Header, time.Now())
	return e
}

// retryAfter reads how long the endpoint wants us to wait. The precise header
// wins; x-ratelimit-reset-… counts only for a limit that is used up.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return clampWait(ms / 1000), true
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return clampWait(s), true
		}
		if t, err := http.ParseTime(v); err == nil {
			return clampWait(t.Sub(now).Seconds()), true
		}
	}
	wait, ok := time.Duration(0), false
	for _, limit := range []string{"Requests", "Tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+limit) != "0" {
			continue
		}
		if d, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + limit)); err == nil {
			wait, ok = max(wait, clampWait(d.Seconds())), true
		}
	}
	return wait, ok
}

// clampWait bounds a wait to 0…60 s: longer, and a person is better told.
func clampWait(seconds float64) time.Duration {
	if !(seconds > 0) { // NaN too
		return 0
	}
	return time.Duration(min(seconds, waitCap.Seconds()) * float64(time.Second))
}

// put makes the real body from the small one that go-openai marshalled.
func (b *body) put(req *http.Request) error {
	if b.bytes == nil {
		small, err := io.ReadAll(req.Body)
		if err != nil {
			return err
		}
		if b.bytes, err = splice(small, b.req, b.traits); err != nil {
			return err
		}
	}
	// GetBody lets net/http send again on a connection that died while idle.
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.bytes)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(b.bytes))
	req.Header.Set("User-Agent", "coxswain")
	return nil
}
