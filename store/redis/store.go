package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"coxswain/session"
)

// Schema is the version of the layout that a new store gets: keys as in
// lua/prelude.lua, rows packed (pack.go). A store of schemaPlain is served as it
// is, its rows plain: a gateway of the release before may run beside this one.
// Any other is refused.
const (
	Schema      = 2
	schemaPlain = 1
)

// DefaultPartitions is P where the store is new: enough to spread a cluster
// of a few nodes, few enough to sweep every second in one pipeline.
const DefaultPartitions = 64

// Options of Open. The zero value is a durable store with the default names.
type Options struct {
	// Prefix of every key, so that several gateways can share one Redis.
	// Default "gw".
	Prefix string
	// Partitions is P, fixed when the store is made: another number than the
	// store's own is refused. 0 takes the store's, or DefaultPartitions.
	Partitions int
	// Relaxed accepts a server that may lose acknowledged writes, or that does
	// not let its settings be read. Messages can then be lost or run twice
	// after a crash of the server.
	Relaxed bool
	// Wait makes every write that someone is told of wait for replicas, so that
	// a failover does not lose it (F19). Refused where a primary has fewer.
	Wait Wait
	// Existing refuses a Redis that holds no store yet, and makes none there.
	Existing bool
	// Logger gets the client's complaints about connections. Default: none.
	Logger *slog.Logger
	// TestOnlyClock replaces the server's clock, so that a test can drive this
	// store and another one on one time.
	TestOnlyClock func() time.Time
}

// Store is a session.Store in Redis. All methods may be called from any
// goroutine.
type Store struct {
	client     redis.UniversalClient
	prefix     string
	partitions int
	relaxed    bool
	wait       Wait
	cluster    bool
	replica    func(addr string) *redis.Client // of the primary's replicas; nil without Sentinels
	journal    *journal
	log        *slog.Logger
	clock      func() time.Time
	packs      bool   // rows lie packed
	id         string // of the stored data, as first seen: the canary (F18)
	caller     string // begins the name of every call of this process
	calls      atomic.Uint64
	closed     chan struct{}
	wiped      chan struct{} // closed by the first script that finds it so
	wipe       func()        // closes it, once
	closing    atomic.Bool
}

var _ session.Store = (*Store)(nil)

// ErrWiped reports that Redis no longer holds the data this process worked
// on: it came back empty, or another gateway began anew there. Nothing is
// written or read any more; the process should end. It is also an ErrFull.
var ErrWiped = fmt.Errorf("%s: %w", wordsWiped, session.ErrFull)

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Open connects to the Redis at url and checks that it keeps what it is given
// (see Check), unless o.Relaxed. It waits up to 10 s for a server that is
// still starting. The error of a server with unfit settings is a *ConfigError.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if o.Prefix == "" {
		o.Prefix = "gw"
	}
	if !validPrefix.MatchString(o.Prefix) {
		return nil, fmt.Errorf(wordsPrefix, o.Prefix)
	}
	s := &Store{
		prefix: o.Prefix, relaxed: o.Relaxed, wait: o.Wait, clock: o.TestOnlyClock,
		journal: newJournal(), log: o.Logger, caller: randomID(6), closed: make(chan struct{}), wiped: make(chan struct{}),
	}
	s.wipe = sync.OnceFunc(func() { close(s.wiped) })
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.wait.Replicas > 0 && s.wait.Timeout <= 0 {
		s.wait.Timeout = time.Second
		o.Wait = s.wait
	}
	var err error
	if s.client, s.replica, err = connect(url, o, s.connected); err != nil {
		return nil, err
	}
	_, s.cluster = s.client.(*redis.ClusterClient)
	if err := s.start(ctx, o); err != nil {
		s.client.Close()
		return nil, fmt.Errorf("open redis: %w", err)
	}
	return s, nil
}

func (s *Store) start(ctx context.Context, o Options) error {
	if err := retry(ctx, 5*time.Second, func() error { return s.client.Ping(ctx).Err() }); err != nil {
		return err
	}
	if problems := s.Check(ctx); len(problems) > 0 {
		return &ConfigError{Problems: problems}
	}
	return s.adopt(ctx, o.Partitions, o.Existing)
}

// adopt finds the stored data's identity, or makes it, and holds every
// partition to it.
func (s *Store) adopt(ctx context.Context, partitions int, existing bool) error {
	want := partitions
	if want == 0 {
		want = DefaultPartitions
	}
	cfg, err := s.cfg(ctx, want, randomID(8), false, existing)
	if err != nil {
		return err
	}
	if existing && cfg.partitions == 0 {
		return errors.New(wordsNone)
	}
	if cfg.schema != Schema && cfg.schema != schemaPlain {
		return fmt.Errorf(wordsSchema, cfg.schema, Schema)
	}
	if partitions != 0 && cfg.partitions != partitions {
		return fmt.Errorf(wordsShape, cfg.partitions, partitions)
	}
	s.partitions, s.id, s.packs = cfg.partitions, cfg.id, cfg.schema != schemaPlain
	if cfg.next != "" {
		if err := s.rename(ctx, cfg.next); err != nil {
			return err
		}
	}
	found, err := s.pipeline(ctx, s.partitions, func(i int) (script, []string, args) {
		var a args
		a.str(s.id).flag(cfg.sealed)
		return scriptStamp, []string{s.partition(i) + "cnt"}, a
	})
	if err != nil {
		return err
	}
	for i, f := range found {
		if id := f.str(); id != s.id {
			return fmt.Errorf(wordsPartition+": %w", s.partition(i), s.prefix+":*", session.ErrFull)
		}
	}
	if !cfg.sealed {
		_, err = s.cfg(ctx, want, s.id, true, false)
	}
	return err
}

// A canary is what gw:cfg holds.
type canary struct {
	schema, partitions int
	id                 string
	sealed             bool
	next               string // the id it is being given (TakeOver), empty = none
}

func (s *Store) cfgKey() string { return s.prefix + ":cfg" }

func (s *Store) cfg(ctx context.Context, partitions int, id string, seal, look bool) (canary, error) {
	var a args
	a.num(Schema).num(int64(partitions)).str(id).num(time.Now().UnixMilli()).flag(seal)
	a.flag(look)
	r, err := s.eval(ctx, scriptCfg, []string{s.cfgKey()}, a)
	if err != nil {
		return canary{}, err
	}
	c := canary{schema: int(r.num()), partitions: int(r.num()), id: r.str(), sealed: r.flag(), next: r.str()}
	return c, *r.err
}

// Ping reports whether the store can serve now: the server answers, takes
// writes, and still holds the data this process began with (F18).
func (s *Store) Ping(ctx context.Context) error {
	var a args
	a.num(time.Now().UnixMilli())
	r, err := s.eval(ctx, scriptPing, []string{s.cfgKey()}, a)
	if err != nil {
		return fmt.Errorf("redis ping: %w", err)
	}
	if id := r.str(); *r.err == nil && id != s.id {
		return s.isWiped()
	}
	return *r.err
}

// Wiped is closed when the first call of this Store has got ErrWiped.
func (s *Store) Wiped() <-chan struct{} { return s.wiped }

func (s *Store) isWiped() error {
	s.wipe()
	return ErrWiped
}

// Close closes the connections and ends Subscribe. Calls under way fail.
func (s *Store) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}
	close(s.closed)
	return s.client.Close()
}

// partition gives the prefix of the keys of partition i.
func (s *Store) partition(i int) string { return fmt.Sprintf("%s:{p%02x}:", s.prefix, i) }

// partitionOf gives the partition of a lane: one per chat, so that a chat's
// lanes can be looked at together.
func (s *Store) partitionOf(key session.Key) string {
	h := fnv.New32a()
	h.Write([]byte(key.Platform + "\x00"))
	h.Write([]byte(key.Chat))
	return s.partition(int(h.Sum32() % uint32(s.partitions)))
}

// call names one call: sent again, it is known as the same.
func (s *Store) call() string { return s.caller + strconv.FormatUint(s.calls.Add(1), 36) }

// begin writes what the prelude reads.
func (s *Store) begin(lane string) args {
	var a args
	a.str(lane).str(s.id)
	if s.clock != nil {
		a.num(s.clock().UnixMilli())
	} else {
		a.num(0)
	}
	a.str(s.call())
	return a
}

// lane begins the arguments of a script on a lane.
func (s *Store) lane(key session.Key) *args {
	a := s.begin(key.String())
	return &a
}

// dedupe gives the mark a write is made under: the caller's, or one of its own
// so that a lost reply does not make the write happen twice.
func (s *Store) dedupe(mark string) string {
	if mark == "" {
		return "~" + s.call()
	}
	return mark
}

func randomID(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
