package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A Step is the answer to one request. It is a value and may be used again.
type Step struct {
	gates  []<-chan struct{}
	status int
	header http.Header
	body   string
	events []Event
}

// An Event is one thing that happens in a streamed answer.
type Event func(*play) error

// errEnd ends the stream without finish_reason and [DONE].
var errEnd = errors.New("end of stream")

// play is one step being played to one request.
type play struct {
	w        http.ResponseWriter
	r        *http.Request
	s        *Server
	n        int
	model    string
	usage    bool // the request wants a usage chunk
	stream   bool
	in, out  int // token counts to report; guesses unless a Usage event sets them
	cached   int
	calls    int
	finished bool
}

// Text answers with text, one chunk for each part.
func Text(parts ...string) Step { return Stream(Say(parts...)) }

// Calls answers with tool calls, their arguments in pieces.
func Calls(calls ...Call) Step { return Stream(Ask(calls...)) }

// Stream answers 200 at once and then plays the events. Unless they end the
// stream themselves, a finish_reason (tool_calls or stop), the usage if it was
// asked for, and [DONE] follow.
func Stream(events ...Event) Step { return Step{events: events} }

// Status answers with a status, a body and header pairs, as in
// Status(429, "", "Retry-After", "3"). An empty body becomes a plain error.
func Status(code int, body string, header ...string) Step {
	st := Step{status: code, body: body, header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		st.header.Add(header[i], header[i+1])
	}
	if body == "" {
		st.body = string(errorBody(fmt.Sprint(code), http.StatusText(code)))
	}
	return st
}

// JSON answers 200 with a plain JSON body, as servers do that ignore
// stream: true.
func JSON(body string) Step {
	return Step{status: http.StatusOK, body: body, header: http.Header{"Content-Type": {"application/json"}}}
}

// After holds the whole answer, its status too, until gate is closed; nil is
// never. In a synctest bubble make the gate inside it: waiting on a channel
// from outside does not count as idle, and time stands still.
func (st Step) After(gate <-chan struct{}) Step {
	st.gates = append(st.gates[:len(st.gates):len(st.gates)], gate)
	return st
}

// Say sends text, one chunk for each part.
func Say(parts ...string) Event {
	return func(p *play) error {
		for _, part := range parts {
			p.out += 1 + len(part)/4
			if err := p.delta(map[string]any{"content": part}); err != nil {
				return err
			}
		}
		return nil
	}
}

// Think sends reasoning text, one chunk for each part.
func Think(parts ...string) Event {
	return func(p *play) error {
		for _, part := range parts {
			p.out += 1 + len(part)/4
			if err := p.delta(map[string]any{"reasoning_content": part}); err != nil {
				return err
			}
		}
		return nil
	}
}

// argPiece is small, so that every argument object of a test is cut.
const argPiece = 7

// Ask sends tool calls: for each its id and name, then the arguments in
// pieces.
func Ask(calls ...Call) Event {
	return func(p *play) error {
		for _, c := range calls {
			if c.ID == "" {
				c.ID = p.s.callID()
			}
			head := map[string]any{"index": p.calls, "id": c.ID, "type": "function",
				"function": map[string]any{"name": c.Name, "arguments": ""}}
			if c.Extra != nil {
				head["extra_content"] = c.Extra
			}
			if err := p.delta(map[string]any{"tool_calls": []any{head}}); err != nil {
				return err
			}
			runes := []rune(c.Args)
			for len(runes) > 0 {
				k := min(argPiece, len(runes))
				piece := map[string]any{"index": p.calls, "function": map[string]any{"arguments": string(runes[:k])}}
				runes = runes[k:]
				p.out += 2
				if err := p.delta(map[string]any{"tool_calls": []any{piece}}); err != nil {
					return err
				}
			}
			p.calls++
		}
		return nil
	}
}

// Gate waits until the channel is closed, or the request is cancelled; see
// After for bubbles.
func Gate(gate <-chan struct{}) Event {
	return func(p *play) error { return wait(p.r.Context(), gate) }
}

// Wait lets time pass.
func Wait(d time.Duration) Event {
	return func(p *play) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-p.r.Context().Done():
			return p.r.Context().Err()
		}
	}
}

// Silence sends nothing more until the request is cancelled.
func Silence() Event { return Gate(nil) }

// Hang breaks the connection.
func Hang() Event { return func(*play) error { panic(http.ErrAbortHandler) } }

// Drop ends the body cleanly with no finish_reason and no [DONE].
func Drop() Event { return func(*play) error { return errEnd } }

// Raw sends bytes as they are.
func Raw(text string) Event { return func(p *play) error { return p.write(text) } }

// Frame sends one data frame with this payload.
func Frame(payload string) Event { return Raw("data: " + payload + "\n\n") }

// Comment sends a keep-alive comment.
func Comment(text string) Event { return Raw(": " + text + "\n\n") }

// Fail sends an error frame and ends the stream.
func Fail(code, message string) Event {
	return func(p *play) error {
		if err := p.write("data: " + string(errorBody(code, message)) + "\n\n"); err != nil {
			return err
		}
		return errEnd
	}
}

// Finish sends the finish_reason.
func Finish(reason string) Event {
	return func(p *play) error { return p.finish(reason) }
}

// Usage sets the token counts that the usage chunk reports.
func Usage(prompt, completion, cached int) Event {
	return func(p *play) error {
		p.in, p.out, p.cached = prompt, completion, cached
		return nil
	}
}

func (st Step) play(p *play) {
	for _, g := range st.gates {
		if wait(p.r.Context(), g) != nil {
			return
		}
	}
	if st.status != 0 {
		for k, v := range st.header {
			p.w.Header()[k] = v
		}
		p.w.WriteHeader(st.status)
		io.WriteString(p.w, st.body)
		return
	}
	p.w.Header().Set("Content-Type", "text/event-stream")
	p.w.WriteHeader(http.StatusOK)
	p.flush()
	for _, e := range st.events {
		if e(p) != nil {
			return
		}
	}
	p.end()
}

// end sends what a whole answer ends with.
func (p *play) end() {
	reason := "stop"
	if p.calls > 0 {
		reason = "tool_calls"
	}
	if !p.finished && p.finish(reason) != nil {
		return
	}
	if p.usage {
		u := map[string]any{"prompt_tokens": p.in, "completion_tokens": p.out, "total_tokens": p.in + p.out,
			"prompt_tokens_details": map[string]any{"cached_tokens": p.cached}}
		if p.frame(map[string]any{"choices": []any{}, "usage": u}) != nil {
			return
		}
	}
	p.write("data: [DONE]\n\n")
}

func (p *play) finish(reason string) error {
	p.finished = true
	return p.frame(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}}})
}

func (p *play) delta(d map[string]any) error {
	return p.frame(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}})
}

func (p *play) frame(m map[string]any) error {
	m["id"] = fmt.Sprintf("chatcmpl-%d", p.n)
	m["object"] = "chat.completion.chunk"
	m["created"] = 0
	m["model"] = p.model
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return p.write("data: " + string(b) + "\n\n")
}

func (p *play) write(text string) error {
	if err := p.r.Context().Err(); err != nil {
		return err
	}
	if _, err := io.WriteString(p.w, text); err != nil {
		return err
	}
	p.flush()
	return nil
}

func (p *play) flush() {
	if f, ok := p.w.(http.Flusher); ok {
		f.Flush()
	}
}

func wait(ctx context.Context, gate <-chan struct{}) error {
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
