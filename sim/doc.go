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
// A transcript begins with comments, settings ("set mode=queue") and the
// model's answers in order ("model: shell "make" 4s", "model in y: say "hi"
// after 1s"). Then come the inputs: "+2s alice> text", also in another chat or
// topic ("+2s bob in y> text", "bob in team/7> text"), "edits", "deletes",
// "presses", "replies to", "sends cat.jpg", "pastes>"; events of the machine
// ("gateway crashes", "flood begins 900s", "next sends: ok lost", "platform
// repeats #2"); and inputs that come in the middle of a store call
// ("@commit.end alice> text" before it is done, "@after commit.end" behind it).
// Messages are named #n by the number of their input.
//
// testdata/CASES.md lists what went wrong in other gateways and the transcript
// or test that holds it here.
//
// Everything here is test code. All goroutines belong to the bubble.
package sim
