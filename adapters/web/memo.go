package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coxswain/session"
)

// The memo of a conversation is what its page shows and no row tells: answers
// to commands, the commands themselves, and the texts of dropped messages. It
// is a document of the store, so that a restart changes nothing on the page.
//
// It is written when a reply arrives and when a message is dropped, never for
// a plain message: that one is in the slot or a row from the start. The text
// of a message is written before the drop goes through the door, its state
// after: in between it shows as what it is, one that waits.

// A Store keeps memos and tells what a transcript leaves out; session.Store
// is it.
type Store interface {
	Doc(ctx context.Context, name string) (data []byte, version int64, err error)
	PutDoc(ctx context.Context, name string, version int64, data []byte) error
}

// MemoName is the name of the document that a conversation's memo is kept in,
// for who deletes the conversation.
func MemoName(key session.Key) string { return "memo:" + key.String() }

// Bounds of a stored memo, which is written whole: the newest are kept.
const (
	memoMost      = 128 << 10 // bytes of its items
	memoReplyMost = 16 << 10  // bytes of one reply
	memoTries     = 8         // writes that another process may come before
)

// recall takes in what the store has and this process does not: of an earlier
// process, or of another beside it.
func (a *Adapter) recall(ctx context.Context, key session.Key) error {
	_, _, err := a.recallFor(ctx, key)
	return err
}

func (a *Adapter) recallFor(ctx context.Context, key session.Key) (stored []byte, version int64, err error) {
	if a.store == nil {
		return nil, 0, nil
	}
	data, version, err := a.store.Doc(ctx, MemoName(key))
	if err != nil {
		return nil, 0, fmt.Errorf("read memo: %w", err)
	}
	here := a.rooms.of(key)
	if here.memoVersion() == version {
		return data, version, nil
	}
	var items []item
	if len(data) > 0 {
		if err := json.Unmarshal(data, &items); err != nil {
			a.log.ErrorContext(ctx, "stored memo does not decode", "session", key.String(), "err", err)
		}
	}
	here.merge(items, version)
	return data, version, nil
}

// keep writes the memo after change, if that made a difference.
func (a *Adapter) keep(ctx context.Context, key session.Key, change func(*room)) error {
	here := a.rooms.of(key)
	if a.store == nil {
		change(here)
		return nil
	}
	for try := 1; ; try++ {
		old, version, err := a.recallFor(ctx, key)
		if err != nil {
			return err
		}
		change(here)
		data, err := json.Marshal(here.kept())
		if err != nil {
			panic("web: a memo does not encode: " + err.Error())
		}
		if slices.Equal(data, old) {
			return nil
		}
		err = a.store.PutDoc(ctx, MemoName(key), version, data)
		if errors.Is(err, session.ErrStale) && try < memoTries {
			continue // another reply was written meanwhile; both are kept
		}
		if err != nil {
			return fmt.Errorf("write memo: %w", err)
		}
		here.wrote(version)
		return nil
	}
}

// beforeDrop keeps the texts of entries that m may drop.
func (a *Adapter) beforeDrop(ctx context.Context, p session.Principal, m session.Message) error {
	drops := dropsOf(m)
	if drops == nil {
		return nil
	}
	here := a.rooms.of(m.Key)
	gen, seq := here.place()
	t, err := a.hub.Read(ctx, p, m.Key, gen, seq)
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	here.saw(t)
	var gone []item
	for _, e := range t.Slot {
		if drops(e) {
			gone = append(gone, saidOf(e))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return a.keep(ctx, m.Key, func(r *room) { r.retain(gone) })
}

// dropsOf says which waiting entries m may drop; nil = none.
func dropsOf(m session.Message) func(session.Entry) bool {
	switch m.Kind {
	case session.KindPress:
		ticket, ok := strings.CutPrefix(m.Button, "drop:")
		ticket, _, _ = strings.Cut(ticket, "@") // whose it is
		if !ok {
			return nil
		}
		return func(e session.Entry) bool { return fmt.Sprint(e.Ticket) == ticket }
	case session.KindDelete:
		return func(e session.Entry) bool { return slices.Contains(e.Msgs, m.ID) }
	case session.KindText:
		word, rest, _ := strings.Cut(strings.ToLower(m.Text), " ")
		switch {
		case word == "/cancel":
			return func(e session.Entry) bool { return slices.Contains(e.Msgs, m.ReplyTo) }
		case word == "/stop" && strings.TrimSpace(rest) == "all":
			return func(session.Entry) bool { return true }
		}
	}
	return nil
}

// saidOf is a waiting entry as a message that may be dropped.
func saidOf(e session.Entry) item {
	in := session.DecodeSteer(session.Row{Tick: e.Ticket, Data: e.Data})
	it := item{Kind: kindSaid, Text: in.Text(), At: e.At.UnixMilli()}
	if in.Retry != 0 {
		it.Text = fmt.Sprintf(wordsRetry, in.Retry)
	}
	if len(e.Msgs) > 0 {
		it.ID = string(e.Msgs[0])
	}
	return it
}

// dropped notes that a message was dropped, beside its text.
func (a *Adapter) dropped(ctx context.Context, key session.Key, f session.Fate) error {
	err := a.keep(ctx, key, func(r *room) { r.drop(f) })
	if err != nil {
		return &session.SendError{Outcome: session.SendNot, Err: fmt.Errorf("web: %w", err)}
	}
	return nil
}

func (r *room) memoVersion() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// wrote notes that the version after this one holds what is here.
func (r *room) wrote(version int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version == version {
		r.version = version + 1
	}
}

// place is how far a reading in this process has come.
func (r *room) place() (gen, seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gen, r.seq
}

// saw notes how far a reading came, and the texts of what waits: if it is
// dropped the store no longer has them.
func (r *room) saw(t session.Transcript) {
	waiting := make([]item, 0, len(t.Slot))
	for _, e := range t.Slot {
		waiting = append(waiting, saidOf(e))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = waiting
	r.gen, r.seq = t.Gen, t.After
	if n := len(t.Rows); n > 0 {
		r.seq = t.Rows[n-1].Seq
	}
}

// merge takes in items of the store.
func (r *room) merge(items []item, version int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = version
	for _, it := range items {
		if it.Kind != kindSaid {
			r.keepLocked(&r.replies, it)
			continue
		}
		it.kept = true
		if old := r.saidLocked(it.ID); old != nil {
			old.kept, old.State = true, cmp.Or(old.State, it.State)
			continue
		}
		r.keepLocked(&r.said, it)
	}
}

func (r *room) saidLocked(id string) *item {
	for i := range r.said {
		if r.said[i].ID == id {
			return &r.said[i]
		}
	}
	return nil
}

// retain marks messages as ones whose text only the memo will have.
func (r *room) retain(items []item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range items {
		it.kept = true
		it.Text = clip(it.Text, keepSaid)
		if old := r.saidLocked(it.ID); old != nil {
			old.kept, old.Text = true, it.Text // it may have been edited
			continue
		}
		r.keepLocked(&r.said, it)
	}
}

// drop notes that an input was dropped. What was never read here and is not in
// the memo has no text any more.
func (r *room) drop(f session.Fate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range f.Msgs {
		it := r.saidLocked(string(id))
		if it == nil {
			i := slices.IndexFunc(r.waiting, func(w item) bool { return w.ID == string(id) })
			if i < 0 {
				continue
			}
			r.keepLocked(&r.said, r.waiting[i])
			it = r.saidLocked(string(id))
		}
		if it != nil {
			it.kept, it.State = true, f.State
			if it.Text != "" {
				return // the parts of an input are one text
			}
		}
	}
}

// hold keeps a command ready for the memo while it is at the door: its answer
// may be sent before the door is left.
func (r *room) hold(it item) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.Text = clip(it.Text, keepSaid)
	r.held = append(r.held, it)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = slices.DeleteFunc(r.held, func(h item) bool { return h.ID == it.ID })
	}
}

// kept is what belongs in the stored memo, oldest first: the newest that fit.
func (r *room) kept() []item {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.held)
	for _, it := range r.said {
		if (it.kept || !it.known) && !slices.ContainsFunc(r.held, func(h item) bool { return h.ID == it.ID }) {
			all = append(all, it)
		}
	}
	for _, it := range r.replies {
		if it.Kind == string(session.PartFinal) {
			continue // a row
		}
		it.Text = clip(it.Text, memoReplyMost)
		all = append(all, it)
	}
	slices.SortStableFunc(all, func(x, y item) int { return cmp.Compare(x.At, y.At) })
	size, from := 0, len(all)
	for from > 0 {
		if size += all[from-1].size(); size > memoMost {
			break
		}
		from--
	}
	all = all[from:]
	for i := range all {
		all[i].N = 0 // counts within a process only
	}
	return all
}

// size is about what an item takes in the store.
func (it item) size() int {
	n := 200 + len(it.Text)
	for _, b := range it.Buttons {
		n += 40 + len(b.Text) + len(b.Data)
	}
	return n
}

// jobs are the session's background jobs that are not over and told.
func jobs(t session.Transcript) []job {
	out := []job{}
	for _, j := range t.Jobs {
		if strings.HasPrefix(j.ID, asidePrefix) {
			continue
		}
		out = append(out, job{
			ID: j.ID, Name: session.CleanLine(j.Name, 80), State: string(j.State), Turn: j.Turn, Since: j.At,
		})
	}
	return out
}

// asidePrefix begins the id of a job that is a question beside the turn
// (/btw): nothing to be shown or ended.
const asidePrefix = "btw:"

// Forget implements session.Forgetful.
func (a *Adapter) Forget(key session.Key) { a.rooms.forget(key) }
