package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coxswain/adapters/discord"
	"coxswain/adapters/telegram"
	"coxswain/adapters/web"
	"coxswain/session"
)

// admin answers the shell's commands. It is the same code beside a running
// gateway, through its socket, and without one, on the opened store.
type admin struct {
	store  session.Store
	access *session.Access
	files  *workspaces
	parts  *parts // nil without a running gateway
}

// socketName is the Unix socket in the data directory, mode 0600: who may open
// it may read the store's file too.
const socketName = "gateway.sock"

// listen makes the socket. A socket that a dead process left is replaced; the
// store's lock has already shown that no other one lives.
func (a *admin) listen(dir string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, socketName)
	if answers(path) {
		return nil, fmt.Errorf("another gateway answers at %s", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // it is not used
		return nil, err
	}
	return l, nil
}

func (a *admin) run(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		cleanup, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = srv.Shutdown(cleanup) // what is left is cut off with the process
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := f(r)
			w.Header().Set("Content-Type", "application/json")
			if err != nil {
				w.WriteHeader(http.StatusConflict)
				v = map[string]string{"error": err.Error()}
			}
			_ = json.NewEncoder(w).Encode(v) // the shell is gone: nobody to tell
		})
	}
	route("GET /status", func(r *http.Request) (any, error) {
		if a.parts == nil {
			return nil, errors.New("no gateway is running")
		}
		return a.parts.status(r.Context())
	})
	route("GET /sessions", func(r *http.Request) (any, error) { return a.sessions(r.Context()) })
	route("GET /session", func(r *http.Request) (any, error) { return a.show(r.Context(), r.FormValue("key")) })
	route("DELETE /session", func(r *http.Request) (any, error) { return a.remove(r.Context(), r.FormValue("key")) })
	route("GET /pairs", func(r *http.Request) (any, error) { return a.pairs(r.Context()) })
	route("POST /pair", func(r *http.Request) (any, error) { return a.approve(r.Context(), r.FormValue("code")) })
	route("DELETE /pair", func(r *http.Request) (any, error) { return a.revoke(r.Context(), r.FormValue("id")) })
	return mux
}

// sessionLine is one session in a list.
type sessionLine struct {
	Session string    `json:"session"`
	Title   string    `json:"title"`
	Turn    int64     `json:"turn"`
	Phase   string    `json:"phase"`
	Waiting int       `json:"waiting"`
	Rows    int64     `json:"rows"`
	Touched time.Time `json:"touched"`
}

func lineOf(l session.Lane) sessionLine {
	return sessionLine{
		Session: l.Key.String(), Title: l.Title, Turn: l.Turn, Phase: l.Phase.String(), Waiting: len(l.Slot), Rows: l.Seq, Touched: l.Touched,
	}
}

func (a *admin) sessions(ctx context.Context) ([]sessionLine, error) {
	lines := []sessionLine{}
	for after := ""; ; {
		lanes, err := a.store.Sessions(ctx, after, 500)
		if err != nil {
			return nil, err
		}
		for _, l := range lanes {
			if l.Tickets > 0 {
				lines = append(lines, lineOf(l))
			}
			after = l.Key.String()
		}
		if len(lanes) < 500 {
			return lines, nil
		}
	}
}

// shown is one session in full.
type shown struct {
	sessionLine
	Slot []shownEntry `json:"slot"`
	Rows []shownRow   `json:"transcript"`
}

type shownEntry struct {
	Ticket int64  `json:"ticket"`
	Want   string `json:"want"`
	Held   bool   `json:"held,omitempty"`
	Text   string `json:"text"`
}

type shownRow struct {
	Seq  int64  `json:"seq"`
	Turn int64  `json:"turn"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func (a *admin) show(ctx context.Context, name string) (*shown, error) {
	key, lane, err := a.find(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := a.store.Rows(ctx, key, lane.Gen, 0, 0)
	if err != nil {
		return nil, err
	}
	s := &shown{sessionLine: lineOf(lane), Slot: []shownEntry{}, Rows: []shownRow{}}
	for _, e := range lane.Slot {
		in := session.DecodeSteer(session.Row{Tick: e.Ticket, Data: e.Data})
		s.Slot = append(s.Slot, shownEntry{e.Ticket, e.Want.String(), e.Held, in.Text()})
	}
	for _, r := range rows {
		if kind, text := rowText(r); kind != "" {
			s.Rows = append(s.Rows, shownRow{r.Seq, r.Turn, kind, text})
		}
	}
	return s, nil
}

// rowText is a row for reading; heads are not shown, they hold the key (I13).
func rowText(r session.Row) (kind, text string) {
	switch r.Type {
	case session.RowUser, session.RowFold:
		u := session.DecodeUser(r)
		var texts []string
		if n := len(u.Observed); n > 0 {
			texts = append(texts, fmt.Sprintf("(quoted: %d messages of the chat)", n))
		}
		for _, in := range slices.Concat(u.Again, u.AgainNotes, u.Inputs) {
			if in.Retry != 0 {
				texts = append(texts, fmt.Sprintf("(again: turn %d)", in.Retry))
				continue
			}
			texts = append(texts, in.Text())
		}
		return "user", strings.Join(append(texts, u.Event), "\n")
	case session.RowSteer:
		return fmt.Sprintf("steer %d", r.N), session.DecodeSteer(r).Text()
	case session.RowAssistant:
		m := session.DecodeAssistant(r)
		text := m.Text
		for _, c := range m.Calls {
			text += fmt.Sprintf("\n[%s %s]", c.Name, c.Args)
		}
		return "assistant", text
	case session.RowTool:
		t := session.DecodeTool(r)
		return "tool " + t.Name, t.Body
	}
	return "", ""
}

func (a *admin) find(ctx context.Context, name string) (session.Key, session.Lane, error) {
	key, err := session.ParseKey(name)
	if err != nil {
		return key, session.Lane{}, err
	}
	lane, err := a.store.Load(ctx, key)
	if err == nil && !lane.Exists {
		err = fmt.Errorf("there is no session %s; gateway sessions lists them", name)
	}
	return key, lane, err
}

func (a *admin) remove(ctx context.Context, name string) (any, error) {
	key, _, err := a.find(ctx, name)
	if err != nil {
		return nil, err
	}
	err = a.store.Delete(ctx, key)
	if errors.Is(err, session.ErrHeld) {
		return nil, fmt.Errorf("session %s is running; stop it first (/stop)", name)
	}
	if err != nil {
		return nil, err
	}
	routes := a.routes()
	if _, err := routes.Lane(ctx, key); err != nil { // reads them
		return nil, err
	}
	if chat := routes.Home(key); routes.Current(chat) == key {
		if err := a.forget(ctx, web.MemoName(chat)); err != nil {
			return nil, err
		}
		if err := session.ForgetObserved(ctx, a.store, chat); err != nil {
			return nil, err
		}
	}
	if a.parts != nil { // what it remembers is read from there
		a.parts.hub.Forget(key)
	}
	if err := routes.Forget(ctx, key); err != nil {
		return nil, err
	}
	err = a.files.remove(key)
	return map[string]string{"deleted": name}, err
}

// expire drops a session that was not used for idle, and reports whether it did.
// It is remove beside a chat that may be written to at any moment: whatever is
// newer than the session stays.
func (a *admin) expire(ctx context.Context, key session.Key, idle time.Duration, now time.Time) (bool, error) {
	routes := a.routes()
	if _, err := routes.Lane(ctx, key); err != nil { // reads them
		return false, err
	}
	chat := routes.Home(key)
	current := routes.Current(chat) == key
	memo, version, err := a.store.Doc(ctx, web.MemoName(chat))
	if err != nil {
		return false, err
	}
	switch err := a.store.Expire(ctx, key, idle); {
	case errors.Is(err, session.ErrStale):
		return false, nil
	case err != nil:
		return false, err
	}
	if a.parts != nil {
		a.parts.hub.Forget(key)
	}
	if !current {
		err = routes.ForgetAsleep(ctx, key)
	} else {
		if len(memo) > 0 {
			err = a.store.PutDoc(ctx, web.MemoName(chat), version, nil)
		}
		if errors.Is(err, session.ErrStale) {
			err = nil // a new one is kept there already
		}
		err = errors.Join(err, session.ForgetObservedBefore(ctx, a.store, chat, now.Add(-idle)))
	}
	again, lerr := a.store.Load(ctx, key)
	if lerr != nil || again.Exists {
		return true, errors.Join(err, lerr)
	}
	return true, errors.Join(err, a.files.removeOld(key, now.Add(-filesFresh)))
}

// filesFresh is how new a file in a dropped session's workspace must be to be of
// the next one: it is saved before the message that it came with is stored.
const filesFresh = time.Hour

// routes are those of the running gateway, if it runs here.
func (a *admin) routes() *session.Routes {
	if a.parts != nil {
		return a.parts.routes
	}
	return session.NewRoutes(a.store)
}

// forget empties a document: what is not there needs nothing.
func (a *admin) forget(ctx context.Context, doc string) error {
	data, version, err := a.store.Doc(ctx, doc)
	if err != nil || len(data) == 0 {
		return err
	}
	return a.store.PutDoc(ctx, doc, version, nil)
}

// pairLine is a stranger who waits to be let in.
type pairLine struct {
	Platform string    `json:"platform"`
	Code     string    `json:"code"`
	User     string    `json:"user"`
	Name     string    `json:"name"`
	Until    time.Time `json:"until"`
}

// pairPlatforms are those whose people are let in by code.
var pairPlatforms = []session.PlatformName{telegram.Name, discord.Name}

func (a *admin) pairs(ctx context.Context) ([]pairLine, error) {
	lines := []pairLine{}
	for _, name := range pairPlatforms {
		pairs, err := a.access.Pairs(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			lines = append(lines, pairLine{string(name), p.Code, string(p.User), p.Name, time.Unix(p.Till, 0)})
		}
	}
	return lines, nil
}

func (a *admin) approve(ctx context.Context, code string) (any, error) {
	for _, name := range pairPlatforms {
		p, ok, err := a.access.Approve(ctx, name, code)
		if err != nil {
			return nil, err
		}
		if ok {
			return map[string]string{"approved": fmt.Sprintf("%s:%s (%s)", name, p.User, p.Name)}, nil
		}
	}
	return nil, fmt.Errorf("code %q is unknown or expired; gateway pair lists those that wait", code)
}

func (a *admin) revoke(ctx context.Context, id string) (any, error) {
	platform, user, ok := strings.Cut(id, ":")
	if !ok {
		return nil, fmt.Errorf("%q is no PLATFORM:ID, for example telegram:12345", id)
	}
	done, err := a.access.Revoke(ctx, session.PlatformName(platform), session.UserID(user))
	if err == nil && !done {
		err = fmt.Errorf("nothing was granted to %s; people in the configuration are removed there", id)
	}
	return map[string]string{"revoked": id}, err
}
