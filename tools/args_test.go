package tools

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	tests := []struct{ tool, args, want string }{
		{"read_file", `{"path":`, `read_file: the arguments are not JSON (byte 8: unexpected end of JSON input); send one object with: path (required), limit, offset`},
		{"read_file", `["a"]`, `read_file: the arguments must be one JSON object with: path (required), limit, offset`},
		{"read_file", `{"path":"a"} {}`, `read_file: the arguments are not JSON (byte 14: invalid character '{' after top-level value); send one object with: path (required), limit, offset`},
		{"read_file", ``, `read_file: argument "path" is missing; it takes: path (required), limit, offset`},
		{"read_file", `null`, `read_file: argument "path" is missing; it takes: path (required), limit, offset`},
		{"read_file", `{"path":null}`, `read_file: argument "path" is missing; it takes: path (required), limit, offset`},
		{"read_file", `{"Path":"a"}`, `read_file: unknown argument "Path"; it takes: path (required), limit, offset`},
		{"read_file", `{"path":"a","x\ny":1}`, `read_file: unknown argument "x\ny"; it takes: path (required), limit, offset`},
		{"read_file", `{"path":7}`, `read_file: argument "path" must be a string, not a number`},
		{"read_file", `{"path":"a","offset":"3"}`, `read_file: argument "offset" must be a whole number, not a string`},
		{"read_file", `{"path":"a","offset":1.5}`, `read_file: argument "offset" must be a whole number, not a number 1.5`},
		{"edit_file", `{"path":"a","old":"b","new":"c","all":"yes"}`, `edit_file: argument "all" must be true or false, not a string`},
		{"terminal", `{"command":"x","timeout":0}`, `terminal: argument "timeout" must be from 1 to 120`},
		{"job", `{}`, `job: argument "action" is missing; it takes: action (required), id`},
	}
	s, dir := newSet(t, Options{}), t.TempDir()
	for _, tt := range tests {
		tool, _ := s.lookup(tt.tool)
		got := tool.Run(t.Context(), Call{Name: tt.tool, Args: json.RawMessage(tt.args), Dir: dir, Admin: true})
		if !got.Failed || got.Body != tt.want {
			t.Errorf("%s %s: got %+v; want failed %q", tt.tool, tt.args, got, tt.want)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("read_file", `{"path":"a","offset":1}`)
	f.Add("edit_file", `{"path":"a","old":"b","new":"c","all":null}`)
	f.Add("job", `{"action":"poll","id":"\u0000\ud800"}`)
	s := newSet(f, Options{})
	f.Fuzz(func(t *testing.T, name, raw string) {
		if name == "terminal" {
			return
		}
		if tool, ok := s.lookup(name); ok {
			got := tool.Run(t.Context(), Call{Name: name, Args: json.RawMessage(raw), Dir: t.TempDir()})
			if got.Failed && strings.Contains(got.Body, "\n") {
				t.Errorf("%s %q: an error of several lines: %q", name, raw, got.Body)
			}
		}
	})
}

// TestHead (I11): the tool list has one order and one form, its schemas fit the structs that
// are filled by them, and it is small enough to be sent with every "hello".
func TestHead(t *testing.T) {
	structs := map[string]any{"terminal": terminalArgs{}, "job": jobArgs{}, "read_file": readArgs{}, "write_file": writeArgs{},
		"edit_file": editArgs{}, "list_files": listArgs{}, "search_files": searchArgs{}, "send_file": sendArgs{}}
	pure := []string{"read_file", "list_files", "search_files"}
	s := newSet(t, Options{Extra: []Tool{{Name: "extra"}}})
	var names []string
	size := 0
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
		if tool.Name == "extra" {
			continue
		}
		size += len(tool.Name) + len(tool.Description) + len(tool.Schema)
		if tool.Pure != slices.Contains(pure, tool.Name) {
			t.Errorf("%s: pure is %v", tool.Name, tool.Pure)
		}
		var schema struct {
			Type                 string                     `json:"type"`
			Properties           map[string]json.RawMessage `json:"properties"`
			Required             []string                   `json:"required"`
			AdditionalProperties *bool                      `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: the schema is not a closed object", tool.Name)
		}
		var fields []string
		typ := reflect.TypeOf(structs[tool.Name])
		for i := range typ.NumField() {
			fields = append(fields, typ.Field(i).Tag.Get("json"))
		}
		for _, f := range fields {
			if schema.Properties[f] == nil {
				t.Errorf("%s: field %s is not in the schema", tool.Name, f)
			}
		}
		if len(fields) != len(schema.Properties) {
			t.Errorf("%s: fields %v, but %d properties", tool.Name, fields, len(schema.Properties))
		}
	}
	if got, want := strings.Join(names, " "), "terminal job read_file write_file edit_file list_files search_files send_file extra"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	if size > 2500 {
		t.Errorf("the list takes %d bytes; want at most 2500", size)
	}
	s.Tools()[0].Name = "changed"
	if s.Tools()[0].Name != "terminal" {
		t.Error("Tools hands out its own slice")
	}
	defer func() {
		if recover() == nil {
			t.Error("two tools of one name are accepted")
		}
	}()
	New(Options{Extra: []Tool{{Name: "job", Run: func(context.Context, Call) Result { return Result{} }}}})
}

// TestWords: what people and models read is short enough for a line of chat.
func TestWords(t *testing.T) {
	for _, s := range []string{wordNotPermitted, wordNoTool, wordCrashed, wordShuttingDown, wordNoStart, wordTimedOut, wordNoWorkspace,
		wordPathOutside, wordPathLinkOut, wordNotFound, wordDenied, wordIsLink, wordEditNone, wordEditNear, wordEditMany, wordJobUnknown,
		wordJobForeign, wordBadPattern, wordLongCommand, wordPastScan, wordCannotWrite} {
		if len(s) > 120 {
			t.Errorf("%d bytes: %s", len(s), s)
		}
	}
	if got, want := quote("a\nb\"\u202e"+strings.Repeat("x", 200)), 120; len(got) > want || strings.ContainsAny(got, "\n\u202e") {
		t.Errorf("got %q; want one short printable word", got)
	}
}
