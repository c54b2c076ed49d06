// Package telegram speaks the Telegram Bot API for the gateway.
//
// Inbound it polls getUpdates itself, because a library's poller moves the
// offset before anything is stored and stops for ever at one update it cannot
// read. Every update is handed to the door, in order within a chat and several
// chats at a time; the offset moves past an update only after the door has taken
// it and all before it (I1). What cannot be read is kept raw, counted and passed
// over.
//
// Outbound there are three ways, which share one budget per chat (pace.go):
// Send for what must arrive (send.go), Show for the live view of a running
// turn (show.go, bubble.go), Sign for the receipts on people's messages
// (sign.go). Text goes out as plain text with entities, never as markup that
// could fail to parse.
//
// Goroutines: Run polls on its caller's goroutine and starts one to greet the
// API, one for the command menu, one per press to answer it, and one per chat
// with updates to see to, of which 16 work at a time; it waits for all of them.
// Each running turn that is shown has one, which ends with the turn. Close waits
// for those.
package telegram
