package discordtest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// A Script is how one connection of the gateway goes.
type Script struct {
	Close        int  // this close code instead of READY or RESUMED
	Silent       bool // no answer to Identify or Resume
	Op7First     bool // Op 7 instead of READY or RESUMED
	NoAcks       bool // heartbeats are not answered
	RefuseResume bool // Op 9 to a Resume
	OmitResumed  bool // the replay comes, RESUMED does not
	Replay       int  // this many events too many are replayed
}

// Next scripts the coming connections, one each.
func (s *Server) Next(list ...Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, list...)
}

// Dials tells how many connections there were.
func (s *Server) Dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// A session is one of the gateway. Its events are kept for a Resume.
type session struct {
	id      string
	intents int
	events  []frame
	conn    *conn // nil = not connected
}

type frame struct {
	Op int    `json:"op"`
	D  any    `json:"d"`
	S  int    `json:"s,omitempty"`
	T  string `json:"t,omitempty"`
}

// A conn is written to under Server.mu only.
type conn struct {
	ws     *websocket.Conn
	script Script
}

func (c *conn) send(f frame) { _ = c.ws.WriteJSON(f) } // a cut connection is the reader's to see

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// Intents the server knows.
const (
	intentMessages = 1 << 9
	intentDMs      = 1 << 12
	intentContent  = 1 << 15
)

func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	c := &conn{ws: ws}
	s.mu.Lock()
	s.dials++
	if len(s.script) > 0 {
		c.script, s.script = s.script[0], s.script[1:]
	}
	if q := r.URL.Query(); q.Get("v") != "9" || q.Get("encoding") != "json" {
		s.problemLocked("gateway opened with %q", r.URL.RawQuery)
	}
	interval := s.Interval
	if interval == 0 {
		interval = 41250 * time.Millisecond
	}
	c.send(frame{Op: 10, D: map[string]any{"heartbeat_interval": interval.Milliseconds()}})
	s.changeLocked()
	s.mu.Unlock()
	for {
		var f struct {
			Op int             `json:"op"`
			D  json.RawMessage `json:"d"`
		}
		if ws.ReadJSON(&f) != nil {
			break
		}
		s.mu.Lock()
		s.hearLocked(c, f.Op, f.D)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.conn == c {
			x.conn = nil
		}
	}
	s.changeLocked()
}

func (s *Server) hearLocked(c *conn, op int, d json.RawMessage) {
	defer s.changeLocked()
	switch op {
	case 1:
		if !c.script.NoAcks {
			c.send(frame{Op: 11})
		}
	case 2:
		var q struct {
			Token   string
			Intents int
		}
		_ = json.Unmarshal(d, &q)
		switch {
		case q.Token != Token && q.Token != "Bot "+Token:
			closeWith(c, 4004)
		case s.NoContent && q.Intents&intentContent != 0:
			closeWith(c, 4014)
		default:
			s.welcomeLocked(c, q.Intents)
		}
	case 6:
		var q struct {
			SessionID string `json:"session_id"`
			Seq       int
		}
		_ = json.Unmarshal(d, &q)
		s.resumeLocked(c, q.SessionID, q.Seq)
	default:
		s.problemLocked("gateway op %d", op)
	}
}

// abnormalLocked plays the connection's script, if it has one for this moment.
func (s *Server) abnormalLocked(c *conn) bool {
	switch {
	case c.script.Close != 0:
		closeWith(c, c.script.Close)
	case c.script.Op7First:
		c.send(frame{Op: 7})
	case !c.script.Silent:
		return false
	}
	return true
}

func (s *Server) welcomeLocked(c *conn, intents int) {
	if s.abnormalLocked(c) {
		return
	}
	x := &session{id: "session-" + s.idLocked(), intents: intents, conn: c}
	s.sessions[x.id] = x
	guilds := map[string]map[string][]any{}
	for _, ch := range s.channels {
		if ch.Guild == "" {
			continue
		}
		if guilds[ch.Guild] == nil {
			guilds[ch.Guild] = map[string][]any{"channels": {}, "threads": {}}
		}
		what := "channels"
		if ch.Parent != "" {
			what = "threads"
		}
		if !ch.Hidden {
			guilds[ch.Guild][what] = append(guilds[ch.Guild][what], s.channelLocked(ch))
		}
	}
	list := []any{}
	for id := range guilds {
		list = append(list, map[string]any{"id": id, "unavailable": true})
	}
	x.send("READY", map[string]any{"v": 9, "user": botUser, "guilds": list, "session_id": x.id,
		"application": map[string]any{"id": AppID, "flags": 0}, "resume_gateway_url": "ws://resume.invalid"})
	for id, g := range guilds {
		x.send("GUILD_CREATE", map[string]any{"id": id, "name": "guild", "channels": g["channels"], "threads": g["threads"]})
	}
}

func (s *Server) resumeLocked(c *conn, id string, seq int) {
	x := s.sessions[id]
	if c.script.RefuseResume || x == nil || seq > len(x.events) {
		delete(s.sessions, id)
		c.send(frame{Op: 9, D: false})
		return
	}
	if s.abnormalLocked(c) {
		return
	}
	x.conn = c
	for _, f := range x.events[max(0, seq-c.script.Replay):] {
		c.send(f)
	}
	if !c.script.OmitResumed {
		x.send("RESUMED", map[string]any{})
	}
}

// send numbers an event and sends it if the session is connected.
func (x *session) send(kind string, d any) {
	f := frame{D: d, S: len(x.events) + 1, T: kind}
	x.events = append(x.events, f)
	if x.conn != nil {
		x.conn.send(f)
	}
}

// dispatchLocked tells every session of an event.
func (s *Server) dispatchLocked(kind string, d any) {
	for _, x := range s.sessions {
		e := d
		if o, ok := d.(map[string]any); ok && (kind == "MESSAGE_CREATE" || kind == "MESSAGE_UPDATE") {
			dm := o["guild_id"] == nil
			if dm && x.intents&intentDMs == 0 || !dm && x.intents&intentMessages == 0 {
				continue
			}
			if x.intents&intentContent == 0 {
				e = blank(o)
			}
		}
		x.send(kind, e)
	}
	s.changeLocked()
}

// blankLocked is what REST shows of a message when the intent is not granted.
func (s *Server) blankLocked(o map[string]any) map[string]any {
	if s.NoContent {
		return blank(o)
	}
	return o
}

// blank is a message as a bot without the message content intent sees it:
// contents only of DMs, of its own and of those that mention it.
func blank(o map[string]any) map[string]any {
	content, _ := o["content"].(string)
	author, _ := o["author"].(User)
	if o["guild_id"] == nil || author.ID == BotID || slices.Contains(mentioned(content), BotID) {
		return o
	}
	c := map[string]any{}
	for k, v := range o {
		c[k] = v
	}
	c["content"], c["embeds"], c["attachments"], c["components"] = "", []any{}, []any{}, []any{}
	return c
}

var mention = regexp.MustCompile(`<@!?(\d+)>`)

func mentioned(text string) []string {
	var out []string
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// Drop closes all connections: with a close code, or by cutting them (0).
// Sessions can be resumed.
func (s *Server) Drop(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.conn == nil {
			continue
		}
		if code != 0 {
			closeWith(x.conn, code)
		} else {
			_ = x.conn.ws.UnderlyingConn().Close()
		}
		x.conn = nil
	}
	s.changeLocked()
}

// Op7 asks the clients to connect again.
func (s *Server) Op7() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.conn != nil {
			x.conn.send(frame{Op: 7})
		}
	}
}

// Forget ends all sessions: a Resume is answered with Op 9.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.sessions {
		if x.conn == nil {
			delete(s.sessions, id)
		}
	}
}

// Connected tells how many sessions are connected.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, x := range s.sessions {
		if x.conn != nil {
			n++
		}
	}
	return n
}

// closeWith sends a close frame; the client closes the connection then.
func closeWith(c *conn, code int) {
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}
