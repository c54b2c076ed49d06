// Package ops serves operators over HTTP: /healthz, /readyz and /api/status.
// Answers are read at the time of asking and carry no message text, no token
// and no chat's names (I13). It starts no goroutines but the HTTP server's own,
// and Run waits for those.
package ops

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Options are what a Server is built from.
type Options struct {
	// Token must be given by every request but /healthz; empty: the listener is
	// on loopback.
	Token func() string
	// Ready lists why the gateway cannot serve now; empty = it can.
	Ready func(ctx context.Context) []string
	// Status is the value of /api/status.
	Status func(ctx context.Context) (any, error)
	Log    *slog.Logger
}

// A Server answers operators. Its methods may be called from any goroutine.
type Server struct{ o Options }

// New makes a server.
func New(o Options) *Server { return &Server{o} }

// Handler is the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok\n")) // the client is gone: nobody to tell
	})
	mux.Handle("GET /readyz", s.guard(s.ready))
	mux.Handle("GET /api/status", s.guard(s.status))
	return mux
}

// guard asks for the token, compared in constant time, and keeps pages of
// other sites out: a browser on this machine may not read what they asked for.
func (s *Server) guard(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
			http.Error(w, "cross-site requests are refused", http.StatusForbidden)
			return
		}
		if want := s.o.Token(); want != "" {
			got, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
			if subtle.ConstantTimeCompare(a[:], b[:]) != 1 || !bearer {
				http.Error(w, "a bearer token is required", http.StatusUnauthorized)
				return
			}
		} else if !localHost(r.Host) {
			// A name of another site that resolves to this machine.
			http.Error(w, "this name is not served here", http.StatusForbidden)
			return
		}
		next(w, r)
	})
}

// localHost reports whether a Host header names this machine itself.
func localHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), 2*time.Second)
	defer stop()
	reasons := s.o.Ready(ctx)
	code := http.StatusOK
	if len(reasons) > 0 {
		code = http.StatusServiceUnavailable
	}
	reply(w, code, map[string]any{"ready": len(reasons) == 0, "reasons": append([]string{}, reasons...)})
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	v, err := s.o.Status(r.Context())
	if err != nil {
		s.o.Log.WarnContext(r.Context(), "status failed", "err", err)
		http.Error(w, "the store does not answer; see the log", http.StatusServiceUnavailable)
		return
	}
	reply(w, http.StatusOK, v)
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone: nobody to tell
}

// Run serves on l until ctx ends.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		cleanup, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer stop()
		_ = srv.Shutdown(cleanup) // what is left is cut off with the process
	}()
	err := srv.Serve(l)
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}
