package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"coxswain/session"
)

// verify compares all that both stores answer. A lane that differs is copied once
// more: the source may have been served between two runs of a copy. One that
// differs still, or counters that moved, say that it is served now.
func (c *copier) verify(ctx context.Context, before session.Stats) error {
	c.done = Copied{}
	if err := eachLane(ctx, c.src, "", func(l session.Lane) error { return c.compare(ctx, l.Key) }); err != nil {
		return err
	}
	if err := c.prune(ctx); err != nil {
		return err
	}
	if err := c.compareDocs(ctx); err != nil {
		return err
	}
	// Lanes that were copied once more or removed have changed what is counted.
	if err := c.dst.ImportStats(ctx, before); err != nil {
		return err
	}
	after, err := c.src.Stats(ctx)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf(wordsMoved, "its counters")
	}
	got, err := c.dst.Stats(ctx)
	if err != nil {
		return err
	}
	if got.Accepted != got.Consumed+got.Steered+got.Dropped+got.InSlot {
		return fmt.Errorf(wordsLaw, c.toName, got.Accepted, got.Consumed, got.Steered, got.Dropped, got.InSlot)
	}
	if got != after {
		return fmt.Errorf(wordsMoved, "what is counted")
	}
	return nil
}

// same reports whether the target holds what the source does, and nothing else. It
// writes nothing.
func (c *copier) same(ctx context.Context) (bool, error) {
	differ := errors.New("they differ")
	c.done = Copied{}
	err := eachLane(ctx, c.src, "", func(l session.Lane) error {
		what, err := c.differs(ctx, l.Key)
		if err == nil && what != "" {
			err = differ
		}
		return err
	})
	if err == nil {
		err = eachLane(ctx, c.dst, "", func(l session.Lane) error {
			has, err := c.src.Load(ctx, l.Key)
			if err == nil && !has.Exists {
				err = differ
			}
			return err
		})
	}
	if err == nil {
		err = c.compareDocs(ctx)
	}
	if err != nil {
		c.done = Copied{}
		if errors.Is(err, differ) {
			err = nil
		}
		return false, err
	}
	a, err := c.src.Stats(ctx)
	if err != nil {
		return false, err
	}
	b, err := c.dst.Stats(ctx)
	return err == nil && a == b, err
}

// prune removes lanes of the target that the source has no more.
func (c *copier) prune(ctx context.Context) error {
	return eachLane(ctx, c.dst, "", func(l session.Lane) error {
		has, err := c.src.Load(ctx, l.Key)
		if err != nil || has.Exists {
			return err
		}
		return c.dst.Delete(ctx, l.Key)
	})
}

func (c *copier) compare(ctx context.Context, key session.Key) error {
	what, err := c.differs(ctx, key)
	if err == nil && what != "" {
		if err := c.lane(ctx, key); err != nil {
			return err
		}
		if what, err = c.differs(ctx, key); err == nil && what != "" {
			return fmt.Errorf(wordsDiffers, key, what)
		}
	}
	return err
}

// differs says where the two stores differ in a lane, "" if nowhere, and counts
// the lane.
func (c *copier) differs(ctx context.Context, key session.Key) (string, error) {
	a, err := c.src.Dump(ctx, key)
	if err != nil {
		return "", err
	}
	b, err := c.dst.Dump(ctx, key)
	if err != nil {
		return "", err
	}
	la, err := c.src.Load(ctx, key)
	if err != nil {
		return "", err
	}
	lb, err := c.dst.Load(ctx, key)
	if err != nil {
		return "", err
	}
	now := a.Lane.Now
	a.Marks, b.Marks = fresh(a.Marks, now), fresh(b.Marks, now)
	for _, l := range []*session.Lane{&a.Lane, &b.Lane, &la, &lb} {
		l.Now, l.Nonce, l.Until = time.Time{}, "", time.Time{}
	}
	if what := diff(a, b); what != "" {
		return what, nil
	}
	if what := diff(la, lb); what != "" {
		return what, nil
	}
	fa, err := c.src.Fates(ctx, key, 0)
	if err != nil {
		return "", err
	}
	fb, err := c.dst.Fates(ctx, key, 0)
	if err != nil {
		return "", err
	}
	if what := diff(fa, fb); what != "" {
		return "fates: " + what, nil
	}
	rows := int64(0)
	for gen := int64(1); gen <= la.Gen; gen++ {
		n, same, err := pages(rowsPage, func(after int64) ([]session.Row, []session.Row, error) {
			ra, err := c.src.Rows(ctx, key, gen, after, rowsPage)
			if err != nil {
				return nil, nil, err
			}
			rb, err := c.dst.Rows(ctx, key, gen, after, rowsPage)
			return ra, rb, err
		})
		if err != nil || !same {
			return "rows", err
		}
		rows += n
	}
	_, same, err := pages(partsPage, func(after int64) ([]session.PartNew, []session.PartNew, error) {
		pa, err := c.src.Parts(ctx, key, after, partsPage)
		if err != nil {
			return nil, nil, err
		}
		pb, err := c.dst.Parts(ctx, key, after, partsPage)
		return pa, pb, err
	})
	if err != nil || !same {
		return "outbox", err
	}
	c.done.Sessions++
	c.done.Rows += rows
	c.done.Waiting += int64(len(la.Slot))
	c.done.Parts += int64(la.Out)
	return "", nil
}

// pages compares what two stores give page by page, and counts it.
func pages[T any](size int, read func(after int64) ([]T, []T, error)) (n int64, same bool, err error) {
	for {
		a, b, err := read(n)
		if err != nil || diff(a, b) != "" {
			return n, false, err
		}
		n += int64(len(a))
		if len(a) < size {
			return n, true, nil
		}
	}
}

func (c *copier) compareDocs(ctx context.Context) error {
	names, err := c.src.DocNames(ctx)
	if err != nil {
		return err
	}
	there, err := c.dst.DocNames(ctx)
	if err != nil {
		return err
	}
	names, there = slices.DeleteFunc(names, session.StaysDoc), slices.DeleteFunc(there, session.StaysDoc)
	if !slices.Equal(names, there) {
		return fmt.Errorf(wordsMoved, "its documents")
	}
	for _, name := range names {
		a, va, err := c.src.Doc(ctx, name)
		if err != nil {
			return err
		}
		b, vb, err := c.dst.Doc(ctx, name)
		if err != nil {
			return err
		}
		if va != vb || !bytes.Equal(a, b) {
			return fmt.Errorf(wordsMoved, "document "+name)
		}
	}
	c.done.Docs = int64(len(names))
	return nil
}

// diff names the first place where two values of one type differ in what a store
// promises: times to the millisecond, an empty slice is no slice. It never says
// what stands there.
func diff(a, b any) string {
	path, same := walk(reflect.ValueOf(a), reflect.ValueOf(b))
	if same {
		return ""
	}
	return "differs at " + cmp.Or(strings.TrimPrefix(path, "."), "its length")
}

func walk(a, b reflect.Value) (path string, same bool) {
	if t, ok := a.Interface().(time.Time); ok {
		u := b.Interface().(time.Time)
		return "", t.IsZero() == u.IsZero() && t.UnixMilli() == u.UnixMilli()
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if path, same := walk(a.Field(i), b.Field(i)); !same {
				return "." + a.Type().Field(i).Name + path, false
			}
		}
		return "", true
	case reflect.Slice:
		if a.Type().Elem().Kind() == reflect.Uint8 {
			return "", bytes.Equal(a.Bytes(), b.Bytes())
		}
		if a.Len() != b.Len() {
			return "", false
		}
		for i := range a.Len() {
			if path, same := walk(a.Index(i), b.Index(i)); !same {
				return fmt.Sprintf("[%d]%s", i, path), false
			}
		}
		return "", true
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return "", a.IsNil() == b.IsNil()
		}
		return walk(a.Elem(), b.Elem())
	default:
		return "", a.Interface() == b.Interface()
	}
}
