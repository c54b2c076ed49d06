package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store"
)

var errCut = errors.New("cut")

// A blade ends a copy at its n-th step: a store call has two, before it and
// between it and its reply.
type blade struct {
	at, n atomic.Int64
	stop  context.CancelFunc
}

func (b *blade) step() error {
	if b.n.Add(1) != b.at.Load() {
		return nil
	}
	b.stop()
	return errCut
}

// A cut is a store under a blade.
type cut struct {
	session.Archive
	b *blade
}

func do(b *blade, f func() error) error {
	if err := b.step(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return b.step()
}

func get[T any](b *blade, f func() (T, error)) (v T, err error) {
	err = do(b, func() (err error) { v, err = f(); return err })
	return v, err
}

func (c cut) Identity(ctx context.Context) (string, error) {
	return get(c.b, func() (string, error) { return c.Archive.Identity(ctx) })
}
func (c cut) TakeOver(ctx context.Context) error {
	return do(c.b, func() error { return c.Archive.TakeOver(ctx) })
}
func (c cut) Dump(ctx context.Context, key session.Key) (session.LaneDump, error) {
	return get(c.b, func() (session.LaneDump, error) { return c.Archive.Dump(ctx, key) })
}
func (c cut) Parts(ctx context.Context, key session.Key, after int64, limit int) ([]session.PartNew, error) {
	return get(c.b, func() ([]session.PartNew, error) { return c.Archive.Parts(ctx, key, after, limit) })
}
func (c cut) DocNames(ctx context.Context) ([]string, error) {
	return get(c.b, func() ([]string, error) { return c.Archive.DocNames(ctx) })
}
func (c cut) Import(ctx context.Context, p session.LanePage) error {
	return do(c.b, func() error { return c.Archive.Import(ctx, p) })
}
func (c cut) ImportDoc(ctx context.Context, name string, version int64, data []byte) error {
	return do(c.b, func() error { return c.Archive.ImportDoc(ctx, name, version, data) })
}
func (c cut) ImportStats(ctx context.Context, s session.Stats) error {
	return do(c.b, func() error { return c.Archive.ImportStats(ctx, s) })
}
func (c cut) Sessions(ctx context.Context, after string, limit int) ([]session.Lane, error) {
	return get(c.b, func() ([]session.Lane, error) { return c.Archive.Sessions(ctx, after, limit) })
}
func (c cut) Rows(ctx context.Context, key session.Key, gen, after int64, limit int) ([]session.Row, error) {
	return get(c.b, func() ([]session.Row, error) { return c.Archive.Rows(ctx, key, gen, after, limit) })
}
func (c cut) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	return get(c.b, func() (session.Lane, error) { return c.Archive.Load(ctx, key) })
}
func (c cut) Fates(ctx context.Context, key session.Key, limit int) ([]session.Fate, error) {
	return get(c.b, func() ([]session.Fate, error) { return c.Archive.Fates(ctx, key, limit) })
}
func (c cut) Delete(ctx context.Context, key session.Key) error {
	return do(c.b, func() error { return c.Archive.Delete(ctx, key) })
}
func (c cut) PutDoc(ctx context.Context, name string, version int64, data []byte) error {
	return do(c.b, func() error { return c.Archive.PutDoc(ctx, name, version, data) })
}
func (c cut) Stats(ctx context.Context) (session.Stats, error) {
	return get(c.b, func() (session.Stats, error) { return c.Archive.Stats(ctx) })
}

// TestCopyCut cuts a copy at every call of either store, before it and before its
// reply, and goes on.
func TestCopyCut(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) {
		clk := newClock()
		src := from(t, clk.now)
		for _, name := range []string{"mid-tools", "unknown part"} {
			states[name](&filler{t: t, st: src, key: session.Key{Platform: "test", Chat: session.ChatID(name)}})
		}
		for i, name := range []string{"a", "b"} {
			if err := src.PutDoc(t.Context(), name, 0, []byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		clk.step(10 * time.Second)
		cuts, marked := 0, 0
		for at := int64(1); ; at++ {
			if testing.Short() && at%7 != 1 {
				continue
			}
			dst := to(t, clk.now)
			ctx, stop := context.WithCancel(t.Context())
			b := &blade{stop: stop}
			b.at.Store(at)
			_, err := store.CopyArchive(ctx, cut{src.(session.Archive), b}, cut{dst.(session.Archive), b}, "from", "to")
			stop()
			if err == nil {
				t.Logf("%d cuts, after %d of them no gateway starts", cuts, marked)
				if cuts < 20 || marked < 15 {
					t.Error("there must be more")
				}
				return
			}
			cuts++
			half, err := session.Copying(t.Context(), dst)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := dst.Sessions(t.Context(), "", 0)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case half != nil:
				marked++
			case len(whole) != 0 && len(whole) != 2:
				t.Fatalf("cut at step %d: %d lanes stand there, and nothing says that it is half a copy", at, len(whole))
			case len(whole) == 2: // the last reply was lost
				same(t, dst, src)
				continue
			}
			if err := move(t.Context(), src, dst); err != nil {
				t.Fatalf("after the cut at step %d: %v", at, err)
			}
			same(t, dst, src)
			if t.Failed() {
				t.Fatalf("after the cut at step %d", at)
			}
		}
	})
}

// TestCopyServedBetween: between two runs of a copy the source was served. What
// changed, came and went there is right in the end.
func TestCopyServedBetween(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) {
		clk := newClock()
		src, dst := from(t, clk.now), to(t, clk.now)
		key := func(name string) session.Key { return session.Key{Platform: "test", Chat: session.ChatID(name)} }
		for _, name := range []string{"a", "b", "c", "d"} {
			(&filler{t: t, st: src, key: key(name)}).accept("one")
		}
		for _, doc := range []string{"x", "y"} {
			if err := src.PutDoc(t.Context(), doc, 0, []byte("one")); err != nil {
				t.Fatal(err)
			}
		}
		// Cut in the middle of c.
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		b := &blade{stop: stop}
		seen := &cutAt{cut: cut{dst.(session.Archive), b}, key: key("c")}
		_, err := store.CopyArchive(ctx, src.(session.Archive), seen, "from", "to")
		if err == nil || !strings.Contains(err.Error(), "2 sessions are") {
			t.Fatalf("got %v; want that two sessions are there", err)
		}
		(&filler{t: t, st: src, key: key("a"), n: 10}).accept("two")
		for _, gone := range []string{"b", "c"} {
			if err := src.Delete(t.Context(), key(gone)); err != nil {
				t.Fatal(err)
			}
		}
		(&filler{t: t, st: src, key: key("aa")}).accept("new")
		if err := src.PutDoc(t.Context(), "x", 1, []byte("two")); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), src, dst); err != nil {
			t.Fatal(err)
		}
		same(t, dst, src)
	})
}

// cutAt is cut when the last page of a lane comes.
type cutAt struct {
	cut
	key session.Key
}

func (c *cutAt) Import(ctx context.Context, p session.LanePage) error {
	if p.Key == c.key && p.Last != nil {
		c.b.stop()
		return errCut
	}
	return c.Archive.Import(ctx, p)
}

// TestCopyRefuses: what must not be copied, or not there.
func TestCopyRefuses(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) {
		clk := newClock()
		src := from(t, clk.now)
		fl := &filler{t: t, st: src, key: session.Key{Platform: "test", Chat: "1"}}
		fl.begin()
		want := func(err error, part string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("got %v; want %q", err, part)
			}
		}
		dst := to(t, clk.now)
		want(move(t.Context(), src, dst), "a gateway runs session test:1;")
		if half, err := session.Copying(t.Context(), dst); half != nil || err != nil {
			t.Errorf("it was begun: %+v, %v", half, err)
		}
		clk.step(10 * time.Second)
		want(move(t.Context(), src, src), "the same store")

		full := to(t, clk.now)
		if err := full.PutDoc(t.Context(), "d", 0, nil); err != nil {
			t.Fatal(err)
		}
		want(move(t.Context(), src, full), "is not empty")
		if half, err := session.Copying(t.Context(), full); half != nil || err != nil {
			t.Errorf("it was begun: %+v, %v", half, err)
		}

		half := to(t, clk.now)
		ctx, stop := context.WithCancel(t.Context())
		b := &blade{stop: stop}
		_, err := store.CopyArchive(ctx, src.(session.Archive), &cutAt{cut{half.(session.Archive), b}, fl.key}, "from", "to")
		want(err, "run the same command again")
		want(move(t.Context(), half, dst), "FROM holds an unfinished copy of from")
		other := from(t, clk.now)
		want(move(t.Context(), other, half), "an unfinished copy of another store (from)")

		// A gateway that serves the source all the time is seen.
		served := &serving{Archive: src.(session.Archive), f: fl}
		_, err = store.CopyArchive(t.Context(), served, dst.(session.Archive), "from", "to")
		want(err, "stop every gateway")
		if half, err := session.Copying(t.Context(), dst); half == nil || err != nil {
			t.Errorf("a copy that is not right counts as one: %v", err)
		}
	})
}

// serving accepts a message whenever a lane is read.
type serving struct {
	session.Archive
	f *filler
}

func (s *serving) Dump(ctx context.Context, key session.Key) (session.LaneDump, error) {
	s.f.accept(fmt.Sprint("while it is copied ", s.f.n))
	return s.Archive.Dump(ctx, key)
}

// TestCopyPages: a lane moves in pages, however long it is.
func TestCopyPages(t *testing.T) {
	t.Parallel()
	clk := newClock()
	src, dst := onSQLite(t, clk.now), onSQLite(t, clk.now)
	f := &filler{t: t, st: src, key: session.Key{Platform: "test", Chat: "1"}}
	states["pages"](f)
	for range 1100 { // more than a page of marks
		if _, err := src.Post(t.Context(), session.Post{Key: f.key, Dedupe: f.id("p")}); err != nil {
			t.Fatal(err)
		}
	}
	clk.step(10 * time.Second)
	pages := 0
	if _, err := store.CopyArchive(t.Context(), paged{src.(session.Archive), &pages}, paged{dst.(session.Archive), &pages}, "from", "to"); err != nil {
		t.Fatal(err)
	}
	if pages < 20 {
		t.Errorf("%d pages; want more", pages)
	}
	same(t, dst, src)
}

// paged refuses more than a page.
type paged struct {
	session.Archive
	n *int
}

func (p paged) check(limit int) error {
	*p.n++
	if limit < 0 || limit > 64 {
		return fmt.Errorf("a page of %d", limit)
	}
	return nil
}

func (p paged) Rows(ctx context.Context, key session.Key, gen, after int64, limit int) ([]session.Row, error) {
	if err := p.check(limit - 1); err != nil { // 0 is all of them
		return nil, err
	}
	return p.Archive.Rows(ctx, key, gen, after, limit)
}

func (p paged) Parts(ctx context.Context, key session.Key, after int64, limit int) ([]session.PartNew, error) {
	if err := p.check(limit - 1); err != nil {
		return nil, err
	}
	return p.Archive.Parts(ctx, key, after, limit)
}

func (p paged) Import(ctx context.Context, page session.LanePage) error {
	if err := p.check(max(len(page.Rows), len(page.Parts), (len(page.Marks)+15)/16)); err != nil {
		return err
	}
	return p.Archive.Import(ctx, page)
}

// TestCopyContinues: a second run begins with the lane in which the first was cut,
// and what arrives twice is there once.
func TestCopyContinues(t *testing.T) {
	pairs(t, func(t *testing.T, from, to opener) {
		clk := newClock()
		src, dst := from(t, clk.now), to(t, clk.now)
		fill(t, src, clk)
		lanes, err := src.Sessions(t.Context(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		b := &blade{stop: stop}
		at := len(lanes) / 2
		if _, err := store.CopyArchive(ctx, src.(session.Archive), &cutAt{cut{dst.(session.Archive), b}, lanes[at].Key}, "from", "to"); err == nil {
			t.Fatal("it was not cut")
		}
		w := &twice{Archive: dst.(session.Archive)}
		if _, err := store.CopyArchive(t.Context(), src.(session.Archive), w, "from", "to"); err != nil {
			t.Fatal(err)
		}
		if want := len(lanes) - at; len(w.lanes) != want || w.lanes[0] != lanes[at].Key {
			t.Errorf("it wrote %d lanes; want %d, from %v", len(w.lanes), want, lanes[at].Key)
		}
		same(t, dst, src)
	})
}

// twice writes each page twice: its first reply was lost.
type twice struct {
	session.Archive
	lanes []session.Key
}

func (w *twice) Import(ctx context.Context, p session.LanePage) error {
	if p.First {
		w.lanes = append(w.lanes, p.Key)
	}
	if err := w.Archive.Import(ctx, p); err != nil {
		return err
	}
	return w.Archive.Import(ctx, p)
}
