package sim

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/store/storetest"
)

// TestStopWithLostReply: the store did the /stop and its reply was lost. The
// command comes again as a duplicate; the background job is dead all the same.
func TestStopWithLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, defaults())
		w.model.script = []reply{{calls: []scriptCall{{tool: "shell", arg: "make", took: time.Hour}}}, {say: "in the background"}}
		var lost atomic.Bool
		w.hook = func(point string, when storetest.When) storetest.Fault {
			if point == "stop" && when == storetest.After && lost.CompareAndSwap(false, true) {
				return storetest.LostReply
			}
			return storetest.None
		}
		w.start()
		say := func(id, text string) session.Message {
			return session.Message{
				Key: room, ID: session.MessageID(id), From: session.Person{ID: "alice", Name: "alice"}, Private: true, Addressed: true,
				Text: text, Dedupe: "m:room:" + id, Sent: time.Now(), Received: time.Now(),
			}
		}
		w.deliver(say("#1", "build"))
		time.Sleep(6 * time.Second)
		w.deliver(say("#2", "tell me when done")) // the call goes on as a job
		time.Sleep(3 * time.Second)
		if n := w.box.running(); n != 1 {
			t.Fatalf("%d jobs run; want 1", n)
		}
		w.deliver(say("#3", "/stop"))
		w.quiet()
		if n := w.box.running(); n != 0 || !lost.Load() {
			t.Errorf("%d jobs run after /stop; reply lost: %v", n, lost.Load())
		}
		if l, err := w.store.Load(context.Background(), room); err != nil || len(l.Jobs) != 0 {
			t.Errorf("jobs stored: %v, %v", l.Jobs, err)
		}
		w.stop()
		for _, v := range check(w) {
			t.Errorf("invariant: %s", v)
		}
	})
}

// running counts the background jobs.
func (b *toolbox) running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.jobs)
}
