package redis

import (
	"errors"
	"slices"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// TestNewerForm: what a newer version has made of a session is left to it. It is
// not due here, nobody claims it, begins there or removes it; what is received for
// it is stored, where the newer version finds it (F35).
func TestNewerForm(t *testing.T) {
	ctx := t.Context()
	srv := redistest.Start(t)
	s := open(t, srv)
	accept(t, s, lane1, "m:1")
	due := func() bool {
		t.Helper()
		keys, err := s.Due(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(keys, lane1)
	}
	if !due() {
		t.Fatal("a lane of the first form is not due")
	}
	// As a newer version does when it begins a turn.
	p := s.partitionOf(lane1)
	srv.Do("HSET", p+"m:"+lane1.String(), "form", session.Form+1)
	srv.Do("ZREM", p+"due", lane1.String())

	if got := accept(t, s, lane1, "m:2"); got.Lane.Form != session.Form+1 || len(got.Lane.Slot) != 2 {
		t.Errorf("form %d with %d entries; want %d and 2", got.Lane.Form, len(got.Lane.Slot), session.Form+1)
	}
	if due() {
		t.Error("it is due here")
	}
	if at := srv.Do("ZSCORE", p+"due2", lane1.String()); at == nil {
		t.Error("the newer version would not find it")
	}
	l, err := s.Load(ctx, lane1)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"claim": func() error { _, err := s.Claim(ctx, lane1, "old", time.Second); return err },
		"begin": func() error {
			_, err := s.Begin(ctx, session.Begin{Op: "b", Key: lane1, Nonce: "old", TTL: time.Second, Gen: l.Gen, Seq: l.Seq,
				Take: []session.Take{{Ticket: 1, Version: 1}}, Rows: []session.Row{{Type: session.RowUser, Data: []byte("{}")}}})
			return err
		},
		"expire": func() error { return s.Expire(ctx, lane1, 0) },
		"delete": func() error { return s.Delete(ctx, lane1) },
	} {
		if err := f(); !errors.Is(err, session.ErrNewer) {
			t.Errorf("%s: %v; want %v", name, err, session.ErrNewer)
		}
	}
	after, err := s.Load(ctx, lane1)
	if err != nil {
		t.Fatal(err)
	}
	if after.Epoch != l.Epoch || after.Turn != 0 || len(after.Slot) != 2 || after.Form != session.Form+1 {
		t.Errorf("it became %+v", after)
	}
	if _, err := s.Stop(ctx, session.Stop{Key: lane1, Dedupe: "stop"}); err != nil {
		t.Errorf("what people ask for is stored: %v", err)
	}
}
