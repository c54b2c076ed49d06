package loop

import (
	"context"
	"encoding/json"
	"time"

	"coxswain/session"
)

// A Model answers requests. A provider package returns a concrete type; the
// loop knows only this.
type Model interface {
	// Stream sends one request and calls on for every piece of the answer, in
	// order, from the calling goroutine. accepted is called once, at the first
	// 2xx response of the call. Retries happen inside and send the same bytes
	// (I5). A cancelled ctx returns context.Cause(ctx) promptly; any other
	// failure is a *ModelError.
	Stream(ctx context.Context, r Request, on func(Delta), accepted func()) (Reply, error)
	// Encode gives the wire bytes of one message. It is pure: equal input gives
	// equal bytes, in every process of this build.
	Encode(m Wire) (json.RawMessage, error)
	// Name is the provider and model, the owner of Private fields.
	Name() string
}

// A Call is one tool call the model asked for, in its canonical stored form.
type Call = session.Call

// A Request is one model request. Every part is wire bytes already rendered;
// the client splices them into the body byte for byte (I5, I12).
type Request struct {
	Model     string            // empty: the client's own
	System    json.RawMessage   // the wire message of the system prompt
	Tools     json.RawMessage   // the wire array of tools, or nil
	Messages  []json.RawMessage // one JSON object per message
	NoTools   bool              // tool_choice none; the tools array is unchanged
	MaxTokens int               // 0: the endpoint's default
	Session   string            // prompt cache key
}

// A Reply is a finished answer.
type Reply struct {
	Text    string
	Calls   []Call
	Finish  Finish
	Private json.RawMessage // reasoning and the like, opaque
	Usage   Usage
	Cut     bool // stopped by the output limit with tool calls: none may run
}

// Finish says how a reply ended.
type Finish uint8

// The ways a reply ends. FinishTools is set whenever there are calls,
// whatever the provider said.
const (
	FinishStop Finish = iota
	FinishTools
	FinishLength
	FinishFilter
)

// Usage counts tokens as the provider reported them; zero when it did not.
type Usage struct {
	Prompt     int `json:"prompt"`
	Completion int `json:"completion"`
	Cached     int `json:"cached,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
}

// A Delta is one piece of a stream.
type Delta struct {
	Text  string // shown text grows by this
	Reset bool   // drop what this reply has shown so far: it is sent again
	// Silent is how long nothing came, with the try that is running and the
	// most there will be. Zero on ordinary pieces.
	Silent   time.Duration
	Attempt  int
	Attempts int
}

// Wire is a message before it is encoded.
type Wire struct {
	Role    string // system, user, assistant or tool
	Text    string
	Calls   []Call
	CallID  string
	Private json.RawMessage // of an assistant row; on a tool row, that of the call it answers
	Images  []Image
}

// An Image is a picture in a message.
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// ErrKind classifies a model failure for the loop's decisions.
type ErrKind uint8

// Kinds of model failure.
const (
	ErrNetwork ErrKind = iota
	ErrAuth
	ErrQuota
	ErrUnknownModel
	ErrContextLength
	ErrFiltered
	ErrOverloaded
	ErrSilent
	ErrBadRequest
	ErrEmpty
)

// A ModelError is a failed request. Error is for logs, Public for people.
type ModelError struct {
	Kind      ErrKind
	Public    string // what happened and what to do, at most 120 characters
	Status    int    // HTTP status, 0 if there was none
	Retryable bool
	Partial   string // text that had been shown when it broke
	Err       error
}

func (e *ModelError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Public
}

func (e *ModelError) Unwrap() error { return e.Err }
