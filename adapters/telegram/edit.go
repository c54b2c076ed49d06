package telegram

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-telegram/bot"

	"coxswain/session"
)

// showBubble sends the running bubble when the turn has lasted, and edits it
// when it says something else.
func (f *follower) showBubble(ctx context.Context, t target, v session.View) time.Duration {
	now, elapsed := time.Now(), f.elapsed(v)
	if f.bubble == 0 {
		wait := bubbleAfter - now.Sub(f.began)
		for _, c := range v.Tools {
			if c.State == session.ToolRunning && !c.Began.IsZero() {
				wait = min(wait, bubbleTool-now.Sub(c.Began))
			}
		}
		if v.Notice != "" {
			wait = min(wait, typingAfter-now.Sub(f.began))
		}
		if wait > 0 {
			return wait
		}
	}
	if d := f.edited.Add(f.rhythm()).Sub(now); !f.edited.IsZero() && d > 0 {
		return d
	}
	if wait := f.a.pace.look(t.chat, 1); wait > 0 {
		return wait
	}
	c := bubbleText(v, elapsed, now, t.group())
	k := runningButtons(f.key, v)
	if same := c.text + "\x00" + strconv.Itoa(v.Waiting); same == f.shown && f.bubble != 0 {
		return editEvery // the clock moves on
	} else if wait, ok := f.a.pace.take(t.chat, 1, true, 0); !ok {
		return wait
	} else {
		f.shown = same
	}
	f.edited = now
	call, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	if f.bubble == 0 {
		p := payload{Text: c.text, Entities: c.entities, Keyboard: k, Silent: true}
		if t.group() {
			p.ReplyTo = v.Asked
		}
		id, err := f.a.sendMessage(call, t, p)
		f.bubble = id
		f.at.Store(int64(id))
		f.failed(t, "bubble", err)
		if err != nil {
			f.edits += 10 // it may stand there all the same: do not send many
		} else {
			f.keep(call, id)
		}
		return f.rhythm()
	}
	f.edit(call, t, c, k)
	return f.rhythm()
}

// rhythm is the least time between changes of the bubble. It slows down:
// hundreds of edits in one turn get a bot banned for minutes.
func (f *follower) rhythm() time.Duration {
	switch {
	case f.edits < 10:
		return editEvery
	case f.edits < 40:
		return 2 * editEvery
	case f.edits < 100:
		return 4 * editEvery
	}
	return 8 * editEvery
}

// edit changes the bubble, and reports whether it need not be tried again.
func (f *follower) edit(ctx context.Context, t target, c composed, k *keyboard) bool {
	if f.bubble == 0 {
		return true
	}
	f.edits++
	p := &bot.EditMessageTextParams{ChatID: t.chat, MessageID: f.bubble, Text: c.text, Entities: c.entities, LinkPreviewOptions: noPreview}
	if k != nil {
		p.ReplyMarkup = k
	}
	err := f.a.api.call(ctx, "editMessageText", p, nil)
	e, ok := errors.AsType[*apiError](err)
	switch {
	case err == nil || ok && e.says("message is not modified"): // as it should be (T22)
		return true
	case ok && e.says("message to edit not found", "message can't be edited", "message_id_invalid"):
		f.bubble = 0 // someone deleted it: a new one, if there is more to show (T23)
		return true
	}
	f.failed(t, "edit", err)
	return ok && e.code >= 400 && e.code < 500 && e.code != http.StatusTooManyRequests
}

// closeTries is how often the last edit of a bubble is tried; it takes the
// buttons away.
const closeTries = 6

// close makes the bubble what stays of it. When the adapter closes it has one
// quick try.
func (f *follower) close(ctx context.Context, t target, v session.View) {
	line := func() composed {
		if _, over := f.latest(); !over {
			return composed{text: wordsRestarting}
		}
		return closingText(v, f.elapsed(v))
	}
	for wait, n := newBackoff(editEvery, time.Minute), 0; n < closeTries && f.bubble != 0 && ctx.Err() == nil; {
		if f.unseen(t) {
			return
		}
		if d, ok := f.a.pace.take(t.chat, 1, true, 0); !ok {
			pause(ctx, d)
			continue
		}
		n++
		call, cancel := context.WithTimeout(ctx, frameTime)
		done := f.edit(call, t, line(), nil)
		cancel()
		if done {
			return
		}
		pause(ctx, wait.next())
	}
	if ctx.Err() != nil && f.bubble != 0 {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		f.edit(cleanup, t, line(), nil)
	}
}
