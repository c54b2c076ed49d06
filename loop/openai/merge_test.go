package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Each case is a stream of delta.tool_calls arrays as some server sends them,
// and the calls that were meant, as name(arguments) with the provider's id.
func TestMergeVectors(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		want   string
	}{
		{"one call in pieces", []string{
			`[{"index":0,"id":"A","type":"function","function":{"name":"read","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"pa"}}]`,
			`[{"index":0,"function":{"arguments":"th\":1}"}}]`,
		}, `A read {"path":1}`},
		{"two calls, by index", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{}"}}]`,
			`[{"index":1,"id":"B","function":{"name":"list","arguments":""}}]`,
			`[{"index":1,"function":{"arguments":"{\"b\":2}"}}]`,
		}, `A read {} | B list {"b":2}`},
		{"two calls, pieces mixed", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":""}},{"index":1,"id":"B","function":{"name":"list","arguments":""}}]`,
			`[{"index":1,"function":{"arguments":"{\"b\":"}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\":"}}]`,
			`[{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":"1}"}}]`,
		}, `A read {"a":1} | B list {"b":2}`},
		{"every call is index 0 (vercel/ai#14277, Ollama)", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"B","function":{"name":"read","arguments":"{\"b\":2}"}}]`,
		}, `A read {"a":1} | B read {"b":2}`},
		{"every call is index 0, then pieces without an id go to the latest", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"B","function":{"name":"read","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"b\":2}"}}]`,
		}, `A read {"a":1} | B read {"b":2}`},
		{"a known id on every piece", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":"{\"a\""}}]`,
			`[{"index":0,"id":"A","function":{"arguments":":1}"}}]`,
		}, `A read {"a":1}`},
		{"a known id wins over a wrong index", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":"{\"a\""}},{"index":1,"id":"B","function":{"name":"list","arguments":"{"}}]`,
			`[{"index":1,"id":"A","function":{"arguments":":1}"}},{"index":0,"id":"B","function":{"arguments":"}"}}]`,
		}, `A read {"a":1} | B list {}`},
		{"the same index twice in one chunk (openai-python#3201)", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":""}},{"index":0,"function":{"arguments":"{\"a\""}}]`,
			`[{"index":0,"function":{"arguments":":"}},{"index":0,"function":{"arguments":"1}"}}]`,
		}, `A read {"a":1}`},
		{"the id comes after the name", []string{
			`[{"index":0,"function":{"name":"read"}}]`,
			`[{"index":0,"id":"A","function":{"arguments":"{}"}}]`,
		}, `A read {}`},
		{"neither id nor index: the last call (TeXRA#1720: never the first)", []string{
			`[{"id":"A","function":{"name":"read","arguments":"{}"}}]`,
			`[{"id":"B","function":{"name":"list","arguments":""}}]`,
			`[{"function":{"arguments":"{\"b\""}}]`,
			`[{"function":{"arguments":":2}"}}]`,
		}, `A read {} | B list {"b":2}`},
		{"neither id nor index, whole calls one after another", []string{
			`[{"function":{"name":"read","arguments":"{\"a\":1}"}}]`,
			`[{"function":{"name":"read","arguments":"{\"b\":2}"}}]`,
			`[{"function":{"name":"list","arguments":"{}"}}]`,
		}, ` read {"a":1} |  read {"b":2} |  list {}`},
		{"no ids, every index 0, whole calls", []string{
			`[{"index":0,"function":{"name":"read","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"function":{"name":"read","arguments":"{\"b\":2}"}}]`,
		}, ` read {"a":1} |  read {"b":2}`},
		{"the name repeated on every piece, the last one empty", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":"{\"a\":"}}]`,
			`[{"index":0,"function":{"name":"read","arguments":"1}"}}]`,
			`[{"index":0,"function":{"name":"read","arguments":""}}]`,
		}, `A read {"a":1}`},
		{"the name in fragments (Switchyard#785)", []string{
			`[{"index":0,"id":"A","function":{"name":"read_"}}]`,
			`[{"index":0,"function":{"name":"file"}}]`,
			`[{"index":0,"function":{"arguments":"{}"}}]`,
		}, `A read_file {}`},
		{"the name repeated before the arguments", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":""}}]`,
			`[{"index":0,"function":{"name":"read","arguments":""}}]`,
			`[{"index":0,"function":{"name":"read","arguments":"{}"}}]`,
		}, `A read {}`},
		{"a fresh id on every piece", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":"{\"a\""}}]`,
			`[{"index":0,"id":"X1","function":{"arguments":":"}}]`,
			`[{"index":0,"id":"X2","function":{"arguments":"1}"}}]`,
		}, `A read {"a":1}`},
		{"arguments as an object", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":{"b": 2, "a": [1, 2]}}}]`,
		}, `A read {"b":2,"a":[1,2]}`},
		{"arguments as an object, twice", []string{
			`[{"index":0,"id":"A","function":{"name":"read","arguments":{"a":1}}}]`,
			`[{"index":0,"id":"A","function":{"name":"read","arguments":{"a":1}}}]`,
		}, `A read {"a":1}`},
		{"null arguments, null index, numeric id", []string{
			`[{"index":null,"id":7,"function":{"name":"read","arguments":null}}]`,
		}, `7 read `},
		{"index as a string and a float", []string{
			`[{"index":"0","id":"A","function":{"name":"read","arguments":"{"}},{"index":1.0,"id":"B","function":{"name":"list","arguments":"{"}}]`,
			`[{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"}"}}]`,
		}, `A read {} | B list {}`},
		{"indexes that begin at 1 and skip", []string{
			`[{"index":1,"id":"A","function":{"name":"read","arguments":"{}"}},{"index":5,"id":"B","function":{"name":"list","arguments":"{}"}}]`,
		}, `A read {} | B list {}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var a answer
			for _, c := range tt.chunks {
				if _, _, err := a.add([]byte(`{"choices":[{"index":0,"delta":{"tool_calls":` + c + `}}]}`)); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, s := range a.calls {
				got = append(got, fmt.Sprintf("%s %s %s", s.id, s.name, s.args.String()))
			}
			if g := strings.Join(got, " | "); g != tt.want {
				t.Errorf("got  %s\nwant %s", g, tt.want)
			}
		})
	}
}

func TestMergeKeepsWhatTheProviderWantsBack(t *testing.T) {
	var a answer
	for _, d := range []string{
		`{"reasoning_details":[{"type":"reasoning.text","text":"I th","index":0}]}`,
		`{"reasoning_details":[{"type":"reasoning.text","text":"ink","index":0,"signature":"S="}]}`,
		`{"reasoning_details":[{"type":"reasoning.text","text":"More","index":2}]}`,
		`{"reasoning_details":[{"type":"reasoning.encrypted","data":"X","index":1}]}`,
		`{"reasoning_details":[{"type":"reasoning.encrypted","data":"Y","index":1}]}`,
		`{"reasoning_content":"a","reasoning":"b","content":"t"}`,
		`{"reasoning_content":"A","tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]}`,
	} {
		if _, _, err := a.add([]byte(`{"choices":[{"delta":` + d + `}]}`)); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"reasoning_content":"aA","reasoning":"b","reasoning_details":[{"index":0,"signature":"S=","text":"I think","type":"reasoning.text"},{"type":"reasoning.text","text":"More","index":2},{"type":"reasoning.encrypted","data":"X","index":1},{"type":"reasoning.encrypted","data":"Y","index":1}]}`
	if got := string(a.private()); got != want {
		t.Errorf("message: got  %s\nwant %s", got, want)
	}
	want = `{"id":"1","extra_content":{"google":{"thought_signature":"sig"}}}`
	if got := string(a.finished()[0].Private); got != want {
		t.Errorf("call: got %s; want %s", got, want)
	}
}

// What a server sends must never panic, and calls are always storable.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"id":"A","function":{"name":"f","arguments":"{"}}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]},{"type":"text","text":"x"}]}}],"usage":{"prompt_tokens":"3"}}`))
	f.Add([]byte(`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":1},{"type":"reasoning.text","text":"b"}]}}]}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var a answer
		for range 2 {
			_, _, _ = a.add(frame)
		}
		r, _ := a.reply(0)
		for _, c := range r.Calls {
			if !isObject(c.Args) || len(c.ID) != 9 {
				t.Fatalf("got id %q args %q; want nine characters and an object", c.ID, c.Args)
			}
		}
		if r.Private != nil && !json.Valid(r.Private) {
			t.Fatalf("got private %s; want JSON", r.Private)
		}
	})
}
