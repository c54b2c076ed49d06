package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A Problem is a setting of the server with which the store cannot keep its
// promises.
type Problem struct {
	Server              string // its address
	Setting, Have, Want string
	Cure                string // what to do
}

// A ConfigError is why Open refuses a server. Its text is for operators.
type ConfigError struct{ Problems []Problem }

// Error names every setting and its cure.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// needed are the settings without which acknowledged writes get lost.
// appendfsync everysec lost thousands of them on a mere kill of the server;
// any policy but noeviction throws sessions away when memory is short.
var needed = [...]struct{ setting, want string }{
	{"appendonly", "yes"},
	{"appendfsync", "always"},
	{"maxmemory-policy", "noeviction"},
}

// Check asks the server for what the store needs and gives what is wrong,
// nothing if all is well: each primary, and with Sentinels or a cluster each
// replica too, for it may be the primary next. Where Options.Relaxed was set it
// looks at the version only (an older server cannot run the scripts) and at
// how many replicas there are to wait for.
func (s *Store) Check(ctx context.Context) []Problem {
	var mu sync.Mutex // a cluster's servers are asked at the same time
	var problems []Problem
	note := func(found ...Problem) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range found {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	ask := func(ctx context.Context, c *redis.Client, addr string) []string {
		found, replicas, err := s.checkOne(ctx, c, addr)
		note(found...)
		if err != nil {
			note(Problem{addr, "connection", err.Error(), "an answer", wordsConnect})
		}
		return replicas
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err := c.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error {
			ask(ctx, c, c.Options().Addr)
			return nil
		})
		if err != nil {
			note(Problem{"the cluster", "connection", err.Error(), "an answer", wordsConnect})
		}
	case *redis.Client:
		if s.replica == nil {
			ask(ctx, c, c.Options().Addr)
			break
		}
		for _, addr := range ask(ctx, c, "the primary") {
			r := s.replica(addr)
			ask(ctx, r, addr)
			r.Close()
		}
	default:
		panic(fmt.Sprintf("unknown client %T", s.client))
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Server, b.Server) })
	return problems
}

// checkOne looks at one server. Of a primary it also gives the replicas.
func (s *Store) checkOne(ctx context.Context, c *redis.Client, addr string) (problems []Problem, replicas []string, err error) {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return nil, nil, err
	}
	if problems = versionProblem(info); len(problems) > 0 {
		problems[0].Server = addr
		return problems, nil, nil
	}
	if info, err = c.Info(ctx, "replication").Result(); err != nil {
		return nil, nil, err
	}
	if replica := infoField(info, "role") == "slave"; replica && infoField(info, "slave_priority") == "0" {
		return nil, nil, nil // never promoted
	} else if !replica {
		replicas = replicasIn(info)
		if n, want := len(replicas), s.wait.Replicas; n < want {
			problems = append(problems, Problem{addr, "store.wait.replicas", strconv.Itoa(want), fmt.Sprintf("at most the %d connected", n), wordsAttach})
		}
	}
	if s.relaxed {
		return problems, replicas, nil
	}
	for _, n := range needed {
		have, err := c.ConfigGet(ctx, n.setting).Result()
		var answered redis.Error
		switch {
		case err == nil && have[n.setting] == n.want:
		case err == nil:
			problems = append(problems, Problem{addr, n.setting, have[n.setting], n.want, cureSet(n.setting, n.want)})
		case errors.As(err, &answered):
			return append(problems, Problem{addr, "CONFIG GET", "refused (" + answered.Error() + ")", "readable", wordsBlocked}), replicas, nil
		default:
			return problems, replicas, err
		}
	}
	return problems, replicas, nil
}

// replicasIn reads which replicas a primary has: those that copied all there
// is and follow. "slave0:ip=127.0.0.1,port=7001,state=online,offset=1,lag=0"
func replicasIn(info string) (addrs []string) {
	for line := range strings.Lines(info) {
		name, fields, ok := strings.Cut(strings.TrimSpace(line), ":")
		if n, isSlave := strings.CutPrefix(name, "slave"); !ok || !isSlave || strings.Trim(n, "0123456789") != "" {
			continue
		}
		f := map[string]string{}
		for _, kv := range strings.Split(fields, ",") {
			k, v, _ := strings.Cut(kv, "=")
			f[k] = v
		}
		if f["state"] == "online" {
			addrs = append(addrs, net.JoinHostPort(f["ip"], f["port"]))
		}
	}
	return addrs
}

// versionProblem reads the answer of INFO: scripts with flags need 7.0.
func versionProblem(info string) []Problem {
	version := cmp.Or(infoField(info, "redis_version"), "unknown")
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return []Problem{{Setting: "version", Have: version, Want: "7.0 or newer", Cure: wordsUpgrade}}
	}
	return nil
}
