package discordtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A refusal is an answer that says no.
type refusal struct {
	status, code int
	message      string
	detail       string // field of a 50035
}

func (s *Server) rest(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v9/")
	if !ok {
		path, ok = strings.CutPrefix(r.URL.EscapedPath(), "/api/v10/")
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, bodyMost))
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	c := Call{Method: r.Method, Path: path, At: time.Now()}
	var files []File
	formed := true
	if boundary, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "multipart/form-data; boundary="); ok {
		data, files, formed = readForm(data, boundary)
	}
	if len(data) > 0 && data[0] == '{' {
		_ = json.Unmarshal(data, &c.Body)
	}
	if !strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (") {
		s.problemLocked("%s %s: the User-Agent does not begin with DiscordBot", r.Method, path)
	}
	f := s.faultLocked(r.Method, path)
	if f != nil && f.Hang {
		s.mu.Unlock()
		<-r.Context().Done()
		return
	}
	out, no := any(nil), s.faulted(f)
	bucket, left := bucketOf(r.Method, path), room{limit: 1000, remaining: 999, reset: time.Second}
	if channel, ok := strings.CutPrefix(bucket, "POST messages "); ok && no == nil {
		var free bool
		if left, free = s.roomLocked(channel); !free {
			secs := left.reset.Seconds()
			f = &Fault{Status: http.StatusTooManyRequests, RetryAfter: secs}
			no = s.faulted(f)
		}
	}
	if no == nil && formed {
		no = s.takeLocked(path, files)
	} else if no == nil {
		no = &refusal{status: 400, code: 50035, message: "Invalid Form Body"}
	}
	if no == nil {
		out, no = s.doLocked(r, path, data)
	}
	s.uploaded = nil
	c.Status = http.StatusOK
	switch {
	case no != nil:
		c.Status = no.status
	case out == nil:
		c.Status = http.StatusNoContent
	}
	s.calls = append(s.calls, c)
	s.countLocked(f, c.Status)
	body, _ := json.Marshal(out)
	s.changeLocked()
	s.mu.Unlock()
	switch {
	case f != nil && f.LoseReply:
		panic(http.ErrAbortHandler)
	case f != nil && f.Raw != nil:
		f.Raw.write(w)
		return
	case f != nil && f.HTML != 0:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(f.RetryAfter)))
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.HTML)
		_, _ = io.WriteString(w, "<html>something between</html>")
		return
	case no != nil:
		left.write(w.Header(), bucket)
		writeRefusal(w, f, no)
		return
	}
	left.write(w.Header(), bucket)
	if out != nil { // a 204 has no type: clients decode what has one
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(c.Status)
	if out != nil {
		_, _ = w.Write(body)
	}
}

// bucketOf names what calls share a limit. Ids that do not count are left out.
func bucketOf(method, path string) string {
	p := strings.Split(path, "/")
	if p[0] == "channels" && len(p) == 3 && p[2] == "messages" {
		return method + " messages " + p[1]
	}
	return method + " " + strings.Join(p[:min(len(p), 2)], " ")
}

func (r *Raw) write(w http.ResponseWriter) {
	for k, v := range r.Header {
		w.Header().Set(k, v)
	}
	var text string
	if json.Unmarshal(r.Body, &text) != nil {
		text = string(r.Body)
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(r.Status)
	_, _ = io.WriteString(w, text)
}

func (s *Server) faulted(f *Fault) *refusal {
	switch {
	case f == nil || f.LoseReply:
		return nil
	case f.HTML != 0:
		return &refusal{status: f.HTML}
	case f.Raw != nil:
		return &refusal{status: f.Raw.Status}
	}
	return &refusal{status: f.Status, code: f.Code, message: f.Message}
}

func writeRefusal(w http.ResponseWriter, f *Fault, no *refusal) {
	o := map[string]any{"message": no.message, "code": no.code}
	if no.detail != "" {
		o["errors"] = map[string]any{no.detail: map[string]any{"_errors": []any{map[string]any{"code": "INVALID", "message": "invalid"}}}}
	}
	if f != nil && no.status == http.StatusTooManyRequests {
		o = map[string]any{"message": "You are being rate limited.", "retry_after": f.RetryAfter, "global": f.Global}
		w.Header().Set("Retry-After", fmt.Sprint(math.Ceil(f.RetryAfter)))
		w.Header().Set("X-RateLimit-Reset-After", fmt.Sprint(f.RetryAfter))
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Scope", "user")
		if f.Global {
			w.Header().Set("X-RateLimit-Global", "true")
			w.Header().Set("X-RateLimit-Scope", "global")
		}
		if f.Shared {
			w.Header().Set("X-RateLimit-Scope", "shared")
		}
	}
	body, _ := json.Marshal(o)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(no.status)
	_, _ = w.Write(body)
}

// doLocked does one call. No output means 204.
func (s *Server) doLocked(r *http.Request, path string, data []byte) (any, *refusal) {
	p := strings.Split(path, "/")
	for i := range p {
		if word, err := url.PathUnescape(p[i]); err == nil {
			p[i] = word // some clients write %40me
		}
	}
	open := p[0] == "interactions" || p[0] == "webhooks" || p[0] == "gateway" && len(p) == 1
	if !open && r.Header.Get("Authorization") != "Bot "+Token {
		return nil, &refusal{status: 401, message: "401: Unauthorized"}
	}
	kind := r.Header.Get("Content-Type")
	if len(data) > 0 && kind != "application/json" && !strings.HasPrefix(kind, "multipart/form-data;") {
		return nil, &refusal{status: 400, code: 50109, message: "The request body contains invalid JSON."}
	}
	switch is := func(method string, n int) bool { return r.Method == method && len(p) == n }; {
	case p[0] == "gateway" && is("GET", 1):
		return map[string]any{"url": "ws" + strings.TrimPrefix(s.url, "http")}, nil
	case p[0] == "gateway" && is("GET", 2) && p[1] == "bot":
		return map[string]any{"url": "ws" + strings.TrimPrefix(s.url, "http"), "shards": 1, "session_start_limit": map[string]any{
			"total": 1000, "remaining": max(s.logins, 0), "reset_after": 14400000, "max_concurrency": 1}}, nil
	case p[0] == "users" && p[1] == "@me" && is("GET", 2):
		return botUser, nil
	case p[0] == "users" && is("POST", 3) && p[1] == "@me" && p[2] == "channels":
		return s.dmLocked(data)
	case p[0] == "applications" && is("PUT", 3) && p[1] == AppID && p[2] == "commands":
		return s.setCommandsLocked(data)
	case p[0] == "interactions" && is("POST", 4):
		return s.ackLocked(p[1], p[2], data, r.URL.Query().Get("with_response") == "true")
	case p[0] == "webhooks" && len(p) >= 3 && p[1] == AppID:
		return s.webhookLocked(r.Method, p[2], p[3:], data)
	case p[0] != "channels" || len(p) < 2:
		return nil, &refusal{status: 404, message: "404: Not Found"}
	}
	c := s.channels[p[1]]
	switch {
	case c == nil:
		return nil, &refusal{status: 404, code: 10003, message: "Unknown Channel"}
	case s.kicked[c.Guild]:
		return nil, &refusal{status: 403, code: 50001, message: "Missing Access"}
	case s.out[c.Guild]:
		return nil, &refusal{status: 503, message: "503: Service Unavailable"}
	}
	switch is := func(method string, n int) bool { return r.Method == method && len(p) == n }; {
	case is("GET", 2):
		return s.channelLocked(c), nil
	case is("PATCH", 2):
		var q struct{ Archived *bool }
		if json.Unmarshal(data, &q) != nil || q.Archived == nil {
			return nil, invalid("archived")
		}
		if c.Locked {
			return nil, &refusal{status: 403, code: 50013, message: "Missing Permissions"}
		}
		s.archiveLocked(c, *q.Archived)
		return s.channelLocked(c), nil
	case is("POST", 3) && p[2] == "typing":
		return nil, nil
	case is("POST", 3) && p[2] == "messages":
		return s.sendLocked(c, data)
	case is("POST", 3) && p[2] == "threads":
		return s.openThreadLocked(c, "", data)
	case is("POST", 5) && p[2] == "messages" && p[4] == "threads":
		return s.openThreadLocked(c, p[3], data)
	case is("GET", 3) && p[2] == "messages":
		return s.historyLocked(c, r.URL.Query())
	}
	if len(p) < 4 || p[2] != "messages" {
		return nil, &refusal{status: 404, message: "404: Not Found"}
	}
	m := s.findLocked(c.ID, p[3])
	switch {
	case m == nil:
		return nil, &refusal{status: 404, code: 10008, message: "Unknown Message"}
	case r.Method == "GET" && len(p) == 4:
		o := s.objectLocked(m)
		if s.onGet != nil {
			s.onGet(o)
		}
		return o, nil
	case c.Archived:
		return nil, &refusal{status: 400, code: 50083, message: "Thread is archived"}
	case r.Method == "PATCH" && len(p) == 4:
		return s.editLocked(m, data)
	case r.Method == "DELETE" && len(p) == 4 && m.Author.ID == BotID:
		s.messages[c.ID] = slices.DeleteFunc(s.messages[c.ID], func(x *Message) bool { return x == m })
		s.dispatchLocked("MESSAGE_DELETE", withGuild(map[string]any{"id": m.ID, "channel_id": c.ID}, c.Guild))
		return nil, nil
	case len(p) == 7 && p[4] == "reactions" && p[6] == "@me":
		emoji := p[5]
		if emoji == "" {
			return nil, &refusal{status: 400, code: 10014, message: "Unknown Emoji"}
		}
		if c.NoReactions {
			return nil, &refusal{status: 403, code: 50013, message: "Missing Permissions"}
		}
		if m.Reactions == nil {
			m.Reactions = map[string]bool{}
		}
		kind, had := "MESSAGE_REACTION_ADD", m.Reactions[emoji]
		if m.Reactions[emoji] = true; r.Method == "DELETE" {
			kind = "MESSAGE_REACTION_REMOVE"
			delete(m.Reactions, emoji)
		}
		if had == (r.Method == "DELETE") {
			s.reactedLocked(kind, c.Guild, c.ID, m.ID, BotID, emoji)
		}
		return nil, nil
	}
	return nil, &refusal{status: 405, message: "405: Method Not Allowed"}
}

func invalid(field string) *refusal {
	return &refusal{status: 400, code: 50035, message: "Invalid Form Body", detail: field}
}

// An outgoing message as the API takes it; the pointers tell missing from empty.
type outgoing struct {
	Content  *string `json:"content"`
	Nonce    string  `json:"nonce"`
	Enforce  bool    `json:"enforce_nonce"`
	Mentions *struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Reference *struct {
		MessageID string `json:"message_id"`
		FailIfNot *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Components json.RawMessage `json:"components"`
	Flags      int             `json:"flags"`
}

// textMost is Discord's limit of a message, in characters.
const textMost = 2000

func (s *Server) checkLocked(q *outgoing) *refusal {
	if q.Content != nil && utf8.RuneCountInString(*q.Content) > textMost {
		return invalid("content")
	}
	if q.Mentions == nil || q.Mentions.Parse == nil {
		s.problemLocked("a message without allowed_mentions.parse: it could ping everyone")
	}
	if !goodComponents(q.Components) {
		return invalid("components")
	}
	return nil
}

func (s *Server) sendLocked(c *Channel, data []byte) (any, *refusal) {
	var q outgoing
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, &refusal{status: 400, code: 50109, message: "The request body contains invalid JSON."}
	}
	if no := s.checkLocked(&q); no != nil {
		return nil, no
	}
	switch {
	case c.NoSend != 0:
		return nil, &refusal{status: 403, code: c.NoSend, message: "Missing Permissions"}
	case c.Locked:
		return nil, &refusal{status: 400, code: 160005, message: "Thread is locked"}
	case c.Type == TypeForum:
		return nil, &refusal{status: 400, code: 50008, message: "Cannot send messages in a non-text channel"}
	case (q.Content == nil || strings.TrimSpace(*q.Content) == "") && len(s.uploaded) == 0:
		return nil, &refusal{status: 400, code: 50006, message: "Cannot send an empty message"}
	case c.NoFiles && len(s.uploaded) > 0:
		return nil, &refusal{status: 403, code: 50013, message: "Missing Permissions"}
	case len(q.Nonce) > 25:
		return nil, invalid("nonce")
	case q.Enforce && q.Nonce == "":
		return nil, invalid("enforce_nonce")
	case q.Flags&^(1<<2|1<<12) != 0:
		return nil, invalid("flags")
	}
	if q.Nonce == "" || !q.Enforce {
		s.problemLocked("a message without an enforced nonce: a retry could double it")
	}
	content := ""
	if q.Content != nil {
		content = strings.TrimSpace(*q.Content)
	}
	m := &Message{ID: s.idLocked(), Channel: c.ID, Author: botUser, Content: content, Nonce: q.Nonce,
		Components: q.Components, Flags: q.Flags, Silent: q.Flags&(1<<12) != 0}
	if q.Reference != nil {
		m.ReplyTo = q.Reference.MessageID
		if s.findLocked(c.ID, m.ReplyTo) == nil {
			if q.Reference.FailIfNot == nil || *q.Reference.FailIfNot {
				return nil, invalid("message_reference")
			}
			m.ReplyTo = ""
		}
		if m.ReplyTo != "" {
			m.Type = 19
		}
	}
	if q.Enforce {
		// The same author and nonce within the past few minutes: whichever channel.
		if old, ok := s.nonces[q.Nonce]; ok && time.Since(old.at) < nonceLife {
			if m := s.findLocked(old.channel, old.message); m != nil {
				return s.objectLocked(m), nil
			}
		}
		s.nonces[q.Nonce] = nonce{c.ID, m.ID, time.Now()}
	}
	s.attachLocked(m)
	s.archiveLocked(c, false) // a send opens an archived thread
	s.messages[c.ID] = append(s.messages[c.ID], m)
	o := s.objectLocked(m)
	s.dispatchLocked("MESSAGE_CREATE", o)
	return o, nil
}

// ForgetNonces is the passing of a few minutes.
func (s *Server) ForgetNonces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.nonces)
}

func (s *Server) editLocked(m *Message, data []byte) (any, *refusal) {
	var q outgoing
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, &refusal{status: 400, code: 50109, message: "The request body contains invalid JSON."}
	}
	if no := s.checkLocked(&q); no != nil {
		return nil, no
	}
	if m.Author.ID != BotID {
		return nil, &refusal{status: 403, code: 50005, message: "Cannot edit a message authored by another user"}
	}
	if q.Content != nil {
		m.Content = strings.TrimSpace(*q.Content)
	}
	if q.Components != nil {
		m.Components = q.Components
	}
	return s.changedLocked(m), nil
}

// changedLocked tells that a message of the bot was changed.
func (s *Server) changedLocked(m *Message) map[string]any {
	m.Edits++
	m.edited = time.Now().UTC().Format(time.RFC3339Nano)
	o := s.objectLocked(m)
	if m.Flags&flagEphemeral == 0 { // of what one person sees nothing is told
		s.dispatchLocked("MESSAGE_UPDATE", o)
	}
	return o
}

func (s *Server) historyLocked(c *Channel, q url.Values) (any, *refusal) {
	limit, err := strconv.Atoi(q.Get("limit"))
	if q.Get("limit") == "" {
		limit, err = 50, nil
	}
	if err != nil || limit < 1 || limit > 100 {
		return nil, invalid("limit")
	}
	list := slices.Clone(s.messages[c.ID])
	slices.SortStableFunc(list, func(a, b *Message) int {
		if less(a.ID, b.ID) {
			return -1
		}
		return 1
	})
	after, around := q.Get("after"), q.Get("around")
	if around != "" {
		at := slices.IndexFunc(list, func(m *Message) bool { return !less(m.ID, around) })
		from := max(at-limit/2, 0)
		list = list[from:min(from+limit, len(list))]
	}
	list = slices.DeleteFunc(list, func(m *Message) bool {
		return after != "" && !less(after, m.ID) || q.Get("before") != "" && !less(m.ID, q.Get("before"))
	})
	if len(list) > limit && after != "" {
		list = list[:limit] // those next to after
	}
	list = list[max(len(list)-limit, 0):]
	out := []any{}
	for _, m := range slices.Backward(list) { // newest first
		out = append(out, s.blankLocked(s.objectLocked(m)))
	}
	return out, nil
}
