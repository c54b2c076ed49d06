package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// keysOf gives the keys a store made, without its prefix and partition.
func keysOf(srv *redistest.Server, s *Store) []string {
	var kinds []string
	for _, k := range srv.Do("KEYS", s.prefix+":{*").([]any) {
		_, kind, _ := strings.Cut(k.(string), "}:")
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// TestFootprint: what a lane leaves in Redis does not grow with its age: two
// spans of dedupe marks, the newest fates; and Delete leaves nothing.
func TestFootprint(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	clk := &testClock{t: time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)}
	s := open(t, srv, func(o *Options) { o.Relaxed, o.TestOnlyClock, o.Partitions = true, clk.now, 1 })
	for i := range fatesKept + 20 {
		turn(t, s, lane1, i)
		clk.step(7 * time.Hour)
	}
	var marks int
	for _, k := range keysOf(srv, s) {
		if strings.HasPrefix(k, "u") {
			marks++
		}
	}
	if marks != 2 {
		t.Errorf("hashes of dedupe marks after %d days: got %d; want 2", (fatesKept+20)*7/24, marks)
	}
	if n := srv.Do("HLEN", s.partitionOf(lane1)+"f:"+lane1.String()); n != int64(fatesKept) {
		t.Errorf("fates: got %v; want %d", n, fatesKept)
	}
	clk.step(200 * time.Hour) // an idle week: neither span counts any more
	accept(t, s, lane1, "m:late")
	for range 3 {
		if _, err := s.Reset(t.Context(), session.Reset{Key: lane1, Outs: []session.PartNew{{ID: "p", Kind: session.PartReply}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stop(t.Context(), session.Stop{Key: lane1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), lane1); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(srv, s); !slices.Equal(got, []string{"cnt"}) {
		t.Errorf("keys after Delete: got %v; want the counters only", got)
	}
}

// TestOneSlot: all keys of a lane and its partition carry one hash tag, and
// all lanes of a chat the same, whatever is in their names.
func TestOneSlot(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv)
	chat := session.Key{Platform: "telegram", Chat: "-100{7}:x"}
	for i, key := range []session.Key{chat, {Platform: "telegram", Chat: "-100{7}:x", Thread: "5"}, {Platform: "telegram", Chat: "-100{7}:x", User: "u"}} {
		turn(t, s, key, i)
		accept(t, s, key, "m:open")
	}
	tag := s.partitionOf(chat)
	n := 0
	for _, k := range srv.Do("KEYS", s.prefix+":*telegram*").([]any) {
		if !strings.HasPrefix(k.(string), tag) {
			t.Errorf("key %s: want the prefix %s", k, tag)
		}
		n++
	}
	if n < 3*6 {
		t.Errorf("got %d keys of three lanes; want at least six each", n)
	}
	spread := map[string]bool{}
	for i := range 2000 {
		spread[s.partitionOf(session.Key{Platform: "telegram", Chat: session.ChatID(fmt.Sprint(i))})] = true
	}
	if len(spread) != DefaultPartitions {
		t.Errorf("2,000 chats fall on %d partitions; want all %d", len(spread), DefaultPartitions)
	}
}

// TestPartitionIsForEver: the partition of a chat decides where its data lies,
// so the hash may never change.
func TestPartitionIsForEver(t *testing.T) {
	s := &Store{prefix: "gw", partitions: 64}
	for chat, want := range map[session.ChatID]string{"1": "gw:{p29}:", "-1001234567890": "gw:{p1d}:", "987654321012345678": "gw:{p23}:"} {
		if got := s.partitionOf(session.Key{Platform: "telegram", Chat: chat, Thread: "ignored"}); got != want {
			t.Errorf("%s: got %s; want %s", chat, got, want)
		}
	}
}

// TestReplicas is F10 and F14: three gateways on one Redis get one update at
// once, then claim one lane at once.
func TestReplicas(t *testing.T) {
	srv := redistest.Start(t)
	prefix := func(o *Options) { o.Prefix = "three" }
	replicas := []*Store{open(t, srv, prefix), open(t, srv, prefix), open(t, srv, prefix)}
	for i := range 20 {
		key := session.Key{Platform: "test", Chat: session.ChatID(fmt.Sprint(i))}
		outcomes := make(chan session.AcceptOutcome, 3)
		claims := make(chan error, 3)
		for n, s := range replicas {
			go func() {
				a, err := s.Accept(t.Context(), session.Accept{Key: key, Dedupe: "m:1", Data: []byte("{}")})
				if err != nil || a.Ticket != 1 {
					t.Errorf("accept: got ticket %d, error %v; want ticket 1", a.Ticket, err)
				}
				outcomes <- a.Outcome
				_, err = s.Claim(t.Context(), key, fmt.Sprint("n", n), time.Minute)
				claims <- err
			}()
		}
		ok, won := 0, 0
		for range replicas {
			if <-outcomes == session.AcceptOK {
				ok++
			}
		}
		for range replicas {
			if <-claims == nil {
				won++
			}
		}
		if ok != 1 || won != 1 {
			t.Fatalf("%d accepted and %d claimed; want one each", ok, won)
		}
	}
	if st := stats(t, replicas[0]); st.Accepted != 20 || st.Duplicates != 40 {
		t.Errorf("got %d accepted, %d duplicates; want 20, 40", st.Accepted, st.Duplicates)
	}
}

// TestClockSetBack is F38: the server's clock goes back an hour. The lease of
// a process that died before it is found and taken over; the lease of one that
// lives goes on with its next renewal.
func TestClockSetBack(t *testing.T) {
	clk := &testClock{t: time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)}
	s := open(t, redistest.Start(t), func(o *Options) { o.TestOnlyClock = clk.now })
	dead, alive := lane1, session.Key{Platform: "test", Chat: "2"}
	leases := map[session.Key]session.Lease{}
	for _, key := range []session.Key{dead, alive} {
		accept(t, s, key, "m:1")
		leases[key] = begin(t, s, key, "b", "old").Lease
	}
	clk.step(-time.Hour)
	if _, err := s.Renew(t.Context(), leases[alive]); err != nil {
		t.Fatal(err)
	}
	due, err := s.Due(t.Context(), 0)
	if err != nil || !slices.Equal(due, []session.Key{dead}) {
		t.Errorf("due: got %v, %v; want the lane of the dead", due, err)
	}
	if _, err := s.Claim(t.Context(), alive, "new", time.Minute); !errors.Is(err, session.ErrHeld) {
		t.Errorf("claim of the living: got %v; want ErrHeld", err)
	}
	b, err := s.Claim(t.Context(), dead, "new", time.Minute)
	if err != nil || b.Lane.Attempts != 1 {
		t.Errorf("claim of the dead: got attempts %d, error %v; want a recovery", b.Lane.Attempts, err)
	}
	if _, err := s.Renew(t.Context(), leases[dead]); !errors.Is(err, session.ErrFenced) {
		t.Errorf("renew by the dead: got %v; want ErrFenced", err)
	}
}

// TestClockSetBackWaits is F38 for what waits: of a part the rest of its wait is
// left, one that somebody dead was sending is taken over in time, and an input that
// was open is complete.
func TestClockSetBackWaits(t *testing.T) {
	clk := &testClock{t: time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)}
	s := open(t, redistest.Start(t), func(o *Options) { o.TestOnlyClock = clk.now })
	post := func(key session.Key) {
		outs := []session.PartNew{{ID: "p", Kind: session.PartFinal, Data: []byte("{}")}}
		if _, err := s.Post(t.Context(), session.Post{Key: key, Prefs: []byte("{}"), Outs: outs}); err != nil {
			t.Fatal(err)
		}
	}
	take := func(key session.Key, nonce string) (session.Part, bool, time.Duration) {
		p, ok, wait, err := s.OutTake(t.Context(), key, nonce, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return p, ok, wait
	}
	flooded, sending, open := lane1, session.Key{Platform: "test", Chat: "2"}, session.Key{Platform: "test", Chat: "3"}
	post(flooded)
	post(sending)
	take(flooded, "a")
	take(sending, "dead")
	if err := s.OutDone(t.Context(), flooded, "a", session.PartDone{ID: "p", State: session.PartPlanned, Wait: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	r := session.Accept{Key: open, Dedupe: "m:1", Data: []byte("{}"), Author: "u", Group: "g", Append: true, Open: 2 * time.Second}
	if _, err := s.Accept(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	clk.step(-time.Hour)
	due, err := s.OutDue(t.Context(), 0)
	if err != nil || len(due) != 2 {
		t.Errorf("outdue: got %v, %v; want both", due, err)
	}
	for _, key := range due {
		take(key, "b")
	}
	if _, ok, wait := take(flooded, "b"); ok || wait != 20*time.Second {
		t.Errorf("flooded: got %v, wait %v; want 20 s", ok, wait)
	}
	if _, ok, wait := take(sending, "b"); ok || wait != 10*time.Second {
		t.Errorf("being sent: got %v, wait %v; want 10 s", ok, wait)
	}
	clk.step(10 * time.Second)
	if p, ok, _ := take(sending, "b"); !ok || p.State != session.PartUnknown {
		t.Errorf("being sent by the dead: got %v, %v; want it as unknown", p.State, ok)
	}
	lanes, err := s.Due(t.Context(), 0)
	if err != nil || !slices.Contains(lanes, open) {
		t.Errorf("due: got %v, %v; want the lane with the open entry", lanes, err)
	}
	l, err := s.Load(t.Context(), open)
	if err != nil || l.Slot[0].IsOpen(l.Now) {
		t.Errorf("the entry is open, until %v at %v (%v)", l.Slot[0].Open, l.Now, err)
	}
}
