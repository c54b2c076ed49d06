package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// argSpec is what decode needs of a tool's schema.
type argSpec struct {
	tool     string
	names    []string // required ones first, then by name: the order they are listed in
	required []string
}

// newArgSpec panics on a schema that is not JSON: it is a constant of this package.
func newArgSpec(tool, schema string) argSpec {
	var doc struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal([]byte(schema), &doc); err != nil {
		panic(fmt.Sprintf("tools: schema of %s: %v", tool, err))
	}
	spec := argSpec{tool: tool, required: doc.Required, names: slices.Clone(doc.Required)}
	var rest []string
	for name := range doc.Properties {
		if !slices.Contains(doc.Required, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	spec.names = append(spec.names, rest...)
	return spec
}

// usage is the cure part of every argument error.
func (s argSpec) usage() string {
	shown := make([]string, len(s.names))
	for i, name := range s.names {
		shown[i] = name
		if slices.Contains(s.required, name) {
			shown[i] += " (required)"
		}
	}
	return strings.Join(shown, ", ")
}

// decode fills into (a pointer to the argument struct) and returns "" or what is wrong,
// where, and how to mend it. Names are matched exactly: a model that writes "Path" is told,
// instead of having its argument dropped or guessed.
func (s argSpec) decode(raw json.RawMessage, into any) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}") // some models send nothing for "no arguments"
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Sprintf(wordArgsSyntax, s.tool, syntax.Offset, syntax.Error(), s.usage())
		}
		return fmt.Sprintf(wordArgsObject, s.tool, s.usage())
	}
	unknown := make([]string, 0, len(fields))
	for name := range fields {
		if !slices.Contains(s.names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Sprintf(wordArgUnknown, s.tool, quote(slices.Min(unknown)), s.usage())
	}
	for _, name := range s.required {
		if v, ok := fields[name]; !ok || string(v) == "null" {
			return fmt.Sprintf(wordArgMissing, s.tool, name, s.usage())
		}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Sprintf(wordArgType, s.tool, mismatch.Field, jsonName(mismatch.Type), mismatch.Value)
		}
		return fmt.Sprintf(wordArgsObject, s.tool, s.usage())
	}
	return ""
}

func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	default:
		return "a whole number"
	}
}
