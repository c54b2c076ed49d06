// Package discord speaks to Discord for the gateway, with discordgo for the
// socket and for REST.
//
// Inbound, a handler on discordgo's reading goroutine (SyncEvents) reads the
// raw event, answers an interaction at once and puts the event at the end of
// its channel's lane; it does nothing slower, for while it works no heartbeat
// is heard (gateway.go, events.go). A lane hands its channel's events to the
// door strictly in order and tries each until it is taken; channels do not wait
// for one another (lane.go). The raw event is read here because the library
// gives an empty message for one component it does not know.
//
// How far a channel has been taken is kept in a document, which moves only after
// the door has taken all before, and is held while something of it is on its way
// (cursors.go; I1). What was missed is read from there by REST after every READY,
// ahead of what comes live (backfill.go). Channels in which nobody spoke to the
// bot have no cursor: they are read from the newest message the gateway told of,
// if their guild says that there is more (guilds.go).
//
// The library can lock itself up for ever, so a supervisor opens sessions with
// a deadline, watches their heartbeats, their locks and their silence, and
// replaces a session that is stuck; what it cannot end it leaves behind and
// counts (supervise.go).
//
// A task may get a thread of its own, by configuration or by /thread; which
// session a message belongs to is decided once (claim.go). Reactions and the
// commands of a message's menu are gestures on what waits (gesture.go).
//
// Outbound there are three ways: Send for what must arrive (send.go), Show for
// the live view of a running turn (show.go, bubble.go), Sign for the receipts on
// people's messages (sign.go). A file of the workspace is a message of its own,
// read anew for every try (upload.go). What answers a slash command goes to who
// gave it, as long as Discord lets it (ask.go). No message may ping anybody (D20), and
// each carries an enforced nonce, so that a second try makes no second message
// (D19). Rate limits are this package's own: the library sleeps on them with a
// lock held (pace.go).
//
// Goroutines: Run supervises on its caller's goroutine and starts one per
// channel with events, of which 16 work at a time, one per interaction to
// answer, one for each message whose files are loaded, one for the slash commands
// one for the document and one that takes pressed buttons away (fade.go); it waits for all of them, but not for sessions it had
// to leave behind. Each running turn that is shown has one, which ends with the
// turn. Close waits for those.
package discord
