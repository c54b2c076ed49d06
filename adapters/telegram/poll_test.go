package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// I1: the offset moves only when the door has taken the whole batch.
func TestOffsetWaitsForTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		for i := range 5 {
			w.api.Say(ann, ann, fmt.Sprint(i))
		}
		refused := 0
		w.door.set(func(d *door) {
			d.fail = func(m session.Message) error {
				if m.Text == "3" && refused < 4 {
					refused++
					return errors.New("store is full")
				}
				return nil
			}
		})
		w.run()
		if ms := w.got(); len(ms) != 3 {
			t.Fatalf("took %d before the refused one; want 3", len(ms))
		}
		w.settle(800 * time.Millisecond) // a short poll has been out by now
		if n, offset := w.api.Pending(); n != 2 || offset != 1003 || len(w.got()) != 0 {
			t.Errorf("%d unconfirmed, offset %d; want the refused one and the next", n, offset)
		}
		w.settle(30 * time.Second)
		var got []string
		for _, m := range w.got() {
			got = append(got, m.Text)
		}
		if fmt.Sprint(got) != "[3 4]" {
			t.Errorf("took %v; want the refused one, then the next", got)
		}
		if n, offset := w.api.Pending(); n != 0 || offset != 1005 {
			t.Errorf("%d unconfirmed, offset %d; want 0, 1005", n, offset)
		}
		w.stop()
	})
}

// X4, F33: what was not taken when Run ends is not confirmed, and comes again;
// what was taken has the same identity then (F11).
func TestStopDoesNotConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.Say(ann, ann, "taken")
		w.api.Say(ann, ann, "not taken")
		w.door.set(func(d *door) {
			d.fail = func(m session.Message) error {
				if m.Text == "not taken" {
					return errors.New("store is down")
				}
				return nil
			}
		})
		w.run()
		first := w.one()
		w.stop()
		if w.err != nil {
			t.Errorf("Run: %v", w.err)
		}
		if n, _ := w.api.Pending(); n != 2 {
			t.Errorf("%d unconfirmed; want 2", n)
		}
		w.door.set(func(d *door) { d.fail = nil })
		w.run()
		ms := w.got()
		if len(ms) != 2 || ms[0].Dedupe != first.Dedupe {
			t.Errorf("after the restart: %+v", ms)
		}
		w.stop()
	})
}

// A chat whose messages are slow to take does not hold up the others, and keeps
// its own order.
func TestChatsDoNotWaitForOneAnother(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.stop()
		stuck := make(chan struct{})
		for i := range 3 {
			w.api.Say(ann, ann, fmt.Sprint("a", i))
			w.api.Say(bob, bob, fmt.Sprint("b", i))
		}
		w.door.set(func(d *door) {
			d.fail = func(m session.Message) error {
				if m.Key.Chat == "7001" {
					<-stuck
				}
				return nil
			}
		})
		w.run()
		if got := texts(w.got()); got != "b0 b1 b2" {
			t.Errorf("took %q; want all of the other chat", got)
		}
		close(stuck)
		if got := texts(w.got()); got != "a0 a1 a2" {
			t.Errorf("took %q", got)
		}
	})
}

// T12: a chat that waits for a slow file holds up neither what others write
// meanwhile, nor is anything confirmed past it.
func TestT12SlowFileElsewhere(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.AddFile("p0", []byte("x"))
		w.api.Fault(telegramtest.Fault{Method: "getFile", Delay: 12 * time.Second})
		w.api.Say(ann, ann, "", telegramtest.Fields{"photo": []map[string]any{{"file_id": "p0", "file_unique_id": "u", "file_size": 1}}})
		w.api.Say(ann, ann, "behind it")
		w.settle(2 * time.Second)
		for i := range 5 {
			at := time.Now()
			w.api.Say(bob, bob, "/stop")
			w.settle(time.Second)
			if m := w.one(); m.Text != "/stop" || m.Received.Sub(at) > 700*time.Millisecond {
				t.Errorf("%d: %q after %v", i, m.Text, m.Received.Sub(at))
			}
		}
		if n, offset := w.api.Pending(); n != 7 || offset > 1000 {
			t.Errorf("%d unconfirmed, offset %d; want all seven", n, offset)
		}
		w.settle(10 * time.Second)
		if ms := w.got(); len(ms) != 2 || ms[0].Attachments[0].Path == "" || ms[1].Text != "behind it" {
			t.Errorf("took %+v", ms)
		}
		if n, offset := w.api.Pending(); n != 0 || offset != 1007 {
			t.Errorf("%d unconfirmed, offset %d; want 0, 1007", n, offset)
		}
	})
}

func texts(ms []session.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Text)
	}
	return strings.Join(out, " ")
}

// T28 on the server's side: of two pollers the older one is ended.
func TestTwoPollers(t *testing.T) {
	play(t, Options{}, func(w *world) {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if _, err := w.a.updates(ctx, 0, pollMost, pollWait); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("second poll: %v; want it to wait until its time is up", err)
		}
		if s := w.a.Status(); s.Err != wordsConflict {
			t.Errorf("status %+v", s)
		}
		w.api.Say(ann, ann, "hello")
		w.settle(time.Minute)
		if got := texts(w.got()); got != "hello" {
			t.Errorf("took %q", got)
		}
	})
}

// A poll's 429 is waited out; 5xx and lost connections are tried again.
func TestPollTrouble(t *testing.T) {
	play(t, Options{}, func(w *world) {
		for _, f := range []telegramtest.Fault{
			{Code: 429, Description: "Too Many Requests: retry after 30", RetryAfter: 30},
			{HTML: 502}, {HTML: 504}, {Code: 500, Description: "Internal Server Error"}, {Refuse: true},
		} {
			f.Method = "getUpdates"
			w.api.Fault(f)
		}
		w.api.Fault(telegramtest.Fault{Method: "getUpdates", LoseReply: true})
		at := time.Now()
		w.api.Say(ann, ann, "hello") // ends the poll that is out
		w.got()
		w.api.Say(ann, ann, "through all of it")
		w.settle(5 * time.Minute)
		ms := w.got()
		if texts(ms) != "through all of it" {
			t.Fatalf("took %q", texts(ms))
		}
		if d := ms[0].Received.Sub(at); d < 30*time.Second || d > 90*time.Second {
			t.Errorf("took %v; want more than the 30 s asked for", d)
		}
	})
}

// A batch in which no update has an id cannot be confirmed, and must not spin.
func TestNoIDs(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Update(`{"update_id":"x","message":{}}`)
		w.settle(time.Minute)
		if n := len(w.api.Calls("getUpdates")); n > 20 {
			t.Errorf("%d polls in a minute", n)
		}
	})
}

// A panic while reading an update is that update's fault alone.
func TestPanicIsKeptToOneUpdate(t *testing.T) {
	n := 0
	play(t, Options{Files: func(context.Context, session.Message) bool { n++; panic("strange") }}, func(w *world) {
		w.golden("T04_album.json")
		w.api.Say(ann, ann, "after")
		if got := texts(w.got()); got != "after" || n != 5 || w.a.Status().Undecodable != 5 {
			t.Errorf("took %q, status %+v", got, w.a.Status())
		}
	})
}

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// openclaw 33667: a poll that hangs is given up, the status says so, and sends
// that work meanwhile do not hide it.
func TestPollHangs(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Fault(telegramtest.Fault{Method: "getUpdates", Hang: true})
		w.api.Say(ann, ann, "hello") // ends the poll that is out; the next one hangs
		w.got()
		at := time.Now()
		w.api.Say(ann, ann, "still there?")
		down := time.Duration(0)
		for range 3 * 60 {
			w.settle(time.Second)
			if !w.a.Status().Connected && down == 0 {
				down = time.Since(at)
				if _, err := w.send(w.part(ann, "a send that works")); err != nil {
					t.Fatal(err)
				}
				if w.a.Status().Connected {
					t.Error("a send made it look connected")
				}
			}
		}
		if down == 0 || down > 90*time.Second {
			t.Errorf("the status told of it after %v; want within the time of a poll", down)
		}
		if got := texts(w.got()); got != "still there?" || !w.a.Status().Connected {
			t.Errorf("took %q, connected %v; want the message, once, and well again", got, w.a.Status().Connected)
		}
	})
}
