package openai

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"coxswain/loop"
)

// frame makes a chunk of a delta.
func frame(delta, finish string) string {
	if finish == "" {
		return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
	}
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":"` + finish + `"}]}`
}

func call(id, name, args string) string {
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%q,"function":{"name":%q,"arguments":%q}}]}`, id, name, args)
}

// The end-of-message table. A call is written name args bad.
func TestReplyTable(t *testing.T) {
	const ok = `{"a":1}`
	tests := []struct {
		name   string
		frames []string
		limit  int
		finish loop.Finish
		text   string
		calls  []string
		cut    bool
		err    error
	}{
		{"text", []string{frame(`{"content":"hi"}`, ""), frame(`{}`, "stop")}, 0, loop.FinishStop, "hi", nil, false, nil},
		{"unknown finish word", []string{frame(`{"content":"hi"}`, "eos_token")}, 0, loop.FinishStop, "hi", nil, false, nil},
		{"text cut", []string{frame(`{"content":"hi"}`, "length")}, 0, loop.FinishLength, "hi", nil, false, nil},
		{"length, then stop", []string{frame(`{"content":"hi"}`, "length"), frame(`{}`, "stop")}, 0, loop.FinishLength, "hi", nil, false, nil},

		{"calls with tool_calls", []string{frame(call("A", "f", ok), "tool_calls")}, 0, loop.FinishTools, "", []string{"f " + ok + " "}, false, nil},
		{"calls with stop", []string{frame(call("A", "f", ok), "stop")}, 0, loop.FinishTools, "", []string{"f " + ok + " "}, false, nil},
		{"calls with function_call", []string{frame(call("A", "f", ok), "function_call")}, 0, loop.FinishTools, "", []string{"f " + ok + " "}, false, nil},
		{"before there were tools", []string{frame(`{"function_call":{"name":"f","arguments":"{\"a\":"}}`, ""), frame(`{"function_call":{"arguments":"1}"}}`, "function_call")}, 0, loop.FinishTools, "", []string{"f " + ok + " "}, false, nil},
		{"text and calls", []string{frame(`{"content":"see"}`, ""), frame(call("A", "f", ok), "tool_calls")}, 0, loop.FinishTools, "see", []string{"f " + ok + " "}, false, nil},

		{"length with whole calls (pi#6285)", []string{frame(call("A", "f", ok), ""), frame(call("B", "g", ok), "length")}, 0, loop.FinishLength, "", []string{"f " + ok + " " + callCut, "g " + ok + " " + callCut}, true, nil},
		{"length with a cut call", []string{frame(call("A", "f", `{"a`), "length")}, 0, loop.FinishLength, "", []string{"f {} " + callCut}, true, nil},
		{"cut, said to be tool_calls (hermes#7680)", []string{frame(call("A", "f", ok), ""), frame(call("B", "g", `{"a":"x`), "tool_calls")}, 0, loop.FinishLength, "", []string{"f " + ok + " " + callCut, "g {} " + callCut}, true, nil},
		{"at the limit, said to be tool_calls (DSpark#55)", []string{frame(call("A", "f", ok), "tool_calls"), `{"choices":[],"usage":{"completion_tokens":50}}`}, 50, loop.FinishLength, "", []string{"f " + ok + " " + callCut}, true, nil},
		{"below the limit", []string{frame(call("A", "f", ok), "tool_calls"), `{"choices":[],"usage":{"completion_tokens":49}}`}, 50, loop.FinishTools, "", []string{"f " + ok + " "}, false, nil},

		{"no arguments", []string{frame(call("A", "f", ""), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} "}, false, nil},
		{"null arguments", []string{frame(call("A", "f", "null"), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} "}, false, nil},
		{"blank arguments", []string{frame(call("A", "f", " \n"), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} "}, false, nil},
		{"broken arguments", []string{frame(call("A", "f", `{"a" 1}`), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} not run: the arguments are not valid JSON: invalid character '1' after object key at position 6"}, false, nil},
		{"two objects glued", []string{frame(call("A", "f", `{}{}`), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} not run: the arguments are not valid JSON: invalid character '{' after top-level value at position 3"}, false, nil},
		{"arguments in a string", []string{frame(call("A", "f", `"{}"`), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} not run: the arguments must be a JSON object, not a string"}, false, nil},
		{"arguments a list", []string{frame(call("A", "f", `[1]`), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} not run: the arguments must be a JSON object, not an array"}, false, nil},
		{"arguments a number", []string{frame(call("A", "f", `1e999`), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} not run: the arguments must be a JSON object, not a single value"}, false, nil},
		{"one bad call leaves the other", []string{frame(call("A", "f", `x`), ""), frame(call("B", "g", ok), "tool_calls")}, 0, loop.FinishTools, "", []string{"f {} not run: the arguments are not valid JSON: invalid character 'x' looking for beginning of value at position 1", "g " + ok + " "}, false, nil},
		{"no name", []string{frame(call("A", "", ok), "tool_calls")}, 0, loop.FinishTools, "", []string{" " + ok + " " + callNoName}, false, nil},
		{"an empty call at the end", []string{frame(call("A", "f", ok), ""), frame(`{"tool_calls":[{"index":1,"function":{}}]}`, "tool_calls")}, 0, loop.FinishTools, "", []string{"f " + ok + " "}, false, nil},

		{"nothing", []string{frame(`{}`, "stop")}, 0, 0, "", nil, false, errEmpty},
		{"blanks", []string{frame(`{"content":" \n"}`, "stop")}, 0, 0, " \n", nil, false, errEmpty},
		{"only reasoning", []string{frame(`{"reasoning_content":"hm"}`, "stop")}, 0, 0, "", nil, false, errEmpty},
		{"only reasoning, cut", []string{frame(`{"reasoning_content":"hm"}`, "length")}, 0, 0, "", nil, false, errEmpty},
		{"no finish", []string{frame(`{"content":"hi"}`, "")}, 0, 0, "hi", nil, false, errNoFinish},
		{"no finish, whole call", []string{frame(call("A", "f", ok), "")}, 0, 0, "", nil, false, errNoFinish},
		{"error finish", []string{frame(`{"content":"hi"}`, "error")}, 0, 0, "", nil, false, errAborted},
		{"DeepSeek out of machines", []string{frame(`{}`, "insufficient_system_resource")}, 0, 0, "", nil, false, errAborted},

		{"filtered", []string{frame(`{"content":"bad"}`, ""), frame(`{}`, "content_filter")}, 0, loop.FinishFilter, "", nil, false, nil},
		{"filtered with calls", []string{frame(call("A", "f", ok), "content_filter")}, 0, loop.FinishFilter, "", nil, false, nil},
		{"SAFETY", []string{frame(`{"content":"bad"}`, "SAFETY")}, 0, loop.FinishFilter, "", nil, false, nil},
		{"refusal", []string{frame(`{"refusal":"I "}`, ""), frame(`{"refusal":"cannot"}`, "stop")}, 0, loop.FinishFilter, "I cannot", nil, false, nil},

		{"other choices are not ours", []string{`{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"},{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`}, 0, loop.FinishStop, "yes", nil, false, nil},
		{"plain answer", []string{`{"choices":[{"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"A","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}`}, 0, loop.FinishTools, "hi", []string{"f " + ok + " "}, false, nil},
		{"a whole message behind its deltas", []string{frame(`{"content":"hi"}`, ""), `{"choices":[{"delta":{},"message":{"content":"hi"},"finish_reason":"stop"}]}`}, 0, loop.FinishStop, "hi", nil, false, nil},
		{"content in parts (Magistral)", []string{frame(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`, "stop")}, 0, loop.FinishStop, "hi", nil, false, nil},
		{"odd types", []string{`{"id":5,"created":1.5,"choices":[{"index":0,"delta":{"content":"hi","role":null,"refusal":null,"reasoning":{},"reasoning_details":"x","tool_calls":null},"finish_reason":"stop","logprobs":[]}],"usage":"none"}`}, 0, loop.FinishStop, "hi", nil, false, nil},
		{"frames of another kind", []string{`{"type":"ping"}`, `{"choices":[]}`, `{"choices":null,"prompt_filter_results":[]}`, frame(`{"content":"hi"}`, "stop")}, 0, loop.FinishStop, "hi", nil, false, nil},
		{"damaged frame", []string{`{"choices":[{`}, 0, 0, "", nil, false, errBadFrame},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var a answer
			var err error
			for _, f := range tt.frames {
				if _, _, err = a.add([]byte(f)); err != nil {
					break
				}
			}
			var r loop.Reply
			if err == nil {
				r, err = a.reply(tt.limit)
			}
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v; want %v", err, tt.err)
			}
			var calls []string
			for _, c := range r.Calls {
				calls = append(calls, c.Name+" "+c.Args+" "+c.Bad)
			}
			if r.Finish != tt.finish || r.Text != tt.text || strings.Join(calls, "\n") != strings.Join(tt.calls, "\n") || r.Cut != tt.cut {
				t.Errorf("got  finish %d text %q cut %v calls %q\nwant finish %d text %q cut %v calls %q",
					r.Finish, r.Text, r.Cut, calls, tt.finish, tt.text, tt.cut, tt.calls)
			}
		})
	}
}

func TestCallIDs(t *testing.T) {
	var a answer
	for _, f := range []string{
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"same","function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	} {
		if _, _, err := a.add([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	// Two calls with one id cannot come out of the merge, but may be made so by
	// pieces that name the first again.
	a.calls = append(a.calls, &slot{id: "same", name: "h"})
	r, err := a.reply(0)
	if err != nil {
		t.Fatal(err)
	}
	shape := regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	seen := map[string]bool{}
	for _, c := range r.Calls {
		if !shape.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("id %q: want nine letters or digits, once", c.ID)
		}
		seen[c.ID] = true
	}
	for i, want := range []string{`{"id":"same"}`, "", ""} {
		if got := string(r.Calls[i].Private); got != want {
			t.Errorf("call %d: got private %q; want %q", i, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		raw  string
		want loop.Usage
	}{
		{`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}`, loop.Usage{Prompt: 10, Completion: 5, Cached: 8, Reasoning: 2}},
		{`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":7,"prompt_tokens_details":null}`, loop.Usage{Prompt: 10, Completion: 5, Cached: 7}},
		{`{"prompt_tokens":10.0,"completion_tokens":"5"}`, loop.Usage{Prompt: 10, Completion: 5}},
	}
	for _, tt := range tests {
		var a answer
		for _, u := range []string{`null`, tt.raw, `null`} {
			if _, _, err := a.add([]byte(`{"choices":[],"usage":` + u + `}`)); err != nil {
				t.Fatal(err)
			}
		}
		if a.usage != tt.want {
			t.Errorf("%s: got %+v; want %+v", tt.raw, a.usage, tt.want)
		}
	}
}
