package redis

import (
	"net"
	"strings"
	"testing"

	"coxswain/store/redis/redistest"
)

// TestCluster runs every operation on a cluster of one node, which refuses
// what touches two slots as a large one does.
func TestCluster(t *testing.T) {
	bus, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(bus.Addr().String())
	bus.Close()
	srv := redistest.Start(t, "cluster-enabled yes", "cluster-port "+port)
	srv.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	// The node serves some time after it got its slots: CLUSTERDOWN until then
	// is an answer that passes (F21).
	url, prefix := strings.Replace(srv.URL, "redis:", "redis+cluster:", 1), func(o *Options) { o.Prefix = "wake" }
	s := openAt(t, url, prefix)
	keys := subscribed(t, openAt(t, url, prefix))
	begun(t, s)
	if k := next(t, keys); k != lane1 {
		t.Errorf("got a wake-up for %v; want %v", k, lane1)
	}
	srv.FlushScripts()
	for name, err := range everyOp(t.Context(), s) {
		if err != nil && name != "begin" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if problems := s.Check(t.Context()); len(problems) != 0 {
		t.Errorf("check: got %v; want no problem", problems)
	}
	srv.Set("appendfsync", "everysec")
	if problems := s.Check(t.Context()); len(problems) != 1 {
		t.Errorf("check of an unfit primary: got %v; want one problem", problems)
	}
}
