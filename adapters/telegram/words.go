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
)

// What operators see.
const (
	wordsBadToken    = "telegram refused the token: get a new one from @BotFather and set platforms.telegram.token"
	wordsConflict    = "another program polls this bot: stop it, or give each its own bot"
	wordsWebhook     = "a webhook is set for this bot: remove it, or set platforms.telegram.mode to webhook"
	wordsUnreachable = "telegram does not answer: trying again"
	wordsPrivacyHint = "privacy mode is on: in groups the bot sees only commands, mentions and replies (@BotFather /setprivacy)"
)

func wordsWaiting(n int) string { return fmt.Sprintf("Waiting %d", n) }

func wordsStep(step, steps int, d time.Duration) string {
	switch {
	case step == 0:
		return "Working · " + span(d)
	case steps == 0:
		return fmt.Sprintf("Step %d · %s", step, span(d))
	}
	return fmt.Sprintf("Step %d/%d · %s", step, steps, span(d))
}

func wordsNote(n int64, from string, step int, sent bool) string {
	if from == "" {
		from = "someone"
	}
	if !sent {
		return fmt.Sprintf("✍ note %d from %s goes in at step %d", n, from, step)
	}
	return fmt.Sprintf("✍ note %d from %s went in at step %d", n, from, step)
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
