package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a group says and does not say to the bot is kept only if asked for
// (sessions.observe): the newest few messages of people who may talk there, in
// one small document per chat, and never what is in files. They are told with
// the next turn, as quoted data.
//
// The user row that tells them is the record of what was told: it is stored in
// the step that begins the turn, so a message is told once in a generation
// whatever crashes, and nothing has to be written behind it. Numbers of messages
// only grow, also when the document is emptied: rows of other sessions that share
// the chat (sessions.group: user) remember them.

const (
	// ObserveMost is the most messages of a chat that are kept.
	ObserveMost = 50
	// observedText and observedMarks bound a kept message, in bytes.
	observedText  = 500
	observedMarks = 200
	// observedBytes bounds the document, which is written whole for each message.
	observedBytes = 32 << 10
	// observedPast is how many messages that are not kept any more are known by
	// their id: a platform delivers again what it has not confirmed, at most about
	// a hundred, and that must not be kept, and told, anew (I2).
	observedPast = 128
	// observedTries is how often a write may come too late: another process of the
	// same chat, or a reply that was lost.
	observedTries = 8
	// toldRows is how far back the mark of what was told is looked for. The turns
	// since have one as long as something is kept, so only a chat in which nothing
	// was observed for all that time could be told the same again.
	toldRows = 10_000
)

// An Observed is a message of the chat that did not speak to the bot, as a turn
// is told of it.
type Observed struct {
	From Person `json:"from"`
	Text string `json:"text"`
	Sent int64  `json:"sent,omitempty"` // Unix ms
}

// observed is the stored document of a chat.
type observed struct {
	Last int64       `json:"last"` // the newest number, never given again
	Kept []overheard `json:"kept,omitempty"`
	Past []MessageID `json:"past,omitempty"` // not kept any more, newest last

	rest Rest
}

// An overheard is one kept message.
type overheard struct {
	N     int64     `json:"n"`
	ID    MessageID `json:"id"`
	From  Person    `json:"from"` // its roles too: it is asked again whether they may talk here
	Marks string    `json:"marks,omitempty"`
	Text  string    `json:"text,omitempty"`
	Sent  int64     `json:"sent,omitempty"`

	rest Rest
}

// observedName is the document of a chat, whoever's session it is.
func observedName(key Key) string {
	key.User = ""
	return "observed:" + key.String()
}

// observes is how many messages of a chat are kept; 0 = none, and then the store
// is not asked.
func (h *Hub) observes(key Key) int {
	if h.Observe == nil {
		return 0
	}
	return min(max(h.Observe(key), 0), ObserveMost)
}

// observe keeps a message that does not speak to the bot.
func (h *Hub) observe(ctx context.Context, p Principal, m Message) error {
	most := h.observes(m.Key)
	if most == 0 || m.Private || m.Kind != KindText || isCommandText(m) {
		return nil
	}
	o := overheard{ID: m.ID, From: p.person(), Marks: marksOf(m), Text: cutBytes(m.Text, observedText), Sent: m.Sent.UnixMilli()}
	if m.Sent.IsZero() {
		o.Sent = m.Received.UnixMilli()
	}
	if o.words() == "" {
		return nil
	}
	return changeObserved(ctx, h.Store, m.Key, func(d *observed) bool { return d.add(o, most) })
}

// observeEdit gives a kept message its new words. It reports whether there is
// one: then the edit is seen to.
func (h *Hub) observeEdit(ctx context.Context, p Principal, m Message) (found bool, err error) {
	if h.observes(m.Key) == 0 || m.Private {
		return false, nil
	}
	err = changeObserved(ctx, h.Store, m.Key, func(d *observed) bool {
		i := d.find(m.ID)
		if found = i >= 0; !found || d.Kept[i].From.ID != p.ID {
			return false
		}
		old := d.Kept[i]
		d.Kept[i].Text = cutBytes(m.Text, observedText)
		if isCommandText(m) || d.Kept[i].words() == "" {
			d.remove(i)
			return true
		}
		return d.Kept[i].Text != old.Text
	})
	return found, err
}

// unobserve forgets a kept message that is gone on the platform, and reports
// whether there was one. It needs no authority: it only takes away.
func (h *Hub) unobserve(ctx context.Context, m Message) (found bool, err error) {
	if h.observes(m.Key) == 0 || m.Private {
		return false, nil
	}
	err = changeObserved(ctx, h.Store, m.Key, func(d *observed) bool {
		i := d.find(m.ID)
		found = i >= 0 && (m.From.ID == "" || m.From.ID == d.Kept[i].From.ID)
		if found {
			d.remove(i)
		}
		return found
	})
	return found, err
}

// ForgetObserved empties what is kept of a chat, for who deletes a session of it.
func ForgetObserved(ctx context.Context, st Store, key Key) error {
	for range observedTries {
		data, version, err := st.Doc(ctx, observedName(key))
		if err != nil || len(data) == 0 {
			return err
		}
		if err = st.PutDoc(ctx, observedName(key), version, nil); !isStale(err) {
			return err
		}
	}
	return fmt.Errorf("forget what was observed: %w", ErrStale)
}

// isCommandText reports whether a person typed a command, known or not.
func isCommandText(m Message) bool { return m.Forwarded == "" && strings.HasPrefix(m.Text, "/") }

// marksOf names what a message is beside its words: forwarded, with files.
func marksOf(m Message) string {
	var marks []string
	if m.Forwarded != "" {
		marks = append(marks, "[forwarded from "+cleanName(m.Forwarded)+"]")
	}
	for _, a := range m.Attachments {
		kind := CleanLine(a.Kind, 20)
		if kind == "document" {
			kind = "file"
		}
		marks = append(marks, "["+strings.TrimSpace(kind+" "+CleanLine(a.Name, 60))+"]")
	}
	return cutBytes(strings.Join(marks, " "), observedMarks)
}

func (o overheard) words() string {
	return strings.TrimSpace(o.Marks + " " + strings.TrimSpace(o.Text))
}

// cutBytes cuts s to at most most bytes, at a character, with an ellipsis.
func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func (d *observed) find(id MessageID) int {
	return slices.IndexFunc(d.Kept, func(o overheard) bool { return o.ID == id })
}

// add keeps o and lets the oldest go; false if it was seen before.
func (d *observed) add(o overheard, most int) bool {
	if d.find(o.ID) >= 0 || slices.Contains(d.Past, o.ID) {
		return false
	}
	d.Last++
	o.N = d.Last
	d.Kept = append(d.Kept, o)
	for len(d.Kept) > most || len(d.Kept) > 1 && len(d.encode()) > observedBytes {
		d.remove(0)
	}
	return true
}

// remove lets one go; its id is known for a while.
func (d *observed) remove(i int) {
	d.Past = append(d.Past, d.Kept[i].ID)
	d.Past = d.Past[max(0, len(d.Past)-observedPast):]
	d.Kept = slices.Delete(d.Kept, i, i+1)
}

func (d *observed) encode() []byte { return mustJSON(d) }

func readObserved(ctx context.Context, st Store, key Key) (d observed, version int64, err error) {
	data, version, err := st.Doc(ctx, observedName(key))
	if err != nil {
		return d, 0, fmt.Errorf("read what was observed: %w", err)
	}
	if len(data) == 0 || json.Unmarshal(data, &d) != nil {
		// New, or emptied. No number was higher than there were writes, so those
		// that were given stay behind.
		d = observed{Last: version}
	}
	return d, version, nil
}

// changeObserved edits the document of a chat; f may run several times and
// returns false to leave it as it is.
func changeObserved(ctx context.Context, st Store, key Key, f func(*observed) bool) error {
	for range observedTries {
		d, version, err := readObserved(ctx, st, key)
		if err != nil {
			return err
		}
		if !f(&d) {
			return nil
		}
		err = st.PutDoc(ctx, observedName(key), version, d.encode())
		if err == nil {
			return nil
		}
		if !isStale(err) {
			return fmt.Errorf("keep what was observed: %w", err)
		}
	}
	return fmt.Errorf("keep what was observed: %w", ErrStale)
}

// tell puts into the user row of a turn what the chat said and its conversation,
// whose rows these are, was not told yet. Whether the authors may still talk
// there is asked again (I10).
func (a *actor) tell(life context.Context, rows []Row, row *UserRow) error {
	chat := a.h.Routes.Home(a.key)
	most := a.h.observes(chat)
	if most == 0 || !slices.ContainsFunc(row.Inputs, func(in Input) bool { return in.Shared }) {
		return nil
	}
	d, _, err := readObserved(life, a.h.Store, chat)
	if err != nil || len(d.Kept) == 0 {
		return err
	}
	if chat != a.key.own() { // numbers are a chat's own
		row.ObservedIn = observedName(chat)
	}
	told := toldTo(rows, row.ObservedIn)
	said := map[MessageID]bool{} // by what the turn begins with
	for _, in := range row.Inputs {
		for _, p := range in.Parts {
			said[LocalID(chat, p.ID)] = true
		}
	}
	for _, o := range d.Kept[max(0, len(d.Kept)-most):] {
		if o.N <= told || said[o.ID] {
			continue
		}
		may, _, err := a.h.Access.Still(life, chat, o.From)
		if err != nil {
			return err
		}
		id, err := a.h.Links.as(life, a.key.Platform, chat.Platform, o.From.ID) // who they are in this session
		if err != nil {
			return err
		}
		if may {
			row.Observed = append(row.Observed, Observed{From: Person{ID: id, Name: o.From.Name}, Text: o.words(), Sent: o.Sent})
		}
	}
	row.ObservedTo = d.Last
	return nil
}

// toldTo is the number up to which a conversation was told of a chat: that of its
// newest user row which has one. in is UserRow.ObservedIn.
func toldTo(rows []Row, in string) int64 {
	for i := len(rows) - 1; i >= max(0, len(rows)-toldRows); i-- {
		// No text can hold this key: in one its quotes are escaped.
		if rows[i].Type == RowUser && bytes.Contains(rows[i].Data, []byte(`"observed_to":`)) {
			if u := DecodeUser(rows[i]); u.ObservedIn == in {
				return u.ObservedTo
			}
		}
	}
	return 0
}
