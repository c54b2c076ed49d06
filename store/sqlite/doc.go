// Package sqlite is the embedded session.Store: one SQLite file, one process.
//
// Ordering. Every write goes through one goroutine, the writer. It takes what
// has queued, runs each in one transaction (in a savepoint, if there are several), commits
// once and only then answers: a group commit. The first request starts a batch
// at once, nothing waits for company. So writes are one sequence, a read begun
// after a write was answered sees it, and a request that fails takes none of
// its neighbours with it.
//
// Durability. A batch that holds a durable request is synced before it is
// answered. Renew, OutTake, OutDone and Settle are written without a sync:
// they survive the death of the process, and a power cut may undo them. Open
// knows a power cut by the boot id and then takes every head part that was
// waiting for a try as one whose outcome is unknown.
//
// A context that ends before the request was taken into a batch gives its
// error and nothing was written. After that the caller waits for the result,
// which the store bounds itself. A write that fails in the commit (a full or
// failing disk) is reported as session.ErrFull and is not in the store; only
// if the machine then loses power can it be found there afterwards. Writes are
// idempotent, so the rule is one: repeat it with the same OpID or Dedupe.
//
// Goroutines. The writer and the checkpointer, which moves the log into the
// database beside the commits; Close ends and awaits both. Reads run on the
// caller's goroutine over a few read-only connections.
//
// One process. Open holds a lock on the directory. So whoever opens the store
// knows that every lease in it is of a dead process, and clears them.
package sqlite
