// Package loop runs one turn: it builds the request, calls the model, runs
// the tools the model asks for, lets steers in, and goes on until there is an
// answer.
//
// There is one drain point: the commit just before a model request (I5). What
// a request holds is rendered from stored rows alone, each row once per epoch,
// so that request k+1 begins with the bytes of request k (I11, I12). Results
// of tools and texts of the model are sanitised before they are stored, sent
// or shown (I8).
//
// A turn runs in the goroutine that called Run. Tools run in goroutines of the
// Toolbox; Run returns only when those of its own calls have ended or were
// adopted as jobs.
package loop
