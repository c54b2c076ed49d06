package session

import (
	"context"
	"encoding/json"

	"coxswain/steer"
)

// An Agent runs turns. The loop package is it; the session package knows only
// this of it.
type Agent interface {
	// Head gives the head of a new epoch if cur, the newest stored one (nil =
	// none), is not what this build and configuration would render for key; nil
	// to go on with cur (I11). It does no I/O that can fail for long.
	Head(ctx context.Context, key Key, cur []byte) ([]byte, error)
	// Keep keeps copies of the pictures in an input that is about to be stored in
	// a row and notes them in it: a row's bytes must not change when somebody
	// changes the file (I5). What cannot be kept stays a file that is named.
	Keep(ctx context.Context, key Key, in *Input)
	// Run runs an open turn and returns how it ended. It writes through t alone.
	// When ctx is cancelled (ErrStopped, ErrReplaced, ErrParked, ErrFenced or the
	// process's end) it returns promptly, every process it started being dead
	// or adopted as a job.
	Run(ctx context.Context, t *Turn) Outcome
	// Aside answers a question beside the turn from the rows so far and what the
	// running tool has said; nothing is stored. Text is sanitised already. pay is
	// asked before the request, and its error is the answer's.
	Aside(ctx context.Context, key Key, rows []Row, tail string, in Input, pay Payer) (string, error)
	// StopJobs kills the background jobs of a session (/stop) and returns when
	// their processes are gone.
	StopJobs(ctx context.Context, key Key)
	// KillJob kills one of them; its end is told like any other.
	KillJob(ctx context.Context, key Key, id string)
	// Forget drops what is cached of a session.
	Forget(key Key)
}

// An Outcome is how a turn ended, before the end is stored.
type Outcome struct {
	End     EndKind         // empty when Parked or Err is set
	Rows    []Row           // to be stored before the row that ends the turn: results of calls still open
	Text    string          // the answer, or what had been shown of it when it was cut off
	Private json.RawMessage // of the answer, opaque
	Model   string
	Public  string // EndFailed: what people are told
	// HoldRest: the cause would fail every turn (key, quota): what waits is held.
	HoldRest bool
	// Parked: nothing is written; the next process goes on from the stored rows.
	Parked bool
	// Err: the turn could not write (fenced, or the process ends).
	Err error
}

// A Step is what a turn stores at once.
type Step struct {
	Rows  []Row
	Phase steer.Phase
	Drain bool // see Commit.Drain: set exactly when a model request follows
	Jobs  []Job
	// Files are sent at once, with the rows that say so: neither is there without
	// the other.
	Files []File
	// Say is sent at once, silently: what the model said before its tool calls
	// is an answer's part too.
	Say string
}
