package main

import (
	"context"
	"fmt"
	"strconv"

	"coxswain/adapters/discord"
	"coxswain/adapters/telegram"
	"coxswain/adapters/web"
	"coxswain/ops"
	"coxswain/session"
)

// platforms makes the adapters that are switched on.
func (p *parts) platforms() error {
	c := p.conf.Platforms
	if c.Telegram.Token != "" {
		if err := p.onTelegram(p.conf); err != nil {
			return fmt.Errorf("platforms.telegram: %w", err)
		}
	}
	if c.Discord.Token != "" {
		if err := p.onDiscord(p.conf); err != nil {
			return fmt.Errorf("platforms.discord: %w", err)
		}
	}
	if p.webAddr != nil {
		if err := p.onWeb(p.conf); err != nil {
			return fmt.Errorf("platforms.web: %w", err)
		}
	}
	p.ops = ops.New(ops.Options{
		Token: func() string { return string(p.conf.Ops.Token) }, Ready: p.ready, Status: p.status, Log: p.log,
	})
	return nil
}

// A sitting runs an intake while this process has the seat for it.
type sitting func(ctx context.Context, intake func(context.Context) error) error

// sitOn is how an adapter holds a seat; nil where there is none to be held.
func sitOn(s *session.Seat) sitting {
	if s == nil {
		return nil
	}
	return s.Hold
}

func (p *parts) onTelegram(c Config) error {
	id, err := telegram.BotID(string(c.Platforms.Telegram.Token))
	if err != nil {
		return err
	}
	var menu []telegram.Command
	var shorts []string
	for _, cmd := range session.Commands() {
		if cmd.Short != "" {
			shorts = append(shorts, "/"+cmd.Short)
		}
		menu = append(menu, telegram.Command{Name: cmd.Name, Short: cmd.Help})
	}
	var hook *telegram.Webhook
	if w := c.Platforms.Telegram.Webhook; p.hookAddr != nil {
		hook = &telegram.Webhook{URL: w.URL, Secret: string(w.Secret), Listener: p.hookAddr}
	}
	if hook == nil { // what is pushed may come to any process
		p.polls = p.hub.Seat("telegram:" + strconv.FormatInt(id, 10))
	}
	p.telegram, err = telegram.New(telegram.Options{
		Short: p.memory.Short, Webhook: hook, Seat: sitOn(p.polls), Open: p.files.open, Session: p.routes.Current, Hear: c.hear(), Rich: c.Platforms.Telegram.Rich,
		Token: func() string { return string(c.Platforms.Telegram.Token) }, APIURL: c.Platforms.Telegram.APIURL,
		Door: p.hub, Docs: p.store, Save: p.save, Commands: menu, Shorts: shorts, Log: p.log, GroupSessions: c.Sessions.Group,
		Files: p.mayLoad, Channels: c.Platforms.Telegram.AllowChannels.numbers(), Bots: c.Platforms.Telegram.AllowBots.numbers(),
	})
	if err != nil {
		return err
	}
	p.hub.Register(p.telegram)
	p.outbox.Register(p.telegram)
	return nil
}

func (p *parts) onDiscord(c Config) error {
	id, err := discord.BotID(string(c.Platforms.Discord.Token))
	if err != nil {
		return err
	}
	p.connects = p.hub.Seat("discord:" + id + ":0") // of one shard
	var slash []discord.Command
	for _, cmd := range session.Commands() {
		slash = append(slash, discord.Command{Name: cmd.Name, Short: cmd.Help, Args: cmd.Args})
	}
	p.discord, err = discord.New(discord.Options{
		Seat: sitOn(p.connects), Token: func() string { return string(c.Platforms.Discord.Token) }, APIURL: c.Platforms.Discord.APIURL,
		Door: p.hub, Docs: p.store, Save: p.save, Commands: slash, Log: p.log, GroupSessions: c.Sessions.Group,
		RequireMention: c.Platforms.Discord.RequireMention, Files: p.mayLoad, Spent: p.hub.Spent,
		Open: p.files.open, Threads: c.Platforms.Discord.Threads, Bots: c.Platforms.Discord.AllowBots,
		Observes: func(k session.Key) bool { return c.observeOf(k) > 0 },
	})
	if err != nil {
		return err
	}
	p.hub.Register(p.discord)
	p.outbox.Register(p.discord)
	return nil
}

func (p *parts) onWeb(c Config) (err error) {
	var list []web.Command
	for _, cmd := range session.Commands() {
		list = append(list, web.Command{Name: cmd.Name, Args: cmd.Args, Help: cmd.Help})
	}
	p.web, err = web.New(web.Options{
		Short: p.memory.Short, Listen: c.Platforms.Web.Listen, Token: string(c.Platforms.Web.Token), Hub: p.hub, Store: p.store, Open: p.files.open, Commands: list, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.hub.Register(p.web)
	p.outbox.Register(p.web)
	return nil
}
