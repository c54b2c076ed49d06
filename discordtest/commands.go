package discordtest

import (
	"encoding/json"
	"regexp"
	"time"
	"unicode/utf8"
)

func goodComponents(raw json.RawMessage) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	var rows []struct {
		Type       int
		Components []struct {
			Type, Style int
			Label       string
			CustomID    string `json:"custom_id"`
		}
	}
	if json.Unmarshal(raw, &rows) != nil || len(rows) > 5 {
		return false
	}
	ids := map[string]bool{}
	for _, row := range rows {
		if row.Type != 1 || len(row.Components) < 1 || len(row.Components) > 5 {
			return false
		}
		for _, b := range row.Components {
			if b.Type != 2 || b.Style < 1 || b.Style > 4 || b.Label == "" || utf8.RuneCountInString(b.Label) > 80 ||
				b.CustomID == "" || utf8.RuneCountInString(b.CustomID) > 100 || ids[b.CustomID] {
				return false
			}
			ids[b.CustomID] = true
		}
	}
	return true
}

var commandName = regexp.MustCompile(`^[-_\p{Ll}\p{N}]{1,32}$`)

func (s *Server) setCommandsLocked(data []byte) (any, *refusal) {
	var list []struct {
		Name, Description string
		Options           []struct {
			Type              int
			Name, Description string
			Required          bool
		}
	}
	if json.Unmarshal(data, &list) != nil || len(list) > 100 {
		return nil, invalid("commands")
	}
	seen := map[string]bool{}
	for _, c := range list {
		if n := utf8.RuneCountInString(c.Description); !commandName.MatchString(c.Name) || n < 1 || n > 100 || seen[c.Name] {
			return nil, invalid("commands")
		}
		seen[c.Name] = true
		for _, o := range c.Options {
			if n := utf8.RuneCountInString(o.Description); !commandName.MatchString(o.Name) || n < 1 || n > 100 || o.Type != 3 {
				return nil, invalid("options")
			}
		}
	}
	s.commands = data
	return json.RawMessage(data), nil
}

func (s *Server) ackLocked(id, token string, data []byte) (any, *refusal) {
	var q struct{ Type int }
	i := s.asked[token]
	switch {
	case i == nil || i.id != id || time.Since(i.at) > 3*time.Second:
		return nil, &refusal{status: 404, code: 10062, message: "Unknown interaction"}
	case i.acked != 0:
		s.problemLocked("interaction %s was answered twice", id)
		return nil, &refusal{status: 400, code: 40060, message: "Interaction has already been acknowledged."}
	case json.Unmarshal(data, &q) != nil || q.Type != 4 && q.Type != 5 && q.Type != 6 || q.Type == 6 && i.kind != 3:
		return nil, invalid("type")
	}
	i.acked = q.Type
	return nil, nil
}

func (s *Server) completeLocked(token string, data []byte) (any, *refusal) {
	var q outgoing
	i := s.asked[token]
	if i == nil || i.acked != 5 {
		return nil, &refusal{status: 404, code: 10015, message: "Unknown Webhook"}
	}
	if json.Unmarshal(data, &q) != nil || q.Content == nil || *q.Content == "" {
		return nil, invalid("content")
	}
	if no := s.checkLocked(&q); no != nil {
		return nil, no
	}
	i.content = *q.Content
	return map[string]any{"id": i.id, "content": i.content}, nil
}
