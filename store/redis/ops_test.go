package redis

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

// An op is one operation of the store.
type op struct {
	name string
	do   func(context.Context) error
}

// opsOf are all operations of a store, those that end a lane last.
func opsOf(s session.Store) []op {
	le := session.Lease{Key: lane1, Epoch: 1, Nonce: "n1", TTL: time.Minute}
	return []op{
		{"load", func(ctx context.Context) error { _, err := s.Load(ctx, lane1); return err }},
		{"accept", func(ctx context.Context) error {
			_, err := s.Accept(ctx, session.Accept{Key: lane1, Dedupe: "m:every", Data: []byte("{}")})
			return err
		}},
		{"begin", func(ctx context.Context) error {
			_, err := s.Begin(ctx, session.Begin{Op: "every", Key: lane1, Nonce: "n1", TTL: time.Minute, Gen: 1})
			return err
		}},
		{"claim", func(ctx context.Context) error { _, err := s.Claim(ctx, lane1, "n1", time.Minute); return err }},
		{"renew", func(ctx context.Context) error { _, err := s.Renew(ctx, le); return err }},
		{"commit", func(ctx context.Context) error {
			_, err := s.Commit(ctx, le, session.Commit{Op: "every commit", Seq: 1})
			return err
		}},
		{"release", func(ctx context.Context) error { return s.Release(ctx, le) }},
		{"amend", func(ctx context.Context) error {
			_, err := s.Amend(ctx, session.Amend{Key: lane1, Ticket: 99})
			return err
		}},
		{"stop", func(ctx context.Context) error { _, err := s.Stop(ctx, session.Stop{Key: lane1}); return err }},
		{"post", func(ctx context.Context) error {
			_, err := s.Post(ctx, session.Post{Key: lane1, Prefs: []byte("{}")})
			return err
		}},
		{"rows", func(ctx context.Context) error { _, err := s.Rows(ctx, lane1, 1, 0, 0); return err }},
		{"due", func(ctx context.Context) error { _, err := s.Due(ctx, 0); return err }},
		{"outtake", func(ctx context.Context) error { _, _, _, err := s.OutTake(ctx, lane1, "n1", 0); return err }},
		{"outdone", func(ctx context.Context) error {
			return s.OutDone(ctx, lane1, "n1", session.PartDone{ID: "p", State: session.PartSent})
		}},
		{"outdue", func(ctx context.Context) error { _, err := s.OutDue(ctx, 0); return err }},
		{"fates", func(ctx context.Context) error { _, err := s.Fates(ctx, lane1, 0); return err }},
		{"seen", func(ctx context.Context) error { _, err := s.Seen(ctx, lane1, "m:1"); return err }},
		{"settle", func(ctx context.Context) error {
			return s.Settle(ctx, lane1, []session.FateSet{{Ticket: 1, State: session.FateSteered}})
		}},
		{"sessions", func(ctx context.Context) error { _, err := s.Sessions(ctx, "", 0); return err }},
		{"doc", func(ctx context.Context) error { _, _, err := s.Doc(ctx, "d"); return err }},
		{"putdoc", func(ctx context.Context) error { return s.PutDoc(ctx, "d", 0, []byte("d")) }},
		{"reserve", func(ctx context.Context) error {
			_, err := s.Reserve(ctx, session.Reserve{Op: "every", Meters: []session.Meter{{Name: "meter", Limit: 9, Period: time.Minute}}, Amount: 1})
			return err
		}},
		{"spent", func(ctx context.Context) error { return s.Spent(ctx, "every", 2) }},
		{"grant", func(ctx context.Context) error {
			_, err := s.Grant(ctx, session.Grant{Meter: "meter", Extra: 1, Mark: "every"})
			return err
		}},
		{"stats", func(ctx context.Context) error { _, err := s.Stats(ctx); return err }},
		{"reset", func(ctx context.Context) error { _, err := s.Reset(ctx, session.Reset{Key: lane1}); return err }},
		{"delete", func(ctx context.Context) error { return s.Delete(ctx, lane1) }},
		{"expire", func(ctx context.Context) error { return s.Expire(ctx, lane1, 0) }},
	}
}

// everyOp calls every operation of the store and gives their errors by name.
func everyOp(ctx context.Context, s session.Store) map[string]error {
	errs := map[string]error{}
	for _, o := range opsOf(s) {
		errs[o.name] = o.do(ctx)
	}
	return errs
}

// TestEveryOp keeps everyOp honest: it calls every method of session.Store,
// but Ping and Close, and on a healthy server all of them work.
func TestEveryOp(t *testing.T) {
	s := open(t, redistest.Start(t))
	begun(t, s)
	errs := everyOp(t.Context(), s)
	for name, err := range errs {
		// everyOp's begin finds a turn open, as it should.
		if err != nil && !(name == "begin" && errors.Is(err, session.ErrStale)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	methods := reflect.TypeFor[session.Store]()
	for i := range methods.NumMethod() {
		name := strings.ToLower(methods.Method(i).Name)
		if _, ok := errs[name]; !ok && name != "ping" && name != "close" {
			t.Errorf("everyOp does not call %s", name)
		}
	}
}
