package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"coxswain/adapters/discord"
	"coxswain/adapters/telegram"
	"coxswain/session"
)

// TestExampleEqualsDefaults holds config.example.yaml to the code: every key
// stands in it, with the default.
func TestExampleEqualsDefaults(t *testing.T) {
	data, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got Config
	if err := yaml.UnmarshalWithOptions(data, &got, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	if !reflect.DeepEqual(clean(got), clean(want)) {
		t.Errorf("config.example.yaml differs from Defaults:\n%+v\n%+v", clean(got), clean(want))
	}
	var keys map[string]any
	if err := yaml.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	missing(t, reflect.TypeOf(Config{}), keys, "")
}

// clean makes nil and empty lists the same.
func clean(c Config) Config {
	for _, l := range []*IDs{&c.Platforms.Telegram.AllowUsers, &c.Platforms.Telegram.AllowChats, &c.Platforms.Telegram.AllowChannels, &c.Platforms.Telegram.AllowBots, &c.Platforms.Telegram.Admins, &c.Platforms.Discord.AllowUsers, &c.Platforms.Discord.AllowRoles, &c.Platforms.Discord.AllowChannels, &c.Platforms.Discord.Admins, &c.Tools.Terminal.Allow} {
		if len(*l) == 0 {
			*l = nil
		}
	}
	if len(c.Profiles) == 0 {
		c.Profiles = nil
	}
	if len(c.Chats) == 0 {
		c.Chats = nil
	}
	return c
}

// missing finds keys of the code that the example does not show.
func missing(t *testing.T, typ reflect.Type, keys map[string]any, at string) {
	for i := range typ.NumField() {
		name := typ.Field(i).Tag.Get("yaml")
		v, ok := keys[name]
		if !ok {
			t.Errorf("config.example.yaml does not show %s%s", at, name)
			continue
		}
		if typ.Field(i).Type.Kind() == reflect.Struct {
			sub, ok := v.(map[string]any)
			if !ok {
				t.Errorf("config.example.yaml: %s%s is no section", at, name)
				continue
			}
			missing(t, typ.Field(i).Type, sub, at+name+".")
		}
	}
}

// TestConfigErrors: one line each, that says what, where and what to do.
func TestConfigErrors(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"unknown key":      {"busy_input_mode: steer\nmodle: {}\n", `:2: unknown field "modle"`},
		"wrong type":       {"limits:\n  turn_steps: many\n", ":2: turn_steps is a text, but it must be a number"},
		"not a switch":     {"steer: {skip_unstarted: 5}\n", ":1: skip_unstarted is a number, but it must be true or false"},
		"not a section":    {"model: gpt\n", ":1: model is a text, but it must be a section"},
		"not yaml":         {"a: [\n", ":1: "},
		"bad mode":         {"busy_input_mode: push\n", `busy_input_mode is "push"; it must be one of: queue, interrupt, steer`},
		"bad duration":     {"limits: {drain: soon}\n", `:1: drain: "soon" is no duration`},
		"no unit":          {"steer:\n  yield_after: 5\n", `:2: yield_after: "5" is no duration`},
		"bad size":         {"limits: {history_cache: big}\n", `:1: history_cache: "big" is no size`},
		"open web":         {"platforms: {web: {listen: \"0.0.0.0:8080\"}}\n", "platforms.web.listen is 0.0.0.0:8080, which others can reach"},
		"short token":      {"platforms: {web: {listen: \"0.0.0.0:8080\", token: short}}\n", "use at least 32 random ones"},
		"open ops":         {"ops: {listen: \":9090\"}\n", "ops.listen is :9090, which others can reach"},
		"no token":         {"platforms: {telegram: {admins: [1]}}\n", "platforms.telegram.token is empty"},
		"bad token":        {"platforms: {telegram: {token: nonsense}}\n", "is no bot token"},
		"bad progress":     {"progress: some\n", `progress is "some"; it must be one of: all, new, off`},
		"bad poll mode":    {"platforms: {telegram: {mode: push}}\n", `platforms.telegram.mode is "push"; it must be one of: polling, webhook`},
		"webhook, open":    {"platforms: {telegram: {token: \"1:a\", mode: webhook, webhook: {url: \"https://x.example\"}}}\n", "platforms.telegram.webhook.secret is empty; anybody could speak as anybody"},
		"webhook, nowhere": {"platforms: {telegram: {token: \"1:a\", mode: webhook, webhook: {secret: abc}}}\n", "set webhook.url to the public https address"},
		"a name as id":     {"platforms: {telegram: {token: \"1:a\", allow_users: [\"@ann\"]}}\n", `"@ann" is no id`},
		"a channel's name": {"platforms: {telegram: {token: \"1:a\", allow_channels: [\"@news\"]}}\n", `allow_channels: "@news" is no channel's id`},
		"a user's id":      {"platforms: {telegram: {token: \"1:a\", allow_channels: [7001]}}\n", `allow_channels: "7001" is no channel's id`},
		"all channels":     {"platforms: {telegram: {token: \"1:a\", allow_channels: [\"*\"]}}\n", `allow_channels: "*" is no channel's id`},
		"a bot's name":     {"platforms: {telegram: {token: \"1:a\", allow_bots: [\"@other_bot\"]}}\n", `allow_bots: "@other_bot" is no bot's id`},
		"a chat as bot":    {"platforms: {telegram: {token: \"1:a\", allow_bots: [-1009]}}\n", `allow_bots: "-1009" is no bot's id`},
		"itself":           {"platforms: {telegram: {token: \"1:a\", allow_bots: [1]}}\n", "allow_bots: 1 is this bot itself"},
		"webhook of http":  {"platforms: {telegram: {token: \"1:a\", mode: webhook, webhook: {url: \"http://x\", secret: abc}}}\n", "config: platforms.telegram: webhook.url \"http://x\": want the public https address"},
		"mode of nothing":  {"platforms: {telegram: {token: \"1:a\", busy_input_mode: wild}}\n", "it must be one of: queue, interrupt, steer"},
		"no token, bots":   {"platforms: {telegram: {allow_bots: [7]}}\n", "platforms.telegram.token is empty"},
		"nor channels":     {"platforms: {telegram: {allow_channels: [-1009]}}\n", "platforms.telegram.token is empty"},
		"no steps":         {"limits: {turn_steps: 0}\n", "limits.turn_steps is 0"},
		"observes much":    {"sessions: {observe: 51}\n", "sessions.observe is 51; it must be from 0 (none) to 50"},
		"observes less":    {"sessions: {observe: -1}\n", "sessions.observe is -1"},
		"short memory":     {"store: {retention: 59m}\n", "store.retention is 59m0s; it must be at least 1h, or 0"},
		"minus replicas":   {"store: {wait: {replicas: -1}}\n", "store.wait.replicas is -1; it must be zero or more"},
		"long wait":        {"store: {wait: {timeout: 1m}}\n", "store.wait.timeout is 1m0s; it must be from 1ms to 10s"},
		"no past":          {"store: {retention: -1h}\n", "store.retention is -1h0m0s"},
		"tiny lease":       {"lease: {ttl: 10ms}\n", "lease.ttl is 10ms"},
		"no port":          {"platforms: {web: {listen: localhost}}\n", `"localhost" is no address`},
		"secret file gone": {"model: {api_key_file: /nonexistent/key}\n", "model.api_key_file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TELEGRAM_BOT_TOKEN", "")
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := loadConfig(path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v; want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestConfigReads(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "1:abc")
	t.Setenv("REDIS_URL", "redis://r:1/0")
	t.Setenv("KEY_X", "k")
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "platforms: {telegram: {admins: [9007199254740993, \"7\"]}}\nmodel: {api_key: \"${KEY_X}\", name: \"${NONE:-m}\"}\nlimits: {drain: 3s, history_cache: 1MiB}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Platforms.Telegram.Admins; !reflect.DeepEqual(got, IDs{"9007199254740993", "7"}) {
		t.Errorf("admins: got %v", got)
	}
	if c.Model.APIKey != "k" || c.Model.Name != "m" || c.Store.URL != "redis://r:1/0" || c.Platforms.Telegram.Token != "1:abc" {
		t.Errorf("environment: got %q %q %q", string(c.Model.APIKey), c.Model.Name, string(c.Store.URL))
	}
	if c.Limits.Drain != Duration(3*time.Second) || c.Limits.HistoryCache != 1<<20 {
		t.Errorf("limits: got %v", c.Limits)
	}
}

// TestSpeakers: channels and bots that are named are let in, written as numbers
// or strings, and are no admins; a channel may be an allowed chat too.
func TestSpeakers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "platforms: {telegram: {token: \"1:abc\", admins: [7], allow_users: [8], allow_chats: [-1001], allow_channels: [-1001, \"-1002\"], allow_bots: [99, \"098\"]}, discord: {token: x, allow_users: [5], allow_bots: [\"77\"]}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	p := policies(c)[telegram.Name]
	if want := []string{"chat:-1001", "chat:-1002", "99", "98"}; !slices.Equal(p.AllowOther, want) || !slices.Equal(p.AllowUsers, []string{"8"}) {
		t.Errorf("users %v, others %v; want %v", p.AllowUsers, p.AllowOther, want)
	}
	if !slices.Equal(p.Admins, []string{"7"}) || !slices.Equal(p.AllowChats, []string{"-1001"}) {
		t.Errorf("admins %v, chats %v", p.Admins, p.AllowChats)
	}
	if d := policies(c)[discord.Name]; !slices.Equal(d.AllowUsers, []string{"5"}) || !slices.Equal(d.AllowOther, []string{"77"}) {
		t.Errorf("on Discord: users %v, others %v", d.AllowUsers, d.AllowOther)
	}
}

// TestSecretsHide: no way of printing the configuration shows a secret (I13).
func TestSecretsHide(t *testing.T) {
	c := Defaults()
	c.Model.APIKey = "sk-very-secret"
	y, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{string(y), c.Model.APIKey.String(), c.Model.APIKey.GoString(), c.Model.APIKey.LogValue().String()} {
		if strings.Contains(s, "very-secret") {
			t.Errorf("printed: %s", s)
		}
	}
}

// TestSecretFiles: a secret's file must be its owner's alone.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	conf := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(key, []byte("from-file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte("model: {api_key_file: "+key+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadConfig(conf); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: got %v", err)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(conf)
	if err != nil || c.Model.APIKey != "from-file" {
		t.Errorf("got %q, %v", string(c.Model.APIKey), err)
	}
}

// TestDocs holds the documentation to the code: every command, status field
// and shell command is told.
func TestDocs(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	commands, readme := read("../../docs/commands.md"), read("../../README.md")
	for _, c := range session.Commands() {
		if !strings.Contains(commands, "`/"+c.Name) {
			t.Errorf("docs/commands.md does not tell /%s", c.Name)
		}
		if !strings.Contains(readme, "/"+c.Name) {
			t.Errorf("README.md does not name /%s", c.Name)
		}
	}
	status := read("../../docs/status.md")
	for _, typ := range []reflect.Type{reflect.TypeFor[fullStatus](), reflect.TypeFor[session.Overview](), reflect.TypeFor[session.Status](), reflect.TypeFor[session.Stats](), reflect.TypeFor[telegramStatus](), reflect.TypeFor[discordStatus]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "" && !strings.Contains(status, "`"+name+"`") {
				t.Errorf("docs/status.md does not tell %s", name)
			}
		}
	}
	for _, word := range []string{"gateway check", "gateway status", "gateway sessions", "gateway pair", "gateway version"} {
		if !strings.Contains(readme, word) || !strings.Contains(textUsage, word) {
			t.Errorf("%s is not told in README.md and in the usage", word)
		}
	}
}
