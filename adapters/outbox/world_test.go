package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/session"
	"coxswain/store/storetest"
)

// A world is one outbox over the model store and a platform that does as it
// is told.
type world struct {
	t     *testing.T
	began time.Time
	store *storetest.Model
	hook  storetest.Hook
	out   *outbox.Outbox
	plat  *platform
}

const unknownAfter = 10 * time.Second

func play(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, began: time.Now(), store: storetest.NewModel(time.Now)}
		w.plat = &platform{w: w}
		st := &storetest.Faulty{Store: w.store, Hook: func(point string, when storetest.When) storetest.Fault {
			if w.hook == nil {
				return storetest.None
			}
			return w.hook(point, when)
		}}
		w.out = outbox.New(t.Context(), outbox.Options{
			Store: st, Nonce: "life1/out", HubNonce: "life1", UnknownAfter: unknownAfter, Log: slog.New(slog.DiscardHandler),
		})
		w.out.Register(w.plat)
		defer w.out.Close(0)
		f(w)
	})
}

func key(chat session.ChatID) session.Key { return session.Key{Platform: "fake", Chat: chat} }

var room = key("room")

// put writes parts of one kind to a session's outbox, named by their ids.
func (w *world) put(k session.Key, kind session.PartKind, ids ...string) {
	w.t.Helper()
	var outs []session.PartNew
	for _, id := range ids {
		outs = append(outs, session.PartNew{ID: id, Kind: kind})
	}
	if _, err := w.store.Post(w.t.Context(), session.Post{Key: k, Outs: outs}); err != nil {
		w.t.Fatal(err)
	}
}

// left is how many parts are in a session's outbox.
func (w *world) left(k session.Key) int {
	w.t.Helper()
	l, err := w.store.Load(w.t.Context(), k)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Out
}

// rest lets time pass and all that is due happen.
func (w *world) rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want checks all sends so far, each as "seconds part", with a "?" behind one
// that was said to be a possible repeat.
func (w *world) want(calls ...string) {
	w.t.Helper()
	if got := w.plat.calls(); !slices.Equal(got, calls) {
		w.t.Errorf("sent %q; want %q", got, calls)
	}
}

// platform remembers what it was given to send and to sign.
type platform struct {
	w *world
	// send and sign decide; nil: all is well.
	send func(ctx context.Context, p session.Part) error
	sign func(f session.Fate) error

	mu    sync.Mutex
	sends []string
	signs []string
}

func (p *platform) Name() session.PlatformName      { return "fake" }
func (p *platform) Parts(session.Outgoing) [][]byte { panic("the hub cuts") }
func (p *platform) Show(session.View)               {}
func (p *platform) secs() string {
	return fmt.Sprint(time.Since(p.w.began).Round(time.Second).Seconds())
}
func (p *platform) calls() []string  { p.mu.Lock(); defer p.mu.Unlock(); return slices.Clone(p.sends) }
func (p *platform) signed() []string { p.mu.Lock(); defer p.mu.Unlock(); return slices.Clone(p.signs) }
func fail(o session.SendOutcome, d time.Duration) error {
	return &session.SendError{Outcome: o, Wait: d, Err: errors.New("scripted")}
}

func (p *platform) Send(ctx context.Context, part session.Part) (session.MessageID, error) {
	p.mu.Lock()
	line := p.secs() + " " + part.ID
	if part.State == session.PartUnknown {
		line += "?"
	}
	p.sends = append(p.sends, line)
	p.mu.Unlock()
	if p.send != nil {
		if err := p.send(ctx, part); err != nil {
			return "", err
		}
	}
	return "sent", nil
}

func (p *platform) Sign(_ context.Context, _ session.Key, f session.Fate) error {
	p.mu.Lock()
	p.signs = append(p.signs, fmt.Sprintf("%s %d %s", p.secs(), f.Ticket, f.State))
	p.mu.Unlock()
	if p.sign != nil {
		return p.sign(f)
	}
	return nil
}

// inTurn gives one error after another, nil when used up.
func inTurn(errs ...error) func(context.Context, session.Part) error {
	return func(context.Context, session.Part) error {
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}
