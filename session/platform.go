package session

import (
	"context"
	"errors"
	"time"

	"coxswain/steer"
)

// A Platform is one chat network as the session package needs it. All methods
// may be called from any goroutine.
type Platform interface {
	Name() PlatformName
	// Parts turns an outgoing text into payloads, one per platform message, each
	// within the platform's limits; it does no I/O and equal input gives equal
	// payloads. Only the platform reads a payload.
	Parts(o Outgoing) [][]byte
	// Send sends one part to the chat of p.Key. An error is a *SendError. When
	// p.State is PartUnknown the part may have been sent before: the message says
	// so (I9).
	Send(ctx context.Context, p Part) (MessageID, error)
	// Show gives the platform the newest live view of a session. It never
	// blocks: the newest view wins and the platform paces itself. Views are
	// progress, so any of them may be dropped (I9); the one with Done set is the
	// last of its turn.
	Show(v View)
	// Sign shows what became of a person's input, on the first of f.Msgs,
	// replacing the sign before it. f.Waited is false for an input that started
	// a turn at once: it needs no sign in chats that have only reactions. An
	// error is a *SendError; a platform that refuses signs in this chat answers
	// ErrNoSigns, once it has shown the state in another way.
	Sign(ctx context.Context, key Key, f Fate) error
}

// A File is a file of a session's workspace that is sent to its chat.
type File struct {
	Path string `json:"path"`           // inside the workspace
	Name string `json:"name,omitempty"` // as people see it; empty = as Path has it
	// Kind is document, photo, voice (Ogg with Opus), audio, video or animation;
	// empty = as the name's ending says.
	Kind string `json:"kind,omitempty"`
	// Caption is what the model says to it.
	Caption string `json:"caption,omitempty"`
}

// A FileSender is a platform that can send files.
type FileSender interface {
	// FileParts is Parts for an Outgoing with files. What Send reads later is the
	// file as it is then.
	FileParts(o Outgoing) [][]byte
}

// A FileLimiter is a FileSender whose limit is not the same in all chats.
type FileLimiter interface {
	// FileMost is how many bytes a file may have that is sent to key's chat, as far
	// as is known now. It does no I/O.
	FileMost(key Key) int64
}

// A Guide is a platform on which people do in a way of its own what some commands
// do.
type Guide interface {
	// HowTo is a sentence that says how, for a command that acts on a message
	// ("why", "cancel"); for "help" it is the line that ends /help. Empty = nothing
	// is different there. It does no I/O.
	HowTo(command string) string
}

// A Forgetful platform drops what it remembers of a session that was deleted.
type Forgetful interface{ Forget(key Key) }

// A Reader is a platform whose people read sessions beside what they are sent: it
// is told of what other processes write. It does no I/O; any goroutine.
type Reader interface {
	// Changed says that the session of a chat changed; the zero Key: any may have.
	Changed(chat Key)
}

// A Paced platform has a budget of sends. Room in it is set aside before a part
// is taken for sending: a part that was taken and waits would be unknown after
// a crash, though nothing was sent (I9). All methods may be called from any
// goroutine and do no I/O.
type Paced interface {
	// Reserve sets one send to key's chat aside and says in how long it may go.
	// If that is longer than most, nothing is set aside and ok is false. A part
	// sent with Paced set uses what was set aside.
	Reserve(key Key, most time.Duration) (wait time.Duration, ok bool)
	// Return gives back what was set aside and not used.
	Return(key Key)
}

// ErrNoSigns means that a chat takes no signs on messages.
var ErrNoSigns = errors.New("this chat takes no signs")

// An Outgoing is a text to send, before it is cut into parts.
type Outgoing struct {
	Key      Key
	Kind     PartKind
	Markdown string
	ReplyTo  MessageID // empty = none
	Buttons  []Button  // on the last part
	Silent   bool      // does not ring
	// Interaction is Message.Interaction of the press or slash command that is
	// answered, empty = none: a platform may show the answer to its asker alone.
	Interaction string
	// Alone says that it concerns only who asked: a refusal, usage, a list. A
	// platform may keep it from others who see the chat.
	Alone bool
	Files []File // only for a FileSender
}

// A Button is one choice under a message. Data comes back as Message.Button;
// it is a short key that means nothing outside its chat (T32).
type Button struct {
	Text string `json:"text"`
	Data string `json:"data"` // at most 64 bytes: Telegram's limit
	// Row begins a row, where the platform has room for it: the buttons of one
	// message stand together.
	Row bool `json:"row,omitempty"`
}

// SendOutcome says what is known of a failed send.
type SendOutcome uint8

// Outcomes of a failed send.
const (
	SendNot     SendOutcome = iota // certainly not sent: try again
	SendUnknown                    // the request went out, nothing is known
	SendRefused                    // refused for good: another try is useless
)

// A SendError is a failed send.
type SendError struct {
	Outcome SendOutcome
	Wait    time.Duration // the platform's own word on when to try again; 0 = none
	Err     error
}

func (e *SendError) Error() string { return e.Err.Error() }
func (e *SendError) Unwrap() error { return e.Err }

// A View is the whole live state of a running turn. Views of one turn are
// numbered; strings in them only ever share memory with later views.
type View struct {
	Key     Key
	Turn    int64
	Rev     int64     // grows with each view of the turn
	Asked   MessageID // the message that began the turn
	Mark    string    // ends the data of buttons that stand below it
	Owner   Person
	Phase   steer.Phase
	Since   time.Time // when the turn began
	Step    int       // model requests so far
	Steps   int       // the most there may be
	Text    string    // of the model's message being shown
	Tools   []ToolView
	Notes   []NoteView
	Notice  string    // why nothing moves, for people; empty = all is well
	Waiting int       // entries in the slot, held ones not counted
	Resumed bool      // an earlier runner began it: a platform may show it already
	Done    bool      // the turn is over; what it says is in the outbox
	Ended   time.Time // when it was over
	End     EndKind
}

// A ToolView is one call of a running turn as people see it.
type ToolView struct {
	Call   string    `json:"call"`
	Name   string    `json:"name"`
	Args   string    `json:"args"` // shortened, cleaned
	Step   int       `json:"step"`
	State  ToolState `json:"state"`
	Tail   string    `json:"tail,omitempty"` // newest output, cleaned, at most 2 kB
	Began  time.Time `json:"began"`
	Took   float64   `json:"took,omitempty"` // seconds, when over
	Failed bool      `json:"failed,omitempty"`
	// Times is how many calls of this tool in a row it stands for; 0 = itself.
	Times int `json:"times,omitempty"`
}

// ToolState is the state of a call in a view.
type ToolState string

// States of a call.
const (
	ToolRunning ToolState = "running"
	ToolDone    ToolState = "done"
	ToolJob     ToolState = "job"
	ToolSkipped ToolState = "skipped"
)

// A NoteView tells of a steer that went in.
type NoteView struct {
	N    int64  `json:"n"`
	Step int    `json:"step"`
	From string `json:"from"` // name, cleaned
	Text string `json:"text"` // what was steered, shortened
	Call string `json:"call"` // the call on whose row it stands
	Sent bool   `json:"sent"` // a request carrying it was accepted
}

// An Outbox sends what the store holds for sending; adapters/outbox is it.
type Outbox interface {
	// Room reports whether a part for key could be sent at once, and sets that
	// send aside: a commit takes a part for the outbox only then. What was set
	// aside goes with the part to Nudge, or back by Return.
	Room(key Key) bool
	Return(key Key)
	// Nudge says that key has parts to send; taken, if not nil, is the head,
	// already marked as being sent by the hub's nonce. It never blocks.
	Nudge(key Key, taken *Part)
	// Sign shows an input's state; the newest state of an input wins. It never
	// blocks.
	Sign(key Key, f Fate)
	// Forget drops what is remembered of a session that was deleted.
	Forget(key Key)
}
