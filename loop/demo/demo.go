// Package demo is a model that is a script: it needs no key and no network,
// runs a real task of five tool steps that take about three seconds each, says
// in its first line that it is a script, and does what a note tells it, so that
// a newcomer can feel steering in one minute.
//
// It is a loop.Model like any other: all it knows is in the request, and equal
// requests get equal answers. It starts no goroutines and may be used from any.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"coxswain/loop"
)

// Model is the script. The zero value works.
type Model struct {
	// Pace is the time between two words. Zero: 25 ms, about as fast as people
	// read.
	Pace time.Duration
	// Wait is how long the wait tool is asked to wait in a step, in seconds.
	// Zero: 3.
	Wait int
}

var _ loop.Model = (*Model)(nil)

// Name implements loop.Model.
func (m *Model) Name() string { return "demo/script" }

// message is the wire form, the shape of a chat completion's messages.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Encode implements loop.Model.
func (m *Model) Encode(w loop.Wire) (json.RawMessage, error) {
	msg := message{Role: w.Role, Content: w.Text, CallID: w.CallID}
	for _, c := range w.Calls {
		msg.Calls = append(msg.Calls, call{c.ID, "function", function{c.Name, c.Args}})
	}
	return json.Marshal(msg)
}

// steps is how many tool steps the task has.
const steps = 5

// Stream implements loop.Model. It answers from the request alone: which step
// it is follows from the messages since the newest user message.
func (m *Model) Stream(ctx context.Context, r loop.Request, on func(loop.Delta), accepted func()) (loop.Reply, error) {
	var system message
	if err := json.Unmarshal(r.System, &system); err != nil {
		return loop.Reply{}, &loop.ModelError{Kind: loop.ErrBadRequest, Public: "The demo cannot read this request.", Err: err}
	}
	var task string
	var notes []string
	fresh := false // the newest result carries a note
	done, ids := 0, 0
	before, reached := "", 0 // the task before the newest user message
	for _, raw := range r.Messages {
		var msg message
		if err := json.Unmarshal(raw, &msg); err != nil {
			return loop.Reply{}, &loop.ModelError{Kind: loop.ErrBadRequest, Public: "The demo cannot read this request.", Err: err}
		}
		switch msg.Role {
		case "user":
			before, reached = task, done
			task, notes, done, fresh = msg.Content, nil, 0, false
		case "assistant":
			ids += len(msg.Calls)
			if len(msg.Calls) > 0 {
				done++
			}
			fresh = false
		case "tool":
			if n := noteIn(msg.Content, system.Content); n != "" {
				notes, fresh = append(notes, n), true
			}
		}
	}
	accepted()
	text, calls := m.turn(oneLine(task), notes, fresh, done, r.NoTools)
	if r.NoTools && reached > 0 { // asked beside the task
		text = beside(oneLine(before), reached)
	}
	for _, word := range strings.SplitAfter(text, " ") {
		on(loop.Delta{Text: word})
		if err := m.pause(ctx); err != nil {
			return loop.Reply{}, err
		}
	}
	reply := loop.Reply{Text: text, Usage: loop.Usage{Prompt: len(r.Messages) * 40, Completion: len(text) / 4}}
	for i, c := range calls {
		c.ID = fmt.Sprintf("demo%05d", ids+i)
		reply.Calls = append(reply.Calls, c)
		reply.Finish = loop.FinishTools
	}
	return reply, nil
}

func (m *Model) pause(ctx context.Context) error {
	pace := m.Pace
	if pace == 0 {
		pace = 25 * time.Millisecond
	}
	t := time.NewTimer(pace)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// turn says and does what comes next. A note that went in changes what is
// written from then on, and is what the answer obeys.
func (m *Model) turn(task string, notes []string, fresh bool, done int, noTools bool) (string, []loop.Call) {
	if noTools || small(task) {
		return textSmall, nil
	}
	if done >= steps {
		return answer(task, notes), nil
	}
	say := ""
	if done == 0 {
		say = textIntro
	}
	if n := len(notes); fresh {
		say = fmt.Sprintf("I got your note: “%s”. From here on I do that.", notes[n-1])
	}
	return say, []loop.Call{m.write(task, notes, done), m.wait()}
}

// write is the step's real work: it keeps the report file up to date.
func (m *Model) write(task string, notes []string, done int) loop.Call {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", task)
	switch {
	case len(notes) > 0:
		// From the note on the report is what the note asks for: a heading and
		// one line.
		fmt.Fprintf(&b, "Changed as asked: %s\n", strings.Join(notes, "; "))
	default:
		for i := range done + 1 {
			fmt.Fprintf(&b, "%d. %s: done\n", i+1, stepNames[i])
		}
	}
	return loop.Call{Name: "write_file", Args: args(map[string]any{"path": "demo-report.md", "content": b.String()})}
}

func (m *Model) wait() loop.Call {
	n := m.Wait
	if n == 0 {
		n = 3
	}
	return loop.Call{Name: "wait", Args: args(map[string]any{"seconds": n})}
}

func args(v map[string]any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("demo: arguments do not encode: " + err.Error())
	}
	return string(data)
}

// small reports a message that is no task: a greeting gets a short answer.
func small(task string) bool {
	switch strings.ToLower(strings.Trim(task, " .!?")) {
	case "", "hi", "hello", "hey", "hallo", "thanks", "thank you", "ok":
		return true
	}
	return false
}

// noteIn is what a model does when it reads its instructions: a note counts
// if it ends the tool result and carries the key the system prompt gave. This
// is the model's reading, not the gateway's: nothing of the gateway depends on
// it.
func noteIn(content, system string) string {
	const head, tail = "[[gateway-note key=", "[[end-gateway-note key="
	_, after, ok := strings.Cut(system, tail)
	const keyLen = len("000000-000000-000000-000000")
	if !ok || len(after) < keyLen {
		return ""
	}
	key := after[:keyLen]
	open := strings.LastIndex(content, head+key)
	end := strings.LastIndex(content, tail+key)
	if open < 0 || end < open || strings.Contains(content[end:], "\n") {
		return ""
	}
	_, inner, _ := strings.Cut(content[open:end], "\n")
	return oneLine(inner)
}

// oneLine shortens text for the script's own sentences.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	for len(s) > 300 {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
