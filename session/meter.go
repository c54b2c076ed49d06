package session

import (
	"context"
	"time"
)

// Meters is the part of a Store that counts what is used up: tokens, money,
// turns, requests. A meter is a name with a number that begins at 0 in each of
// its windows; limits are the caller's and come with each question, so they may
// be changed at any time. Nothing here is of a lane, and nothing grows for ever:
// meters and ops go by themselves.
type Meters interface {
	// Reserve takes r.Amount from all of r.Meters, or from none of them. Called
	// again with the same Op it gives the first answer; a refusal has changed
	// nothing and is no answer to be given again: asked once more it is judged
	// anew. With Amount 0 it only reads. Not synced: in a power cut each call that
	// was being made may be forgotten, and what was stored before it is kept with
	// the next synced write.
	Reserve(ctx context.Context, r Reserve) (Reserved, error)
	// Spent replaces what Reserve took under op by what was used, once. A meter
	// whose window is another one by now stays as it is. What is never settled,
	// because its process died, stays counted. Not synced.
	Spent(ctx context.Context, op string, actual int64) error
	// Grant raises the limit of a meter for its window by Extra, once for each
	// Mark. Durable.
	Grant(ctx context.Context, g Grant) (Granted, error)
}

// How long meters and ops are remembered beyond need.
const (
	// MeterIdle is how long a meter without windows lives after its last use.
	MeterIdle = 72 * time.Hour
	// SpentKept is how long an op is remembered after Spent: as long as a retry of
	// its calls can take, and no longer, for a day has many of them.
	SpentKept = 10 * time.Minute
)

// MeterMost is the most that a meter counts: every store does so exactly.
const MeterMost = 1 << 52

// A Meter is one thing that is used up.
type Meter struct {
	Name  string
	Limit int64
	// Period is the length of its windows by the store's clock, which begin at
	// multiples of it since 1970 UTC: 24 hours are a UTC day. 0 = it has one window,
	// that ends when it was not used for MeterIdle.
	Period time.Duration
}

// Reserve takes from meters.
type Reserve struct {
	Op     string // unique; a retry carries the same
	Meters []Meter
	Amount int64
}

// Reserved is the answer of Reserve.
type Reserved struct {
	// Refused is the name of the first meter that has not enough left; empty = it
	// was taken from all.
	Refused string
	// Wait is how long until the window of that one ends; 0 = it does not.
	Wait   time.Duration
	Meters []MeterState // in the order of the question
}

// A MeterState is how a meter stands after Reserve. What it was before is Used
// less the amount, if that was taken.
type MeterState struct {
	Used   int64
	Limit  int64 // with what was granted
	Grants int64 // in this window
	Window int64 // when it began, Unix ms; 0 = it has no windows
}

// Grant lets a meter go on.
type Grant struct {
	Meter  string
	Window int64 // as MeterState has it: of another one it does nothing
	Extra  int64
	Mark   string
}

// GrantOutcome says what Grant did.
type GrantOutcome uint8

// Outcomes of Grant.
const (
	GrantDone GrantOutcome = iota
	GrantDup               // its mark was there
	GrantGone              // that window is over, or the meter was never used
)

// Granted is the answer of Grant.
type Granted struct{ Outcome GrantOutcome }
