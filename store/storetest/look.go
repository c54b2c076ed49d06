package storetest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"coxswain/session"
)

// A picture is all that can be read of one lane, with the counters of its
// store.
type picture struct {
	Lane  session.Lane
	Rows  [][]session.Row // by generation, from 1
	Fates []session.Fate  // at most the newest FatesKept: more may be kept
	Stats session.Stats
	Errs  []string // what could not be read
}

// look reads a picture.
func look(ctx context.Context, st session.Store, key session.Key) picture {
	var p picture
	note := func(err error) {
		if err != nil {
			p.Errs = append(p.Errs, err.Error())
		}
	}
	var err error
	p.Lane, err = st.Load(ctx, key)
	note(err)
	for gen := int64(1); gen <= p.Lane.Gen; gen++ {
		rows, err := st.Rows(ctx, key, gen, 0, 0)
		note(err)
		p.Rows = append(p.Rows, rows)
	}
	p.Fates, err = st.Fates(ctx, key, 0)
	note(err)
	p.Fates = p.Fates[:min(len(p.Fates), FatesKept)]
	p.Stats, err = st.Stats(ctx)
	note(err)
	return p
}

// diff gives one line for each place where two values of the same type differ
// in what a store promises: times are equal to the millisecond whatever their
// zone, an empty slice is no slice, and of a lane never written to only that
// fact counts.
func diff(got, want any) string {
	var d differ
	d.walk("", reflect.ValueOf(got), reflect.ValueOf(want))
	return strings.Join(d, "\n")
}

type differ []string

func (d *differ) note(path string, got, want any) {
	*d = append(*d, fmt.Sprintf("%s: got %v; want %v", strings.TrimPrefix(path, "."), got, want))
}

func (d *differ) walk(path string, got, want reflect.Value) {
	if !got.IsValid() || !want.IsValid() || got.Type() != want.Type() {
		if got.IsValid() || want.IsValid() {
			d.note(path, got, want)
		}
		return
	}
	switch g := got.Interface().(type) {
	case time.Time:
		if w := want.Interface().(time.Time); g.IsZero() != w.IsZero() || g.UnixMilli() != w.UnixMilli() {
			d.note(path, g, w)
		}
		return
	case session.Lane:
		if w := want.Interface().(session.Lane); !g.Exists && !w.Exists {
			return
		}
	}
	switch got.Kind() {
	case reflect.Struct:
		for i := range got.NumField() {
			d.walk(path+"."+got.Type().Field(i).Name, got.Field(i), want.Field(i))
		}
	case reflect.Slice:
		d.slices(path, got, want)
	case reflect.Pointer, reflect.Interface:
		if got.IsNil() || want.IsNil() {
			if got.IsNil() != want.IsNil() {
				d.note(path, present(got), present(want))
			}
			return
		}
		d.walk(path, got.Elem(), want.Elem())
	default:
		if g, w := got.Interface(), want.Interface(); g != w {
			d.note(path, g, w)
		}
	}
}

func (d *differ) slices(path string, got, want reflect.Value) {
	if got.Type().Elem().Kind() == reflect.Uint8 {
		if g, w := got.Bytes(), want.Bytes(); !bytes.Equal(g, w) {
			d.note(path, fmt.Sprintf("%.200q", g), fmt.Sprintf("%.200q", w))
		}
		return
	}
	if g, w := got.Len(), want.Len(); g != w {
		d.note(path, fmt.Sprintf("%d of them", g), w)
	}
	for i := range min(got.Len(), want.Len()) {
		d.walk(fmt.Sprintf("%s[%d]", path, i), got.Index(i), want.Index(i))
	}
}

func present(v reflect.Value) any {
	if v.IsNil() {
		return "nothing"
	}
	return fmt.Sprintf("%+v", v.Elem())
}
