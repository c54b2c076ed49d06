package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A Problem is a setting of the server with which the store cannot keep its
// promises.
type Problem struct {
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

// Check asks the server, each primary of a cluster, for what the store needs
// and gives what is wrong, nothing if all is well. Where Options.Relaxed was
// set it looks at the version only: an older server cannot run the scripts.
func (s *Store) Check(ctx context.Context) []Problem {
	var mu sync.Mutex // a cluster's primaries are asked at the same time
	var problems []Problem
	ask := func(ctx context.Context, c *redis.Client) error {
		found, err := s.checkOne(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		for _, p := range found {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
		return err
	}
	var err error
	switch c := s.client.(type) {
	case *redis.Client:
		err = ask(ctx, c)
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, ask)
	default:
		panic(fmt.Sprintf("unknown client %T", s.client))
	}
	if err != nil {
		problems = append(problems, Problem{"connection", err.Error(), "an answer", wordsConnect})
	}
	return problems
}

func (s *Store) checkOne(ctx context.Context, c *redis.Client) ([]Problem, error) {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	problems := versionProblem(info)
	if s.relaxed {
		return problems, nil
	}
	for _, n := range needed {
		have, err := c.ConfigGet(ctx, n.setting).Result()
		var answered redis.Error
		switch {
		case err == nil && have[n.setting] == n.want:
		case err == nil:
			problems = append(problems, Problem{n.setting, have[n.setting], n.want, cureSet(n.setting, n.want)})
		case errors.As(err, &answered):
			return append(problems, Problem{"CONFIG GET", "refused (" + answered.Error() + ")", "readable", wordsBlocked}), nil
		default:
			return problems, err
		}
	}
	return problems, nil
}

// versionProblem reads the answer of INFO: scripts with flags need 7.0.
func versionProblem(info string) []Problem {
	version := "unknown"
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			version = strings.TrimSpace(v)
		}
	}
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return []Problem{{"version", version, "7.0 or newer", wordsUpgrade}}
	}
	return nil
}
