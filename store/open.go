// Package store opens the store that a URL names. It starts nothing of its
// own; what an opened store guarantees and runs is said by its package.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"os"
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
	Logger   *slog.Logger // nil = nothing is logged
}

// Open opens sqlite:PATH, redis://… or rediss://…. The error says what to do
// and never holds a password.
func Open(ctx context.Context, url string, o Options) (session.Store, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		if _, err := os.Stat(rest); o.Existing && err != nil {
			return nil, fmt.Errorf(wordsNone, rest)
		}
		st, err := sqlite.Open(ctx, rest, sqlite.Options{Logger: o.Logger})
		if err != nil {
			return nil, err // not a nil *Store in an interface
		}
		return st, nil
	case "redis", "rediss":
		st, err := redis.Open(ctx, url, redis.Options{Relaxed: o.Relaxed, Existing: o.Existing, Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		return st, nil
	}
	return nil, fmt.Errorf("store.url begins with %q; it must be sqlite:FILE, redis:// or rediss://", scheme)
}
