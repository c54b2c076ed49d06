// Package telegramtest is a strict fake of the Telegram Bot API for tests of
// whatever speaks to it.
//
// A Server is an http.Handler for tests with real sockets, and an
// http.RoundTripper for tests in testing/synctest bubbles, where sockets never
// count as blocked. It keeps chats, topics, messages, reactions, files and the
// queue of updates, and answers as the API does: updates are forgotten only when
// a higher offset is asked for, or after 24 hours; polls are long; a second
// poller ends the first with a 409; with a webhook set, Push sends each chat's
// updates one after another until they are taken; texts are counted in UTF-16
// units and files in bytes; edits that change nothing, closed topics, migrated
// groups, blocked chats and callback data over 64 bytes are refused in the API's
// own words. Requests may be JSON, multipart or urlencoded.
//
// It is stricter than the API where the API forgives quietly: entities that
// are out of range, cut a character or overlap where they must not, a poll
// without allowed_updates, an edit of someone else's message. Those are listed
// by Problems, and a test should find that list empty.
//
// Faults make the next matching calls go wrong: refused connections, hanging
// and lost replies, 429s, HTML from a proxy.
//
// All methods may be called from any goroutine. Updates are given in the order
// they were put in; calls are recorded in the order they were done.
package telegramtest
