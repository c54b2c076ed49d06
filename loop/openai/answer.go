package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coxswain/loop"
)

// answer puts one try's answer together. One goroutine uses it.
type answer struct {
	text    strings.Builder
	refusal strings.Builder
	think   strings.Builder // reasoning_content
	reason  strings.Builder // reasoning
	details []json.RawMessage
	extra   json.RawMessage
	calls   slots
	finish  finish
	usage   loop.Usage
}

// add takes in one frame and gives the text it shows. alive reports that the
// frame brought text, reasoning or a call.
func (a *answer) add(frame []byte) (text string, alive bool, err error) {
	var c chunk
	if err := json.Unmarshal(frame, &c); err != nil {
		return "", false, errBadFrame
	}
	if !isNull(c.Usage) {
		a.setUsage(c.Usage)
	}
	for _, ch := range c.Choices {
		if ch.Index.n != 0 {
			continue // one answer was asked for
		}
		p := ch.Delta
		if ch.Message != nil && (p == nil || a.blank()) {
			p = ch.Message
		}
		if p != nil {
			text += a.addPiece(p)
			alive = alive || p.alive()
		}
		switch f := finishOf(string(ch.Finish)); f {
		case finishNone:
		case finishError:
			return text, alive, errAborted
		default:
			// A stop after a length does not undo it.
			a.finish = max(a.finish, f)
		}
	}
	return text, alive, nil
}

func (p *piece) alive() bool {
	return p.Content != (looseContent{}) || p.Refusal != "" || p.ReasoningContent != "" || p.Reasoning != "" ||
		len(p.ReasoningDetails) > 0 || len(p.ToolCalls) > 0 || p.FunctionCall != nil
}

// blank reports that nothing came yet.
func (a *answer) blank() bool {
	return a.text.Len() == 0 && len(a.calls) == 0 && a.think.Len() == 0 && a.reason.Len() == 0
}

func (a *answer) addPiece(p *piece) string {
	a.text.WriteString(p.Content.text)
	a.refusal.WriteString(string(p.Refusal))
	a.think.WriteString(string(p.ReasoningContent))
	a.think.WriteString(p.Content.thinking)
	a.reason.WriteString(string(p.Reasoning))
	a.details = addDetails(a.details, p.ReasoningDetails)
	if !isNull(p.ExtraContent) {
		a.extra = p.ExtraContent
	}
	for _, c := range p.ToolCalls {
		a.calls.add(c)
	}
	if p.FunctionCall != nil {
		a.calls.add(callPiece{Function: *p.FunctionCall})
	}
	return p.Content.text
}

// usageMost is more tokens than any model reads or writes in one request.
const usageMost = 1 << 30

func (a *answer) setUsage(raw json.RawMessage) {
	var u struct {
		Prompt     looseInt `json:"prompt_tokens"`
		Completion looseInt `json:"completion_tokens"`
		CacheHit   looseInt `json:"prompt_cache_hit_tokens"` // DeepSeek
		In         struct {
			Cached looseInt `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning looseInt `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	// Less than nothing is no report, and more than usageMost a fault: it would use up a budget, and the
	// session's next requests would be thought as long.
	if json.Unmarshal(raw, &u) == nil && min(u.Prompt.n, u.Completion.n) >= 0 && max(u.Prompt.n, u.Completion.n) <= usageMost {
		a.usage = loop.Usage{Prompt: u.Prompt.n, Completion: u.Completion.n,
			Cached: max(u.In.Cached.n, u.CacheHit.n), Reasoning: u.Out.Reasoning.n}
	}
}

// reply judges the finished answer. limit is the output limit of the request,
// 0 if there was none. What is no answer gives errNoFinish or errEmpty.
func (a *answer) reply(limit int) (loop.Reply, error) {
	r := loop.Reply{Text: a.text.String(), Usage: a.usage, Private: a.private()}
	switch {
	case a.finish == finishNone:
		return r, errNoFinish
	case a.finish == finishFilter || r.Text == "" && a.refusal.Len() > 0:
		// What was filtered is no part of the conversation. A refusal is the
		// model's own sentence about it, for the person.
		return loop.Reply{Text: a.refusal.String(), Finish: loop.FinishFilter, Usage: a.usage}, nil
	}
	r.Calls = a.finished()
	switch {
	case len(r.Calls) > 0:
		r.Finish = loop.FinishTools
		if a.cut(r.Calls, limit) {
			r.Finish, r.Cut = loop.FinishLength, true
			for i := range r.Calls {
				r.Calls[i].Bad = callCut
			}
		}
	case strings.TrimSpace(r.Text) == "":
		return r, errEmpty
	case a.finish == finishLength:
		r.Finish = loop.FinishLength
	}
	return r, nil
}

// cut reports that the output limit broke off the calls: the provider says so,
// or the count says so, or the last arguments just end. The last two because
// routers rewrite length to tool_calls. Arguments that parse prove nothing:
// some servers close the brackets themselves.
func (a *answer) cut(calls []loop.Call, limit int) bool {
	if a.finish == finishLength || limit > 0 && a.usage.Completion >= limit {
		return true
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		if !a.calls[i].empty() {
			text := strings.TrimSpace(a.calls[i].args.String())
			return text != "" && breaksOff(text)
		}
	}
	return false
}

// breaksOff reports text that is the beginning of JSON and not all of it.
func breaksOff(text string) bool {
	bad := syntaxError(text)
	return bad != nil && bad.Error() == "unexpected end of JSON input"
}

func syntaxError(text string) *json.SyntaxError {
	var raw json.RawMessage
	var bad *json.SyntaxError
	if errors.As(json.Unmarshal([]byte(text), &raw), &bad) {
		return bad
	}
	return nil
}

// finished gives the calls in canonical form.
func (a *answer) finished() []loop.Call {
	var calls []loop.Call
	seen := map[string]bool{}
	for _, s := range a.calls {
		if s.empty() {
			continue
		}
		c := loop.Call{ID: newID(), Name: s.name}
		c.Args, c.Bad = arguments(s.args.String())
		if s.name == "" {
			c.Bad = callNoName
		}
		p := privateCall{ID: s.id, ExtraContent: s.extra}
		if seen[p.ID] {
			p.ID = "" // ours takes its place
		}
		seen[p.ID] = true
		if p.ID != "" || p.ExtraContent != nil {
			c.Private = mustJSON(p)
		}
		calls = append(calls, c)
	}
	return calls
}

// arguments gives the text to store, and why the call must not run, if so. It
// repairs nothing: a guess at what was meant must not be executed.
func arguments(text string) (args, bad string) {
	text = strings.TrimSpace(text)
	if text == "" || text == "null" {
		return "{}", ""
	}
	if bad := syntaxError(text); bad != nil {
		return "{}", fmt.Sprintf(callNoJSON, bad.Error(), bad.Offset)
	}
	switch text[0] {
	case '{':
		return text, ""
	case '[':
		return "{}", fmt.Sprintf(callNotObj, "an array")
	case '"':
		return "{}", fmt.Sprintf(callNotObj, "a string")
	}
	return "{}", fmt.Sprintf(callNotObj, "a single value")
}

func (a *answer) private() json.RawMessage {
	p := privateMessage{ReasoningContent: a.think.String(), Reasoning: a.reason.String(),
		ReasoningDetails: a.details, ExtraContent: a.extra}
	if p.ReasoningContent == "" && p.Reasoning == "" && p.ReasoningDetails == nil && p.ExtraContent == nil {
		return nil
	}
	return mustJSON(p)
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, and raw JSON that was just decoded
	}
	return b
}

const idLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// newID makes a call's id: nine letters or digits, what Mistral demands, and
// opaque to all others. 53 bits keep it unique in any session.
func newID() string {
	id := make([]byte, 0, 9)
	var b [16]byte
	for {
		rand.Read(b[:])
		for _, c := range b {
			// 248 = 4 × 62: the letters are equally likely.
			if c < 248 {
				if id = append(id, idLetters[c%62]); len(id) == cap(id) {
					return string(id)
				}
			}
		}
	}
}
