package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"coxswain/session"
)

// callTime bounds every REST call; one with a file has more. A send whose answer takes longer counts as
// lost.
const callTime = 15 * time.Second

// apiHost is what the library's addresses have; the transport puts the
// configured one in its place, so that no global of the library is touched.
const apiHost = "discord.com"

// An apiError is an answer of Discord that says no.
type apiError struct {
	what   string // method and kind of call, without ids of interactions
	status int
	code   int    // Discord's own, 0 = none
	text   string // its message
	detail string // the whole body, for telling 50035s apart
	wait   time.Duration
}

func (e *apiError) Error() string {
	return fmt.Sprintf("discord %s: %d (%d) %s", e.what, e.status, e.code, e.text)
}

// A lostError is a call that got no answer of Discord.
type lostError struct {
	what string
	sent bool // the request may have gone out
	err  error
}

func (e *lostError) Error() string { return "discord " + e.what + ": " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// newSession makes a session of the library for REST, and for the socket when
// it is opened. The library's own retries, waits and log are off: it repeats a
// POST after a 502, sleeps without looking at the context, and prints what it
// could not read, texts among it, to the standard log.
func (a *Adapter) newSession(rt http.RoundTripper) (*discordgo.Session, error) {
	s, err := discordgo.New("Bot " + strings.TrimPrefix(a.o.Token(), "Bot "))
	if err != nil {
		return nil, fmt.Errorf("discord: new session: %w", err)
	}
	s.Client = &http.Client{Transport: rt, Timeout: callTime + 5*time.Second}
	s.ShouldRetryOnRateLimit = false
	s.ShouldReconnectOnError = false
	s.ShouldReconnectVoiceOnSessionError = false
	s.MaxRestRetries = 0
	s.StateEnabled = false
	s.SyncEvents = true
	s.LogLevel = -1
	return s, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     30 * time.Second,
		MaxIdleConnsPerHost: 16,
		ForceAttemptHTTP2:   true,
	}
}

// An exchange is what the transport saw of one call.
type exchange struct {
	wrote  atomic.Bool // the request has begun to go out
	status int         // 0 = no answer
	wait   time.Duration
	global bool
	shared bool          // the limit is one that others use up too
	empty  time.Duration // the bucket is used up for this long; 0 = it is not
}

type exchangeKey struct{}

// A transport sends the library's calls to the configured host with the token
// of the moment. It keeps the rate limit headers from the library, which would
// sleep on them with a lock held; calls are paced by call.
type transport struct {
	next         http.RoundTripper
	scheme, host string
	token        func() string
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil {
		x = &exchange{}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.wrote.Store(true) }})
	r = r.Clone(ctx)
	if r.URL.Host == apiHost {
		r.URL.Scheme, r.URL.Host, r.Host = t.scheme, t.host, t.host
		r.Header.Set("Authorization", "Bot "+strings.TrimPrefix(t.token(), "Bot "))
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	h := resp.Header
	x.status = resp.StatusCode
	x.wait = seconds(h.Get("Retry-After"))
	x.global = h.Get("X-RateLimit-Global") != "" || h.Get("X-RateLimit-Scope") == "global"
	x.shared = h.Get("X-RateLimit-Scope") == "shared"
	if h.Get("X-RateLimit-Remaining") == "0" {
		x.empty = seconds(h.Get("X-RateLimit-Reset-After"))
	}
	for _, name := range []string{"Remaining", "Reset", "Reset-After", "Global"} {
		h.Del("X-RateLimit-" + name)
	}
	return resp, nil
}

func seconds(s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e6 {
		return 0
	}
	return time.Duration(f * float64(time.Second))
}

// call makes one REST call and decodes the answer into out (nil = ignore).
// bucket names what calls share: one of a bucket is made at a time, and it is
// what a rate limit holds for. What the error says holds no token.
func (a *Adapter) call(ctx context.Context, method, path, bucket string, body, out any) error {
	return a.exchange(ctx, method, bucket, callTime, out, func(ctx context.Context) ([]byte, error) {
		return a.rest.RequestWithBucketID(method, discordgo.EndpointAPI+path, body, bucket, discordgo.WithContext(ctx))
	})
}

// Username asks who the token belongs to; the error is ErrToken when it is
// nobody's.
func (a *Adapter) Username(ctx context.Context) (string, error) {
	var me user
	err := a.call(ctx, http.MethodGet, "users/@me", "me", nil, &me)
	if e, ok := errors.AsType[*apiError](err); ok && e.status == http.StatusUnauthorized {
		return "", ErrToken
	}
	return me.Username, err
}

// exchange is call with a request of the caller's, which gets within to be done.
func (a *Adapter) exchange(ctx context.Context, method, bucket string, within time.Duration, out any, request func(context.Context) ([]byte, error)) error {
	what := method + " " + strings.TrimRight(bucket, ":0123456789")
	if d := a.pace.wait(bucket); d > 0 {
		return &apiError{what: what, status: http.StatusTooManyRequests, text: "cooling off", wait: d}
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	x := &exchange{}
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	data, err := request(ctx)
	if x.empty > 0 {
		a.pace.cool(bucket, x.empty)
	}
	if x.status == http.StatusUnauthorized || x.status == http.StatusForbidden || x.status == http.StatusTooManyRequests && !x.shared {
		a.countInvalid()
	}
	if err != nil {
		return a.failed(what, bucket, x, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &lostError{what, true, fmt.Errorf("decode answer: %w", err)}
	}
	return nil
}

// failed says what an error of the library means.
func (a *Adapter) failed(what, bucket string, x *exchange, err error) error {
	if fe, ok := errors.AsType[*fileError](err); ok {
		return fe // Discord has seen a part of the request at most
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // without the address, which may hold an interaction's token (I13)
	}
	e := &apiError{what: what, status: x.status}
	if re, ok := errors.AsType[*discordgo.RESTError](err); ok {
		e.detail = strings.ToLower(string(re.ResponseBody))
		if re.Message != nil {
			e.code, e.text = re.Message.Code, re.Message.Message
		}
		return e
	}
	switch {
	case x.status == http.StatusTooManyRequests: // also when the body is HTML (D18)
		rl, ours := errors.AsType[*discordgo.RateLimitError](err)
		if e.text = "too many requests"; !ours {
			// Not Discord but what stands before it, for all calls from this address.
			e.wait = max(x.wait, banLeast)
			a.pace.ban(e.wait)
		} else if e.wait = max(x.wait, rl.RetryAfter, time.Second/2); x.global {
			a.pace.coolAll(e.wait)
		} else {
			a.pace.cool(bucket, e.wait)
		}
		a.log.Warn("told to slow down", "call", what, "wait", e.wait, "global", x.global, "banned", !ours)
		return e
	case x.status >= 300:
		return e
	}
	return &lostError{what, x.wrote.Load(), err}
}

func codeOf(err error) int {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.code
	}
	return 0
}

// sendError says what an error means for a message that was to be sent. first
// is when a send of it was first lost, zero = never: within nonceTime another
// try gives the same message (D19).
func sendError(err error, first time.Time) *session.SendError {
	if se, ok := errors.AsType[*session.SendError](err); ok {
		return se
	}
	out := &session.SendError{Outcome: session.SendRefused, Err: err}
	e, api := errors.AsType[*apiError](err)
	l, gone := errors.AsType[*lostError](err)
	switch {
	case api && e.status == http.StatusTooManyRequests:
		out.Outcome, out.Wait = session.SendNot, e.wait
	case api && e.status == http.StatusUnauthorized:
		out.Outcome, out.Wait = session.SendNot, time.Minute
	case api && e.status >= 500, gone && l.sent:
		out.Outcome = session.SendUnknown
		if !first.IsZero() && time.Since(first) < nonceTime {
			out.Outcome = session.SendNot
		}
	case gone, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		out.Outcome = session.SendNot
	}
	return out
}
