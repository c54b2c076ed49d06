package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"coxswain/steer"
)

// Config is the whole configuration. config.example.yaml documents every key
// and is held equal to Defaults by a test.
type Config struct {
	BusyInputMode string                 `yaml:"busy_input_mode"`
	Platforms     Platforms              `yaml:"platforms"`
	Model         ModelConf              `yaml:"model"`
	Transcription Transcription          `yaml:"transcription"`
	Store         StoreConf              `yaml:"store"`
	Workspace     Workspace              `yaml:"workspace"`
	Sessions      Sessions               `yaml:"sessions"`
	Steer         SteerConf              `yaml:"steer"`
	Input         Input                  `yaml:"input"`
	Queue         Queue                  `yaml:"queue"`
	Notify        string                 `yaml:"notify"`
	Progress      string                 `yaml:"progress"`
	Profiles      map[string]ProfileConf `yaml:"profiles"`
	Chats         Chats                  `yaml:"chats"`
	Tools         Tools                  `yaml:"tools"`
	Jobs          Jobs                   `yaml:"jobs"`
	Limits        Limits                 `yaml:"limits"`
	Lease         Lease                  `yaml:"lease"`
	Outbox        OutboxOpt              `yaml:"outbox"`
	Ops           Ops                    `yaml:"ops"`
	Log           Log                    `yaml:"log"`
}

// Platforms are the chat networks. One without a token is off.
type Platforms struct {
	Telegram Telegram `yaml:"telegram"`
	Discord  Discord  `yaml:"discord"`
	Web      Web      `yaml:"web"`
}

// Telegram is the Telegram bot.
type Telegram struct {
	Token         Secret `yaml:"token"`
	TokenFile     string `yaml:"token_file"`
	APIURL        string `yaml:"api_url"`
	Mode          string `yaml:"mode"`
	Webhook       Hook   `yaml:"webhook"`
	Rich          bool   `yaml:"rich"`
	AllowUsers    IDs    `yaml:"allow_users"`
	AllowChats    IDs    `yaml:"allow_chats"`
	AllowChannels IDs    `yaml:"allow_channels"`
	AllowBots     IDs    `yaml:"allow_bots"`
	Admins        IDs    `yaml:"admins"`
	Pairing       string `yaml:"pairing"`
	BusyInputMode string `yaml:"busy_input_mode"`
}

// Hook is how Telegram pushes updates.
type Hook struct {
	Listen     string `yaml:"listen"`
	URL        string `yaml:"url"`
	Secret     Secret `yaml:"secret"`
	SecretFile string `yaml:"secret_file"`
}

// Discord is the Discord bot.
type Discord struct {
	Token          Secret `yaml:"token"`
	TokenFile      string `yaml:"token_file"`
	APIURL         string `yaml:"api_url"`
	AllowUsers     IDs    `yaml:"allow_users"`
	AllowRoles     IDs    `yaml:"allow_roles"`
	AllowChannels  IDs    `yaml:"allow_channels"`
	Admins         IDs    `yaml:"admins"`
	Pairing        string `yaml:"pairing"`
	RequireMention bool   `yaml:"require_mention"`
	Threads        bool   `yaml:"threads"`
	AllowBots      IDs    `yaml:"allow_bots"`
	BusyInputMode  string `yaml:"busy_input_mode"`
}

// Web is the built-in web chat.
type Web struct {
	Listen        string `yaml:"listen"`
	Token         Secret `yaml:"token"`
	TokenFile     string `yaml:"token_file"`
	BusyInputMode string `yaml:"busy_input_mode"`
}

// ModelConf is the model's endpoint.
type ModelConf struct {
	BaseURL       string `yaml:"base_url"`
	APIKey        Secret `yaml:"api_key"`
	APIKeyFile    string `yaml:"api_key_file"`
	Name          string `yaml:"name"`
	ContextWindow int    `yaml:"context_window"`
	Hosted        bool   `yaml:"hosted"`
	Images        string `yaml:"images"`
	Prices        Prices `yaml:"prices"`
}

// Transcription is what puts voice messages into words.
type Transcription struct {
	BaseURL    string `yaml:"base_url"`
	APIKey     Secret `yaml:"api_key"`
	APIKeyFile string `yaml:"api_key_file"`
	Model      string `yaml:"model"`
}

// StoreConf says where sessions live.
type StoreConf struct {
	URL        Secret `yaml:"url"` // a Redis URL may hold a password
	URLFile    string `yaml:"url_file"`
	Durability string `yaml:"durability"`
	// Wait is for how many replicas of Redis a write waits.
	Wait WaitConf `yaml:"wait"`
	// Retention is how long a session is kept that nobody uses; 0 = for ever.
	Retention Duration `yaml:"retention"`
}

// WaitConf says how many replicas must have what is acknowledged.
type WaitConf struct {
	Replicas int      `yaml:"replicas"`
	Timeout  Duration `yaml:"timeout"`
}

// Workspace says where files of sessions live.
type Workspace struct {
	Dir string `yaml:"dir"`
}

// Sessions says what a session is in a group.
type Sessions struct {
	Group   string `yaml:"group"`
	Observe int    `yaml:"observe"`
}

// SteerConf is how steers go in.
type SteerConf struct {
	YieldAfter    Duration `yaml:"yield_after"`
	SkipUnstarted bool     `yaml:"skip_unstarted"`
	From          string   `yaml:"from"`
}

// Input is what counts as one input.
type Input struct {
	JoinWindow  Duration `yaml:"join_window"`
	StopWords   []string `yaml:"stop_words"`
	DeleteStops bool     `yaml:"delete_stops"`
}

// Queue is how queued messages begin turns.
type Queue struct {
	Together bool `yaml:"together"`
}

// Tools are the tools.
type Tools struct {
	Terminal Terminal `yaml:"terminal"`
}

// Terminal is the shell.
type Terminal struct {
	Allow   IDs      `yaml:"allow"`
	Timeout Duration `yaml:"timeout"`
}

// Jobs are calls that went on in the background.
type Jobs struct {
	OnEnd string `yaml:"on_end"`
}

// Limits bound what one turn may take.
type Limits struct {
	Running      int       `yaml:"running"`
	RunningChat  int       `yaml:"running_chat"`
	Memory       Size      `yaml:"memory"`
	Drain        Duration  `yaml:"drain"`
	TurnSteps    int       `yaml:"turn_steps"`
	TurnTime     Duration  `yaml:"turn_time"`
	HistoryCache Size      `yaml:"history_cache"`
	Spend        SpendConf `yaml:"spend"`
	Rate         RateConf  `yaml:"rate"`
}

// Lease is a runner's right to a session.
type Lease struct {
	TTL Duration `yaml:"ttl"`
}

// OutboxOpt is how sending deals with doubt.
type OutboxOpt struct {
	UnknownAfter Duration `yaml:"unknown_after"`
}

// Ops is the operators' listener.
type Ops struct {
	Listen    string `yaml:"listen"`
	Token     Secret `yaml:"token"`
	TokenFile string `yaml:"token_file"`
}

// Log is the log.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Defaults is the configuration when nothing is configured. ${NAME} is read
// from the environment by expand; ${NAME:-text} has a default.
func Defaults() Config {
	return Config{
		BusyInputMode: "steer",
		Platforms: Platforms{
			Telegram: Telegram{
				Token: "${TELEGRAM_BOT_TOKEN}", APIURL: "https://api.telegram.org", Pairing: "auto",
				Mode: "polling", Webhook: Hook{Listen: "127.0.0.1:8443"},
			},
			Discord: Discord{
				Token: "${DISCORD_BOT_TOKEN}", APIURL: "https://discord.com", Pairing: "auto", RequireMention: true,
			},
			Web: Web{Listen: "127.0.0.1:8080"},
		},
		Model: ModelConf{
			BaseURL: "${OPENAI_BASE_URL:-https://api.openai.com/v1}", APIKey: "${OPENAI_API_KEY}",
			Name: "${OPENAI_MODEL:-gpt-5-mini}", Hosted: true, Images: "auto",
		},
		Transcription: Transcription{BaseURL: "${OPENAI_BASE_URL:-https://api.openai.com/v1}", APIKey: "${OPENAI_API_KEY}"},
		Store:         StoreConf{URL: "${REDIS_URL:-sqlite:data/gateway.db}", Durability: "strict", Wait: WaitConf{Timeout: Duration(time.Second)}, Retention: Duration(720 * time.Hour)},
		Workspace:     Workspace{Dir: "data/workspace"},
		Sessions:      Sessions{Group: "shared"},
		Steer:         SteerConf{YieldAfter: Duration(5 * time.Second), SkipUnstarted: true, From: "owner"},
		Input:         Input{JoinWindow: Duration(time.Second), StopWords: []string{"stop", "halt", "cancel"}, DeleteStops: true},
		Notify:        "important",
		Progress:      "all",
		Tools:         Tools{Terminal: Terminal{Timeout: Duration(120 * time.Second)}},
		Jobs:          Jobs{OnEnd: "turn"},
		Limits: Limits{
			Drain: Duration(20 * time.Second), TurnSteps: 60, TurnTime: Duration(time.Hour), HistoryCache: 64 << 20,
			Running: 256, RunningChat: 64, Memory: 512 << 20,
			Spend: SpendConf{Unit: "tokens"},
		},
		Lease:  Lease{TTL: Duration(5 * time.Second)},
		Outbox: OutboxOpt{UnknownAfter: Duration(10 * time.Second)},
		Ops:    Ops{Listen: "127.0.0.1:9090"},
		Log:    Log{Level: "info", Format: "text"},
	}
}

// configPath is the file to read: --config, $GATEWAY_CONFIG, ./config.yaml; ""
// when none is named and there is none.
func configPath(flag string) string {
	if flag != "" {
		return flag
	}
	if env := os.Getenv("GATEWAY_CONFIG"); env != "" {
		return env
	}
	if _, err := os.Stat("config.yaml"); err == nil {
		return "config.yaml"
	}
	return ""
}

// loadConfig reads, expands and validates. Every error is one line that says
// what is wrong, where, and what to do.
func loadConfig(path string) (Config, error) {
	c := Defaults()
	if path != "" {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("config: there is no file %s; name one with --config, or leave it out", path)
		}
		if err != nil {
			return c, fmt.Errorf("config: %w", err)
		}
		if err := decodeConfig(data, path, &c); err != nil {
			return c, err
		}
	}
	if err := expand(reflect.ValueOf(&c).Elem(), ""); err != nil {
		return c, err
	}
	if err := c.readFiles(); err != nil {
		return c, err
	}
	return c, c.validate()
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand replaces ${NAME} and ${NAME:-default} in every string of v.
func expand(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if err := expand(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Tag.Get("yaml"), ".")); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := expand(v.Index(i), path); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			val := reflect.New(v.Type().Elem()).Elem() // what is in a map cannot be set
			val.Set(v.MapIndex(k))
			if err := expand(val, path+"."+k.String()); err != nil {
				return err
			}
			v.SetMapIndex(k, val)
		}
	case reflect.String:
		s := variable.ReplaceAllStringFunc(v.String(), func(m string) string {
			p := variable.FindStringSubmatch(m)
			if val, ok := os.LookupEnv(p[1]); ok && val != "" {
				return val
			}
			return p[3]
		})
		if strings.Contains(s, "${") && s == v.String() {
			return fmt.Errorf("config: %s: %q is no variable; write ${NAME} or ${NAME:-default}", path, s)
		}
		v.SetString(s)
	}
	return nil
}

// dataDir is where the gateway keeps its socket and its lock.
func (c *Config) dataDir() string {
	if path, ok := strings.CutPrefix(string(c.Store.URL), "sqlite:"); ok {
		return filepath.Dir(path)
	}
	return filepath.Dir(c.Workspace.Dir)
}

// storeExists refuses to look into an embedded store that is not there: opening
// it would make it, in whatever folder the shell happens to be.
func (c *Config) storeExists() error {
	path, ok := strings.CutPrefix(string(c.Store.URL), "sqlite:")
	if !ok {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(textNoStore, path)
	}
	return nil // any other fault is told by opening it
}

// mode is the configured mode of a platform.
func (c *Config) mode(own string) steer.Mode {
	if own == "" {
		own = c.BusyInputMode
	}
	m, err := steer.ParseMode(own)
	if err != nil {
		panic("config was not validated: " + err.Error())
	}
	return m
}
