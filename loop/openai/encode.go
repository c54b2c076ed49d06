package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coxswain/loop"
)

// replayShape says which private fields go back on the wire.
type replayShape uint8

const (
	// replayGiven sends back what the endpoint gave, on rows with tool calls.
	// Without calls the reasoning is of no more use, and older DeepSeek models
	// refuse it there.
	replayGiven replayShape = iota
	// replayAlways also sends an empty reasoning_content on rows with calls that
	// have none: DeepSeek's thinking models answer 400 if the key is missing.
	replayAlways
)

func shapeFor(host string) replayShape {
	if under(host, "deepseek.com") {
		return replayAlways
	}
	return replayGiven
}

// privateMessage is what Reply.Private holds, if any of it came.
type privateMessage struct {
	ReasoningContent string            `json:"reasoning_content,omitempty"`
	Reasoning        string            `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ExtraContent     json.RawMessage   `json:"extra_content,omitempty"`
}

// privateCall is what Call.Private holds: the provider's own id, which may
// carry state of its own, and what it wants back with the call (Gemini's
// thought signature).
type privateCall struct {
	ID           string          `json:"id,omitempty"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// Encode gives the wire bytes of one message. It is pure: equal input gives
// equal bytes in every process of one build (I11), whatever the endpoint has
// refused so far.
//
// Private fields must come from this Model by its Name, or be nil. A tool row
// carries in Private the Private of the call it answers, so that both rows
// name the call alike. It is an error to encode an empty message, and one with
// images that is not a user's: endpoints refuse both. An empty tool result
// becomes "(no output)". Arguments that are no JSON object become {}, since one
// bad row would make every later request fail.
func (c *Client) Encode(m loop.Wire) (json.RawMessage, error) {
	var b bytes.Buffer
	b.Grow(64 + len(m.Text) + len(m.Text)/8)
	switch m.Role {
	case "system", "user", "assistant", "tool":
	default:
		return nil, fmt.Errorf("encode message: role %q", m.Role)
	}
	if m.Role == "tool" && m.Text == "" {
		m.Text = emptyResult
	}
	if m.Text == "" && len(m.Calls) == 0 && len(m.Images) == 0 {
		return nil, fmt.Errorf("encode message: empty %s row", m.Role)
	}
	if len(m.Calls) > 0 && m.Role != "assistant" {
		return nil, fmt.Errorf("encode message: tool calls in a %s row", m.Role)
	}
	b.WriteString(`{"role":"` + m.Role + `","content":`)
	if err := writeContent(&b, m); err != nil {
		return nil, err
	}
	switch m.Role {
	case "assistant":
		c.writePrivate(&b, m)
		if err := writeCalls(&b, m.Calls); err != nil {
			return nil, err
		}
	case "tool":
		id := wireID(m.CallID, m.Private)
		if id == "" {
			return nil, errors.New("encode message: tool row without a call")
		}
		b.WriteString(`,"tool_call_id":`)
		writeString(&b, id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writeContent(b *bytes.Buffer, m loop.Wire) error {
	if len(m.Images) == 0 {
		writeString(b, m.Text)
		return nil
	}
	if m.Role != "user" {
		return fmt.Errorf("encode message: an image in a %s row", m.Role)
	}
	b.WriteByte('[')
	if m.Text != "" {
		b.WriteString(`{"type":"text","text":`)
		writeString(b, m.Text)
		b.WriteString(`},`)
	}
	for i, img := range m.Images {
		kind, ok := strings.CutPrefix(img.MIME, "image/")
		if !ok || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789.+-") != "" || len(img.Data) == 0 {
			return fmt.Errorf("encode message: not an image: %q, %d bytes", img.MIME, len(img.Data))
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":"image_url","image_url":{"url":"data:` + img.MIME + `;base64,`)
		b.Grow(base64.StdEncoding.EncodedLen(len(img.Data)) + 8)
		b.Write(base64.StdEncoding.AppendEncode(b.AvailableBuffer(), img.Data))
		b.WriteString(`"}}`)
	}
	b.WriteByte(']')
	return nil
}

// writePrivate writes the reasoning that goes back with an assistant row. A
// Private that cannot be read is left out: it is of use to nobody.
func (c *Client) writePrivate(b *bytes.Buffer, m loop.Wire) {
	var p privateMessage
	if len(m.Private) > 0 && json.Unmarshal(m.Private, &p) != nil {
		p = privateMessage{}
	}
	if len(m.Calls) > 0 {
		if p.ReasoningContent != "" || c.shape == replayAlways {
			b.WriteString(`,"reasoning_content":`)
			writeString(b, p.ReasoningContent)
		}
		// The details hold the same text, with signatures.
		if p.Reasoning != "" && len(p.ReasoningDetails) == 0 {
			b.WriteString(`,"reasoning":`)
			writeString(b, p.Reasoning)
		}
	}
	for i, d := range p.ReasoningDetails {
		b.WriteString([]string{`,"reasoning_details":[`, `,`}[min(i, 1)])
		b.Write(d)
	}
	if len(p.ReasoningDetails) > 0 {
		b.WriteByte(']')
	}
	if len(p.ExtraContent) > 0 {
		b.WriteString(`,"extra_content":`)
		b.Write(p.ExtraContent)
	}
}

func writeCalls(b *bytes.Buffer, calls []loop.Call) error {
	for i, call := range calls {
		id := wireID(call.ID, call.Private)
		if id == "" {
			return errors.New("encode message: tool call without an id")
		}
		b.WriteString([]string{`,"tool_calls":[`, `,`}[min(i, 1)])
		b.WriteString(`{"id":`)
		writeString(b, id)
		b.WriteString(`,"type":"function","function":{"name":`)
		writeString(b, wireName(call.Name))
		b.WriteString(`,"arguments":`)
		args := call.Args
		if !isObject(args) {
			args = "{}"
		}
		writeString(b, args)
		b.WriteByte('}')
		if p := readPrivateCall(call.Private); len(p.ExtraContent) > 0 {
			b.WriteString(`,"extra_content":`)
			b.Write(p.ExtraContent)
		}
		b.WriteByte('}')
	}
	if len(calls) > 0 {
		b.WriteByte(']')
	}
	return nil
}

func readPrivateCall(raw json.RawMessage) (p privateCall) {
	if len(raw) > 0 && json.Unmarshal(raw, &p) != nil {
		return privateCall{}
	}
	return p
}

func wireID(ours string, private json.RawMessage) string {
	if p := readPrivateCall(private); p.ID != "" {
		return p.ID
	}
	return ours
}

// wireName makes a name that any endpoint takes: OpenAI wants
// ^[a-zA-Z0-9_-]{1,64}$ and refuses the whole request for one that a model
// made up. Real tools have such names, so this changes only unknown ones.
func wireName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), 64)]
}

func isObject(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && json.Valid([]byte(s))
}

// writeString writes s as JSON. < > & stay as they are: escaped they would
// cost the model tokens, and no HTML page reads this. Invalid UTF-8 becomes
// U+FFFD.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always marshals, and a Buffer takes it
	}
	b.Truncate(b.Len() - 1) // Encode ends the line
}
