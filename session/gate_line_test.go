package session

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestGateFair: whatever comes and goes, no more have room than may, nobody who may
// have it stands in line, those taken over come first, of a chat the one who came
// first, and no chat has room given twice while another that may have it gets none.
func TestGateFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGate(rapid.IntRange(1, 4).Draw(t, "most"), rapid.IntRange(0, 3).Draw(t, "of a chat"))
		m := &gateModel{T: t, g: g, since: map[Key]map[Key]bool{}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			k := Key{Chat: rapid.SampledFrom([]ChatID{"a", "a", "a", "b", "c"}).Draw(t, "chat"), Thread: rapid.SampledFrom([]ThreadID{"1", "2", "3", "4"}).Draw(t, "topic")}
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0, 1, 2, 3:
				m.enter(k)
			case 4, 5, 6, 7:
				if i := slices.Index(m.in, k); i >= 0 {
					m.in = slices.Delete(m.in, i, i+1)
				}
				m.called(g.leave(k))
			case 8:
				g.forgo(k)
				m.line = slices.DeleteFunc(m.line, func(o Key) bool { return o == k })
			case 9:
				m.called(g.spare(rapid.Bool().Draw(t, "short")))
			}
			m.check()
		}
	})
}

// A gateModel knows in which order all came.
type gateModel struct {
	*rapid.T
	g     *gate
	in    []Key
	line  []Key
	since map[Key]map[Key]bool // chats that were given room since a chat in line was
}

func (m *gateModel) enter(k Key) {
	chat := Key{Chat: k.Chat}
	had := slices.Contains(m.in, k)
	switch ok := m.g.enter(k, chat, false, false); {
	case ok && !had:
		m.in = append(m.in, k)
	case !ok && !slices.Contains(m.line, k):
		m.line = append(m.line, k)
	}
}

func (m *gateModel) called(keys []Key) {
	for _, k := range keys {
		chat := Key{Chat: k.Chat}
		i := slices.Index(m.line, k)
		if i < 0 || slices.ContainsFunc(m.line[:i], func(o Key) bool { return o.Chat == k.Chat }) {
			m.Fatalf("%v was called; in line stand %v", k, m.line)
		}
		m.line = slices.Delete(m.line, i, i+1)
		m.in = append(m.in, k)
		delete(m.since, chat)
		waiting := map[Key]bool{}
		for _, o := range m.line {
			waiting[Key{Chat: o.Chat}] = true
		}
		for c := range waiting {
			if c == chat || m.g.chatMost > 0 && m.g.chats[c] >= m.g.chatMost {
				delete(m.since, c) // it has its share
				continue
			}
			if m.since[c] == nil {
				m.since[c] = map[Key]bool{}
			}
			if m.since[c][chat] {
				m.Fatalf("%v was given room twice while %v waited", chat, c)
			}
			m.since[c][chat] = true
		}
	}
}

func (m *gateModel) check() {
	for c := range m.since { // nobody of it waits any more
		if !slices.ContainsFunc(m.line, func(o Key) bool { return o.Chat == c.Chat }) {
			delete(m.since, c)
		}
	}
	if r := m.g.state(); r.Used != len(m.in) || r.Waiting != len(m.line) || r.Used > m.g.most {
		m.Fatalf("%+v; want %d in and %d in line", r, len(m.in), len(m.line))
	}
	for _, k := range m.line {
		if m.g.roomLocked(Key{Chat: k.Chat}) {
			m.Fatalf("%v may have room and stands in line", k)
		}
	}
	for _, k := range m.in {
		if m.g.stands(k) {
			m.Fatalf("%v has room and stands in line", k)
		}
	}
	for i := range m.g.lines {
		if len(m.g.lines[i].ring) != len(m.g.lines[i].queues) {
			m.Fatalf("chats %v, queues %v", m.g.lines[i].ring, m.g.lines[i].queues)
		}
	}
}

// TestGateMoves: who stands in line and is then a turn to be taken over stands in
// line once, before the new ones.
func TestGateMoves(t *testing.T) {
	g := newGate(1, 0)
	a, b, c := Key{Chat: "a"}, Key{Chat: "b"}, Key{Chat: "c"}
	for _, k := range []Key{a, b, c, b, c} {
		g.enter(k, k, false, false)
	}
	g.enter(c, c, true, false)
	var order []Key
	for k, next := a, []Key(nil); ; k = next[0] {
		if next = g.leave(k); len(next) == 0 {
			break
		}
		order = append(order, next...)
	}
	if !slices.Equal(order, []Key{c, b}) {
		t.Errorf("called %v; want %v", order, []Key{c, b})
	}
}

// TestGateAfterShortage: when memory was short, what stood in line does not begin
// all at once: a quarter of what ran does, and more as turns end (F44).
func TestGateAfterShortage(t *testing.T) {
	g := newGate(100, 0)
	name := func(n int) Key { return Key{Platform: "fake", Chat: ChatID(fmt.Sprint(n))} }
	for n := range 80 {
		g.enter(name(n), name(n), false, false)
	}
	g.spare(true)
	for n := 80; n < 300; n++ {
		g.enter(name(n), name(n), false, false)
	}
	for n := range 79 {
		g.leave(name(n))
	}
	if called := g.spare(false); len(called) != 19 {
		t.Fatalf("%d began beside one that ran when the shortage ended; want 19", len(called))
	}
	// As turns end and memory lasts, up to the cap.
	for next, ran := 80, 0; ran < 150; ran++ {
		g.leave(name(next))
		next++
	}
	if r := g.state(); r.Used != 71 || r.Waiting != 0 {
		t.Errorf("%d run, %d wait; want 71 and none", r.Used, r.Waiting)
	}
}
