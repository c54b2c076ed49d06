package openai

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A slot is one tool call being put together from pieces.
type slot struct {
	index  looseInt
	id     string
	name   string
	args   strings.Builder
	extra  json.RawMessage
	object bool // the arguments came as an object
}

// slots are the calls of one answer, in the order in which they began.
type slots []*slot

// add merges one piece. Which call a piece belongs to, by what it carries:
//
//	an id known in this answer    that call
//	a new id                      a new call, also when its index is taken by
//	                              another id (Ollama calls every index 0); the
//	                              call at that index that has no id yet gets it
//	no id, an index               the latest call with that index, also twice in
//	                              one chunk (vLLM)
//	neither                       the last call
//
// and in the last two, and where an id would be adopted: a piece that names a
// tool while that call's arguments are already whole begins a new call. Never
// "the first call".
func (s *slots) add(p callPiece) {
	at := s.find(p)
	if at == nil {
		at = &slot{index: p.Index}
		*s = append(*s, at)
	}
	if at.id == "" {
		at.id = string(p.ID)
	}
	at.setName(string(p.Function.Name))
	at.addArgs(p.Function.Arguments)
	if !isNull(p.ExtraContent) {
		at.extra = p.ExtraContent
	}
}

func (s slots) find(p callPiece) *slot {
	id := string(p.ID)
	if id != "" {
		for _, c := range s {
			if c.id == id {
				return c
			}
		}
	}
	var at *slot
	for i := len(s) - 1; i >= 0 && at == nil; i-- {
		if !p.Index.ok || s[i].index.ok && s[i].index.n == p.Index.n {
			at = s[i]
		}
	}
	switch {
	case at == nil:
		return nil
	case id != "" && at.id != "":
		// A fresh id on every piece of one call: a call without a name, behind
		// arguments that are not whole, can only be the rest of them.
		if p.Function.Name == "" && at.args.Len() > 0 && !at.whole() {
			return at
		}
		return nil
	case p.Function.Name != "" && at.whole() && at.another(p):
		return nil
	}
	return at
}

// another reports that a piece naming a tool begins a new call behind this
// whole one, and does not just repeat its name.
func (c *slot) another(p callPiece) bool {
	return string(p.Function.Name) != c.name || strings.TrimSpace(p.Function.Arguments.text) != ""
}

// whole reports that the arguments are a complete JSON object.
func (c *slot) whole() bool { return isObject(c.args.String()) }

// setName takes the name, or a further piece of it, which can only come before
// the arguments. An equal name is a repeat.
func (c *slot) setName(name string) {
	switch {
	case c.name == "":
		c.name = name
	case name != c.name && c.args.Len() == 0:
		c.name += name
	}
}

func (c *slot) addArgs(a looseArgs) {
	if a.object && c.object && c.args.String() == a.text {
		return // the same object again
	}
	c.object = c.object || a.object
	c.args.WriteString(a.text)
}

// empty reports a call of which nothing came: some servers end with one.
func (c *slot) empty() bool {
	return c.name == "" && c.id == "" && strings.TrimSpace(c.args.String()) == ""
}

// addDetails appends pieces of reasoning_details. Pieces of one text block are
// joined; everything else stays as it came, in order, since the endpoint
// checks it against its signature.
func addDetails(have []json.RawMessage, more []json.RawMessage) []json.RawMessage {
	for _, d := range more {
		if n := len(have); n > 0 {
			if joined, ok := joinDetail(have[n-1], d); ok {
				have[n-1] = joined
				continue
			}
		}
		have = append(have, d)
	}
	return have
}

func joinDetail(a, b json.RawMessage) (json.RawMessage, bool) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return nil, false
	}
	kind := string(readLoose(x["type"]))
	if kind != string(readLoose(y["type"])) || kind != "reasoning.text" && kind != "reasoning.summary" ||
		!bytes.Equal(x["index"], y["index"]) {
		return nil, false
	}
	for k, v := range y {
		if k == "text" || k == "summary" {
			v, _ = json.Marshal(string(readLoose(x[k])) + string(readLoose(v)))
		} else if isNull(v) {
			continue
		}
		x[k] = v
	}
	out, err := json.Marshal(x)
	return out, err == nil
}
