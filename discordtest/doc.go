// Package discordtest is a strict fake of Discord, REST and gateway, for tests
// of whatever speaks to it.
//
// A Server is an http.Handler; Start puts it on a real loopback socket. It
// keeps users, channels, threads, messages, reactions and the sessions of the
// gateway, and answers as Discord does: Hello first, READY after a good
// Identify, the fatal close codes, replay and RESUMED after a good Resume, Op 9
// after a bad one; a nonce that is enforced gives the message it gave before;
// texts over 2,000 characters, files over 10 MiB, bad components, closed permissions and unknown
// messages are refused with Discord's own codes; without the message content
// intent contents are blank.
//
// What Discord forgives and a careful client should not do (no allowed_mentions
// on a send, an answer to an interaction that was answered, a wrong User-Agent)
// is listed by Problems, and a test should find that list empty.
//
// Faults make the next matching REST calls go wrong; Next scripts the next
// connections of the gateway.
//
// All methods may be called from any goroutine. Events are sent in the order
// they were made. Each connection has a goroutine that ends with it.
package discordtest
