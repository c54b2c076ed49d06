package telegram

import (
	"fmt"
	"time"
)

// What people see in chat.
const (
	wordsRepeat      = "(possible repeat) "
	wordsTopicGone   = "(this topic is closed, so the answer is here) "
	wordsStop        = "Stop"
	wordsRestarting  = "⏸ the gateway is restarting"
	wordsNothing     = "✓ nothing waits"
	wordsWaitingHead = "What became of your messages:"
	wordsUnreadable  = "this kind of message cannot be read here"
	wordsNoFile      = "the file could not be loaded: send it again"
	wordsTooBig      = "the file is over 20 MB, the most a bot may load: send a smaller one or a link"
	wordsNotLoaded   = "the file was not loaded"
	wordsEarlier     = "an earlier message"
	wordsNotWaited   = "not loaded: /stop came first"
	wordsVoid        = "Pressed while I was offline, so nothing was done: press again."
)

// What operators see.
const (
	wordsLoop        = "a bot speaks too often: not heard for ten minutes"
	wordsBadToken    = "telegram refused the token: get a new one from @BotFather and set platforms.telegram.token"
	wordsConflict    = "another program polls this bot: stop it, or give each its own bot"
	wordsWebhook     = "somebody else's webhook is set for this bot: remove it, or set platforms.telegram.mode to webhook"
	wordsHookSecret  = "telegram: webhook.secret is empty: anybody could speak as anybody; set 32 random letters and digits"
	wordsHookUnset   = "the webhook could not be set: trying again"
	wordsUnreachable = "telegram does not answer: trying again"
	wordsPrivacyHint = "privacy mode is on: in groups the bot sees only commands, mentions and replies (@BotFather /setprivacy)"
)

func wordsWaiting(n int) string { return fmt.Sprintf("Waiting %d", n) }

// wordsBefore counts the calls that are not listed.
func wordsBefore(n int) string { return fmt.Sprintf("… and %d before", n) }

// wordsTimes says how many calls in a row a line stands for.
func wordsTimes(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" ×%d", n)
}

// wordsStep is the first line of a running task's bubble.
func wordsStep(step, steps int, d time.Duration) string {
	at := fmt.Sprint(step)
	if steps > 0 {
		at += fmt.Sprintf("/%d", steps)
	}
	switch {
	case d >= time.Minute && step == 0:
		return "Still running, " + span(d)
	case d >= time.Minute:
		return "Still running, " + span(d) + ", step " + at
	case step == 0:
		return "Working · " + span(d)
	}
	return "Step " + at + " · " + span(d)
}

func wordsNote(from string, step int, sent bool) string {
	if from == "" {
		from = "someone"
	}
	if !sent {
		return fmt.Sprintf("✍ note from %s goes in at step %d", from, step)
	}
	return fmt.Sprintf("✍ note from %s went in at step %d", from, step)
}

func wordsSteps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}

// span says a time for people: seconds up to a minute, then minutes, then hours.
func span(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600 && s%60 != 0:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

func wordsOffline(since time.Time) string {
	return "I was offline since " + since.UTC().Format("2 Jan 15:04") + " UTC. What you wrote meanwhile is taken up now; buttons pressed meanwhile are void."
}

func wordsCannotRead(kind string) string {
	return "A " + kind + " cannot be read here: send it as text, a picture or a file."
}

func wordsHookFails(why string) string {
	return "telegram cannot deliver to the webhook: " + cutUnits(oneLine(why), 60)
}

func wordsFileTooBig(name string, size int64) string {
	return fmt.Sprintf("(%s is %s, and Telegram takes 50 MB at most: it stays in the workspace)", cutUnits(oneLine(name), 40), sizeOf(size))
}

func wordsFileRefused(name string) string {
	return fmt.Sprintf("(Telegram does not take %s: it stays in the workspace)", cutUnits(oneLine(name), 40))
}

func wordsFileGone(name string) string {
	return fmt.Sprintf("(%s could not be read any more)", cutUnits(oneLine(name), 40))
}

func wordsFileEmpty(name string) string {
	return fmt.Sprintf("(%s is empty, so it was not sent)", cutUnits(oneLine(name), 40))
}
