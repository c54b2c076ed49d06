package discordtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A room is what the headers say of a bucket.
type room struct {
	limit, remaining int
	reset            time.Duration
}

// roomLocked takes one send of a channel's bucket; ok is false when there is
// none left.
func (s *Server) roomLocked(channel string) (r room, ok bool) {
	limit, window := s.Limit, s.Window
	if limit == 0 {
		return room{limit: 1000, remaining: 999, reset: time.Second}, true
	}
	now := time.Now()
	list := s.sends[channel]
	for len(list) > 0 && now.Sub(list[0]) >= window {
		list = list[1:]
	}
	if ok = len(list) < limit; ok {
		list = append(list, now)
	}
	s.sends[channel] = list
	return room{limit, limit - len(list), window - now.Sub(list[0])}, ok
}

func (r room) write(h http.Header, bucket string) {
	secs := r.reset.Seconds()
	h.Set("X-RateLimit-Limit", strconv.Itoa(r.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(r.remaining))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(time.Now().UnixMilli())/1000+secs))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", secs))
	h.Set("X-RateLimit-Bucket", bucket)
}

// Invalid tells how many answers Discord would count against the address of the
// bot: 401, 403, and 429 but of shared limits. 10,000 in ten minutes ban it.
func (s *Server) Invalid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invalid
}

// SetLogins sets how many sessions the bot may still begin today.
func (s *Server) SetLogins(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = n
}

func (s *Server) countLocked(f *Fault, status int) {
	if status == 401 || status == 403 || status == 429 && (f == nil || !f.Shared) {
		s.invalid++
	}
}
