package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"coxswain/adapters/telegram"
)

// validate refuses settings that cannot work or contradict one another.
func (c *Config) validate() error {
	one := func(key, got string, may ...string) error {
		for _, m := range may {
			if got == m {
				return nil
			}
		}
		return fmt.Errorf("config: %s is %q; it must be one of: %s", key, got, strings.Join(slices.DeleteFunc(may, func(s string) bool { return s == "" }), ", "))
	}
	positive := func(key string, d Duration) error {
		if d <= 0 {
			return fmt.Errorf("config: %s is %s; it must be more than zero, for example 5s", key, time.Duration(d))
		}
		return nil
	}
	errs := []error{
		one("busy_input_mode", c.BusyInputMode, "queue", "interrupt", "steer"),
		one("platforms.telegram.busy_input_mode", c.Platforms.Telegram.BusyInputMode, "", "queue", "interrupt", "steer"),
		one("platforms.discord.busy_input_mode", c.Platforms.Discord.BusyInputMode, "", "queue", "interrupt", "steer"),
		one("platforms.discord.pairing", c.Platforms.Discord.Pairing, "auto", "on", "off"),
		one("platforms.web.busy_input_mode", c.Platforms.Web.BusyInputMode, "", "queue", "interrupt", "steer"),
		one("platforms.telegram.mode", c.Platforms.Telegram.Mode, "polling", "webhook"),
		one("platforms.telegram.pairing", c.Platforms.Telegram.Pairing, "auto", "on", "off"),
		one("model.images", c.Model.Images, "auto", "on", "off"),
		one("notify", c.Notify, "important", "all", "none"),
		one("progress", c.Progress, "all", "new", "off"),
		one("sessions.group", c.Sessions.Group, "shared", "user"),
		validateObserve("sessions.observe", c.Sessions.Observe),
		one("steer.from", c.Steer.From, "owner", "participants"),
		one("jobs.on_end", c.Jobs.OnEnd, "turn", "tell", "nothing"),
		one("store.durability", c.Store.Durability, "strict", "relaxed"),
		one("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		one("log.format", c.Log.Format, "text", "json"),
		positive("tools.terminal.timeout", c.Tools.Terminal.Timeout),
		positive("limits.turn_time", c.Limits.TurnTime),
		positive("lease.ttl", c.Lease.TTL),
		positive("outbox.unknown_after", c.Outbox.UnknownAfter),
	}
	if c.Lease.TTL > 0 && time.Duration(c.Lease.TTL) < time.Second {
		errs = append(errs, fmt.Errorf("config: lease.ttl is %s; under 1s a busy machine loses its own sessions", time.Duration(c.Lease.TTL)))
	}
	if r := time.Duration(c.Store.Retention); r != 0 && r < time.Hour {
		errs = append(errs, fmt.Errorf("config: store.retention is %s; it must be at least 1h, or 0 to keep all sessions", r))
	}
	if n := c.Store.Wait.Replicas; n < 0 {
		errs = append(errs, fmt.Errorf("config: store.wait.replicas is %d; it must be zero or more", n))
	}
	if d := time.Duration(c.Store.Wait.Timeout); d < time.Millisecond || d > 10*time.Second {
		errs = append(errs, fmt.Errorf("config: store.wait.timeout is %s; it must be from 1ms to 10s", d))
	}
	if c.Limits.TurnSteps < 1 {
		errs = append(errs, fmt.Errorf("config: limits.turn_steps is %d; it must be at least 1", c.Limits.TurnSteps))
	}
	for _, d := range []struct {
		key  string
		less bool
	}{
		{"steer.yield_after", c.Steer.YieldAfter < 0}, {"input.join_window", c.Input.JoinWindow < 0},
		{"limits.drain", c.Limits.Drain < 0}, {"limits.history_cache", c.Limits.HistoryCache < 0},
		{"limits.running", c.Limits.Running < 0}, {"limits.running_chat", c.Limits.RunningChat < 0},
	} {
		if d.less {
			errs = append(errs, fmt.Errorf("config: %s is negative; it must be zero or more", d.key))
		}
	}
	if m := c.Limits.Memory; m != 0 && m < max(memoryLeast, 2*c.Limits.HistoryCache) {
		errs = append(errs, errors.New("config: limits.memory is under 64MiB or twice limits.history_cache; give it more, or 0 for no bound"))
	}
	errs = append(errs, c.validateAccess()...)
	errs = append(errs, c.validateProfiles()...)
	errs = append(errs, c.validateLimits()...)
	return errors.Join(errs...)
}

// validateAccess refuses access settings that contradict one another.
func (c *Config) validateAccess() []error {
	var errs []error
	t := c.Platforms.Telegram
	if t.Token == "" && len(t.AllowUsers)+len(t.AllowChats)+len(t.AllowChannels)+len(t.AllowBots)+len(t.Admins) > 0 {
		errs = append(errs, errors.New("config: platforms.telegram.token is empty; set TELEGRAM_BOT_TOKEN or token_file, or remove the section"))
	}
	if t.Token != "" && !strings.Contains(string(t.Token), ":") {
		errs = append(errs, errors.New("config: platforms.telegram.token is no bot token (123456:ABC…); copy it from @BotFather"))
	}
	if t.Token != "" && t.Mode == "webhook" {
		if t.Webhook.Secret == "" {
			errs = append(errs, errors.New("config: platforms.telegram.webhook.secret is empty; anybody could speak as anybody: set 32 random letters and digits"))
		}
		if t.Webhook.URL == "" || t.Webhook.Listen == "" {
			errs = append(errs, errors.New("config: platforms.telegram.mode is webhook; set webhook.url to the public https address and webhook.listen to the port it leads to"))
		} else if err := (&telegram.Webhook{URL: t.Webhook.URL, Secret: string(t.Webhook.Secret)}).Validate(); err != nil && t.Webhook.Secret != "" {
			errs = append(errs, fmt.Errorf("config: platforms.%w", err))
		}
	}
	errs = append(errs, t.validateSpeakers()...)
	d := c.Platforms.Discord
	if d.Token == "" && (len(d.AllowUsers) > 0 || len(d.AllowRoles) > 0 || len(d.AllowChannels) > 0 || len(d.Admins) > 0) {
		errs = append(errs, errors.New("config: platforms.discord.token is empty; set DISCORD_BOT_TOKEN or token_file, or remove the section"))
	}
	for key, ids := range map[string]IDs{
		"telegram.allow_users": t.AllowUsers, "telegram.admins": t.Admins, "discord.allow_users": d.AllowUsers, "discord.allow_roles": d.AllowRoles, "discord.allow_bots": d.AllowBots, "discord.admins": d.Admins,
	} {
		for _, id := range ids {
			if _, err := strconv.ParseInt(id, 10, 64); err != nil && (id != "*" || !strings.HasSuffix(key, "users")) {
				errs = append(errs, fmt.Errorf("config: platforms.%s: %q is no id; names can be taken by anybody, /whoami tells ids", key, id))
			}
		}
	}
	for key, l := range map[string]struct {
		addr  string
		token Secret
	}{"platforms.web": {c.Platforms.Web.Listen, c.Platforms.Web.Token}, "ops": {c.Ops.Listen, c.Ops.Token}} {
		if l.addr == "" {
			continue
		}
		loop, err := loopback(l.addr)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("config: %s.listen: %w", key, err))
		case !loop && l.token == "":
			errs = append(errs, fmt.Errorf("config: %s.listen is %s, which others can reach; set %s.token or listen on 127.0.0.1", key, l.addr, key))
		case l.token != "" && len(l.token) < 32:
			errs = append(errs, fmt.Errorf("config: %s.token has %d characters; use at least 32 random ones", key, len(l.token)))
		}
	}
	return errs
}

// validateSpeakers refuses ids that no channel and no other bot can have.
func (t *Telegram) validateSpeakers() []error {
	var errs []error
	for _, id := range t.AllowChannels {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n >= 0 {
			errs = append(errs, fmt.Errorf("config: platforms.telegram.allow_channels: %q is no channel's id; it is a number that begins with -100, not a name", id))
		}
	}
	own, _, _ := strings.Cut(string(t.Token), ":")
	for _, id := range t.AllowBots {
		n, err := strconv.ParseInt(id, 10, 64)
		switch {
		case err != nil || n <= 0:
			errs = append(errs, fmt.Errorf("config: platforms.telegram.allow_bots: %q is no bot's id; it is the number before the colon of its token, not a name", id))
		case strconv.FormatInt(n, 10) == own:
			errs = append(errs, fmt.Errorf("config: platforms.telegram.allow_bots: %s is this bot itself; it does not hear its own words", id))
		}
	}
	return errs
}
