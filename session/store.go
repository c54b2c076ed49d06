package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"coxswain/steer"
)

// Store holds everything that must outlive a process. The session package
// consumes it; store/sqlite and store/redis implement it; storetest.Run is
// what an implementation must pass.
//
// Every write is one atomic step and idempotent: called again with the same
// OpID or Dedupe it changes nothing and gives the first answer again, also
// after a lost reply. When a durable write returns nil a crash cannot lose it.
// All methods may be called from any goroutine. Cost never grows with the
// length of a session (I12). Times are the store's clock, in milliseconds.
//
// A session key is a lane: slot, tickets, dedupe, lease and outbox belong to
// it. Its transcript is a generation of the lane; rows are numbered within it.
//
// A seat is a lane that has a lease alone. It is no session: Due, Sessions and
// the count of sessions leave it out.
type Store interface {
	// Accept stores an inbound input: dedupe mark, ticket, slot entry, fate.
	Accept(ctx context.Context, r Accept) (Accepted, error)
	// Load reads a lane. A lane never written to gives the zero Lane.
	Load(ctx context.Context, key Key) (Lane, error)
	// Begin opens a turn: takes the lease with a new epoch, consumes entries,
	// appends the user rows and marks them sent, all or nothing.
	Begin(ctx context.Context, r Begin) (Begun, error)
	// Claim takes over an open turn whose lease has run out, or the lease of an
	// idle lane, with a new epoch. It counts a recovery (Attempts) when a turn is
	// open and was not released. The nonce that holds a live lease gets it again
	// unchanged; a live lease of another gives ErrHeld. ErrGone if there is no such
	// lane, but a seat (Key.IsSeat) is made.
	Claim(ctx context.Context, key Key, nonce string, ttl time.Duration) (Begun, error)
	// Renew extends the lease by its TTL. Not synced: a lease is liveness only.
	Renew(ctx context.Context, l Lease) (Flags, error)
	// Commit writes a step of the open turn: see Commit for the order inside.
	Commit(ctx context.Context, l Lease, r Commit) (Committed, error)
	// Release gives the lease up with the turn left open and due at once; the
	// recovery count is not touched (graceful stop).
	Release(ctx context.Context, l Lease) error
	// Amend edits, drops or re-routes a slot entry.
	Amend(ctx context.Context, r Amend) (Amended, error)
	// Stop marks the open turn stopped and holds every waiting entry, or leaves
	// those alone.
	Stop(ctx context.Context, r Stop) (Stopped, error)
	// Reset opens generation+1, fences the runner and holds what waits (F32).
	Reset(ctx context.Context, r Reset) (Lane, error)
	// Post stores what a command did beside the turn: a dedupe mark, parts to
	// send, the session's preferences, a job's end.
	Post(ctx context.Context, r Post) (Posted, error)
	// Rows reads rows of one generation with seq > after, at most limit
	// (0 = all), in order.
	Rows(ctx context.Context, key Key, gen, after int64, limit int) ([]Row, error)
	// Due gives lanes that need a look by the store's clock: work that waits
	// with no live lease, an open turn whose lease ran out, an open entry whose
	// time came, a job's end not told. At most limit, longest due first.
	Due(ctx context.Context, limit int) ([]Key, error)

	// OutTake marks the head part of a lane's outbox as being sent by nonce and
	// returns it with Attempt grown by one; State is PartSending, or PartUnknown
	// when the outcome of an earlier attempt is not known (Since is then the time
	// of that attempt). ok is false if there is none that may be sent now; wait is
	// how long until there will be (0 = nothing waits). The nonce that is already
	// sending the head gets it again, as the first time but for Alone: its reply
	// was lost. One that another nonce is sending, or whose outcome is not known, is
	// given, as PartUnknown, when that attempt is older than takeover. Not synced.
	OutTake(ctx context.Context, key Key, nonce string, takeover time.Duration) (p Part, ok bool, wait time.Duration, err error)
	// OutDone ends the part being sent, or says with PartSending that it still is:
	// takeover counts from then. With an empty ID it gives up what is kept for nonce
	// (PartDone.For). Not synced. Ending a part twice, or one that nonce does not
	// hold, changes nothing.
	OutDone(ctx context.Context, key Key, nonce string, d PartDone) error
	// OutDue gives lanes whose head part may be sent now. At most limit.
	OutDue(ctx context.Context, limit int) ([]Key, error)

	// Fates gives the newest limit fates of a lane, newest first (0 = all kept;
	// a store keeps at least the last 256 of a lane).
	Fates(ctx context.Context, key Key, limit int) ([]Fate, error)
	// Seen reports whether a lane has the dedupe mark of an event.
	Seen(ctx context.Context, key Key, dedupe string) (bool, error)
	// Settle sets fates that only tell of something (a steer went out). Not
	// synced, not fenced, and it may come late: a fate that is held, final or at
	// a later FateState.Stage stays as it is.
	Settle(ctx context.Context, key Key, f []FateSet) error

	// Sessions lists lanes in key order after the given key, at most limit.
	Sessions(ctx context.Context, after string, limit int) ([]Lane, error)
	// Delete removes a lane and all its generations. ErrHeld while a live lease
	// holds it.
	Delete(ctx context.Context, key Key) error
	// Expire is Delete for a lane that nobody needs: nothing is open, waits, is
	// held, runs as a job or is to be sent, no lease is live, and it was not
	// touched for idle. Else ErrStale and nothing is changed, so what arrives
	// meanwhile is never removed.
	Expire(ctx context.Context, key Key, idle time.Duration) error
	// Doc reads a small named document; version 0 = absent.
	Doc(ctx context.Context, name string) (data []byte, version int64, err error)
	// PutDoc writes a document if its version is still the one given, else
	// ErrStale. Durable.
	PutDoc(ctx context.Context, name string, version int64, data []byte) error
	// What is used up is counted beside the lanes.
	Meters
	// Stats gives the counters of the whole store.
	Stats(ctx context.Context) (Stats, error)
	// Ping reports whether the store can serve now.
	Ping(ctx context.Context) error
	Close() error
}

// Errors of the store. Test with errors.Is.
var (
	ErrFenced = errors.New("fenced: another runner holds this session")    // lease epoch or nonce is not current: write nothing more
	ErrHeld   = errors.New("held: a live lease of another runner is here") //
	ErrStale  = errors.New("stale: the state is not what the caller read") // read again, decide again
	ErrNewer  = errors.New("newer: a newer version of the gateway has to go on with this session")
	ErrGone   = errors.New("gone: the entry was consumed or dropped")
	ErrFull   = errors.New("store is full or refuses writes")
)

// Form is the newest form of rows, entries and jobs that this version can go on
// with. It grows when an older version could not: a new row type, another reading
// of an old member, a renderer whose bytes an open turn needs. What only adds
// members to a JSON object leaves it alone (Rest). A store that versions may share
// (Lane.Form) leaves lanes of a newer form to the newer version (F35): they are
// never due here, and Claim, Begin, Expire and Delete give ErrNewer. What is
// received for them is stored as ever.
const Form = 1

// OpID names one logical write of a lease holder, unique in its lane; a retry
// carries the same. The last one (of Begin and Commit) is remembered with its
// reply, which is why a holder's writes go one after another.
type OpID string

// Limits of the pending slot (busy-input contract). SlotCap counts entries
// that wait and are not held.
const (
	SlotCap       = 32
	EntryMaxBytes = 64 << 10
	SteerMaxBytes = 8 << 10
)

// A Lease is the right to write a turn: epoch and nonce are checked by every
// write of it (I4).
type Lease struct {
	Key   Key
	Epoch int64
	Nonce string
	TTL   time.Duration
}

// An Entry is one input in the pending slot.
type Entry struct {
	Ticket  int64
	Version int64      // grows with each edit, part, hold or re-route
	Want    steer.Mode // queue, interrupt or steer
	Turn    int64      // the open turn judged at the door; 0 = idle
	Held    bool       // by /stop or /new: neither run nor lost
	Open    time.Time  // parts may still arrive until then; zero = complete
	Group   string     // what later parts of the input are recognised by
	Author  UserID
	Msgs    []MessageID // the platform messages of the input, first part first
	At      time.Time   // accepted
	Data    []byte      // JSON Input
}

// IsOpen reports whether parts of the input may still arrive. One accepted in the
// future was stored before the store's clock was set back: its time is over (F38).
func (e Entry) IsOpen(now time.Time) bool {
	return !e.Open.IsZero() && now.Before(e.Open) && !now.Before(e.At)
}

// Lane is what the store knows of a session, without its rows.
type Lane struct {
	Key      Key
	Exists   bool
	Gen      int64       // generation of the transcript, from 1
	Seq      int64       // rows appended in this generation
	Sent     int64       // highest seq a request may have carried
	Last     RowType     // type of the newest row, 0 = none
	Phase    steer.Phase // phase of the open turn as last committed
	Turn     int64       // the open turn; 0 = idle
	Turns    int64       // number of the newest turn ever begun in the lane
	TurnAt   time.Time   // when the open turn began
	Owner    UserID      // whose turn it is
	Attempts int         // recoveries of the open turn
	Stop     int64       // the turn that /stop was pressed on; 0 = none
	Released bool        // the open turn was parked by Release
	Tickets  int64       // newest ticket given
	Notes    int64       // newest note number
	Epoch    int64
	Nonce    string // holder of the lease, empty = none
	Until    time.Time
	Prefs    []byte // JSON Prefs
	Title    string
	Touched  time.Time
	Slot     []Entry // ordered by ticket, held ones too
	Jobs     []Job   // not yet told, ordered by id
	Out      int     // parts in the outbox
	Form     int     // of what stands in the lane, see Form; 0 = the first
	Now      time.Time
}

// heldByOther reports how long another process than nonce has the lane's lease. One
// that ends further ahead than any lease of ttl was taken before the store's clock
// was set back, and is over (F38).
func (l Lane) heldByOther(nonce string, ttl time.Duration) (left time.Duration, held bool) {
	left = l.Until.Sub(l.Now)
	return left, l.Nonce != "" && l.Nonce != nonce && left > 0 && left <= 2*ttl
}

// Flags tell a runner what came in beside it; every reply to it carries them.
type Flags struct {
	Stop    bool  // this turn was stopped
	Intr    int64 // the newest waiting entry with Want interrupt: its ticket
	Waiting int   // entries that wait, held ones not counted
	Held    int
	Steers  int // of them: steers for this turn
}

// Accept is one inbound input.
type Accept struct {
	Key    Key
	Dedupe string
	Want   steer.Mode
	Turn   int64 // the turn judged at the door; under 0: none runs and it waits for room, so the cap holds
	Author UserID
	Msg    MessageID
	Data   []byte // JSON Input, with one part
	Group  string
	Open   time.Duration // keep the entry open for parts this long; 0 = complete
	// Append is how later parts join: when an entry of the same author with this
	// Group is open (now < Open) and the sum stays within EntryMaxBytes, the part
	// is added to it: "\n" and Data go behind the entry's Data, Msg behind its
	// Msgs (and its fate's), its Open becomes now+Open (0 closes it), its Version
	// grows, ticket and Want stay, but a part that wants to be queued makes a
	// steer queue (fate FateQueued); nothing else happens. Else it is a new entry.
	Append bool
	Title  string // sets the lane's title if it has none
	// Full is sent when the slot is full; nothing else is stored then but the
	// dedupe mark.
	Full []PartNew
	Fate FateState // first state if the entry is new
}

// AcceptOutcome says what Accept did.
type AcceptOutcome uint8

// Outcomes of Accept.
const (
	AcceptOK     AcceptOutcome = iota
	AcceptDup                  // seen before: Ticket is the first one's, 0 if it was refused or is a command's
	AcceptFull                 // SlotCap entries wait in a busy lane, or for room: nothing claimed, the sender is told
	AcceptJoined               // became a part of the open entry Ticket
)

// Accepted is the answer of Accept, with the lane after it.
type Accepted struct {
	Outcome AcceptOutcome
	Ticket  int64
	Lane    Lane
}

// A Take names an entry as the caller read it.
type Take struct {
	Ticket  int64
	Version int64
}

// Begin opens a turn.
type Begin struct {
	Op    OpID
	Key   Key
	Nonce string
	TTL   time.Duration
	Gen   int64 // as read; 0 for a lane that has none yet
	Seq   int64 // as read; ErrStale when it moved
	Owner UserID
	Phase steer.Phase
	Take  []Take   // consumed; ErrStale if one is gone or its version moved
	Jobs  []string // job ends this turn tells: marked told
	Rows  []Row    // head (if a new epoch begins) and user rows; Turn and Seq are set by the store
	Fates []FateSet
	Outs  []PartNew
}

// Begun is a lease on an open (or, from Claim, idle) lane.
type Begun struct {
	Lease Lease
	Lane  Lane
}

// Commit is one step of a turn. Inside the one atomic step the order is:
// memo, fence, Seq check; Take consumed; Rows appended; Drain; Jobs, Outs,
// Fates; End or Phase; lease extended.
type Commit struct {
	Op    OpID
	Seq   int64  // as the caller knows it; ErrStale when it moved
	Take  []Take // a join's entries; ErrStale like Begin
	Rows  []Row
	Phase steer.Phase
	// Drain is taken just before a model request. If the newest row is a tool
	// row that no request has carried (Seq > Sent), and the turn was not stopped
	// (what is written after /stop is not of it), every waiting steer for
	// this turn below the first open entry moves onto it as RowSteer records,
	// in ticket order, with one note number, fate FateAttached and step Step.
	// In any case Sent becomes the new Seq (I5).
	Drain bool
	Step  int
	Jobs  []Job // inserted or replaced by id; Told ones are removed
	Outs  []PartNew
	Fates []FateSet
	// Take over the outbox head: when the outbox was empty before and Outs is
	// not, the first part is marked as being sent by the lease's nonce and given
	// back, as OutTake would.
	TakeOut bool
	// End ends the turn: phase idle, Turn, Stop, Attempts cleared. The lease is
	// kept if entries may run now (More) or a job of this nonce runs.
	End bool
	// HoldRest holds every waiting entry as Stop does (auth and quota errors).
	HoldRest bool
}

// Committed is the answer of Commit.
type Committed struct {
	Seq    int64
	Steers []Row // moved by Drain, in order
	Flags  Flags
	// More, after End: the lowest waiting entry may run now (it is not open, or
	// its time came).
	More bool
	Out  *Part // see TakeOut
}

// AmendKind says what to do with an entry.
type AmendKind uint8

// Kinds of Amend.
const (
	AmendEdit AmendKind = iota // Data replaces the entry's
	AmendDrop                  // removed; fate FateDropped
	AmendSet                   // Want and Turn replaced, hold cleared, fate Fate
)

// Amend changes one slot entry.
type Amend struct {
	Key     Key
	Dedupe  string // of the event that asks; with it a retry gives the first answer
	Kind    AmendKind
	Ticket  int64
	Version int64 // 0 = whatever it is
	Data    []byte
	Want    steer.Mode
	Turn    int64
	Fate    FateState
	Outs    []PartNew
}

// Amended is the answer of Amend.
type Amended struct {
	// Done is false when the entry was not there any more: it has been consumed
	// or dropped, and nothing changed but the dedupe mark (Outs are not sent).
	Done bool
	Dup  bool // the event was seen before; Done is the first answer
	Lane Lane
}

// Stop is a /stop: Lane.Stop becomes the open turn, every entry that waits is
// held (fate held), open entries are closed, unless Keep says otherwise. It
// creates no lane.
type Stop struct {
	Key    Key
	Dedupe string
	Only   int64 // not 0: does nothing unless this turn is open
	Drop   bool  // /stop all: what waits and what is held is dropped
	// Keep, and not Drop: only the turn is stopped; entries stay as they are and
	// run after it.
	Keep bool
	Outs []PartNew
}

// Stopped is the answer of Stop.
type Stopped struct {
	Dup  bool
	Turn int64 // the turn stopped; 0 = none was open
	// Held are the entries held or dropped by this call.
	Held []Entry
	Lane Lane
}

// Reset is a /new: generation and epoch grow, the lease is dropped, a turn that
// was open is closed without a row and its fates that are not final become
// stopped, all that waits is held, running jobs stay. The lane is created if it
// does not exist.
type Reset struct {
	Key    Key
	Dedupe string
	Outs   []PartNew
}

// Post is what a command did.
type Post struct {
	Key    Key
	Dedupe string // optional
	Prefs  []byte // not nil: replaces the lane's; creates the lane
	Title  string // not empty: replaces the title
	Jobs   []Job  // replaces known jobs by id (Told removes); unknown ids are ignored: they were told already
	Add    []Job  // inserted unless the id is known; none is Told
	Outs   []PartNew
}

// Posted is the answer of Post.
type Posted struct {
	Dup  bool
	Lane Lane
}

// JobState is the state of a background job.
type JobState string

// States of a job. A lane keeps a job until it is told.
const (
	JobRunning JobState = "running"
	JobEnded   JobState = "ended"
	JobLost    JobState = "lost" // its process died: result unknown
)

// A Job is a call that went on beside its turn.
type Job struct {
	ID    string          `json:"id"`
	Turn  int64           `json:"turn"`
	Owner string          `json:"owner"` // nonce of the process that runs it
	Name  string          `json:"name"`  // what people see
	State JobState        `json:"state"`
	Told  bool            `json:"told,omitempty"` // its end was seen: forget it
	Body  string          `json:"body,omitempty"` // the result, when ended
	Data  json.RawMessage `json:"data,omitempty"`
	At    int64           `json:"at"` // started, Unix ms
}

// PartKind says what a part of the outbox is.
type PartKind string

// Kinds of parts. PartFinal and PartNotice are repeated once when their outcome
// is unknown (I9).
const (
	PartFinal  PartKind = "final"  // a piece of an answer
	PartNotice PartKind = "notice" // an error or a word that must arrive
	PartReply  PartKind = "reply"  // a command's answer
	PartSay    PartKind = "say"    // what the model says between steps: a row too
	PartFile   PartKind = "file"   // a file that a tool sends
)

// PartNew is a part to be written to the outbox.
type PartNew struct {
	ID   string // unique in the lane, ≤ 64 bytes; made from turn or event, so a retry makes the same
	Kind PartKind
	Turn int64
	Data []byte // the platform's payload, made by Platform.Parts
}

// PartState is where a part stands.
type PartState string

// States of a part.
const (
	PartPlanned PartState = "planned"
	PartSending PartState = "sending"
	PartUnknown PartState = "unknown" // sent or not, nobody knows
	PartSent    PartState = "sent"
	PartDead    PartState = "dead" // refused for good
)

// A Part is one message of an outbox. Parts of a lane are sent strictly in
// order.
type Part struct {
	PartNew
	Key     Key
	State   PartState
	Attempt int       // from 1 at the first OutTake
	Since   time.Time // of State
	// Alone says, of a part that is given to be sent, that the lane holds no other
	// now: who sends it need not ask for more.
	Alone bool
	// Lane is the session, set by Destination, which makes Key the chat that the
	// part goes to.
	Lane Key
	// Paced is set by the outbox and the hub, not by stores: the platform's room
	// for it was set aside (Paced).
	Paced bool
	// Asked is set by them too: when this process first asked for the part, by its
	// own clock. The right to send it is at least as old, and another process may
	// have taken it over when it is as old as that takeover time.
	Asked time.Time
}

// Session is the session whose part it is, and whose files it names.
func (p Part) Session() Key {
	if p.Lane != (Key{}) {
		return p.Lane
	}
	return p.Key
}

// PartDone ends an attempt.
type PartDone struct {
	ID    string
	State PartState     // PartSent and PartDead remove it, PartPlanned retries after Wait, PartUnknown waits for Wait and is taken again as unknown
	Msg   MessageID     // PartSent: the platform's id
	Wait  time.Duration //
	// For is the nonce that the rest of the lane is kept for, after PartSent and
	// PartDead, for Wait: no other may take the next part before. Who sends a lane
	// keeps the chat's pace; two that did in turn would each send at its own.
	For string
}

// FateState is what became of a message; people see it as a receipt.
type FateState string

// States of a message's life. One sign per state, no two alike.
const (
	FateAccepted FateState = "accepted" // stored while the session was idle: starts a turn at once
	FateQueued   FateState = "queued"
	FatePending  FateState = "pending"  // to be steered in
	FateHeld     FateState = "held"     // by /stop
	FateRunning  FateState = "running"  // began or joined a turn
	FateAttached FateState = "attached" // on a tool row, no request has gone out with it
	FateSteered  FateState = "steered"  // a request carrying it was accepted
	FateAnswered FateState = "answered"
	FateDropped  FateState = "dropped"
	FateStopped  FateState = "stopped"
	FateFailed   FateState = "failed"
)

// A Fate is the recorded life of one input.
type Fate struct {
	Ticket  int64       `json:"ticket"`
	Msgs    []MessageID `json:"msgs"`
	State   FateState   `json:"state"`
	Turn    int64       `json:"turn,omitempty"` // that took it
	Step    int         `json:"step,omitempty"` // of that turn at which it went in
	Waited  bool        `json:"waited,omitempty"`
	At      int64       `json:"at"`      // accepted, Unix ms
	Changed int64       `json:"changed"` // Unix ms
}

// Again reports whether s takes an input once more that failed or was stopped
// with an earlier turn (/retry): nothing else moves a final fate.
func (f Fate) Again(s FateSet) bool {
	return (f.State == FateFailed || f.State == FateStopped) && s.State == FateRunning && s.Turn > f.Turn
}

// FateSet moves the fate of a ticket; a final one moves only as Fate.Again
// says, and then forgets its step. Waited stays true once a state of waiting
// (queued, pending, held) was set.
type FateSet struct {
	Ticket int64
	State  FateState
	Turn   int64 // 0 = leave
	Step   int   // 0 = leave
}

// Stats counts since the store was made. The conservation law holds at any
// instant: Accepted = Consumed + Steered + Dropped + InSlot.
type Stats struct {
	Accepted   int64 `json:"accepted"`
	Duplicates int64 `json:"duplicates"`
	Full       int64 `json:"full"`
	Consumed   int64 `json:"consumed"` // by Begin or a join
	Steered    int64 `json:"steered"`  // by a drain
	Dropped    int64 `json:"dropped"`
	InSlot     int64 `json:"in_slot"`
	Turns      int64 `json:"turns"`
	Ended      int64 `json:"ended"`
	Recovered  int64 `json:"recovered"` // claims of an open turn
	Fenced     int64 `json:"fenced"`
	Replayed   int64 `json:"replayed"` // writes answered from memory
	OutPlanned int64 `json:"out_planned"`
	OutSent    int64 `json:"out_sent"`
	OutUnknown int64 `json:"out_unknown"`
	OutDead    int64 `json:"out_dead"`
	Sessions   int64 `json:"sessions"`
}

// Waits reports whether the input waits in the slot.
func (s FateState) Waits() bool {
	return s == FateQueued || s == FatePending || s == FateHeld
}

// Stage orders the states of an input's life: accepted, waiting, taken,
// steered, over. What was consumed does not wait again.
func (s FateState) Stage() int {
	switch {
	case s == FateAccepted:
		return 0
	case s.Waits():
		return 1
	case s == FateRunning || s == FateAttached:
		return 2
	case s == FateSteered:
		return 3
	}
	return 4
}

// Final reports whether nothing more becomes of the input.
func (s FateState) Final() bool {
	switch s {
	case FateAnswered, FateDropped, FateStopped, FateFailed:
		return true
	}
	return false
}

func isStale(err error) bool { return errors.Is(err, ErrStale) }
