package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"coxswain/session"
)

// Moved is Equivalence across a move: one drawn stream is played on the store
// that from opens, move carries everything to the one that to opens, and a second
// stream goes on there, against a Model that saw nothing but a restart. So dedupe
// marks, remembered replies, counters, open turns and half-sent outboxes must have
// come along. move closes nothing.
func Moved(t *testing.T, from, to func(t *testing.T, now func() time.Time) session.Store, move func(ctx context.Context, from, to session.Store) error) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		before, after := drawStream(rt), drawStream(rt)
		wrong := ""
		passed := t.Run("stream", func(t *testing.T) {
			clk := newClock()
			src := from(t, clk.now)
			p := newPlayer(t.Context(), clk, []side{{"from", src}}, newTally())
			wrong = p.judge(func() {
				p.play(before)
				if len(p.wrong) > 0 {
					return
				}
				clk.step(ttl + time.Second) // whoever held a lease is gone
				p.log = append(p.log, "moved")
				dst := to(t, clk.now)
				if err := move(t.Context(), src, dst); err != nil {
					p.wrong = append(p.wrong, "move: "+err.Error())
					return
				}
				p.model.Forget()
				p.model.stayBehind()
				p.sides = []side{{"to", dst}}
				p.play(after)
			})
		})
		switch {
		case wrong != "":
			rt.Fatal(wrong)
		case !passed:
			rt.Fatal("a store could not be opened, or failed while it was closed: see its subtest")
		}
	})
}

// Same says where two stores answer differently, "" if nowhere: every lane with
// all generations of its rows, its fates, what is due, and the counters. Leases
// and the time are left out.
func Same(ctx context.Context, got, want session.Store) string {
	var all [2]struct {
		Lanes   []picture
		Due     []session.Key
		OutDue  []session.Key
		Refused []string
	}
	for i, st := range []session.Store{got, want} {
		a := &all[i]
		note := func(err error) {
			if err != nil {
				a.Refused = append(a.Refused, err.Error())
			}
		}
		lanes, err := st.Sessions(ctx, "", 0)
		note(err)
		for _, l := range lanes {
			p := look(ctx, st, l.Key)
			p.Lane.Now, p.Lane.Nonce, p.Lane.Until = time.Time{}, "", time.Time{}
			a.Lanes = append(a.Lanes, p)
		}
		a.Due, err = st.Due(ctx, 0)
		note(err)
		a.OutDue, err = st.OutDue(ctx, 0)
		note(err)
		for _, keys := range [][]session.Key{a.Due, a.OutDue} {
			slices.SortFunc(keys, func(a, b session.Key) int { return strings.Compare(a.String(), b.String()) })
		}
	}
	return diff(all[0], all[1])
}
