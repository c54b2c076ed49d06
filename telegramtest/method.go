package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf16"
)

// do does one call. It blocks only in getUpdates.
func (s *Server) do(ctx context.Context, method string, p params) (any, *refusal) {
	if slices.Contains(s.Lacks, method) {
		return nil, &refusal{Code: 404, Description: "Not Found: method not found"}
	}
	if method == "getUpdates" {
		return s.getUpdates(ctx, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "getMe":
		return map[string]any{"id": BotID, "is_bot": true, "first_name": "Cox", "username": s.username,
			"can_join_groups": true, "can_read_all_group_messages": s.SeesAll, "supports_inline_queries": false,
			"can_connect_to_business": false, "has_main_web_app": false, "has_topics_enabled": false, "allows_users_to_create_topics": false,
			"can_manage_bots": false, "supports_join_request_queries": false}, nil
	case "sendMessage":
		return s.sendMessageLocked(p)
	case "editMessageText":
		return s.editLocked(p)
	case "editMessageReplyMarkup":
		return s.editKeysLocked(p)
	case "deleteMessage":
		return s.deleteLocked(p)
	case "sendDocument", "sendPhoto", "sendVoice", "sendAudio", "sendVideo", "sendAnimation":
		return s.sendFileLocked(method, p)
	case "sendRichMessage":
		return s.sendRichLocked(p)
	case "reopenForumTopic":
		return s.reopenLocked(p)
	case "setWebhook":
		return s.setWebhookLocked(p)
	case "deleteWebhook":
		return s.deleteWebhookLocked(p)
	case "getWebhookInfo":
		return s.webhookInfoLocked()
	case "sendMessageDraft":
		return s.draftLocked(p)
	case "sendChatAction":
		return s.actionLocked(p)
	case "setMessageReaction":
		return s.reactLocked(p)
	case "answerCallbackQuery":
		return s.answerLocked(p)
	case "getChatMember":
		return s.memberLocked(p)
	case "setMyCommands":
		return s.commandsLocked(p)
	case "getFile":
		return s.fileLocked(p)
	}
	return nil, &refusal{Code: 404, Description: "Not Found: method not found"}
}

// placeLocked finds the chat of a call and judges whether the bot may act in
// it.
func (s *Server) placeLocked(p params) (*Chat, *refusal) {
	c := s.chats[p.int("chat_id")]
	switch {
	case c == nil:
		return nil, badRequest("chat not found")
	case c.MigratedTo != 0:
		no := badRequest("group chat was upgraded to a supergroup chat")
		no.Parameters = &struct {
			RetryAfter int   `json:"retry_after,omitempty"`
			MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
		}{MigrateTo: c.MigratedTo}
		return nil, no
	case c.Blocked && c.Type == "private":
		return nil, &refusal{Code: 403, Description: "Forbidden: bot was blocked by the user"}
	case c.Blocked:
		return nil, &refusal{Code: 403, Description: "Forbidden: bot was kicked from the group chat"}
	}
	if thread := int(p.int("message_thread_id")); thread != 0 && (thread != generalTopic || !p.has("action")) {
		open, ok := c.Topics[thread]
		if !c.Forum || !ok {
			return nil, badRequest("message thread not found")
		}
		if !open {
			return nil, badRequest("TOPIC_CLOSED")
		}
	}
	return c, nil
}

func (s *Server) sendMessageLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	text, ents, keys, no := s.contentLocked(p)
	if no != nil {
		return nil, no
	}
	m, no := s.postLocked(c, p)
	if no != nil {
		return nil, no
	}
	m.Text, m.Entities, m.Keyboard = text, ents, keys
	return s.wireLocked(m), nil
}

// postLocked puts a message of the bot into a chat, with what all kinds of
// messages share.
func (s *Server) postLocked(c *Chat, p params) (*Message, *refusal) {
	if no := s.floodLocked(c.ID, 1); no != nil {
		return nil, no
	}
	var reply struct {
		ID    int  `json:"message_id"`
		Allow bool `json:"allow_sending_without_reply"`
	}
	if p.decode("reply_parameters", &reply) != nil {
		return nil, badRequest("can't parse reply parameters")
	}
	if reply.ID != 0 && s.messages[c.ID][reply.ID] == nil {
		if !reply.Allow {
			return nil, badRequest("message to be replied not found")
		}
		reply.ID = 0
	}
	m := s.addLocked(c.ID)
	m.Thread, m.FromBot = int(p.int("message_thread_id")), true
	m.ReplyTo, m.Silent = reply.ID, p.bool("disable_notification")
	return m, nil
}

// contentLocked reads and judges text, entities and keyboard.
func (s *Server) contentLocked(p params) (text string, ents []Entity, keys [][]Button, no *refusal) {
	text = p.str("text")
	n := len(utf16.Encode([]rune(text)))
	switch {
	case !p.has("text") || blank(text):
		return "", nil, nil, badRequest("message text is empty")
	case n > 4096:
		return "", nil, nil, badRequest("message is too long")
	}
	if ents, no = s.entitiesLocked(p, text, "entities"); no != nil {
		return "", nil, nil, no
	}
	keys, no = s.keysLocked(p)
	return text, ents, keys, no
}

// entitiesLocked reads and judges the entities of a text or caption.
func (s *Server) entitiesLocked(p params, text, name string) (ents []Entity, no *refusal) {
	if p.str("parse_mode") != "" {
		s.problemLocked("parse_mode %q: text that a model wrote can fail to parse", p.str("parse_mode"))
	}
	if err := p.decode(name, &ents); err != nil {
		return nil, badRequest("can't parse entities: %v", err)
	}
	if err := CheckEntities(text, ents); err != nil {
		s.problemLocked("%v in %q", err, text)
		return nil, badRequest("can't parse entities: %v", err)
	}
	return ents, nil
}

func (s *Server) keysLocked(p params) ([][]Button, *refusal) {
	var markup struct {
		Keys [][]Button `json:"inline_keyboard"`
	}
	if err := p.decode("reply_markup", &markup); err != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	for _, row := range markup.Keys {
		for _, b := range row {
			if b.Text == "" {
				return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			}
			switch {
			case b.URL != "" && !linkable(b.URL):
				return nil, badRequest("BUTTON_URL_INVALID")
			case b.URL == "" && len(b.Data) == 0 || len(b.Data) > 64:
				return nil, badRequest("BUTTON_DATA_INVALID")
			}
		}
	}
	return markup.Keys, nil
}

func (s *Server) editLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	m := s.messages[c.ID][int(p.int("message_id"))]
	if m == nil {
		return nil, badRequest("message to edit not found")
	}
	if !m.FromBot {
		s.problemLocked("edit of message %d, which is not the bot's", m.ID)
		return nil, badRequest("message can't be edited")
	}
	text, ents, keys, no := s.contentLocked(p)
	if no != nil {
		return nil, no
	}
	if no := s.floodLocked(c.ID, 1); no != nil {
		return nil, no
	}
	if text == m.Text && sameJSON(ents, m.Entities) && sameJSON(keys, m.Keyboard) {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Text, m.Entities, m.Keyboard = text, ents, keys
	m.Edits++
	m.Changed = time.Now()
	return s.wireLocked(m), nil
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (s *Server) deleteLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	if s.messages[c.ID][int(p.int("message_id"))] == nil {
		return nil, badRequest("message to delete not found")
	}
	delete(s.messages[c.ID], int(p.int("message_id")))
	return true, nil
}

func (s *Server) draftLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	if c.Type != "private" || c.NoDrafts {
		return nil, badRequest("DRAFT_NOT_ALLOWED")
	}
	if raw := p.json["draft_id"]; p.int("draft_id") == 0 || len(raw) > 0 && raw[0] == '"' {
		s.problemLocked("draft_id %s: want a number that is not zero", raw)
		return nil, badRequest("invalid draft_id specified")
	}
	text := p.str("text")
	var ents []Entity
	if p.decode("entities", &ents) != nil || CheckEntities(text, ents) != nil {
		s.problemLocked("entities of a draft: %v in %q", CheckEntities(text, ents), text)
		return nil, badRequest("can't parse entities")
	}
	if len(utf16.Encode([]rune(text))) > 4096 {
		return nil, badRequest("message is too long")
	}
	if no := s.floodLocked(c.ID, 0.5); no != nil {
		return nil, no
	}
	return true, nil
}

var actions = []string{"typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
	"choose_sticker", "find_location", "record_video_note", "upload_video_note"}

func (s *Server) actionLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	if c.Type == "channel" {
		return nil, badRequest("chat actions are not available in channels")
	}
	if !slices.Contains(actions, p.str("action")) {
		return nil, badRequest("wrong parameter action in request")
	}
	return true, nil
}

// reactionSet is the part of Telegram's fixed set that tests meet.
var reactionSet = []string{"👍", "👎", "❤", "🔥", "🥰", "👏", "😁", "🤔", "🤯", "😱", "🎉", "🤩", "🙏", "👌", "🤝", "✍", "👀", "😴", "💔", "🤗", "🫡", "⚡", "🏆", "🆒"}

func (s *Server) reactLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	var list []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if p.decode("reaction", &list) != nil {
		return nil, badRequest("can't parse reaction")
	}
	m := s.messages[c.ID][int(p.int("message_id"))]
	switch {
	case m == nil:
		return nil, badRequest("message to react not found")
	case len(list) > 1:
		return nil, badRequest("REACTIONS_TOO_MANY")
	case c.NoReactions:
		return nil, badRequest("REACTION_INVALID")
	case len(list) == 1 && !slices.Contains(reactionSet, list[0].Emoji):
		s.problemLocked("reaction %q is not in the set", list[0].Emoji)
		return nil, badRequest("REACTION_INVALID")
	}
	m.Reaction = ""
	if len(list) == 1 {
		m.Reaction = list[0].Emoji
	}
	return true, nil
}

func (s *Server) answerLocked(p params) (any, *refusal) {
	id := p.str("callback_query_id")
	if _, ok := s.callbacks[id]; !ok {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	if len(utf16.Encode([]rune(p.str("text")))) > 200 {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	s.callbacks[id] = true
	return true, nil
}

// memberLocked does getChatMember, of the bot itself in a channel.
func (s *Server) memberLocked(p params) (any, *refusal) {
	c := s.chats[p.int("chat_id")]
	switch {
	case c == nil:
		return nil, badRequest("chat not found")
	case c.Type != "channel" || p.int("user_id") != BotID:
		return nil, badRequest("PARTICIPANT_ID_INVALID")
	case !c.Admin:
		return nil, badRequest("member list is inaccessible")
	}
	return map[string]any{"status": "administrator", "user": s.userLocked(BotID)}, nil
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (s *Server) commandsLocked(p params) (any, *refusal) {
	var list []struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}
	if p.decode("commands", &list) != nil || len(list) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range list {
		if !commandName.MatchString(c.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := len(utf16.Encode([]rune(c.Description))); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	s.commands = slices.Clone(p.raw("commands"))
	return true, nil
}

func (s *Server) addLocked(chat int64) *Message {
	// Private chats and groups share one row of ids; each supergroup has its own.
	row := chat
	if c := s.chats[chat]; c != nil && (c.Type == "private" || c.Type == "group") {
		row = 0
	}
	s.lastMsg[row]++
	m := &Message{ID: s.lastMsg[row], Chat: chat, At: time.Now()}
	if s.messages[chat] == nil {
		s.messages[chat] = make(map[int]*Message)
	}
	s.messages[chat][m.ID] = m
	return m
}

func (s *Server) wireLocked(m *Message) map[string]any {
	out := map[string]any{"message_id": m.ID, "date": m.At.Add(s.Skew).Unix(), "chat": s.chatWireLocked(m.Chat),
		"from": User{ID: BotID, IsBot: true, FirstName: "Cox", Username: s.username}}
	if m.From != 0 {
		out["from"] = s.userLocked(m.From)
	}
	if c := s.chats[m.Chat]; c != nil && c.Type == "channel" { // all posts are the channel's
		delete(out, "from")
		out["sender_chat"] = s.chatWireLocked(m.Chat)
	}
	text, ents := "text", "entities"
	switch {
	case m.Kind != "":
		text, ents = "caption", "caption_entities"
		out[m.Kind] = s.fileWireLocked(m)
	case m.Rich != "":
		out["rich_message"] = map[string]any{"blocks": []any{}}
	}
	if m.Text != "" {
		out[text] = m.Text
	}
	if r := s.messages[m.Chat][m.ReplyTo]; r != nil {
		to := *r
		to.ReplyTo = 0 // the reply shows one step back
		out["reply_to_message"] = s.wireLocked(&to)
	}
	if m.Edits > 0 {
		out["edit_date"] = m.Changed.Add(s.Skew).Unix()
	}
	if m.Thread != 0 {
		out["message_thread_id"], out["is_topic_message"] = m.Thread, true
	}
	if len(m.Entities) > 0 {
		out[ents] = m.Entities
	}
	if len(m.Keyboard) > 0 {
		out["reply_markup"] = map[string]any{"inline_keyboard": m.Keyboard}
	}
	return out
}

func (s *Server) chatWireLocked(id int64) map[string]any {
	c := s.chats[id]
	if c == nil {
		return map[string]any{"id": id, "type": "private"}
	}
	out := map[string]any{"id": id, "type": c.Type}
	if c.Type == "private" {
		out["first_name"] = s.userLocked(id).FirstName
	} else {
		out["title"] = c.Title
	}
	if c.Forum {
		out["is_forum"] = true
	}
	return out
}

func (s *Server) userLocked(id int64) User {
	if u, ok := s.users[id]; ok {
		return u
	}
	return User{ID: id, FirstName: fmt.Sprintf("User%d", id)}
}
