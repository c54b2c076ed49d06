package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A hook is a webhook as setWebhook set it.
type hook struct {
	url     string
	secret  string
	allowed []string
	err     string // of the newest failed delivery
}

// SetWebhook sets a webhook that leads elsewhere, or takes the webhook away.
func (s *Server) SetWebhook(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = nil
	if on {
		s.hook = &hook{url: "https://elsewhere.example/hook"}
	}
	s.changeLocked()
}

// Webhook gives where updates are pushed to, empty when they are polled.
func (s *Server) Webhook() (url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook == nil {
		return ""
	}
	return s.hook.url
}

func (s *Server) setWebhookLocked(p params) (any, *refusal) {
	h := &hook{url: p.str("url"), secret: p.str("secret_token")}
	if p.decode("allowed_updates", &h.allowed) != nil {
		return nil, badRequest("can't parse allowed_updates")
	}
	if !p.has("allowed_updates") {
		s.problemLocked("setWebhook without allowed_updates: the server keeps what was asked for before")
	}
	if h.url == "" { // takes it away
		return s.deleteWebhookLocked(p)
	}
	if len(h.url) < 8 || h.url[:8] != "https://" {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	for _, r := range h.secret {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-') {
			return nil, badRequest("secret token contains unallowed characters")
		}
	}
	if p.bool("drop_pending_updates") {
		s.problemLocked("setWebhook drops updates that people wrote")
		s.queue = nil
	}
	s.hook = h
	if p.has("allowed_updates") {
		s.allowLocked(h.allowed)
	}
	return true, nil
}

func (s *Server) deleteWebhookLocked(p params) (any, *refusal) {
	if p.bool("drop_pending_updates") {
		s.problemLocked("deleteWebhook drops updates that people wrote")
		s.queue = nil
	}
	s.hook = nil
	return true, nil
}

func (s *Server) webhookInfoLocked() (any, *refusal) {
	out := map[string]any{"url": "", "has_custom_certificate": false, "pending_update_count": len(s.queue)}
	if h := s.hook; h != nil {
		out["url"], out["allowed_updates"] = h.url, h.allowed
		if h.err != "" {
			out["last_error_message"], out["last_error_date"] = h.err, time.Now().Unix()
		}
	}
	return out, nil
}

// Push delivers updates to the webhook's handler until ctx ends, as Telegram's
// server does: one request at a time for each chat, in order; what is not
// answered with 2xx is sent again later and holds up its chat.
func (s *Server) Push(ctx context.Context, handler http.Handler) {
	var wg sync.WaitGroup
	defer wg.Wait()
	busy := make(map[int64]bool)          // chats with a request out; guarded by s.mu
	after := make(map[int64]time.Time)    // chats whose last request failed
	wait := make(map[int64]time.Duration) // the next pause of a chat
	for {
		s.mu.Lock()
		changed, next := s.changed, time.Hour
		now := time.Now()
		if s.hook != nil {
			seen := make(map[int64]bool)
			for _, q := range slices.Clone(s.queue) {
				chat := chatOf(q.raw)
				if !s.wantedLocked(q.kind) {
					s.dropLocked(q.id)
					continue
				}
				if seen[chat] || busy[chat] {
					seen[chat] = true
					continue
				}
				seen[chat] = true
				if d := after[chat].Sub(now); d > 0 {
					next = min(next, d)
					continue
				}
				busy[chat] = true
				secret := s.hook.secret
				wg.Go(func() {
					err := post(ctx, handler, secret, q.raw)
					s.mu.Lock()
					defer s.mu.Unlock()
					busy[chat] = false
					if err == "" {
						s.dropLocked(q.id)
						delete(after, chat)
						delete(wait, chat)
					} else {
						wait[chat] = min(max(2*wait[chat], time.Second), time.Minute)
						after[chat] = time.Now().Add(wait[chat])
						if s.hook != nil {
							s.hook.err = err
						}
					}
					s.changeLocked()
				})
			}
		}
		s.mu.Unlock()
		t := time.NewTimer(next)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

func (s *Server) dropLocked(id int64) {
	s.queue = slices.DeleteFunc(s.queue, func(q queued) bool { return q.id == id })
}

// post makes one request of the webhook; empty = it was taken.
func post(ctx context.Context, handler http.Handler, secret string, raw []byte) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(raw))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	w := &status{code: http.StatusOK, header: make(http.Header)}
	handler.ServeHTTP(w, r)
	if ctx.Err() != nil {
		return "client is gone"
	}
	if w.code < 200 || w.code > 299 {
		return "Wrong response from the webhook: " + http.StatusText(w.code)
	}
	return ""
}

// status keeps the status of an answer.
type status struct {
	code   int
	wrote  bool
	header http.Header
}

func (s *status) Header() http.Header { return s.header }

func (s *status) Write(p []byte) (int, error) {
	s.wrote = true
	return len(p), nil
}

func (s *status) WriteHeader(code int) {
	if !s.wrote {
		s.code, s.wrote = code, true
	}
}

// chatOf finds the chat of a raw update, 0 if it has none.
func chatOf(raw []byte) int64 {
	var u map[string]json.RawMessage
	if json.Unmarshal(raw, &u) != nil {
		return 0
	}
	for _, field := range u {
		var in struct {
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
			Message struct {
				Chat struct {
					ID int64 `json:"id"`
				} `json:"chat"`
			} `json:"message"`
		}
		if json.Unmarshal(field, &in) != nil {
			continue
		}
		if in.Chat.ID != 0 {
			return in.Chat.ID
		}
		if in.Message.Chat.ID != 0 {
			return in.Message.Chat.ID
		}
	}
	return 0
}
