package steer

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The kinds of message a row of the table may speak of.
var (
	anyone    = func(Input) bool { return true }
	bystander = func(in Input) bool { return !in.MaySteer }
	explicit  = func(in Input) bool { return in.Explicit }
	answer    = func(in Input) bool { return in.Answers }
	followUp  = func(in Input) bool { return in.FirstRequest && in.WithinJoin && in.SameAuthor }
	recent    = func(in Input) bool { return in.WithinJoin && in.SameAuthor }
)

// table is the busy table cell by cell. The first row of the phase whose kind
// fits the message speaks for it.
var table = []struct {
	phase                   Phase
	kind                    string
	fits                    func(Input) bool
	queue, interrupt, steer Verb
}{
	{PhaseIdle, "anyone", anyone, Start, Start, Start},

	{PhasePreparing, "bystander", bystander, Enqueue, Enqueue, Enqueue},
	{PhasePreparing, "explicit", explicit, Enqueue, Replace, Pend},
	{PhasePreparing, "recent, same author", recent, Enqueue, Join, Join},
	{PhasePreparing, "other", anyone, Enqueue, Replace, Pend},

	{PhaseModel, "bystander", bystander, Enqueue, Enqueue, Enqueue},
	{PhaseModel, "explicit", explicit, Enqueue, Replace, Pend},
	{PhaseModel, "first request, recent, same author", followUp, Enqueue, Join, Join},
	{PhaseModel, "other", anyone, Enqueue, Replace, Pend},

	{PhaseShowing, "bystander", bystander, Enqueue, Enqueue, Enqueue},
	{PhaseShowing, "other", anyone, Enqueue, Replace, Pend},

	{PhaseTools, "bystander", bystander, Enqueue, Enqueue, Enqueue},
	{PhaseTools, "other", anyone, Enqueue, Replace, Pend},

	{PhaseAsking, "bystander", bystander, Enqueue, Enqueue, Enqueue},
	{PhaseAsking, "explicit", explicit, Enqueue, DenyThenReplace, WithdrawThenPend},
	{PhaseAsking, "answer", answer, Answer, Answer, Answer},
	{PhaseAsking, "other", anyone, Enqueue, DenyThenReplace, WithdrawThenPend},

	{PhaseCompacting, "bystander", bystander, Enqueue, Enqueue, Enqueue},
	{PhaseCompacting, "other", anyone, Enqueue, ReplaceAfter, Pend},

	{PhaseDraining, "anyone", anyone, Store, Store, Store},
}

func everyInput(yield func(Input)) {
	for phase := range Phase(len(phaseNames)) {
		for mode := range Mode(len(modeNames)) {
			for bits := range 1 << 6 {
				on := func(i int) bool { return bits>>i&1 == 1 }
				yield(Input{phase, mode, on(0), on(1), on(2), on(3), on(4), on(5)})
			}
		}
	}
}

// TestDecideTable plays every input there is against the table, and finds
// every row of the table spoken for.
func TestDecideTable(t *testing.T) {
	used := make([]int, len(table))
	everyInput(func(in Input) {
		for i, row := range table {
			if row.phase != in.Phase || !row.fits(in) {
				continue
			}
			used[i]++
			want := []Verb{Queue: row.queue, Interrupt: row.interrupt, Steer: row.steer}[in.Mode]
			if got := Decide(in); got != want {
				t.Errorf("%v, %s, mode %v: got %q; want %q (%+v)", in.Phase, row.kind, in.Mode, got, want, in)
			}
			return
		}
		t.Errorf("no row for %+v", in)
	})
	for i, row := range table {
		if used[i] == 0 {
			t.Errorf("row %v, %s speaks of no message", row.phase, row.kind)
		}
	}
}

func TestDecideProperties(t *testing.T) {
	reached := map[Verb]int{}
	input := rapid.Custom(func(t *rapid.T) Input {
		return Input{
			Phase:        Phase(rapid.IntRange(0, len(phaseNames)-1).Draw(t, "phase")),
			Mode:         Mode(rapid.IntRange(0, len(modeNames)-1).Draw(t, "mode")),
			Explicit:     rapid.Bool().Draw(t, "explicit"),
			FirstRequest: rapid.Bool().Draw(t, "first"),
			WithinJoin:   rapid.Bool().Draw(t, "within"),
			SameAuthor:   rapid.Bool().Draw(t, "same"),
			MaySteer:     rapid.Bool().Draw(t, "may"),
			Answers:      rapid.Bool().Draw(t, "answers"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		for _, in := range rapid.SliceOfN(input, 20, 20).Draw(t, "inputs") {
			got := Decide(in)
			reached[got]++
			checkVerb(t, in, got)
		}
	})
	t.Logf("reached: %v", reached)
	for v := Start; v <= Store; v++ {
		if reached[v] == 0 {
			t.Errorf("%v was never reached", v)
		}
	}
}

func checkVerb(t *rapid.T, in Input, got Verb) {
	if int(got) >= len(verbNames) || verbNames[got] == "" {
		t.Fatalf("%+v: %v is no verb", in, got)
	}
	if in.Explicit && (got == Join || got == Answer) {
		t.Fatalf("%+v: an explicit verb became %v", in, got)
	}
	if (in.Phase == PhaseIdle) != (got == Start) {
		t.Fatalf("%+v: got %v; a turn starts in idle and nothing else happens there", in, got)
	}
	if (in.Phase == PhaseDraining) != (got == Store) {
		t.Fatalf("%+v: got %v; draining stores and nothing else does", in, got)
	}
	if !in.MaySteer && got != Start && got != Enqueue && got != Store {
		t.Fatalf("%+v: a bystander's message became %v", in, got)
	}
	if in.Mode == Queue && got != Start && got != Enqueue && got != Store && got != Answer {
		t.Fatalf("%+v: mode queue disturbed the turn: %v", in, got)
	}
	if got == Join && !(in.WithinJoin && in.SameAuthor) {
		t.Fatalf("%+v: joined what it does not follow", in)
	}
}

func TestDecidePanicsOutsideTheTable(t *testing.T) {
	for _, in := range []Input{{Phase: Phase(len(phaseNames))}, {Mode: Mode(len(modeNames))}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v: no panic", in)
				}
			}()
			Decide(in)
		}()
	}
}

func TestNames(t *testing.T) {
	for p := range Phase(len(phaseNames)) {
		if got, err := ParsePhase(p.String()); got != p || err != nil {
			t.Errorf("ParsePhase(%q) = %v, %v", p, got, err)
		}
	}
	for m := range Mode(len(modeNames)) {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, err)
		}
	}
	for _, bad := range []string{"", "Queue", "steer ", "mode(7)"} {
		if _, err := ParseMode(bad); err == nil {
			t.Errorf("ParseMode(%q) gave no error", bad)
		}
		if _, err := ParsePhase(bad); err == nil {
			t.Errorf("ParsePhase(%q) gave no error", bad)
		}
	}
	for got, want := range map[string]string{
		fmt.Sprint(Verb(0)):          "verb(0)",
		fmt.Sprint(Store + 1):        "verb(11)",
		fmt.Sprint(WithdrawThenPend): "withdraw then pend",
		fmt.Sprint(Mode(3)):          "mode(3)",
		fmt.Sprint(RoleMember):       "member",
	} {
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

// slot writes a pending slot in one word per entry: author, mode (q, i, s),
// and o for open, h for held. Tickets count from 1.
func slot(words ...string) []Waiting {
	var out []Waiting
	for i, w := range words {
		e := Waiting{Ticket: int64(i + 1), Author: w[:1], Want: map[byte]Mode{'q': Queue, 'i': Interrupt, 's': Steer}[w[1]]}
		for _, c := range w[2:] {
			e.Open = e.Open || c == 'o'
			e.Held = e.Held || c == 'h'
		}
		out = append(out, e)
	}
	return out
}

func TestTake(t *testing.T) {
	for _, tt := range []struct {
		name     string
		waiting  []Waiting
		together bool
		want     []int64
	}{
		{"nothing waits", nil, false, nil},
		{"the lowest ticket alone", slot("aq", "aq", "bq"), false, []int64{1}},
		{"a steer takes the steers directly after it by its author", slot("as", "as", "as"), false, []int64{1, 2, 3}},
		{"not those of another", slot("as", "bs", "as"), false, []int64{1}},
		{"not those behind a queued entry", slot("as", "as", "aq", "as"), false, []int64{1, 2}},
		{"a queued entry takes no steers", slot("aq", "as"), false, []int64{1}},
		{"held entries are not there", slot("aqh", "as", "bsh", "as"), false, []int64{2, 4}},
		{"an interrupt goes before what is queued", slot("aq", "bq", "ai"), false, []int64{3}},
		{"all interrupts are one turn", slot("ai", "ai", "bi"), false, []int64{1, 2, 3}},
		{"with every steer before the last of them", slot("as", "ai", "bs", "aq", "bi", "as"), false, []int64{1, 2, 3, 5}},
		{"a held interrupt does not wait", slot("aq", "aih"), false, []int64{1}},
		{"an open entry stops it", slot("as", "aso", "as"), false, []int64{1}},
		{"even before an interrupt", slot("aq", "bqo", "ai"), false, []int64{1}},
		{"an open one first: nothing", slot("aqo", "ai"), false, nil},
		{"an open one that is held stops nothing", slot("aqoh", "aq"), false, []int64{2}},
		{"together takes all", slot("aq", "bs", "ai", "bq"), true, []int64{1, 2, 3, 4}},
		{"together without the held, up to the open", slot("aq", "bsh", "ai", "bqo", "aq"), true, []int64{1, 3}},
	} {
		if got := Take(tt.waiting, tt.together); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v; want %v", tt.name, got, tt.want)
		}
	}
}

func TestTakeProperties(t *testing.T) {
	var interrupts, steers, empty, partial int
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.Custom(func(t *rapid.T) Waiting {
			return Waiting{
				Want:   Mode(rapid.IntRange(0, 2).Draw(t, "want")),
				Author: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "author"),
				Open:   rapid.IntRange(0, 5).Draw(t, "open") == 5,
				Held:   rapid.IntRange(0, 3).Draw(t, "held") == 3,
			}
		})
		waiting := rapid.SliceOfN(entry, 0, 12).Draw(t, "waiting")
		ticket := int64(0)
		for i := range waiting {
			ticket += rapid.Int64Range(1, 3).Draw(t, "step")
			waiting[i].Ticket = ticket
		}
		together := rapid.Bool().Draw(t, "together")
		before := slices.Clone(waiting)
		got := Take(waiting, together)
		if !slices.Equal(before, waiting) {
			t.Fatal("Take wrote to its argument")
		}

		// What may be taken at all, and what stands there.
		byTicket := map[int64]Waiting{}
		var ready []Waiting
		for _, w := range waiting {
			if w.Held {
				continue
			}
			if w.Open {
				break
			}
			ready = append(ready, w)
			byTicket[w.Ticket] = w
		}
		lastInterrupt := int64(0)
		for i, ticket := range got {
			w, ok := byTicket[ticket]
			if !ok {
				t.Fatalf("took %d, which is held, open or behind an open one", ticket)
			}
			if i > 0 && ticket <= got[i-1] {
				t.Fatalf("not in ticket order: %v", got)
			}
			if w.Want == Interrupt {
				lastInterrupt = ticket
			}
		}
		if (len(got) == 0) != (len(ready) == 0) {
			t.Fatalf("took %v of %v", got, ready)
		}
		switch {
		case len(got) == 0:
			empty++
		case together:
			if len(got) != len(ready) {
				t.Fatalf("together left something: %v of %v", got, ready)
			}
		default:
			if len(got) < len(ready) {
				partial++
			}
			checkAlone(t, ready, got, lastInterrupt)
		}
		if lastInterrupt > 0 {
			interrupts++
		} else if len(got) > 1 {
			steers++
		}
	})
	t.Logf("with interrupts %d, several steers %d, nothing %d, some left %d", interrupts, steers, empty, partial)
	if interrupts == 0 || steers == 0 || empty == 0 || partial == 0 {
		t.Error("a kind of answer was never reached")
	}
}

// checkAlone holds an answer without together to the sentence of the rule.
func checkAlone(t *rapid.T, ready []Waiting, got []int64, lastInterrupt int64) {
	for _, w := range ready {
		taken := slices.Contains(got, w.Ticket)
		switch {
		case w.Want == Interrupt && !taken:
			t.Fatalf("interrupt %d was left", w.Ticket)
		case lastInterrupt > 0 && w.Want == Steer && taken != (w.Ticket < lastInterrupt):
			t.Fatalf("steer %d: taken %v, last interrupt %d", w.Ticket, taken, lastInterrupt)
		case lastInterrupt > 0 && w.Want == Queue && taken:
			t.Fatalf("queued %d went with an interrupt", w.Ticket)
		}
	}
	if lastInterrupt > 0 {
		return
	}
	if got[0] != ready[0].Ticket {
		t.Fatalf("took %v first; the lowest is %d", got[0], ready[0].Ticket)
	}
	for i, w := range ready[:len(got)] {
		if got[i] != w.Ticket || i > 0 && (w.Want != Steer || w.Author != ready[0].Author || ready[0].Want != Steer) {
			t.Fatalf("took %v of %v", got, ready)
		}
	}
	if n := len(got); n < len(ready) && ready[0].Want == Steer && ready[n].Want == Steer && ready[n].Author == ready[0].Author {
		t.Fatalf("left steer %d of the same author", ready[n].Ticket)
	}
}
