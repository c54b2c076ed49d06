package outbox

import (
	"time"

	"coxswain/session"
)

// late reports that the right to send a part came so late that another process
// may take the part over while it is being sent, or has done so: after the repeat
// it would stand there once more, and without a mark (F13, I9).
func (b *Outbox) late(p session.Part) bool {
	return !p.Asked.IsZero() && time.Since(p.Asked) > b.UnknownAfter/2
}

// giveBack gives a part back that was not sent. If another process has taken it
// over nothing changes; else it can be taken anew at once.
func (b *Outbox) giveBack(key session.Key, w *worker, p taken) {
	if p.Paced && w.paced != nil {
		w.paced.Return(key)
	}
	d := session.PartDone{ID: p.ID, State: session.PartPlanned}
	if p.State == session.PartUnknown {
		d.State = session.PartUnknown // what was unknown still is
	}
	b.done(p.Part, p.nonce, d)
	b.askAgain(w)
}
