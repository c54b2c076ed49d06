package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"coxswain/session"
)

// reactions are the signs of states: one each, no two alike but queued and
// held, which both wait, and failed and stopped, which both ended without an
// answer. States without one change nothing.
var reactions = map[session.FateState]string{
	session.FatePending:  "👀",
	session.FateQueued:   "😴",
	session.FateHeld:     "😴",
	session.FateSteered:  "✍️",
	session.FateAnswered: "👍",
	session.FateDropped:  "👎",
	session.FateFailed:   "💔",
	session.FateStopped:  "💔",
}

// noSignsFor is how long a refused reaction keeps others from being tried.
const noSignsFor = time.Hour

// Sign reacts to the first message of an input and takes its own reaction
// before that away. An input that did not wait needs no sign. In a channel that
// refuses reactions the state stands in a list (list.go), and the answer is
// ErrNoSigns.
func (a *Adapter) Sign(ctx context.Context, key session.Key, f session.Fate) error {
	emoji := reactions[f.State]
	if emoji == "" || len(f.Msgs) == 0 || !f.Waited && !f.State.Waits() {
		return nil
	}
	to, msg := target(key), string(f.Msgs[0])
	if to == "" || !isID(msg) {
		return nil // a slash command is no message
	}
	if a.shut.has(to) {
		return &session.SendError{Outcome: session.SendRefused, Err: errShut}
	}
	if a.noSigns.has(to) {
		return a.listFate(ctx, key, to, f)
	}
	before, known := a.reacted.get(msg)
	if known && before == emoji {
		return nil
	}
	if !known {
		before = a.ownReaction(ctx, to, msg, emoji, f.State)
	}
	err := a.react(ctx, http.MethodPut, to, msg, emoji)
	if codeOf(err) == codeArchived && a.unarchive(ctx, to) { // D6
		err = a.react(ctx, http.MethodPut, to, msg, emoji)
	}
	switch e, _ := errors.AsType[*apiError](err); {
	case err == nil:
	case e != nil && e.code == codeUnknownMessage:
		return nil // deleted meanwhile: nobody misses it (D1)
	case e != nil && (e.status == http.StatusForbidden || e.code == codeNoPermission || e.code == codeArchived):
		a.noSigns.set(to, noSignsFor)
		return a.listFate(ctx, key, to, f)
	default:
		return sendError(err, time.Now()) // the same reaction twice is one
	}
	a.reacted.put(msg, emoji)
	if before != "" && before != emoji {
		err := a.react(ctx, http.MethodDelete, to, msg, before)
		if err != nil && !permanent(err) {
			a.reacted.forget(msg) // asked for and removed the next time
			return sendError(err, time.Now())
		}
	}
	return nil
}

func (a *Adapter) react(ctx context.Context, method, channel, msg, emoji string) error {
	return a.call(ctx, method, "channels/"+channel+"/messages/"+msg+"/reactions/"+url.PathEscape(emoji)+"/@me", "react:"+channel, nil, nil)
}

// ownReaction finds the sign that a process before this one put on a message.
// The first sign of an input has none before it.
func (a *Adapter) ownReaction(ctx context.Context, channel, msg, next string, state session.FateState) string {
	if state.Waits() {
		return ""
	}
	var w message
	if a.call(ctx, http.MethodGet, "channels/"+channel+"/messages/"+msg, "get:"+channel, nil, &w) != nil {
		return ""
	}
	for _, r := range w.Reactions {
		if r.Me && r.Emoji.Name != next {
			for _, ours := range reactions {
				if ours == r.Emoji.Name {
					return ours
				}
			}
		}
	}
	return ""
}

// reacted remembers the newest reactions by message. Two generations bound it.
type reacted struct {
	mu       sync.Mutex
	new, old map[string]string
}

func (r *reacted) get(msg string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.new[msg]; ok {
		return e, e != ""
	}
	e, ok := r.old[msg]
	return e, ok && e != ""
}

func (r *reacted) put(msg, emoji string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.new) >= seenMost || r.new == nil {
		r.old, r.new = r.new, make(map[string]string)
	}
	r.new[msg] = emoji
}

func (r *reacted) forget(msg string) { r.put(msg, "") }
