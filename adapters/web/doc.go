// Package web is the built-in chat: one page, a small JSON API, and a stream
// of events beside it. Whoever is let in is the same person, "web", and an
// admin; a conversation is a random id made by the page.
//
// What was said lives in the store and is read from there: the page asks for
// rows after the ones it has. The stream only tells what changed since, so a
// lost event costs a moment and never a message. What is shown and is no row,
// answers to commands and messages that were dropped, is in the conversation's
// memo, a bounded document of the same store (memo.go). A control of the page
// that gives a command (the mode switch, a message's sign, a job's button) asks
// it beside the conversation and is answered in place (ask.go).
//
// Order: messages of one conversation go through the door one after another,
// as they arrive. On the stream a fate or a reply comes before the hint that
// rows changed; of live views only the newest is sent.
//
// Goroutines: Run has one that serves, besides those of net/http. Nothing here
// outlives Run; Show, Sign and Send only leave word for open streams.
//
// Who may ask is settled in guard.go before anything is read: the listener's
// own names against DNS rebinding, Origin and Sec-Fetch-Site against other
// pages, and the token where there is one.
package web
