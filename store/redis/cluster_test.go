package redis

import (
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store/redis/redistest"
	"coxswain/store/storetest"
)

// TestCluster runs every operation on a cluster of three, which refuses what
// touches two slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, false)
	prefix := func(o *Options) { o.Prefix = "wake" }
	s := openAt(t, c.URL, prefix)
	keys := subscribed(t, openAt(t, c.URL, prefix))
	begun(t, s)
	if k := next(t, keys); k != lane1 {
		t.Errorf("got a wake-up for %v; want %v", k, lane1)
	}
	for _, n := range c.Nodes {
		n.FlushScripts()
	}
	for name, err := range everyOp(t.Context(), s) {
		if err != nil && name != "begin" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if problems := s.Check(t.Context()); len(problems) != 0 {
		t.Errorf("check: got %v; want no problem", problems)
	}
	c.Nodes[1].Set("appendfsync", "everysec")
	problems := s.Check(t.Context())
	if len(problems) != 1 || problems[0].Server != c.Nodes[1].Addr {
		t.Errorf("check of an unfit primary: got %v; want one problem, of %s", problems, c.Nodes[1].Addr)
	}
}

// TestClusterConformance is the whole suite of session.Store on a cluster of
// three, which need not sync: nothing is killed here.
func TestClusterConformance(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, false, "appendfsync no")
	storetest.Run(t, func(t *testing.T, now func() time.Time) session.Store {
		return openAt(t, c.URL, func(o *Options) { o.TestOnlyClock, o.Partitions, o.Relaxed = now, 8, true })
	})
}

// TestSlotsMove is F21 for real: under load one node's slots go to another and
// come back, key by key, so that MOVED, ASK and TRYAGAIN are answered. Nothing is
// lost or done twice.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, false)
	s := openAt(t, c.URL, func(o *Options) { o.Partitions = 4 })
	w := startWriters(t, s, 4)
	w.more(100)
	moved := 0
	for round := range 2 {
		for i := range s.partitions {
			if move(t, c, slotOf(c.Nodes[0], s.partition(i))) > 0 {
				moved++
			}
			w.more(20)
		}
		if moved == 0 {
			t.Fatalf("round %d: no keys moved: the test does not see what it is for", round)
		}
	}
	lost, doubled := w.end()
	if lost != 0 || doubled != 0 {
		t.Errorf("got %d lost, %d doubled; want none", lost, doubled)
	}
	t.Logf("%d acknowledged over %d moves of a partition, 0 lost, 0 doubled, a pause of %s", len(w.acked), moved, w.longest.Round(time.Millisecond))
}

func slotOf(n *redistest.Server, key string) int64 {
	return n.Do("CLUSTER", "KEYSLOT", key).(int64)
}

// move gives a slot from its node to the other, as an operator's tool does, and
// reports how many keys went.
func move(t *testing.T, c *redistest.Cluster, slot int64) (keys int) {
	t.Helper()
	from, to := 0, 1
	if owns := c.Nodes[1].Do("CLUSTER", "COUNTKEYSINSLOT", slot).(int64); owns > 0 {
		from, to = 1, 0
	}
	host, port, _ := strings.Cut(c.Nodes[to].Addr, ":")
	c.Nodes[to].Do("CLUSTER", "SETSLOT", slot, "IMPORTING", c.ID(from))
	c.Nodes[from].Do("CLUSTER", "SETSLOT", slot, "MIGRATING", c.ID(to))
	for {
		some := c.Nodes[from].Do("CLUSTER", "GETKEYSINSLOT", slot, 5).([]any)
		if len(some) == 0 {
			break
		}
		c.Nodes[from].Do(append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, some...)...)
		keys += len(some)
	}
	c.Nodes[to].Do("CLUSTER", "SETSLOT", slot, "NODE", c.ID(to))
	c.Nodes[from].Do("CLUSTER", "SETSLOT", slot, "NODE", c.ID(to))
	return keys
}

// TestNodeFails: a primary of a cluster is killed under load, and its replica
// takes over. What it may not have got is stored again, once; the lanes of the
// other primaries do not even see a pause.
func TestNodeFails(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, true)
	var log lines
	s := openAt(t, c.URL, func(o *Options) { o.Logger = log.logger() })
	w := startWriters(t, s, 6)
	w.more(300)
	chat := session.Key{Platform: "test", Chat: "0"}
	victim := 0
	for i := range 3 {
		if c.Nodes[i].Do("CLUSTER", "COUNTKEYSINSLOT", slotOf(c.Nodes[i], s.partitionOf(chat))).(int64) > 0 {
			victim = i
		}
	}
	killed := time.Now()
	c.Nodes[victim].Kill9()
	before := w.of(chat)
	redistest.Until(t, 30*time.Second, "its lanes to be served again", func() bool { return w.of(chat) > before+1 })
	paused := time.Since(killed)
	w.more(100)
	lost, doubled := w.end()
	if lost != 0 || doubled != 0 || paused > pause {
		t.Errorf("got %d lost, %d doubled, a pause of %s; want none, none, at most %s", lost, doubled, paused, pause)
	}
	t.Logf("%d acknowledged, 0 lost, 0 doubled, a pause of %s: %s", len(w.acked), paused.Round(time.Millisecond), log.line("stored again"))
}
