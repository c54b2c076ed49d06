package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"coxswain/loop"

	goopenai "github.com/sashabaranov/go-openai"
)

// body is the body of one request, made once: tries send the same bytes.
type body struct {
	req    loop.Request
	traits traits
	bytes  []byte
}

// small is what go-openai marshals: the request without its stored parts.
func (b *body) small(model string) goopenai.ChatCompletionRequest {
	r := goopenai.ChatCompletionRequest{Model: model, Stream: true}
	if b.traits&traitStreamOptions != 0 {
		r.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
	}
	if b.req.NoTools && len(b.req.Tools) > 0 {
		r.ToolChoice = "none"
	}
	return r
}

// hole is where the stored parts go. It cannot occur in a string of the small
// body, where the quotes would be escaped.
var hole = []byte(`"messages":null`)

// splice puts the stored parts into the small body, byte for byte, with one
// allocation whatever the number of messages (I12). The output limit is
// written here because go-openai refuses it for models by their name.
func splice(small []byte, r loop.Request, t traits) ([]byte, error) {
	head, tail, ok := bytes.Cut(small, hole)
	if !ok {
		return nil, request("go-openai marshals no empty messages any more")
	}
	extra := make([]byte, 0, 128)
	if r.MaxTokens > 0 {
		name := `,"max_tokens":`
		if t&traitMaxCompletion != 0 {
			name = `,"max_completion_tokens":`
		}
		extra = strconv.AppendInt(append(extra, name...), int64(r.MaxTokens), 10)
	}
	if r.Session != "" && t&traitCacheKey != 0 {
		// A hash: the session's key names a person's chat, which is no business of
		// the provider (I13).
		sum := sha256.Sum256([]byte(r.Session))
		extra = append(extra, `,"prompt_cache_key":"`...)
		extra = append(hex.AppendEncode(extra, sum[:16]), '"')
	}

	const open, close, tools = `"messages":[`, `]`, `,"tools":`
	size := len(head) + len(open) + len(r.System) + 1 + len(close) + len(tools) + len(r.Tools) + len(extra) + len(tail)
	for _, m := range r.Messages {
		size += len(m) + 1
	}
	out := make([]byte, 0, size)
	out = append(append(out, head...), open...)
	n := 0
	add := func(m json.RawMessage) bool {
		if len(m) < 2 || m[0] != '{' || m[len(m)-1] != '}' {
			return false
		}
		if n > 0 {
			out = append(out, ',')
		}
		n++
		out = append(out, m...)
		return true
	}
	if len(r.System) > 0 && !add(r.System) {
		return nil, request("the system message is not a JSON object")
	}
	for i, m := range r.Messages {
		if !add(m) {
			return nil, request("message %d is not a JSON object", i)
		}
	}
	if n == 0 {
		return nil, request("no messages")
	}
	out = append(out, close...)
	if len(r.Tools) > 0 {
		out = append(append(out, tools...), r.Tools...)
	}
	out = append(out, extra...)
	return append(out, tail...), nil
}

// requestError is a request that we made wrong ourselves: no try will mend it.
type requestError string

func (e requestError) Error() string { return string(e) }

func request(format string, args ...any) error {
	return requestError("build model request: " + fmt.Sprintf(format, args...))
}
