package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"coxswain/session"
)

// fullStatus is GET /api/status and gateway status --json. Field names are
// stable; docs/status.md tells each.
type fullStatus struct {
	Version    string          `json:"version"`
	Ready      bool            `json:"ready"`
	Reasons    []string        `json:"reasons"`
	Model      string          `json:"model"`
	StoreMs    float64         `json:"store_latency_ms"`
	Telegram   *telegramStatus `json:"telegram,omitempty"`
	Discord    *discordStatus  `json:"discord,omitempty"`
	Web        string          `json:"web,omitempty"`
	Goroutines int             `json:"goroutines"`
	HeapBytes  uint64          `json:"heap_bytes"`
	Memory     memoryStatus    `json:"memory"`
	session.Overview
}

type telegramStatus struct {
	Seat        string    `json:"seat"`
	Connected   bool      `json:"connected"`
	Username    string    `json:"username,omitempty"`
	LastUpdate  time.Time `json:"last_update"`
	LastPoll    time.Time `json:"last_poll"`
	Err         string    `json:"error,omitempty"`
	Hint        string    `json:"hint,omitempty"`
	Undecodable int64     `json:"undecodable"`
}

type discordStatus struct {
	Seat        string    `json:"seat"`
	Connected   bool      `json:"connected"`
	Username    string    `json:"username,omitempty"`
	LastEvent   time.Time `json:"last_event"`
	Err         string    `json:"error,omitempty"`
	Undecodable int64     `json:"undecodable"`
	Replaced    int64     `json:"replaced"`
	Leaked      int64     `json:"leaked"`
	Logins      int64     `json:"logins"`
	LoginsLeft  int64     `json:"logins_left"`
	Resumes     int64     `json:"resumes"`
	Missed      int64     `json:"missed"`
	Refused     int64     `json:"refused"`
}

// statusTime is how long a status may take.
const statusTime = 3 * time.Second

// status reads the process's state for operators.
func (p *parts) status(ctx context.Context) (any, error) {
	// A store that is away must not keep operators from seeing that it is.
	ctx, stop := context.WithTimeout(ctx, statusTime)
	defer stop()
	o, err := p.hub.Overview(ctx)
	if err != nil {
		p.log.WarnContext(ctx, "status without the store", "err", err)
	}
	s := fullStatus{Version: version(), Reasons: p.ready(ctx), Overview: o, Goroutines: runtime.NumGoroutine()}
	if s.Reasons == nil {
		s.Reasons = []string{}
	}
	s.Ready = len(s.Reasons) == 0
	s.Model = p.model
	began := time.Now()
	if err := p.store.Ping(ctx); err == nil {
		s.StoreMs = float64(time.Since(began).Microseconds()) / 1000
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.HeapBytes = m.HeapAlloc
	s.Memory = p.memory.status()
	if p.telegram != nil {
		t := p.telegram.Status()
		s.Telegram = &telegramStatus{
			Seat: seatWord(p.polls), Connected: t.Connected, Username: t.Username, LastUpdate: t.LastUpdate, LastPoll: t.LastPoll, Err: t.Err, Hint: t.Hint, Undecodable: t.Undecodable,
		}
	}
	if p.discord != nil {
		d := p.discord.Status()
		s.Discord = &discordStatus{
			Seat: seatWord(p.connects), Connected: d.Connected, Username: d.Username, LastEvent: d.LastEvent, Err: d.Err, Undecodable: d.Undecodable, Replaced: d.Replaced,
			Leaked: d.Leaked, Logins: d.Logins, LoginsLeft: d.LoginsLeft, Resumes: d.Resumes, Missed: d.Missed, Refused: d.Refused,
		}
	}
	if p.webAddr != nil {
		s.Web = "http://" + p.webAddr.Addr().String() + "/"
	}
	return s, nil
}

func (s *fullStatus) print(w io.Writer) {
	ready := "ready"
	if !s.Ready {
		ready = fmt.Sprintf("not ready: %v", s.Reasons)
	}
	fmt.Fprintf(w, "%s\n%s, up %s, model %s\n", s.Version, ready, time.Duration(s.Uptime*float64(time.Second)).Round(time.Second), s.Model)
	if s.StoreMs == 0 {
		fmt.Fprintln(w, "store does not answer: the counts below are not known")
	}
	fmt.Fprintf(w, "store %.1f ms; sessions %d; accepted %d, duplicates %d, refused %d; waiting %d\n",
		s.StoreMs, s.Store.Sessions, s.Store.Accepted, s.Store.Duplicates, s.Store.Full, s.Store.InSlot)
	fmt.Fprintf(w, "turns %d ended, %d failed, %d running; recovered %d, fenced %d\n",
		s.Turns, s.Failed, len(s.Running), s.Store.Recovered, s.Store.Fenced)
	fmt.Fprintf(w, "room: %d used of %s, %d sessions wait; memory: %d MiB of %s live\n",
		s.Room.Used, bound(int64(s.Room.Most)), s.Room.Waiting, s.Memory.Live>>20, bound(int64(s.Memory.Most>>20)))
	if s.Newer > 0 {
		fmt.Fprintf(w, textLeftToNewer+"\n", s.Newer)
	}
	fmt.Fprintf(w, "sent %d, unknown %d, refused %d\n", s.Store.OutSent, s.Store.OutUnknown, s.Store.OutDead)
	if t := s.Telegram; t != nil {
		fmt.Fprintf(w, "telegram %s: %s, last update %s%s\n", cmp.Or(t.Username, "(no name yet)"), connected(t.Seat, t.Connected), when(t.LastUpdate), because(t.Err))
		if t.Hint != "" {
			fmt.Fprintf(w, "  %s\n", t.Hint)
		}
	}
	if d := s.Discord; d != nil {
		fmt.Fprintf(w, "discord %s: %s, last event %s%s\n", cmp.Or(d.Username, "(no name yet)"), connected(d.Seat, d.Connected), when(d.LastEvent), because(d.Err))
	}
	if s.Web != "" {
		fmt.Fprintf(w, "web %s\n", s.Web)
	}
	for _, r := range s.Running {
		fmt.Fprintf(w, "  %s  %s  step %d/%d  %s  pending %d  queued %d\n", r.Session, r.Phase, r.Step, r.Steps, r.Tool, r.Pending, r.Queued)
	}
	if s.LastErr != "" {
		fmt.Fprintf(w, "last store error: %s\n", s.LastErr)
	}
}

// bound names a bound; 0 is none.
func bound(n int64) string {
	if n == 0 {
		return "any"
	}
	return strconv.FormatInt(n, 10)
}

// Who receives for a platform: this gateway, or another one while it stands by.
const (
	seatHere    = "here"
	seatStandby = "standby"
)

func seatWord(s *session.Seat) string {
	if s.Here() {
		return seatHere
	}
	return seatStandby
}

func connected(seat string, yes bool) string {
	switch {
	case seat == seatStandby:
		return textStandby
	case yes:
		return "connected"
	}
	return "not connected"
}

func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.DateTime)
}

func because(err string) string {
	if err == "" {
		return ""
	}
	return ": " + err
}
