package outbox

import (
	"errors"
	"maps"

	"coxswain/session"
)

// Sign implements session.Outbox.
func (b *Outbox) Sign(key session.Key, f session.Fate) {
	if plat, _, _ := session.Signed(key, f, b.platforms); plat == nil || len(f.Msgs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.life.Err() != nil {
		return
	}
	id := signed{key, f.Ticket}
	// Two goroutines that tell of two steps may do so in either order: the
	// further one stands.
	now := shown{f.Turn, f.State.Stage()}
	if last, ok := b.stages[id]; ok && !last.before(now) {
		return
	}
	if len(b.stages) >= stagesKept {
		clear(b.stages)
	}
	b.stages[id] = now
	s := b.signers[key]
	if s == nil {
		s = &signer{}
		b.signers[key] = s
		b.wg.Add(1)
		go b.sign(key, s)
	}
	for i := range s.pending {
		if s.pending[i].Ticket == f.Ticket {
			s.pending[i] = f
			return
		}
	}
	s.pending = append(s.pending, f)
}

// Forget implements session.Outbox: tickets of the session begin anew.
func (b *Outbox) Forget(key session.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.stages, func(s signed, _ shown) bool { return s.key == key })
}

// before reports whether now may replace s. A later turn that takes an input
// again begins its life anew (/retry); a state before any turn has none.
func (s shown) before(now shown) bool {
	if s.turn != 0 && now.turn != 0 && s.turn != now.turn {
		return s.turn < now.turn
	}
	return s.stage <= now.stage
}

// signTries is how often one sign is tried: it is only a sign, the state
// itself is in the store.
const signTries = 3

// sign shows a session's signs until none is left.
func (b *Outbox) sign(key session.Key, s *signer) {
	defer b.wg.Done()
	for tries := 0; ; {
		b.mu.Lock()
		if len(s.pending) == 0 || b.life.Err() != nil {
			delete(b.signers, key)
			b.mu.Unlock()
			return
		}
		f := s.pending[0]
		s.pending = s.pending[1:]
		b.mu.Unlock()
		plat, chat, there := session.Signed(key, f, b.platforms)
		err := plat.Sign(b.life, chat, there)
		var se *session.SendError
		if err == nil || errors.Is(err, session.ErrNoSigns) || !errors.As(err, &se) || se.Outcome == session.SendRefused {
			tries = 0
			continue
		}
		if tries++; tries >= signTries {
			tries = 0
			continue
		}
		wait := se.Wait
		if wait == 0 {
			wait = backoff(tries)
		}
		b.again(s, f)
		if !pause(b.life, wait) {
			return
		}
	}
}

// again puts a sign back unless a newer one of its input waits.
func (b *Outbox) again(s *signer, f session.Fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range s.pending {
		if p.Ticket == f.Ticket {
			return
		}
	}
	s.pending = append([]session.Fate{f}, s.pending...)
}
