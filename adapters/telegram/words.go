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
