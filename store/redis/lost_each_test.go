package redis

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
	"coxswain/store/storetest"
)

// TestEachReplyLost loses the reply of every write in the life of a lane once:
// each gives the answer the model gives to a single call, and changes the lane
// once (F8, F9).
func TestEachReplyLost(t *testing.T) {
	clk := &testClock{t: time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC)}
	p := newProxy(t, redistest.Start(t).Addr)
	redis := openAt(t, p.url(), func(o *Options) { o.TestOnlyClock = clk.now })
	loadAll(t, redis) // else what gets lost is the answer that the script is not known
	model := storetest.NewModel(clk.now)
	ctx := t.Context()
	le := session.Lease{Key: lane1, Epoch: 1, Nonce: "n1", TTL: time.Minute}
	le2 := session.Lease{Key: lane1, Epoch: 2, Nonce: "n2", TTL: time.Minute}
	part := func(id string) []session.PartNew {
		return []session.PartNew{{ID: id, Kind: session.PartFinal, Data: []byte(id)}}
	}
	in := func(dedupe string, want steer.Mode, turn int64) session.Accept {
		return session.Accept{Key: lane1, Dedupe: dedupe, Want: want, Turn: turn, Author: "ann", Msg: "m", Data: []byte("d" + dedupe), Fate: session.FateQueued}
	}
	take := func(s session.Store, nonce string) (any, error) {
		p, ok, wait, err := s.OutTake(ctx, lane1, nonce, time.Hour)
		return []any{p, ok, wait}, err
	}
	for _, step := range []struct {
		name string
		do   func(s session.Store) (any, error)
	}{
		{"accept", func(s session.Store) (any, error) { return s.Accept(ctx, in("m:1", steer.Queue, 0)) }},
		{"accept with no mark", func(s session.Store) (any, error) { return s.Accept(ctx, in("", steer.Queue, 0)) }},
		{"begin", func(s session.Store) (any, error) {
			return s.Begin(ctx, session.Begin{
				Op: "b", Key: lane1, Nonce: "n1", TTL: time.Minute, Gen: 1, Take: []session.Take{{Ticket: 1, Version: 1}},
				Rows: []session.Row{{Type: session.RowUser, Data: []byte("u")}}, Outs: part("p1"),
			})
		}},
		{"renew", func(s session.Store) (any, error) { return s.Renew(ctx, le) }},
		{"outtake", func(s session.Store) (any, error) { return take(s, "n1") }},
		{"outdone unknown", func(s session.Store) (any, error) {
			return nil, s.OutDone(ctx, lane1, "n1", session.PartDone{ID: "p1", State: session.PartUnknown})
		}},
		{"outtake of the unknown", func(s session.Store) (any, error) { return take(s, "n1") }},
		{"outdone sent", func(s session.Store) (any, error) {
			return nil, s.OutDone(ctx, lane1, "n1", session.PartDone{ID: "p1", State: session.PartSent})
		}},
		{"accept of a steer", func(s session.Store) (any, error) { return s.Accept(ctx, in("m:3", steer.Steer, 1)) }},
		{"commit", func(s session.Store) (any, error) {
			return s.Commit(ctx, le, session.Commit{
				Op: "c", Seq: 1, Rows: []session.Row{{Type: session.RowTool, Data: []byte("t")}}, Drain: true, Outs: part("p2"), TakeOut: true,
				Jobs: []session.Job{{ID: "j", Owner: "n1", State: session.JobRunning}},
			})
		}},
		{"settle", func(s session.Store) (any, error) {
			return nil, s.Settle(ctx, lane1, []session.FateSet{{Ticket: 3, State: session.FateSteered}})
		}},
		{"amend with no mark", func(s session.Store) (any, error) {
			return s.Amend(ctx, session.Amend{Key: lane1, Ticket: 2, Version: 1, Data: []byte("edited"), Outs: part("p3")})
		}},
		{"release", func(s session.Store) (any, error) { return nil, s.Release(ctx, le) }},
		{"claim", func(s session.Store) (any, error) { return s.Claim(ctx, lane1, "n2", time.Minute) }},
		{"post with no mark", func(s session.Store) (any, error) {
			return s.Post(ctx, session.Post{Key: lane1, Prefs: []byte("{}"), Outs: part("p4"), Jobs: []session.Job{{ID: "j", State: session.JobEnded}}})
		}},
		{"stop with no mark", func(s session.Store) (any, error) { return s.Stop(ctx, session.Stop{Key: lane1, Outs: part("p5")}) }},
		{"stop all", func(s session.Store) (any, error) {
			return s.Stop(ctx, session.Stop{Key: lane1, Dedupe: "s:2", Drop: true})
		}},
		{"commit of the end", func(s session.Store) (any, error) {
			return s.Commit(ctx, le2, session.Commit{Op: "e", Seq: 3, Rows: []session.Row{{Type: session.RowAssistant}}, End: true})
		}},
		{"putdoc", func(s session.Store) (any, error) { return nil, s.PutDoc(ctx, "d", 0, []byte("1")) }},
		{"putdoc again", func(s session.Store) (any, error) { return nil, s.PutDoc(ctx, "d", 1, []byte("2")) }},
		{"reserve", func(s session.Store) (any, error) {
			return s.Reserve(ctx, session.Reserve{Op: "o", Meters: []session.Meter{{Name: "d", Limit: 9, Period: time.Hour}, {Name: "t", Limit: 9}}, Amount: 5})
		}},
		{"reserve refused", func(s session.Store) (any, error) {
			return s.Reserve(ctx, session.Reserve{Op: "o2", Meters: []session.Meter{{Name: "t", Limit: 9}}, Amount: 5})
		}},
		{"spent", func(s session.Store) (any, error) { return nil, s.Spent(ctx, "o", 3) }},
		{"grant", func(s session.Store) (any, error) {
			return s.Grant(ctx, session.Grant{Meter: "t", Extra: 2, Mark: "g"})
		}},
		{"reserve of what was granted", func(s session.Store) (any, error) {
			return s.Reserve(ctx, session.Reserve{Op: "o3", Meters: []session.Meter{{Name: "t", Limit: 9}}, Amount: 8})
		}},
		{"reset with no mark", func(s session.Store) (any, error) { return s.Reset(ctx, session.Reset{Key: lane1, Outs: part("p6")}) }},
		{"delete", func(s session.Store) (any, error) { return nil, s.Delete(ctx, lane1) }},
		{"post elsewhere", func(s session.Store) (any, error) { return s.Post(ctx, session.Post{Key: lane2, Title: "t"}) }},
		{"expire", func(s session.Store) (any, error) { return nil, s.Expire(ctx, lane2, 0) }},
	} {
		want, err := step.do(model)
		if err != nil {
			t.Fatalf("%s on the model: %v", step.name, err)
		}
		p.loseReplies(1)
		got, err := step.do(redis)
		if err != nil || p.left() != 0 {
			t.Fatalf("%s: got error %v with %d replies left to lose; want none", step.name, err, p.left())
		}
		sameJSON(t, step.name, got, want)
		wantLane, _ := model.Load(ctx, lane1)
		sameJSON(t, "the lane after "+step.name, load(t, redis, lane1), wantLane)
		clk.step(time.Second)
	}
}

func sameJSON(t *testing.T, what string, got, want any) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if !bytes.Equal(g, w) {
		t.Errorf("%s: got %s; want %s", what, g, w)
	}
}

// loadAll makes the server know every script.
func loadAll(t *testing.T, s *Store) {
	t.Helper()
	files, err := fs.Glob(luaFiles, "lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".lua")
		if name == "prelude" || name == "cfg" || name == "stamp" {
			continue
		}
		if err := loadScript(name).Load(t.Context(), s.client).Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
