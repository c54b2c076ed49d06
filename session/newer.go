package session

import "context"

// newerMost bounds how many sessions are remembered as left to a newer version.
const newerMost = 10_000

// leaveNewer notes that a session is of a form that only a newer version can go on
// with (F35). That one's sweep finds it; here it is said once and not looked at
// again until somebody writes there.
func (h *Hub) leaveNewer(ctx context.Context, key Key) {
	h.mu.Lock()
	known := h.newer[key]
	if len(h.newer) < newerMost {
		h.newer[key] = true
	}
	h.mu.Unlock()
	if !known {
		h.Log.WarnContext(ctx, "left to a newer version of the gateway", "session", key.String())
	}
}

// leftToNewer is how many sessions this process has left so.
func (h *Hub) leftToNewer() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.newer)
}
