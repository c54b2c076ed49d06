package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"coxswain/session"
	"coxswain/steer"
)

// What a transcript is on the wire. Field names are stable. Everything in it
// is text and is shown as text (I8).

type transcript struct {
	Chat   string         `json:"chat"`
	Title  string         `json:"title,omitempty"`
	Boot   string         `json:"boot"`
	Cursor string         `json:"cursor"` // give it back to get only what came since
	Whole  bool           `json:"whole"`  // these rows replace all the reader has
	Gen    int64          `json:"gen"`
	Turn   int64          `json:"turn"` // open, 0 = idle
	Rows   []row          `json:"rows"`
	Slot   []wait         `json:"slot"`
	Fates  []session.Fate `json:"fates"` // that changed since the cursor
	Memo   []item         `json:"memo"`
	Jobs   []job          `json:"jobs"`
	Status session.Status `json:"status"`
	Now    int64          `json:"now"` // Unix ms, by the store's clock
}

// A row is one event of a transcript.
type row struct {
	Seq    int64   `json:"seq"`
	Turn   int64   `json:"turn"`
	Type   string  `json:"type"` // user, fold, assistant, tool, steer
	At     int64   `json:"at"`   // Unix ms
	Inputs []input `json:"inputs,omitempty"`
	Event  string  `json:"event,omitempty"`
	Again  string  `json:"again,omitempty"` // what is asked once more (/retry)
	Text   string  `json:"text,omitempty"`
	Calls  []call  `json:"calls,omitempty"`
	End    string  `json:"end,omitempty"`
	Call   string  `json:"call,omitempty"`
	Name   string  `json:"name,omitempty"`
	Body   string  `json:"body,omitempty"`
	Failed bool    `json:"failed,omitempty"`
	NotRun bool    `json:"notrun,omitempty"`
	// Unknown: it was running when its process died. Stopped: by the person.
	Unknown bool   `json:"unknown,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
	Job     string `json:"job,omitempty"`
	On      int64  `json:"on,omitempty"`   // steer: seq of its tool row
	N       int64  `json:"n,omitempty"`    // steer: number of the note
	Step    int    `json:"step,omitempty"` // steer: the request it went in with
}

type call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
	Bad  string `json:"bad,omitempty"`
}

// An input is what one person wrote.
type input struct {
	Ticket    int64         `json:"ticket"`
	ID        string        `json:"id"` // of the first message
	IDs       []string      `json:"ids,omitempty"`
	From      string        `json:"from,omitempty"`
	Text      string        `json:"text"`
	Quote     string        `json:"quote,omitempty"`
	Forwarded string        `json:"forwarded,omitempty"`
	Files     []string      `json:"files,omitempty"`
	Explicit  string        `json:"explicit,omitempty"`
	Edited    bool          `json:"edited,omitempty"`
	Fate      *session.Fate `json:"fate,omitempty"` // absent when it is too old to be kept
}

// A wait is an entry of the slot.
type wait struct {
	Ticket  int64  `json:"ticket"`
	Version int64  `json:"version"`
	State   string `json:"state"` // queued, pending or held: where it stands now
	Want    string `json:"want"`
	At      int64  `json:"at"`
	Input   input  `json:"input"`
}

// A job is a call that goes on beside its turn.
type job struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"` // running, ended or lost; the latter two are about to be told
	Turn  int64  `json:"turn,omitempty"`
	Since int64  `json:"since"` // Unix ms
}

// What of long texts is sent: people read the ends.
const (
	bodyShown = 16 << 10
	argsShown = 8 << 10
)

// A cursor says what a reader has.
type cursor struct {
	gen, seq int64
	n        int64 // newest item, of this process
	changed  int64 // newest change of a fate, Unix ms
}

func (c cursor) text(boot string) string {
	return fmt.Sprintf("%s.%d.%d.%d.%d", boot, c.gen, c.seq, c.n, c.changed)
}

// parseCursor reads what text wrote; anything else is the zero cursor. Items
// of another process are not counted by ours.
func parseCursor(s, boot string) cursor {
	parts := strings.Split(s, ".")
	if len(parts) != 5 {
		return cursor{}
	}
	var v [4]int64
	for i := range v {
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || n < 0 {
			return cursor{}
		}
		v[i] = n
	}
	c := cursor{v[0], v[1], v[2], v[3]}
	if parts[0] != boot {
		c.n = 0
	}
	return c
}

// render makes the wire form of what is new for a reader at c.
func render(t session.Transcript, c cursor, memo []item, n int64, boot string) transcript {
	whole := c.seq == 0 || t.Gen != c.gen || t.After != c.seq
	if whole {
		c.changed = 0
	}
	out := transcript{
		Chat: string(t.Key.Chat), Title: t.Title, Boot: boot, Whole: whole, Gen: t.Gen, Turn: t.Turn, Status: t.Status,
		Rows: []row{}, Slot: []wait{}, Fates: []session.Fate{}, Memo: memo, Jobs: []job{}, Now: t.Now.UnixMilli(),
	}
	if out.Memo == nil {
		out.Memo = []item{}
	}
	next := cursor{gen: t.Gen, seq: t.After, n: n, changed: c.changed}
	fates := make(map[int64]session.Fate, len(t.Fates))
	for _, f := range t.Fates {
		fates[f.Ticket] = f
		next.changed = max(next.changed, f.Changed)
		if f.Changed >= c.changed { // the same millisecond again: no change is missed
			out.Fates = append(out.Fates, f)
		}
	}
	for _, r := range t.Rows {
		next.seq = max(next.seq, r.Seq)
		if ev, ok := renderRow(t.Key, r, fates); ok {
			out.Rows = append(out.Rows, ev)
		}
	}
	for _, e := range t.Slot {
		in := session.DecodeSteer(session.Row{Tick: e.Ticket, Data: e.Data})
		out.Slot = append(out.Slot, wait{
			Ticket: e.Ticket, Version: e.Version, State: string(standing(e, t.Turn)), Want: e.Want.String(),
			At: e.At.UnixMilli(), Input: renderInput(t.Key, in, fates),
		})
	}
	out.Cursor = next.text(boot)
	return out
}

// standing is where an entry stands now. A steer whose turn is over is a
// queued entry, whatever its sign said.
func standing(e session.Entry, turn int64) session.FateState {
	switch {
	case e.Held:
		return session.FateHeld
	case turn != 0 && e.Turn == turn && e.Want.String() == "steer":
		return session.FatePending
	}
	return session.FateQueued
}

func renderRow(chat session.Key, r session.Row, fates map[int64]session.Fate) (row, bool) {
	out := row{Seq: r.Seq, Turn: r.Turn, At: r.At.UnixMilli()}
	switch r.Type {
	case session.RowUser, session.RowFold:
		out.Type = "user"
		if r.Type == session.RowFold {
			out.Type = "fold"
		}
		u := session.DecodeUser(r)
		out.Event = clip(u.Event, bodyShown)
		if len(u.Again) > 0 {
			out.Again = clip(wordsAgain(slices.Concat(u.Again, u.AgainNotes)), bodyShown)
		}
		for _, in := range u.Inputs {
			if in.Retry != 0 {
				continue // it has no words of its own
			}
			out.Inputs = append(out.Inputs, renderInput(chat, in, fates))
		}
	case session.RowAssistant:
		a := session.DecodeAssistant(r)
		out.Type, out.Text, out.End = "assistant", a.Text, string(a.End)
		for _, c := range a.Calls {
			out.Calls = append(out.Calls, call{ID: c.ID, Name: c.Name, Args: clip(c.Args, argsShown), Bad: c.Bad})
		}
	case session.RowTool:
		t := session.DecodeTool(r)
		out.Type, out.Call, out.Name, out.Body = "tool", t.Call, t.Name, clip(t.Body, bodyShown)
		out.Failed, out.NotRun, out.Job = t.Failed, t.NotRun, t.Job
		out.Unknown, out.Stopped = t.Unknown, t.Stopped
	case session.RowSteer:
		in := session.DecodeSteer(r)
		out.Type, out.On, out.N, out.Step = "steer", r.On, r.N, fates[r.Tick].Step
		out.Inputs = []input{renderInput(chat, in, fates)}
	case session.RowHead:
		return row{}, false
	default:
		return row{}, false // of a newer version of this program
	}
	return out, true
}

func renderInput(chat session.Key, in session.Input, fates map[int64]session.Fate) input {
	out := input{
		Ticket: in.Ticket, From: session.CleanLine(in.From.Name, 40), Text: in.Text(), Explicit: in.Explicit, Edited: in.Edited,
	}
	if in.Retry != 0 {
		out.Text = fmt.Sprintf(wordsRetry, in.Retry)
	}
	for _, p := range in.Parts {
		out.IDs = append(out.IDs, string(session.LocalID(chat, p.ID)))
		if p.Quote != "" {
			out.Quote = clip(p.Quote, keepSaid)
		}
		if p.Forwarded != "" {
			out.Forwarded = p.Forwarded
		}
		for _, f := range p.Attachments {
			out.Files = append(out.Files, session.CleanLine(fileLine(f), 120))
		}
	}
	if len(out.IDs) > 0 {
		out.ID = out.IDs[0]
	}
	if f, ok := fates[in.Ticket]; ok {
		out.Fate = &f
	}
	return out
}

func fileLine(f session.Attachment) string {
	s := f.Kind
	for _, more := range []string{f.Name, f.Path, f.Note} {
		if more != "" {
			s += " · " + more
		}
	}
	return s
}

// clip cuts the middle out of what is longer than most bytes.
func clip(s string, most int) string {
	s = steer.Visible(s) // outside text: what is shown is what there is
	if len(s) <= most {
		return s
	}
	head, tail := most*2/3, len(s)-most/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + wordsCut(tail-head) + s[tail:]
}

// A state is what a page shows of a running turn. The first of a stream, of a
// turn or of a step is whole; others carry what changed.
type state struct {
	Turn    int64               `json:"turn"` // 0 = idle
	Rev     int64               `json:"rev,omitempty"`
	Whole   bool                `json:"whole,omitempty"`
	Phase   string              `json:"phase"`
	Since   int64               `json:"since,omitempty"` // Unix ms
	Now     int64               `json:"now"`
	Step    int                 `json:"step,omitempty"`
	Steps   int                 `json:"steps,omitempty"`
	Text    *string             `json:"text,omitempty"` // replaces the text
	Add     string              `json:"add,omitempty"`  // goes behind the text
	Tools   *[]session.ToolView `json:"tools,omitempty"`
	Notes   *[]session.NoteView `json:"notes,omitempty"`
	Notice  string              `json:"notice,omitempty"`
	Waiting int                 `json:"waiting,omitempty"`
	Done    bool                `json:"done,omitempty"`
	End     string              `json:"end,omitempty"`
}

// diff makes the state that brings a page from last to v. A text is sent up to
// its last whole character: more of it may come.
func diff(last, v session.View, first bool, now time.Time) state {
	s := state{
		Turn: v.Turn, Rev: v.Rev, Phase: v.Phase.String(), Since: v.Since.UnixMilli(), Now: now.UnixMilli(), Step: v.Step,
		Steps: v.Steps, Notice: v.Notice, Waiting: v.Waiting, Done: v.Done, End: string(v.End),
	}
	s.Whole = first || last.Turn != v.Turn
	switch {
	case s.Whole || !strings.HasPrefix(v.Text, last.Text):
		s.Text = &v.Text
	default:
		s.Add = v.Text[len(last.Text):]
	}
	if s.Whole || !slices.Equal(last.Tools, v.Tools) {
		tools := append([]session.ToolView{}, v.Tools...)
		s.Tools = &tools
	}
	if s.Whole || !slices.Equal(last.Notes, v.Notes) {
		notes := append([]session.NoteView{}, v.Notes...)
		s.Notes = &notes
	}
	return s
}

// settled is s without an incomplete character at its end.
func settled(s string) string {
	for i := 1; i <= min(utf8.UTFMax, len(s)); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			return s
		}
	}
	return s
}
