package discordtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The bot of a Server.
const (
	BotID    = "424242424242424242"
	AppID    = "525252525252525252"
	Username = "cox_test_bot"
)

// Token is the bot's token; its first part is the bot's id, as Discord's are.
var Token = base64.RawStdEncoding.EncodeToString([]byte(BotID)) + ".TESTxx.not-a-token-of-any-bot"

// A Server is Discord as one bot sees it.
type Server struct {
	// Interval is the heartbeat interval Hello asks for; 0 = 41.25 s. Set before
	// use.
	Interval time.Duration
	// NoContent: the message content intent is not granted: asking for it
	// closes with 4014. Set before use.
	NoContent bool
	// Limit is how many messages a channel takes in Window; one more is answered
	// 429 with the headers that say so. 0 = the headers are there, nothing is
	// refused. Set before use.
	Limit  int
	Window time.Duration
	// FileMost is how many bytes a file may have; 0 = 10 MiB, or what the guild's
	// boosts give (Boost). Set before use.
	FileMost int

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	counter  int64
	users    map[string]User
	channels map[string]*Channel
	messages map[string][]*Message // by channel, oldest first
	nonces   map[string]nonce
	files    map[string][]byte
	asked    map[string]*interaction // by token
	roles    map[string][]string     // by user
	dms      map[string]string       // user → DM channel
	onGet    func(map[string]any)
	out      map[string]bool        // guilds that are unavailable
	kicked   map[string]bool        // guilds the bot was thrown out of
	tiers    map[string]int         // boost levels of guilds
	sends    map[string][]time.Time // by channel, within Window
	uploaded []File                 // the files of the call being done
	invalid  int                    // answers that Discord counts against the bot's address
	logins   int                    // session_start_limit.remaining
	commands json.RawMessage
	calls    []Call
	faults   []*Fault
	problems []string
	sessions map[string]*session
	script   []Script
	dials    int
	url      string
}

// A User is a person or bot.
type User struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name,omitempty"`
	Bot        bool   `json:"bot,omitempty"`
}

// MarshalJSON writes a user with what every one has.
func (u User) MarshalJSON() ([]byte, error) {
	type plain User
	name := &u.GlobalName
	if *name == "" {
		name = nil
	}
	return json.Marshal(struct {
		plain
		GlobalName    *string `json:"global_name"` // null where there is none
		Discriminator string  `json:"discriminator"`
		Avatar        *string `json:"avatar"`
	}{plain(u), name, "0", nil})
}

// Channel types.
const (
	TypeText   = 0
	TypeDM     = 1
	TypeThread = 11
	TypeForum  = 15
)

// A Channel is one channel, thread or DM and what may be done in it.
type Channel struct {
	ID          string
	Guild       string // empty = a DM
	Name        string
	Type        int
	Parent      string // of a thread
	Owner       string // who opened a thread
	Archived    bool   // edits and reactions answer 50083
	Locked      bool   // sends answer 160005, opening it again 50013
	NoSend      int    // a send answers 403 with this code: 50001, 50007, 50013
	NoReactions bool   // a reaction answers 403 50013
	NoFiles     bool   // a send with files answers 403 50013
	NoThreads   bool   // opening a thread answers 403 50013
	Hidden      bool   // not told of at READY: it must be asked for
}

// A Message is one message as it stands now.
type Message struct {
	ID, Channel string
	Author      User
	Content     string
	Type        int
	Nonce       string
	ReplyTo     string
	Flags       int
	Components  json.RawMessage
	Reactions   map[string]bool // of the bot
	Edits       int
	Silent      bool
	Files       []File         // that the bot sent with it
	Extra       map[string]any // fields of the object beside these
	made        time.Time      // when it was first shown
	edited      string
	asked       *interaction // it answers
}

// A Call is one REST request as the server understood it.
type Call struct {
	Method, Path string
	Body         map[string]any
	Status       int
	At           time.Time
}

// A Raw is an answer as it was seen on the wire.
type Raw struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body"` // a JSON string is text that is not JSON
}

// A Fault makes REST calls go wrong. Exactly one of Status, HTML, Raw, LoseReply
// and Hang is set.
type Fault struct {
	Method string // empty = any
	Path   string // a part of the path; empty = any
	Times  int    // how many; 0 = one, below 0 = for ever

	Status     int // an answer that says no
	Code       int // Discord's own
	Message    string
	RetryAfter float64 // seconds, of a 429
	Global     bool
	Shared     bool // a 429 of a resource that others use up too: not counted as the bot's fault
	HTML       int  // an answer with this status that is not JSON: something before Discord gave it
	Raw        *Raw // this very answer; nothing is done
	LoseReply  bool // it is done, then the connection is cut
	Hang       bool // nothing is done and no answer comes until the client gives up
}

// New makes a server without users or channels.
func New() *Server {
	return &Server{
		changed: make(chan struct{}), users: map[string]User{}, channels: map[string]*Channel{},
		messages: map[string][]*Message{}, nonces: map[string]nonce{}, files: map[string][]byte{},
		asked: map[string]*interaction{}, sessions: map[string]*session{}, roles: map[string][]string{}, dms: map[string]string{},
		out: map[string]bool{}, kicked: map[string]bool{}, tiers: map[string]int{}, sends: map[string][]time.Time{}, logins: 1000,
	}
}

// Start serves on a loopback socket and gives its URL. stop cuts all
// connections.
func (s *Server) Start() (url string, stop func()) {
	hs := httptest.NewServer(s)
	s.mu.Lock()
	s.url = hs.URL
	s.mu.Unlock()
	return hs.URL, func() {
		s.Drop(0)
		hs.CloseClientConnections()
		hs.Close()
	}
}

// ServeHTTP answers REST calls, downloads and the gateway.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		s.gateway(w, r)
	case strings.HasPrefix(r.URL.Path, "/files/"):
		s.mu.Lock()
		data, ok := s.files[strings.TrimPrefix(r.URL.Path, "/files/")]
		if r.Header.Get("Authorization") != "" {
			s.problemLocked("the token was sent to the file host")
		}
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	default:
		s.rest(w, r)
	}
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

// Mend takes all faults away.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) faultLocked(method, path string) *Fault {
	for i, f := range s.faults {
		if f.Method != "" && f.Method != method || !strings.Contains(path, f.Path) {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}

// Problems lists what Discord would have forgiven.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.problems...)
}

func (s *Server) problemLocked(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// Calls gives the calls of a method whose path contains part.
func (s *Server) Calls(method, part string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if c.Method == method && strings.Contains(c.Path, part) {
			out = append(out, c)
		}
	}
	return out
}

// Commands gives the slash commands as last set.
func (s *Server) Commands() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands
}

// Messages gives copies of a channel's messages, oldest first.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages[channel] {
		c := *m
		c.Reactions = map[string]bool{}
		for e := range m.Reactions {
			c.Reactions[e] = true
		}
		out = append(out, c)
	}
	return out
}

// Bot gives the bot's own messages of a channel.
func (s *Server) Bot(channel string) []Message {
	var out []Message
	for _, m := range s.Messages(channel) {
		if m.Author.ID == BotID {
			out = append(out, m)
		}
	}
	return out
}

// Until waits until cond holds; it is looked at after every change of the
// server. False when ctx ended first.
func (s *Server) Until(ctx context.Context, cond func() bool) bool {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cond()
		}
	}
}

func (s *Server) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// epoch is the first millisecond of Discord's ids.
const epoch = 1420070400000

// idLocked makes a new id, higher than all before.
func (s *Server) idLocked() string {
	s.counter++
	return strconv.FormatInt((time.Now().UnixMilli()-epoch)<<22+s.counter%(1<<22), 10)
}

// IDAt gives an id as Discord would have made it at t.
func IDAt(t time.Time) string { return strconv.FormatInt((t.UnixMilli()-epoch)<<22, 10) }

// less compares ids as numbers.
func less(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
