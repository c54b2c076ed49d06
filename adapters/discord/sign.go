package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"coxswain/session"
)

// reactions are the signs of states: one each, no two alike but queued and
// held, which both wait. States without one change nothing.
var reactions = map[session.FateState]string{
	session.FatePending:  "👀",
	session.FateQueued:   "😴",
	session.FateHeld:     "😴",
	session.FateSteered:  "✍️",
	session.FateAnswered: "👍",
	session.FateDropped:  "👎",
	session.FateFailed:   "💔",
	session.FateStopped:  "🫡",
}

// noSignsFor is how long a refused reaction keeps others from being tried.
const noSignsFor = time.Hour

// Sign reacts to the first message of an input and takes its own reaction
// before that away. An input that did not wait needs no sign. In a channel that
// refuses reactions the state stands in a list (list.go), and the answer is
// ErrNoSigns. A slash command's input is signed on its answer (ask.go).
func (a *Adapter) Sign(ctx context.Context, key session.Key, f session.Fate) error {
	if len(f.Msgs) == 0 {
		return nil
	}
	msg := string(f.Msgs[0])
	if id, ok := askOf(f.Msgs[0]); ok {
		var err error
		if msg, err = a.echo(ctx, id, f); err != nil {
			return sendError(err, time.Now()) // changing the answer again does no harm
		}
	}
	a.tellMenus(ctx, f)
	a.noteWaiting(f, msg)
	emoji := reactions[f.State]
	if emoji == "" || !f.Waited && !f.State.Waits() {
		return nil
	}
	to := a.home(ctx, key, msg)
	if to == "" || !isID(msg) {
		return nil // no message of this channel stands for it
	}
	if err := a.barred(to); err != nil {
		return err
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
			a.reacted.drop(msg) // asked for and removed the next time
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
