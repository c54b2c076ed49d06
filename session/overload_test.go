package session_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// TestOverload is F44: for a minute ten times more comes than can be worked off,
// nearly all of it in the topics of one forum. Those who write too much are told at
// the cap; everybody else has a turn every few seconds, and in the forum who waits
// longest; the process holds no more than the turns that run. Then all that was
// accepted is answered, once.
func TestOverload(t *testing.T) {
	const room, seconds, topics = 1, 60, 15
	people := []session.UserID{"bob", "cid"}
	play(t, set{mode: steer.Queue, running: room, takes: time.Second}, func(w *world) {
		synctest.Wait()
		idle, most, offered := runtime.NumGoroutine(), 0, int64(0)
		say := func(k session.Key, who session.UserID) {
			w.deliver(in(k, w.says(who, k.Chat, "work")))
			most = max(most, runtime.NumGoroutine()-idle)
			offered++
		}
		var last time.Time
		for s := range seconds {
			for n := range 9 {
				say(topic("forum", (s*9+n)%topics), "ann")
			}
			who := people[s%2]
			say(key(session.ChatID(who)), who)
			last = time.Now()
			time.Sleep(time.Second)
		}
		stats, err := w.store.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stats.Full == 0 || stats.Accepted+stats.Full != offered {
			t.Errorf("of %d messages %d were taken and %d refused at the cap", offered, stats.Accepted, stats.Full)
		}
		told := 0
		for n := range topics {
			for _, o := range w.sentOn(topic("forum", n)) {
				told += boolInt(o.Kind == session.PartNotice)
			}
		}
		if int64(told) != stats.Full {
			t.Errorf("%d were refused and %d told", stats.Full, told)
		}
		if most > 8 {
			t.Errorf("%d goroutines more than at rest; want a few for each of the %d turns", most, room)
		}
		w.wantServed(last, people)
		for synctest.Wait(); w.room().Waiting > 0; {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		after, _ := w.store.Stats(t.Context())
		if after.Consumed != stats.Accepted || after.Turns != stats.Accepted || after.InSlot != 0 {
			t.Errorf("of %d taken %d have begun in %d turns and %d wait", stats.Accepted, after.Consumed, after.Turns, after.InSlot)
		}
		if w.agent.most != room {
			t.Errorf("%d turns ran at once; want %d", w.agent.most, room)
		}
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wantServed checks that each of these people had a turn every four seconds until
// then, and that the topics of the forum had their first one in the order they came.
func (w *world) wantServed(until time.Time, people []session.UserID) {
	w.t.Helper()
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	for _, who := range people {
		var before time.Time
		for i, k := range w.agent.began {
			at := w.agent.times[i]
			if k != key(session.ChatID(who)) || at.After(until) {
				continue
			}
			if gap := at.Sub(before); !before.IsZero() && gap > 4*time.Second {
				w.t.Errorf("%s had no turn for %v", who, gap)
			}
			before = at
		}
		if until.Sub(before) > 4*time.Second {
			w.t.Errorf("%s had the last turn %v before the end", who, until.Sub(before))
		}
	}
	var order []session.Key
	for _, k := range w.agent.began {
		if k.Chat == "forum" {
			order = append(order, k)
		}
	}
	for i := range order[:15] {
		if want := topic("forum", i); order[i] != want {
			w.t.Errorf("the forum's turn %d is of %v; want %v", i, order[i], want)
			return
		}
	}
}
