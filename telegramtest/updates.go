package telegramtest

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// getUpdates answers when there is something, or after the timeout asked for.
func (s *Server) getUpdates(ctx context.Context, p params) (any, *refusal) {
	s.mu.Lock()
	if s.hook != nil {
		s.mu.Unlock()
		return nil, &refusal{Code: 409, Description: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
	}
	if s.poller != nil {
		close(s.poller)
	}
	mine := make(chan struct{})
	s.poller = mine
	if p.has("allowed_updates") {
		var kinds []string
		if err := p.decode("allowed_updates", &kinds); err != nil {
			s.poller = nil
			s.mu.Unlock()
			return nil, badRequest("can't parse allowed_updates")
		}
		s.allowLocked(kinds)
	} else {
		s.problemLocked("getUpdates without allowed_updates: the server keeps what was asked for before")
	}
	limit := int(p.int("limit"))
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	offset := p.int("offset")
	s.forgetLocked(offset)
	s.asked = max(s.asked, offset)
	s.changeLocked() // what it confirms is gone
	wait := time.NewTimer(time.Duration(min(p.int("timeout"), 50)) * time.Second)
	defer wait.Stop()
	timedOut := p.int("timeout") == 0
	for {
		if out := s.readyLocked(offset, limit); len(out) > 0 || timedOut {
			if s.poller == mine {
				s.poller = nil
			}
			s.mu.Unlock()
			return out, nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-wait.C:
			timedOut = true
		case <-mine:
			return nil, &refusal{Code: 409, Description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
		case <-ctx.Done():
			s.mu.Lock()
			if s.poller == mine {
				s.poller = nil
			}
			s.mu.Unlock()
			return nil, badRequest("client is gone")
		}
		s.mu.Lock()
	}
}

// forgetLocked confirms what is below offset and drops what is over a day old.
// An offset from before a quiet week may lie far above the newest id: it
// confirms that one too.
func (s *Server) forgetLocked(offset int64) {
	now := time.Now()
	s.queue = slices.DeleteFunc(s.queue, func(q queued) bool {
		return q.id < offset || now.Sub(q.at) > 24*time.Hour
	})
}

// kinds are the updates a poll chooses among. Others are given to everyone, so
// that tests can try what a client makes of the unknown.
var kinds = []string{"message", "edited_message", "channel_post", "edited_channel_post", "callback_query", "inline_query", "poll",
	"my_chat_member", "chat_member", "chat_join_request", "message_reaction", "message_reaction_count", "stopped_message_generation"}

// onlyNamed are the kinds that come only when they are named.
var onlyNamed = []string{"chat_member", "message_reaction", "message_reaction_count"}

// allowLocked sets the kinds that come from now on; none = the default.
func (s *Server) allowLocked(list []string) {
	s.allowed = nil
	if len(list) == 0 {
		return
	}
	s.allowed = make(map[string]bool)
	for _, k := range list {
		s.allowed[k] = true
	}
}

func (s *Server) wantedLocked(kind string) bool {
	if s.allowed == nil {
		return !slices.Contains(onlyNamed, kind)
	}
	return s.allowed[kind] || !slices.Contains(kinds, kind)
}

func (s *Server) readyLocked(offset int64, limit int) []json.RawMessage {
	out := []json.RawMessage{}
	for _, q := range s.queue {
		if q.id < offset { // came while the poll was out
			continue
		}
		if !s.wantedLocked(q.kind) {
			continue
		}
		if len(out) < limit {
			out = append(out, q.raw)
		}
	}
	return out
}
