package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A transcript is the wire form of a generation's rows. Each row is rendered
// once; rows are only ever added. It is used by one turn at a time.
type transcript struct {
	gen    int64
	rows   int // of them rendered
	head   head
	p      *profile
	key    session.Key
	headAt int // index of the head row
	clean  *steer.Sanitizer
	msgs   []json.RawMessage
	size   int64
	tally  tally

	// The newest user message, for folds, and the newest tool message, for
	// steers: neither has been sent when one is added (I5).
	user    []string
	seen    []Image
	tool    session.ToolRow
	toolSeq int64
	note    steer.Note
	private map[string]json.RawMessage // of the newest message's calls, by call id
	labels  map[session.UserID]string
	askers  map[session.UserID]bool // who wrote the newest user row: the turn's own
	hits    int                     // key traces cut out of what was rendered
}

// render brings tr up to rows. A head row that is not the one tr was rendered
// with begins an epoch: every kept row is rendered afresh with its key (I11).
func (l *Loop) render(tr *transcript, gen int64, rows []session.Row) error {
	last := -1
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Type == session.RowHead {
			last = i
			break
		}
	}
	if last < 0 {
		return fmt.Errorf("session has no head row")
	}
	if tr.gen != gen || tr.headAt != last || tr.clean == nil || tr.rows > len(rows) {
		var h head
		if err := json.Unmarshal(rows[last].Data, &h); err != nil {
			return fmt.Errorf("decode head: %w", err)
		}
		if _, err := steer.ParseKey(string(h.Key)); err != nil {
			return fmt.Errorf("decode head: %w", err)
		}
		*tr = transcript{p: tr.p, key: tr.key, gen: gen, head: h, headAt: last, clean: steer.NewSanitizer(h.Key), labels: map[session.UserID]string{}}
	}
	for _, r := range rows[tr.rows:] {
		if err := l.renderRow(tr, r); err != nil {
			return err
		}
		tr.rows++
	}
	return nil
}

func (l *Loop) renderRow(tr *transcript, r session.Row) error {
	switch r.Type {
	case session.RowHead:
		return nil
	case session.RowUser:
		u := session.DecodeUser(r)
		tr.askers = map[session.UserID]bool{}
		for _, in := range slices.Concat(u.Inputs, u.Again) { // whose notes went into an earlier turn does not own this one
			tr.askers[in.From.ID] = true
		}
		tr.user = []string{tr.userText(u)}
		tr.seen = l.pictures(tr, u)
		return l.push(tr, Wire{Role: "user", Text: joinUser(tr.user), Images: tr.seen}, false)
	case session.RowFold:
		// One user message on the wire: a join re-sends only that (I5).
		u := session.DecodeUser(r)
		tr.user = append(tr.user, tr.userText(u))
		tr.seen = append(tr.seen, l.pictures(tr, u)...)
		return l.push(tr, Wire{Role: "user", Text: joinUser(tr.user), Images: tr.seen}, true)
	case session.RowAssistant:
		a := session.DecodeAssistant(r)
		w := Wire{Role: "assistant", Text: tr.text(a.Text), Calls: a.Calls}
		tr.private = map[string]json.RawMessage{}
		if a.Model == tr.head.Model {
			w.Private = a.Private
			for _, c := range a.Calls {
				tr.private[c.ID] = c.Private
			}
		} else {
			w.Calls = withoutPrivate(a.Calls)
		}
		w.Calls = tr.calls(w.Calls)
		return l.push(tr, w, false)
	case session.RowTool:
		tr.tool, tr.toolSeq, tr.note = session.DecodeTool(r), r.Seq, steer.Note{}
		return l.push(tr, tr.toolWire(), false)
	case session.RowSteer:
		if r.On != tr.toolSeq {
			return fmt.Errorf("steer row %d is on row %d, the newest tool row is %d", r.Seq, r.On, tr.toolSeq)
		}
		in := session.DecodeSteer(r)
		tr.note.N = r.N
		e := steer.NoteEntry{Text: tr.plain(inputText(in))}
		if in.Shared {
			e.Label = tr.label(in.From)
			// The lowest role in the note counts.
			role := steer.RoleMember
			if in.Admin || tr.askers[in.From.ID] {
				role = steer.RoleOwner
			}
			if tr.note.From == steer.RoleNone || role == steer.RoleMember {
				tr.note.From = role
			}
		}
		tr.note.Entries = append(tr.note.Entries, e)
		return l.push(tr, tr.toolWire(), true)
	}
	panic(fmt.Sprintf("no such row type: %q", r.Type))
}

// push adds a message, or replaces the newest, which no request has carried.
func (l *Loop) push(tr *transcript, w Wire, replace bool) error {
	data, err := tr.p.Model.Encode(w)
	if err != nil {
		return fmt.Errorf("encode %s message: %w", w.Role, err)
	}
	if replace {
		tr.size += int64(len(data) - len(tr.msgs[len(tr.msgs)-1]))
		tr.tally.add(len(data), true)
		// Not in place: a request that is being sent holds the old slice.
		tr.msgs = append(tr.msgs[:len(tr.msgs)-1:len(tr.msgs)-1], data)
		return nil
	}
	tr.msgs = append(tr.msgs, data)
	tr.size += int64(len(data)) + 40
	tr.tally.add(len(data), false)
	return nil
}

// toolWire is the newest tool row with the note on it, if any. The marker is
// only this rendering (I7).
func (tr *transcript) toolWire() Wire {
	body := tr.text(tr.tool.Body)
	if body == "" {
		body = bodyNone // an empty content is refused by strict servers
	}
	if len(tr.note.Entries) > 0 {
		body = steer.Render(body, tr.note, tr.head.Key)
	}
	return Wire{Role: "tool", CallID: tr.tool.Call, Text: body, Private: tr.private[tr.tool.Call]}
}

// text makes any stored text fit for the wire: no trace of the key, and no
// control tokens where the endpoint would read them.
func (tr *transcript) text(s string) string {
	s, hits := tr.clean.Sanitize(s)
	tr.hits += hits
	return tr.plain(s)
}

// plain breaks control tokens where the endpoint would read them.
func (tr *transcript) plain(s string) string {
	if tr.head.Hosted {
		return s
	}
	return steer.NeutralizeControl(s)
}

// calls makes the model's calls fit for the wire. The key is in none of them
// (see batch); a broken token leaves arguments valid JSON, for it can only
// stand inside a string.
func (tr *transcript) calls(calls []session.Call) []session.Call {
	if tr.head.Hosted {
		return calls
	}
	out := slices.Clone(calls)
	for i := range out {
		out[i].Name, out[i].Args = tr.plain(out[i].Name), tr.plain(out[i].Args)
	}
	return out
}

// userText renders what people wrote. In shared sessions the runtime labels
// them m1, m2 …; a name is given once, as data.
func (tr *transcript) userText(u session.UserRow) string {
	var parts []string
	if len(u.Observed) > 0 {
		parts = append(parts, tr.observed(u.Observed))
	}
	if len(u.Again) > 0 {
		parts = append(parts, sentAgain)
	}
	for _, in := range slices.Concat(u.Again, u.AgainNotes, u.Inputs) {
		if in.Retry != 0 {
			continue // it has no text: what it sends again has
		}
		text := inputText(in)
		if in.Shared {
			_, known := tr.labels[in.From.ID]
			label := tr.label(in.From)
			if !known && in.From.Name != "" {
				label += fmt.Sprintf(" (name %q)", session.CleanLine(in.From.Name, 40))
			}
			text = label + ": " + indent(text)
		}
		parts = append(parts, text)
	}
	if u.Event != "" {
		parts = append(parts, "[from the gateway, not from a person]\n"+indent(u.Event))
	}
	return tr.text(joinUser(parts))
}

// sentAgain begins the inputs of a turn that failed or was stopped (/retry).
const sentAgain = "[asked again, because the attempt above ended before it was answered; what it did is above]"

func joinUser(parts []string) string { return strings.Join(parts, "\n\n") }

// label is the runtime's name for a person in this generation.
func (tr *transcript) label(p session.Person) string {
	l, ok := tr.labels[p.ID]
	if !ok {
		l = fmt.Sprintf("m%d", len(tr.labels)+1)
		tr.labels[p.ID] = l
	}
	return l
}

// indent keeps continuation lines from looking like another's label, quote
// marks them as data.
func indent(s string) string { return indented.Replace(s) }
func quote(s string) string  { return "> " + quoted.Replace(s) }

var indented, quoted = behindBreaks("  "), behindBreaks("> ")

// behindBreaks puts mark wherever some reader might see a line begin.
func behindBreaks(mark string) *strings.Replacer {
	var pairs []string
	for _, br := range []string{"\r\n", "\n", "\r", "\v", "\f", "\u0085", "\u2028", "\u2029"} {
		pairs = append(pairs, br, br+mark)
	}
	return strings.NewReplacer(pairs...)
}

// inputText is an input as the model reads it: quotes and forwarded text are
// marked as data, files are named.
func inputText(in session.Input) string {
	var b strings.Builder
	for i, p := range in.Parts {
		if i > 0 {
			b.WriteByte('\n')
		}
		if in.Late && p.Sent > 0 {
			b.WriteString("[written " + time.UnixMilli(p.Sent).UTC().Format("2006-01-02 15:04") + " UTC, received late] ")
		}
		if p.Quote != "" {
			b.WriteString("[in reply to]\n" + quote(p.Quote) + "\n")
		}
		if p.Forwarded != "" {
			b.WriteString("[forwarded, written by somebody else: " + p.Forwarded + "]\n" + quote(p.Text))
		} else {
			b.WriteString(p.Text)
		}
		for _, a := range p.Attachments {
			b.WriteString("\n" + attachmentText(a))
		}
	}
	text := strings.TrimSpace(b.String())
	if text == "" {
		return "(an empty message)"
	}
	return text
}

func attachmentText(a session.Attachment) string {
	kind := session.CleanLine(a.Kind, 20)
	switch {
	case a.Path != "":
		if name := session.CleanLine(a.Name, 80); name != "" {
			kind += fmt.Sprintf(" %q", name)
		}
		return fmt.Sprintf("[%s saved as %s, %d bytes]", kind, session.CleanLine(a.Path, 200), a.Size)
	case a.Note != "":
		return fmt.Sprintf("[%s: %s]", kind, session.CleanLine(a.Note, 200))
	}
	return fmt.Sprintf("[%s]", kind)
}

func withoutPrivate(calls []session.Call) []session.Call {
	out := make([]session.Call, len(calls))
	for i, c := range calls {
		c.Private = nil
		out[i] = c
	}
	return out
}
