package discordtest

import (
	"encoding/json"
	"slices"
	"time"
)

// AddUser makes a person or bot known.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// AddChannel makes a channel; a later one of the same id replaces it.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = &c
	s.changeLocked()
}

// AddFile gives the URL of an attachment.
func (s *Server) AddFile(name string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = data
	return s.url + "/files/" + name
}

// Say puts a text of a person into a channel and gives its id.
func (s *Server) Say(channel, user, text string) string {
	return s.Post(Message{Channel: channel, Author: User{ID: user}, Content: text})
}

// Post puts a message into a channel and tells the gateway. An author who is
// known by id gets the names.
func (s *Server) Post(m Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.users[m.Author.ID]; ok {
		m.Author = u
	}
	if m.ID == "" {
		m.ID = s.idLocked()
	}
	s.messages[m.Channel] = append(s.messages[m.Channel], &m)
	s.dispatchLocked("MESSAGE_CREATE", s.objectLocked(&m))
	return m.ID
}

// Edit changes a person's message; the update has an edited_timestamp.
func (s *Server) Edit(channel, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.findLocked(channel, id); m != nil {
		m.Content, m.edited = text, time.Now().UTC().Format(time.RFC3339Nano)
		s.dispatchLocked("MESSAGE_UPDATE", s.objectLocked(m))
	}
}

// Unfurl tells that a link of a message has a preview now: an update without
// author or time of edit.
func (s *Server) Unfurl(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatchLocked("MESSAGE_UPDATE", map[string]any{"id": id, "channel_id": channel, "embeds": []any{map[string]any{"type": "link"}}})
}

// Delete takes messages away, several with one bulk event.
func (s *Server) Delete(channel string, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[channel] = slices.DeleteFunc(s.messages[channel], func(m *Message) bool { return slices.Contains(ids, m.ID) })
	guild := ""
	if c := s.channels[channel]; c != nil {
		guild = c.Guild
	}
	if len(ids) == 1 {
		s.dispatchLocked("MESSAGE_DELETE", withGuild(map[string]any{"id": ids[0], "channel_id": channel}, guild))
		return
	}
	s.dispatchLocked("MESSAGE_DELETE_BULK", withGuild(map[string]any{"ids": ids, "channel_id": channel}, guild))
}

// An interaction is one that was sent to the bot.
type interaction struct {
	id, token string
	kind      int
	channel   string
	acked     int // type of the answer; 0 = none
	at        time.Time
	content   string
}

// Slash lets a person use a slash command; text is its one option, empty =
// none. It gives the token.
func (s *Server) Slash(channel, user, name, text string) string {
	data := map[string]any{"id": "1", "name": name, "type": 1}
	if text != "" {
		data["options"] = []any{map[string]any{"name": "text", "type": 3, "value": text}}
	}
	return s.interact(2, channel, user, map[string]any{"data": data})
}

// Press lets a person press a button and gives the token.
func (s *Server) Press(channel, message, user, customID string) string {
	return s.interact(3, channel, user, map[string]any{
		"data":    map[string]any{"custom_id": customID, "component_type": 2},
		"message": map[string]any{"id": message, "channel_id": channel},
	})
}

func (s *Server) interact(kind int, channel, user string, more map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	i := &interaction{id: s.idLocked(), kind: kind, channel: channel, at: time.Now()}
	i.token = "interaction-token-" + i.id
	s.asked[i.token] = i
	e := map[string]any{"id": i.id, "application_id": AppID, "type": kind, "token": i.token, "channel_id": channel, "version": 1}
	for k, v := range more {
		e[k] = v
	}
	if c != nil {
		e["channel"] = s.channelLocked(c)
	}
	if c != nil && c.Guild != "" {
		e["guild_id"] = c.Guild
		e["member"] = map[string]any{"user": s.users[user]}
	} else {
		e["user"] = s.users[user]
	}
	s.dispatchLocked("INTERACTION_CREATE", e)
	return i.token
}

// Answer tells how an interaction was answered (0 = not yet), after how long,
// and what its message says now.
func (s *Server) Answer(token string) (kind int, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.asked[token]
	if i == nil {
		return 0, ""
	}
	return i.acked, i.content
}

// Dispatch sends any event.
func (s *Server) Dispatch(kind string, raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatchLocked(kind, json.RawMessage(raw))
}

func (s *Server) findLocked(channel, id string) *Message {
	for _, m := range s.messages[channel] {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func withGuild(m map[string]any, guild string) map[string]any {
	if guild != "" {
		m["guild_id"] = guild
	}
	return m
}

// objectLocked is a message as the API shows it.
func (s *Server) objectLocked(m *Message) map[string]any {
	o := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "content": m.Content, "type": m.Type, "author": m.Author, "flags": m.Flags,
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "edited_timestamp": nil,
		"mentions": s.mentionsLocked(m), "attachments": []any{}, "embeds": []any{}, "mention_roles": []any{}, "components": []any{},
	}
	if m.edited != "" {
		o["edited_timestamp"] = m.edited
	}
	if len(m.Components) > 0 {
		o["components"] = m.Components
	}
	if len(m.Reactions) > 0 {
		var list []any
		for e := range m.Reactions {
			list = append(list, map[string]any{"count": 1, "me": true, "emoji": map[string]any{"id": nil, "name": e}})
		}
		o["reactions"] = list
	}
	if m.ReplyTo != "" {
		o["message_reference"] = map[string]any{"type": 0, "message_id": m.ReplyTo, "channel_id": m.Channel}
		o["referenced_message"] = nil
		if r := s.findLocked(m.Channel, m.ReplyTo); r != nil {
			o["referenced_message"] = s.objectLocked(r)
		}
	}
	for k, v := range m.Extra {
		o[k] = v
	}
	if c := s.channels[m.Channel]; c != nil {
		return withGuild(o, c.Guild)
	}
	return o
}

func (s *Server) mentionsLocked(m *Message) []User {
	out := []User{}
	for _, id := range mentioned(m.Content) {
		if id == BotID {
			out = append(out, botUser)
		} else if u, ok := s.users[id]; ok {
			out = append(out, u)
		}
	}
	return out
}

var botUser = User{ID: BotID, Username: Username, Bot: true}

func (s *Server) channelLocked(c *Channel) map[string]any {
	o := map[string]any{"id": c.ID, "type": c.Type}
	if c.Parent != "" {
		o["parent_id"], o["owner_id"] = c.Parent, c.Owner
		o["thread_metadata"] = map[string]any{"archived": c.Archived, "locked": c.Locked}
	}
	return withGuild(o, c.Guild)
}
