//go:build linux

package chaos

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"coxswain/session"
	"coxswain/store"
	"coxswain/store/storetest"
)

// A look reads the store beside the gateways.
type look struct {
	f  *fleet
	st session.Store
}

func newLook(f *fleet) *look {
	f.t.Helper()
	st, err := store.Open(context.Background(), f.redis.URL, store.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	return &look{f: f, st: st}
}

func (l *look) close() { _ = l.st.Close() } // only read

// lanes are all sessions, with what waits in them.
func (l *look) lanes() (all []session.Lane) {
	l.f.t.Helper()
	list, err := l.st.Sessions(l.f.t.Context(), "", 0)
	if err != nil {
		l.f.t.Fatal(err)
	}
	for _, lane := range list {
		lane, err = l.st.Load(l.f.t.Context(), lane.Key)
		if err != nil {
			l.f.t.Fatal(err)
		}
		all = append(all, lane)
	}
	return all
}

// number is the person's whose chat a lane is of, 0 = a stranger's.
func number(l session.Lane) int {
	id, err := strconv.ParseInt(string(l.Key.Chat), 10, 64)
	if err != nil || id >= stranger {
		return 0
	}
	return int(id-firstChat) + 1
}

// open lists what is still to be done.
func (l *look) open() (all []violation) {
	for _, lane := range l.lanes() {
		add := func(format string, args ...any) {
			all = append(all, violation{chat: number(lane), text: fmt.Sprintf("%s: ", lane.Key) + fmt.Sprintf(format, args...)})
		}
		if lane.Turn != 0 {
			add("turn %d is open", lane.Turn)
		}
		for _, e := range lane.Slot {
			if !e.Held {
				add("ticket %d waits", e.Ticket)
			}
		}
		if lane.Out > 0 {
			add("%d parts are to be sent", lane.Out)
		}
		if len(lane.Jobs) > 0 {
			add("job %s is not told", lane.Jobs[0].ID)
		}
	}
	return all
}

// A reading is what the rows of all sessions hold.
type reading struct {
	*look
	times  map[string]int // words in the rows
	slot   map[string]bool
	finals map[int][]string // answers by chat
	failed map[int]int      // turns that failed, by chat: they crashed three gateways (F36)
	turns  map[session.EndKind]int
	steers int
	unsure int // calls with the result unknown
}

// check counts what must be zero, when all is at rest.
func (f *fleet) check() *reading {
	r := &reading{look: newLook(f), times: map[string]int{}, slot: map[string]bool{}, finals: map[int][]string{}, failed: map[int]int{}, turns: map[session.EndKind]int{}}
	defer r.close()
	var keys []session.Key
	for _, lane := range r.lanes() {
		keys = append(keys, lane.Key)
		r.lane(lane)
	}
	for _, v := range storetest.Check(f.t.Context(), r.st, keys) {
		kind, chat := invariant, 0
		if key, _, ok := strings.Cut(v, " "); ok && strings.HasPrefix(key, "telegram:") {
			if id, err := strconv.Atoi(strings.Trim(strings.Split(key, ":")[1], ":/")); err == nil && id < stranger {
				chat = id - firstChat + 1
			}
		}
		f.log.wrong(kind, chat, "%s", v)
	}
	for _, p := range f.people {
		r.words(p)
		r.answers(p)
	}
	r.effects()
	for _, p := range f.tg.Problems() {
		f.log.wrong(forgiven, 0, "%s", p)
	}
	return r
}

func wordsOf(ins ...session.Input) (all []string) {
	for _, in := range ins {
		for _, part := range in.Parts {
			all = append(all, wordRule.FindAllString(part.Text, -1)...)
		}
	}
	return all
}

// lane reads the rows of all generations, and holds the beginnings of turns
// against I3: before a lower ticket go only a steer, a join, an interrupt, and what
// was written after /stop (what that holds may be run later, by a press).
func (r *reading) lane(lane session.Lane) {
	chat, overtaken := number(lane), int64(0)
	interrupts := chat > 0 && r.f.people[chat-1].mode == "interrupt"
	for gen := int64(1); gen <= lane.Gen; gen++ {
		rows, err := r.st.Rows(r.f.t.Context(), lane.Key, gen, 0, 0)
		if err != nil {
			r.f.t.Fatal(err)
		}
		for _, row := range rows {
			switch row.Type {
			case session.RowUser, session.RowFold:
				ins := session.DecodeUser(row).Inputs
				for _, w := range wordsOf(ins...) {
					r.times[w]++
				}
				if row.Type == session.RowFold || len(ins) == 0 || interrupts {
					break
				}
				if ins[0].Ticket < overtaken && !r.pressed(chat, ins[0].Ticket) {
					r.f.log.wrong(disorder, chat, "turn %d begins with ticket %d, after ticket %d began one", row.Turn, ins[0].Ticket, overtaken)
				}
				if !slices.ContainsFunc(ins, func(in session.Input) bool { return in.Explicit == "interrupt" }) {
					overtaken = max(overtaken, ins[0].Ticket)
				}
			case session.RowSteer:
				r.steers++
				for _, w := range wordsOf(session.DecodeSteer(row)) {
					r.times[w]++
				}
			case session.RowTool:
				if session.DecodeTool(row).Unknown {
					r.unsure++
				}
			case session.RowAssistant:
				a := session.DecodeAssistant(row)
				if a.End != "" {
					r.turns[a.End]++
				}
				if a.End == session.EndFailed {
					r.failed[chat]++
				}
				if a.End == session.EndAnswered {
					r.finals[chat] = append(r.finals[chat], a.Text)
				}
			}
		}
	}
	for _, e := range lane.Slot {
		for _, w := range wordsOf(session.DecodeSteer(session.Row{Tick: e.Ticket, Data: e.Data})) {
			r.slot[w] = true
		}
	}
}

// pressed reports whether a ticket was held and then run by a press.
func (r *reading) pressed(chat int, ticket int64) bool {
	return chat > 0 && r.f.people[chat-1].ran[strconv.FormatInt(ticket, 10)]
}

// words counts what was lost or run twice. A text that was edited may run in
// either version, or as it was first and with the other as a note.
func (r *reading) words(p *person) {
	for key, w := range p.said {
		n := r.times[key]
		if r.slot[key] {
			n++
		}
		if n > 1 {
			r.f.log.wrong(twice, p.n, "%q was run %d times", w.text, n)
		}
		if w.may == mayEdit && (r.times[w.edit] > 0 || r.slot[w.edit]) {
			n++
		}
		if n == 0 && w.may != mayDrop {
			r.f.log.wrong(lost, p.n, "%q is nowhere", w.text)
		}
	}
}

// answers wants each answer in the chat once, or also marked as a possible repeat
// (I9), and each failure told.
func (r *reading) answers(p *person) {
	shown, marked := map[string]int{}, map[string]int{}
	for _, m := range r.f.tg.Messages(p.id) {
		if text, ok := strings.CutPrefix(m.Text, "(possible repeat)"); ok {
			marked[strings.TrimSpace(text)]++
			continue
		}
		shown[m.Text]++
	}
	told, why := 0, 0
	for text := range union(shown, marked) {
		switch {
		case strings.Contains(text, "This task could not finish"):
			why++
			fallthrough
		case strings.Contains(text, "Failed again, for the same reason"):
			told += shown[text] + marked[text]
		}
	}
	if told < r.failed[p.n] || why == 0 && told > 0 {
		r.f.log.wrong(missing, p.n, "%d turns failed, %d failures were told, the reason %d times", r.failed[p.n], told, why)
	}
	times := map[string]int{}
	for _, text := range r.finals[p.n] {
		times[text]++
		switch {
		case shown[text]+marked[text] == 0:
			r.f.log.wrong(missing, p.n, "%q was never sent", text)
		case shown[text] > 1:
			r.f.log.wrong(twoFinals, p.n, "%q was sent %d times without a mark", text, shown[text])
		case times[text] > 1:
			r.f.log.wrong(twoFinals, p.n, "%q ends two turns", text)
		}
	}
}

func union(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

var effectLine = regexp.MustCompile(`(?m)^effect (\d+)$`)

// effects counts calls that ran more than once: each writes its number.
func (r *reading) effects() {
	data, err := os.ReadFile(r.f.model.effects)
	if err != nil {
		r.f.t.Errorf("no tool left a trace: %v", err)
	}
	times := map[string]int{}
	for _, m := range effectLine.FindAllStringSubmatch(string(data), -1) {
		if times[m[1]]++; times[m[1]] == 2 {
			n, _ := strconv.Atoi(m[1])
			r.f.log.wrong(effectTwice, r.f.model.chat(n), "call %s ran twice", m[1])
		}
	}
}

// leftovers are processes that still work in the directory of the run.
func (f *fleet) leftovers() {
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, link := range all {
		cwd, err := os.Readlink(link)
		if err != nil {
			continue // gone, or another's
		}
		if strings.HasPrefix(cwd, f.dir) {
			cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline")) // gone meanwhile
			f.log.wrong(left, 0, "%s: %s", link, strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
}
