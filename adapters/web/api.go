package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"coxswain/session"
)

// Handler serves the page and its API behind the guard.
func (a *Adapter) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, f := range files {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("GET "+path, f)
	}
	mux.HandleFunc("POST "+loginPath, a.login)
	mux.HandleFunc("POST /api/logout", a.logout)
	mux.HandleFunc("GET /api/commands", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.commands) })
	mux.HandleFunc("GET /api/sessions", a.list)
	mux.HandleFunc("GET /api/sessions/{chat}", a.inChat(a.transcript))
	mux.HandleFunc("GET /api/sessions/{chat}/events", a.inChat(a.events))
	mux.HandleFunc("GET /api/sessions/{chat}/file", a.inChat(a.file))
	mux.HandleFunc("POST /api/sessions/{chat}/messages", a.inChat(a.message))
	mux.HandleFunc("POST /api/sessions/{chat}/ask", a.inChat(a.ask))
	mux.HandleFunc("POST /api/sessions/{chat}/press", a.inChat(a.press))
	mux.HandleFunc("POST /api/sessions/{chat}/edit", a.inChat(a.edit))
	mux.HandleFunc("POST /api/sessions/{chat}/delete", a.inChat(a.remove))
	return a.guard(mux)
}

// inChat reads the conversation's id from the path and asks the authoriser:
// no handler sees a key without a principal for it (I10).
func (a *Adapter) inChat(f func(http.ResponseWriter, *http.Request, session.Key, session.Principal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chat := r.PathValue("chat")
		if !isID(chat, 6, 40) {
			fail(w, http.StatusBadRequest, wordsBadChat)
			return
		}
		key := session.Key{Platform: Name, Chat: session.ChatID(chat)}
		if p, ok := a.identify(w, r, key); ok {
			f(w, r, key, p)
		}
	}
}

// identify answers the fault itself when there is no principal.
func (a *Adapter) identify(w http.ResponseWriter, r *http.Request, key session.Key) (session.Principal, bool) {
	p, ok, err := a.hub.Identify(r.Context(), key, person, true)
	switch {
	case err != nil:
		a.storeFailed(r.Context(), w, "authorise", key, err)
		return p, false
	case !ok:
		fail(w, http.StatusForbidden, wordsRefused)
		return p, false
	}
	return p, true
}

func (a *Adapter) storeFailed(ctx context.Context, w http.ResponseWriter, what string, key session.Key, err error) {
	if ctx.Err() == nil {
		a.log.WarnContext(ctx, "web request failed", "step", what, "session", key.String(), "err", err)
	}
	fail(w, http.StatusServiceUnavailable, wordsStore)
}

// isID reports whether s is an id as the page makes them.
func isID(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') }) < 0
}

// listMost bounds the list of sessions: the newest are shown.
const listMost = 200

type listing struct {
	Chat    string `json:"chat"`
	Title   string `json:"title,omitempty"`
	Turn    int64  `json:"turn,omitempty"`
	Waiting int    `json:"waiting,omitempty"`
	Touched int64  `json:"touched"` // Unix ms
}

func (a *Adapter) list(w http.ResponseWriter, r *http.Request) {
	key := session.Key{Platform: Name, Chat: "sessions"} // of no conversation: whoever is let in sees all of them
	if _, ok := a.identify(w, r, key); !ok {
		return
	}
	all, err := a.hub.List(r.Context(), Name)
	if err != nil {
		a.storeFailed(r.Context(), w, "list sessions", key, err)
		return
	}
	slices.SortFunc(all, func(x, y session.Listing) int { return y.Touched.Compare(x.Touched) })
	out := []listing{}
	for _, l := range all[:min(len(all), listMost)] {
		out = append(out, listing{
			Chat: string(l.Key.Chat), Title: session.CleanLine(l.Title, 80), Turn: l.Turn, Waiting: l.Waiting, Touched: l.Touched.UnixMilli(),
		})
	}
	answer(w, out)
}

// transcript answers what is new since ?cursor=.
func (a *Adapter) transcript(w http.ResponseWriter, r *http.Request, key session.Key, p session.Principal) {
	c := parseCursor(r.URL.Query().Get("cursor"), a.boot)
	if err := a.recall(r.Context(), key); err != nil {
		a.storeFailed(r.Context(), w, "read memo", key, err)
		return
	}
	room := a.rooms.of(key)
	memo, n := room.memo(c.n) // before the rows: what is in both is shown as a row
	t, err := a.hub.Read(r.Context(), p, key, c.gen, c.seq)
	if err == nil && t.Gen == c.gen && c.seq > t.Status.Messages {
		// The reader has more than there is: the session was deleted and begun anew.
		c = cursor{n: c.n}
		t, err = a.hub.Read(r.Context(), p, key, 0, 0)
	}
	if err != nil {
		a.storeFailed(r.Context(), w, "read session", key, err)
		return
	}
	room.saw(t)
	out := render(t, c, memo, n, a.boot)
	out.Jobs = jobs(t)
	answer(w, out)
}

// ageMost bounds the age a page may give for a message.
const ageMost = 24 * time.Hour

// message takes what was typed. The id is the page's, so the same request
// again is the same message (I2).
func (a *Adapter) message(w http.ResponseWriter, r *http.Request, key session.Key, p session.Principal) {
	var in struct {
		ID      string `json:"id"`
		Text    string `json:"text"`
		ReplyTo string `json:"reply_to"`
		Age     int64  `json:"age"` // ms since it was typed; a late /stop must not stop what began after it
	}
	if !read(w, r, &in) || !goodID(w, in.ID) {
		return
	}
	if in.ReplyTo != "" && !goodID(w, in.ReplyTo) {
		return
	}
	text := strings.TrimSpace(in.Text)
	if text == "" {
		fail(w, http.StatusBadRequest, wordsEmpty)
		return
	}
	if a.short != nil && a.short() && strings.Fields(strings.ToLower(text))[0] != "/stop" {
		fail(w, http.StatusServiceUnavailable, wordsShort)
		return
	}
	m := a.event(key, session.KindText, in.ID)
	m.Dedupe = "m:" + string(key.Chat) + ":" + in.ID
	m.Text, m.ReplyTo = text, session.MessageID(in.ReplyTo)
	if in.Age > 0 {
		m.Sent = m.Received.Add(-min(time.Duration(in.Age)*time.Millisecond, ageMost))
	}
	it := item{Kind: kindSaid, ID: in.ID, Text: text, ReplyTo: m.ReplyTo, At: cmp.Or(m.Sent, m.Received).UnixMilli()}
	room := a.rooms.of(key)
	if strings.HasPrefix(text, "/") {
		defer room.hold(it)()
	}
	if a.deliver(w, r, p, m) {
		room.spoke(it)
		answer(w, struct{}{})
	}
}

// press takes a button. Its key is no authority; the hub judges who may.
func (a *Adapter) press(w http.ResponseWriter, r *http.Request, key session.Key, p session.Principal) {
	var in struct {
		ID     string `json:"id"` // of this press
		Button string `json:"button"`
	}
	if !read(w, r, &in) || !goodID(w, in.ID) {
		return
	}
	if in.Button == "" || len(in.Button) > 64 || strings.IndexFunc(in.Button, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		fail(w, http.StatusBadRequest, wordsBadButton)
		return
	}
	m := a.event(key, session.KindPress, in.ID)
	m.Dedupe, m.Button = "i:"+in.ID, in.Button
	a.pass(w, r, p, m)
}

func (a *Adapter) edit(w http.ResponseWriter, r *http.Request, key session.Key, p session.Principal) {
	var in struct {
		ID   string `json:"id"` // of the message
		Text string `json:"text"`
		Op   string `json:"op"` // of this edit: back to an earlier text is an edit too
	}
	if !read(w, r, &in) || !goodID(w, in.ID) || in.Op != "" && !goodID(w, in.Op) {
		return
	}
	text := strings.TrimSpace(in.Text)
	if text == "" {
		fail(w, http.StatusBadRequest, wordsEmpty)
		return
	}
	m := a.event(key, session.KindEdit, in.ID)
	m.Text = text
	sum := sha256.Sum256([]byte(text))
	m.Dedupe = "e:" + string(key.Chat) + ":" + in.ID + ":" + in.Op + ":" + hex.EncodeToString(sum[:8])
	a.pass(w, r, p, m)
}

func (a *Adapter) remove(w http.ResponseWriter, r *http.Request, key session.Key, p session.Principal) {
	var in struct {
		ID string `json:"id"` // of the message
	}
	if !read(w, r, &in) || !goodID(w, in.ID) {
		return
	}
	m := a.event(key, session.KindDelete, in.ID)
	m.Dedupe = "d:" + string(key.Chat) + ":" + in.ID
	a.pass(w, r, p, m)
}

func goodID(w http.ResponseWriter, id string) bool {
	if !isID(id, 8, 64) {
		fail(w, http.StatusBadRequest, wordsBadID)
		return false
	}
	return true
}

// event is what all messages from here have in common.
func (a *Adapter) event(key session.Key, kind session.MessageKind, id string) session.Message {
	return session.Message{
		Key: key, ID: session.MessageID(id), Kind: kind, From: person, Private: true, Addressed: true, Received: time.Now(),
	}
}

func (a *Adapter) pass(w http.ResponseWriter, r *http.Request, p session.Principal, m session.Message) {
	if a.deliver(w, r, p, m) {
		answer(w, struct{}{})
	}
}

// deliver brings a message through the door, one at a time in a conversation.
// Only what the store has is answered with success (I1); a page asks again
// with the same id until it is.
func (a *Adapter) deliver(w http.ResponseWriter, r *http.Request, p session.Principal, m session.Message) bool {
	ctx := r.Context()
	room := a.rooms.of(m.Key)
	select {
	case room.door <- struct{}{}:
		defer func() { <-room.door }()
	case <-ctx.Done():
		return false // the page has gone; it asks again
	}
	if err := a.beforeDrop(ctx, p, m); err != nil {
		a.storeFailed(ctx, w, "keep what is dropped", m.Key, err)
		return false
	}
	if err := a.hub.Deliver(ctx, m); err != nil {
		a.storeFailed(ctx, w, "deliver", m.Key, err)
		return false
	}
	room.changed()
	return true
}
