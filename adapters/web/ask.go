package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"coxswain/session"
)

// A question is a command that a control of the page gives: the mode switch,
// "what became of this?", the button that ends a job. Its answer is shown where
// it was asked and is no part of the conversation.

// askTime is how long an answer may take. A command is answered at once; what
// takes longer is a store that is away.
const askTime = 10 * time.Second

// asked are the commands that may be a question: those that are answered and
// leave no input behind.
var asked = []string{"/busy", "/jobs", "/why"}

// askPrefix begins the Dedupe of a question, so the id of its answer's parts
// says whose it is: ids of up to 40 are never shortened in it.
const askPrefix = "q:"

// askedBy is the question that a part answers.
func askedBy(part string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(part, "r:"+askPrefix)
	id, _, _ = strings.Cut(rest, "/")
	return id, ok
}

// ask takes a question and answers with its answer. Asked again with the same
// id it is not done twice, and then there is no answer.
func (a *Adapter) ask(w http.ResponseWriter, r *http.Request, key session.Key, p session.Principal) {
	var in struct {
		ID      string `json:"id"`
		Text    string `json:"text"`
		ReplyTo string `json:"reply_to"`
	}
	if !read(w, r, &in) {
		return
	}
	if !isID(in.ID, 8, 40) {
		fail(w, http.StatusBadRequest, wordsBadID)
		return
	}
	if in.ReplyTo != "" && !goodID(w, in.ReplyTo) {
		return
	}
	text := strings.TrimSpace(in.Text)
	if word, _, _ := strings.Cut(text, " "); !slices.Contains(asked, word) {
		fail(w, http.StatusBadRequest, wordsAskWhat)
		return
	}
	m := a.event(key, session.KindText, in.ID)
	m.Dedupe = askPrefix + in.ID
	m.Text, m.ReplyTo = text, session.MessageID(in.ReplyTo)
	came, done := a.rooms.of(key).await(in.ID)
	defer done()
	if !a.deliver(w, r, p, m) {
		return
	}
	late := time.NewTimer(askTime)
	defer late.Stop()
	select {
	case it := <-came:
		answer(w, map[string]string{"text": clip(it.Text, keepReply)})
	case <-late.C:
		answer(w, map[string]string{"text": wordsNoAnswer}) // it was taken: asking again would change nothing
	case <-a.ending:
		fail(w, http.StatusServiceUnavailable, wordsStore)
	case <-r.Context().Done():
	}
}
