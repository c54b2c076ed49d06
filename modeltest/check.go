package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The strict rules. Each stands for a provider that refuses the opposite:
//
//   - no unknown keys, at the top or in a message (Mistral, Fireworks,
//     Moonshot answer 400 or 422 to extra inputs), and no key twice;
//   - content is always there and, but for an assistant row with calls, not
//     empty (DeepSeek and pydantic servers, 422);
//   - type "function" and arguments always there; arguments are the text of a
//     JSON object (one bad one makes every later request fail);
//   - at most one system row, first; user and assistant alternate; after a
//     tool row only assistant or tool (strict chat templates, Mistral);
//   - every call is answered by exactly one tool row, next to it, in order;
//   - the last row is user or tool (Mistral, prefill-less models);
//   - a tool row holds text only (OpenAI: images only in role user).

// parsed is a request body, as far as it could be read.
type parsed struct {
	messages []json.RawMessage
	tools    json.RawMessage
	req      Request
	stream   bool
	usage    bool
}

var (
	nameRule = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

	topKeys = []string{"model", "messages", "stream", "stream_options", "tools", "tool_choice", "max_tokens",
		"max_completion_tokens", "prompt_cache_key", "temperature", "parallel_tool_calls", "reasoning_effort"}
	messageKeys = map[string][]string{
		"system":    {"role", "content"},
		"user":      {"role", "content"},
		"assistant": {"role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details", "extra_content"},
		"tool":      {"role", "content", "tool_call_id"},
	}
)

// parse reads and checks a body. On an error what was read so far is given
// too, for the record.
func parse(body []byte) (parsed, error) {
	var p parsed
	top, err := object(body, topKeys)
	if err != nil {
		return p, fmt.Errorf("body: %w", err)
	}
	json.Unmarshal(top["messages"], &p.messages)
	p.tools = top["tools"]
	json.Unmarshal(top["prompt_cache_key"], &p.req.CacheKey)
	json.Unmarshal(top["max_tokens"], &p.req.Max)
	json.Unmarshal(top["max_completion_tokens"], &p.req.Max)
	if err := json.Unmarshal(top["model"], &p.req.Model); err != nil || p.req.Model == "" {
		return p, errors.New("model is missing")
	}
	if raw, ok := top["stream"]; ok && json.Unmarshal(raw, &p.stream) != nil {
		return p, errors.New("stream is not a bool")
	}
	if err := p.options(top); err != nil {
		return p, err
	}
	if len(p.messages) == 0 {
		return p, errors.New("messages is empty")
	}
	for i, raw := range p.messages {
		m, err := message(raw)
		if err != nil {
			return p, fmt.Errorf("messages[%d]: %w", i, err)
		}
		p.req.Messages = append(p.req.Messages, m)
	}
	return p, order(p.req.Messages)
}

func (p *parsed) options(top map[string]json.RawMessage) error {
	if raw, ok := top["stream_options"]; ok {
		o, err := object(raw, []string{"include_usage"})
		if err != nil {
			return fmt.Errorf("stream_options: %w", err)
		}
		if !p.stream {
			return errors.New("stream_options without stream")
		}
		p.usage = string(o["include_usage"]) == "true"
	}
	if raw, ok := top["tools"]; ok {
		names, err := tools(raw)
		if err != nil {
			return err
		}
		p.req.Tools = names
	}
	if raw, ok := top["tool_choice"]; ok {
		if p.tools == nil {
			return errors.New("tool_choice without tools")
		}
		if c := string(raw); c != `"none"` && c != `"auto"` && c != `"required"` {
			return fmt.Errorf("tool_choice is %s", c)
		}
		p.req.NoTools = string(raw) == `"none"`
	}
	for _, k := range []string{"max_tokens", "max_completion_tokens"} {
		if _, ok := top[k]; ok && p.req.Max <= 0 {
			return fmt.Errorf("%s is not a positive number", k)
		}
	}
	return nil
}

func tools(raw json.RawMessage) (names []string, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, errors.New("tools is not a filled array")
	}
	for i, t := range list {
		m, err := object(t, []string{"type", "function"})
		if err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
		f, err := object(m["function"], []string{"name", "description", "parameters", "strict"})
		if err != nil {
			return nil, fmt.Errorf("tools[%d].function: %w", i, err)
		}
		var name string
		json.Unmarshal(f["name"], &name)
		params, err := object(f["parameters"], nil)
		switch {
		case string(m["type"]) != `"function"`:
			return nil, fmt.Errorf("tools[%d].type is %s", i, m["type"])
		case !nameRule.MatchString(name):
			return nil, fmt.Errorf("tools[%d]: bad name %q", i, name)
		case slices.Contains(names, name):
			return nil, fmt.Errorf("tools[%d]: name %q twice", i, name)
		case err != nil || string(params["type"]) != `"object"`:
			return nil, fmt.Errorf("tools[%d].parameters is not an object schema", i)
		}
		names = append(names, name)
	}
	return names, nil
}

func message(raw json.RawMessage) (Message, error) {
	var head struct {
		Role string `json:"role"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Message{}, err
	}
	allowed, ok := messageKeys[head.Role]
	if !ok {
		return Message{}, fmt.Errorf("role %q", head.Role)
	}
	keys, err := object(raw, allowed)
	if err != nil {
		return Message{}, err
	}
	m := Message{Role: head.Role}
	if err := m.content(keys["content"]); err != nil {
		return m, err
	}
	if m.Role == "tool" {
		if json.Unmarshal(keys["tool_call_id"], &m.CallID) != nil || m.CallID == "" {
			return m, errors.New("tool_call_id is missing")
		}
	}
	if calls, ok := keys["tool_calls"]; ok {
		if err := m.calls(calls); err != nil {
			return m, err
		}
	}
	if m.Text == "" && m.Images == 0 && len(m.Calls) == 0 {
		return m, fmt.Errorf("empty %s message", m.Role)
	}
	return m, nil
}

func (m *Message) content(raw json.RawMessage) error {
	if raw == nil {
		return errors.New("content is missing")
	}
	if raw[0] == '"' {
		return json.Unmarshal(raw, &m.Text)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return errors.New("content is neither a string nor a filled array")
	}
	for i, part := range parts {
		k, err := object(part, []string{"type", "text", "image_url"})
		if err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
		switch string(k["type"]) {
		case `"text"`:
			var t string
			if json.Unmarshal(k["text"], &t) != nil || t == "" {
				return fmt.Errorf("content[%d]: no text", i)
			}
			m.Text += t
		case `"image_url"`:
			if m.Role != "user" {
				return fmt.Errorf("content[%d]: image_url is only allowed for role user", i)
			}
			u, err := object(k["image_url"], []string{"url", "detail"})
			if err != nil || !bytes.HasPrefix(u["url"], []byte(`"`)) {
				return fmt.Errorf("content[%d]: bad image_url", i)
			}
			m.Images++
		default:
			return fmt.Errorf("content[%d]: type %s", i, k["type"])
		}
	}
	return nil
}

func (m *Message) calls(raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return errors.New("tool_calls is not a filled array")
	}
	for i, one := range list {
		k, err := object(one, []string{"id", "type", "function", "extra_content"})
		if err != nil {
			return fmt.Errorf("tool_calls[%d]: %w", i, err)
		}
		f, err := object(k["function"], []string{"name", "arguments"})
		if err != nil {
			return fmt.Errorf("tool_calls[%d].function: %w", i, err)
		}
		c := Call{Extra: k["extra_content"]}
		json.Unmarshal(k["id"], &c.ID)
		json.Unmarshal(f["name"], &c.Name)
		_, hasArgs := f["arguments"]
		argErr := json.Unmarshal(f["arguments"], &c.Args)
		if argErr == nil {
			_, argErr = object([]byte(c.Args), nil)
		}
		switch {
		case c.ID == "":
			return fmt.Errorf("tool_calls[%d]: no id", i)
		case slices.ContainsFunc(m.Calls, func(o Call) bool { return o.ID == c.ID }):
			return fmt.Errorf("tool_calls[%d]: id %q twice", i, c.ID)
		case string(k["type"]) != `"function"`:
			return fmt.Errorf("tool_calls[%d].type is %s", i, k["type"])
		case !nameRule.MatchString(c.Name):
			return fmt.Errorf("tool_calls[%d]: bad name %q", i, c.Name)
		case !hasArgs:
			return fmt.Errorf("tool_calls[%d]: arguments is missing", i)
		case argErr != nil:
			return fmt.Errorf("tool_calls[%d]: arguments: %w", i, argErr)
		}
		m.Calls = append(m.Calls, c)
	}
	return nil
}

// order checks which row may follow which.
func order(ms []Message) error {
	var open []Call // calls not answered yet
	prev := ""
	for i, m := range ms {
		bad := ""
		switch {
		case len(open) > 0 && m.Role != "tool":
			bad = fmt.Sprintf("call %s has no tool row", open[0].ID)
		case len(open) > 0 && m.CallID != open[0].ID:
			bad = fmt.Sprintf("answers %q, want %q", m.CallID, open[0].ID)
		case len(open) > 0:
			open = open[1:]
		case m.Role == "tool":
			bad = fmt.Sprintf("answers %q, which is no open call", m.CallID)
		case m.Role == "system" && i > 0:
			bad = "system row is not the first"
		case m.Role == "user" && (prev == "user" || prev == "tool"):
			bad = "roles must alternate: user after " + prev
		case m.Role == "assistant" && prev != "user" && prev != "tool":
			bad = strings.TrimSpace("roles must alternate: assistant after " + prev)
		}
		if bad != "" {
			return fmt.Errorf("messages[%d]: %s", i, bad)
		}
		if m.Role == "assistant" {
			open = m.Calls
		}
		prev = m.Role
	}
	if len(open) > 0 {
		return fmt.Errorf("call %s has no tool row", open[0].ID)
	}
	if prev != "user" && prev != "tool" {
		return fmt.Errorf("the last row is %s, want user or tool", prev)
	}
	return nil
}

// object reads a JSON object and refuses a key twice and, unless allowed is
// nil, a key not in it. Values keep their bytes.
func object(raw []byte, allowed []string) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %s", clip(raw))
	}
	m := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := t.(string) // the decoder gives nothing else here
		if allowed != nil && !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("unknown key %q", key)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("key %q twice", key)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		m[key] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err == nil {
		return nil, errors.New("more after the JSON object")
	}
	return m, nil
}
