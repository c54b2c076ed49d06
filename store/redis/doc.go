// Package redis keeps sessions in Redis, so that several gateways can serve
// the same chats. It implements session.Store.
//
// Every write is one Lua script, one round trip, atomic and idempotent: a call
// whose reply was lost is sent again under its own name and gives the first
// answer. That is why the client may retry, and why it does, through a restart
// or a failover, for up to RetryFor. Scripts are the only thing here that
// writes; a test holds that.
//
// Keys of a lane and of its partition share the hash tag {pNN}, so all that a
// script touches lies in one slot of a cluster. The partition is a hash of
// platform and chat. lua/prelude.lua lists the keys.
//
// Ordering: Redis runs scripts one after another, so what is written to a lane
// has one order, the same for every reader. Between lanes nothing is promised.
//
// Safety rests on the epoch and the nonce that every write of a turn is
// checked against inside its script, never on time. Times are the server's.
//
// Durability is the server's: with appendonly yes and appendfsync always a
// write that returned nil survives a kill or a power cut of the server. Open
// refuses a server set up otherwise, unless told not to.
//
// A failover loses what the new primary has not got. With Options.Wait what is
// acknowledged is with replicas first (barrier.go); without, the last minute of
// accepted inputs is stored again on the new primary (journal.go).
//
// Goroutines: none of its own, but for those of the client's connections.
// Subscribe runs on its caller's.
package redis
