package discordtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// goodComponents checks rows of buttons, or of one select menu.
func goodComponents(raw json.RawMessage) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	var rows []struct {
		Type       int
		Components []struct {
			Type, Style int
			Label, URL  string
			CustomID    string `json:"custom_id"`
			Options     []struct{ Label, Value string }
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
			if b.Type == 2 && b.Style == 5 && b.Label != "" && b.URL != "" && b.CustomID == "" {
				continue // a link
			}
			if b.CustomID == "" || utf8.RuneCountInString(b.CustomID) > 100 || ids[b.CustomID] {
				return false
			}
			ids[b.CustomID] = true
			switch {
			case b.Type == 2 && b.Style >= 1 && b.Style <= 4 && b.Label != "" && utf8.RuneCountInString(b.Label) <= 80:
			case b.Type == 3 && len(row.Components) == 1 && len(b.Options) >= 1 && len(b.Options) <= 25:
				values := map[string]bool{}
				for _, o := range b.Options {
					if o.Label == "" || o.Value == "" || utf8.RuneCountInString(o.Label) > 100 || utf8.RuneCountInString(o.Value) > 100 || values[o.Value] {
						return false
					}
					values[o.Value] = true
				}
			default:
				return false
			}
		}
	}
	return true
}

var commandName = regexp.MustCompile(`^[-_\p{Ll}\p{N}]{1,32}$`)

// menuName is what a message command may be called; it has no description.
var menuName = regexp.MustCompile(`^[^\n]{1,32}$`)

func (s *Server) setCommandsLocked(data []byte) (any, *refusal) {
	var list []struct {
		Name, Description string
		Type              int
		Options           []struct {
			Type              int
			Name, Description string
			Required          bool
		}
	}
	if json.Unmarshal(data, &list) != nil {
		return nil, invalid("commands")
	}
	seen, kinds := map[string]bool{}, map[int]int{}
	for _, c := range list {
		if c.Type == 0 {
			c.Type = 1
		}
		kinds[c.Type]++
		n, key := utf8.RuneCountInString(c.Description), fmt.Sprint(c.Type, c.Name)
		good := c.Type == 1 && commandName.MatchString(c.Name) && n >= 1 && n <= 100 ||
			c.Type == 3 && menuName.MatchString(c.Name) && n == 0 && len(c.Options) == 0
		if !good || seen[key] {
			return nil, invalid("commands")
		}
		seen[key] = true
		for _, o := range c.Options {
			if n := utf8.RuneCountInString(o.Description); !commandName.MatchString(o.Name) || n < 1 || n > 100 || o.Type != 3 {
				return nil, invalid("options")
			}
		}
	}
	if kinds[1] > 100 || kinds[3] > 5 { // Discord's limits
		return nil, invalid("commands")
	}
	s.commands = data
	var out []map[string]any
	_ = json.Unmarshal(data, &out)
	for _, o := range out {
		o["id"], o["application_id"], o["version"] = s.idLocked(), AppID, "1"
		o["default_member_permissions"], o["nsfw"] = nil, false
		if o["type"] == nil {
			o["type"] = 1
		}
		if o["description"] == nil {
			o["description"] = ""
		}
	}
	return out, nil
}
