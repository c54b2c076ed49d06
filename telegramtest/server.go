package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Token and Username are those of the bot of a Server made by New.
const (
	Token    = "424242:TEST-token_of-a-bot-that-is-not"
	BotID    = 424242
	Username = "cox_test_bot"
)

// A Server is one bot's API.
type Server struct {
	// Flood makes the server answer 429 where the API would: over 1 message a
	// second in a chat after a burst of four, 20 a minute in a group, 30 a
	// second overall. Set before use.
	Flood bool
	// SeesAll is what getMe says of privacy mode. Set before use.
	SeesAll bool
	// Skew is how far the server's clock is ahead of this one's: its answers'
	// Date and the dates of messages. Set before use.
	Skew time.Duration
	// Lacks are methods the server does not know: a self-hosted one may be of an
	// older version. Set before use.
	Lacks []string

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	token    string
	username string
	hook     *hook // nil = updates are polled
	nextID   int64
	queue    []queued
	allowed  map[string]bool
	poller   chan struct{} // closed when another poll takes over
	asked    int64         // highest offset asked for

	users     map[int64]User
	chats     map[int64]*Chat
	messages  map[int64]map[int]*Message
	lastMsg   map[int64]int
	callbacks map[string]bool // answered?
	nextQuery int
	files     map[string][]byte
	commands  json.RawMessage
	calls     []Call
	faults    []*Fault
	problems  []string
	sends     map[int64][]time.Time
	buckets   map[int64]*level
}

// A User is a person or bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name,omitempty"`
	Username  string `json:"username,omitempty"`
}

// A Chat is one chat and what may be done in it.
type Chat struct {
	ID    int64
	Type  string // private, group, supergroup, channel; empty = by the id
	Title string
	Forum bool
	// Topics: true = open, false = closed; a topic not listed does not exist.
	// Only in forums.
	Topics      map[int]bool
	Manages     bool // the bot may reopen topics
	Admin       bool // of a channel: the bot is an admin of it, else it is not in it
	NoReactions bool // answers REACTION_INVALID
	NoVoice     bool // answers VOICE_MESSAGES_FORBIDDEN
	NoDrafts    bool
	Blocked     bool  // answers 403
	MigratedTo  int64 // answers 400 with migrate_to_chat_id
}

// A Message is one message in a chat as it stands now.
type Message struct {
	ID       int
	Chat     int64
	Thread   int
	FromBot  bool
	From     int64 // the person; 0 = unknown, or the bot
	Text     string
	Entities []Entity
	Keyboard [][]Button
	ReplyTo  int
	Silent   bool
	Edits    int
	Reaction string
	Kind     string    // document, photo, voice, …: of a file, whose caption is Text
	FileName string    //
	Data     []byte    // the file
	Rich     string    // the Markdown of a rich message
	At       time.Time // when sent
	Changed  time.Time // when last edited
}

// An Entity is one span of formatting.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
	User     *User  `json:"user,omitempty"`
}

// A Button is one button of an inline keyboard.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data,omitempty"`
	URL  string `json:"url,omitempty"` // instead of data
}

// String gives what the button says and what a press sends.
func (b Button) String() string { return "{" + b.Text + " " + b.Data + b.URL + "}" }

// A Call is one request as the server understood it.
type Call struct {
	Method string
	Params map[string]any // JSON values; of forms, texts
	At     time.Time
	OK     bool // it was done
}

// Int gives a parameter as a number, 0 if it is none.
func (c Call) Int(name string) int64 {
	switch v := c.Params[name].(type) {
	case float64:
		return int64(v)
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// String gives a parameter as text.
func (c Call) String(name string) string {
	s, _ := c.Params[name].(string)
	return s
}

type queued struct {
	id   int64
	kind string
	raw  json.RawMessage
	at   time.Time
}

// New makes a server with an empty queue.
func New() *Server {
	return &Server{
		changed: make(chan struct{}), token: Token, username: Username, nextID: 1000,
		users: make(map[int64]User), chats: make(map[int64]*Chat), messages: make(map[int64]map[int]*Message),
		lastMsg: make(map[int64]int), callbacks: make(map[string]bool), files: make(map[string][]byte),
		sends: make(map[int64][]time.Time), buckets: make(map[int64]*level),
	}
}

// Client gives a client whose every request goes to the server, without
// sockets.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s} }

// errNoReply ends a request without an answer.
var errNoReply = errors.New("telegramtest: connection reset by peer")

// ServeHTTP serves /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.serve(w, r); err != nil {
		panic(http.ErrAbortHandler) // cuts the connection
	}
}

// RoundTrip serves a request without sockets. It may be used in a bubble.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if f := s.refusing(r.URL.Path); f {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errors.New("telegramtest: dial tcp: connection refused")
	}
	type result struct {
		rec *httptest.ResponseRecorder
		err error
	}
	done := make(chan result, 1)
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	go func() {
		rec := httptest.NewRecorder()
		err := s.serve(rec, in)
		in.Body.Close()
		done <- result{rec, err}
	}()
	select {
	case res := <-done:
		if res.err != nil {
			return nil, res.err
		}
		resp := res.rec.Result()
		resp.Request = r
		return resp, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// serve answers one request; an error means that the connection is cut.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	if path, ok := strings.CutPrefix(r.URL.Path, "/file/bot"); ok {
		return s.serveFile(w, path)
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/bot")
	token, method, ok2 := strings.Cut(path, "/")
	if !ok || !ok2 {
		return answer(w, http.StatusNotFound, refusal{Code: 404, Description: "Not Found"})
	}
	p, err := readParams(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if token != s.token {
		s.mu.Unlock()
		return answer(w, http.StatusUnauthorized, refusal{Code: 401, Description: "Unauthorized"})
	}
	call := Call{Method: method, Params: p.all(), At: time.Now()}
	f := s.faultLocked(method, p.int("chat_id"))
	s.mu.Unlock()

	if f != nil && f.Delay > 0 {
		if !sleep(r.Context(), f.Delay) {
			s.record(call, false)
			return r.Context().Err()
		}
	}
	if f != nil && !f.LoseReply && !f.onlyDelays() {
		s.record(call, false)
		return f.answer(w, r)
	}
	result, no := s.do(r.Context(), method, p)
	w.Header().Set("Date", time.Now().Add(s.Skew).UTC().Format(http.TimeFormat)) // a long poll's is that of its end
	s.record(call, no == nil)
	if f != nil && f.LoseReply {
		return errNoReply
	}
	if errors.Is(r.Context().Err(), context.Canceled) {
		return r.Context().Err()
	}
	if no != nil {
		return answer(w, no.Code, *no)
	}
	return answer(w, http.StatusOK, struct {
		OK     bool `json:"ok"`
		Result any  `json:"result"`
	}{true, result})
}

// A refusal is an answer of the API that says no.
type refusal struct {
	OK          bool   `json:"ok"`
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  *struct {
		RetryAfter int   `json:"retry_after,omitempty"`
		MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
	} `json:"parameters,omitempty"`
}

func badRequest(format string, args ...any) *refusal {
	return &refusal{Code: 400, Description: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func answer(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(data)
	return err
}

func (s *Server) serveFile(w http.ResponseWriter, path string) error {
	token, name, _ := strings.Cut(path, "/")
	s.mu.Lock()
	data, ok := s.files[name]
	if token != s.token {
		ok = false
	}
	f := s.faultLocked("file", 0)
	s.mu.Unlock()
	if f != nil && f.LoseReply {
		return errNoReply
	}
	if !ok || f != nil {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	_, err := w.Write(data)
	return err
}

func (s *Server) record(c Call, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.OK = ok
	s.calls = append(s.calls, c)
	s.changeLocked()
}

func (s *Server) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) problemLocked(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
