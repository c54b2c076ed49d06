package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coxswain/session"
)

// Copied says what a copy moved.
type Copied struct {
	Sessions int64
	Rows     int64
	Waiting  int64 // entries in slots
	Parts    int64 // in outboxes
	Docs     int64
	Took     time.Duration
}

// Sizes of the pages that a lane moves in: a lane of any length takes as much
// memory as one page.
const (
	rowsPage  = 64 // a row can be a tool's whole output
	partsPage = 64
	marksPage = 1000
	lanesPage = 16 // read with what waits in them
)

// Copy opens the stores at two URLs and moves all of the first into the second,
// which is empty or holds an unfinished copy of the same one. It can be cut at any
// moment and goes on when it is called again; no gateway starts on a store that
// holds a part of a copy. At the end both are compared, lane by lane.
func Copy(ctx context.Context, from, to string, o Options) (Copied, error) {
	if err := apart(from, to); err != nil {
		return Copied{}, err
	}
	o.Existing = true
	src, err := openArchive(ctx, from, o)
	if err != nil {
		return Copied{}, fmt.Errorf("FROM: %w", err)
	}
	o.Existing = false
	dst, err := openArchive(ctx, to, o)
	if err != nil {
		return Copied{}, errors.Join(fmt.Errorf("TO: %w", err), src.Close())
	}
	done, err := CopyArchive(ctx, src, dst, Show(from), Show(to))
	return done, errors.Join(err, dst.Close(), src.Close())
}

func openArchive(ctx context.Context, url string, o Options) (session.Archive, error) {
	st, err := Open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	a, ok := st.(session.Archive)
	if !ok {
		return nil, errors.Join(fmt.Errorf(wordsNoCopy, Show(url)), st.Close())
	}
	return a, nil
}

// Show is a store's URL for people, without what may be secret in it.
func Show(storeURL string) string {
	scheme, rest, _ := strings.Cut(storeURL, ":")
	if scheme == "sqlite" {
		return scheme + ":" + rest
	}
	u, err := url.Parse(storeURL)
	if err != nil {
		return scheme + "://…"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// apart refuses two names of one store, and two files that share a directory: the
// lock is on that.
func apart(from, to string) error {
	if from == to {
		return errors.New(wordsSame)
	}
	a, fromFile := strings.CutPrefix(from, "sqlite:")
	b, toFile := strings.CutPrefix(to, "sqlite:")
	if !fromFile || !toFile {
		return nil
	}
	dir := func(path string) string {
		d := filepath.Dir(path)
		if abs, err := filepath.Abs(d); err == nil {
			d = abs
		}
		if real, err := filepath.EvalSymlinks(d); err == nil {
			d = real
		}
		return d
	}
	switch at := dir(a); {
	case at != dir(b):
		return nil
	case filepath.Base(a) == filepath.Base(b):
		return errors.New(wordsSame)
	default:
		return fmt.Errorf(wordsDir, at)
	}
}

// A copier is one run of a copy. Its state is in the target store, as
// session.CopyState.
type copier struct {
	src, dst session.Archive
	toName   string
	state    session.CopyState
	done     Copied
}

// CopyArchive is Copy of opened stores. The names are for people.
func CopyArchive(ctx context.Context, src, dst session.Archive, fromName, toName string) (Copied, error) {
	c := &copier{src: src, dst: dst, toName: toName}
	began := time.Now()
	whole, err := c.start(ctx, fromName)
	if err != nil {
		return Copied{}, err
	}
	if !whole {
		err = c.run(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf(wordsCut, c.state.Sessions)
	}
	c.done.Took = time.Since(began)
	return c.done, err
}

// start checks both ends and takes the target for this copy; whole says that there
// is nothing to be done: the target holds all of the source and nothing else. The
// order is what makes it safe beside a gateway that serves the target: once the
// marker stands none starts there, then those that run are shut out, and what they
// had written until then is seen.
func (c *copier) start(ctx context.Context, fromName string) (whole bool, err error) {
	id, err := c.src.Identity(ctx)
	if err != nil {
		return false, fmt.Errorf("FROM: %w", err)
	}
	other, err := c.dst.Identity(ctx)
	if err != nil {
		return false, fmt.Errorf("TO: %w", err)
	}
	if id == other {
		return false, errors.New(wordsSame)
	}
	half, err := session.Copying(ctx, c.src)
	if err != nil {
		return false, fmt.Errorf("FROM: %w", err)
	}
	if half != nil {
		return false, fmt.Errorf(wordsHalf, half.Name)
	}
	if err := c.unused(ctx); err != nil {
		return false, err
	}
	was, err := session.Copying(ctx, c.dst)
	if err != nil {
		return false, fmt.Errorf("TO: %w", err)
	}
	switch {
	case was == nil:
		c.state = session.CopyState{From: id, Name: fromName}
		if err = c.empty(ctx); err != nil {
			// A run that was cut behind its last step has left a whole copy.
			if same, serr := c.same(ctx); serr == nil && same {
				return true, nil
			}
		}
	case was.From != id:
		err = fmt.Errorf(wordsOther, was.Name)
	default:
		c.state = *was
	}
	if err != nil {
		return false, err
	}
	if err := session.MarkCopy(ctx, c.dst, &c.state); err != nil {
		return false, fmt.Errorf("TO: %w", err)
	}
	if err := c.dst.TakeOver(ctx); err != nil {
		return false, fmt.Errorf("TO: %w", err)
	}
	if was != nil {
		return false, nil
	}
	if err := c.empty(ctx); err != nil {
		return false, errors.Join(err, session.MarkCopy(ctx, c.dst, nil))
	}
	return false, nil
}

// unused refuses a source that a gateway works on, or that only a newer version can
// read. SQLite's lock has told; over Redis a live lease does.
func (c *copier) unused(ctx context.Context) error {
	return eachLane(ctx, c.src, "", func(l session.Lane) error {
		if l.Form > session.Form {
			return fmt.Errorf("%s: %w", l.Key, session.ErrNewer) // this version does not know all that is there
		}
		if l.Nonce != "" && l.Now.Before(l.Until) {
			return fmt.Errorf(wordsLive, l.Key)
		}
		return nil
	})
}

// empty refuses a target that holds something.
func (c *copier) empty(ctx context.Context) error {
	lanes, err := c.dst.Sessions(ctx, "", 1)
	if err != nil {
		return fmt.Errorf("TO: %w", err)
	}
	names, err := c.dst.DocNames(ctx)
	if err != nil {
		return fmt.Errorf("TO: %w", err)
	}
	names = slices.DeleteFunc(names, session.StaysDoc)
	if len(lanes) > 0 || len(names) > 0 {
		return fmt.Errorf(wordsFull, c.toName)
	}
	return nil
}

// eachLane calls f with every lane behind after, in order.
func eachLane(ctx context.Context, st session.Store, after string, f func(session.Lane) error) error {
	for {
		lanes, err := st.Sessions(ctx, after, lanesPage)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			if err := f(l); err != nil {
				return err
			}
			after = l.Key.String()
		}
		if len(lanes) < lanesPage {
			return nil
		}
	}
}

func (c *copier) run(ctx context.Context) error {
	before, err := c.src.Stats(ctx)
	if err != nil {
		return err
	}
	if err := c.resume(ctx); err != nil {
		return err
	}
	if err := eachLane(ctx, c.src, c.state.Done, func(l session.Lane) error { return c.move(ctx, l.Key) }); err != nil {
		return err
	}
	if err := c.docs(ctx); err != nil {
		return err
	}
	if err := c.dst.ImportStats(ctx, before); err != nil {
		return err
	}
	if err := c.verify(ctx, before); err != nil {
		return err
	}
	return session.MarkCopy(ctx, c.dst, nil)
}

// resume removes the lane in whose middle an earlier run was cut: it may be
// deleted in the source meanwhile.
func (c *copier) resume(ctx context.Context) error {
	if c.state.Lane == "" {
		return nil
	}
	key, err := session.ParseKey(c.state.Lane)
	if err != nil {
		return err
	}
	return c.dst.Delete(ctx, key)
}

// move copies the next lane and notes it.
func (c *copier) move(ctx context.Context, key session.Key) error {
	c.state.Lane = key.String()
	if err := session.MarkCopy(ctx, c.dst, &c.state); err != nil {
		return err
	}
	if err := c.lane(ctx, key); err != nil {
		return fmt.Errorf("session %s: %w", key, err)
	}
	c.state.Done, c.state.Lane = c.state.Lane, ""
	c.state.Sessions++
	return nil
}

// lane copies one lane, over what is there of it.
func (c *copier) lane(ctx context.Context, key session.Key) error {
	d, err := c.src.Dump(ctx, key)
	if err != nil {
		return err
	}
	page := session.LanePage{Key: key, Gen: d.Lane.Gen}
	first := page
	first.First = true
	if err := c.dst.Import(ctx, first); err != nil {
		return err
	}
	for gen := int64(1); gen <= d.Lane.Gen; gen++ {
		if err := c.rows(ctx, key, gen); err != nil {
			return err
		}
	}
	for after := int64(0); after < int64(d.Lane.Out); {
		parts, err := c.src.Parts(ctx, key, after, partsPage)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return fmt.Errorf(wordsMoved, "its outbox")
		}
		p := page
		p.Parts, p.After = parts, after
		if err := c.dst.Import(ctx, p); err != nil {
			return err
		}
		after += int64(len(parts))
	}
	for marks := range slices.Chunk(fresh(d.Marks, d.Lane.Now), marksPage) {
		p := page
		p.Marks = marks
		if err := c.dst.Import(ctx, p); err != nil {
			return err
		}
	}
	if page.Fates, err = c.src.Fates(ctx, key, 0); err != nil {
		return err
	}
	d.Marks = nil
	page.Last = &d
	return c.dst.Import(ctx, page)
}

// rows copies one generation.
func (c *copier) rows(ctx context.Context, key session.Key, gen int64) error {
	for after := int64(0); ; {
		rows, err := c.src.Rows(ctx, key, gen, after, rowsPage)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := c.dst.Import(ctx, session.LanePage{Key: key, Gen: gen, Rows: rows}); err != nil {
				return err
			}
			after = rows[len(rows)-1].Seq
		}
		if len(rows) < rowsPage {
			return nil
		}
	}
}

// fresh leaves out marks that count no more.
func fresh(marks []session.Mark, now time.Time) []session.Mark {
	return slices.DeleteFunc(slices.Clone(marks), func(k session.Mark) bool { return now.Sub(k.At) > session.MarkLife })
}

// docs copies the documents.
func (c *copier) docs(ctx context.Context) error {
	names, err := c.src.DocNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if session.StaysDoc(name) {
			continue
		}
		data, version, err := c.src.Doc(ctx, name)
		if err != nil {
			return err
		}
		if err := c.dst.ImportDoc(ctx, name, version, data); err != nil {
			return err
		}
	}
	return nil
}
