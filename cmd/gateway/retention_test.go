package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/web"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A kept store has what tests of retention put into it.
type kept struct {
	t  *testing.T
	st session.Store
	n  int
}

func chatOf(name string) session.Key { return session.Key{Platform: "web", Chat: session.ChatID(name)} }

func (k *kept) accept(key session.Key) session.Accepted {
	k.t.Helper()
	k.n++
	id := fmt.Sprint("m", k.n)
	a, err := k.st.Accept(k.t.Context(), session.Accept{
		Key: key, Dedupe: id, Want: steer.Queue, Author: "web", Msg: session.MessageID(id), Data: []byte(`{}`), Title: "secret words", Fate: session.FateQueued,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

// begin opens a turn on a new message.
func (k *kept) begin(key session.Key) session.Lease {
	k.t.Helper()
	l := k.accept(key).Lane
	b, err := k.st.Begin(k.t.Context(), session.Begin{
		Op: session.OpID(fmt.Sprint("b", k.n)), Key: key, Nonce: "n", TTL: time.Second, Gen: l.Gen, Seq: l.Seq,
		Take: []session.Take{{Ticket: l.Slot[0].Ticket, Version: l.Slot[0].Version}}, Rows: []session.Row{{Type: session.RowUser}},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return b.Lease
}

// turn is a whole turn: nothing is left to do after it.
func (k *kept) turn(key session.Key, jobs ...session.Job) {
	k.t.Helper()
	_, err := k.st.Commit(k.t.Context(), k.begin(key), session.Commit{Op: session.OpID(fmt.Sprint("c", k.n)), Seq: 1, Rows: []session.Row{{Type: session.RowAssistant}}, Jobs: jobs, End: true})
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kept) names() (names []string) {
	k.t.Helper()
	lanes, err := k.st.Sessions(k.t.Context(), "", 0)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, l := range lanes {
		names = append(names, string(l.Key.Chat))
	}
	return names
}

func adminOf(t *testing.T, st session.Store) *admin {
	return &admin{store: st, files: &workspaces{root: t.TempDir(), shared: func(session.Key) string { return "" }}}
}

// TestRetention: in ten weeks, sessions go when their time has come, and those in
// which something is left to do stay.
func TestRetention(t *testing.T) {
	files := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t, st: storetest.NewModel(time.Now)}
		for _, name := range []string{"idle", "used now and then"} {
			k.turn(chatOf(name))
		}
		k.accept(chatOf("waits"))
		k.accept(chatOf("held"))
		if _, err := k.st.Stop(t.Context(), session.Stop{Key: chatOf("held"), Dedupe: "s"}); err != nil {
			t.Fatal(err)
		}
		k.begin(chatOf("mid-turn"))
		k.turn(chatOf("job"), session.Job{ID: "j", State: session.JobEnded})
		if _, err := k.st.Post(t.Context(), session.Post{Key: chatOf("to be sent"), Dedupe: "p", Outs: []session.PartNew{{ID: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := k.st.Post(t.Context(), session.Post{Key: chatOf("a command only"), Dedupe: "q", Title: "t"}); err != nil {
			t.Fatal(err)
		}
		all := k.names()
		var logged bytes.Buffer
		a := &admin{store: k.st, files: &workspaces{root: files, shared: func(session.Key) string { return "" }}}
		s := newSweeper(a, 30*24*time.Hour, slog.New(slog.NewTextHandler(&logged, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.run(ctx) }()
		time.Sleep(30*24*time.Hour - time.Second)
		synctest.Wait()
		if got := k.names(); !slices.Equal(got, all) {
			t.Errorf("before their time: got %q; want %q", got, all)
		}
		k.turnAgain(chatOf("used now and then"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == "idle" || n == "a command only" })
		if got := k.names(); !slices.Equal(got, want) {
			t.Errorf("at their time: got %q; want %q", got, want)
		}
		time.Sleep(40 * 24 * time.Hour)
		synctest.Wait()
		want = slices.DeleteFunc(want, func(n string) bool { return n == "used now and then" })
		if got := k.names(); !slices.Equal(got, want) {
			t.Errorf("in the end: got %q; want %q", got, want)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if n := strings.Count(logged.String(), "level=INFO"); n != 3 || strings.Contains(logged.String(), "secret words") || !strings.Contains(logged.String(), "session=web:idle") {
			t.Errorf("logged:\n%s\nwant 3 lines, with keys and no text", &logged)
		}
	})
}

// turnAgain is a turn in a session that has one.
func (k *kept) turnAgain(key session.Key) {
	k.t.Helper()
	if _, err := k.st.Commit(k.t.Context(), k.begin(key), session.Commit{Op: session.OpID(fmt.Sprint("c", k.n)), Seq: 3, Rows: []session.Row{{Type: session.RowAssistant}}, End: true}); err != nil {
		k.t.Fatal(err)
	}
}

// TestRetentionRoundAndMarks: all sessions are gone round, a page a minute; and however short retention is, no session goes before its marks.
func TestRetentionRoundAndMarks(t *testing.T) {
	files := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const many = 300
		k := &kept{t: t, st: storetest.NewModel(time.Now)}
		for i := range many {
			k.turn(chatOf(fmt.Sprintf("c%04d", i)))
		}
		var asked atomic.Int64 // by the sweeper's goroutine
		counting := counted{Store: k.st, pages: &asked}
		a := &admin{store: counting, files: &workspaces{root: files, shared: func(session.Key) string { return "" }}}
		s := newSweeper(a, time.Hour, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.run(ctx) }()
		time.Sleep(session.MarkLife)
		synctest.Wait()
		if n := len(k.names()); n != many {
			t.Errorf("%d sessions are left while their marks count; want %d", n, many)
		}
		if got, want := asked.Load(), int64(session.MarkLife/retainEvery); got > want {
			t.Errorf("%d pages were read; want at most %d", got, want)
		}
		time.Sleep((many/retainPage*2 + 2) * time.Minute)
		synctest.Wait()
		if n := len(k.names()); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
		stop()
		<-done
	})
}

type counted struct {
	session.Store
	pages *atomic.Int64
}

func (c counted) Sessions(ctx context.Context, after string, limit int) ([]session.Lane, error) {
	c.pages.Add(1)
	if limit > retainPage {
		return nil, errors.New("more than a page")
	}
	return c.Store.Sessions(ctx, after, limit)
}

// between does something before or after a session expires.
type between struct {
	session.Store
	before, after func()
}

func (b between) Expire(ctx context.Context, key session.Key, idle time.Duration) error {
	if b.before != nil {
		b.before()
	}
	err := b.Store.Expire(ctx, key, idle)
	if b.after != nil && err == nil {
		b.after()
	}
	return err
}

// TestExpireRaces: a message, its file and its answer that come while a session is
// dropped stay, whichever comes first.
func TestExpireRaces(t *testing.T) {
	now := time.Now()
	const old = 100 * 24 * time.Hour
	for name, when := range map[string]string{"nothing comes": "", "before it goes": "before", "after it went": "after"} {
		t.Run(name, func(t *testing.T) {
			at := now
			k := &kept{t: t, st: storetest.NewModel(func() time.Time { return at })}
			key := chatOf("one")
			k.turn(key)
			observed, err := json.Marshal(map[string]any{"last": 2, "kept": []map[string]any{
				{"n": 1, "id": "o1", "text": "old", "sent": now.UnixMilli()}, {"n": 2, "id": "o2", "text": "new", "sent": now.Add(old).UnixMilli()},
			}})
			if err != nil {
				t.Fatal(err)
			}
			for doc, data := range map[string][]byte{web.MemoName(key): []byte(`["old"]`), "observed:web:one": observed} {
				if err := k.st.PutDoc(t.Context(), doc, 0, data); err != nil {
					t.Fatal(err)
				}
			}
			at = now.Add(old)
			b := &between{Store: k.st}
			a := adminOf(t, b)
			dir, err := a.files.dir(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "old.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			comes := func() {
				k.accept(key)
				if err := k.st.PutDoc(t.Context(), web.MemoName(key), 1, []byte(`["new"]`)); err != nil {
					t.Fatal(err)
				}
			}
			switch when {
			case "before":
				b.before = comes
			case "after":
				b.after = comes
			}
			done, err := a.expire(t.Context(), key, 30*24*time.Hour, now.Add(old))
			if err != nil || done != (when != "before") {
				t.Errorf("dropped %v, %v", done, err)
			}
			lane, err := k.st.Load(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			memo, _, err := k.st.Doc(t.Context(), web.MemoName(key))
			if err != nil {
				t.Fatal(err)
			}
			said, _, err := k.st.Doc(t.Context(), "observed:web:one")
			if err != nil {
				t.Fatal(err)
			}
			_, gone := os.Stat(filepath.Join(dir, "old.txt"))
			if when == "" {
				if lane.Exists || len(memo) > 0 || !os.IsNotExist(gone) {
					t.Errorf("left: lane %v, memo %q, file %v", lane.Exists, memo, gone)
				}
			} else if len(lane.Slot) != 1 || string(memo) != `["new"]` || gone != nil {
				t.Errorf("got %d that wait, memo %q, file: %v; want all that is new, and the files", len(lane.Slot), memo, gone)
			}
			if wantOld := when == "before"; strings.Contains(string(said), `"old"`) != wantOld || !strings.Contains(string(said), `"new"`) {
				t.Errorf("observed: %s", said)
			}
		})
	}
}

// TestRemoveOld: what is new stays, and what a link names is not touched.
func TestRemoveOld(t *testing.T) {
	w := &workspaces{root: t.TempDir(), shared: func(session.Key) string { return "" }}
	key := chatOf("one")
	dir, err := w.dir(key)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.txt")
	for _, path := range []string{other, filepath.Join(dir, "a", "b", "old.txt"), filepath.Join(dir, "c", "old.txt"), filepath.Join(w.pictures(key), "old.png")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(other, filepath.Join(dir, "link")), os.Symlink(filepath.Dir(other), filepath.Join(dir, "linked"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	last, err := changed(root, "linked")
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "c", "new.txt")
	waitFor(t, func() bool { // the clock of files is coarse
		if err := errors.Join(os.WriteFile(fresh, []byte("x"), 0o600), os.Chtimes(fresh, time.Unix(0, 0), time.Unix(0, 0))); err != nil {
			t.Fatal(err)
		}
		at, err := changed(root, "c/new.txt")
		return err == nil && at.After(last)
	})
	if err := w.removeOld(key, last); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := filepath.WalkDir(w.root, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.root, path)
		left = append(left, rel)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{".", ".pictures", "web.one", "web.one/c", "web.one/c/new.txt"}; !slices.Equal(left, want) {
		t.Errorf("left %q; want %q", left, want)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a linked file: %v", err)
	}
	if err := w.removeOld(key, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("an empty workspace: %v; want none", err)
	}
}
