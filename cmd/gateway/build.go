package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"coxswain/adapters/discord"
	"coxswain/adapters/outbox"
	"coxswain/adapters/telegram"
	"coxswain/adapters/web"
	"coxswain/loop"
	"coxswain/loop/demo"
	"coxswain/loop/openai"
	"coxswain/ops"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store"
	"coxswain/store/redis"
	"coxswain/tools"
)

func duration(d Duration) time.Duration { return time.Duration(d) }

// parts are the gateway's parts, joined.
type parts struct {
	conf     Config
	log      *slog.Logger
	store    session.Store
	access   *session.Access
	routes   *session.Routes
	files    *workspaces
	tools    *toolbox
	life     *tools.Life // marks the processes of commands
	hub      *session.Hub
	outbox   *outbox.Outbox
	telegram *telegram.Adapter // nil when off
	discord  *discord.Adapter  // nil when off
	web      *web.Adapter      // nil when off
	// The seats of who receives; nil: this process is the only one.
	polls, connects *session.Seat
	webAddr         net.Listener
	ops             *ops.Server
	opsAddr         net.Listener // nil when off
	hookAddr        net.Listener // of Telegram's webhook; nil when it is polled
	admin           *admin
	memory          *pressure
	model           string // its name, for status
	demo            bool
}

// newLogger writes to w as log.level and log.format say.
func newLogger(c Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // validated before
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// options are how the configuration wants its store opened.
func (c StoreConf) options(log *slog.Logger) store.Options {
	return store.Options{
		Relaxed: c.Durability == "relaxed", Wait: redis.Wait{Replicas: c.Wait.Replicas, Timeout: duration(c.Wait.Timeout)}, Logger: log,
	}
}

func openStore(ctx context.Context, c Config, log *slog.Logger) (session.Store, error) {
	st, err := store.Open(ctx, string(c.Store.URL), c.Store.options(log))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := wholeStore(ctx, st); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), st.Close())
	}
	return wrapStore(st), nil
}

// newModel is the model the configuration names; the demo when it names none. tries
// is how often it is asked; 0 = as often as a turn does.
func newModel(c ModelConf, tries int, log *slog.Logger) (m loop.Model, isDemo bool, err error) {
	if c.APIKey == "" && c.BaseURL == "https://api.openai.com/v1" {
		return &demo.Model{}, true, nil
	}
	m, err = openai.New(openai.Options{
		BaseURL: c.BaseURL, APIKey: func() string { return string(c.APIKey) }, Name: c.Name,
		ContextWindow: c.ContextWindow, Hosted: c.Hosted, Attempts: tries, Logger: log,
	})
	if err != nil {
		return nil, false, fmt.Errorf("model: %w", err)
	}
	return m, false, nil
}

// policies are who may talk on which platform.
func policies(c Config) map[session.PlatformName]session.Policy {
	t, d := c.Platforms.Telegram, c.Platforms.Discord
	// Channels and bots may talk as people do; which of them are heard at all is
	// the adapter's to say.
	var others []string
	for _, id := range t.AllowChannels.numbers() {
		others = append(others, string(telegram.ChatUser(id)))
	}
	for _, id := range t.AllowBots.numbers() {
		others = append(others, strconv.FormatInt(id, 10))
	}
	return map[session.PlatformName]session.Policy{
		telegram.Name: {AllowUsers: t.AllowUsers, AllowOther: others, AllowChats: t.AllowChats, Admins: t.Admins, Pairing: session.Pairing(t.Pairing)},
		discord.Name:  {AllowUsers: d.AllowUsers, AllowOther: d.AllowBots, AllowRoles: d.AllowRoles, AllowChats: d.AllowChannels, Admins: d.Admins, Pairing: session.Pairing(d.Pairing)},
		web.Name:      {Open: true, Pairing: session.PairingOff},
	}
}

// build joins the parts. Nothing runs yet but what the store needs; an error
// leaves nothing open.
func build(ctx context.Context, c Config, log *slog.Logger) (_ *parts, err error) {
	p := &parts{conf: c, log: log}
	defer func() {
		if err != nil {
			p.closeAll()
		}
	}()
	if err := p.listen(); err != nil {
		return nil, err
	}
	if p.store, err = openStore(ctx, c, log); err != nil {
		return nil, err
	}
	// The store's lock is held: no other gateway of this directory starts commands.
	if p.life, err = tools.OpenLife(c.dataDir()); err != nil {
		return nil, err
	}
	if n := p.life.Ended(); n > 0 {
		log.Warn("processes that a killed gateway had left were ended", "count", n)
	}
	if p.files, err = newWorkspaces(c); err != nil {
		return nil, err
	}
	if err = proveFiles(ctx, p.store, p.files.root); err != nil {
		return nil, err
	}
	model, isDemo, err := newModel(c.Model, 0, log)
	if err != nil {
		return nil, err
	}
	p.demo, p.model = isDemo, model.Name()
	p.access = session.NewAccess(p.store, policies(c))
	p.routes = session.NewRoutes(p.store)
	p.tools = newToolbox(c, p.files, p.life, log)
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	p.outbox = outbox.New(ctx, outbox.Options{
		Store: p.store, Nonce: nonce + "/out", HubNonce: nonce, UnknownAfter: duration(c.Outbox.UnknownAfter), Routes: p.routes, Log: log,
	})
	std := loop.Profile{Model: model, System: systemPrompt, Hosted: c.Model.Hosted || isDemo, Images: c.Model.seesImages() && !isDemo, Prices: c.prices(c.Model)}
	profiles, err := c.loopProfiles(std, log)
	if err != nil {
		return nil, err
	}
	agent, err := loop.New(loop.Options{
		Profile: std, Profiles: profiles, ProfileOf: func(lane session.Key) string { return c.profileOf(p.routes.Home(lane)) }, Tools: p.tools, Images: p.files,
		YieldAfter: duration(c.Steer.YieldAfter), SkipUnstarted: c.Steer.SkipUnstarted,
		Steps: c.Limits.TurnSteps, Time: duration(c.Limits.TurnTime), CacheBytes: int64(c.Limits.HistoryCache) / 2,
		JobEnded: func(key session.Key, j session.Job) { p.hub.JobEnded(ctx, key, j) },
	})
	if err != nil {
		return nil, err
	}
	p.hub = session.NewHub(ctx, session.Options{
		Store: p.store, Agent: agent, Outbox: p.outbox, Access: p.access, Routes: p.routes, Nonce: nonce,
		Mode: modes(c), JoinWindow: duration(c.Input.JoinWindow), StopWords: c.Input.StopWords, SteerFrom: c.Steer.From,
		Together: c.Queue.Together, DeleteStops: c.Input.DeleteStops, Notify: c.notifyOf, Progress: c.progressOf, Observe: c.observeOf,
		Spend: c.spendOf, Rate: c.Limits.Rate.session(),
		LeaseTTL: duration(c.Lease.TTL), JobsOnEnd: c.Jobs.OnEnd,
		HistoryBytes: int64(c.Limits.HistoryCache) / 2, Log: log, Running: c.Limits.Running, RunningChat: c.Limits.RunningChat,
	})
	p.memory = newPressure(c.Limits.Memory, func(short bool) {
		log.Warn("memory", "short", short, "live", p.memory.live.Load(), "most", c.Limits.Memory)
		p.hub.Spare(short)
	})
	p.admin = &admin{store: p.store, access: p.access, files: p.files, parts: p}
	return p, p.platforms()
}

// modes gives each platform's busy input mode.
func modes(c Config) func(session.Key) steer.Mode {
	own := map[session.PlatformName]steer.Mode{
		telegram.Name: c.mode(c.Platforms.Telegram.BusyInputMode),
		discord.Name:  c.mode(c.Platforms.Discord.BusyInputMode),
		web.Name:      c.mode(c.Platforms.Web.BusyInputMode),
	}
	return func(k session.Key) steer.Mode {
		if m := c.Profiles[c.profileOf(k)].BusyInputMode; m != "" {
			return c.mode(m)
		}
		return own[k.Platform]
	}
}

// listen takes the ports first: one in use ends the start before anything is
// touched.
func (p *parts) listen() error {
	if k, err := dial(p.conf); err == nil {
		_ = k.close() // it was only a question
		return fmt.Errorf(textRunsAlready, p.conf.dataDir())
	}
	var err error
	if addr := p.conf.Platforms.Web.Listen; addr != "" {
		if p.webAddr, err = net.Listen("tcp", addr); err != nil {
			return fmt.Errorf("platforms.web.listen: %s is in use or not to be had (%s); stop the other program or choose another port", addr, cause(err))
		}
	}
	if addr := p.conf.Ops.Listen; addr != "" {
		if p.opsAddr, err = net.Listen("tcp", addr); err != nil {
			return fmt.Errorf("ops.listen: %s is in use or not to be had (%s); stop the other program or choose another port", addr, cause(err))
		}
	}
	if t := p.conf.Platforms.Telegram; t.Token != "" && t.Mode == "webhook" {
		if p.hookAddr, err = net.Listen("tcp", t.Webhook.Listen); err != nil {
			return fmt.Errorf("platforms.telegram.webhook.listen: %s is in use or not to be had (%s); stop the other program or choose another port", t.Webhook.Listen, cause(err))
		}
	}
	return nil
}

// cause is the innermost reason of a network error.
func cause(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// mayLoad says whose files are loaded: those of people who may talk here.
func (p *parts) mayLoad(ctx context.Context, m session.Message) bool {
	_, ok, err := p.hub.Identify(ctx, m.Key, m.From, m.Private)
	return ok && err == nil
}

// save stores a file that came with a message where the session that is spoken to
// has its files.
func (p *parts) save(ctx context.Context, chat session.Key, name string, r io.Reader) (string, int64, error) {
	lane, err := p.routes.Lane(ctx, chat)
	if err != nil {
		return "", 0, err
	}
	return p.files.save(ctx, lane, name, r)
}

// newNonce names this life of this process.
func newNonce() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	b := make([]byte, 8)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("draw a nonce: %w", err)
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), hex.EncodeToString(b)), nil
}

// closeAll closes what was opened; for a start that failed.
func (p *parts) closeAll() {
	for _, l := range []net.Listener{p.webAddr, p.opsAddr, p.hookAddr} {
		if l != nil {
			_ = l.Close() // nothing was accepted on it
		}
	}
	p.life.Close()
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			p.log.Warn("close store", "err", err)
		}
	}
}
