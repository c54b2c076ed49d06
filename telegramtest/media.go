package telegramtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Limits of the cloud API, in bytes and in UTF-16 units.
const (
	uploadMost  = 50 << 20
	photoMost   = 10 << 20
	captionMost = 1024
	richMost    = 32768
)

// sendFileLocked does sendDocument and its like: the file is a part of a
// multipart form, named as the method's last word.
func (s *Server) sendFileLocked(method string, p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	kind := strings.ToLower(strings.TrimPrefix(method, "send"))
	f, ok := p.upload(kind)
	caption := p.str("caption")
	switch {
	case !ok || len(f.data) == 0:
		return nil, badRequest("there is no %s in the request", kind)
	case len(f.data) > uploadMost:
		return nil, &refusal{Code: 413, Description: "Request Entity Too Large"}
	case kind == "photo" && len(f.data) > photoMost:
		return nil, badRequest("PHOTO_SAVE_FILE_INVALID")
	case kind == "photo" && !isPicture(f.data):
		return nil, badRequest("IMAGE_PROCESS_FAILED")
	case kind == "voice" && c.NoVoice:
		return nil, badRequest("VOICE_MESSAGES_FORBIDDEN")
	case unitsOf(caption) > captionMost:
		return nil, badRequest("message caption is too long")
	}
	ents, no := s.entitiesLocked(p, caption, "caption_entities")
	if no != nil {
		return nil, no
	}
	keys, no := s.keysLocked(p)
	if no != nil {
		return nil, no
	}
	m, no := s.postLocked(c, p)
	if no != nil {
		return nil, no
	}
	m.Text, m.Entities, m.Keyboard = caption, ents, keys
	m.Kind, m.FileName, m.Data = kind, f.name, f.data
	s.files[fileOf(m)] = f.data
	return s.wireLocked(m), nil
}

// fileOf is the id of a message's file.
func fileOf(m *Message) string { return fmt.Sprintf("file-%d-%d", m.Chat, m.ID) }

// fileWireLocked is the file as its message tells of it; of a photo there are
// sizes.
func (s *Server) fileWireLocked(m *Message) any {
	id := fileOf(m)
	f := map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": len(m.Data)}
	switch m.Kind {
	case "photo":
		f["width"], f["height"] = 1, 1
		return []any{f}
	case "voice", "audio":
		f["duration"] = 1
	case "video", "animation":
		f["width"], f["height"], f["duration"] = 1, 1, 1
	}
	if m.Kind != "voice" {
		f["file_name"] = m.FileName
	}
	return f
}

func isPicture(data []byte) bool {
	return slices.ContainsFunc([]string{"\xff\xd8\xff", "\x89PNG\r\n", "GIF8"}, func(magic string) bool {
		return strings.HasPrefix(string(data), magic)
	})
}

// sendRichLocked does sendRichMessage (Bot API 10.1): exactly one of markdown,
// html and blocks.
func (s *Server) sendRichLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	var rich map[string]json.RawMessage
	if p.decode("rich_message", &rich) != nil {
		return nil, badRequest("can't parse rich message")
	}
	var md string
	n := 0
	for _, k := range []string{"markdown", "html", "blocks"} {
		if _, ok := rich[k]; ok {
			n++
		}
	}
	if json.Unmarshal(rich["markdown"], &md) != nil || n != 1 || blank(md) || unitsOf(md) > richMost {
		return nil, badRequest("RICH_MESSAGE_INVALID")
	}
	if strings.ContainsAny(md, "<$") {
		s.problemLocked("rich message with raw HTML or a formula in it: %q", md)
	}
	keys, no := s.keysLocked(p)
	if no != nil {
		return nil, no
	}
	m, no := s.postLocked(c, p)
	if no != nil {
		return nil, no
	}
	m.Rich, m.Keyboard = md, keys
	return s.wireLocked(m), nil
}

// editKeysLocked does editMessageReplyMarkup.
func (s *Server) editKeysLocked(p params) (any, *refusal) {
	c, no := s.placeLocked(p)
	if no != nil {
		return nil, no
	}
	m := s.messages[c.ID][int(p.int("message_id"))]
	if m == nil {
		return nil, badRequest("message to edit not found")
	}
	keys, no := s.keysLocked(p)
	if no != nil {
		return nil, no
	}
	if sameJSON(keys, m.Keyboard) {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Keyboard = keys
	return s.wireLocked(m), nil
}

const generalTopic = 1

// reopenLocked does reopenForumTopic.
func (s *Server) reopenLocked(p params) (any, *refusal) {
	c := s.chats[p.int("chat_id")]
	thread := int(p.int("message_thread_id"))
	switch {
	case c == nil:
		return nil, badRequest("chat not found")
	case !c.Forum:
		return nil, badRequest("the chat is not a forum")
	case !c.Manages:
		return nil, badRequest("not enough rights to manage forum topics")
	}
	open, ok := c.Topics[thread]
	switch {
	case !ok:
		return nil, badRequest("message thread not found")
	case open:
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	c.Topics[thread] = true
	return true, nil
}

// fileLocked does getFile.
func (s *Server) fileLocked(p params) (any, *refusal) {
	id := p.str("file_id")
	data, ok := s.files[id]
	switch {
	case !ok:
		return nil, badRequest("wrong file_id or the file is temporarily unavailable")
	case len(data) > 20<<20:
		return nil, badRequest("file is too big")
	}
	return map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": len(data), "file_path": id}, nil
}
