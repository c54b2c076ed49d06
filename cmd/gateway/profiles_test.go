package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
)

const profilesYAML = `
busy_input_mode: steer
platforms: {discord: {busy_input_mode: interrupt}}
model: {base_url: "https://one.example/v1", api_key: main-key, name: big, context_window: 1000}
profiles:
  team:
    model: {name: small}
    instructions_file: team.md
    workspace: repo
    tools: [read_file, job]
    busy_input_mode: queue
  local: {model: {base_url: "http://127.0.0.1:1/v1", name: tiny, hosted: false}}
  plain: {}
  keyed: {model: {base_url: "https://two.example/v1", api_key: "${KEY_TWO}"}}
chats:
  -100123: team
  -100123/7: local
  discord: keyed
  "telegram:55": plain
  55: team
`

func loadProfiles(t *testing.T) Config {
	t.Helper()
	workIn(t)
	t.Setenv("KEY_TWO", "two-key")
	if err := os.WriteFile("team.md", []byte("Speak like a sailor.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeConfig(t, profilesYAML)
	c, err := loadConfig("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A thread's profile beats its chat's, that one its platform's; an id with its
// platform beats a bare one.
func TestProfileOf(t *testing.T) {
	c := loadProfiles(t)
	modes := modes(c)
	c.Profiles["local"] = ProfileConf{Notify: "none", Progress: "off"}
	for chat, want := range map[session.Key]session.Notify{
		{Platform: "telegram", Chat: "-100123", Thread: "7"}: session.NotifyNone, {Platform: "telegram", Chat: "1"}: session.NotifyImportant,
	} {
		if got := c.notifyOf(chat); got != want {
			t.Errorf("%s: notify %s; want %s", chat, got, want)
		}
	}
	for chat, want := range map[session.Key]session.Progress{
		{Platform: "telegram", Chat: "-100123", Thread: "7"}: session.ProgressOff, {Platform: "telegram", Chat: "1"}: session.ProgressAll,
	} {
		if got := c.progressOf(chat); got != want {
			t.Errorf("%s: progress %s; want %s", chat, got, want)
		}
	}
	for _, tt := range []struct {
		platform, chat, thread, want string
		mode                         steer.Mode
	}{
		{"telegram", "-100123", "", "team", steer.Queue},
		{"telegram", "-100123", "8", "team", steer.Queue},
		{"telegram", "-100123", "7", "local", steer.Steer},
		{"telegram", "7", "", "", steer.Steer},
		{"telegram", "55", "", "plain", steer.Steer},
		{"discord", "55", "", "team", steer.Queue},
		{"discord", "77", "9", "keyed", steer.Interrupt},
		{"web", "77", "", "", steer.Steer},
	} {
		k := session.Key{Platform: session.PlatformName(tt.platform), Chat: session.ChatID(tt.chat), Thread: session.ThreadID(tt.thread)}
		if got := c.profileOf(k); got != tt.want {
			t.Errorf("%s: profile %q; want %q", k, got, tt.want)
		}
		if got := modes(k); got != tt.mode {
			t.Errorf("%s: mode %v; want %v", k, got, tt.mode)
		}
	}
}

// What a profile leaves out is as for all others; but a key goes to no other
// endpoint than its own (I13).
func TestProfileModels(t *testing.T) {
	c := loadProfiles(t)
	for name, want := range map[string]ModelConf{
		"team":  {BaseURL: "https://one.example/v1", APIKey: "main-key", Name: "small", Hosted: true, Images: "auto"},
		"local": {BaseURL: "http://127.0.0.1:1/v1", Name: "tiny", Images: "auto"},
		"plain": c.Model,
		"keyed": {BaseURL: "https://two.example/v1", APIKey: "two-key", Name: "big", Hosted: true, Images: "auto"},
	} {
		if got := c.Profiles[name].Model.merged(c.Model); got != want {
			t.Errorf("%s: got %+v; want %+v", name, got, want)
		}
	}
	all, err := c.loopProfiles(loop.Profile{System: "You help.", Hosted: true}, newLogger(c.Log, t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	if p := all["team"]; p.System != "You help.\n\nSpeak like a sailor." || len(p.Only) != 2 || !strings.Contains(p.Model.Name(), "small") || !p.Hosted {
		t.Errorf("team: %+v", p)
	}
	if p := all["local"]; p.System != "You help." || p.Only != nil || p.Hosted {
		t.Errorf("local: %+v", p)
	}
}

// The chats of a profile share its directory; deleting one of them leaves it.
func TestProfileWorkspace(t *testing.T) {
	c := loadProfiles(t)
	w, err := newWorkspaces(c)
	if err != nil {
		t.Fatal(err)
	}
	team, other := session.Key{Platform: "telegram", Chat: "-100123"}, session.Key{Platform: "telegram", Chat: "1"}
	dir, err := w.dir(team)
	if err != nil || filepath.Base(dir) != "repo" {
		t.Fatalf("got %s, %v; want repo", dir, err)
	}
	own, err := w.dir(other)
	if err != nil || own == dir {
		t.Fatalf("got %s, %v; want one of its own", own, err)
	}
	for _, k := range []session.Key{team, other} {
		if err := w.remove(k); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the shared directory: %v", err)
	}
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("the session's own: %v; want none", err)
	}
}

// How much of a group is observed is its profile's, which may also say none.
func TestProfileObserve(t *testing.T) {
	workIn(t)
	writeConfig(t, "sessions: {observe: 20}\nprofiles: {quiet: {observe: 0}, team: {observe: 5}, other: {notify: all}}\nchats: {1: quiet, 2: team, 3: other}\n")
	c, err := loadConfig("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for chat, want := range map[session.ChatID]int{"1": 0, "2": 5, "3": 20, "4": 20} {
		if got := c.observeOf(session.Key{Platform: "telegram", Chat: chat}); got != want {
			t.Errorf("chat %s: %d; want %d", chat, got, want)
		}
	}
	d := Defaults()
	if got := d.observeOf(session.Key{Platform: "telegram", Chat: "1"}); got != 0 {
		t.Errorf("by default %d; want none", got)
	}
}

func TestProfileErrors(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"chat of no profile": {"chats: {1: team}\n", `config: chats.1: there is no profile "team"; profiles holds them`},
		"bad mode":           {"profiles: {a: {busy_input_mode: push}}\n", `config: profiles.a.busy_input_mode is "push"`},
		"bad notify":         {"profiles: {a: {notify: loud}}\n", `config: profiles.a.notify is "loud"`},
		"bad progress":       {"profiles: {a: {progress: some}}\n", `config: profiles.a.progress is "some"; it must be one of: all, new, off`},
		"chat of a platform": {"profiles: {a: {}}\nchats: {telegrm: a}\n", "config: chats.telegrm: there is no such platform"},
		"id of a platform":   {"profiles: {a: {}}\nchats: {\"discrod:55\": a}\n", "config: chats.discrod:55: there is no such platform"},
		"observes much":      {"profiles: {a: {observe: 51}}\n", "config: profiles.a.observe is 51; it must be from 0 (none) to 50"},
		"unknown key":        {"profiles: {a: {modle: {}}}\n", `unknown field "modle"`},
		"no file":            {"profiles: {a: {instructions_file: none.md}}\n", "config: profiles.a.instructions_file: open none.md"},
		"no such tool":       {"profiles: {a: {tools: [hammer]}}\n", `there is no tool "hammer"`},
		"key file":           {"profiles: {a: {model: {api_key_file: none}}}\n", "config: profiles.a.model.api_key_file: stat none"},
	} {
		t.Run(name, func(t *testing.T) {
			workIn(t)
			writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\n"+c.yaml)
			conf, err := loadConfig("config.yaml")
			if err == nil {
				var p *parts
				if p, err = build(t.Context(), conf, newLogger(conf.Log, t.Output())); err == nil {
					p.closeAll()
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

// What is configured reaches the hub: off is still a word, not YAML's false.
func TestProgressReachesTheHub(t *testing.T) {
	workIn(t)
	writeConfig(t, "ops: {listen: \"\"}\nplatforms: {web: {listen: \"\"}}\nprogress: new\nprofiles: {quiet: {progress: off}}\nchats: {discord: quiet}\n")
	conf, err := loadConfig("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(t.Context(), conf, newLogger(conf.Log, t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	defer p.closeAll()
	for name, want := range map[session.PlatformName]session.Progress{"telegram": session.ProgressNew, "discord": session.ProgressOff} {
		if p.hub.Progress == nil || p.hub.Progress(session.Key{Platform: name, Chat: "1"}) != want {
			t.Errorf("%s: want %s", name, want)
		}
	}
}
