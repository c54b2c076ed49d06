package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"coxswain/adapters/discord"
	"coxswain/adapters/telegram"
	"coxswain/loop"
	"coxswain/session"
)

// checkTime bounds each part's trial.
const checkTime = 15 * time.Second

// checkTries is how often the model is asked: who checks waits for the answer, and
// one refusal may be an endpoint that is busy.
const checkTries = 2

// check tries each part the configuration names: one line each, the cure with
// each failure. It changes nothing.
func check(ctx context.Context, c Config, w io.Writer) error {
	failed := false
	line := func(part string, err error, good string) {
		if err != nil {
			failed = true
			fmt.Fprintf(w, "FAIL  %-10s %s\n", part, firstLine(err.Error()))
			return
		}
		fmt.Fprintf(w, "ok    %-10s %s\n", part, good)
	}
	log := slog.New(slog.DiscardHandler)
	line("config", c.tryProfiles(log), "valid")
	noStore := checkStore(ctx, c, log)
	line("store", noStore, "answers and is durable")
	line("workspace", checkWorkspace(ctx, c, noStore == nil, log), c.Workspace.Dir)
	good, err := checkModel(ctx, c.Model, log)
	line("model", err, good)
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if m := c.Profiles[name].Model; m != (ProfileModel{}) {
			good, err := checkModel(ctx, m.merged(c.Model), log)
			line("profile "+name, err, good)
		}
	}
	if c.Platforms.Telegram.Token == "" {
		fmt.Fprintf(w, "off   %-10s no token (TELEGRAM_BOT_TOKEN)\n", "telegram")
	} else {
		good, err := checkTelegram(ctx, c, log)
		line("telegram", err, good)
	}
	if c.Platforms.Discord.Token == "" {
		fmt.Fprintf(w, "off   %-10s no token (DISCORD_BOT_TOKEN)\n", "discord")
	} else {
		good, err := checkDiscord(ctx, c, log)
		line("discord", err, good)
	}
	for _, l := range []struct{ name, addr string }{{"web", c.Platforms.Web.Listen}, {"ops", c.Ops.Listen}} {
		if l.addr == "" {
			fmt.Fprintf(w, "off   %-10s listen is empty\n", l.name)
			continue
		}
		line(l.name, checkPort(c, l.addr), l.addr)
	}
	if failed {
		return errShown
	}
	return nil
}

func firstLine(s string) string {
	for i, r := range s {
		if r == '\n' {
			return s[:i]
		}
	}
	return s
}

func checkStore(ctx context.Context, c Config, log *slog.Logger) error {
	if k, err := dial(c); err == nil {
		// A running gateway holds the store: its own word counts.
		defer k.close()
		var s fullStatus
		return k.ask(ctx, "GET", "/status", nil, &s)
	}
	st, err := openStore(ctx, c, log)
	if err != nil {
		return err
	}
	return errors.Join(st.Ping(ctx), st.Close())
}

// checkWorkspace tries workspace.dir, and that it is the one that the gateways of
// a shared store see. The first of them has yet to say which that is. A store that
// was not there is not waited for once more.
func checkWorkspace(ctx context.Context, c Config, reached bool, log *slog.Logger) error {
	w, err := newWorkspaces(c)
	if err != nil || !reached || strings.HasPrefix(string(c.Store.URL), "sqlite:") {
		return err
	}
	st, err := openStore(ctx, c, log)
	if err != nil {
		return nil // the line above has said so
	}
	if err = sameFiles(ctx, st, w.root); errors.Is(err, errNoMark) {
		err = nil
	}
	return errors.Join(err, st.Close())
}

func checkModel(ctx context.Context, c ModelConf, log *slog.Logger) (string, error) {
	m, isDemo, err := newModel(c, checkTries, log)
	if err != nil {
		return "", err
	}
	if isDemo {
		return "the built-in demo (set OPENAI_API_KEY for a model)", nil
	}
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	system, err := m.Encode(loop.Wire{Role: "system", Text: "Answer with one word."})
	if err != nil {
		return "", err
	}
	user, err := m.Encode(loop.Wire{Role: "user", Text: "Say ok."})
	if err != nil {
		return "", err
	}
	_, err = m.Stream(ctx, loop.Request{System: system, Messages: []json.RawMessage{user}}, func(loop.Delta) {}, func() {})
	var me *loop.ModelError
	if errors.As(err, &me) {
		return "", fmt.Errorf("%w; check model.base_url (%s), model.api_key and model.name", err, c.BaseURL)
	}
	return m.Name() + " answers", err
}

func checkTelegram(ctx context.Context, c Config, log *slog.Logger) (string, error) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	a, err := telegram.New(telegram.Options{
		Token: func() string { return string(c.Platforms.Telegram.Token) }, APIURL: c.Platforms.Telegram.APIURL,
		Door: closedDoor{}, Docs: noDocs{}, Save: noSave, Log: log,
	})
	if err != nil {
		return "", err
	}
	name, err := a.Username(ctx)
	switch {
	case err == nil:
		return "@" + name, nil
	case strings.Contains(err.Error(), "401"):
		return "", fmt.Errorf("%w; get a new token from @BotFather and set platforms.telegram.token", err)
	}
	return "", fmt.Errorf("%w; check platforms.telegram.api_url (%s) and the network", err, c.Platforms.Telegram.APIURL)
}

// checkDiscord asks who the token belongs to, as the adapter asks everything.
func checkDiscord(ctx context.Context, c Config, log *slog.Logger) (string, error) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	a, err := discord.New(discord.Options{
		Token: func() string { return string(c.Platforms.Discord.Token) }, APIURL: c.Platforms.Discord.APIURL,
		Door: closedDoor{}, Docs: noDocs{}, Save: noSave, Log: log,
	})
	if err != nil {
		return "", err
	}
	name, err := a.Username(ctx)
	if err == nil || errors.Is(err, discord.ErrToken) {
		return name, err
	}
	return "", fmt.Errorf("%w; check platforms.discord.api_url (%s) and the network", err, c.Platforms.Discord.APIURL)
}

// checkPort reports whether the port is free, or held by our own gateway.
func checkPort(c Config, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		if k, derr := dial(c); derr == nil {
			return k.close()
		}
		return fmt.Errorf("%s is in use (%s); stop the other program or choose another port", addr, cause(err))
	}
	return l.Close()
}

// What a check never uses: it neither receives nor stores.
type closedDoor struct{}

func (closedDoor) Deliver(context.Context, session.Message) error { return errors.New("only a check") }

type noDocs struct{}

func (noDocs) Doc(context.Context, string) ([]byte, int64, error)  { return nil, 0, nil }
func (noDocs) PutDoc(context.Context, string, int64, []byte) error { return nil }
func noSave(context.Context, session.Key, string, io.Reader) (string, int64, error) {
	return "", 0, errors.New("only a check")
}
