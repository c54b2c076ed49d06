package discordtest

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// openThreadLocked makes a thread: on a message, whose id it then has, in a
// text channel, or as a post of a forum.
func (s *Server) openThreadLocked(c *Channel, message string, data []byte) (any, *refusal) {
	var q struct {
		Name    string
		Type    int
		Message *outgoing
	}
	if json.Unmarshal(data, &q) != nil || q.Name == "" || utf8.RuneCountInString(q.Name) > 100 {
		return nil, invalid("name")
	}
	switch m := s.findLocked(c.ID, message); {
	case c.Type != TypeText && c.Type != TypeForum:
		return nil, &refusal{status: 400, code: 50024, message: "Cannot execute action on this channel type"}
	case c.NoThreads:
		return nil, &refusal{status: 403, code: 50013, message: "Missing Permissions"}
	case message != "" && m == nil:
		return nil, &refusal{status: 404, code: 10008, message: "Unknown Message"}
	case message != "" && s.channels[message] != nil:
		return nil, &refusal{status: 400, code: 160004, message: "A thread has already been created for this message"}
	case c.Type == TypeForum && (q.Message == nil || q.Message.Content == nil):
		return nil, invalid("message")
	case c.Type == TypeForum:
		if no := s.checkLocked(q.Message); no != nil {
			return nil, no
		}
	}
	t := &Channel{ID: message, Guild: c.Guild, Name: q.Name, Type: TypeThread, Parent: c.ID, Owner: BotID}
	if t.ID == "" {
		t.ID = s.idLocked()
	}
	s.channels[t.ID] = t
	o := s.channelLocked(t)
	o["newly_created"] = true
	s.dispatchLocked("THREAD_CREATE", o)
	first := &Message{ID: s.idLocked(), Channel: t.ID, Author: botUser, Type: 21}
	if c.Type == TypeForum {
		first.ID, first.Type, first.Content = t.ID, 0, *q.Message.Content
	}
	s.messages[t.ID] = append(s.messages[t.ID], first)
	s.dispatchLocked("MESSAGE_CREATE", s.objectLocked(first))
	return o, nil
}

// archiveLocked opens or archives a thread, and tells of it.
func (s *Server) archiveLocked(c *Channel, archived bool) {
	if c.Archived != archived {
		c.Archived = archived
		s.dispatchLocked("THREAD_UPDATE", s.channelLocked(c))
	}
}

// Thread lets a person open a thread on a message, or a post in a forum (message
// empty); text is then the post's first message. It gives the thread's id.
func (s *Server) Thread(channel, message, user, name, text string) string {
	s.mu.Lock()
	c := s.channels[channel]
	id := message
	if id == "" {
		id = s.idLocked()
	}
	t := &Channel{ID: id, Guild: c.Guild, Name: name, Type: TypeThread, Parent: channel, Owner: user}
	s.channels[id] = t
	s.dispatchLocked("THREAD_CREATE", s.channelLocked(t))
	s.mu.Unlock()
	if message == "" {
		s.Post(Message{ID: id, Channel: id, Author: User{ID: user}, Content: text})
	}
	return id
}

// Channel gives a copy of a channel as it stands.
func (s *Server) Channel(id string) (Channel, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	if c == nil {
		return Channel{}, false
	}
	return *c, true
}

// dmLocked opens the private channel with a person.
func (s *Server) dmLocked(data []byte) (any, *refusal) {
	var q struct {
		Recipient string `json:"recipient_id"`
	}
	if json.Unmarshal(data, &q) != nil || s.users[q.Recipient].ID == "" {
		return nil, invalid("recipient_id")
	}
	id := s.dms[q.Recipient]
	if id == "" {
		id = s.idLocked()
		s.dms[q.Recipient] = id
		s.channels[id] = &Channel{ID: id, Type: TypeDM}
	}
	return s.channelLocked(s.channels[id]), nil
}

// SetDM makes a channel the private one with a person.
func (s *Server) SetDM(user, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dms[user] = channel
}

// DM gives the private channel with a person, empty if there is none.
func (s *Server) DM(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dms[user]
}

// nonceLife is how long Discord knows a nonce: "the past few minutes".
const nonceLife = 3 * time.Minute

// A nonce is one that was enforced, and the message it gave.
type nonce struct {
	channel, message string
	at               time.Time
}
