package discord

import "slices"

// means reports whether a message may mean something here: a person's, or that
// of a bot or webhook that is named in Bots; never a system message or the
// bot's own (D8, D9).
func (a *Adapter) means(w *message) bool {
	return (w.Type == typeDefault || w.Type == typeReply) && w.Author != nil && w.Author.ID != "" && w.Author.ID != a.id &&
		(!w.machine() || slices.Contains(a.o.Bots, w.Author.ID) || w.WebhookID != "" && slices.Contains(a.o.Bots, w.WebhookID))
}

// machine reports whether a webhook or bot wrote it; the author of a webhook's
// may look like a person.
func (w *message) machine() bool { return w.WebhookID != "" || w.Author.Bot }

// hears reports whether a message of a bot that may speak is heard: it must
// mention this one, and not too often.
func (a *Adapter) hears(w *message) bool {
	if !w.machine() {
		return true
	}
	if !a.mentioned(w) {
		return false
	}
	ok, first := a.loops.Pass(w.ChannelID, w.Author.ID)
	if first {
		a.log.Warn(wordsLoop, "channel", w.ChannelID, "bot", w.Author.ID)
	}
	return ok
}
