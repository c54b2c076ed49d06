package steer

import (
	"fmt"
	"slices"
)

// Phase is what a session is doing when a message arrives.
type Phase uint8

const (
	// PhaseIdle: no turn is open.
	PhaseIdle Phase = iota
	// PhasePreparing: a turn has begun; its first request is not out yet, or
	// is out and nothing has been shown.
	PhasePreparing
	// PhaseModel: a model request is out or backing off, nothing shown.
	PhaseModel
	// PhaseShowing: text is being shown, final or not.
	PhaseShowing
	// PhaseTools: tool calls run.
	PhaseTools
	// PhaseAsking: an approval or a question of ask_user is open.
	PhaseAsking
	// PhaseCompacting: the history is being summarised.
	PhaseCompacting
	// PhaseDraining: the process is shutting down.
	PhaseDraining
)

var phaseNames = [...]string{
	PhaseIdle: "idle", PhasePreparing: "preparing", PhaseModel: "model", PhaseShowing: "showing",
	PhaseTools: "tools", PhaseAsking: "asking", PhaseCompacting: "compacting", PhaseDraining: "draining",
}

// String returns the phase's name, the one ParsePhase accepts.
func (p Phase) String() string { return nameOf(phaseNames[:], uint8(p), "phase") }

// ParsePhase reads what Phase.String wrote.
func ParsePhase(s string) (Phase, error) {
	if i := slices.Index(phaseNames[:], s); i >= 0 {
		return Phase(i), nil
	}
	return 0, fmt.Errorf(wrongPhase, s)
}

// Mode is what a message means while the session is busy, unless the message
// itself says otherwise: the setting busy_input_mode, or an explicit verb.
// The zero value is Queue, which disturbs nothing.
type Mode uint8

const (
	Queue Mode = iota
	Interrupt
	Steer
)

var modeNames = [...]string{Queue: "queue", Interrupt: "interrupt", Steer: "steer"}

// String returns the mode's name, as written in the configuration.
func (m Mode) String() string { return nameOf(modeNames[:], uint8(m), "mode") }

// ParseMode reads queue, interrupt or steer. The error's text is fit to be
// shown to whoever wrote the setting.
func ParseMode(s string) (Mode, error) {
	if i := slices.Index(modeNames[:], s); i >= 0 {
		return Mode(i), nil
	}
	return 0, fmt.Errorf(wrongMode, s)
}

// Verb is what the session does with a message. The zero value is no verb: a
// cell of the table that somebody forgot cannot pass for a decision.
type Verb uint8

const (
	// Start: the message begins a turn now.
	Start Verb = iota + 1
	// Enqueue: it waits for a turn of its own.
	Enqueue
	// Join: it becomes part of the turn's user message; the request is sent again.
	Join
	// Replace: the turn is cancelled, what was shown stays, a new turn begins.
	Replace
	// Pend: a steer that goes in with the next tool row of this turn, or
	// becomes a turn when this one ends.
	Pend
	// Answer: it answers the open question.
	Answer
	// DenyThenReplace: the open question is denied, then as Replace.
	DenyThenReplace
	// WithdrawThenPend: the open question is withdrawn, then as Pend.
	WithdrawThenPend
	// ReplaceAfter: it waits until compacting is done, then as Replace.
	ReplaceAfter
	// Store: it is stored and runs in the next process.
	Store
)

var verbNames = [...]string{
	Start: "start", Enqueue: "enqueue", Join: "join", Replace: "replace", Pend: "pend", Answer: "answer",
	DenyThenReplace: "deny then replace", WithdrawThenPend: "withdraw then pend",
	ReplaceAfter: "replace after", Store: "store",
}

// String returns the verb in words, for logs and test messages.
func (v Verb) String() string { return nameOf(verbNames[:], uint8(v), "verb") }

func nameOf(names []string, i uint8, kind string) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// Input is all that the decision depends on. The caller judges authority and
// reads the clock; Decide does neither.
type Input struct {
	Phase Phase
	Mode  Mode
	// Explicit: the message says its own verb (/queue, /steer, /interrupt, or
	// a reply to the running bubble) and Mode is that verb's mode. Explicit
	// verbs beat the mode, never join, and never answer a question: who types
	// "/queue build the docs" under an open question has said what it is.
	// A reply that is meant as the answer is not explicit.
	Explicit bool
	// FirstRequest: the turn is preparing, or its first request is out with
	// nothing shown.
	FirstRequest bool
	// WithinJoin: input.join_window has not passed since the turn's newest input.
	WithinJoin bool
	// SameAuthor: whoever wrote this also wrote the turn's newest input.
	SameAuthor bool
	// MaySteer: the owner of the turn, an admin, or anybody in the chat where
	// steer.from is participants. Without it a message can only wait.
	MaySteer bool
	// Answers: the text answers the open question.
	Answers bool
}

// cells holds one verb for each mode, in the order queue, interrupt, steer.
type cells [len(modeNames)]Verb

// row is one phase of the busy table.
type row struct {
	plain     cells // an ordinary message of somebody who may steer
	follow    cells // instead of plain: a follow-up within the join window
	answer    Verb  // instead of plain: the text answers the open question
	bystander Verb  // instead of all: whoever may not steer
}

// busy is the busy table. It is the documentation of steering and the only
// place where the policy is written; table_test.go mirrors it cell by cell.
var busy = [...]row{
	PhaseIdle:       {plain: cells{Start, Start, Start}, bystander: Start},
	PhasePreparing:  {plain: cells{Enqueue, Replace, Pend}, follow: cells{Enqueue, Join, Join}, bystander: Enqueue},
	PhaseModel:      {plain: cells{Enqueue, Replace, Pend}, follow: cells{Enqueue, Join, Join}, bystander: Enqueue},
	PhaseShowing:    {plain: cells{Enqueue, Replace, Pend}, bystander: Enqueue},
	PhaseTools:      {plain: cells{Enqueue, Replace, Pend}, bystander: Enqueue},
	PhaseAsking:     {plain: cells{Enqueue, DenyThenReplace, WithdrawThenPend}, answer: Answer, bystander: Enqueue},
	PhaseCompacting: {plain: cells{Enqueue, ReplaceAfter, Pend}, bystander: Enqueue},
	PhaseDraining:   {plain: cells{Store, Store, Store}, bystander: Store},
}

// Decide says what a message means to the session. It panics on a phase or a
// mode that does not exist.
func Decide(in Input) Verb {
	r := busy[in.Phase]
	plain := r.plain[in.Mode]
	if !in.MaySteer {
		return r.bystander
	}
	if in.Explicit {
		return plain
	}
	if in.Answers && r.answer != 0 {
		return r.answer
	}
	if follow := r.follow[in.Mode]; follow != 0 && in.follows() {
		return follow
	}
	return plain
}

// follows reports whether the message continues the turn's newest input. A
// preparing turn is in its first request by definition.
func (in Input) follows() bool {
	first := in.FirstRequest || in.Phase == PhasePreparing
	return first && in.WithinJoin && in.SameAuthor
}

// Waiting is one entry of a session's pending slot.
type Waiting struct {
	Ticket int64
	Want   Mode   // what its author wants of it, judged at the door
	Author string // opaque; compared only for equality
	Open   bool   // parts of it are still arriving
	Held   bool   // set aside by /stop; it waits for a button
}

// Take says which tickets a turn takes when it begins, in ticket order.
// waiting must be in ticket order. Held entries do not exist for it, and
// nothing at or beyond the first open entry is taken, so the answer is empty
// only when nothing waits or the first that waits is still open (I3).
//
// If an interrupt waits, the turn takes all interrupts and every steer with a
// lower ticket than the last of them; else the lowest ticket and, if that is a
// steer, the steers directly after it by the same author. With together
// (queue.together) it takes all that waits.
func Take(waiting []Waiting, together bool) []int64 {
	ready := make([]Waiting, 0, len(waiting))
	for _, w := range waiting {
		if w.Held {
			continue
		}
		if w.Open {
			break
		}
		ready = append(ready, w)
	}
	last := -1 // the last interrupt
	for i, w := range ready {
		if w.Want == Interrupt {
			last = i
		}
	}
	var taken []int64
	for i, w := range ready {
		switch {
		case together:
		case last >= 0:
			if i > last || w.Want == Queue {
				continue
			}
		case i == 0:
		case ready[0].Want != Steer || w.Want != Steer || w.Author != ready[0].Author:
			return taken
		}
		taken = append(taken, w.Ticket)
	}
	return taken
}
