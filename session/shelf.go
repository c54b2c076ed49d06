package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A shelf is one small document of the store, read at most shelfFresh late and
// changed by compare-and-set. A value that was given out is never written to.
// All methods may be called from any goroutine.
type shelf[T any] struct {
	store interface {
		Doc(ctx context.Context, name string) ([]byte, int64, error)
		PutDoc(ctx context.Context, name string, version int64, data []byte) error
	}
	name string

	mu   sync.Mutex
	has  *T
	read time.Time
}

// shelfFresh bounds how late another process's change is seen.
const shelfFresh = 2 * time.Second

// last is the newest value read, or nil. It does no I/O.
func (s *shelf[T]) last() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has
}

// get gives the value, at most shelfFresh old. While the store cannot be read an
// older value stands; an error means that there is none yet.
func (s *shelf[T]) get(ctx context.Context) (*T, error) {
	s.mu.Lock()
	has, read := s.has, s.read
	s.mu.Unlock()
	if has != nil && time.Since(read) < shelfFresh {
		return has, nil
	}
	data, _, err := s.store.Doc(ctx, s.name)
	if err != nil && has != nil {
		return has, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.name, err)
	}
	return s.keep(data)
}

// keep makes data the newest that was read.
func (s *shelf[T]) keep(data []byte) (*T, error) {
	v, err := s.decode(data)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.has, s.read = v, time.Now()
	s.mu.Unlock()
	return v, nil
}

func (s *shelf[T]) decode(data []byte) (*T, error) {
	v := new(T)
	if len(data) > 0 {
		if err := json.Unmarshal(data, v); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.name, err)
		}
	}
	return v, nil
}

// change edits the value. f may run several times, each on a fresh copy, and
// returns false to leave all as it is. nil means that it is stored, or was left;
// either way the value that is given from here on is as new.
func (s *shelf[T]) change(ctx context.Context, f func(*T) bool) error {
	for range 10 {
		data, version, err := s.store.Doc(ctx, s.name)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.name, err)
		}
		v, err := s.decode(data)
		if err != nil {
			return err
		}
		if !f(v) {
			_, err := s.keep(data)
			return err
		}
		if data, err = json.Marshal(v); err != nil {
			return fmt.Errorf("encode %s: %w", s.name, err)
		}
		switch err := s.store.PutDoc(ctx, s.name, version, data); {
		case err == nil:
			_, err := s.keep(data)
			return err
		case !errors.Is(err, ErrStale):
			return fmt.Errorf("write %s: %w", s.name, err)
		}
	}
	return fmt.Errorf("write %s: %w", s.name, ErrStale)
}
