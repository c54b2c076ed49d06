package session_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A bus carries wake-ups between the stores of several processes.
type bus struct {
	mu   sync.Mutex
	ears map[string]func(session.Key)
	deaf bool // wake-ups are lost
	// Subscriptions that end at once before one stands.
	broken int
	tries  int
}

// A replica is the shared store as one process has it.
type replica struct {
	session.Store
	bus  *bus
	name string
}

func (r replica) Subscribe(ctx context.Context, wake func(session.Key)) error {
	r.bus.mu.Lock()
	r.bus.tries++
	if r.bus.broken > 0 {
		r.bus.broken--
		r.bus.mu.Unlock()
		return errors.New("the subscription ended")
	}
	if r.bus.ears == nil {
		r.bus.ears = map[string]func(session.Key){}
	}
	r.bus.ears[r.name] = wake
	r.bus.mu.Unlock()
	wake(session.Key{})
	<-ctx.Done()
	return context.Cause(ctx)
}

func (r replica) wrote(key session.Key, err error) {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	for name, wake := range r.bus.ears {
		if name != r.name && err == nil && !r.bus.deaf {
			wake(key)
		}
	}
}

func (r replica) Accept(ctx context.Context, a session.Accept) (session.Accepted, error) {
	got, err := r.Store.Accept(ctx, a)
	r.wrote(a.Key, err)
	return got, err
}

func (r replica) Stop(ctx context.Context, s session.Stop) (session.Stopped, error) {
	got, err := r.Store.Stop(ctx, s)
	r.wrote(s.Key, err)
	return got, err
}

func (r replica) Post(ctx context.Context, p session.Post) (session.Posted, error) {
	got, err := r.Store.Post(ctx, p)
	r.wrote(p.Key, err)
	return got, err
}

func (r replica) Release(ctx context.Context, l session.Lease) error {
	err := r.Store.Release(ctx, l)
	r.wrote(l.Key, err)
	return err
}

// playTwo is play with a second process over the same store. It ends before the first.
func playTwo(t *testing.T, b *bus, s set, f func(w *world, other *session.Hub)) {
	t.Helper()
	s.wrap = func(st session.Store) session.Store { return replica{st, b, "one"} }
	play(t, s, func(w *world) {
		two := replica{w.store, b, "two"}
		w.other = &agent{end: make(chan session.Outcome), takes: s.takes}
		hub := session.NewHub(w.t.Context(), session.Options{
			Store: two, Agent: w.other, Outbox: w.out, Access: session.NewAccess(two, everyone), Nonce: "life2",
			Mode: func(session.Key) steer.Mode { return s.mode }, SteerFrom: "owner", LeaseTTL: 5 * time.Second, JobsOnEnd: "turn",
			HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
		})
		hub.Register(platform("fake"))
		run, stop := context.WithCancel(w.t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if err := hub.Run(run, time.Second); err != nil && !w.kills {
				w.t.Errorf("the other hub: %v", err)
			}
		}()
		defer func() { stop(); <-gone }()
		synctest.Wait()
		f(w, hub)
	})
}

// hands gives m to the other process.
func (w *world) hands(other *session.Hub, m session.Message) {
	w.t.Helper()
	if err := other.Deliver(w.t.Context(), m); err != nil {
		w.t.Fatalf("deliver %q: %v", m.Text, err)
	}
	synctest.Wait()
}

// TestSteerFromElsewhere: what another process stores for a turn that runs here
// is known to it at once, or, when the wake-up was lost, with the next renewal.
func TestSteerFromElsewhere(t *testing.T) {
	for _, c := range []struct {
		lost bool
		wait time.Duration
	}{{false, 0}, {true, 2 * time.Second}} {
		b := &bus{}
		playTwo(t, b, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
			w.deliver(w.says("ann", "ann", "a task"))
			time.Sleep(3 * time.Second) // nothing joins any more
			b.mu.Lock()
			b.deaf = c.lost
			b.mu.Unlock()
			w.hands(other, w.says("ann", "ann", "use March"))
			time.Sleep(c.wait)
			synctest.Wait()
			if n := w.agent.turn.Load().Steers(); n != 1 {
				t.Errorf("lost %v, after %v: %d steers wait; want 1", c.lost, c.wait, n)
			}
		})
	}
}

// TestStopFromElsewhere: a /stop that another process takes cancels the turn that
// runs here, with its jobs, at once.
func TestStopFromElsewhere(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		began := time.Now()
		w.hands(other, w.says("ann", "ann", "/stop"))
		if l := w.lane("ann"); l.Turn != 0 || time.Since(began) > 0 {
			t.Errorf("after %v turn %d is open; want none at once", time.Since(began), l.Turn)
		}
		if n := w.agent.stops.Load(); n != 1 {
			t.Errorf("jobs of the process that runs the turn were ended %d times; want 1", n)
		}
	})
}

// TestKillFromElsewhere: a job is ended by the process that runs it, whichever is
// told to, also when the turn that began it is over.
func TestKillFromElsewhere(t *testing.T) {
	for _, over := range []bool{false, true} {
		playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
			w.deliver(w.says("root", "root", "a task"))
			job := session.Job{ID: "j1", Name: "build", State: session.JobRunning, Owner: "life1"}
			if _, err := w.agent.turn.Load().Commit(w.t.Context(), session.Step{Jobs: []session.Job{job}}); err != nil {
				t.Fatal(err)
			}
			if over {
				w.finish("done")
			}
			w.hands(other, w.says("ann", "ann", "hello")) // another lane is none of it
			if id := w.agent.killed.Load(); id != nil {
				t.Fatalf("over %v: job %s was ended before it was told to", over, *id)
			}
			w.hands(other, w.says("root", "root", "/jobs kill j1"))
			if id := w.agent.killed.Load(); id == nil || *id != "j1" {
				t.Errorf("over %v: ended %v; want j1", over, id)
			}
		})
	}
}

// TestWakeStartsNobody: a wake-up costs nothing where nothing of the lane runs.
func TestWakeStartsNobody(t *testing.T) {
	b := &bus{}
	playTwo(t, b, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		loads := 0
		w.mu.Lock()
		w.faults = func(point string, when storetest.When) storetest.Fault {
			if point == "load" && when == storetest.Before {
				loads++
			}
			return storetest.None
		}
		w.mu.Unlock()
		w.hands(other, w.says("ann", "ann", "a task"))
		w.mu.Lock()
		defer w.mu.Unlock()
		if loads != 0 {
			t.Errorf("the process that has nothing to do with it read the lane %d times; want 0", loads)
		}
	})
}

// TestDeafEar: a subscription that ends is begun again, ever more slowly; then all
// is looked at, for hints were lost.
func TestDeafEar(t *testing.T) {
	b := &bus{broken: 1000}
	playTwo(t, b, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		time.Sleep(time.Minute)
		b.mu.Lock()
		if b.tries < 20 || b.tries > 70 { // of two processes
			t.Errorf("%d tries in a minute; want some", b.tries)
		}
		b.broken = 0
		b.mu.Unlock()
		w.hands(other, w.says("ann", "ann", "use March"))
		time.Sleep(6 * time.Second)
		w.hands(other, w.says("ann", "ann", "and April"))
		if n := w.agent.turn.Load().Steers(); n != 2 {
			t.Errorf("%d steers wait; want 2", n)
		}
	})
}

// TestWakeAll: the zero key has everything looked at: a lane of which nobody has
// told is begun at once, and a running turn learns what came in.
func TestWakeAll(t *testing.T) {
	b := &bus{deaf: true}
	playTwo(t, b, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		time.Sleep(3*time.Second + 10*time.Millisecond) // between two sweeps
		w.hands(other, w.says("ann", "ann", "use March"))
		stored := session.Accept{Key: key("bob"), Dedupe: "m:bob", Author: "bob", Msg: "b1", Data: []byte(`{"from":{"id":"bob"},"parts":[{"id":"b1","text":"hi"}]}`)}
		if _, err := w.store.Accept(w.t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		if n := w.agent.turn.Load().Steers(); n != 0 {
			t.Fatalf("%d steers are known before the wake-up", n)
		}
		running := w.agent.turn.Load()
		w.hub.Wake(session.Key{})
		synctest.Wait()
		if n := running.Steers(); n != 1 {
			t.Errorf("%d steers wait; want 1", n)
		}
		if l := w.lane("bob"); l.Turn != 1 {
			t.Errorf("turn %d of a lane nobody told of; want 1", l.Turn)
		}
	})
}

// reading is a platform whose people read sessions.
type reading struct {
	platform
	mu   sync.Mutex
	told []session.Key
}

func (r *reading) Changed(chat session.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, chat)
}

// TestReadersAreTold: a platform whose people read is told of its own chats, and
// of a session that lives in one of them by the chat.
func TestReadersAreTold(t *testing.T) {
	page := &reading{platform: "page"}
	play(t, set{mode: steer.Steer, shows: page}, func(w *world) {
		w.hub.Wake(key("ann"))
		w.hub.Wake(session.Key{Platform: "page", Chat: "p1", Line: 2})
		w.hub.Wake(session.Key{})
		want := []session.Key{{Platform: "page", Chat: "p1"}, {}}
		page.mu.Lock()
		defer page.mu.Unlock()
		if !slices.Equal(page.told, want) {
			t.Errorf("told of %v; want %v", page.told, want)
		}
	})
}

// TestKillReadsNothingOld: a job that began while the lane was being read is not
// taken for one that another process ended.
func TestKillReadsNothingOld(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		w.deliver(w.says("ann", "ann", "a task"))
		w.mu.Lock()
		w.faults = func(point string, when storetest.When) storetest.Fault {
			if point == "load" && when == storetest.After {
				return storetest.Pause(time.Second)
			}
			return storetest.None
		}
		w.mu.Unlock()
		w.hub.Wake(key("ann"))
		synctest.Wait() // the lane was read, and the answer is on its way
		job := session.Job{ID: "j1", Name: "build", State: session.JobRunning, Owner: "life1"}
		row := session.Row{Type: session.RowAssistant, Data: []byte(`{}`)}
		if _, err := w.agent.turn.Load().Commit(w.t.Context(), session.Step{Rows: []session.Row{row}, Jobs: []session.Job{job}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if id := w.agent.killed.Load(); id != nil {
			t.Errorf("job %s was ended by a lane that was read before it began", *id)
		}
	})
}

// TestAsideOfAnother: a question beside the turn is answered by the process that
// took it, by another when that one is gone, and is ended wherever it is asked.
func TestAsideOfAnother(t *testing.T) {
	playTwo(t, &bus{}, set{mode: steer.Steer}, func(w *world, other *session.Hub) {
		w.agent.slow = 5 * time.Second
		w.deliver(w.says("ann", "ann", "a task"))
		if err := w.hub.Deliver(w.t.Context(), w.says("ann", "ann", "/btw how far?")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := w.agent.asked.Load(); n != 1 {
			t.Fatalf("asked %d times; want 1", n)
		}
		w.hands(other, w.says("ann", "ann", "/stop"))
		if n := w.agent.cut.Load(); n != 1 {
			t.Errorf("a /stop elsewhere ended %d questions; want 1", n)
		}
		w.deliver(w.says("bob", "bob", "a task"))
		lost := session.Job{
			ID: "btw:x", Name: "btw", State: session.JobRunning, Owner: "another", At: time.Now().UnixMilli(),
			Data: []byte(`{"input":{"from":{"id":"bob"},"parts":[{"id":"x","text":"how far?"}]},"dedupe":"x"}`),
		}
		if _, err := (replica{w.store, &bus{}, "another"}).Post(w.t.Context(), session.Post{Key: key("bob"), Add: []session.Job{lost}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			wait time.Duration
			want int32
		}{{20 * time.Second, 1}, {12 * time.Second, 2}} {
			time.Sleep(c.wait)
			w.hub.Wake(key("bob"))
			synctest.Wait()
			if n := w.agent.asked.Load(); n != c.want {
				t.Errorf("%v later: asked %d times; want %d", c.wait, n, c.want)
			}
		}
		time.Sleep(10 * time.Second)
	})
}
