package telegram

import (
	"context"
	"encoding/json"
	"time"

	"coxswain/session"
)

// The bubble of a turn is kept by name of its session while the turn may be
// taken over by another process: that one goes on with the same message, and
// no old bubble with a button stays in the chat.

// keptBubble is the document bubble:<chat>[/<thread>].
type keptBubble struct {
	Turn int64 `json:"turn"`
	Msg  int   `json:"msg"`
}

func bubbleDoc(key session.Key) string {
	name := "bubble:" + string(key.Chat)
	if key.Thread != "" {
		name += "/" + string(key.Thread)
	}
	if key.User != "" {
		name += "@" + string(key.User)
	}
	return name
}

// keep writes which message the bubble is. It is only progress: if the store is
// away an old bubble may stay after a crash.
func (f *follower) keep(ctx context.Context, msg int) {
	ctx, stop := context.WithTimeout(ctx, frameTime)
	defer stop()
	err := f.a.change(ctx, bubbleDoc(f.key), func([]byte) ([]byte, error) {
		return json.Marshal(keptBubble{f.turn, msg})
	})
	if err != nil {
		f.a.log.Debug("bubble not kept", "err", err)
	}
}

// takeOver finds the bubble that an earlier process made for this turn.
func (f *follower) takeOver(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, frameTime)
	defer stop()
	data, _, err := f.a.docs.Doc(ctx, f.a.docName(bubbleDoc(f.key)))
	if err != nil {
		f.a.log.Debug("bubble not taken over", "err", err)
		return
	}
	var k keptBubble
	if json.Unmarshal(data, &k) == nil && k.Turn == f.turn && k.Msg > 0 {
		f.bubble, f.edited = k.Msg, time.Time{}
		f.at.Store(int64(k.Msg))
	}
}
