package storetest

import (
	"strings"
	"testing"
	"time"

	"coxswain/session"
)

// fastClock runs a thousand times as fast, so that leases of the model run out
// between calls that take microseconds.
func fastClock() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began) * 1000) }
}

const fastTTL = 200 * time.Millisecond // 200 µs

func TestHistories(t *testing.T) {
	now := fastClock()
	Histories(t, now, fastTTL, func(*testing.T) session.Store { return NewModel(now) })
}

// TestHistoriesSee holds the judge: a store that is broken is seen in some history.
func TestHistoriesSee(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages bool
		do       func(s *broken)
	}{
		{"a second claim succeeds", false, func(s *broken) {
			askedOf(s, func(l *lane, _ *claimed) { l.Nonce = "" })
		}},
		{"a claim forgets to raise the epoch", false, func(s *broken) {
			answeredOf(s, func(l *lane, _ *claimed, a *session.Begun) {
				if l.Epoch > 1 {
					l.Epoch--
					a.Lease.Epoch--
				}
			})
		}},
		{"the epoch is not checked", false, func(s *broken) {
			askedOf(s, func(l *lane, r *leased) { r.lease.Epoch = l.Epoch })
		}},
		{"the nonce is not checked", false, func(s *broken) {
			askedOf(s, func(l *lane, r *leased) { r.lease.Nonce = l.Nonce })
		}},
		{"a release leaves the lease", false, func(s *broken) {
			var was time.Time
			var who string
			askedOf(s, func(l *lane, _ *releasing) { was, who = l.Until, l.Nonce })
			answeredOf(s, func(l *lane, _ *releasing, _ *any) { l.Until, l.Nonce = was.Add(time.Hour), who })
		}},
		{"a lost reply is not answered from memory", false, func(s *broken) {
			askedOf(s, func(l *lane, _ *leased) { l.memoOp = "" })
		}},
		{"a message is accepted twice", true, func(s *broken) {
			askedOf(s, func(l *lane, r *session.Accept) { delete(l.seen, r.Dedupe) })
		}},
		{"what was taken can be taken again", true, func(s *broken) {
			s.before = func(l *lane, r any) {
				if b, ok := r.(*session.Begin); ok && l != nil {
					for _, take := range b.Take {
						if l.slot[take.Ticket] == nil {
							l.slot[take.Ticket] = &session.Entry{Ticket: take.Ticket, Version: take.Version}
						}
					}
				}
			}
		}},
		{"a drop says that it came in time", true, func(s *broken) {
			s.after = func(_ *lane, r, a any, err error) {
				if d, ok := a.(*session.Amended); ok && err == nil {
					d.Done = true
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			met, now := map[string]int{}, fastClock()
			for i := range 200 {
				s := &broken{Model: NewModel(now)}
				c.do(s)
				wrong := ""
				if c.messages {
					wrong = messageHistory(t.Context(), s, now, uint64(i), met)
				} else {
					wrong = leaseHistory(t.Context(), s, now, fastTTL, uint64(i), met)
				}
				if strings.HasPrefix(wrong, "no order") {
					t.Logf("seen in history %d", i)
					return
				} else if wrong != "" {
					t.Fatal(wrong)
				}
			}
			t.Error("not seen in 200 histories")
		})
	}
}
