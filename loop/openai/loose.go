package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Tolerant decoding of what servers send. None of these types fails on a
// value of another JSON type: a chunk with one odd field must not cost the
// others.

// looseString is a string, or the text of a number or bool; null and the rest
// are empty.
type looseString string

func (s *looseString) UnmarshalJSON(b []byte) error {
	*s = readLoose(b)
	return nil
}

func readLoose(b []byte) looseString {
	var text string
	switch {
	case len(b) == 0 || b[0] == 'n' || b[0] == '{' || b[0] == '[':
	case b[0] == '"':
		if json.Unmarshal(b, &text) != nil {
			return ""
		}
	default:
		text = string(b)
	}
	return looseString(text)
}

// looseMost bounds a looseInt: what an int cannot hold would be any number.
const looseMost = 1 << 53

// looseInt is a whole number, also as a float or a string.
type looseInt struct {
	n  int
	ok bool
}

func (i *looseInt) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(readLoose(b)), 64)
	if i.ok = err == nil && !math.IsNaN(f); i.ok {
		i.n = int(min(max(f, -looseMost), looseMost))
	}
	return nil
}

// looseArgs are the arguments of a call: a string, or the object itself.
type looseArgs struct {
	text   string
	object bool
}

func (a *looseArgs) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && (b[0] == '{' || b[0] == '[') {
		var c bytes.Buffer
		if json.Compact(&c, b) == nil {
			a.text, a.object = c.String(), true
		}
		return nil
	}
	a.text = string(readLoose(b))
	return nil
}

// looseContent is text, or an array of parts: text, and thinking as Mistral's
// reasoning models send it.
type looseContent struct {
	text     string
	thinking string
}

func (c *looseContent) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		c.text = string(readLoose(b))
		return nil
	}
	var parts []struct {
		Type     looseString     `json:"type"`
		Text     looseString     `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(b, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		if p.Type == "thinking" {
			var inner looseContent
			if inner.UnmarshalJSON(p.Thinking) == nil {
				c.thinking += inner.text
			}
			continue
		}
		c.text += string(p.Text)
	}
	return nil
}

// looseList is an array, or nothing.
type looseList []json.RawMessage

func (l *looseList) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil {
		*l = list
	}
	return nil
}

// chunk is one frame of a stream, or a whole plain answer.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
}

type choice struct {
	Index   looseInt    `json:"index"`
	Delta   *piece      `json:"delta"`
	Message *piece      `json:"message"` // a server that ignored stream: true
	Finish  looseString `json:"finish_reason"`
}

type piece struct {
	Content          looseContent    `json:"content"`
	Refusal          looseString     `json:"refusal"`
	ReasoningContent looseString     `json:"reasoning_content"`
	Reasoning        looseString     `json:"reasoning"`
	ReasoningDetails looseList       `json:"reasoning_details"`
	ExtraContent     json.RawMessage `json:"extra_content"`
	ToolCalls        []callPiece     `json:"tool_calls"`
	FunctionCall     *functionPiece  `json:"function_call"` // before there were tools
}

type callPiece struct {
	Index        looseInt        `json:"index"`
	ID           looseString     `json:"id"`
	Function     functionPiece   `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

type functionPiece struct {
	Name      looseString `json:"name"`
	Arguments looseArgs   `json:"arguments"`
}

// isNull reports that a raw field is absent or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// finishOf maps the words providers use to the few that matter. Unknown words
// count as stop: the answer is there.
func finishOf(word string) finish {
	switch strings.ToLower(word) {
	case "", "null":
		return finishNone
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return finishLength
	case "content_filter", "safety", "sensitive", "refusal", "prohibited_content", "blocklist", "recitation", "spii":
		return finishFilter
	case "error", "abort", "network_error", "insufficient_system_resource", "malformed_function_call", "model_error":
		return finishError
	}
	return finishStop
}

// finish is the meaning of a finish_reason.
type finish uint8

const (
	finishNone finish = iota
	finishStop
	finishLength
	finishFilter
	finishError
)
