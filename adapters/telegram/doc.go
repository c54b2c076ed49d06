// Package telegram speaks the Telegram Bot API for the gateway.
//
// Inbound it polls getUpdates itself, because a library's poller moves the
// offset before anything is stored and stops for ever at one update it cannot
// read; or, with a webhook, has updates pushed (hook.go). Every update is handed
// to the door, in order within a chat and several chats at a time (flight.go);
// the offset moves past an update, or the push is answered 200, only after the
// door has taken it (I1). What cannot be read is kept raw, counted and passed
// over. What came while the gateway was away is told of, and what was pressed
// then is void (away.go). A reaction or a reply to the running bubble is a
// gesture (gesture.go); a /stop waits for no file before it (hurry.go). Who is
// heard at all, people, named channels and bots, is decided in author.go.
//
// Outbound there are three ways, which share one budget per chat (pace.go):
// Send for what must arrive, files too (send.go, upload.go, rich.go), Show for
// the live view of a running turn (show.go, edit.go, draft.go, bubble.go), Sign
// for the receipts on people's messages (sign.go). Text goes out as plain text
// with entities, never as markup that could fail to parse.
//
// Goroutines: Run polls, or waits for pushes, on its caller's goroutine and
// starts one to greet the API, one for the command menu, one that notes that the
// gateway lives, one per press to answer it and one to take its row away, one for
// each word of the adapter's own, one for the webhook's server, and one per chat
// with updates to see to; it waits for all of them. Each running turn that is
// shown has one, which ends with the turn. Close waits for those.
package telegram
