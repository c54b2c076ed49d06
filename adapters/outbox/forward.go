package outbox

import "coxswain/session"

// forward puts a part for a chat that its session has left behind what is to be
// sent there. Both writes may be repeated: it is there once.
func (b *Outbox) forward(p session.Part, nonce string, post session.Post) (over bool) {
	if p.Paced {
		b.Return(p.Key)
	}
	if _, err := b.Store.Post(b.life, post); err != nil {
		b.Log.WarnContext(b.life, "forward a part failed, will retry", "session", p.Key.String(), "part", p.ID, "err", err)
		b.done(p, nonce, session.PartDone{ID: p.ID, State: session.PartPlanned, Wait: backoff(p.Attempt)})
		return false
	}
	b.Nudge(post.Key, nil)
	b.done(p, nonce, session.PartDone{ID: p.ID, State: session.PartDead})
	return true
}
