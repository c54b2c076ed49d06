package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"coxswain/session"
)

// repeats reports whether a part must arrive, once more if need be: an answer,
// the word that there is none, and a file that was made for somebody.
func repeats(k session.PartKind) bool {
	return k == session.PartFinal || k == session.PartNotice || k == session.PartFile
}

// send sends one part and stores what came of it; it reports whether the part is
// done with.
func (b *Outbox) send(w *worker, p session.Part, nonce string) (over bool) {
	repeat := p.State == session.PartUnknown
	if repeat && !repeats(p.Kind) {
		b.done(p, nonce, session.PartDone{ID: p.ID, State: session.PartDead})
		return true
	}
	ctx, h := b.hold(p, nonce)
	defer h.end()
	if b.Routes != nil {
		if post, ok := b.Routes.Forward(p); ok {
			return b.forward(p, nonce, post)
		}
	}
	// It goes to the chat it was made for, wherever the session lives by now.
	msg, err := b.deliver(ctx, h, p)
	h.end()
	if err == nil {
		b.sent(w, p, nonce, session.PartDone{ID: p.ID, State: session.PartSent, Msg: msg})
		return true
	}
	if b.life.Err() != nil {
		return false // cut off with the process: unknown to the next one
	}
	d := outcome(b.UnknownAfter, p, err)
	var se *session.SendError
	level := slog.LevelWarn
	if errors.As(err, &se) && se.Outcome == session.SendNot && se.Wait > 0 {
		level = slog.LevelDebug // pacing, and what the platform asked for
	}
	b.Log.Log(b.life, level, "send failed", "session", p.Key.String(), "part", p.ID, "kind", string(p.Kind), "then", string(d.State), "wait", d.Wait, "err", err)
	if d.State == session.PartDead {
		b.sent(w, p, nonce, d)
		return true
	}
	b.done(p, nonce, d)
	return false
}

// deliver hands a part to its platform, unless another may have it by now.
func (b *Outbox) deliver(ctx context.Context, h *hold, p session.Part) (session.MessageID, error) {
	plat, addressed, err := session.Destination(p, b.platforms)
	if err != nil {
		return "", err
	}
	if h.late() {
		return "", &session.SendError{Outcome: session.SendNot, Wait: time.Millisecond, Err: errLate}
	}
	msg, err := plat.Send(ctx, addressed)
	if err != nil && ctx.Err() != nil && b.life.Err() == nil && !errors.As(err, new(*session.SendError)) {
		err = &session.SendError{Outcome: session.SendUnknown, Err: err}
	}
	return msg, err
}

// outcome is how an attempt that failed ends.
func outcome(unknownAfter time.Duration, p session.Part, err error) session.PartDone {
	repeat := p.State == session.PartUnknown
	d := session.PartDone{ID: p.ID, State: session.PartPlanned}
	var se *session.SendError
	switch {
	case !errors.As(err, &se):
		d.State = session.PartDead
	case se.Outcome == session.SendRefused:
		d.State = session.PartDead
	case se.Outcome == session.SendUnknown && repeats(p.Kind) && !repeat:
		d.State, d.Wait = session.PartUnknown, unknownAfter
	case se.Outcome == session.SendUnknown:
		d.State = session.PartDead
	default:
		d.Wait = se.Wait
		if d.Wait == 0 {
			d.Wait = backoff(p.Attempt)
		}
		if repeat {
			d.State = session.PartUnknown // this try was none: what was unknown still is
		}
	}
	return d
}

// keptFor is how long, beyond the platform's pace, the rest of a lane stays its
// sender's between two parts.
const keptFor = time.Second

// sent ends a part that is done with, and keeps those behind it: one gateway sends
// what a chat is told, at the chat's pace, or as many as there are would send its
// parts in turn, each at a pace of its own.
func (b *Outbox) sent(w *worker, p session.Part, nonce string, d session.PartDone) {
	if !p.Alone && !b.isClosed() {
		d.For, d.Wait, w.kept = b.Nonce, max(w.reserve(p.Key), 0)+keptFor, true
	}
	b.done(p, nonce, d)
}

// yield lets another gateway go on at once with what is kept for this one.
func (b *Outbox) yield(key session.Key, w *worker) {
	if !w.kept {
		return
	}
	if err := b.Store.OutDone(b.life, key, b.Nonce, session.PartDone{State: session.PartPlanned}); err != nil {
		b.Log.DebugContext(b.life, "give up a lane failed, its time runs out", "session", key.String(), "err", err)
	}
}

// done stores an attempt's end; it waits while the store is away.
func (b *Outbox) done(p session.Part, nonce string, d session.PartDone) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := b.Store.OutDone(b.life, p.Key, nonce, d)
		if err == nil {
			return
		}
		b.Log.WarnContext(b.life, "store what was sent failed, will retry", "session", p.Key.String(), "part", p.ID, "err", err)
		if !pause(b.life, wait) {
			return
		}
	}
}
