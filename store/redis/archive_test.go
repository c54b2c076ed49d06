package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// TestTakeOver: from then on every other process is refused, at whatever step this
// one dies; the next that opens the store goes on with it.
func TestTakeOver(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	prefix := redistest.Prefix(t)
	own := func(o *Options) { o.Prefix, o.Partitions, o.Relaxed = prefix, 4, true }
	for stamped := range 6 { // of 4 partitions; 5 is the whole
		t.Run(fmt.Sprint(stamped), func(t *testing.T) {
			served, taker := open(t, srv, own), open(t, srv, own)
			accept(t, served, lane1, fmt.Sprint("before", stamped))
			was := taker.id
			if stamped == 5 {
				if err := taker.TakeOver(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				for i := -1; i < stamped; i++ {
					key, step := taker.cfgKey(), "begin"
					if i >= 0 {
						key, step = taker.partition(i)+"cnt", "stamp"
					}
					if err := taker.takeOver(t.Context(), key, fmt.Sprint("new", stamped), step); err != nil {
						t.Fatal(err)
					}
				}
			}
			next := open(t, srv, own)
			if next.id == was {
				t.Error("the data kept their id")
			}
			if _, err := served.Accept(t.Context(), session.Accept{Key: lane1, Dedupe: "late"}); !errors.Is(err, ErrWiped) {
				t.Errorf("a process that had the store open: got %v; want ErrWiped", err)
			}
			if a := accept(t, next, lane1, fmt.Sprint("before", stamped)); a.Outcome != session.AcceptDup {
				t.Errorf("what was there is not there: %v", a.Outcome)
			}
		})
	}
}

// TestExisting: a Redis without a store is refused and left as it is.
func TestExisting(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	if _, err := Open(t.Context(), srv.URL, Options{Relaxed: true, Existing: true}); err == nil || !strings.Contains(err.Error(), wordsNone) {
		t.Errorf("got %v", err)
	}
	if n := srv.Do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys were made", n)
	}
}
