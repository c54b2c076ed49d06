package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A rig is a server whose answers a test sets.
type rig struct {
	token   string
	reasons []string
	status  any
	err     error
	log     strings.Builder
}

func (r *rig) server() *Server {
	return New(Options{
		Token:  func() string { return r.token },
		Ready:  func(context.Context) []string { return r.reasons },
		Status: func(context.Context) (any, error) { return r.status, r.err },
		Log:    slog.New(slog.NewTextHandler(&r.log, nil)),
	})
}

// get asks for a path at host with headers "Name: value".
func (r *rig) get(path, host string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("GET", path, nil)
	req.Host = host
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.server().Handler().ServeHTTP(w, req)
	return w
}

const here = "127.0.0.1:9090"

// /healthz says that the process can serve and nothing more; it asks for no
// token, for a supervisor has none (§2.5).
func TestHealth(t *testing.T) {
	r := &rig{token: "secret", reasons: []string{"store"}, err: errors.New("down")}
	if w := r.get("/healthz", "any.example", "Sec-Fetch-Site: cross-site"); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}

// /readyz is 503 with the reasons while there are any (§2.5).
func TestReady(t *testing.T) {
	for _, c := range []struct {
		reasons []string
		code    int
		body    string
	}{
		{nil, 200, `{"ready":true,"reasons":[]}`},
		{[]string{"telegram: connecting", "draining"}, 503, `{"ready":false,"reasons":["telegram: connecting","draining"]}`},
	} {
		r := &rig{reasons: c.reasons}
		w := r.get("/readyz", here)
		if w.Code != c.code || compact(t, w) != c.body {
			t.Errorf("got %d %s; want %d %s", w.Code, w.Body, c.code, c.body)
		}
		if got := w.Result().Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%d is of type %q; want application/json", w.Code, got)
		}
	}
}

func compact(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var v json.RawMessage
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// /api/status is what Status gives; its failure is told in public words, and
// in the log in its own (I13).
func TestStatus(t *testing.T) {
	r := &rig{status: map[string]any{"draining": false, "uptime_s": 1.5}}
	w := r.get("/api/status", here)
	if w.Code != 200 || compact(t, w) != `{"draining":false,"uptime_s":1.5}` || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
	}
	r.err = errors.New("dial tcp 10.0.0.7:6379: refused")
	if w := r.get("/api/status", here); w.Code != 503 || strings.Contains(w.Body.String(), "10.0.0.7") || !strings.Contains(r.log.String(), "10.0.0.7") {
		t.Errorf("got %d %q, logged %q", w.Code, w.Body, &r.log)
	}
}

// With a token every page but /healthz asks for it, whole and by name; it may
// change while the server runs (§2.5, rotation).
func TestToken(t *testing.T) {
	r := &rig{token: "secret", status: 1}
	for _, path := range []string{"/readyz", "/api/status"} {
		for auth, want := range map[string]int{
			"": 401, "Bearer secret": 200, "Bearer Secret": 401, "Bearer secre": 401, "Bearer secrets": 401, "Bearer ": 401,
			"Bearer": 401, "Basic secret": 401, "secret": 401, "Bearer  secret": 401,
		} {
			w := r.get(path, "ops.example", "Authorization: "+auth)
			if w.Code != want {
				t.Errorf("%s with %q: got %d; want %d", path, auth, w.Code, want)
			}
			if want == 401 && (strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "ready")) {
				t.Errorf("%s with %q tells %q", path, auth, w.Body)
			}
		}
	}
	r.token = "new"
	if w := r.get("/readyz", here, "Authorization: Bearer secret"); w.Code != 401 {
		t.Errorf("the old token after a change: got %d", w.Code)
	}
	if w := r.get("/readyz", here, "Authorization: Bearer new"); w.Code != 200 {
		t.Errorf("the new token: got %d", w.Code)
	}
	if r.log.Len() != 0 {
		t.Errorf("logged %q", &r.log)
	}
}

// Without a token only this machine's own names are served: another name that
// resolves to it is a page of another site (DNS rebinding).
func TestHost(t *testing.T) {
	r := &rig{status: 1}
	for host, want := range map[string]int{
		here: 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "localhost": 200, "localhost:9090": 200, "[::1]:9090": 200, "[::1]": 200,
		"": 403, "evil.example": 403, "evil.example:9090": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"10.0.0.7:9090": 403, "0.0.0.0:9090": 403, "[::]:9090": 403, "169.254.169.254": 403, "127.0.0.1@evil.example": 403,
	} {
		for _, path := range []string{"/readyz", "/api/status"} {
			if w := r.get(path, host); w.Code != want {
				t.Errorf("%s at %q: got %d; want %d", path, host, w.Code, want)
			}
		}
	}
}

// A browser says where a request comes from: pages of other sites, and of
// other hosts of this one, read nothing, with the token or without.
func TestSecFetchSite(t *testing.T) {
	r := &rig{status: 1}
	for site, want := range map[string]int{"none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403, "SAME-ORIGIN": 403, "x": 403} {
		if w := r.get("/api/status", here, "Sec-Fetch-Site: "+site); w.Code != want {
			t.Errorf("%q: got %d; want %d", site, w.Code, want)
		}
	}
	r.token = "secret"
	if w := r.get("/api/status", here, "Sec-Fetch-Site: cross-site", "Authorization: Bearer secret"); w.Code != 403 {
		t.Errorf("cross-site with the token: got %d", w.Code)
	}
	if w := r.get("/nothing", here); w.Code != 404 {
		t.Errorf("an unknown page: got %d", w.Code)
	}
	req := httptest.NewRequest("POST", "/api/status", nil)
	req.Host = here
	w := httptest.NewRecorder()
	if r.server().Handler().ServeHTTP(w, req); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", w.Code)
	}
}

// Run serves until its context ends, and tells a listener's failure.
func TestRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	r := &rig{status: 1}
	go func() { gone <- r.server().Run(ctx, l) }()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(fmt.Sprintf("http://%s/readyz", l.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 {
		t.Errorf("got %d, %v", resp.StatusCode, err)
	}
	stop()
	if err := <-gone; err != nil {
		t.Errorf("ended with %v", err)
	}
	if resp, err := client.Get(fmt.Sprintf("http://%s/readyz", l.Addr())); err == nil {
		_ = resp.Body.Close() // the test has failed already
		t.Error("it still serves")
	}
	if err := r.server().Run(t.Context(), l); err == nil {
		t.Error("a closed listener is no error")
	}
}
