package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Webhook has Telegram push updates instead of being polled for them.
type Webhook struct {
	// URL is the public address that Telegram posts to: https, on port 443, 80,
	// 88 or 8443 (Telegram's rule).
	URL string
	// Secret is what Telegram sends with every request, 1 to 256 of A-Z, a-z,
	// 0-9, _ and -. Without one anybody who finds the address speaks as anybody.
	Secret string
	// Listener takes the requests while Run runs; nil = the caller serves Handler.
	Listener net.Listener
}

const (
	// hookBody bounds a request in bytes; updates are a few kB.
	hookBody = 1 << 20
	// hookWait is how long a request waits for its update to be taken. Telegram
	// gives up after about a minute.
	hookWait = 25 * time.Second
	// hookEvery is how often Telegram is asked whether it can reach the webhook.
	hookEvery = 5 * time.Minute
	// hookCaughtUp is how long after the start what is pushed counts as come
	// while the gateway was away.
	hookCaughtUp = 30 * time.Second
	hookSecret   = "X-Telegram-Bot-Api-Secret-Token"
	// What the stored document says of a webhook that is not there, and of one
	// that is being set.
	hookOff, hookSetting = "off", "setting"
)

// Validate refuses what Telegram would not post to, or anybody could post to.
func (h *Webhook) Validate() error {
	u, err := url.Parse(h.URL)
	switch {
	case h.Secret == "":
		return errors.New(wordsHookSecret)
	case len(h.Secret) > 256 || strings.ContainsFunc(h.Secret, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}):
		return errors.New("telegram: webhook.secret: want 1 to 256 of A-Z a-z 0-9 _ -")
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("telegram: webhook.url %q: want the public https address of this gateway", h.URL)
	case u.Port() != "" && !slices.Contains([]string{"443", "80", "88", "8443"}, u.Port()):
		return fmt.Errorf("telegram: webhook.url %q: Telegram posts to the ports 443, 80, 88 and 8443 alone", h.URL)
	}
	return nil
}

// Handler takes the requests of Telegram's webhook: 401 without the secret, 200
// when the door has taken the update and a crash cannot lose it any more (I1),
// 503 when that was not so in time, whereupon Telegram sends it again. Updates
// of a chat are delivered in the order in which they came, as with polling; one
// that comes again while it waits is one.
func (a *Adapter) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := a.flight.Load()
		switch {
		case a.hook == nil || !sameSecret(r.Header.Get(hookSecret), a.hook.Secret):
			w.WriteHeader(http.StatusUnauthorized)
			return
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case f == nil:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hookBody))
		if _, big := errors.AsType[*http.MaxBytesError](err); big {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest) // it broke off: it comes again
			return
		}
		if a.spares() && !f.urgent(raw) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), hookWait)
		defer cancel()
		if !f.take(ctx, raw) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		now := time.Now()
		a.state.set(func(s *Status) { s.LastUpdate = now })
	})
}

// sameSecret compares in constant time, whatever the lengths.
func sameSecret(got, want string) bool {
	g, w := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(g[:], w[:]) == 1
}

// receive has updates pushed until ctx ends or the token is refused.
func (a *Adapter) receive(ctx context.Context) error {
	f := newFlight(a)
	f.ctx = ctx
	a.flight.Store(f)
	defer f.lanes.Wait()
	served := make(chan error, 1)
	if l := a.hook.Listener; l != nil {
		srv := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second,
			IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug)}
		a.beside.Go(func() { served <- srv.Serve(l) })
		defer func() {
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if err := srv.Shutdown(cleanup); err != nil {
				_ = srv.Close() // what is unanswered comes again
			}
		}()
	}
	// Before the server: requests that wait are answered 503 and let it end.
	defer f.close()
	defer a.flight.Store(nil)
	caughtUp := time.AfterFunc(hookCaughtUp, a.away.end)
	defer caughtUp.Stop()
	for {
		if err := a.setHook(ctx); err != nil {
			return err
		}
		t := time.NewTimer(hookEvery)
		select {
		case <-t.C:
		case err := <-served:
			t.Stop()
			return fmt.Errorf("telegram webhook: %w", err)
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
}

// hookInfo is what getWebhookInfo says.
type hookInfo struct {
	URL     string   `json:"url"`
	Allowed []string `json:"allowed_updates"`
	Failed  int64    `json:"last_error_date"`
	Why     string   `json:"last_error_message"`
}

// setHook makes the webhook what it should be, calling setWebhook only when it
// is not. The error is ErrToken; nil also when ctx ended.
func (a *Adapter) setHook(ctx context.Context) error {
	for wait := newBackoff(time.Second, time.Minute); ; {
		err := a.setHookOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if unauthorized(err) {
			a.state.set(func(s *Status) { s.Connected, s.Err = false, wordsBadToken })
			a.log.Error(wordsBadToken, "err", err)
			return ErrToken
		}
		a.state.set(func(s *Status) { s.Connected, s.Err = false, wordsHookUnset })
		a.log.Warn(wordsHookUnset, "err", err)
		d := wait.next()
		if e, ok := errors.AsType[*apiError](err); ok {
			d = max(d, e.retryAfter)
		}
		if !pause(ctx, d) {
			return nil
		}
	}
}

func (a *Adapter) setHookOnce(ctx context.Context) error {
	var info hookInfo
	if err := a.api.call(ctx, "getWebhookInfo", struct{}{}, &info); err != nil {
		return err
	}
	data, _, err := a.docs.Doc(ctx, a.docName("webhook"))
	if err != nil {
		return err
	}
	want := a.hookHash()
	now := time.Now()
	if info.URL == a.hook.URL && string(data) == want && sameKinds(info.Allowed, allowed) {
		words := ""
		if now.Sub(a.clock.local(info.Failed)) < hookEvery {
			words = wordsHookFails(info.Why)
		}
		// A delivery that failed is told, and is no reason to be out of service: one
		// 503 of a gateway that stopped or spared would keep all of them so for
		// hookEvery, and for ever behind a balancer that asks /readyz.
		a.state.set(func(s *Status) { s.Connected, s.Err, s.LastPoll = true, words, now })
		return nil
	}
	// Noted first: a webhook that nobody remembers could not be taken away again.
	if err := a.noteHook(ctx, hookSetting); err != nil {
		return err
	}
	err = a.api.call(ctx, "setWebhook", struct {
		URL     string   `json:"url"`
		Secret  string   `json:"secret_token"`
		Allowed []string `json:"allowed_updates"`
		Most    int      `json:"max_connections"`
	}{a.hook.URL, a.hook.Secret, allowed, 40}, nil)
	if err != nil {
		return err
	}
	a.log.Info("webhook set", "url", a.hook.URL)
	a.state.set(func(s *Status) { s.Connected, s.Err, s.LastPoll = true, "", now })
	return a.noteHook(ctx, want)
}

// takeHookAway removes the webhook that this gateway set when it was pushed to,
// and keeps what waits. It reports false for one that somebody else set (T28).
func (a *Adapter) takeHookAway(ctx context.Context) bool {
	data, _, err := a.docs.Doc(ctx, a.docName("webhook"))
	if err != nil || len(data) == 0 || string(data) == hookOff {
		return false
	}
	err = a.api.call(ctx, "deleteWebhook", struct {
		Drop bool `json:"drop_pending_updates"`
	}{false}, nil)
	if err == nil {
		err = a.noteHook(ctx, hookOff)
	}
	if err != nil {
		a.log.Warn("own webhook not taken away", "err", err)
		return false
	}
	a.log.Info("own webhook taken away: polling")
	return true
}

func (a *Adapter) noteHook(ctx context.Context, what string) error {
	return a.change(ctx, "webhook", func([]byte) ([]byte, error) { return []byte(what), nil })
}

// hookHash names a webhook with its secret, without telling it.
func (a *Adapter) hookHash() string {
	data, err := json.Marshal([]any{a.hook.URL, a.hook.Secret, allowed})
	if err != nil {
		panic("telegram: strings do not encode: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sameKinds(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
