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

// SetRoles gives a person roles in every guild.
func (s *Server) SetRoles(user string, roles ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[user] = roles
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

// React lets a person react to a message.
func (s *Server) React(channel, message, user, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guild := ""
	if c := s.channels[channel]; c != nil {
		guild = c.Guild
	}
	s.reactedLocked("MESSAGE_REACTION_ADD", guild, channel, message, user, emoji)
}

// reactedLocked tells of a reaction, the bot's own too.
func (s *Server) reactedLocked(kind, guild, channel, message, user, emoji string) {
	e := withGuild(map[string]any{"channel_id": channel, "message_id": message, "user_id": user, "type": 0, "burst": false,
		"emoji": map[string]any{"id": nil, "name": emoji}}, guild)
	if m := s.findLocked(channel, message); m != nil && kind == "MESSAGE_REACTION_ADD" {
		e["message_author_id"] = m.Author.ID
	}
	if guild != "" && user != BotID && kind == "MESSAGE_REACTION_ADD" {
		e["member"] = s.memberLocked(user)
	}
	s.dispatchLocked(kind, e)
}

// Outage makes a guild unavailable, or brings it back. Nothing that happens
// there meanwhile is told of.
func (s *Server) Outage(guild string, out bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.out, guild)
	if out {
		s.dispatchLocked("GUILD_DELETE", map[string]any{"id": guild, "unavailable": true})
		s.out[guild] = true
		return
	}
	s.dispatchLocked("GUILD_CREATE", s.guildLocked(guild))
}

// Kick throws the bot out of a guild, or lets it in again.
func (s *Server) Kick(guild string, out bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kicked, guild)
	if out {
		s.dispatchLocked("GUILD_DELETE", map[string]any{"id": guild})
		s.kicked[guild] = true
		return
	}
	s.dispatchLocked("GUILD_CREATE", s.guildLocked(guild))
}

// Dispatch sends any event.
func (s *Server) Dispatch(kind string, raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatchLocked(kind, json.RawMessage(raw))
}

// OnGet lets f change a message before it is shown to who asks for it.
func (s *Server) OnGet(f func(message map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onGet = f
}

// Play sends an event as it was seen on the wire, and keeps what it says: the
// message it brings can be asked for, the interaction answered, what it deletes
// is gone.
func (s *Server) Play(kind string, raw json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e struct {
		ID      string
		IDs     []string
		Type    int
		Token   string
		Channel string `json:"channel_id"`
		Author  User
		User    User
		Member  struct{ User User }
		Content string
	}
	_ = json.Unmarshal(raw, &e)
	switch kind {
	case "MESSAGE_CREATE":
		if s.findLocked(e.Channel, e.ID) == nil {
			m := &Message{ID: e.ID, Channel: e.Channel, Author: e.Author, Content: e.Content, Type: e.Type}
			_ = json.Unmarshal(raw, &m.Extra)
			delete(m.Extra, "guild_id") // REST does not tell it
			delete(m.Extra, "member")
			s.messages[e.Channel] = append(s.messages[e.Channel], m)
		}
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		s.messages[e.Channel] = slices.DeleteFunc(s.messages[e.Channel], func(m *Message) bool { return m.ID == e.ID || slices.Contains(e.IDs, m.ID) })
	case "INTERACTION_CREATE":
		if s.asked[e.Token] == nil {
			s.asked[e.Token] = &interaction{id: e.ID, token: e.Token, kind: e.Type, channel: e.Channel, user: e.User.ID + e.Member.User.ID, at: time.Now()}
		}
	case "THREAD_CREATE":
		var t struct {
			ID, Name string
			Type     int
			Guild    string `json:"guild_id"`
			Parent   string `json:"parent_id"`
			Owner    string `json:"owner_id"`
		}
		if json.Unmarshal(raw, &t) == nil && s.channels[t.ID] == nil {
			s.channels[t.ID] = &Channel{ID: t.ID, Name: t.Name, Type: t.Type, Guild: t.Guild, Parent: t.Parent, Owner: t.Owner}
		}
	}
	s.dispatchLocked(kind, raw)
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

// flagHasThread: a thread was opened on the message.
const flagHasThread = 1 << 5

// objectLocked is a message as the API shows it.
func (s *Server) objectLocked(m *Message) map[string]any {
	if m.made.IsZero() {
		m.made = time.Now()
	}
	o := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "content": m.Content, "type": m.Type, "author": m.Author, "flags": m.Flags,
		"timestamp": m.made.UTC().Format(time.RFC3339Nano), "edited_timestamp": nil, "tts": false, "mention_everyone": false, "pinned": false,
		"mentions": s.mentionsLocked(m), "attachments": []any{}, "embeds": []any{}, "mention_roles": []any{}, "components": []any{},
	}
	if m.edited != "" {
		o["edited_timestamp"] = m.edited
	}
	if len(m.Components) > 0 {
		o["components"] = m.Components
	}
	if m.Nonce != "" {
		o["nonce"] = m.Nonce
	}
	if t := s.channels[m.ID]; t != nil && t.Parent == m.Channel {
		o["thread"], o["flags"] = s.channelLocked(t), m.Flags|flagHasThread
	}
	if m.Reactions != nil { // else the field is missing
		list := []any{}
		for e := range m.Reactions {
			list = append(list, map[string]any{"count": 1, "count_details": map[string]any{"normal": 1, "burst": 0}, "me": true,
				"me_burst": false, "burst_colors": []any{}, "emoji": map[string]any{"id": nil, "name": e}})
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
	if i := m.asked; i != nil {
		o["interaction_metadata"] = map[string]any{"id": i.id, "type": i.kind, "user": s.users[i.user], "authorizing_integration_owners": map[string]any{}}
	}
	c := s.channels[m.Channel]
	if c != nil && c.Guild != "" && s.users[m.Author.ID].ID != "" {
		member := s.memberLocked(m.Author.ID)
		delete(member, "user") // it is the author
		o["member"] = member
	}
	for k, v := range m.Extra {
		o[k] = v
	}
	if c != nil {
		return withGuild(o, c.Guild)
	}
	return o
}

func (s *Server) rolesLocked(user string) []string { return append([]string{}, s.roles[user]...) }

// memberLocked is a person of a guild.
func (s *Server) memberLocked(user string) map[string]any {
	u := s.users[user]
	if user == BotID {
		u = botUser
	}
	return map[string]any{"user": u, "roles": s.rolesLocked(user), "joined_at": joined, "deaf": false, "mute": false, "flags": 0}
}

// joined is when everyone came.
const joined = "2025-06-05T10:00:00+00:00"

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
	o := map[string]any{"id": c.ID, "type": c.Type, "name": c.Name, "position": 0}
	if list := s.messages[c.ID]; len(list) > 0 {
		o["last_message_id"] = list[len(list)-1].ID
	}
	if c.Parent != "" {
		o["parent_id"], o["owner_id"] = c.Parent, c.Owner
		o["thread_metadata"] = map[string]any{"archived": c.Archived, "locked": c.Locked, "auto_archive_duration": 1440,
			"archive_timestamp": "2025-06-05T10:00:00+00:00", "create_timestamp": "2025-06-05T10:00:00+00:00"}
		o["message_count"], o["member_count"] = len(s.messages[c.ID]), 1
	}
	if c.Type == TypeDM {
		list := []User{}
		for user, id := range s.dms {
			if id == c.ID {
				list = append(list, s.users[user])
			}
		}
		o["recipients"], o["name"] = list, nil
	}
	return withGuild(o, c.Guild)
}
