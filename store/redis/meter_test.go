package redis

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// spare is for how long a key stays behind its end, which is stored.
const spare = time.Minute

// TestMetersGoByThemselves: every key that counts what is used up has an end of
// its own at the server, and all lie in one partition.
func TestMetersGoByThemselves(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv)
	meters := []session.Meter{
		{Name: "day", Limit: 100, Period: 24 * time.Hour}, {Name: "minute", Limit: 100, Period: time.Minute}, {Name: "turn", Limit: 100},
	}
	for i := range 3 {
		r, err := s.Reserve(t.Context(), session.Reserve{Op: fmt.Sprint("o", i), Meters: meters, Amount: 10})
		if err != nil || r.Refused != "" {
			t.Fatalf("got %+v, %v", r, err)
		}
		if err := s.Spent(t.Context(), fmt.Sprint("o", i/2), 5); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Grant(t.Context(), session.Grant{Meter: "turn", Extra: 1, Mark: "g"}); err != nil {
			t.Fatal(err)
		}
	}
	keys := 0
	for _, k := range srv.Do("KEYS", s.prefix+":*:m[ot]:*").([]any) {
		keys++
		most := session.MeterIdle
		if strings.HasSuffix(k.(string), "mo:o0") || strings.HasSuffix(k.(string), "mo:o1") {
			most = session.SpentKept
		}
		if ttl := time.Duration(srv.Do("PTTL", k.(string)).(int64)) * time.Millisecond; ttl <= 0 || ttl > most+spare {
			t.Errorf("%s goes in %v; want in at most %v", k, ttl, most+spare)
		}
		if !strings.HasPrefix(k.(string), s.partition(0)) {
			t.Errorf("%s lies in another partition", k)
		}
	}
	if keys != 6 {
		t.Errorf("got %d keys; want 3 meters and 3 ops", keys)
	}
}

// TestMeterOutlivesTheServersTime: a key goes by the server's own time, and the
// window by the clock that the store is given, or that was set back (F38). A meter
// at the very end of its window, and what was taken from it, stay clearly longer.
func TestMeterOutlivesTheServersTime(t *testing.T) {
	srv := redistest.Start(t)
	clk := &testClock{t: time.Date(2026, time.March, 1, 9, 30, 59, 999e6, time.UTC)}
	s := open(t, srv, func(o *Options) { o.TestOnlyClock = clk.now })
	minute := []session.Meter{{Name: "minute", Limit: 100, Period: time.Minute}}
	for _, op := range []string{"open", "settled"} {
		if _, err := s.Reserve(t.Context(), session.Reserve{Op: op, Meters: minute, Amount: 10}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Spent(t.Context(), "settled", 5); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mt:minute", "mo:open", "mo:settled"} {
		ttl := time.Duration(srv.Do("PTTL", s.partition(0)+name).(int64)) * time.Millisecond
		if ttl < spare/2 || ttl > spare+time.Millisecond {
			t.Errorf("%s goes in %v, a millisecond before its end; want about %v", name, ttl, spare)
		}
	}
	clk.step(time.Millisecond) // and is of no effect, though the key is there
	r, err := s.Reserve(t.Context(), session.Reserve{Op: "open", Meters: minute, Amount: 1})
	if err != nil || r.Meters[0].Used != 1 {
		t.Errorf("in the next window: got %+v, %v; want 1 used", r, err)
	}
}

// TestMeterOfThree: 200 callers at three gateways over one Redis, whose calls cost
// up to twice what was set aside. What is over the limit is at most the surplus of
// the calls that were being made when it was reached: one each.
func TestMeterOfThree(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	loose := func(o *Options) { o.Relaxed, o.Prefix = true, "meters" }
	stores := []*Store{open(t, srv, loose), open(t, srv, loose), open(t, srv, loose)}
	const limit, estimate = 20_000, 100
	day := session.Meter{Name: "day", Limit: limit, Period: 24 * time.Hour}
	var spent, calls atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			st := stores[i%3]
			for n := 0; ; n++ {
				op := fmt.Sprint(i, ":", n)
				r, err := st.Reserve(t.Context(), session.Reserve{Op: op, Meters: []session.Meter{day}, Amount: estimate})
				if err != nil {
					t.Errorf("reserve: %v", err)
					return
				}
				if r.Refused != "" {
					return
				}
				actual := int64(estimate/2 + (i*7+n*13)%(3*estimate/2))
				calls.Add(1)
				spent.Add(actual)
				if err := st.Spent(t.Context(), op, actual); err != nil {
					t.Errorf("spent: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	r, err := stores[0].Reserve(t.Context(), session.Reserve{Meters: []session.Meter{day}})
	if err != nil || r.Meters[0].Used != spent.Load() {
		t.Errorf("the meter says %+v, %v; %d was spent", r, err, spent.Load())
	}
	if over := spent.Load() - limit; over > 200*estimate || spent.Load() < limit-2*estimate {
		t.Errorf("spent %d of %d in %d calls", spent.Load(), limit, calls.Load())
	}
	t.Logf("spent %d of %d in %d calls", spent.Load(), limit, calls.Load())
}
