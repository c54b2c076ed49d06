package discordtest

import (
	"encoding/json"
	"slices"
	"time"
)

// The clocks of an interaction: it must be answered within ackTime; its token
// works for tokenTime.
const (
	ackTime   = 3 * time.Second
	tokenTime = 15 * time.Minute
)

// flagEphemeral: only who asked sees the answer.
const flagEphemeral = 1 << 6

// An interaction is one that was sent to the bot.
type interaction struct {
	id, token string
	kind      int
	channel   string
	user      string
	on        string // the message with the button
	at        time.Time
	took      time.Duration // until it was answered
	acked     int           // type of the answer; 0 = none
	ephemeral bool          // of the first answer
	original  *Message      // the first answer
	gone      bool          // it was deleted
	private   []*Message    // what only who asked sees, in order
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

// Menu lets a person use a message command on a message.
func (s *Server) Menu(channel, user, name, message string) string {
	s.mu.Lock()
	target := map[string]any{}
	if m := s.findLocked(channel, message); m != nil {
		target = s.objectLocked(m)
		delete(target, "referenced_message")
		delete(target, "guild_id") // resolved messages are partial
	}
	s.mu.Unlock()
	return s.interact(2, channel, user, map[string]any{"data": map[string]any{"id": "2", "name": name, "type": 3,
		"target_id": message, "resolved": map[string]any{"messages": map[string]any{message: target}}}})
}

// Press lets a person press a button and gives the token.
func (s *Server) Press(channel, message, user, customID string) string {
	return s.component(channel, message, user, map[string]any{"custom_id": customID, "component_type": 2})
}

// Pick lets a person choose from a select menu and gives the token.
func (s *Server) Pick(channel, message, user, customID string, values ...string) string {
	return s.component(channel, message, user, map[string]any{"custom_id": customID, "component_type": 3, "values": values})
}

func (s *Server) component(channel, message, user string, data map[string]any) string {
	s.mu.Lock()
	on := map[string]any{"id": message, "channel_id": channel}
	if m := s.shownLocked(channel, message); m != nil {
		on = s.objectLocked(m)
	}
	s.mu.Unlock()
	return s.interact(3, channel, user, map[string]any{"data": data, "message": on})
}

func (s *Server) interact(kind int, channel, user string, more map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	i := &interaction{id: s.idLocked(), kind: kind, channel: channel, user: user, at: time.Now()}
	i.token = "interaction-token-" + i.id
	s.asked[i.token] = i
	if on, ok := more["message"].(map[string]any); ok {
		i.on, _ = on["id"].(string)
	}
	e := map[string]any{"id": i.id, "application_id": AppID, "type": kind, "token": i.token, "channel_id": channel, "version": 1,
		"entitlements": []any{}, "authorizing_integration_owners": map[string]any{}, "locale": "en-US", "app_permissions": "2248473465835073",
		"attachment_size_limit": s.fileMostLocked(channel)}
	for k, v := range more {
		e[k] = v
	}
	if c != nil {
		e["channel"] = s.channelLocked(c)
	}
	if c != nil && c.Guild != "" {
		e["guild_id"], e["guild_locale"], e["context"] = c.Guild, "en-US", 0
		member := s.memberLocked(user)
		member["permissions"] = "2248473465835073"
		e["member"] = member
	} else {
		e["user"], e["context"] = s.users[user], 1
	}
	s.dispatchLocked("INTERACTION_CREATE", e)
	return i.token
}

// shownLocked finds a message of a channel, also one that only who asked sees.
func (s *Server) shownLocked(channel, id string) *Message {
	for _, i := range s.asked {
		for _, m := range i.private {
			if m.ID == id && i.channel == channel {
				return m
			}
		}
	}
	return s.findLocked(channel, id)
}

// Age makes an interaction older.
func (s *Server) Age(token string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.asked[token]; i != nil {
		i.at = i.at.Add(-d)
	}
}

// Answer tells how an interaction was answered (0 = not yet) and what its first
// answer says now.
func (s *Server) Answer(token string) (kind int, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.asked[token]
	switch {
	case i == nil:
		return 0, ""
	case i.original == nil || i.gone || i.kind == 3:
		return i.acked, ""
	}
	return i.acked, i.original.Content
}

// Took tells how long an interaction waited for its answer; 0 = it waits.
func (s *Server) Took(token string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.asked[token]; i != nil {
		return i.took
	}
	return 0
}

// Private gives what only the one who asked sees, oldest first.
func (s *Server) Private(token string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	if i := s.asked[token]; i != nil {
		for _, m := range i.private {
			out = append(out, *m)
		}
	}
	return out
}

// Dismissed reports whether the first answer was taken away.
func (s *Server) Dismissed(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.asked[token]
	return i != nil && i.gone
}

func (s *Server) ackLocked(id, token string, data []byte, shown bool) (any, *refusal) {
	var q struct {
		Type int
		Data *outgoing
	}
	i := s.asked[token]
	switch {
	case i == nil || i.id != id || time.Since(i.at) > ackTime:
		return nil, &refusal{status: 404, code: 10062, message: "Unknown interaction"}
	case i.acked != 0:
		s.problemLocked("interaction %s was answered twice", id)
		return nil, &refusal{status: 400, code: 40060, message: "Interaction has already been acknowledged."}
	case json.Unmarshal(data, &q) != nil || !slices.Contains([]int{4, 5, 6, 7}, q.Type) || q.Type >= 6 && i.kind != 3:
		return nil, invalid("type")
	}
	if q.Data == nil {
		q.Data = &outgoing{}
	}
	if q.Type == 4 || q.Type == 7 {
		if no := s.checkLocked(q.Data); no != nil {
			return nil, no
		}
	}
	i.ephemeral = q.Data.Flags&flagEphemeral != 0
	switch q.Type {
	case 4, 5:
		i.original = &Message{ID: s.idLocked(), Channel: i.channel, Author: botUser, Type: 20, Flags: q.Data.Flags | flagLoading, asked: i}
	case 6, 7:
		i.original = s.shownLocked(i.channel, i.on)
	}
	if q.Type == 4 || q.Type == 7 {
		s.answerLocked(i, q.Data)
	}
	i.acked, i.took = q.Type, time.Since(i.at)
	if !shown {
		return nil, nil
	}
	out := map[string]any{"interaction": map[string]any{"id": i.id, "type": i.kind, "response_message_loading": q.Type == 5, "response_message_ephemeral": i.ephemeral}}
	if i.original != nil {
		out["interaction"].(map[string]any)["response_message_id"] = i.original.ID
		out["resource"] = map[string]any{"type": q.Type, "message": s.objectLocked(i.original)}
	}
	return out, nil
}

// flagLoading: the answer is being thought about. Such a message is in no
// channel's list here.
const flagLoading = 1 << 7

// answerLocked changes the first answer, which may be the message with the
// button that was pressed.
func (s *Server) answerLocked(i *interaction, q *outgoing) any {
	m := i.original
	if q.Content != nil {
		m.Content = *q.Content
	}
	if q.Components != nil {
		m.Components = q.Components
	}
	if m.Flags&flagLoading == 0 {
		return s.changedLocked(m)
	}
	m.Flags &^= flagLoading
	return s.listedLocked(i, m)
}

// listedLocked puts an answer where it is seen.
func (s *Server) listedLocked(i *interaction, m *Message) any {
	o := s.objectLocked(m)
	if m.Flags&flagEphemeral != 0 {
		i.private = append(i.private, m)
		return o
	}
	s.messages[i.channel] = append(s.messages[i.channel], m)
	s.dispatchLocked("MESSAGE_CREATE", o)
	return o
}

// webhookLocked does a call with an interaction's token.
func (s *Server) webhookLocked(method, token string, rest []string, data []byte) (any, *refusal) {
	i := s.asked[token]
	switch {
	case i == nil || i.acked == 0:
		return nil, &refusal{status: 404, code: 10015, message: "Unknown Webhook"}
	case time.Since(i.at) > tokenTime:
		return nil, &refusal{status: 401, code: 50027, message: "Invalid Webhook Token"}
	}
	var q outgoing
	if method == "PATCH" || method == "POST" {
		if err := json.Unmarshal(data, &q); err != nil {
			return nil, invalid("content")
		}
		keeps := method == "PATCH" && q.Content == nil && q.Components != nil // only the buttons change
		if !keeps && (q.Content == nil || *q.Content == "") {
			return nil, invalid("content")
		}
		if no := s.checkLocked(&q); no != nil {
			return nil, no
		}
	}
	original := len(rest) == 2 && rest[0] == "messages" && rest[1] == "@original"
	switch {
	case method == "POST" && len(rest) == 0 && !i.gone && i.original != nil && i.original.Flags&flagLoading != 0:
		return s.answerLocked(i, &q), nil // the first one is what is thought about, and seen by whom that is
	case method == "POST" && len(rest) == 0:
		m := &Message{ID: s.idLocked(), Channel: i.channel, Author: botUser, Type: 20, Content: *q.Content, Components: q.Components, Flags: q.Flags, asked: i}
		return s.listedLocked(i, m), nil
	case !original || i.gone || i.original == nil:
		return nil, &refusal{status: 404, code: 10008, message: "Unknown Message"}
	case method == "PATCH":
		return s.answerLocked(i, &q), nil
	case method == "DELETE":
		i.gone = true
		s.messages[i.channel] = slices.DeleteFunc(s.messages[i.channel], func(x *Message) bool { return x == i.original })
		return nil, nil
	}
	return s.objectLocked(i.original), nil
}
