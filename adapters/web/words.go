package web

import (
	"fmt"
	"strings"

	"coxswain/session"
)

// What people see on the page.
const (
	wordsHost      = "This name is not served. Use 127.0.0.1 or localhost, or set platforms.web.token to serve others."
	wordsForeign   = "Another page asked for this. Open the chat itself."
	wordsToken     = "A token is needed: Authorization: Bearer, or log in on the page."
	wordsBadToken  = "That is not the token. It is platforms.web.token in the configuration."
	wordsTries     = "Too many wrong tokens. Try again in a minute."
	wordsJSON      = "Send JSON: Content-Type must be application/json."
	wordsTooBig    = "That is over 128 kB. Send it in parts."
	wordsBadBody   = "That request cannot be read as the JSON this address takes."
	wordsBadChat   = "A conversation id is 6 to 40 of a-z, 0-9 and -."
	wordsBadID     = "A message id is 8 to 64 of a-z, 0-9 and -."
	wordsBadButton = "A button is 1 to 64 visible ASCII characters."
	wordsEmpty     = "There is nothing in that message."
	wordsAskWhat   = "Only /busy, /jobs and /why are asked beside the conversation. Send others as messages."
	wordsNoAnswer  = "It was taken, but no answer came within 10 s. Look again in a moment."
	wordsRefused   = "The gateway does not let this person in here."
	wordsStore     = "The store does not answer. Nothing is lost; it is tried again."
	wordsShort     = "The gateway is short of memory. Nothing is lost: your message is sent again in a moment. /stop works."
	wordsRetry     = "Again: what task %d was asked"
	wordsNoFile    = "That file is not listed in this conversation any more."
	wordsFileGone  = "That file is not in the workspace any more. Ask the agent for it again."
	wordsStreams   = "Too many pages are open. Close some."
)

// What operators see.
const (
	wordsNeedToken  = "web: platforms.web.listen is not loopback: set platforms.web.token (openssl rand -hex 32), or listen on 127.0.0.1"
	wordsShortToken = "web: platforms.web.token has under 32 characters: make one with openssl rand -hex 32"
	wordsNoListen   = "web: platforms.web.listen is empty: want host:port, like 127.0.0.1:8080"
	wordsNoHub      = "web: Hub is required"
)

func wordsInUse(addr string) string {
	return fmt.Sprintf("web: %s is in use by another program; stop it or set platforms.web.listen", addr)
}

func wordsBadListen(addr string) string {
	return fmt.Sprintf("web: platforms.web.listen is %q: want host:port, like 127.0.0.1:8080", addr)
}

// wordsAgain tells what a task was asked once more.
func wordsAgain(inputs []session.Input) string {
	lines := make([]string, len(inputs))
	for i, in := range inputs {
		lines[i] = session.CleanLine(in.Text(), 200)
	}
	return strings.Join(lines, "\n")
}

// wordsCut stands where the middle of a long output was left out.
func wordsCut(n int) string { return fmt.Sprintf("\n… %d bytes are left out here …\n", n) }
