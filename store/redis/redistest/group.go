package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Replica starts a server that follows another one, and waits until it has
// all that the other has.
func Replica(t testing.TB, primary string, settings ...string) *Server {
	t.Helper()
	s := start(t, "sync: Finished with success", append([]string{"replicaof " + strings.Replace(primary, ":", " ", 1)}, settings...))
	_, port, _ := net.SplitHostPort(s.Addr)
	p := &Server{t: t, Addr: primary}
	Until(t, 20*time.Second, "the primary to hear of its replica", func() bool {
		return strings.Contains(p.Do("INFO", "replication").(string), "port="+port+",state=online")
	})
	return s
}

// Stop freezes the server as a machine does that swaps: it answers nobody, and
// its connections stay.
func (s *Server) Stop() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (s *Server) Continue() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.pid == 0 {
		s.t.Fatal("redistest: the server is not running")
	}
	if err := syscall.Kill(s.pid, sig); err != nil {
		s.t.Fatal(err)
	}
}

// Until asks until what is waited for is there: of another process there is
// often no event to wait for.
func Until(t testing.TB, d time.Duration, what string, there func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); !there(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("redistest: waited %s for %s", d, what)
		}
	}
}

// Sentinels starts three Sentinels that watch the primary at addr as "m", waits
// until each knows the others and so many replicas, and gives their URL. They
// give a primary up that is silent for a second.
func Sentinels(t testing.TB, addr string, replicas int) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	var all []*Server
	for i := range 3 {
		s := &Server{t: t, dir: t.TempDir(), Addr: freeAddr(t), sentinel: true}
		_, own, _ := net.SplitHostPort(s.Addr)
		t.Cleanup(s.stop)
		known := map[string]int{}
		s.ready = func(line string) bool {
			for _, event := range []string{"+slave slave", "+sentinel sentinel"} {
				if strings.Contains(line, event) {
					known[event]++
				}
			}
			return known["+slave slave"] >= replicas && known["+sentinel sentinel"] >= 2
		}
		conf := filepath.Join(s.dir, "sentinel.conf") // which it writes to
		lines := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor m %s %s 2\nsentinel down-after-milliseconds m 1000\n"+
			"sentinel failover-timeout m 2000\nsentinel parallel-syncs m 2\n", own, s.dir, host, port)
		if err := os.WriteFile(conf, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		s.args = []string{conf, "--sentinel"}
		if !s.launch() {
			t.Fatalf("redistest: Sentinel %d did not start", i)
		}
		for s.lines.Scan() && !strings.Contains(s.lines.Text(), "Sentinel ID is") { // it listens by then
		}
		// It asks and tells its peers every 10, 2 and 1 s, and a vote that was split
		// is held again after 10 s.
		s.Do("SENTINEL", "DEBUG", "info-period", 200, "publish-period", 200, "ping-period", 200, "ask-period", 200, "election-timeout", 2000)
		all = append(all, s)
	}
	var rest []string
	for _, s := range all {
		if !s.await() {
			t.Fatal("redistest: a Sentinel ended")
		}
		rest = append(rest, "&addr="+s.Addr)
	}
	return "redis+sentinel://" + all[0].Addr + "/0?master_name=m" + strings.Join(rest[1:], "")
}

// A Cluster is a Redis Cluster of primaries and their replicas.
type Cluster struct {
	URL string
	// Nodes are the primaries first, then one replica of each, if asked for.
	Nodes []*Server
	t     testing.TB
}

// StartCluster starts n primaries that share the slots, each with a replica or
// none. A node that is silent for a second is given up.
func StartCluster(t testing.TB, n int, replicas bool, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	total := n
	if replicas {
		total = 2 * n
	}
	for range total {
		bus, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(bus.Addr().String())
		bus.Close()
		c.Nodes = append(c.Nodes, Start(t, append([]string{
			"cluster-enabled yes", "cluster-port " + port, "cluster-node-timeout 1000", "cluster-replica-validity-factor 0",
		}, settings...)...))
	}
	for i, s := range c.Nodes {
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		host, port, _ := net.SplitHostPort(c.Nodes[0].Addr)
		_, bus, _ := strings.Cut(strings.Join(c.Nodes[0].args, " "), "--cluster-port ")
		bus, _, _ = strings.Cut(bus, " ")
		if i > 0 {
			s.Do("CLUSTER", "MEET", host, port, bus)
		}
		if i < n {
			s.Do("CLUSTER", "ADDSLOTSRANGE", i*16384/n, (i+1)*16384/n-1)
		}
	}
	c.until("every node to know every other", func(s *Server) bool {
		return strings.Contains(s.Do("CLUSTER", "INFO").(string), fmt.Sprintf("cluster_known_nodes:%d\r", total))
	})
	for i, s := range c.Nodes[n:] {
		s.Do("CLUSTER", "REPLICATE", c.ID(i))
	}
	c.until("the cluster to serve", func(s *Server) bool {
		return strings.Contains(s.Do("CLUSTER", "INFO").(string), "cluster_state:ok") &&
			strings.Count(s.Do("CLUSTER", "NODES").(string), "slave") == total-n
	})
	for _, s := range c.Nodes[n:] {
		Until(t, 20*time.Second, "a replica to follow", func() bool {
			return strings.Contains(s.Do("INFO", "replication").(string), "master_link_status:up")
		})
	}
	c.URL = "redis+cluster://" + c.Nodes[0].Addr + "?addr=" + c.Nodes[1].Addr
	return c
}

// ID is a node's own.
func (c *Cluster) ID(i int) string { return c.Nodes[i].Do("CLUSTER", "MYID").(string) }

func (c *Cluster) until(what string, there func(*Server) bool) {
	c.t.Helper()
	for _, s := range c.Nodes {
		Until(c.t, 20*time.Second, what, func() bool { return there(s) })
	}
}
