// Package openai is a loop.Model over any OpenAI-compatible chat endpoint. It
// speaks through go-openai and puts its own http doer beneath it, which does
// what that library cannot: splice stored wire bytes into the body unchanged,
// read Retry-After and error bodies of failed streams, and turn what servers
// really send into clean frames.
//
// # Order
//
// Deltas reach the caller in the order of the stream and from the goroutine
// that called Stream. A broken try is repeated with the same bytes; text of
// two tries is never mixed: a Delta with Reset comes before the first text of
// the later one. Until then the broken text stays shown, so what is shown when
// Stream gives up, or is cancelled, is always one continuous piece.
//
// # Goroutines
//
// Each try runs one goroutine, which reads the connection and ends before the
// try does. Nothing runs between calls but idle connections; Close drops them.
// A Client may be used by any number of goroutines at once.
package openai
