package discord

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/session"
)

const (
	// ackTime: Discord forgets an interaction that is not answered in 3 s.
	ackTime = 3 * time.Second
	// tokenTime: after 15 minutes nothing can be answered any more; from here on
	// it is not tried (D5).
	tokenTime = 14 * time.Minute
	// flagEphemeral: only who asked sees it.
	flagEphemeral = 1 << 6
)

// An ask is an interaction whose answer may still be given. The first answer is
// the one that Discord shows as being thought about; further ones are messages
// of their own. Losing an ask costs its way of answering: the answer then goes to
// the channel.
type ask struct {
	id, token, app string
	user           string
	began          time.Time
	dm             bool   // in a private chat: answers are plain messages there
	private        bool   // only who asked sees the answers
	press          bool   // its first answer would be the message with the button
	menu           bool   // of a command that was used on a message
	echo           string // what it asked for

	acked chan struct{} // closed when it is known whether Discord took the ack
	good  bool          // it did; read after acked

	msg atomic.Pointer[string] // the first answer, a message of the channel

	mu   sync.Mutex // held over calls: they go one after another
	used bool       // the first answer says something, or is no more
	told bool       // it says what the hub answered, or is no more: no state is put there
	dead bool       // its token works no more
	till time.Time  // nor does it from then on
}

// askMark begins the id of a message that is none: a slash command's.
const askMark = "i"

// askDedupe is the dedupe mark of an interaction.
func askDedupe(id string) string { return "i:" + id }

// askOf gives the interaction that such an id stands for.
func askOf(id session.MessageID) (string, bool) {
	rest, ok := strings.CutPrefix(string(id), askMark)
	return rest, ok && isID(rest)
}

// realMessage gives the message that stands for an id in the channel, empty if
// there is none.
func (a *Adapter) realMessage(id string) string {
	if isID(id) {
		return id
	}
	if i, ok := askOf(session.MessageID(id)); ok {
		if k, ok := a.asks.get(i); ok {
			if msg := k.msg.Load(); msg != nil {
				return *msg
			}
		}
	}
	return ""
}

// taken waits until it is known whether Discord took the ack, for as long as
// that can take.
func (k *ask) taken(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, k.began.Add(ackTime+time.Second))
	defer cancel()
	select {
	case <-k.acked:
		return k.good
	default:
	}
	select {
	case <-k.acked:
		return k.good
	case <-ctx.Done():
		return false
	}
}

// fresh reports whether the token should work. Call it with mu held.
func (k *ask) fresh() bool { return !k.dead && time.Now().Before(k.till) }

// answer gives a part to who asked. over is false when it is to go to the
// channel: the ack was lost (D4), the process that heard it is gone, or it is
// too late for an answer that everybody may see (D5).
func (a *Adapter) answer(ctx context.Context, p payload, nonce string) (id string, over bool, err error) {
	k, ok := a.asks.get(p.Ask)
	if !ok || !k.taken(ctx) {
		return "", false, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fresh() {
		id, first, err := a.say(ctx, k, p.Text, p.Rows, p.Alone)
		switch {
		case err == nil:
			k.told = k.told || first
			return id, true, nil
		case !k.dead && first:
			return "", true, sendError(err, time.Now()) // changing it again does no harm
		case !k.dead:
			return "", true, sendError(err, time.Time{})
		}
	}
	if k.dm || !k.private && !p.Alone {
		return "", false, nil
	}
	dm, err := a.dmOf(ctx, k.user)
	if err == nil {
		id, err = a.post(ctx, dm, payload{Text: p.Text, Rows: p.Rows}, nonce)
	}
	if permanent(err) {
		return "", false, nil // no private channel: better there than nowhere (D22)
	}
	if err != nil {
		return "", true, sendError(err, time.Now()) // the nonce makes it one message
	}
	return id, true, nil
}

// say puts a text into the first answer, or into one more if that says something
// already. Who sees the first answer was decided with the ack: what is for who
// asked alone, where all see that something is thought about, takes its place, and
// what all are to see comes behind that. Call it with k.mu held.
func (a *Adapter) say(ctx context.Context, k *ask, text string, rows []row, alone bool) (id string, first bool, err error) {
	alone = (alone || k.private) && !k.dm
	if alone && !k.private && !k.used {
		if err := a.dismiss(ctx, k); err != nil {
			return "", true, err
		}
	}
	body := outMessage{Content: text, Mentions: nobody}
	if len(rows) > 0 {
		body.Components = rows
	}
	method, path := http.MethodPatch, "/messages/@original"
	if first = !k.used && !k.press; !first {
		if method, path = http.MethodPost, ""; alone {
			body.Flags = flagEphemeral
		}
	}
	id, err = a.hook(ctx, k, method, path, body)
	if err == nil {
		k.used = k.used || first
		if !alone && !k.press && k.msg.Load() == nil {
			k.msg.Store(&id)
		}
	}
	return id, first, err
}

// dismiss takes the first answer away. Call it with k.mu held.
func (a *Adapter) dismiss(ctx context.Context, k *ask) error {
	_, err := a.hook(ctx, k, http.MethodDelete, "/messages/@original", nil)
	if codeOf(err) == codeUnknownMessage {
		err = nil // it is gone already
	}
	if err == nil {
		k.used, k.told = true, true
	}
	return err
}

// hook makes a call with the interaction's token.
func (a *Adapter) hook(ctx context.Context, k *ask, method, path string, body any) (id string, err error) {
	var m struct {
		ID string `json:"id"`
	}
	out := any(&m)
	if method == http.MethodDelete {
		out = nil
	}
	err = a.call(ctx, method, "webhooks/"+k.app+"/"+k.token+path, interactionBucket(k.token), body, out)
	switch codeOf(err) {
	case codeUnknownWebhook, codeDeadToken, codeUnknownAsk:
		k.dead = true
	}
	return m.ID, err
}

// echo shows what became of a slash command's input. Everybody's shows what it
// asked for, once, and gives that message: signs are put on it. A private one, and
// that of a command used on a message, says the state in words.
func (a *Adapter) echo(ctx context.Context, id string, f session.Fate) (msg string, err error) {
	k, ok := a.asks.get(id)
	if !ok || !k.taken(ctx) {
		return "", nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case (k.private || k.menu) && k.fresh() && !k.told:
		body := outMessage{Content: wordsState(f.State, f.Step), Mentions: nobody}
		if _, err = a.hook(ctx, k, http.MethodPatch, "/messages/@original", body); err == nil {
			k.used = true
		}
	case !k.private && !k.menu && k.msg.Load() == nil && k.fresh():
		_, _, err = a.say(ctx, k, wordsEcho(k.echo), nil, false)
	}
	if k.dead {
		err = nil
	}
	if msg := k.msg.Load(); msg != nil && err == nil {
		return *msg, nil
	}
	return "", err
}

// finish ends the sign that an answer is being thought about, when none came:
// somebody may not talk here, it came twice, or it takes long. In a private chat
// what was asked for is shown then, above the answer.
func (a *Adapter) finish(ctx context.Context, k *ask) {
	if !k.taken(ctx) || !pause(ctx, a.timing.grace) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used || !k.fresh() {
		return
	}
	var err error
	if k.dm && k.echo != "" {
		_, _, err = a.say(ctx, k, wordsEcho(k.echo), nil, false)
	} else {
		err = a.dismiss(ctx, k)
	}
	if err != nil {
		a.log.Debug("interaction not completed", "err", err)
	}
}
