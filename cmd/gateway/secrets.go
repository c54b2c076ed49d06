package main

import (
	"fmt"
	"os"
	"strings"
)

// readFiles fills secrets given as files.
func (c *Config) readFiles() error {
	for name, p := range c.Profiles {
		if err := readSecret("profiles."+name+".model.api_key", p.Model.APIKeyFile, &p.Model.APIKey); err != nil {
			return err
		}
		c.Profiles[name] = p
	}
	for _, f := range []struct {
		key    string
		path   string
		secret *Secret
	}{
		{"platforms.telegram.token", c.Platforms.Telegram.TokenFile, &c.Platforms.Telegram.Token},
		{"platforms.telegram.webhook.secret", c.Platforms.Telegram.Webhook.SecretFile, &c.Platforms.Telegram.Webhook.Secret},
		{"platforms.discord.token", c.Platforms.Discord.TokenFile, &c.Platforms.Discord.Token},
		{"platforms.web.token", c.Platforms.Web.TokenFile, &c.Platforms.Web.Token},
		{"transcription.api_key", c.Transcription.APIKeyFile, &c.Transcription.APIKey},
		{"model.api_key", c.Model.APIKeyFile, &c.Model.APIKey},
		{"store.url", c.Store.URLFile, &c.Store.URL},
		{"ops.token", c.Ops.TokenFile, &c.Ops.Token},
	} {
		if err := readSecret(f.key, f.path, f.secret); err != nil {
			return err
		}
	}
	return nil
}

// readSecret fills a secret from its file, if one is named.
func readSecret(key, path string, secret *Secret) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("config: %s_file: %w", key, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("config: %s_file: others may read %s; run chmod 600 on it", key, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: %s_file: %w", key, err)
	}
	*secret = Secret(strings.TrimSpace(string(data)))
	return nil
}
