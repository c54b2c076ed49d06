package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a session away from its own chat needs: messages come in from a chat with
// another key, and go out to it. Ids of such messages and people carry where they
// are from, so nothing of another chat can be taken for the session's own.

// A message id of another chat than the session's own is @CHAT@ID, and a person of
// another platform is @PLATFORM:ID. No platform's ids begin so.
const awayMark = "@"

var chatEscaper = strings.NewReplacer("%", "%25", awayMark, "%40")
var chatUnescaper = strings.NewReplacer("%25", "%", "%40", awayMark)

func awayID(chat Key, id MessageID) MessageID {
	if id == "" {
		return ""
	}
	return MessageID(awayMark + chatEscaper.Replace(chat.String()) + awayMark + string(id))
}

// origin is the chat of a message of a session, and its id there.
func origin(lane Key, id MessageID) (Key, MessageID) {
	if rest, ok := strings.CutPrefix(string(id), awayMark); ok {
		if name, id, ok := strings.Cut(rest, awayMark); ok {
			if chat, err := ParseKey(chatUnescaper.Replace(name)); err == nil {
				return chat, MessageID(id)
			}
		}
	}
	return lane.own(), id
}

// LocalID is a message's id as chat has it, if it is of that chat and its session's
// own chat is another; else id.
func LocalID(chat Key, id MessageID) MessageID {
	if strings.HasPrefix(string(id), awayMark) {
		if from, local := origin(chat, id); from == chat {
			return local
		}
	}
	return id
}

func localIDs(chat Key, ids []MessageID) []MessageID {
	out := make([]MessageID, len(ids))
	for i, id := range ids {
		out[i] = LocalID(chat, id)
	}
	return out
}

// here is a message's id in chat, "" if it is of another.
func here(lane, chat Key, id MessageID) MessageID {
	if from, id := origin(lane, id); from == chat {
		return id
	}
	return ""
}

// in makes a message of a chat one of the session that lives there, for its
// authorised author. took is true when it was accepted by a session that lived
// there before and is delivered again (I2).
func (h *Hub) in(ctx context.Context, p Principal, m Message) (_ Principal, _ Message, took bool, err error) {
	has, err := h.Routes.shelf.get(ctx)
	if err != nil {
		return p, m, false, err
	}
	c := has.index().chats[m.Key]
	if c == nil {
		return p, m, false, nil
	}
	chat, lane := m.Key, c.Lanes[0]
	for _, was := range c.Past {
		if was.Lane == lane || was.Till < time.Now().Unix() {
			continue
		}
		// What runs a command marks it, and so does its answer.
		for _, mark := range []string{"", "r:"} {
			if took, err = h.Store.Seen(ctx, was.Lane, mark+awayDedupe(was.Lane, chat, m.Dedupe)); err != nil || took {
				return p, m, took, err
			}
		}
	}
	if m.Kind == KindEdit || m.Kind == KindDelete || m.Kind == KindReact {
		if lane, err = h.about(ctx, c, m.ID); err != nil {
			return p, m, false, err
		}
	}
	if m.MsgDedupe != "" {
		if lane, err = h.tookMessage(ctx, c, m.MsgDedupe); err != nil {
			return p, m, false, err
		}
	}
	p, m, err = h.inLane(ctx, p, m, lane)
	return p, m, false, err
}

// inLane makes a written message one of a session that lives or lived in its chat.
func (h *Hub) inLane(ctx context.Context, p Principal, w Message, lane Key) (_ Principal, _ Message, err error) {
	m := w.to(lane)
	if p.at != (Key{}) {
		p.ID, p.at, p.account = p.account, Key{}, ""
	}
	if lane.own() == w.Key || p.ID == "" { // nobody: a stranger, or a platform tells of a deletion
		return p, m, nil
	}
	p.at, p.account = w.Key, p.ID
	p.ID, err = h.Links.as(ctx, lane.Platform, p.Platform, p.ID)
	return p, m, err
}

// replied makes m one of the session that took the message it replies to, which may
// have lived in the chat before.
func (h *Hub) replied(ctx context.Context, p Principal, m Message) (Principal, Message, error) {
	has, err := h.Routes.shelf.get(ctx)
	if err != nil {
		return p, m, err
	}
	w := m.written(p)
	c := has.index().chats[w.Key]
	if c == nil {
		return p, m, nil
	}
	lane, err := h.about(ctx, c, w.ReplyTo)
	if err != nil || lane == m.Key {
		return p, m, err
	}
	return h.inLane(ctx, p, w, lane)
}

// about is the session that what happens to a message of a chat is for: the one that
// took it there before, else the one that is spoken to.
func (h *Hub) about(ctx context.Context, c *chatRoute, id MessageID) (Key, error) {
	lane := c.Lanes[0]
	for _, was := range c.Past {
		if was.Lane == lane || was.Till < time.Now().Unix() {
			continue
		}
		fates, err := h.Store.Fates(ctx, was.Lane, 64)
		if err != nil {
			return lane, fmt.Errorf("read fates: %w", err)
		}
		id := Message{Key: c.Chat, ID: id}.to(was.Lane).ID
		if slices.ContainsFunc(fates, func(f Fate) bool { return slices.Contains(f.Msgs, id) }) {
			return was.Lane, nil
		}
	}
	return lane, nil
}

// written is a message as it was written, before in: its chat, and its ids and mark
// there.
func (m Message) written(p Principal) Message {
	lane := m.Key
	m.Key = lane.own()
	if p.at != (Key{}) {
		m.Key = p.at
	}
	_, m.ID = origin(lane, m.ID)
	_, m.ReplyTo = origin(lane, m.ReplyTo)
	m.Dedupe = strings.TrimPrefix(m.Dedupe, awayPrefix(lane, m.Key))
	m.MsgDedupe = strings.TrimPrefix(m.MsgDedupe, awayPrefix(lane, m.Key))
	return m
}

// awayDedupe is a dedupe mark in a session: two platforms may give the same.
func awayDedupe(lane, chat Key, mark string) string {
	if mark == "" {
		return ""
	}
	return awayPrefix(lane, chat) + mark
}

func awayPrefix(lane, chat Key) string {
	if lane.Platform == chat.Platform {
		return ""
	}
	return awayMark + string(chat.Platform) + ":"
}

// to makes a written message one of a session that lives in its chat.
func (m Message) to(lane Key) Message {
	chat := m.Key
	m.Key, m.Dedupe, m.MsgDedupe = lane, awayDedupe(lane, chat, m.Dedupe), awayDedupe(lane, chat, m.MsgDedupe)
	if lane.own() != chat {
		m.ID, m.ReplyTo = awayID(chat, m.ID), awayID(chat, m.ReplyTo)
	}
	return m
}

// awayUser is a person of another platform in a session.
func awayUser(on PlatformName, id UserID) UserID {
	return UserID(awayMark + string(on) + ":" + string(id))
}

// platform is how a session speaks; nil = the platform of its chat is off.
func (h *Hub) platform(lane Key) Platform { return h.Routes.Platform(lane, h.platforms) }

// parts cuts an outgoing text into outbox parts with ids made from id, so that
// a retried write makes the same parts.
func (h *Hub) parts(o Outgoing, turn int64, id string) []PartNew {
	plat := h.platform(o.Key)
	if plat == nil {
		return nil
	}
	if h.Notify != nil {
		switch h.Notify(h.Routes.Home(o.Key)) {
		case NotifyAll:
			o.Silent = false
		case NotifyNone:
			o.Silent = true
		}
	}
	cut := plat.Parts
	if f, ok := plat.(FileSender); ok && len(o.Files) > 0 {
		cut = f.FileParts
	}
	chat := h.Routes.Home(o.Key)
	o.ReplyTo = here(o.Key, chat, o.ReplyTo) // else it hangs on nothing there
	o.Buttons = slices.Clone(o.Buttons)
	for i := range o.Buttons {
		o.Buttons[i].Data += markOf(o.Key, chat)
	}
	var outs []PartNew
	for i, data := range cut(o) {
		outs = append(outs, PartNew{ID: fmt.Sprintf("%s/%d", shortID(id), i+1), Kind: o.Kind, Turn: turn, Data: data})
	}
	return outs
}

// Platform is how a session speaks: the platform of the chat it lives in. nil =
// that one is off.
func (r *Routes) Platform(lane Key, of map[PlatformName]Platform) Platform {
	chat := r.Home(lane)
	p := of[chat.Platform]
	switch _, files := p.(FileSender); {
	case p == nil || chat == lane:
		return p
	case files:
		return awayFiles{away{p, lane, chat}}
	}
	return away{p, lane, chat}
}

// away is a platform to a session whose key is not that of the chat it lives in.
type away struct {
	Platform
	lane, chat Key
}

var _ Paced = away{}

// A payload for another chat than the session's own stands behind its address.
// Platforms' own payloads never begin with a zero byte.
const addressMark = "\x00"

// ofMark stands in an address between the chat and the session whose part it is,
// of a part that was forwarded, and once more behind it if that may have been sent.
const ofMark = "\x01"

func (a away) address(parts [][]byte) [][]byte {
	if a.chat == a.lane.own() {
		return parts
	}
	for i := range parts {
		parts[i] = append([]byte(addressMark+a.chat.String()+addressMark), parts[i]...)
	}
	return parts
}

func (a away) Parts(o Outgoing) [][]byte {
	o.Key = a.chat
	return a.address(a.Platform.Parts(o))
}

func (a away) Show(v View) {
	v.Key = a.chat
	a.Platform.Show(v)
}

// Reserve implements Paced.
func (a away) Reserve(_ Key, most time.Duration) (time.Duration, bool) {
	if p, ok := a.Platform.(Paced); ok {
		return p.Reserve(a.chat, most)
	}
	return 0, true
}

// Return implements Paced.
func (a away) Return(Key) {
	if p, ok := a.Platform.(Paced); ok {
		p.Return(a.chat)
	}
}

// awayFiles is away on a platform that sends files.
type awayFiles struct{ away }

func (a awayFiles) FileParts(o Outgoing) [][]byte {
	o.Key = a.chat
	return a.address(a.Platform.(FileSender).FileParts(o))
}

// addressed reads where a part goes, and makes it as it goes there.
func addressed(p Part) (Part, error) {
	p.Lane, p.Key = p.Key, p.Key.own()
	if rest, ok := bytes.CutPrefix(p.Data, []byte(addressMark)); ok {
		name, data, _ := bytes.Cut(rest, []byte(addressMark))
		name, of, forwarded := bytes.Cut(name, []byte(ofMark))
		chat, err := ParseKey(string(name))
		if err == nil && forwarded {
			of, unknown := bytes.CutSuffix(of, []byte(ofMark))
			if p.Lane, err = ParseKey(string(of)); unknown {
				p.State = PartUnknown
			}
		}
		if err != nil {
			return p, fmt.Errorf("address of part %s: %w", p.ID, err)
		}
		p.Key, p.Data = chat, data
	}
	return p, nil
}

// Forward makes a part for a chat that its session has left one of the session
// that is spoken to there: a chat that cannot be reached must not hold up what is
// said elsewhere. It keeps whose it is, and that it may have been sent. ok is false for all other parts.
func (r *Routes) Forward(p Part) (_ Post, ok bool) {
	there, err := addressed(p)
	if err != nil || r.Home(p.Key) == there.Key {
		return Post{}, false
	}
	id := shortID("fw:" + p.Key.tag() + ":" + p.ID)
	of := ofMark + there.Lane.String()
	if there.State == PartUnknown {
		of += ofMark
	}
	data := slices.Concat([]byte(addressMark+there.Key.String()+of+addressMark), there.Data)
	return Post{Key: r.Current(there.Key), Dedupe: id, Outs: []PartNew{{ID: id, Kind: p.Kind, Data: data}}}, true
}

// Destination is where a part goes, and the part as it goes there. An error means
// that its platform is off or its address cannot be read.
func Destination(p Part, of map[PlatformName]Platform) (Platform, Part, error) {
	p, err := addressed(p)
	if err != nil {
		return nil, p, err
	}
	if of[p.Key.Platform] == nil {
		return nil, p, fmt.Errorf("part %s is for %s, which is off", p.ID, p.Key.Platform)
	}
	if p.Lane != p.Key { // the ids of two sessions that speak in one chat may be the same
		p.ID = strings.Replace(p.ID, "r:"+awayPrefix(p.Lane, p.Key), "r:", 1) + awayMark + p.Lane.tag()
	}
	return of[p.Key.Platform], p, nil
}

// Signed is the chat in which an input's state is shown, and the fate as it is
// shown there: an input may have been written in another chat than its session
// lives in now. nil = that chat's platform is off.
func Signed(lane Key, f Fate, of map[PlatformName]Platform) (Platform, Key, Fate) {
	chat := lane.own()
	msgs := make([]MessageID, len(f.Msgs))
	for i, id := range f.Msgs {
		from, id := origin(lane, id)
		if i == 0 {
			chat = from
		}
		msgs[i] = id
	}
	f.Msgs = msgs
	return of[chat.Platform], chat, f
}
