package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"time"

	"coxswain/session"
	"coxswain/store"
)

// storeCommand is gateway store copy FROM TO: it moves everything between two
// stores that no gateway uses.
func storeCommand(ctx context.Context, c Config, o options, w io.Writer) error {
	if len(o.words) != 4 || o.words[1] != "copy" {
		return errors.New(textStoreUsage)
	}
	// Variables are read here too, so that no password need stand in the shell's
	// command line, where others on the machine can see it.
	urls := struct {
		From Secret `yaml:"FROM"`
		To   Secret `yaml:"TO"`
	}{Secret(o.words[2]), Secret(o.words[3])}
	if err := expand(reflect.ValueOf(&urls).Elem(), ""); err != nil {
		return err
	}
	opt := c.Store.options(slog.New(slog.DiscardHandler))
	done, err := store.Copy(ctx, string(urls.From), string(urls.To), opt)
	if err != nil {
		return fmt.Errorf("store copy: %w", err)
	}
	fmt.Fprintf(w, textCopied+"\n", done.Sessions, done.Rows, done.Waiting, done.Parts, done.Docs, done.Took.Round(10*time.Millisecond).Seconds())
	return nil
}

// wholeStore refuses a store that holds a part of a copy: what is missing would
// be taken for what never was.
func wholeStore(ctx context.Context, st session.Store) error {
	half, err := session.Copying(ctx, st)
	if err == nil && half != nil {
		err = fmt.Errorf(textHalfCopy, half.Name)
	}
	return err
}
