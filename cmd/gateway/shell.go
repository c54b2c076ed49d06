package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A console asks the running gateway through its socket; without one it opens
// the store itself. The answers are the same.
type console struct {
	http  *http.Client
	close func() error
}

// errNoGateway is what status says when nobody answers.
var errNoGateway = errors.New("no gateway")

// dial reaches the running gateway.
func dial(c Config) (*console, error) {
	path := filepath.Join(c.dataDir(), socketName)
	if !answers(path) {
		return nil, fmt.Errorf("%w: "+textNoGateway, errNoGateway, path)
	}
	var d net.Dialer
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}}
	return &console{http: &http.Client{Transport: tr, Timeout: 30 * time.Second}, close: func() error { tr.CloseIdleConnections(); return nil }}, nil
}

// answers reports whether a gateway is behind the socket. That it takes a connection
// proves nothing: a command that a killed gateway was just starting holds the socket
// until it becomes another program, and the next start would be refused. One that
// is there and does not answer in time (it is stopped, or busy) counts.
func answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// open reaches the running gateway or the store.
func open(ctx context.Context, c Config) (*console, error) {
	if k, err := dial(c); err == nil {
		return k, nil
	}
	if err := c.storeExists(); err != nil {
		return nil, err
	}
	st, err := openStore(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	a := &admin{store: st, access: session.NewAccess(st, policies(c)), files: &workspaces{root: c.Workspace.Dir, shared: c.workspaceOf}}
	return &console{http: &http.Client{Transport: direct{a.handler()}}, close: st.Close}, nil
}

// direct calls a handler without a network.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &answer{header: http.Header{}, status: http.StatusOK}
	d.h.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// ask makes one request and decodes its answer into v.
func (k *console) ask(ctx context.Context, method, path string, q url.Values, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := k.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var e struct{ Error string }
		if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || e.Error == "" {
			return fmt.Errorf("the gateway answered %s", resp.Status)
		}
		return errors.New(e.Error)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

func status(ctx context.Context, c Config, o options, w io.Writer) error {
	k, err := dial(c)
	if err != nil {
		return errors.New(trimNoGateway(err))
	}
	defer k.close()
	var raw json.RawMessage
	if err := k.ask(ctx, "GET", "/status", nil, &raw); err != nil {
		return err
	}
	if o.json {
		return printJSON(w, raw)
	}
	var s fullStatus
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	s.print(w)
	return nil
}

func trimNoGateway(err error) string { return err.Error()[len(errNoGateway.Error())+2:] }

func printJSON(w io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

func sessions(ctx context.Context, c Config, o options, w io.Writer) error {
	k, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer k.close()
	verb, key := "list", ""
	if len(o.words) > 1 {
		verb = o.words[1]
	}
	if len(o.words) > 2 {
		key = o.words[2]
	}
	q := url.Values{"key": {key}}
	switch {
	case verb == "list" && len(o.words) <= 2:
		var lines []sessionLine
		if err := k.ask(ctx, "GET", "/sessions", nil, &lines); err != nil {
			return err
		}
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, "SESSION\tPHASE\tWAITING\tROWS\tTOUCHED\tTITLE")
		for _, l := range lines {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", l.Session, l.Phase, l.Waiting, l.Rows, l.Touched.Format(time.DateTime), l.Title)
		}
		return t.Flush()
	case verb == "show" && key != "":
		var s shown
		if err := k.ask(ctx, "GET", "/session", q, &s); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s, %s, %d rows\n", s.Session, s.Phase, s.sessionLine.Rows)
		for _, r := range s.Rows {
			fmt.Fprintf(w, "\n%d  turn %d  %s\n%s\n", r.Seq, r.Turn, r.Kind, steer.Visible(r.Text))
		}
		for _, e := range s.Slot {
			fmt.Fprintf(w, "\n%s, ticket %d, to %s\n%s\n", map[bool]string{true: "held", false: "waits"}[e.Held], e.Ticket, e.Want, steer.Visible(e.Text))
		}
		return nil
	case verb == "delete" && key != "":
		var done map[string]string
		if err := k.ask(ctx, "DELETE", "/session", q, &done); err != nil {
			return err
		}
		fmt.Fprintln(w, "deleted", done["deleted"])
		return nil
	}
	return errors.New("usage: gateway sessions [list | show KEY | delete KEY]")
}

func pair(ctx context.Context, c Config, o options, w io.Writer) error {
	k, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer k.close()
	switch {
	case len(o.words) == 1 || o.words[1] == "list" && len(o.words) == 2:
		var lines []pairLine
		if err := k.ask(ctx, "GET", "/pairs", nil, &lines); err != nil {
			return err
		}
		if len(lines) == 0 {
			fmt.Fprintln(w, "nobody waits")
			return nil
		}
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, "CODE\tWHO\tNAME\tUNTIL")
		for _, l := range lines {
			fmt.Fprintf(t, "%s\t%s:%s\t%s\t%s\n", l.Code, l.Platform, l.User, l.Name, l.Until.Format(time.TimeOnly))
		}
		return t.Flush()
	case len(o.words) == 3 && o.words[1] == "approve":
		var done map[string]string
		if err := k.ask(ctx, "POST", "/pair", url.Values{"code": {o.words[2]}}, &done); err != nil {
			return err
		}
		fmt.Fprintln(w, "approved", done["approved"])
		return nil
	case len(o.words) == 3 && o.words[1] == "revoke":
		var done map[string]string
		if err := k.ask(ctx, "DELETE", "/pair", url.Values{"id": {o.words[2]}}, &done); err != nil {
			return err
		}
		fmt.Fprintln(w, "revoked", done["revoked"])
		return nil
	}
	return errors.New("usage: gateway pair [list | approve CODE | revoke PLATFORM:ID]")
}
