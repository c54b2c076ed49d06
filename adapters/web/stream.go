package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"coxswain/session"
)

// Limits of streams.
const (
	streamsMost = 64                    // at once; a page has one
	heartbeat   = 10 * time.Second      // proxies close what is silent for a minute, and a page takes 25 s of silence for a lost connection
	writeEach   = 10 * time.Second      // for one write: a page that is gone is noticed
	pace        = 40 * time.Millisecond // between two writes: text streams in smoothly, and never per token
)

// A stream writes to one page. It belongs to its handler's goroutine.
type stream struct {
	a     *Adapter
	key   session.Key
	w     http.ResponseWriter
	rc    *http.ResponseController
	boot  string
	n     int64        // newest reply written
	last  session.View // as the page has it
	shown bool         // the page has a state
	err   error        // of the first write that failed
}

// events answers with server-sent events until the page goes or Run ends:
//
//	hello  the name of this process, so that a page notices a restart
//	state  the live view, or what changed of it
//	rows   nothing but a hint: read the transcript from your cursor
//	fate   what became of a message
//	reply  a command's answer, a notice, or that a final answer was delivered
//	beat   that the connection stands
//
// An id counts replies within a process: a page that comes back with
// Last-Event-ID gets those it missed, after a restart all there are.
func (a *Adapter) events(w http.ResponseWriter, r *http.Request, key session.Key, _ session.Principal) {
	if a.streams.Add(1) > streamsMost {
		a.streams.Add(-1)
		fail(w, http.StatusServiceUnavailable, wordsStreams)
		return
	}
	defer a.streams.Add(-1)
	s := &stream{a: a, key: key, w: w, rc: http.NewResponseController(w), boot: a.boot}
	s.n = lastReply(r, a.boot)
	// The server's limits are for answers with an end; this one has its own.
	_ = s.rc.SetReadDeadline(time.Time{})
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // or a proxy would collect events
	w.WriteHeader(http.StatusOK)

	room, sub := a.rooms.join(key, s.n)
	defer room.leave(sub)
	s.raw("retry: 1000\n\n")
	s.event("hello", map[string]string{"boot": a.boot})
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	slow := time.NewTimer(0)
	defer slow.Stop()
	for s.err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-a.ending:
			return
		case <-beat.C:
			s.event("beat", struct{}{})
			s.flush()
			continue
		case <-sub.wake:
		}
		s.write(room.take(sub))
		slow.Reset(pace)
		select {
		case <-slow.C:
		case <-r.Context().Done():
			return
		case <-a.ending:
			return
		}
	}
}

// lastReply is the newest reply a page has from this process. A stream that is
// opened by hand gives it as ?after=.
func lastReply(r *http.Request, boot string) int64 {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("after")
	}
	of, n, _ := strings.Cut(id, ".")
	last, err := strconv.ParseInt(n, 10, 64)
	if of != boot || err != nil {
		return 0
	}
	return last
}

func (s *stream) write(n news) {
	for _, f := range n.fates {
		s.event("fate", f)
	}
	for _, it := range n.replies {
		s.n = it.N
		s.event("reply", it)
	}
	if n.state {
		s.state()
	}
	if n.rows {
		s.event("rows", struct{}{})
	}
	s.flush()
}

// state writes the newest view, asked of its owner: what Show was given may
// come late and in any order.
func (s *stream) state() {
	v, ok := s.a.hub.View(s.key)
	if !ok || v.Turn == 0 {
		s.shown, s.last = false, session.View{}
		s.event("state", state{Whole: true, Phase: "idle", Now: time.Now().UnixMilli()})
		return
	}
	v.Text = settled(v.Text)
	s.event("state", diff(s.last, v, !s.shown, time.Now()))
	s.shown, s.last = true, v
}

func (s *stream) event(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("web: an event does not encode: " + err.Error())
	}
	s.raw(fmt.Sprintf("id: %s.%d\nevent: %s\ndata: %s\n\n", s.boot, s.n, name, data))
}

func (s *stream) raw(text string) {
	if s.err != nil {
		return
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeEach)) // not on every writer; then its own limits hold
	_, s.err = s.w.Write([]byte(text))
}

func (s *stream) flush() {
	if s.err == nil {
		s.err = s.rc.Flush()
	}
}
