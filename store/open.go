// Package store opens the store that a URL names. It starts nothing of its
// own; what an opened store guarantees and runs is said by its package.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"coxswain/session"
	"coxswain/store/redis"
	"coxswain/store/sqlite"
)

// Options hold for whichever store is opened.
type Options struct {
	// Relaxed accepts a Redis that may lose what it has acknowledged. It does
	// not concern SQLite.
	Relaxed bool
	// Existing is an error where there is no store yet, and makes none.
	Existing bool
	// Wait is for how many replicas a write to Redis waits. It does not concern
	// SQLite.
	Wait   redis.Wait
	Logger *slog.Logger // nil = nothing is logged
}

// Open opens sqlite:PATH or one of redis.Schemes. The error says what to do and
// never holds a password.
func Open(ctx context.Context, url string, o Options) (session.Store, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch {
	case scheme == "sqlite":
		if _, err := os.Stat(rest); o.Existing && err != nil {
			return nil, fmt.Errorf(wordsNone, rest)
		}
		st, err := sqlite.Open(ctx, rest, sqlite.Options{Logger: o.Logger})
		if err != nil {
			return nil, err // not a nil *Store in an interface
		}
		return st, nil
	case slices.Contains(redis.Schemes, scheme):
		st, err := redis.Open(ctx, url, redis.Options{Relaxed: o.Relaxed, Existing: o.Existing, Wait: o.Wait, Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		return st, nil
	}
	if !strings.Contains(url, "://") {
		scheme = "" // whatever stands there may be a password that lost its way
	}
	return nil, fmt.Errorf(wordsScheme, scheme)
}
