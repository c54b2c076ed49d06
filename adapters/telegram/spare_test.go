package telegram

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
)

// TestSparePolls (F44): while memory is short one update is taken at a time and the
// next a moment later, so a /stop behind others gets through soon; all are taken,
// in order, and confirmed.
func TestSparePolls(t *testing.T) {
	var short atomic.Bool
	play(t, Options{Short: short.Load}, func(w *world) {
		w.settle(time.Second)
		short.Store(true)
		w.api.Say(ann, ann, "ends the poll that was out")
		w.settle(time.Second)
		w.one()
		for n := range 40 {
			w.api.Say(ann, ann, fmt.Sprint(n))
		}
		w.api.Say(bob, bob, "/stop")
		w.settle(time.Second)
		n := len(w.got())
		if n < 2 || n > 6 {
			t.Errorf("%d messages were taken in a second; want a few", n)
		}
		w.settle(11 * time.Second)
		got := w.got()
		if n+len(got) != 41 || got[len(got)-1].Text != "/stop" {
			t.Errorf("%d messages were taken in 12 s; want all 41, the /stop last", n+len(got))
		}
		short.Store(false)
		for n := range 40 {
			w.api.Say(ann, ann, fmt.Sprint(n))
		}
		w.settle(time.Second)
		if n := len(w.got()); n != 40 {
			t.Errorf("%d messages were taken in a second when it is over; want 40", n)
		}
		if n, _ := w.api.Pending(); n != 0 {
			t.Errorf("%d updates are not confirmed", n)
		}
	})
}

// TestSparePollsBehind: an update that is not taken does not hide the next one.
func TestSparePollsBehind(t *testing.T) {
	play(t, Options{Short: func() bool { return true }}, func(w *world) {
		w.settle(time.Second)
		w.door.set(func(d *door) {
			d.fail = func(m session.Message) error {
				if m.Text == "slow" {
					return fmt.Errorf("store is away")
				}
				return nil
			}
		})
		w.api.Say(ann, ann, "slow")
		w.api.Say(bob, bob, "/stop")
		w.settle(5 * time.Second)
		if got := w.got(); len(got) != 1 || got[0].Text != "/stop" {
			t.Errorf("took %+v; want the /stop", got)
		}
	})
}

// TestSpareHook: of what is pushed only a stop is taken; the rest comes again.
func TestSpareHook(t *testing.T) {
	var short atomic.Bool
	play(t, Options{Webhook: goodHook(), Short: short.Load}, func(w *world) {
		short.Store(true)
		hello := update1(1, 1, ann, "hello")
		stop := strings.Replace(update1(2, 2, ann, "/stop"), `"text":"/stop"`, `"text":"/stop","entities":[{"type":"bot_command","offset":0,"length":5}]`, 1)
		if got := w.ask("POST", "s3cret_-", hello); got != 503 {
			t.Errorf("a message is answered %d; want 503", got)
		}
		if got := w.ask("POST", "s3cret_-", stop); got != 200 || w.one().Text != "/stop" {
			t.Errorf("a stop is answered %d; want 200", got)
		}
		short.Store(false)
		if got := w.ask("POST", "s3cret_-", hello); got != 200 || w.one().Text != "hello" {
			t.Errorf("sent again it is answered %d; want 200", got)
		}
	})
}
