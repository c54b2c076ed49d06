package session

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rowsOf(n, size int) []Row {
	var rows []Row
	for i := range n {
		rows = append(rows, Row{Seq: int64(i + 1), Type: RowUser, Data: []byte(strings.Repeat("x", size))})
	}
	return rows
}

// What is kept of sessions in memory is bounded by bytes, the least recently
// used goes first, and the newest stays whatever its size (I12).
func TestHistoriesAreBounded(t *testing.T) {
	k := func(i int) Key { return Key{Platform: "fake", Chat: ChatID(fmt.Sprint(i))} }
	size := int64(100 + rowOverhead)
	h := newHistories(3 * size)
	for i := range 3 {
		h.put(k(i), 1, rowsOf(1, 100))
	}
	h.get(k(0), 1) // used: now 1 is the oldest
	h.put(k(3), 1, rowsOf(1, 100))
	for i, want := range []int{1, 0, 1, 1} {
		if got := len(h.get(k(i), 1)); got != want {
			t.Errorf("session %d: %d rows kept; want %d", i, got, want)
		}
	}
	h.put(k(4), 1, rowsOf(9, 100))
	if got := len(h.get(k(4), 1)); got != 9 || h.order.Len() != 1 {
		t.Errorf("one session over the bound: %d of its rows, %d sessions; want 9 and 1", got, h.order.Len())
	}
	if got := h.get(k(4), 2); got != nil {
		t.Errorf("another generation is given %d rows", len(got))
	}
	h.drop(k(4))
	h.drop(k(4))
	if h.size != 0 || h.order.Len() != 0 || len(h.byKey) != 0 {
		t.Errorf("after the last drop: %d bytes, %d sessions", h.size, h.order.Len())
	}
}

// The count of bytes is true after any sequence of uses: a count that drifts
// would end in keeping nothing, or everything.
func TestHistoriesCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(rapid.Int64Range(0, 5000).Draw(t, "most"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := Key{Platform: "fake", Chat: ChatID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "chat"))}
			gen := rapid.Int64Range(1, 2).Draw(t, "gen")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				h.get(key, gen)
			case 1:
				h.drop(key)
			default:
				// Within a generation rows are only ever added, or read anew.
				h.put(key, gen, rowsOf(rapid.IntRange(0, 12).Draw(t, "rows"), 100))
			}
			var size int64
			for e := h.order.Front(); e != nil; e = e.Next() {
				v := e.Value.(*history)
				var own int64
				for _, r := range v.rows {
					own += int64(len(r.Data)) + rowOverhead
				}
				if own != v.size || h.byKey[v.key] != e {
					t.Fatalf("%v: counted %d bytes; it has %d", v.key, v.size, own)
				}
				size += own
			}
			if size != h.size || len(h.byKey) != h.order.Len() {
				t.Fatalf("counted %d bytes of %d sessions; there are %d of %d", h.size, len(h.byKey), size, h.order.Len())
			}
			if h.size > h.most && h.order.Len() > 1 {
				t.Fatalf("%d bytes of %d sessions kept; want at most %d", h.size, h.order.Len(), h.most)
			}
		}
	})
}
