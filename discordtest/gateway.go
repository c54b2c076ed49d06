package discordtest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	NoGuilds     bool // READY comes, and no guild after it
}

// permissions are what everybody may in a guild, as Discord writes them.
const permissions = "2248473465835073"

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
	ws      *websocket.Conn
	version int // of the API it was opened with
	script  Script
	greeted bool // it has identified itself or resumed
	closing bool // the server has closed it: what the client says to that ends no session
	muted   bool // nothing is sent any more: a zombie
	deaf    bool // nor are heartbeats answered
	heard   []time.Time
}

func (c *conn) send(f frame) {
	if !c.muted || f.Op == 11 && !c.deaf {
		_ = c.ws.WriteJSON(f) // a cut connection is the reader's to see
	}
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// Intents the server knows.
const (
	intentMessages    = 1 << 9
	intentReactions   = 1 << 10
	intentDMs         = 1 << 12
	intentDMReactions = 1 << 13
	intentContent     = 1 << 15
)

// heardMost is how many frames a client may send in a minute (4008).
const heardMost = 120

func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	c := &conn{ws: ws}
	c.version, _ = strconv.Atoi(r.URL.Query().Get("v"))
	s.mu.Lock()
	s.dials++
	if len(s.script) > 0 {
		c.script, s.script = s.script[0], s.script[1:]
	}
	if q := r.URL.Query(); q.Get("v") != "9" && q.Get("v") != "10" || q.Get("encoding") != "json" {
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
		// A client without heartbeats is gone (4009).
		_ = ws.SetReadDeadline(time.Now().Add(3 * interval))
		_, data, e := ws.ReadMessage()
		if err = e; err != nil {
			break
		}
		var f struct {
			Op int             `json:"op"`
			D  json.RawMessage `json:"d"`
		}
		s.mu.Lock()
		if json.Unmarshal(data, &f) != nil {
			closeWith(c, 4002)
		} else {
			s.hearLocked(c, f.Op, f.D)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A client that says good-bye with one of these ends its session.
	bye := !c.closing && websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway)
	for id, x := range s.sessions {
		if x.conn == c {
			x.conn = nil
			if bye {
				delete(s.sessions, id)
			}
		}
	}
	s.changeLocked()
}

func (s *Server) hearLocked(c *conn, op int, d json.RawMessage) {
	defer s.changeLocked()
	now := time.Now()
	for len(c.heard) > 0 && now.Sub(c.heard[0]) > time.Minute {
		c.heard = c.heard[1:]
	}
	if c.heard = append(c.heard, now); len(c.heard) > heardMost {
		closeWith(c, 4008)
		return
	}
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
		case c.greeted:
			closeWith(c, 4005)
		case q.Token != Token && q.Token != "Bot "+Token:
			closeWith(c, 4004)
		case s.NoContent && q.Intents&intentContent != 0:
			closeWith(c, 4014)
		default:
			c.greeted = true
			s.welcomeLocked(c, q.Intents)
		}
	case 6:
		var q struct {
			Token     string
			SessionID string `json:"session_id"`
			Seq       int
		}
		_ = json.Unmarshal(d, &q)
		switch x := s.sessions[q.SessionID]; {
		case c.greeted:
			closeWith(c, 4005)
		case q.Token != Token && q.Token != "Bot "+Token:
			closeWith(c, 4004)
		case x != nil && q.Seq > len(x.events):
			delete(s.sessions, q.SessionID)
			closeWith(c, 4007)
		default:
			s.resumeLocked(c, q.SessionID, q.Seq)
		}
	case 3, 4, 8, 14:
		if !c.greeted {
			closeWith(c, 4003)
		}
	default:
		s.problemLocked("gateway op %d", op)
		closeWith(c, 4001)
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
	guilds := s.guildsLocked()
	list := []any{}
	for _, id := range guilds {
		list = append(list, map[string]any{"id": id, "unavailable": true})
	}
	s.logins--
	x.send("READY", map[string]any{"v": c.version, "user": botUser, "guilds": list, "session_id": x.id,
		"application": map[string]any{"id": AppID, "flags": 0}, "resume_gateway_url": "ws" + strings.TrimPrefix(s.url, "http")})
	for _, id := range guilds {
		if c.script.NoGuilds {
			break
		}
		if s.out[id] {
			x.send("GUILD_DELETE", map[string]any{"id": id, "unavailable": true})
		} else {
			x.send("GUILD_CREATE", s.guildLocked(id))
		}
	}
}

// guildsLocked are the guilds the bot is in.
func (s *Server) guildsLocked() []string {
	var out []string
	for _, ch := range s.channels {
		if ch.Guild != "" && !s.kicked[ch.Guild] && !slices.Contains(out, ch.Guild) {
			out = append(out, ch.Guild)
		}
	}
	slices.Sort(out)
	return out
}

// guildLocked is a guild as GUILD_CREATE tells of it.
func (s *Server) guildLocked(id string) map[string]any {
	channels, threads := []any{}, []any{}
	for _, ch := range s.channels {
		switch {
		case ch.Guild != id || ch.Hidden:
		case ch.Parent != "":
			threads = append(threads, s.channelLocked(ch))
		default:
			channels = append(channels, s.channelLocked(ch))
		}
	}
	everyone := map[string]any{"id": id, "name": "@everyone", "permissions": permissions, "position": 0, "color": 0, "colors": map[string]any{"primary_color": 0, "secondary_color": nil, "tertiary_color": nil},
		"hoist": false, "managed": false, "mentionable": false, "flags": 0}
	return map[string]any{"id": id, "name": "guild", "unavailable": false, "owner_id": "1", "channels": channels, "threads": threads,
		"roles": []any{everyone}, "members": []any{s.memberLocked(BotID)}, "member_count": len(s.users) + 1, "features": []any{}, "emojis": []any{},
		"stickers": []any{}, "joined_at": joined, "large": false, "voice_states": []any{}, "presences": []any{}, "stage_instances": []any{},
		"guild_scheduled_events": []any{}, "preferred_locale": "en-US", "premium_tier": s.tiers[id]}
}

func (s *Server) resumeLocked(c *conn, id string, seq int) {
	x := s.sessions[id]
	if c.script.RefuseResume || x == nil {
		delete(s.sessions, id)
		c.send(frame{Op: 9, D: false})
		return
	}
	if s.abnormalLocked(c) {
		return
	}
	x.conn, c.greeted = c, true
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
	defer s.changeLocked()
	o, _ := d.(map[string]any)
	guild, _ := o["guild_id"].(string)
	if guild != "" && (s.out[guild] || s.kicked[guild]) {
		return
	}
	for _, x := range s.sessions {
		e, need := d, 0
		switch kind {
		case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
			if need = intentMessages; guild == "" {
				need = intentDMs
			}
		case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
			if need = intentReactions; guild == "" {
				need = intentDMReactions
			}
		}
		if o != nil && x.intents&need != need {
			continue
		}
		if o != nil && x.intents&intentContent == 0 && (kind == "MESSAGE_CREATE" || kind == "MESSAGE_UPDATE") {
			e = blank(o)
		}
		x.send(kind, e)
	}
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
		if x.conn.closing = true; code != 0 {
			closeWith(x.conn, code)
		} else {
			_ = x.conn.ws.UnderlyingConn().Close()
		}
		x.conn = nil
	}
	s.changeLocked()
}

// Mute makes zombies of all connections: they stand, and nothing comes over
// them; with acks, heartbeats are answered all the same. Sessions can be
// resumed over another connection.
func (s *Server) Mute(acks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.conn != nil {
			x.conn.muted, x.conn.deaf = true, !acks
		}
	}
}

// Op1 asks the clients for a heartbeat now.
func (s *Server) Op1() { s.tellAll(frame{Op: 1}) }

// Op7 asks the clients to connect again.
func (s *Server) Op7() { s.tellAll(frame{Op: 7}) }

func (s *Server) tellAll(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.conn != nil {
			x.conn.send(f)
		}
	}
}

// Op9 tells the clients that their sessions are no more.
func (s *Server) Op9() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.sessions {
		if x.conn != nil {
			x.conn.send(frame{Op: 9, D: false})
			x.conn.greeted = false // it may identify itself over the same connection
		}
		delete(s.sessions, id)
	}
	s.changeLocked()
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
	c.closing = true
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}
