package discord

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"coxswain/adapters/bubble"
	"coxswain/session"
)

// lists are the messages that stand for signs in channels that refuse
// reactions: one silent message per session.
type lists struct {
	mu sync.Mutex
	m  map[session.Key]*list
}

// A list tells what became of a session's messages. mu is held over its calls:
// they go one after another.
type list struct {
	mu     sync.Mutex
	lines  []listed
	bubble string
	shown  string
	nonce  string // of the bubble that is to be sent; it makes a second try no second one
	made   int
}

type listed struct {
	msg   session.MessageID
	first string // its first words
	state session.FateState
	step  int
}

// listFate shows a state in the session's list, and answers ErrNoSigns when it
// stands there.
func (a *Adapter) listFate(ctx context.Context, key session.Key, to string, f session.Fate) error {
	a.lists.mu.Lock()
	l := a.lists.m[key]
	if l == nil {
		if a.lists.m == nil {
			a.lists.m = make(map[session.Key]*list)
		}
		l = &list{}
		a.lists.m[key] = l
	}
	a.lists.mu.Unlock()

	l.mu.Lock()
	defer l.mu.Unlock()
	known, _ := a.seen.get(string(f.Msgs[0]))
	l.set(listed{f.Msgs[0], known.first, f.State, f.Step})
	text := l.text()
	if text == l.shown || text == wordsNothing && l.bubble == "" {
		return session.ErrNoSigns
	}
	if err := a.showList(ctx, key, to, l, text); err != nil {
		return sendError(err, time.Now()) // a second one in its place does no harm
	}
	if l.shown = text; text == wordsNothing {
		l.bubble, l.shown = "", "" // what waits next is listed further down, in a new message
	}
	return session.ErrNoSigns
}

func (a *Adapter) showList(ctx context.Context, key session.Key, to string, l *list, text string) error {
	if l.bubble != "" {
		body := outMessage{Content: text, Mentions: nobody}
		err := a.call(ctx, http.MethodPatch, "channels/"+to+"/messages/"+l.bubble, "edit:"+to, body, nil)
		if codeOf(err) != codeUnknownMessage {
			return err
		}
		l.bubble = ""
		if text == wordsNothing {
			return nil
		}
	}
	if l.nonce == "" {
		l.made++
		l.nonce = nonceOf(key, fmt.Sprintf("list:%s:%d:%s", l.lines[0].msg, l.made, l.lines[0].state))
	}
	id, err := a.post(ctx, to, payload{Text: text, Silent: true}, l.nonce)
	if err == nil {
		l.bubble, l.nonce = id, ""
	}
	return err
}

// set puts a state on the list. Messages that are done with leave it.
func (l *list) set(s listed) {
	at := len(l.lines)
	for i := range l.lines {
		if l.lines[i].msg == s.msg {
			at = i
		}
	}
	switch {
	case s.state.Final() && at < len(l.lines):
		l.lines = append(l.lines[:at], l.lines[at+1:]...)
	case s.state.Final():
	case at < len(l.lines):
		l.lines[at] = s
	default:
		l.lines = append(l.lines, s)
		l.lines = l.lines[max(0, len(l.lines)-session.SlotCap):]
	}
}

func (l *list) text() string {
	if len(l.lines) == 0 {
		return wordsNothing
	}
	var b strings.Builder
	b.WriteString(wordsListHead)
	for _, s := range l.lines {
		first := plain(s.first, firstWords)
		if first == "" {
			first = wordsEarlier
		}
		b.WriteString("\n“" + first + "” " + bubble.Fate(s.state, s.step))
	}
	return b.String()
}
