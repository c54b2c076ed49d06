package telegram

import "context"

// toGeneral turns a payload that was for a topic that is no more to the chat's
// General, and says so the first time (T17).
func (s *sending) toGeneral(p payload) payload {
	if !s.a.chats.toldClosed(place(s.t)) {
		s.gone = place(s.t)
		p = prefixed(wordsTopicGone, p)
	}
	s.general, s.t.thread = true, 0
	return p
}

// reopen opens a closed topic again, if the bot's rights allow it (T17). The API
// answers whether they do; asked beforehand they could change in between.
func (a *Adapter) reopen(ctx context.Context, t target) bool {
	err := a.api.call(ctx, "reopenForumTopic", struct {
		Chat   int64 `json:"chat_id"`
		Thread int   `json:"message_thread_id"`
	}{t.chat, t.thread}, nil)
	if err != nil {
		a.log.Debug("topic not opened again", "err", err)
	}
	return err == nil
}
