package openai

import (
	"encoding/json"
	"testing"

	"coxswain/loop"
)

// A usage that cannot be is as good as none: what was set aside stays counted.
func TestUsageThatCannotBe(t *testing.T) {
	for raw, want := range map[string]loop.Usage{
		`{"prompt_tokens": 12.0, "completion_tokens": "5"}`:                             {Prompt: 12, Completion: 5},
		`{"prompt_tokens": 1073741824, "completion_tokens": 1}`:                         {Prompt: 1 << 30, Completion: 1},
		`{"prompt_tokens": 1073741825, "completion_tokens": 1}`:                         {},
		`{"prompt_tokens": 10, "completion_tokens": 4611686018427387904}`:               {},
		`{"prompt_tokens": 9223372036854775808, "completion_tokens": 7}`:                {},
		`{"prompt_tokens": 10, "completion_tokens": -1}`:                                {},
		`{"prompt_tokens": 1e300, "completion_tokens": -9223372036854775808}`:           {},
		`{"prompt_tokens": "NaN", "completion_tokens": "Inf"}`:                          {},
		`{"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": "NaN"}}`:       {Prompt: 3},
		`{"prompt_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 1e19}}`: {Prompt: 3, Reasoning: looseMost},
	} {
		var a answer
		a.setUsage(json.RawMessage(raw))
		if a.usage != want {
			t.Errorf("%s: got %+v; want %+v", raw, a.usage, want)
		}
	}
}
