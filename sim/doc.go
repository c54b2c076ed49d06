// Package sim plays whole conversations in fake time: the real hub, actors,
// loop and outbox over the in-memory store, with a scripted model, scripted
// tools and a fake platform, in one testing/synctest bubble.
//
// It holds two suites. Transcripts (testdata/*.txt) are conversations as
// people would see them; they are the documentation of steering, and
// go test ./sim -run Transcripts -update rewrites what was seen. Seeds draw
// schedules of messages, faults and crashes, and check the invariants at the
// end of each; a failing seed prints its transcript.
//
// Everything here is test code. All goroutines belong to the bubble.
package sim
