package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/store"
)

func TestOpenSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data dir", "gate?way#1%20.db")
	s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.PutDoc(t.Context(), "d", 0, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file has another name than asked for: %v", err)
	}
}

// A store that cannot be opened is an error that says what to do, and no
// store: a nil pointer in the interface would be one.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, want string }{
		{"", `begins with ""`},
		{"data/gateway.db", `it must be sqlite:FILE, redis://, redis+sentinel:// or redis+cluster://`},
		{"secret", `begins with ""`},
		{"u:secret@h:1", `begins with ""`},
		{"secret:x", `begins with ""`},
		{"postgres://u:secret@h/db", `begins with "postgres"`},
		{"sqlite:", "set store.url to sqlite:PATH"},
		{"redis://:secret@[::1", ""},
		{"redis+sentinel://:secret@127.0.0.1:1", "?master_name="},
		{"redis+cluster://:secret@127.0.0.1:1/x", ""},
		{"redis+tls://127.0.0.1:1", `begins with "redis+tls"`},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			t.Parallel() // a cluster that is away is tried for 5 s
			var s session.Store
			s, err := store.Open(t.Context(), tt.url, store.Options{})
			if err == nil || s != nil {
				t.Fatalf("got %v, %v; want an error and no store", s, err)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %q; want %q in it and no password", err, tt.want)
			}
		})
	}
}
