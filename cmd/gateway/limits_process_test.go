//go:build linux

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// buttons are the data of all buttons in alice's chat that begin so, with the
// message that bears each.
func (f *fleet) buttons(prefix string) (data []string, msgs []int) {
	for _, m := range f.tg.Messages(alice) {
		for _, row := range m.Keyboard {
			for _, b := range row {
				if strings.HasPrefix(b.Data, prefix) {
					data, msgs = append(data, b.Data), append(msgs, m.ID)
				}
			}
		}
	}
	return data, msgs
}

// TestBudgetOutlivesReplicas: a task whose budget is used up waits; the gateway that
// runs it is killed, and the next, and the next: more often than a task may be that
// kills its gateways (F36). The task waits on, nobody is asked twice,
// and the first button lets it go on: its call ran once and it is answered once.
func TestBudgetOutlivesReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	// The model reports no usage, so what was set aside for the first request stays
	// counted: all of it, for it is more than the limit.
	f.limits = ", spend: {turn: 1000}"
	a := f.start("a", "telegram")
	waitFor(t, func() bool { return !f.polled("a", time.Time{}).IsZero() })
	f.tg.Say(alice, alice, "run echo x >> "+f.dir+"/paid")
	waitFor(t, func() bool { data, _ := f.buttons("more:"); return len(data) > 0 })
	f.tg.Say(alice, alice, "note-waits")
	for _, name := range []string{"b", "c", "d"} {
		next := f.start(name, "telegram")
		a.end(syscall.SIGKILL)
		// It may have had the seat before, when the other one's lease ran out on a
		// busy machine, and be in a long poll: that it polls anew tells nothing.
		waitFor(t, func() bool { tg, _ := next.seats(); return tg == "here" })
		// And it may have the seat before it has the turn: a /status of that moment
		// tells of no task, and none is sent after it.
		waitFor(t, func() bool {
			turns := next.running()
			return len(turns) == 1 && strings.Contains(turns[0], "Used up: what this task may use.")
		})
		shown := f.answers("waits: Used up: what this task may use.")
		f.tg.Say(alice, alice, "/status")
		waitFor(t, func() bool { return f.answers("waits: Used up: what this task may use.") > shown })
		a = next
	}
	data, msgs := f.buttons("more:")
	if len(data) != 1 || f.answers("Answered") != 0 || f.effects("paid") != 1 {
		t.Fatalf("asked %d times, answered %d times, ran %d times; want 1, 0, 1", len(data), f.answers("Answered"), f.effects("paid"))
	}
	pressed := time.Now()
	f.tg.Press(alice, msgs[0], alice, data[0])
	waitFor(t, func() bool { return f.answers("Answered run.") > 0 })
	t.Logf("answered %v after the press", time.Since(pressed).Round(time.Millisecond))
	waitFor(t, func() bool { return f.answers("waits") > 2 }) // the note, in that answer or its own
	if n := f.answers("Answered run."); n != 1 || f.effects("paid") != 1 {
		t.Errorf("answered %d times, ran %d times; want once", n, f.effects("paid"))
	}
}
