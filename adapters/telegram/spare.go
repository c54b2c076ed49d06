package telegram

import "time"

// While the process is short of memory little is taken in at a time, but it is
// never nothing: a /stop may be what ends the shortage. Updates come in order and
// cannot be looked through, so a poll asks for one more than is in flight and the
// next waits a moment. Of pushed updates only a stop is taken; Telegram sends the
// others again. What is not taken is not confirmed, so none is lost (I1, F44).

// sparePoll is how long a poll waits after the one before while memory is short: a
// /stop behind twenty messages is then seen within about five seconds.
const sparePoll = 250 * time.Millisecond

func (a *Adapter) spares() bool { return a.short != nil && a.short() }

// most is how many updates a poll asks for.
func (f *flight) most() int {
	if !f.a.spares() {
		return pollMost
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(len(f.order)+1, pollMost) // those in flight come again first
}

// urgent reports whether a pushed update is one that is taken in any case.
func (f *flight) urgent(raw []byte) bool {
	it := f.read(raw)
	_, stop := it.u.stopOf()
	return it.bad == nil && stop
}
