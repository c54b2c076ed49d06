package redis

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
)

func kept(j *journal, gen uint64, lane session.Key, size int) {
	j.keep(gen, journalCall{lane: lane, script: scriptAccept, partition: "p:", args: args{make([]byte, size)}})
}

// TestJournalBounds: a minute, so many calls, so many bytes, the newest (I12).
func TestJournalBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		for i := range journalCalls + 5 {
			kept(j, 0, session.Key{Chat: session.ChatID(fmt.Sprint(i))}, 1)
		}
		if n := len(j.pick(nil)); n != journalCalls {
			t.Errorf("calls: got %d; want %d", n, journalCalls)
		}
		if first := j.calls[0].lane.Chat; first != "5" {
			t.Errorf("the oldest kept: got %s; want 5", first)
		}
		time.Sleep(journalFor - time.Second)
		kept(j, j.now(), lane1, 1)
		time.Sleep(time.Second)
		if n := len(j.pick(nil)); n != 1 || j.bytes != 1 {
			t.Errorf("after a minute: got %d calls, %d bytes; want 1, 1", n, j.bytes)
		}
		for range 5 {
			kept(j, j.now(), lane1, journalBytes/4)
		}
		if n := len(j.pick(nil)); n != 4 || j.bytes > journalBytes {
			t.Errorf("large ones: got %d calls, %d bytes; want 4, at most %d", n, j.bytes, journalBytes)
		}
		j.forget(lane1)
		if n := len(j.pick(nil)); n != 0 || j.bytes != 0 {
			t.Errorf("after its lane was deleted: got %d calls, %d bytes; want none", n, j.bytes)
		}
	})
}

// TestJournalBetween: a call that succeeded while the others were being stored
// again was not among them, so it is owed.
func TestJournalBetween(t *testing.T) {
	j := newJournal()
	gen := j.now()
	kept(j, gen, lane1, 1)
	if owed := j.debts(); len(owed) != 0 {
		t.Errorf("without a failover: got %v owed; want nothing", owed)
	}
	j.pick(nil)
	kept(j, gen, lane2, 1)
	if owed := j.debts(); !owed["p:"] {
		t.Error("a call that began before: got nothing owed; want its partition")
	}
}

// TestJournalAfterRestart is F17: a server that comes back without its last
// second has it again before anything else is asked of it. What was refused,
// and a lane that was deleted, do not come back.
func TestJournalAfterRestart(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv)
	accept(t, s, lane1, "m:1")
	before := srv.Snapshot()
	accept(t, s, lane1, "m:2")
	accept(t, s, lane2, "m:3")
	if err := s.Delete(t.Context(), lane2); err != nil {
		t.Fatal(err)
	}
	post := session.Post{Key: lane1, Dedupe: "i:1", Prefs: []byte("{}"), Outs: []session.PartNew{{ID: "p", Kind: session.PartNotice}}}
	if _, err := s.Post(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	srv.Kill9()
	srv.Restore(before)
	srv.Restart()
	l := load(t, s, lane1)
	if len(l.Slot) != 2 || l.Slot[1].Ticket != 2 || string(l.Prefs) != "{}" || l.Out != 1 {
		t.Errorf("got %d entries, prefs %s, %d parts; want 2, {}, 1", len(l.Slot), l.Prefs, l.Out)
	}
	if load(t, s, lane2).Exists {
		t.Error("a deleted lane came back")
	}
	if st := stats(t, s); st.Accepted != 2 {
		t.Errorf("accepted: got %d; want 2", st.Accepted)
	}
}

// TestReplicaUnfit is F23 where it hurts late: a replica that does not sync is
// the primary after a failover. It is named.
func TestReplicaUnfit(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	fit := redistest.Replica(t, primary.Addr)
	bad := redistest.Replica(t, primary.Addr, "appendfsync everysec")
	never := redistest.Replica(t, primary.Addr, "appendonly no", "replica-priority 0")
	url := redistest.Sentinels(t, primary.Addr, 3)
	_, err := Open(t.Context(), url, Options{Prefix: redistest.Prefix(t)})
	if err == nil || !strings.Contains(err.Error(), bad.Addr+": appendfsync is everysec") ||
		strings.Contains(err.Error(), fit.Addr) || strings.Contains(err.Error(), never.Addr) {
		t.Errorf("got %v; want %s named alone", err, bad.Addr)
	}
	bad.Set("appendfsync", "always")
	if problems := openAt(t, url).Check(t.Context()); len(problems) != 0 {
		t.Errorf("all fit: got %v; want no problem", problems)
	}
	_, err = Open(t.Context(), "redis://"+fit.Addr, Options{})
	if err == nil || !strings.Contains(err.Error(), "is a replica") {
		t.Errorf("the url of a replica: got %v; want it said", err)
	}
}
