package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Archive is a store whose whole content can be moved to another one, of
// whatever kind. It is asked for by store.Copy alone; nobody else uses either
// store meanwhile.
//
// Reading changes nothing. What is written stands in a lane as it was read:
// epoch, tickets, turn numbers and generations go on, so a gateway that starts
// on the copy cannot tell it from a restart. Leases do not move, for the
// process that held them is gone.
type Archive interface {
	Store
	// Identity names the stored data, whatever its address is. It stays as long
	// as they do, but for TakeOver.
	Identity(ctx context.Context) (string, error)
	// TakeOver makes every other process that has the store open fail from here
	// on. Nothing else is asked of the store at the same time.
	TakeOver(ctx context.Context) error
	// Dump reads what Load, Rows and Fates do not give of a lane.
	Dump(ctx context.Context, key Key) (LaneDump, error)
	// Parts reads the outbox of a lane behind its first after parts, in order, at
	// most limit.
	Parts(ctx context.Context, key Key, after int64, limit int) ([]PartNew, error)
	// DocNames lists all documents, also those that were emptied.
	DocNames(ctx context.Context) ([]string, error)
	// Import writes one page of a lane. Durable, and idempotent: a page may come
	// twice. The pages of a lane come in order, from one with First to one with
	// Last; until then the lane may be seen in part.
	Import(ctx context.Context, p LanePage) error
	// ImportDoc writes a document with its version. Durable.
	ImportDoc(ctx context.Context, name string, version int64, data []byte) error
	// ImportStats sets the counters; InSlot and Sessions are counted anew. Durable.
	ImportStats(ctx context.Context, s Stats) error
}

// A LaneDump is what a lane holds beside its rows, fates and parts.
type LaneDump struct {
	Lane  Lane   // as Load gives it, without the lease
	Head  Head   // of the outbox; zero when that is empty
	Marks []Mark // not all that are old are left out
	Memo  Memo
}

// Head is the state of the first part of an outbox. What was being sent is
// PartUnknown: its sender is gone.
type Head struct {
	State   PartState
	Attempt int
	Since   time.Time // not of PartPlanned: nobody is told
	Next    time.Time // not tried before
}

// A Mark is a dedupe mark: the first answer to an event.
type Mark struct {
	Key    string
	At     time.Time
	Ticket int64
	Done   bool // what Amend said
}

// A Memo is the newest write of a lease holder with its answer: one of both.
type Memo struct {
	Op        OpID
	Begun     *Begun
	Committed *Committed
}

// A LanePage is a piece of a lane on its way into another store.
type LanePage struct {
	Key   Key
	First bool  // what is there of the lane is removed before
	Gen   int64 // generation of the rows; with First that of the lane
	Rows  []Row // with their numbers
	Marks []Mark
	Parts []PartNew
	After int64     // parts of the lane in the pages before
	Last  *LaneDump // its marks have come already
	Fates []Fate    // with Last
}

// MarkLife is how long a dedupe mark counts.
const MarkLife = pastLife

// copyDoc is the document of a store that is being copied to. The copy empties
// it at its end.
const copyDoc = "copy"

// A CopyState is how far a copy got, and of what.
type CopyState struct {
	From string `json:"from"`           // Identity of the store it is read from
	Name string `json:"name"`           // and what people call that
	Done string `json:"done,omitempty"` // the newest lane that is there whole
	Lane string `json:"lane,omitempty"` // the one that may be there in part
	// Sessions are how many are there whole.
	Sessions int64 `json:"sessions"`
}

// Copying tells of a copy into st that has not ended; nil if there is none.
func Copying(ctx context.Context, st Store) (*CopyState, error) {
	data, _, err := st.Doc(ctx, copyDoc)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	c := new(CopyState)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("read the state of the copy: %w", err)
	}
	return c, nil
}

// MarkCopy notes in st how far the copy into it got; nil: it has ended.
func MarkCopy(ctx context.Context, st Store, c *CopyState) error {
	_, version, err := st.Doc(ctx, copyDoc)
	if err != nil {
		return err
	}
	var data []byte
	if c != nil {
		if data, err = json.Marshal(c); err != nil {
			return err
		}
	}
	return st.PutDoc(ctx, copyDoc, version, data)
}

// FilesDoc is the document that names the file by which gateways know that they
// share one directory of workspaces.
const FilesDoc = "files"

// StaysDoc reports whether a document tells of its store and not of what is
// stored: of a copy into it, and of where its gateways have their files. It is
// not part of what is copied.
func StaysDoc(name string) bool { return name == copyDoc || name == FilesDoc }
