// Package tools holds the built-in tools of a turn, the handle a running call is
// watched and killed by, and the registry of calls that went on as jobs.
//
// One file per tool carries its description and JSON schema. Whatever a tool answers
// passes one gate (Set.finish): valid UTF-8, no terminal control text, at most
// Options.MaxOutput bytes with head and tail kept, the full text in the workspace. The
// note key is not known here: sanitising the body is the caller's step after this one.
//
// Ordering: for one Running, exactly one of two things happens: its caller gets the
// result, or Jobs.Adopt returned true and OnEnd is called, once, after Done is closed.
// Cancel a turn's context first and call Jobs.KillAll second: an adoption that comes
// after the cancel fails, one that came before is in the registry and is killed.
//
// Goroutines: each Running owns one (it runs the tool, then OnEnd). A terminal call owns
// three more: one starts and reaps the shell, one reads its output, one shows it; all end before
// the call does. Set.Close waits for all of them. A Life owns one that waits for its guardian.
//
// main calls Guard first and Shield second, opens a Life in the gateway's directory, hands it
// to New, and closes it after the Set.
package tools
