package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	neturl "net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"coxswain/session"
)

// RetryFor is how long an operation is tried again while the server restarts,
// loads its file or changes its primary (F16, F21). A ctx that ends earlier
// ends it earlier.
const RetryFor = 30 * time.Second

// Schemes are how a store's url may begin. With rediss, TLS goes to all that is
// dialled: in redis+sentinel also to the Sentinels.
var Schemes = []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}

// onConnect is called with each new connection before it is used.
type onConnect func(context.Context, *redis.Conn) error

// connect makes the client for a url; nothing is dialled yet. In all three
// kinds of client the library's own retries are off: retry does that, for
// longer and for more errors; and a deadline of the ctx reaches the socket,
// which by the library's default it does not. With Sentinels, replica makes a
// client for one of the primary's replicas; else it is nil.
func connect(url string, o Options, on onConnect) (c redis.UniversalClient, replica func(addr string) *redis.Client, err error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	redis.SetLogger(clientLog{logger}) // the library's default writes to stderr
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	scheme, rest, _ := strings.Cut(url, ":")
	plain, kind, _ := strings.Cut(scheme, "+")
	url = plain + ":" + rest
	if !slices.Contains(Schemes, scheme) {
		return nil, nil, errors.New(wordsURL)
	}
	if err := readable(url); err != nil {
		return nil, nil, err
	}
	switch kind {
	case "":
		opt, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, urlError(err)
		}
		opt.OnConnect, opt.ReadTimeout = on, readTimeout(opt.ReadTimeout, o.Wait)
		opt.MaxRetries, opt.DialerRetries, opt.ContextTimeoutEnabled = -1, 1, true
		opt.Protocol, opt.DisableIdentity, opt.MaintNotificationsConfig = 2, true, quiet
		c := redis.NewClient(opt)
		guard(c, o.Wait)
		return c, nil, nil
	case "sentinel":
		opt, err := redis.ParseFailoverURL(url)
		if err != nil {
			return nil, nil, urlError(err)
		}
		if opt.MasterName == "" {
			return nil, nil, errors.New(wordsMaster)
		}
		opt.OnConnect, opt.ReadTimeout = on, readTimeout(opt.ReadTimeout, o.Wait)
		opt.MaxRetries, opt.DialerRetries, opt.ContextTimeoutEnabled = -1, 1, true
		opt.Protocol, opt.DisableIdentity = 2, true
		c := redis.NewFailoverClient(opt)
		guard(c, o.Wait)
		return c, func(addr string) *redis.Client {
			return redis.NewClient(&redis.Options{
				Addr: addr, Username: opt.Username, Password: opt.Password, TLSConfig: opt.TLSConfig, MaxRetries: -1,
				DialerRetries: 1, ContextTimeoutEnabled: true, Protocol: 2, DisableIdentity: true, MaintNotificationsConfig: quiet,
			})
		}, nil
	case "cluster":
		opt, err := redis.ParseClusterURL(url)
		if err != nil {
			return nil, nil, urlError(err)
		}
		opt.OnConnect, opt.ReadTimeout = on, readTimeout(opt.ReadTimeout, o.Wait)
		opt.MaxRetries, opt.DialerRetries, opt.ContextTimeoutEnabled = -1, 1, true
		opt.Protocol, opt.DisableIdentity, opt.MaintNotificationsConfig = 2, true, quiet
		opt.ClusterStateReloadInterval = 10 * time.Second
		c := redis.NewClusterClient(opt)
		c.OnNewNode(func(node *redis.Client) { guard(node, o.Wait) })
		return c, nil, nil
	}
	panic("a kind of url without a client: " + kind)
}

// guard puts the barrier on the client of one server. Without replicas to wait
// for there is none, and nothing is sent for it.
func guard(c *redis.Client, w Wait) {
	if w.Replicas > 0 {
		c.AddHook(barrier{c, w})
	}
}

// readTimeout leaves WAIT its time: 0 is the library's own, 5 s.
func readTimeout(have time.Duration, w Wait) time.Duration {
	if w.Replicas > 0 && w.Timeout > time.Second {
		return max(have, w.Timeout+5*time.Second)
	}
	return have
}

// readable refuses a url in which a sign of the password may have been read as the
// end of the host: parsers quote what they then take for a port, a path or an
// option, and what dials names it as the address (I13).
func readable(url string) error {
	u, err := neturl.Parse(url)
	switch {
	case err == nil && !strings.Contains(u.Path+u.Fragment, "@") && !strayAt(u.Query()):
		return nil
	case strings.Contains(url, "@"):
		return errors.New(wordsSigns) // of the parser's error nothing: it quotes
	}
	return urlError(err)
}

// strayAt reports whether an @ stands among the options where none may be: only a
// name has one.
func strayAt(options neturl.Values) bool {
	for name, values := range options {
		named := strings.HasSuffix(name, "name")
		if strings.Contains(name, "@") || !named && strings.Contains(strings.Join(values, ""), "@") {
			return true
		}
	}
	return false
}

// urlError keeps the url, which holds the password, out of the error.
func urlError(err error) error {
	var u *neturl.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("store url: %w", err)
}

// clientLog sends the library's complaints to the logger.
type clientLog struct{ *slog.Logger }

// Printf is what the library calls: for every try of every connection. What
// could not be mended is an error of the call, and is logged as that.
func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	l.DebugContext(ctx, "redis client", "said", fmt.Sprintf(format, v...))
}

// eval sends one script, again and again while the server cannot answer: the
// arguments name the call, so a second arrival changes nothing (F8, F9).
func (s *Store) eval(ctx context.Context, sc script, keys []string, a args) (*reply, error) {
	var v []any
	again := false
	err := retry(ctx, RetryFor, func() (err error) {
		v, err = sc.Run(s.confirmed(ctx, sc, keys, again), s.client, s.whole(keys), a...).Slice()
		again = true
		return s.lookAgain(ctx, err)
	})
	if err != nil {
		return nil, fmt.Errorf("redis %s: %w", sc.name, err)
	}
	return newReply(v), nil
}

// whole names a second key of a partition. A script's first is a prefix, and a
// key of that name is nowhere: while a slot moves from node to node, both then
// answer that something is missing (TRYAGAIN), and none runs a script on the
// half of a partition that it has (F21).
func (s *Store) whole(keys []string) []string {
	if !s.cluster || !strings.HasSuffix(keys[0], ":") {
		return keys
	}
	return []string{keys[0], keys[0] + "cnt"}
}

// lookAgain has the client ask who serves which slot when a call failed in a
// way that passes. By itself it would go on dialling a dead node: only MOVED,
// or a minute, makes it ask.
func (s *Store) lookAgain(ctx context.Context, err error) error {
	if c, ok := s.client.(*redis.ClusterClient); ok && err != nil && passing(err) {
		c.ReloadState(ctx)
	}
	return err
}

// run sends a script of a partition and reads its status.
func (s *Store) run(ctx context.Context, sc script, partition string, a args) (status string, r *reply, err error) {
	r, err = s.eval(ctx, sc, []string{partition}, a)
	if err != nil {
		return "", nil, err
	}
	status, err = s.status(r, sc)
	return status, r, err
}

// on sends a script of a lane.
func (s *Store) on(ctx context.Context, sc script, key session.Key, a *args) (status string, r *reply, err error) {
	return s.run(ctx, sc, s.partitionOf(key), *a)
}

// status reads the first word of an answer; those that are errors are given
// as such.
func (s *Store) status(r *reply, sc script) (string, error) {
	status := r.str()
	if *r.err != nil {
		return "", fmt.Errorf("redis %s: %w", sc.name, *r.err)
	}
	if status == "WIPED" {
		return status, fmt.Errorf("redis %s: %w", sc.name, s.isWiped())
	}
	if err, ok := statusErrors[status]; ok {
		return status, fmt.Errorf("redis %s: %w", sc.name, err)
	}
	return status, nil
}

var statusErrors = map[string]error{
	"FENCED": session.ErrFenced,
	"HELD":   session.ErrHeld,
	"NEWER":  session.ErrNewer,
	"STALE":  session.ErrStale,
	"GONE":   session.ErrGone,
}

// pipeline sends n scripts in one round trip and gives their answers in order.
func (s *Store) pipeline(ctx context.Context, n int, one func(int) (script, []string, args)) ([]*reply, error) {
	var answers []*reply
	err := retry(ctx, RetryFor, func() error {
		answers = answers[:0]
		pipe := s.client.Pipeline()
		used := map[string]script{}
		cmds := make([]*redis.Cmd, n)
		for i := range n {
			sc, keys, a := one(i)
			used[sc.name], cmds[i] = sc, sc.EvalSha(ctx, pipe, s.whole(keys), a...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			// A pipeline does not fall back to EVAL by itself (F24).
			if redis.HasErrorPrefix(err, "NOSCRIPT") {
				for _, sc := range used {
					if err := sc.Load(ctx, s.client).Err(); err != nil {
						return err
					}
				}
				return errAgain
			}
			return s.lookAgain(ctx, err)
		}
		for _, c := range cmds {
			v, err := c.Slice()
			if err != nil {
				return err
			}
			answers = append(answers, newReply(v))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return answers, nil
}

// everywhere runs a script on every partition.
func (s *Store) everywhere(ctx context.Context, sc script, fill func(*args)) ([]*reply, error) {
	answers, err := s.pipeline(ctx, s.partitions, func(i int) (script, []string, args) {
		a := s.begin("")
		fill(&a)
		return sc, []string{s.partition(i)}, a
	})
	if err != nil {
		return nil, err
	}
	for _, r := range answers {
		if _, err := s.status(r, sc); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// errAgain makes retry try once more.
var errAgain = errors.New("try again")

// retry calls f until it succeeds, fails for good, limit is over or ctx ends.
func retry(ctx context.Context, limit time.Duration, f func() error) error {
	start, wait := time.Now(), 5*time.Millisecond
	var why error // says more than that the next try was cut off
	for {
		err := f()
		if err == nil {
			return nil
		}
		if errors.Is(err, errNotDurable) {
			why = err
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), cmp.Or(why, err))
		}
		if full(err) {
			return fmt.Errorf("%w: %w", session.ErrFull, err)
		}
		if !passing(err) || time.Since(start) > limit {
			return err
		}
		t := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			t.Stop()
			return errors.Join(context.Cause(ctx), cmp.Or(why, err))
		case <-t.C:
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// full reports whether the server refuses writes until someone makes room:
// no memory left, or its disk does not take the file (F22, F39).
func full(err error) bool {
	return redis.HasErrorPrefix(err, "OOM") || redis.HasErrorPrefix(err, "MISCONF")
}

// passing reports whether the error may go away by itself.
func passing(err error) bool {
	if errors.Is(err, redis.ErrClosed) {
		return false
	}
	var answered redis.Error
	if !errors.As(err, &answered) {
		return true // the network's: reset, refused, timed out
	}
	for _, p := range passingAnswers {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return false
}

// Answers of a server that is starting, failing over or moving slots (F21).
var passingAnswers = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MOVED", "ASK", "BUSY ",
	"max number of clients reached",
}
