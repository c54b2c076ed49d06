// Package steer decides what a message means to a running task, and renders
// and sanitises the marker that carries a person's note to the model.
//
// Everything here is a pure value or a pure function: no I/O, no clock, no
// goroutines. Any goroutine may call anything at any time.
//
// Three jobs, three files to read first:
//
//   - decide.go holds the busy table, phase × mode → verb, and the rule for
//     what a turn takes when it begins. Ordering: what Take returns is in
//     ticket order and never beyond the first open entry.
//   - marker.go writes a note below a tool's output. The marker is only a
//     rendering of typed rows (I7): nothing in the product reads it back.
//   - sanitize.go takes the session's key out of every text that did not come
//     from the renderer, in every form the listed decoders can undo (I8).
//
// What is promised: untrusted text cannot contain, or decode with the listed
// decoders into, the live marker. Base64, rot13 and numbers written as words
// are outside that promise, and so is what a model makes of honest text.
package steer
