// Package session is a conversation: its key, its typed rows, its pending
// slot, and the one goroutine that owns its turn.
//
// Hub.Deliver is the only door. It authorises a message, stores it and only
// then returns nil; after that no crash can lose it (I1, I10). An actor, one
// goroutine per session that has something to do, reads what is new from the
// store, asks steer.Decide what it means and begins, steers, replaces or stops
// turns. An Agent runs the turn itself in a second goroutine, which is the
// only writer of that turn; the actor waits for it before it ends (I4).
//
// Order: turns of a session begin in ticket order, with the exceptions that
// steer.Take states (I3). Sessions do not wait for one another.
//
// Goroutines: one sweeper per Hub, one per active session, one per running
// turn and one per question asked beside it. Each is waited for by Hub.Run.
// An idle session has none: the store remembers it.
package session
