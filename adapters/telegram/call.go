package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"coxswain/session"
)

// callTimeout bounds every call but the poll. A send whose answer takes longer
// counts as unknown.
const callTimeout = 30 * time.Second

// maxAnswer bounds an answer's body. 100 updates of the largest kind are well
// below it.
const maxAnswer = 32 << 20

// An apiError is an answer of the API that says no.
type apiError struct {
	method      string
	code        int
	description string
	retryAfter  time.Duration
	migrateTo   int64
}

func (e *apiError) Error() string {
	return fmt.Sprintf("telegram %s: %d %s", e.method, e.code, e.description)
}

// says reports whether the description has one of the words; the API tells
// most of its errors apart by text alone.
func (e *apiError) says(words ...string) bool {
	d := strings.ToLower(e.description)
	for _, w := range words {
		if strings.Contains(d, w) {
			return true
		}
	}
	return false
}

// topicGone reports that the topic of a call is closed or no more (T17).
func (e *apiError) topicGone() bool {
	return e.says("thread not found", "topic_closed", "topic_deleted", "topic closed", "topic_id_invalid")
}

// A lostError is a call that got no answer of the API. Its text never holds
// the token.
type lostError struct {
	method string
	sent   bool // the request may have gone out
	status int  // of an answer that was not the API's, 0 = none
	text   string
	err    error // without the URL
}

func (e *lostError) Error() string { return "telegram " + e.method + ": " + e.text }
func (e *lostError) Unwrap() error { return e.err }

// An api calls methods of one bot. Safe from any goroutine.
//
// The library's client is not used for calls: it decodes the whole sent
// message of an answer, so one field it does not know turns a message that was
// sent into an error; it streams bodies, so a dead idle connection cannot be
// replaced without guessing; and it drops the status of answers that are not
// JSON, which decides between "not sent" and "unknown" here.
//
// A method is a name and a struct of parameters, so methods that came after the
// library's version (9.4) are called like all others.
type api struct {
	base  string
	token func() string
	http  *http.Client
	clock *clock // told of the Date of every answer
}

// A body is what a request carries. open may be called more than once: each
// try reads from the beginning.
type body struct {
	kind string // its content type
	size int64
	open func() (io.ReadCloser, error)
}

// call posts params as JSON and decodes the result into out (nil = ignore).
// An error is *apiError, *lostError or that of encoding.
func (a *api) call(ctx context.Context, method string, params, out any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("telegram %s: encode: %w", method, err)
	}
	b := body{"application/json", int64(len(data)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	return a.post(ctx, method, b, callTimeoutOf(method), out)
}

// post makes the request.
func (a *api) post(ctx context.Context, method string, b body, within time.Duration, out any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	token := a.token()
	var sent atomic.Bool
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/bot"+token+"/"+method, nil)
	if err != nil {
		return lost(method, token, false, 0, err)
	}
	// GetBody lets the transport replace a dead idle connection that took
	// nothing of the request.
	req.GetBody = func() (io.ReadCloser, error) {
		r, err := b.open()
		if err != nil {
			return nil, err
		}
		return &watchedBody{r, &sent}, nil
	}
	if req.Body, err = req.GetBody(); err != nil {
		return fmt.Errorf("telegram %s: open body: %w", method, err)
	}
	req.ContentLength = b.size
	req.Header.Set("Content-Type", b.kind)
	resp, err := a.http.Do(req)
	if err != nil {
		return lost(method, token, sent.Load(), 0, err)
	}
	defer resp.Body.Close()
	a.clock.saw(resp.Header.Get("Date"))
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return lost(method, token, true, resp.StatusCode, err)
	}
	var env struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Code        int             `json:"error_code"`
		Description string          `json:"description"`
		Parameters  struct {
			RetryAfter int   `json:"retry_after"`
			MigrateTo  int64 `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(data, &env); err != nil {
		return lost(method, token, true, resp.StatusCode, fmt.Errorf("status %d with a body that is no JSON", resp.StatusCode))
	}
	if !env.OK {
		if env.Code == 0 {
			env.Code = resp.StatusCode
		}
		return &apiError{
			method: method, code: env.Code, description: strings.ReplaceAll(env.Description, token, "***"),
			retryAfter: time.Duration(env.Parameters.RetryAfter) * time.Second, migrateTo: env.Parameters.MigrateTo,
		}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(env.Result, out); err != nil {
		return lost(method, token, true, resp.StatusCode, fmt.Errorf("decode result: %w", err))
	}
	return nil
}

func callTimeoutOf(method string) time.Duration {
	if method == "getUpdates" {
		return pollWait + 15*time.Second
	}
	return callTimeout
}

// fetch opens a file of the bot for reading. The URL holds the token and is
// never shown.
func (a *api) fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	token := a.token()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/file/bot"+token+"/"+path, nil)
	if err != nil {
		return nil, lost("file", token, false, 0, err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, lost("file", token, true, 0, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, lost("file", token, true, resp.StatusCode, fmt.Errorf("status %d", resp.StatusCode))
	}
	return resp.Body, nil
}

// A watchedBody notes when the transport begins to read it, which it does only
// over a connection that stands. Until then the request has not gone out.
type watchedBody struct {
	io.ReadCloser
	begun *atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun.Store(true)
	return b.ReadCloser.Read(p)
}

// lost makes a lostError. A *url.Error prints the URL, which holds the token:
// only what it wraps is kept (I13).
func lost(method, token string, sent bool, status int, err error) *lostError {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	e := &lostError{method: method, sent: sent, status: status, err: err, text: strings.ReplaceAll(err.Error(), token, "***")}
	if e.text != err.Error() {
		e.err = nil // it says the token: nobody may unwrap it
	}
	return e
}

// unauthorized reports that the token is refused: 401 when it was revoked, 404
// when it is no token at all.
func unauthorized(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && (e.code == http.StatusUnauthorized || e.code == http.StatusNotFound && e.description == "Not Found")
}

// sendError says what an error means for a message that was to be sent.
func sendError(err error) *session.SendError {
	if se, ok := errors.AsType[*session.SendError](err); ok {
		return se
	}
	if e, ok := errors.AsType[*apiError](err); ok {
		switch {
		case e.code == http.StatusTooManyRequests:
			return &session.SendError{Outcome: session.SendNot, Wait: max(e.retryAfter, time.Second), Err: err}
		case unauthorized(err):
			return &session.SendError{Outcome: session.SendNot, Wait: time.Minute, Err: err}
		case e.code == http.StatusBadGateway || e.code == http.StatusGatewayTimeout:
			return &session.SendError{Outcome: session.SendUnknown, Err: err}
		case e.code >= 500:
			return &session.SendError{Outcome: session.SendNot, Err: err}
		}
		return &session.SendError{Outcome: session.SendRefused, Err: err}
	}
	if e, ok := errors.AsType[*lostError](err); ok {
		// An answer below 500 that is not the API's comes from something between
		// that did not pass the request on.
		if e.sent && (e.status == 0 || e.status == http.StatusOK || e.status >= 500) {
			return &session.SendError{Outcome: session.SendUnknown, Err: err}
		}
		return &session.SendError{Outcome: session.SendNot, Err: err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &session.SendError{Outcome: session.SendNot, Err: err}
	}
	return &session.SendError{Outcome: session.SendRefused, Err: err}
}
