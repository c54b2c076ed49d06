package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coxswain/loop"
	"coxswain/loop/demo"
	"coxswain/session"
	"coxswain/steer"
)

// ProfileConf is how some chats are served. What it leaves out is as for all
// others.
type ProfileConf struct {
	Model            ProfileModel `yaml:"model"`
	InstructionsFile string       `yaml:"instructions_file"`
	Workspace        string       `yaml:"workspace"`
	Tools            []string     `yaml:"tools"`
	BusyInputMode    string       `yaml:"busy_input_mode"`
	Notify           string       `yaml:"notify"`
	Progress         string       `yaml:"progress"`
	Observe          *int         `yaml:"observe"` // nil = as for all others; 0 is none
	Spend            ProfileSpend `yaml:"spend"`
}

// ProfileModel is another model, or another endpoint.
type ProfileModel struct {
	BaseURL       string  `yaml:"base_url"`
	APIKey        Secret  `yaml:"api_key"`
	APIKeyFile    string  `yaml:"api_key_file"`
	Name          string  `yaml:"name"`
	ContextWindow int     `yaml:"context_window"`
	Hosted        *bool   `yaml:"hosted"`
	Images        string  `yaml:"images"`
	Prices        *Prices `yaml:"prices"`
}

// Chats name the profile of a platform, a chat or a thread.
type Chats map[string]string

// UnmarshalYAML accepts numbers as ids.
func (c *Chats) UnmarshalYAML(decode func(any) error) error {
	var raw map[any]string
	if err := decode(&raw); err != nil {
		return err
	}
	*c = Chats{}
	for id, name := range raw {
		(*c)[fmt.Sprint(id)] = name
	}
	return nil
}

// profileOf is the name of a session's profile, "" for none: a thread's beats
// its chat's, and that one its platform's. An id may be written with its
// platform before it, where two platforms have the same.
func (c *Config) profileOf(k session.Key) string {
	chat, on := string(k.Chat), string(k.Platform)
	for _, id := range []string{chat + "/" + string(k.Thread), chat} {
		if id == chat+"/" {
			continue
		}
		for _, at := range []string{on + ":" + id, id} {
			if name, ok := c.Chats[at]; ok {
				return name
			}
		}
	}
	return c.Chats[on]
}

// workspaceOf is the directory that a session's profile names, absolute, or "".
func (c *Config) workspaceOf(k session.Key) string {
	dir := c.Profiles[c.profileOf(k)].Workspace
	if dir == "" {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil { // an error means that there is no working directory
		return abs
	}
	return dir
}

// notifyOf is what rings in a session.
func (c *Config) notifyOf(k session.Key) session.Notify {
	return session.Notify(cmp.Or(c.Profiles[c.profileOf(k)].Notify, c.Notify))
}

// progressOf is what a session's chat sees of tool calls.
func (c *Config) progressOf(k session.Key) session.Progress {
	return session.Progress(cmp.Or(c.Profiles[c.profileOf(k)].Progress, c.Progress))
}

// observeOf is how much of what a chat says beside the bot is kept.
func (c *Config) observeOf(k session.Key) int {
	if n := c.Profiles[c.profileOf(k)].Observe; n != nil {
		return *n
	}
	return c.Sessions.Observe
}

// validateObserve refuses a number of messages that cannot be.
func validateObserve(key string, n int) error {
	if n < 0 || n > session.ObserveMost {
		return fmt.Errorf("config: %s is %d; it must be from 0 (none) to %d", key, n, session.ObserveMost)
	}
	return nil
}

// merged is the profile's model with what it leaves out from base.
func (m ProfileModel) merged(base ModelConf) ModelConf {
	if m.BaseURL != "" && m.BaseURL != base.BaseURL {
		base.BaseURL, base.APIKey = m.BaseURL, "" // a key is for its own endpoint
		base.ContextWindow, base.Prices = 0, Prices{}
	}
	if m.APIKey != "" {
		base.APIKey = m.APIKey
	}
	if m.Name != "" && m.Name != base.Name {
		base.Name, base.ContextWindow, base.Prices = m.Name, 0, Prices{}
	}
	if m.ContextWindow != 0 {
		base.ContextWindow = m.ContextWindow
	}
	if m.Hosted != nil {
		base.Hosted = *m.Hosted
	}
	if m.Images != "" {
		base.Images = m.Images
	}
	if m.Prices != nil {
		base.Prices = *m.Prices
	}
	return base
}

// instructionsMost bounds an instructions file: all of it goes into every
// request.
const instructionsMost = 32 << 10

// loopProfiles makes the profiles' models and prompts; std is what the others
// have.
func (c *Config) loopProfiles(std loop.Profile, log *slog.Logger) (map[string]loop.Profile, error) {
	all := map[string]loop.Profile{}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		conf, p := c.Profiles[name], std
		if conf.Model != (ProfileModel{}) {
			m := conf.Model.merged(c.Model)
			model, isDemo, err := newModel(m, 0, log)
			if err != nil {
				return nil, fmt.Errorf("profiles.%s: %w", name, err)
			}
			p.Model, p.Hosted, p.Images, p.Prices = model, m.Hosted || isDemo, m.seesImages(), c.prices(m)
		}
		if conf.InstructionsFile != "" {
			text, err := os.ReadFile(conf.InstructionsFile)
			if err != nil {
				return nil, fmt.Errorf("config: profiles.%s.instructions_file: %w", name, err)
			}
			if len(text) > instructionsMost {
				return nil, fmt.Errorf("config: profiles.%s.instructions_file: %s is over 32 KiB, and all of it goes into every request", name, conf.InstructionsFile)
			}
			p.System += "\n\n" + strings.TrimSpace(string(text))
		}
		if len(conf.Tools) > 0 {
			p.Only = conf.Tools
		}
		all[name] = p
	}
	return all, nil
}

// tryProfiles makes the profiles as a start does: files are read and tools looked up.
func (c *Config) tryProfiles(log *slog.Logger) error {
	std := loop.Profile{Model: &demo.Model{}}
	profiles, err := c.loopProfiles(std, log)
	if err != nil {
		return err
	}
	_, err = loop.New(loop.Options{Profile: std, Profiles: profiles, Tools: newToolbox(*c, nil, nil, log)})
	return err
}

// validateProfiles refuses profiles that cannot be, and chats of none.
func (c *Config) validateProfiles() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if name == "" {
			errs = append(errs, errors.New("config: profiles: a profile has no name"))
		}
		if n := c.Profiles[name].Model.Images; !slices.Contains([]string{"", "auto", "on", "off"}, n) {
			errs = append(errs, fmt.Errorf("config: profiles.%s.model.images is %q; it must be one of: auto, on, off", name, n))
		}
		if n := c.Profiles[name].Notify; !slices.Contains([]string{"", "important", "all", "none"}, n) {
			errs = append(errs, fmt.Errorf("config: profiles.%s.notify is %q; it must be one of: important, all, none", name, n))
		}
		if p := c.Profiles[name].Progress; !slices.Contains([]string{"", "all", "new", "off"}, p) {
			errs = append(errs, fmt.Errorf("config: profiles.%s.progress is %q; it must be one of: all, new, off", name, p))
		}
		if n := c.Profiles[name].Observe; n != nil {
			errs = append(errs, validateObserve(fmt.Sprintf("profiles.%s.observe", name), *n))
		}
		if m := c.Profiles[name].BusyInputMode; m != "" {
			if _, err := steer.ParseMode(m); err != nil {
				errs = append(errs, fmt.Errorf("config: profiles.%s.busy_input_mode is %q; it must be one of: queue, interrupt, steer", name, m))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Chats)) {
		on, _, named := strings.Cut(id, ":")
		known := slices.Contains([]string{"telegram", "discord", "web"}, on)
		if named && !known || !named && !known && strings.IndexFunc(id, func(r rune) bool { return r >= '0' && r <= '9' }) < 0 {
			errs = append(errs, fmt.Errorf("config: chats.%s: there is no such platform; telegram, discord and web are ones, and ids have digits", id))
			continue
		}
		if _, ok := c.Profiles[c.Chats[id]]; !ok {
			errs = append(errs, fmt.Errorf("config: chats.%s: there is no profile %q; profiles holds them", id, c.Chats[id]))
		}
	}
	return errs
}
