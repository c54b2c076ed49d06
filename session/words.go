package session

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"coxswain/steer"
)

// Sentences that people see: what happened and what to do, at most 120
// characters each. They are public text: nothing of an error's inside is in
// them (I13).
const (
	rowStopped      = "Stopped before answering."
	rowFailed       = "Failed before answering."
	markInterrupted = "— interrupted"
	buttonRetry     = "Retry"

	bodyInterrupted = "interrupted, result unknown; not run again"
	jobLostBody     = "ended by restart, result unknown"

	textBroken        = "This turn broke off by a fault of the gateway. Nothing else is affected; ask again."
	textFull          = "32 messages wait already. This one was not taken: drop one (/pending) or send it later."
	textLongSteer     = "Too long to steer in (over 8 kB): it is queued and runs after this task."
	textLongEdit      = "Not changed: over 8 kB is too long to steer in. Send it with /queue."
	textNotSteer      = "Only the task's owner or an admin can steer or stop it. Your message is queued."
	textNotYours      = "Only the task's owner or an admin can do that."
	textStopped       = "Stopped."
	textNothingRuns   = "Nothing is running."
	textNoRetry       = "Nothing to send again: that task did not fail and was not stopped, or is of an earlier conversation."
	textRetried       = "That was sent again already."
	textRetryWaits    = "That waits already to be sent again; /pending lists it."
	textRetryHeld     = "That is held already; /pending lists it, with a button to run it."
	textLateEdit      = "Not changed: that message ended before your edit. Send it anew instead of pressing Retry."
	textSameReason    = "Failed again, for the same reason as before."
	textOfJob         = "(It was to tell of a background job's end: /jobs.)"
	textRestHeld      = "What waits is held: /pending."
	textRetryBusy     = "A task is running. What failed before can be sent again when it is done."
	textNotPending    = "That message does not wait any more."
	textDropped       = "Dropped."
	textExpired       = "That button is out of date."
	textPendingNone   = "Nothing waits."
	textNew           = "New conversation. What came before is kept but not used."
	textReplyToIt     = "Reply to the message you mean with this command (in the web chat: tap its sign, or its buttons)."
	textNoFate        = "Nothing is known of that message."
	textNoTask        = "No task is running here; your message starts one."
	textBtwFailed     = "That could not be answered beside the task. Ask again when it is done."
	textBtwMany       = "Eight questions wait for an answer already. Ask again when one has come."
	textAdminNow      = "You are an admin of this gateway now. /help lists what it can do."
	textWelcome       = "Hello. Give me a task; while I work you can write on to steer it. /help lists the commands."
	textHelpSigns     = "Signs: 👀 goes in at the next step, 😴 waits, ✍ went in, 👍 answered, 👎 dropped, 🫡 stopped, 💔 failed."
	textHelpGestures  = "A reply to the running bubble steers; 👎 on your waiting message drops it; edits and deletions count."
	textHelpTail      = "While a task runs, what you write goes to it as the mode says: /busy queue, interrupt or steer."
	textNoJobs        = "No background jobs."
	textTooLong       = "That message is over 64 kB and was not taken. Send it as a file, or in parts."
	textLinkPrivate   = "Link accounts in a private chat with me: there nobody else sees the code."
	textLinkWrong     = "That code is wrong or out of date. Send /link in the other chat for a new one."
	textLinkOften     = "Too many wrong codes. Try again in an hour."
	textLinkSelf      = "That is this account's own code. Send it from your account on the other platform."
	textLinkFull      = "Eight accounts are linked already. /unlink one first, in its chat."
	textNotLinked     = "This account is not linked with another. /link links it."
	textUnlinked      = "This account stands alone again."
	textResumeList    = "What can go on here:"
	textResumeNone    = "There is no other session of yours. /link joins your accounts on other platforms."
	textNoResume      = "No session of yours is called that. /resume lists them."
	textResumeBusy    = "A task runs or waits here. End it first (/stop all), then /resume."
	textResumeGone    = "That session has gone on to another chat since. /resume lists yours."
	textResumePrivate = "Send /resume in a private chat: it shows names there, and /resume NAME works here too."
	textWaitsForRoom  = "waits for room: as many tasks run at once as this gateway may run"
	buttonMore        = "Let it go on"
	textMore          = "It goes on: that budget has as much again."
	textMoreBefore    = "It was let go on already."
	textMoreAdmin     = "Only an admin can let it go on."
	textBtwSpent      = "A budget is used up, so that was not asked. /status says more while a task waits for it."
	textForwardedCmd  = "" // a forwarded command is data and gets no answer
)

// budgetWords are budgets as people call them, by the scope of their meters.
var budgetWords = map[rune]string{
	scopeTurn: "what this task may use", scopeChat: "this chat's budget of today",
	scopePerson: "the asker's budget of today", scopeDay: "the gateway's budget of today",
}

func textMost(scope rune) string { return "80 % is used up of " + budgetWords[scope] + "." }

func textUsedUp(scope rune) string {
	if scope == scopeTurn {
		return "Used up: " + budgetWords[scope] + ". It waits; an admin can let it go on, /stop ends it."
	}
	return "Used up: " + budgetWords[scope] + ". It waits for 00:00 UTC, or for an admin to let it go on."
}

func textUsedUpThere(scope rune, on PlatformName) string {
	what := map[rune]string{scopeTurn: "what a task may use", scopeChat: "a chat's budget of today", scopePerson: "a person's budget of today"}[scope]
	return fmt.Sprintf("Used up in %s: %s. A task waits for you to let it go on.", onPlatform(on), cmp.Or(what, budgetWords[scope]))
}

// textStalled is why a turn does not move, as its view has it.
func textStalled(r Reserved) string {
	if scope := rune(r.Refused[0]); scope != scopeRate {
		return textUsedUp(scope)
	}
	return "Too many model requests in this minute. It goes on with the next one."
}

func textPair(code string) string {
	return fmt.Sprintf("This gateway does not know you. Ask its operator to run: gateway pair approve %s (10 minutes)", code)
}

func textNoCommand(name, near string) string {
	name = CleanLine(name, 32)
	if near == "" {
		return fmt.Sprintf("There is no command /%s. /help lists them.", name)
	}
	return fmt.Sprintf("There is no command /%s. Did you mean /%s?", name, near)
}

func textUsage(c *Command) string { return "Usage: /" + c.Name + " " + c.Args }

func textMode(m steer.Mode, own bool) string {
	what := map[steer.Mode]string{
		steer.Queue:     "follow-ups wait for their own turn",
		steer.Interrupt: "a follow-up replaces the running task",
		steer.Steer:     "a follow-up goes into the running task",
	}[m]
	from := "configured"
	if own {
		from = "set here"
	}
	return fmt.Sprintf("Mode: %s (%s): %s. Change: /busy queue, interrupt or steer.", m, from, what)
}

func textWho(p Principal, accounts []account) string {
	role := "may talk here"
	if p.Admin {
		role = "admin"
	}
	own := me(p, Key{})
	text := fmt.Sprintf("%s on %s: %s", CleanLine(string(own.ID), 40), p.Platform, role)
	for _, a := range accounts {
		if !a.is(own) {
			text += fmt.Sprintf("\nlinked with %s on %s (/unlink)", CleanLine(string(a.ID), 40), a.Platform)
		}
	}
	return text
}

// platformWords are platforms as people call them.
var platformWords = map[PlatformName]string{"telegram": "Telegram", "discord": "Discord", "web": "the web chat"}

func onPlatform(name PlatformName) string { return cmp.Or(platformWords[name], string(name)) }

func textLinkCode(code string) string {
	return fmt.Sprintf("Within 10 minutes, send me in a private chat on the other platform: /link %s", code)
}

func textLinked(all []account) string {
	var b strings.Builder
	b.WriteString("Linked. You are one person to me on:")
	for _, a := range all {
		fmt.Fprintf(&b, "\n- %s (%s)", onPlatform(a.Platform), CleanLine(string(a.ID), 40))
	}
	b.WriteString("\n/resume brings a session of one chat to another. /unlink parts them.")
	return b.String()
}

func textLinkedWith(on PlatformName, name string) string {
	return fmt.Sprintf("Your account here was linked with %s on %s. If that was not you: /unlink.", cmp.Or(CleanLine(name, 20), "one"), onPlatform(on))
}

func textUnlinkedFrom(on PlatformName, name string) string {
	return fmt.Sprintf("Your account here is not linked with %s on %s any more.", cmp.Or(CleanLine(name, 20), "the one"), onPlatform(on))
}

func textResumable(n int, r resumable) string {
	doing := "idle, " + ago(r.lane.Now.Sub(r.lane.Touched))
	if r.lane.Turn != 0 {
		doing = "running for " + ago(r.lane.Now.Sub(r.lane.TurnAt))
	}
	return fmt.Sprintf("%d. %s (%s, %s, `%s`)", n, cmp.Or(CleanLine(r.lane.Title, 50), "a session"), onPlatform(r.home.Platform), doing, r.lane.Key.tag())
}

func textMovedAway(to PlatformName) string {
	return fmt.Sprintf("This session goes on in %s. What you write here begins a new one; /resume brings it back.", onPlatform(to))
}

func textResumed(l Lane) string {
	text := "Here it is: " + cmp.Or(CleanLine(l.Title, 60), "your session") + "."
	switch {
	case l.Turn != 0:
		text += " Its task runs on; write to steer it."
	case len(l.Slot) > 0:
		text += " What waits: /pending."
	}
	return text
}

// ago writes a duration as people say it.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

var fateWords = map[FateState]string{
	FateAccepted: "accepted", FateQueued: "queued", FatePending: "waits to be steered in", FateHeld: "held by /stop",
	FateRunning: "being worked on", FateAttached: "steered in, the model has not taken that request yet", FateSteered: "steered in",
	FateAnswered: "answered", FateDropped: "dropped", FateStopped: "stopped", FateFailed: "failed",
}

// phaseWords are what a session does, for people.
var phaseWords = map[string]string{
	"model": "thinking", "showing": "answering", "tools": "working with tools", "preparing": "beginning", "asking": "waiting for an answer",
}

func textWhy(f Fate, now time.Time, skipped int) string {
	var b strings.Builder
	word := fateWords[f.State]
	b.WriteString(strings.ToUpper(word[:1]) + word[1:] + ".")
	if f.Waited && f.Changed > f.At && !f.State.Waits() {
		fmt.Fprintf(&b, " Accepted %s ago.", ago(now.Sub(time.UnixMilli(f.At))))
	}
	if f.State.Waits() {
		fmt.Fprintf(&b, " Waiting for %s.", ago(now.Sub(time.UnixMilli(f.At))))
	}
	if f.Turn != 0 {
		fmt.Fprintf(&b, " Turn %d", f.Turn)
		if f.Step != 0 {
			fmt.Fprintf(&b, ", went in at step %d", f.Step)
		}
		b.WriteByte('.')
	}
	if skipped > 0 {
		fmt.Fprintf(&b, " %d calls were not started because of it.", skipped)
	}
	return b.String()
}

func textEntry(n int, e Entry, now time.Time) string {
	what := e.Want.String()
	if e.Held {
		what = "held"
	}
	in := decodeInput(e)
	text := CleanLine(in.text(), 60)
	if in.Retry != 0 {
		text = fmt.Sprintf("what turn %d was asked, again", in.Retry)
	}
	return fmt.Sprintf("%d. %s, %s: %s", n, what, ago(now.Sub(e.At)), text)
}

// jobEvent is what a turn that was started by a job's end is given: data.
func jobEvent(j Job) string {
	return fmt.Sprintf("[background job %s (%s) is over: %s]\n%s\n", CleanLine(j.ID, 20), CleanLine(j.Name, 60), j.State, j.Body)
}

func jobToldText(j Job) string {
	return fmt.Sprintf("Job %s (%s): %s.", CleanLine(j.ID, 20), CleanLine(j.Name, 60), j.State)
}
