package loop

import (
	"fmt"
	"strings"
	"time"
)

// What the model reads as the result of a call that gave none of its own, and
// what people read when a turn ends without an answer. At most 120 characters
// for people; nothing of an error's inside.
const (
	bodyNone        = "(no output)"
	bodyInterrupted = "interrupted, result unknown; not run again"
	bodyNeverRun    = "not run: the gateway restarted before it began; call it again if it is still needed"
	bodySteered     = "not run: the user sent a note (below the newest result); call it again if it is still needed"
	bodyStopped     = "not run: stopped by the user"
	bodyCut         = "not run: your message was cut off by the output limit; send less at once"
	bodySteps       = "not run: step limit; report what is done and what is left"
	bodyTime        = "not run: time limit; report what is done and what is left"
	bodyKeyInArgs   = "not run: the arguments held part of a gateway note's key, which no tool may be given"
	bodyMany        = "not run: over 128 calls in one message; make fewer, and look at their results first"
	bodyLease       = "not run: this process lost the session"

	publicSteps   = "This task hit its step limit. Say what to do next."
	publicEmpty   = "The model gave an empty answer. Your work is kept; try again, or ask in another way."
	publicLoop    = "The model kept repeating the same call, so the task was ended. Say it in another way."
	publicCut     = "The model's answers were cut off by the output limit twice. Ask for less at once."
	publicFilter  = "The model's provider filtered this answer. Ask in another way."
	publicCrashed = "This task could not finish: the gateway stopped three times while it ran. Ask again."
	publicBroken  = "This task broke off by a fault of the gateway. Nothing else is affected; ask again."

	rowNoted   = "Noted."
	rowWorking = "Working on it."
)

func bodyUnknownTool(name string, names []string) string {
	if len(names) > 20 {
		names = names[:20]
	}
	return fmt.Sprintf("no tool %q; there are: %s", name, strings.Join(names, ", "))
}

func bodyJob(tail, id string, ran time.Duration) string {
	if tail != "" {
		tail += "\n\n"
	}
	return fmt.Sprintf("%sstill running after %d s: it goes on as job %s; poll or kill it with the job tool", tail, int(ran.Seconds()), id)
}

func bodyKilled(tail string) string {
	if tail != "" {
		tail += "\n\n"
	}
	return tail + "stopped by the user before it finished"
}

func noticeSilent(attempt, attempts int) string {
	return fmt.Sprintf("The model is not answering, try %d of %d.", attempt, attempts)
}
