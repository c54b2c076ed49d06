package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"coxswain/adapters/discord"
	"coxswain/adapters/telegram"
	"coxswain/store/redis"
)

// serve runs the gateway until ctx ends (SIGTERM, Ctrl-C), then stops it in
// order. A second signal ends it at once: what runs is resumed by the next
// start.
func serve(ctx context.Context, c Config, stdout, stderr io.Writer) error {
	log := newLogger(c.Log, stderr)
	base := context.WithoutCancel(ctx) // the parts outlive the signal: they are stopped in order
	p, err := build(base, c, log)
	if err != nil {
		return err
	}
	return p.serve(ctx, base, stdout)
}

func (p *parts) serve(ctx, base context.Context, stdout io.Writer) error {
	intake, stopIntake := context.WithCancel(base)
	defer stopIntake()
	turns, stopTurns := context.WithCancel(base)
	defer stopTurns()
	fail := make(chan error, 8)
	var wg sync.WaitGroup
	start := func(what string, ctx context.Context, f func(context.Context) error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := f(ctx); err != nil && ctx.Err() == nil {
				fail <- fmt.Errorf("%s: %w", what, err)
			}
		}()
	}
	if p.telegram != nil {
		// First of all: messages wait on the other side.
		start("telegram", intake, func(ctx context.Context) error {
			err := p.telegram.Run(ctx)
			if errors.Is(err, telegram.ErrToken) {
				// The others go on; status says what is wrong (T29).
				p.log.ErrorContext(ctx, "telegram is off", "err", err)
				return nil
			}
			return err
		})
	}
	if p.discord != nil {
		start("discord", intake, func(ctx context.Context) error {
			err := p.discord.Run(ctx)
			if errors.Is(err, discord.ErrToken) || errors.Is(err, discord.ErrIntents) || errors.Is(err, discord.ErrRefused) {
				p.log.ErrorContext(ctx, "discord is off", "err", err)
				return nil // the others go on (D15, D24)
			}
			return err
		})
	}
	hubGone := make(chan struct{})
	go func() {
		defer close(hubGone)
		if err := p.hub.Run(turns, duration(p.conf.Limits.Drain)); err != nil {
			fail <- err
		}
	}()
	if st, ok := p.store.(interface{ Wiped() <-chan struct{} }); ok {
		start("store", intake, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case <-st.Wiped(): // F18: whatever is taken in now would begin anew
				return redis.ErrWiped
			}
		})
	}
	if p.web != nil {
		start("web", intake, func(ctx context.Context) error { return p.web.Run(ctx, p.webAddr) })
	}
	opsCtx, stopOps := context.WithCancel(base)
	defer stopOps()
	if p.opsAddr != nil {
		start("ops", opsCtx, func(ctx context.Context) error { return p.ops.Run(ctx, p.opsAddr) })
	}
	start("memory", opsCtx, p.memory.run)
	if keep := duration(p.conf.Store.Retention); keep > 0 {
		start("retention", intake, newSweeper(p.admin, keep, p.log).run)
	}
	socket, err := p.admin.listen(p.conf.dataDir())
	if err != nil {
		p.log.Warn("no admin socket: gateway status will not find this process", "err", err)
	} else {
		start("admin socket", opsCtx, func(ctx context.Context) error { return p.admin.run(ctx, socket) })
	}
	p.greet(base, stdout)

	var failed error
	select {
	case <-ctx.Done():
		p.log.Info("stopping", "drain", duration(p.conf.Limits.Drain))
	case failed = <-fail:
		p.log.Error("stopping because a part failed", "err", failed)
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	go func() {
		if _, ok := <-again; ok {
			p.hub.Kill()
		}
	}()
	stopIntake()
	stopTurns()
	<-hubGone
	signal.Stop(again)
	close(again)
	p.outbox.Close(5 * time.Second)
	cleanup, done := context.WithTimeout(base, 5*time.Second)
	defer done()
	if p.telegram != nil {
		if err := p.telegram.Close(cleanup); err != nil {
			p.log.Warn("close telegram", "err", err)
		}
	}
	if p.discord != nil {
		if err := p.discord.Close(cleanup); err != nil {
			p.log.Warn("close discord", "err", err)
		}
	}
	p.tools.set.Close(cleanup)
	p.life.Close()
	stopOps()
	wg.Wait()
	if err := p.store.Close(); err != nil {
		p.log.Error("close store", "err", err)
		failed = errors.Join(failed, err)
	}
	return failed
}

// greet says where the gateway is to be found and what is not as it should be.
func (p *parts) greet(ctx context.Context, w io.Writer) {
	if p.webAddr != nil {
		fmt.Fprintf(w, "web chat: http://%s/\n", reachable(p.webAddr.Addr()))
	}
	if p.opsAddr != nil {
		fmt.Fprintf(w, "operators: http://%s/api/status\n", p.opsAddr.Addr())
	}
	if p.demo {
		fmt.Fprintln(w, textDemo)
	}
	if p.webAddr == nil && p.telegram == nil && p.discord == nil {
		fmt.Fprintln(w, "WARNING: "+textNobody)
	}
	if p.telegram == nil {
		return
	}
	if slices.Contains(p.conf.Platforms.Telegram.AllowUsers, "*") {
		fmt.Fprintln(w, "WARNING: "+textEveryone)
	}
	code, err := p.access.AdminLink(ctx, telegram.Name)
	if err != nil {
		p.log.Warn("no admin link", "err", err)
		return
	}
	if code == "" {
		return
	}
	go func() {
		// The bot's name is known a moment later; nothing waits for it.
		name, err := p.telegram.Username(ctx)
		if err != nil {
			fmt.Fprintf(w, "No admin yet. Send the bot within 10 minutes: /start %s\n", code)
			return
		}
		fmt.Fprintf(w, "No admin yet. Open within 10 minutes to become one: https://t.me/%s?start=%s\n", name, code)
	}()
}

// reachable is an address that another machine can open: one that listens
// everywhere is named by this machine's name.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}

// ready lists why the gateway cannot serve now.
func (p *parts) ready(ctx context.Context) []string {
	var reasons []string
	if p.hub.Draining() {
		reasons = append(reasons, "stopping")
	}
	if err := p.store.Ping(ctx); err != nil {
		reasons = append(reasons, "store: "+err.Error())
	}
	if why := p.memory.reason(); why != "" {
		reasons = append(reasons, why)
	}
	// Who waits for a seat serves all the same: it runs turns and sends.
	if p.telegram != nil && p.polls.Here() {
		if s := p.telegram.Status(); !s.Connected {
			reasons = append(reasons, notConnected("telegram", s.Err))
		}
	}
	if p.discord != nil && p.connects.Here() {
		if s := p.discord.Status(); !s.Connected {
			reasons = append(reasons, notConnected("discord", s.Err))
		}
	}
	return reasons
}

// notConnected says so, and what the platform's adapter knows of it.
func notConnected(platform, why string) string {
	return platform + ": not connected" + because(why)
}
