package loop

import (
	"context"
	"encoding/json"
	"time"

	"coxswain/session"
)

// A ToolSpec is a tool as the model is told of it.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Pure        bool // has no effect: may run again after a crash (I6)
	// Polls: its argument "id" names a job whose end the call's result tells.
	Polls bool
}

// A ToolCall is one call to start.
type ToolCall struct {
	Call   Call
	Key    session.Key
	Turn   int64
	Person session.Person
	Admin  bool
	Sends  bool // files can be sent to this chat
	// SendMost is how many bytes such a file may have, 0 = not known.
	SendMost int64
}

// A ToolResult is what a call gave: final text, cut to size, not yet
// sanitised.
type ToolResult struct {
	Body   string
	Failed bool
	Files  []session.File // to be sent with the row
}

// A Running is a call that was started. Its methods may be called from any
// goroutine.
type Running interface {
	Done() <-chan struct{}
	Result() ToolResult // after Done
	Tail() string       // newest output, at most 2 kB
}

// A Toolbox holds the tools. Methods may be called from any goroutine.
type Toolbox interface {
	// Specs lists the tools in an order that never changes in one build and
	// configuration (I11).
	Specs() []ToolSpec
	// Start starts a call. When ctx ends the call is killed at once with all its
	// processes, and Done closes, unless it was adopted.
	Start(ctx context.Context, c ToolCall) Running
	// Adopt makes a call that still runs a background job; false if it has
	// ended or was killed: then its result counts. over is called once, from a
	// goroutine of the toolbox, when the job is over.
	Adopt(key session.Key, id string, turn int64, r Running, over func(r ToolResult, polled bool)) bool
	// Kill ends a job and KillAll all jobs of a session; they return when the
	// processes are gone.
	Kill(key session.Key, id string)
	KillAll(key session.Key)
}

// Options are what a Loop is built from.
type Options struct {
	Profile // of sessions that ProfileOf gives no other
	Tools   Toolbox
	Images  ImageStore // nil: models see no pictures
	// ProfileOf names the profile of a session; "" or nil: the one above.
	ProfileOf func(session.Key) string
	Profiles  map[string]Profile

	YieldAfter    time.Duration // a call that runs longer gives way to a steer
	SkipUnstarted bool          // calls not started when a steer waits are not started
	Steps         int           // model requests of a turn with tools, at most
	Time          time.Duration // of a turn
	CacheBytes    int64         // wire bytes kept of sessions
	// JobEnded stores the end of a background job.
	JobEnded func(key session.Key, j session.Job)
}
