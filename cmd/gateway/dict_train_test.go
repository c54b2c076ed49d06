//go:build linux && train

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/klauspost/compress/dict"
	"github.com/klauspost/compress/zstd"

	"coxswain/adapters/web"
	"coxswain/session"
)

// dictNumber is the number of the dictionary that is made: one more than the
// newest in store/redis/dict, which must not change.
const dictNumber = 1

// TestTrainRows makes a dictionary for the rows that store/redis packs, from
// sessions in which people and model talk in the comments of this module.
//
//	go test -tags train -run TrainRows ./cmd/gateway
func TestTrainRows(t *testing.T) {
	path := fmt.Sprintf("../../store/redis/dict/%d.zstd", dictNumber)
	if _, err := os.Stat(path); err == nil {
		t.Fatalf("%s is there; raise dictNumber", path)
	}
	var dirs []string
	for _, p := range packages(t) {
		dirs = append(dirs, p.Dir)
	}
	m := &proseModel{}
	m.load(t, dirs...)
	s := newSoak(t, "sqlite", 320, 64, m.ServeHTTP)
	var wg sync.WaitGroup
	for lane := range soakLanes {
		wg.Go(func() {
			for n := lane; n < s.sessions; n += soakLanes {
				for turn := range 6 {
					s.say(n, fmt.Sprintf("%s (step %d)", m.prose(1), turn))
				}
			}
		})
	}
	wg.Wait()
	s.rest()
	var head []byte
	var rows [][]byte
	for n := range s.sessions {
		all, err := s.parts.store.Rows(t.Context(), session.Key{Platform: web.Name, Chat: session.ChatID(fmt.Sprint(n))}, 1, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Type == session.RowHead {
				head = r.Data
			} else {
				rows = append(rows, r.Data)
			}
		}
	}
	// What rows have in common, and one head whole: it is 4 kB, and nearly the same
	// in every session.
	common, err := dict.BuildRawDict(rows, dict.Options{MaxDictSize: 16 << 10, HashBytes: 6})
	if err != nil {
		t.Fatal(err)
	}
	made, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID: dictNumber, Contents: rows, History: append(common, head...), Offsets: [3]int{1, 4, 8}, Level: zstd.SpeedFastest,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, made, 0o644); err != nil {
		t.Fatal(err)
	}
}
