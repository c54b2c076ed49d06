package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coxswain/loop"
	"coxswain/session"
)

// loadText loads a configuration from its text.
func loadText(t *testing.T, text string) (Config, error) {
	t.Helper()
	t.Setenv("TELEGRAM_BOT_TOKEN", "")
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadConfig(path)
}

// Budgets that cannot be counted are refused, with what to do.
func TestLimitsRefused(t *testing.T) {
	const money = "limits: {spend: {unit: money, day: 5}}\n"
	for name, c := range map[string]struct{ yaml, want string }{
		"unit":                {"limits: {spend: {unit: beer}}\n", `limits.spend.unit is "beer"; it must be one of: tokens, money`},
		"less than nothing":   {"limits: {spend: {day: -1}}\n", `day: "-1" is no amount`},
		"words":               {"limits: {spend: {day: many}}\n", `day: "many" is no amount`},
		"too exact":           {"model: {prices: {input: 0.1234567}}\n", `input: "0.1234567" is no amount`},
		"too much":            {"limits: {spend: {day: 1000000001}}\n", `"1000000001" is no amount`},
		"part of a token":     {"limits: {spend: {turn: 0.5}}\n", "limits.spend.turn is a part of a token"},
		"part, in a profile":  {"profiles: {team: {spend: {chat: 1.5}}}\n", "profiles.team.spend.chat is a part of a token"},
		"no prices":           {money, "limits.spend.unit is money, but model.prices has no input and output price"},
		"half the prices":     {money + "model: {prices: {input: 1}}\n", "model.prices has no input and output price"},
		"a profile's model":   {money + "model: {prices: {input: 1, output: 2}}\nprofiles: {team: {model: {name: other}}}\n", "profiles.team.model.prices has no input"},
		"only a profile's":    {"limits: {spend: {unit: money}}\nprofiles: {team: {spend: {chat: 1}}}\n", "model.prices has no input"},
		"a rate below zero":   {"limits: {rate: {chat_calls: -1}}\n", "limits.rate has a number below zero"},
		"half a rate":         {"limits: {rate: {chat_calls: 0.5}}\n", "limits.rate.chat_calls is 0.5; write a whole number"},
		"half a turn":         {"limits: {running: 0.5}\n", "limits.running is 0.5; write a whole number"},
		"half a chat's":       {"limits:\n  running_chat: 1.5\n", "limits.running_chat is 1.5; write a whole number"},
		"half a replica":      {"store: {wait: {replicas: 0.5}}\n", "store.wait.replicas is 0.5; write a whole number"},
		"half, in a profile":  {"profiles: {team: {observe: 0.5}}\n", "profiles.team.observe is 0.5; write a whole number"},
		"more than there is":  {"limits: {running: 99999999999999999999}\n", "running is 99999999999999999999, but it must be a number"},
		"a list":              {"limits: {spend: {day: [1]}}\n", "day is a list, but it must be"},
		"a section":           {"limits: {spend: {day: {a: 1}}}\n", "is a section, but it must be"},
		"a rate that is none": {"limits: {rate: {chat_call: 1}}\n", `unknown field "chat_call"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadText(t, c.yaml); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v; want one line with %q", err, c.want)
			}
		})
	}
}

// What is configured reaches the session in its unit, as a profile has it.
func TestLimitsOf(t *testing.T) {
	c, err := loadText(t, `
limits:
  spend: {unit: money, day: 20, person: 2.50, turn: "0.000001"}
  rate: {person_turns: 3, chat_calls: 40}
model: {name: big, prices: {input: 1.25, cached: 0.125, output: 10}}
profiles:
  team: {spend: {person: 0, chat: 7}}
  small: {model: {name: small, prices: {input: 0.1, output: 0.2}}}
chats: {"telegram:-100": team}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := c.spendOf(session.Key{Platform: "telegram", Chat: "1"})
	if want := (session.Spend{Unit: "money", Day: 20_000_000, Person: 2_500_000, Turn: 1}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	got = c.spendOf(session.Key{Platform: "telegram", Chat: "-100", Thread: "5"})
	if want := (session.Spend{Unit: "money", Day: 20_000_000, Chat: 7_000_000, Turn: 1}); got != want {
		t.Errorf("of the profile: got %+v; want %+v", got, want)
	}
	if got, want := c.Limits.Rate.session(), (session.Rate{PersonTurns: 3, ChatCalls: 40}); got != want {
		t.Errorf("rate: got %+v; want %+v", got, want)
	}
	if got, want := *c.prices(c.Model), (loop.Prices{Input: 1_250_000, Cached: 125_000, Output: 10_000_000}); got != want {
		t.Errorf("prices: got %+v; want %+v", got, want)
	}
	all, err := c.loopProfiles(loop.Profile{Prices: c.prices(c.Model)}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *all["small"].Prices, (loop.Prices{Input: 100_000, Cached: 100_000, Output: 200_000}); got != want {
		t.Errorf("prices of another model: got %+v; want %+v", got, want)
	}
	if got, want := *all["team"].Prices, *c.prices(c.Model); got != want {
		t.Errorf("prices of the same model: got %+v; want %+v", got, want)
	}
	c, err = loadText(t, "limits: {spend: {day: 20000}}\nmodel: {prices: {input: 1, output: 1}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.spendOf(session.Key{Platform: "web", Chat: "1"}); got != (session.Spend{Unit: "tokens", Day: 20_000}) || c.prices(c.Model) != nil {
		t.Errorf("tokens: got %+v, prices %v", got, c.prices(c.Model))
	}
}
