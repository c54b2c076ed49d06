package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"coxswain/loop"
	"coxswain/session"
)

// SpendConf is how much may be used up; 0 = no limit.
type SpendConf struct {
	Unit   string `yaml:"unit"`
	Day    Amount `yaml:"day"`
	Person Amount `yaml:"person"`
	Chat   Amount `yaml:"chat"`
	Turn   Amount `yaml:"turn"`
}

// ProfileSpend is what a profile's chats have otherwise; nil = as all others.
type ProfileSpend struct {
	Day    *Amount `yaml:"day"`
	Person *Amount `yaml:"person"`
	Chat   *Amount `yaml:"chat"`
	Turn   *Amount `yaml:"turn"`
}

// RateConf is how much may begin in a minute; 0 = any number.
type RateConf struct {
	PersonTurns int64 `yaml:"person_turns"`
	ChatTurns   int64 `yaml:"chat_turns"`
	PersonCalls int64 `yaml:"person_calls"`
	ChatCalls   int64 `yaml:"chat_calls"`
}

// Prices are what a million tokens of a model cost.
type Prices struct {
	Input  Amount `yaml:"input"`
	Cached Amount `yaml:"cached"`
	Output Amount `yaml:"output"`
}

// An Amount is a number of tokens or of a currency's units, kept in millionths:
// sums of money are exact only as whole numbers.
type Amount int64

const (
	amountUnit = 1_000_000
	amountMost = 1_000_000_000 // units: all that meters count exactly
)

// UnmarshalYAML reads a number with at most six decimals.
func (a *Amount) UnmarshalYAML(decode func(any) error) error {
	var s string
	if err := decode(&s); err != nil {
		return err
	}
	whole, part, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	frac, err2 := uint64(0), error(nil)
	if part != "" {
		frac, err2 = strconv.ParseUint((part + "000000")[:6], 10, 63)
	}
	if err != nil || err2 != nil || len(part) > 6 || n > amountMost {
		return fmt.Errorf("%q is no amount; write a number from 0 to 1000000000, with at most six decimals, for example 2.50", s)
	}
	*a = Amount(n*amountUnit + frac)
	return nil
}

// MarshalYAML writes it as it is read.
func (a Amount) MarshalYAML() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(a)/amountUnit, 'f', -1, 64)), nil
}

// spendOf is what may be used up in a chat.
func (c *Config) spendOf(k session.Key) session.Spend {
	s, own := c.Limits.Spend, c.Profiles[c.profileOf(k)].Spend
	unit := session.Unit(s.Unit)
	limit := func(all Amount, own *Amount) int64 {
		if own != nil {
			all = *own
		}
		if unit == session.UnitTokens {
			return int64(all) / amountUnit
		}
		return int64(all)
	}
	return session.Spend{
		Unit: unit, Day: limit(s.Day, own.Day), Person: limit(s.Person, own.Person), Chat: limit(s.Chat, own.Chat), Turn: limit(s.Turn, own.Turn),
	}
}

func (r RateConf) session() session.Rate {
	return session.Rate{PersonTurns: r.PersonTurns, ChatTurns: r.ChatTurns, PersonCalls: r.PersonCalls, ChatCalls: r.ChatCalls}
}

// prices are what the loop counts with; nil where tokens are counted.
func (c *Config) prices(m ModelConf) *loop.Prices {
	if session.Unit(c.Limits.Spend.Unit) != session.UnitMoney || !c.limitsSpend() {
		return nil
	}
	p := loop.Prices{Input: int64(m.Prices.Input), Cached: int64(m.Prices.Cached), Output: int64(m.Prices.Output)}
	if p.Cached == 0 {
		p.Cached = p.Input
	}
	return &p
}

// limitsSpend reports whether anything is limited anywhere.
func (c *Config) limitsSpend() bool {
	s := c.Limits.Spend
	if s.Day+s.Person+s.Chat+s.Turn > 0 {
		return true
	}
	for _, p := range c.Profiles {
		for _, a := range []*Amount{p.Spend.Day, p.Spend.Person, p.Spend.Chat, p.Spend.Turn} {
			if a != nil && *a > 0 {
				return true
			}
		}
	}
	return false
}

// validateLimits refuses budgets that cannot be counted.
func (c *Config) validateLimits() []error {
	var errs []error
	s := c.Limits.Spend
	if s.Unit != string(session.UnitTokens) && s.Unit != string(session.UnitMoney) {
		errs = append(errs, fmt.Errorf("config: limits.spend.unit is %q; it must be one of: tokens, money", s.Unit))
	}
	whole := func(key string, a Amount) {
		if s.Unit == string(session.UnitTokens) && a%amountUnit != 0 {
			errs = append(errs, fmt.Errorf("config: %s is a part of a token; write a whole number, or set limits.spend.unit to money", key))
		}
	}
	whole("limits.spend.day", s.Day)
	whole("limits.spend.person", s.Person)
	whole("limits.spend.chat", s.Chat)
	whole("limits.spend.turn", s.Turn)
	priced := func(key string, p Prices) {
		if s.Unit == string(session.UnitMoney) && c.limitsSpend() && (p.Input == 0 || p.Output == 0) {
			errs = append(errs, fmt.Errorf("config: limits.spend.unit is money, but %s has no input and output price; set what a million tokens cost", key))
		}
	}
	priced("model.prices", c.Model.Prices)
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		for key, a := range map[string]*Amount{"day": p.Spend.Day, "person": p.Spend.Person, "chat": p.Spend.Chat, "turn": p.Spend.Turn} {
			if a != nil {
				whole("profiles."+name+".spend."+key, *a)
			}
		}
		if m := p.Model.merged(c.Model); m.Prices != c.Model.Prices {
			priced("profiles."+name+".model.prices", m.Prices)
		}
	}
	if r := c.Limits.Rate; min(r.PersonTurns, r.ChatTurns, r.PersonCalls, r.ChatCalls) < 0 {
		errs = append(errs, errors.New("config: limits.rate has a number below zero; write how many may begin in a minute, or 0 for any"))
	}
	return errs
}
