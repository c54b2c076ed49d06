package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
	"unicode/utf16"
)

// AddUser says who a user id is; others are called User<id>.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// AddChat adds or replaces a chat.
func (s *Server) AddChat(c Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addChatLocked(c)
}

func (s *Server) addChatLocked(c Chat) *Chat {
	if c.Type == "" {
		switch {
		case c.ID > 0:
			c.Type = "private"
		case c.ID < -1_000_000_000_000 || c.Forum:
			c.Type = "supergroup"
		default:
			c.Type = "group"
		}
	}
	if c.Title == "" && c.Type != "private" {
		c.Title = fmt.Sprintf("Chat%d", -c.ID)
	}
	s.chats[c.ID] = &c
	return &c
}

func (s *Server) chatLocked(id int64) *Chat {
	if c := s.chats[id]; c != nil {
		return c
	}
	return s.addChatLocked(Chat{ID: id})
}

// Revoke makes the token invalid.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = "revoked"
}

// AddFile adds a file that getFile knows by id. Its path is the id.
func (s *Server) AddFile(id string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id] = data
}

// SetNextUpdate makes id the id of the next update. Telegram does that with a
// random one after a quiet week.
func (s *Server) SetNextUpdate(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID = id
}

// Update queues raw updates, each a JSON object with the update's one field; the
// update_id is put in unless it has one. It returns the last one's id. Updates
// queued together come with one poll.
func (s *Server) Update(raw ...string) (id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range raw {
		id = s.updateLocked([]byte(r))
	}
	return id
}

// A wireID is which message an update is of.
type wireID struct {
	ID   int `json:"message_id"`
	Chat struct {
		ID int64 `json:"id"`
	} `json:"chat"`
}

func (s *Server) updateLocked(raw []byte) int64 {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		panic("telegramtest: update is no JSON object: " + err.Error())
	}
	id := s.nextID
	if given, ok := fields["update_id"]; ok {
		if json.Unmarshal(given, &id) != nil {
			id = 0
		}
	} else {
		fields["update_id"] = json.RawMessage(fmt.Sprint(id))
	}
	s.nextID = id + 1
	kind := ""
	for k := range fields {
		if k != "update_id" {
			kind = k
		}
	}
	var q struct {
		Callback *struct {
			ID string `json:"id"`
		} `json:"callback_query"`
		Message *wireID `json:"message"`
		Post    *wireID `json:"channel_post"`
	}
	if json.Unmarshal(raw, &q) == nil { // else it is meant to be unreadable
		if q.Callback != nil {
			s.callbacks[q.Callback.ID] = false
		}
		m := q.Message
		if m == nil {
			m = q.Post
		}
		if m != nil && m.Chat.ID != 0 {
			c := s.chatLocked(m.Chat.ID)
			if s.messages[c.ID] == nil {
				s.messages[c.ID] = make(map[int]*Message)
			}
			if s.messages[c.ID][m.ID] == nil {
				s.messages[c.ID][m.ID] = &Message{ID: m.ID, Chat: c.ID, At: time.Now()}
			}
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		panic("telegramtest: " + err.Error())
	}
	s.queue = append(s.queue, queued{id, kind, data, time.Now()})
	s.changeLocked()
	return id
}

// Fields are more fields of a wire message.
type Fields map[string]any

var found = regexp.MustCompile(`(?:^|\s)(/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]+)?|@[A-Za-z0-9_]{4,32})\b`)

// Say queues a message of a person, with the entities Telegram would find in
// it, and returns its id. A chat that is not known yet is added. In a channel it
// is a post, and from does not matter.
func (s *Server) Say(chat, from int64, text string, more ...Fields) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chatLocked(chat)
	m := s.addLocked(chat)
	m.Text = text
	wire := s.sayLocked(m, from, more)
	raw, err := json.Marshal(map[string]any{s.kindLocked(chat, "message", "channel_post"): wire})
	if err != nil {
		panic("telegramtest: " + err.Error())
	}
	s.updateLocked(raw)
	return m.ID
}

// Edit queues the edit of a person's message.
func (s *Server) Edit(chat, from int64, msg int, text string, more ...Fields) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[chat][msg]
	if m == nil {
		panic(fmt.Sprintf("telegramtest: chat %d has no message %d", chat, msg))
	}
	m.Text, m.Changed = text, time.Now()
	wire := s.sayLocked(m, from, more)
	wire["edit_date"] = m.Changed.Add(s.Skew).Unix()
	raw, err := json.Marshal(map[string]any{s.kindLocked(chat, "edited_message", "edited_channel_post"): wire})
	if err != nil {
		panic("telegramtest: " + err.Error())
	}
	s.updateLocked(raw)
}

// kindLocked is the one kind of update, or of a channel the other.
func (s *Server) kindLocked(chat int64, message, post string) string {
	if c := s.chats[chat]; c != nil && c.Type == "channel" {
		return post
	}
	return message
}

func (s *Server) sayLocked(m *Message, from int64, more []Fields) map[string]any {
	m.From = from
	wire := s.wireLocked(m)
	m.Entities = nil
	for _, at := range found.FindAllStringSubmatchIndex(m.Text, -1) {
		e := Entity{Type: "mention", Offset: unitsOf(m.Text[:at[2]]), Length: unitsOf(m.Text[at[2]:at[3]])}
		if m.Text[at[2]] == '/' {
			e.Type = "bot_command"
		}
		m.Entities = append(m.Entities, e)
	}
	delete(wire, "entities")
	if len(m.Entities) > 0 {
		wire["entities"] = m.Entities
	}
	if m.Text == "" {
		delete(wire, "text")
	}
	for _, f := range more {
		maps.Copy(wire, f)
	}
	return wire
}

func unitsOf(s string) int { return len(utf16.Encode([]rune(s))) }

// Press queues the press of a button below a message of the bot, and returns
// the query's id.
func (s *Server) Press(chat int64, msg int, from int64, data string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextQuery++
	id := fmt.Sprintf("q%d", s.nextQuery)
	m := s.messages[chat][msg]
	wire := map[string]any{"message_id": msg, "date": 0, "chat": s.chatWireLocked(chat)} // inaccessible
	if m != nil {
		wire = s.wireLocked(m)
	}
	raw, err := json.Marshal(map[string]any{"callback_query": map[string]any{
		"id": id, "from": s.userLocked(from), "chat_instance": "1", "data": data, "message": wire}})
	if err != nil {
		panic("telegramtest: " + err.Error())
	}
	s.updateLocked(raw)
	return id
}

// React queues the change of a person's reactions on a message to those given.
func (s *Server) React(chat int64, msg int, from int64, emoji ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]string{}
	for _, e := range emoji {
		list = append(list, map[string]string{"type": "emoji", "emoji": e})
	}
	raw, err := json.Marshal(map[string]any{"message_reaction": map[string]any{
		"chat": s.chatWireLocked(chat), "message_id": msg, "user": s.userLocked(from), "date": time.Now().Add(s.Skew).Unix(),
		"old_reaction": []any{}, "new_reaction": list}})
	if err != nil {
		panic("telegramtest: " + err.Error())
	}
	s.updateLocked(raw)
}

// Delete takes a message out of a chat, as a person can; the API tells nobody.
func (s *Server) Delete(chat int64, msg int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.messages[chat], msg)
}

// Calls gives the recorded calls of the methods named, or all but polls.
func (s *Server) Calls(methods ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if len(methods) == 0 && c.Method != "getUpdates" || slices.Contains(methods, c.Method) {
			out = append(out, c)
		}
	}
	return out
}

// Messages gives the bot's messages that stand in a chat, oldest first.
func (s *Server) Messages(chat int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, id := range slices.Sorted(maps.Keys(s.messages[chat])) {
		if m := s.messages[chat][id]; m.FromBot {
			out = append(out, *m)
		}
	}
	return out
}

// Message gives any message of a chat.
func (s *Server) Message(chat int64, id int) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[chat][id]
	if m == nil {
		return Message{}, false
	}
	return *m, true
}

// Pending gives how many updates are not confirmed, and the highest offset
// ever asked for.
func (s *Server) Pending() (unconfirmed int, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.asked
}

// Unanswered gives the presses that no answerCallbackQuery has come for.
func (s *Server) Unanswered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.callbacks)) {
		if !s.callbacks[id] {
			out = append(out, id)
		}
	}
	return out
}

// Commands gives the command menu as it was last set, nil if never.
func (s *Server) Commands() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands
}

// Problems gives what the client did that the API would forgive, at a price.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Wait returns nil as soon as cond holds; it is asked after every change.
func (s *Server) Wait(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("telegramtest: still waiting: %w", ctx.Err())
		}
	}
}
