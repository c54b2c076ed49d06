package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// What writers write in any minute is below what a journal keeps of one (10,000
// calls, docs/replicas.md): what is beyond that is rightly not stored again, and
// says nothing about the store.
const (
	freely = 3000                  // as fast as it goes
	slowly = 10 * time.Millisecond // each one behind those: 6,000 in a minute
)

// writers accept inputs, each in lanes of its own, until they are stopped.
type writers struct {
	t    *testing.T
	s    *Store
	stop atomic.Bool
	wg   sync.WaitGroup

	mu      sync.Mutex
	acked   map[string]session.Key // by dedupe mark
	last    time.Time
	longest time.Duration // between two acks, of all writers together
	n       atomic.Int64
	sent    atomic.Int64
	pace    *time.Ticker
}

func startWriters(t *testing.T, s *Store, n int) *writers {
	w := &writers{t: t, s: s, acked: map[string]session.Key{}, last: time.Now(), pace: time.NewTicker(slowly)}
	for id := range n {
		w.wg.Go(func() {
			for i := 0; !w.stop.Load(); i++ {
				key := session.Key{Platform: "test", Chat: session.ChatID(fmt.Sprint(id)), Thread: session.ThreadID(fmt.Sprint(i / 20))}
				dedupe := fmt.Sprintf("m:%d:%d", id, i)
				if w.sent.Add(1) > freely {
					<-w.pace.C
				}
				_, err := s.Accept(t.Context(), session.Accept{Key: key, Dedupe: dedupe, Author: "ann", Msg: session.MessageID(dedupe), Data: []byte("{}")})
				if err != nil {
					t.Errorf("accept: %v; want a pause", err)
					return
				}
				w.note(dedupe, key)
			}
		})
	}
	t.Cleanup(func() { w.stop.Store(true); w.wg.Wait(); w.pace.Stop() })
	return w
}

func (w *writers) note(dedupe string, key session.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked[dedupe] = key
	w.longest, w.last = max(w.longest, time.Since(w.last)), time.Now()
	w.n.Add(1)
}

// more waits for that many acks from now on.
func (w *writers) more(n int64) {
	w.t.Helper()
	n += w.n.Load()
	redistest.Until(w.t, 30*time.Second, "acknowledged writes", func() bool { return w.n.Load() >= n })
}

// end stops the writers and gives how many acknowledged inputs are not there,
// and how many are there more than once.
func (w *writers) end() (lost, doubled int) {
	w.t.Helper()
	w.stop.Store(true)
	w.wg.Wait()
	if err := w.s.sweepJournal(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	there := map[string]int{}
	lanes, err := w.s.Sessions(w.t.Context(), "", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range lanes {
		for _, e := range l.Slot {
			for _, id := range e.Msgs {
				there[string(id)]++
			}
		}
	}
	for dedupe := range w.acked {
		if there[dedupe] == 0 {
			lost++
		}
	}
	for _, n := range there {
		if n > 1 {
			doubled++
		}
	}
	if st := stats(w.t, w.s); st.InSlot != int64(len(there)) {
		w.t.Errorf("waiting: got %d; want the %d that are there", st.InSlot, len(there))
	}
	return lost, doubled
}

// watched is a primary behind a relay with two replicas and three Sentinels.
func watched(t *testing.T) (primary *redistest.Server, r *relay, url string) {
	t.Helper()
	primary = redistest.Start(t)
	r = newRelay(t, primary.Addr)
	for range 2 {
		redistest.Replica(t, r.Addr)
	}
	return primary, r, redistest.Sentinels(t, r.Addr, 2)
}

// openWaiting opens a store that waits for replicas, and keeps no journal: that
// would hide what WAIT lets through.
func openWaiting(t *testing.T, url string, n int) *Store {
	t.Helper()
	s := openAt(t, url, func(o *Options) { o.Wait = Wait{Replicas: n, Timeout: 200 * time.Millisecond} })
	s.journal.keepFor = 0
	return s
}

// pause is what F19 allows, 5 s, and one more election: three Sentinels on a
// busy machine may each vote for themselves, and then wait for 4 s.
const pause = 10 * time.Second

// keptAll ends the writers: all that was acknowledged is there, once, and nobody
// waited for longer than pause.
func (w *writers) keptAll(t *testing.T) {
	t.Helper()
	lost, doubled := w.end()
	if lost != 0 || doubled != 0 || w.longest > pause {
		t.Errorf("got %d lost, %d doubled, a pause of %s; want none, none, at most %s", lost, doubled, w.longest, pause)
	}
	t.Logf("%d acknowledged, %d lost, a pause of %s", len(w.acked), lost, w.longest.Round(time.Millisecond))
}

// TestFailoverConfirmed is F19: the primary is killed under load and a replica
// takes over. With WAIT 1 no acknowledged input is lost, and writers see a pause.
func TestFailoverConfirmed(t *testing.T) {
	t.Parallel()
	primary, _, url := watched(t)
	w := startWriters(t, openWaiting(t, url, 1), 4)
	w.more(200)
	primary.Kill9()
	w.more(100)
	w.keptAll(t)
}

// TestSplitBrainConfirmed is F19 with the primary cut off together with its
// clients: it goes on, and with WAIT 1 acknowledges nothing.
func TestSplitBrainConfirmed(t *testing.T) {
	t.Parallel()
	_, r, url := watched(t)
	w := startWriters(t, openWaiting(t, url, 1), 4)
	w.more(200)
	r.cut()
	w.more(100)
	w.keptAll(t)
}

// TestSplitBrainJournal is the same without WAIT: what the old primary took
// alone is stored again. A lease that it gave alone is lost: two gateways then
// hold one lane with one epoch, and exactly one can write (F20).
func TestSplitBrainJournal(t *testing.T) {
	t.Parallel()
	_, r, url := watched(t)
	var log lines
	with := func(o *Options) { o.Prefix, o.Logger = "split", log.logger() }
	s, other := openAt(t, url, with), openAt(t, url, with)
	accept(t, s, lane1, "m:lease")
	begun := begin(t, s, lane1, "b0", "n0") // of a gateway that is gone
	if err := s.Release(t.Context(), begun.Lease); err != nil {
		t.Fatal(err)
	}
	w := startWriters(t, s, 4)
	w.more(200)
	r.cut()
	a, err := s.Claim(t.Context(), lane1, "nonce a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	redistest.Until(t, 20*time.Second, "another primary", func() bool { return log.has("stored again") })
	w.more(100)
	// The other gateway hears of it from a Sentinel of its own, maybe later.
	redistest.Until(t, 20*time.Second, "the other gateway to follow", func() bool { return load(t, other, lane1).Nonce != "nonce a" })
	b, err := other.Claim(t.Context(), lane1, "nonce b", time.Minute)
	if err != nil || b.Lease.Epoch != a.Lease.Epoch {
		t.Fatalf("the second claim: got epoch %d, %v; want %d again, for the first was lost", b.Lease.Epoch, err, a.Lease.Epoch)
	}
	row := session.Commit{Op: "c", Seq: b.Lane.Seq, Rows: []session.Row{{Type: session.RowAssistant, Data: []byte("x")}}}
	if _, err := s.Commit(t.Context(), a.Lease, row); !errors.Is(err, session.ErrFenced) {
		t.Errorf("who lost its claim writes: got %v; want ErrFenced", err)
	}
	if _, err := other.Commit(t.Context(), b.Lease, row); err != nil {
		t.Errorf("who holds the lane writes: got %v; want no error", err)
	}
	lost, doubled := w.end()
	if lost != 0 || doubled != 0 {
		t.Errorf("got %d lost, %d doubled; want none", lost, doubled)
	}
	if len(w.acked) >= journalCalls {
		t.Errorf("%d acknowledged: more than a journal keeps", len(w.acked))
	}
	t.Logf("%d acknowledged, 0 lost, 0 doubled: %s", len(w.acked), log.line("stored again"))
}

// lines is a log that a test can ask.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) has(what string) bool { return l.line(what) != "" }

// line gives the first line with that in it.
func (l *lines) line(what string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, what) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// of is how many inputs of a chat were acknowledged.
func (w *writers) of(chat session.Key) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range w.acked {
		if key.Chat == chat.Chat {
			n++
		}
	}
	return n
}
