//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coxswain/session"
)

// transcript tells the life of one chat: what its person did, what the model was
// asked, the rows as they were stored, and the faults beside them, in order of
// time. Of chat -1 it tells what everybody did.
func (f *fleet) transcript(chat int) string {
	var all []entry
	for _, e := range f.log.lines {
		if e.chat == chat || e.chat == 0 || chat < 0 {
			all = append(all, e)
		}
	}
	l := newLook(f)
	defer l.close()
	for _, lane := range l.lanes() {
		if chat >= 0 && number(lane) != chat {
			continue
		}
		for gen := int64(1); gen <= lane.Gen; gen++ {
			rows, err := l.st.Rows(f.t.Context(), lane.Key, gen, 0, 0)
			if err != nil {
				f.t.Error(err)
			}
			for _, r := range rows {
				all = append(all, entry{r.At, chat, fmt.Sprintf("%s row %d.%d of turn %d: %s", lane.Key, gen, r.Seq, r.Turn, told(r))})
			}
		}
	}
	for _, m := range f.tg.Messages(firstChat + int64(chat) - 1) {
		all = append(all, entry{m.At, chat, fmt.Sprintf("bot sends %d (edited %d times): %s", m.ID, m.Edits, clip(m.Text))})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at.UnixMilli(), b.at.UnixMilli()) })
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s %s\n", e.at.Format("04:05.000"), e.text)
	}
	return b.String()
}

// told is a row in a line.
func told(r session.Row) string {
	switch r.Type {
	case session.RowHead:
		return "head"
	case session.RowUser, session.RowFold:
		u := session.DecodeUser(r)
		text := string(r.Type) + " " + u.Event
		for _, in := range u.Inputs {
			text += fmt.Sprintf(" ticket %d %s %q", in.Ticket, in.Explicit, in.Text())
		}
		return text
	case session.RowSteer:
		return fmt.Sprintf("steer, ticket %d, on %d: %q", r.Tick, r.On, session.DecodeSteer(r).Text())
	case session.RowAssistant:
		a := session.DecodeAssistant(r)
		text := fmt.Sprintf("assistant %q %s", a.Text, a.End)
		for _, c := range a.Calls {
			text += " calls " + c.ID + " " + c.Args
		}
		return text
	case session.RowTool:
		t := session.DecodeTool(r)
		return fmt.Sprintf("tool %s: %q job %q", t.Call, clip(t.Body), t.Job)
	}
	return string(r.Type)
}

// excerpt is what stands around the lines that name the first thing found, or the
// end.
func excerpt(text, found string) string {
	lines := strings.Split(text, "\n")
	word := wordRule.FindString(found)
	at := slices.IndexFunc(lines, func(l string) bool { return word != "" && strings.Contains(l, word) })
	if at < 0 {
		at = len(lines) - 40
	}
	return strings.Join(lines[max(0, at-15):min(len(lines), at+65)], "\n")
}
