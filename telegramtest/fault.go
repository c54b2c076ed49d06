package telegramtest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Fault makes calls go wrong. Exactly one of Code, HTML, LoseReply, Refuse and
// Hang is set, or Delay alone.
type Fault struct {
	Method string // of the calls meant; empty = any but getUpdates; "file" = downloads
	Chat   int64  // of the calls meant; 0 = any
	Times  int    // how many; 0 = one, below 0 = for ever

	Code        int // an answer of the API that says no
	Description string
	RetryAfter  int // seconds
	MigrateTo   int64

	HTML      int           // an answer with this status that is not the API's
	LoseReply bool          // it is done, then the connection is cut
	Refuse    bool          // no connection is made (RoundTrip; else it is cut before anything is done)
	Hang      bool          // nothing is done and no answer comes until the client gives up
	Delay     time.Duration // the answer comes this much later
}

// Fault adds a fault. Faults are looked at in the order they were added.
func (s *Server) Fault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Heal takes all faults away.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) faultLocked(method string, chat int64) *Fault {
	for i, f := range s.faults {
		any := f.Method == "" && method != "getUpdates"
		if f.Method != method && !any || f.Chat != 0 && f.Chat != chat {
			continue
		}
		s.spendLocked(i)
		return f
	}
	return nil
}

// refusing reports whether the next call must find no connection, which is
// before its parameters are read: Chat does not matter then.
func (s *Server) refusing(path string) bool {
	method := path[strings.LastIndexByte(path, '/')+1:]
	if strings.HasPrefix(path, "/file/") {
		method = "file"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.Method == method || f.Method == "" && method != "getUpdates" {
			if f.Refuse {
				s.spendLocked(i)
			}
			return f.Refuse // the first fault that is meant comes first
		}
	}
	return false
}

// spendLocked counts one use of a fault.
func (s *Server) spendLocked(i int) {
	if f := s.faults[i]; f.Times > 0 {
		if f.Times--; f.Times == 0 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		}
	}
}

func (f *Fault) onlyDelays() bool {
	return f.Code == 0 && f.HTML == 0 && !f.LoseReply && !f.Refuse && !f.Hang
}

func (f *Fault) answer(w http.ResponseWriter, r *http.Request) error {
	switch {
	case f.Hang:
		<-r.Context().Done()
		return r.Context().Err()
	case f.Refuse:
		return errNoReply
	case f.HTML != 0:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.HTML)
		_, err := w.Write([]byte("<html><body>" + http.StatusText(f.HTML) + "</body></html>"))
		return err
	}
	no := refusal{Code: f.Code, Description: f.Description}
	if f.RetryAfter != 0 || f.MigrateTo != 0 {
		no.Parameters = &struct {
			RetryAfter int   `json:"retry_after,omitempty"`
			MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
		}{f.RetryAfter, f.MigrateTo}
	}
	return answer(w, f.Code, no)
}

// level is a bucket of one chat's messages.
type level struct {
	left float64
	at   time.Time
}

// floodLocked judges one message by the API's limits.
func (s *Server) floodLocked(chat int64, cost float64) *refusal {
	if !s.Flood {
		return nil
	}
	now := time.Now()
	retry := 0
	for _, b := range []struct {
		chat              int64
		rate, burst, cost float64
	}{{chat, 1, 4, cost}, {0, 30, 40, 1}} { // overall a draft is a message like any other
		l := s.buckets[b.chat]
		if l == nil {
			l = &level{b.burst, now}
			s.buckets[b.chat] = l
		}
		l.left = min(b.burst, l.left+now.Sub(l.at).Seconds()*b.rate) - b.cost
		l.at = now
		if l.left < 0 {
			l.left += b.cost
			retry = max(retry, 3)
		}
	}
	if chat < 0 {
		kept := s.sends[chat][:0]
		for _, t := range s.sends[chat] {
			if now.Sub(t) < time.Minute {
				kept = append(kept, t)
			}
		}
		if len(kept) >= 20 {
			retry = max(retry, int(time.Minute/time.Second-now.Sub(kept[0])/time.Second))
		}
		s.sends[chat] = append(kept, now)
	}
	if retry == 0 {
		return nil
	}
	no := &refusal{Code: 429, Description: fmt.Sprintf("Too Many Requests: retry after %d", retry)}
	no.Parameters = &struct {
		RetryAfter int   `json:"retry_after,omitempty"`
		MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
	}{RetryAfter: retry}
	return no
}
