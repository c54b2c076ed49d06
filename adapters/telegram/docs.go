package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"coxswain/session"
)

func (a *Adapter) docName(what string) string {
	return "telegram:" + strconv.FormatInt(a.id, 10) + ":" + what
}

// change rewrites a document with f, again when another wrote in between.
func (a *Adapter) change(ctx context.Context, what string, f func(old []byte) ([]byte, error)) error {
	name := a.docName(what)
	for {
		old, version, err := a.docs.Doc(ctx, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		data, err := f(old)
		if err != nil || data == nil {
			return err
		}
		err = a.docs.PutDoc(ctx, name, version, data)
		if err == nil || !errors.Is(err, session.ErrStale) {
			return err
		}
	}
}

// Limits of the quarantine: it is for finding out, not for keeping.
const (
	quarantineMost  = 20
	quarantineBytes = 256 << 10
)

// A quarantined update is one that could not be read (T36, F37).
type quarantined struct {
	At     time.Time `json:"at"`
	Update int64     `json:"update_id"`
	Err    string    `json:"err"`
	Raw    string    `json:"raw"`
}

// quarantine keeps a raw update; the oldest make room.
func (a *Adapter) quarantine(ctx context.Context, id int64, raw []byte, why error) error {
	return a.change(ctx, "quarantine", func(old []byte) ([]byte, error) {
		var list []json.RawMessage     // as another version may have written them
		_ = json.Unmarshal(old, &list) // none yet, or not ours: begin anew
		if len(raw) > quarantineBytes/4 {
			raw = raw[:quarantineBytes/4]
		}
		one, err := json.Marshal(quarantined{At: time.Now().UTC(), Update: id, Err: why.Error(), Raw: strings.ToValidUTF8(string(raw), "�")})
		if err != nil {
			return nil, err
		}
		list = append(list, one)
		size := 0
		for i := len(list) - 1; i >= 0; i-- {
			size += len(list[i])
			if size > quarantineBytes || len(list)-i > quarantineMost {
				list = list[i+1:]
				break
			}
		}
		return json.Marshal(list)
	})
}

// aliases maps the chat a group was to the one it has become (T16). Session
// keys stay with the old id; only the wire sees the new one.
type aliases struct {
	mu     sync.RWMutex
	loaded bool
	now    map[int64]int64 // old → new
	was    map[int64]int64 // new → old
}

// loadAliases reads the aliases; fresh reads them again.
func (a *Adapter) loadAliases(ctx context.Context, fresh bool) error {
	a.aliases.mu.RLock()
	done := a.aliases.loaded && !fresh
	a.aliases.mu.RUnlock()
	if done {
		return nil
	}
	data, _, err := a.docs.Doc(ctx, a.docName("chats"))
	if err != nil {
		return fmt.Errorf("read chat aliases: %w", err)
	}
	var m map[int64]int64
	if len(data) > 0 {
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("read chat aliases: %w", err)
		}
	}
	a.aliases.put(m)
	return nil
}

// forget has them read again.
func (s *aliases) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = false
}

func (s *aliases) put(m map[int64]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = true
	s.now, s.was = m, make(map[int64]int64, len(m))
	for from, to := range m {
		s.was[to] = from
	}
}

// alias stores that a group has become another chat. Idempotent.
func (a *Adapter) alias(ctx context.Context, from, to int64) error {
	if err := a.loadAliases(ctx, false); err != nil {
		return err
	}
	if a.aliases.to(from) == to {
		return nil
	}
	var all map[int64]int64
	err := a.change(ctx, "chats", func(old []byte) ([]byte, error) {
		all = nil
		if len(old) > 0 {
			if err := json.Unmarshal(old, &all); err != nil {
				return nil, err
			}
		}
		if all[from] == to {
			return nil, nil
		}
		all = maps.Clone(all)
		if all == nil {
			all = make(map[int64]int64)
		}
		all[from] = to
		return json.Marshal(all)
	})
	if err != nil {
		return fmt.Errorf("store chat alias: %w", err)
	}
	a.aliases.put(all)
	a.log.Info("group became a supergroup", "chat", from, "now", to)
	return nil
}

// to gives the chat to send to.
func (s *aliases) to(chat int64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n, ok := s.now[chat]; ok {
		return n
	}
	return chat
}

// from gives the chat of the session key.
func (s *aliases) from(chat int64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n, ok := s.was[chat]; ok {
		return n
	}
	return chat
}
