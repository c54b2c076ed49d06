package discord

import (
	"fmt"
	"strings"

	"coxswain/adapters/bubble"
	"coxswain/session"
)

// What people see in chat.
const (
	wordsRepeat     = "(possible repeat) "
	wordsStop       = "Stop"
	wordsDone       = "✓"
	wordsChoose     = "Choose…"
	wordsTask       = "A task"
	wordsUseQuoted  = "Take the quoted message into account."
	wordsThread     = "begin a task in a thread of its own"
	wordsRestarting = "⏸ the gateway is restarting"
	wordsNoFile     = "the file could not be loaded: send it again"
	wordsTooBig     = "the file is over 10 MB: send a smaller one or a link"
	wordsNotLoaded  = "the file was not loaded"
	wordsForwarded  = "a forwarded message"
	wordsNothing    = "✓ nothing waits"
	wordsListHead   = "What became of your messages:"
	wordsEarlier    = "an earlier message"
)

// What operators see.
const (
	wordsBadToken   = "discord refused the token: reset it in the developer portal and set platforms.discord.token"
	wordsNoIntent   = "discord refused the intents: turn on Message Content Intent in the developer portal (Bot page)"
	wordsBadShard   = "discord wants this bot to be sharded or speak another version: see the close code in the log"
	wordsDown       = "discord is not connected: trying again"
	wordsStuck      = "the discord connection was stuck: replaced it"
	wordsNoContent  = "discord sends messages without their text: turn on Message Content Intent in the developer portal"
	wordsBudget     = "close to discord's limit of 1000 logins a day: connecting again slowly"
	wordsClosedChan = "the bot may not write there: check its permissions in this channel"
	wordsOutage     = "the server is out at discord: what is to be sent waits"
	wordsNoThread   = "no thread could be opened, the task stays in the channel: check Create Public Threads"
	wordsInvalid    = "discord refuses too many calls and would bar this address: paused. Check the bot's permissions"
	wordsNoLogins   = "discord allows hardly any more logins today: waiting. See why the bot reconnects so often"
	wordsLoop       = "a bot speaks too often: not heard for ten minutes"
)

// wordsTellClosed tells a person in private that the answer cannot be given.
func wordsTellClosed(channel string) string {
	return "I may not write in <#" + channel + "> any more. Give me the permission there, or ask me here."
}

func wordsGuildGone(outage bool) string {
	if outage {
		return "a server is out: what belongs to it is kept"
	}
	return "the bot was thrown out of a server: nothing is sent there any more"
}

// wordsOption says what a slash command takes, of its usage: TEXT, queue|steer,
// kill ID.
func wordsOption(usage string) string {
	if usage == strings.ToUpper(usage) {
		return "the " + strings.ToLower(usage)
	}
	choices := strings.Split(usage, "|")
	last := len(choices) - 1
	if last == 0 {
		return usage
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// wordsApps says where a command of a message's menu is: a slash command replies
// to nothing.
func wordsApps(menu string) string {
	return "Hold or right-click the message you mean, then: Apps → “" + menu + "”."
}

func wordsMenus(menus []string) string {
	return "On a message (hold or right-click it, then Apps): “" + strings.Join(menus, "”, “") + "”."
}

// wordsEcho shows everybody what a slash command asked for.
func wordsEcho(text string) string {
	if text == "" {
		return wordsDone
	}
	return "» " + cutUnits(text, partMost-2)
}

func wordsFiles(files []attachment) string {
	var names []string
	for _, f := range files {
		names = append(names, f.Filename)
	}
	return "[files: " + strings.Join(names, ", ") + "]"
}

// wordsState says the state of an input to who sent it.
func wordsState(state session.FateState, step int) string {
	switch state {
	case session.FateAccepted, session.FateRunning:
		return "✓ begun"
	case session.FateAnswered:
		return "👍 answered"
	case session.FateDropped:
		return "👎 dropped"
	case session.FateFailed:
		return "💔 failed"
	case session.FateStopped:
		return "🫡 stopped"
	}
	return bubble.Fate(state, step)
}

func wordsLocked(thread string) string {
	return "(<#" + thread + "> is closed to me, so the answer is here) "
}

func wordsSticker(name string) string { return "[sticker: " + name + "]" }

func wordsPoll(question, options string) string { return "[poll: " + question + " (" + options + ")]" }

// Of files that cannot be sent; names are plain ones (sentName).

func wordsFileTooBig(name string, size, most int64) string {
	return fmt.Sprintf("(%s is %s, and Discord takes %s at most: it stays in the workspace)", code(name, 40), sizeOf(size), sizeOf(most))
}

// wordsFileTooLarge is for what Discord itself refuses, whatever is known of the
// server: it names the limit that holds everywhere.
func wordsFileTooLarge(name string, size int64) string {
	return fmt.Sprintf("(%s, %s, is too large for Discord, whose limit is %s: it stays in the workspace)", code(name, 40), sizeOf(size), sizeOf(uploadMost))
}

func wordsFileRefused(name string) string {
	return "(Discord does not take " + code(name, 40) + ": it stays in the workspace)"
}

func wordsFileForbidden(name string) string {
	return "(I may not attach " + code(name, 40) + ": give me the Attach Files permission here)"
}

func wordsFileGone(name string) string { return "(" + code(name, 40) + " could not be read any more)" }

func wordsFileEmpty(name string) string {
	return "(" + code(name, 40) + " is empty, so it was not sent)"
}

func wordsFileAt(path string) string {
	return "(files cannot be sent here: it is in the workspace at " + code(printable(path), 60) + ")"
}
