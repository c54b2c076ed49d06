package session

import (
	"encoding/json"
	"time"
)

// RowType is the kind of one row of a transcript. Rows are typed so that
// nothing about them is ever guessed from text (I7).
type RowType byte

// Row types. The store reads only this byte; everything else is the loop's.
const (
	RowHead      RowType = 'h' // begins an epoch: the stored head of requests (I11)
	RowUser      RowType = 'u' // begins a turn
	RowFold      RowType = 'f' // joined to the turn's user row on the wire
	RowAssistant RowType = 'a' // the model's text and calls, or the fixed words that end a turn
	RowTool      RowType = 't' // the result of one call
	RowSteer     RowType = 's' // one steer, attached to the tool row On by a drain
)

// A Row is one record of a session's append-only log. Rows are never
// rewritten: a steer on a tool row is a record of its own (I5, I7).
type Row struct {
	Seq  int64     // 1, 2, 3 … within one generation; set by the store
	Turn int64     // the turn that wrote it
	Type RowType   //
	On   int64     // RowSteer: the seq of the tool row it is attached to
	N    int64     // RowSteer: the number of the note, one per drain
	Tick int64     // RowSteer: the ticket of the consumed entry
	Data []byte    // JSON: UserRow, AssistantRow, ToolRow, Input (RowSteer), or the loop's head
	At   time.Time // when it was stored, by the store's clock, to the millisecond
}

// A UserRow is what people wrote to begin a turn, or to join it (RowFold).
type UserRow struct {
	Inputs []Input `json:"inputs,omitempty"`
	Owner  UserID  `json:"owner,omitempty"` // whose turn it is
	// Again are inputs of an earlier turn that failed or was stopped: this turn
	// takes them once more (/retry). AgainNotes are the steers of that turn.
	Again      []Input `json:"again,omitempty"`
	AgainNotes []Input `json:"again_notes,omitempty"`
	Event      string  `json:"event,omitempty"` // a job's end or a notice: data, not a person's words
	Asker      Person  `json:"asker,omitzero"`  // with Event: who had asked for the job
	// Observed are messages of the chat that did not speak to the bot and that no
	// turn before was told: data too. ObservedTo is the number of the newest told;
	// this row is the only record of it.
	Observed   []Observed `json:"observed,omitempty"`
	ObservedTo int64      `json:"observed_to,omitempty"`
	ObservedIn string     `json:"observed_in,omitempty"` // the chat, if the session's own is another
}

// An AssistantRow is what the model said, or the words that close a turn.
type AssistantRow struct {
	Text    string          `json:"text,omitempty"`
	Calls   []Call          `json:"calls,omitempty"`
	Private json.RawMessage `json:"private,omitempty"` // opaque, replayed only to the same model
	Model   string          `json:"model,omitempty"`
	End     EndKind         `json:"end,omitempty"` // set on the row that ends a turn (I14)
}

// A Call is one tool call the model asked for, in its canonical stored form.
type Call struct {
	ID   string `json:"id"`   // ours: 9 characters [a-zA-Z0-9], unique in the session
	Name string `json:"name"` // as the model wrote it; may be unknown
	Args string `json:"args"` // text of a valid JSON object, "{}" when empty
	// Bad, when not empty, says why the call must not run. The text is shown
	// to the model as the call's result.
	Bad     string          `json:"bad,omitempty"`
	Private json.RawMessage `json:"private,omitempty"` // the provider's own, opaque
}

// A ToolRow is the one result of a call (I14). Body never holds a note: notes
// are RowSteer records (I7).
type ToolRow struct {
	Call    string `json:"call"`
	Name    string `json:"name"`
	Body    string `json:"body"`
	Failed  bool   `json:"failed,omitempty"`
	Job     string `json:"job,omitempty"`     // the call goes on as this job
	NotRun  bool   `json:"notrun,omitempty"`  // never started
	Stopped bool   `json:"stopped,omitempty"` // by the person, while it ran
	// Unknown: it was running when its process died; nobody knows what it did.
	Unknown bool `json:"unknown,omitempty"`
}

// EndKind says how a turn ended.
type EndKind string

// The ways a turn ends.
const (
	EndAnswered EndKind = "answered"
	EndStopped  EndKind = "stopped"  // /stop, or replaced by an interrupt
	EndReplaced EndKind = "replaced" // by an interrupt: says nothing in the chat
	EndFailed   EndKind = "failed"
	// EndMoved ends only what is shown in a chat: the turn goes on in another one.
	EndMoved EndKind = "moved"
)
