package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Pairing says when strangers are given a code.
type Pairing string

// The pairing settings.
const (
	PairingAuto Pairing = "auto" // only while nobody is allowed yet
	PairingOn   Pairing = "on"
	PairingOff  Pairing = "off"
)

// A Policy is who may talk on one platform, as configured. Ids only: names
// can be taken by anybody.
type Policy struct {
	AllowUsers []string // "*" = everyone
	AllowChats []string // chats in which everybody may talk to the bot
	AllowOther []string // ids of what is no person: bots, channels. Pairing does not count them
	AllowRoles []string // who has one of these where they write may talk as AllowUsers do
	Admins     []string
	Pairing    Pairing
	// Everyone is an admin: the adapter has authenticated them itself (web).
	Open bool
}

// Limits of pairing (security controls: slots that strangers cannot exhaust,
// limited attempts).
const (
	pairLife    = 10 * time.Minute // of a code and of the admin link
	pairPerHour = 20               // codes given per platform
	pairTries   = 5                // wrong admin codes per person and hour
)

// Access is the one authoriser (I10). It fails closed. Grants made at run time
// live in the store; every process reads them at most shelfFresh late.
// All methods may be called from any goroutine.
type Access struct {
	store  Store
	policy map[PlatformName]Policy

	grants map[PlatformName]*shelf[grants] // of the platforms of policy
}

// grants is the stored document access:<platform>.
type grants struct {
	Users  map[UserID]string `json:"users,omitempty"`  // id → name when granted
	Admins map[UserID]string `json:"admins,omitempty"` //
	Codes  map[string]Pair   `json:"codes,omitempty"`  // by code
	Given  []int64           `json:"given,omitempty"`  // when codes were given, Unix s
	Tries  map[UserID][]int64
	Link   string `json:"link,omitempty"` // SHA-256 of the one-time admin code
	LinkTo int64  `json:"link_to,omitempty"`

	rest Rest
}

// A Pair is a stranger's pending request.
type Pair struct {
	Code string `json:"code"`
	User UserID `json:"user"`
	Name string `json:"name"`
	Till int64  `json:"till"` // Unix s

	rest Rest
}

// NewAccess makes the authoriser over the configured policies.
func NewAccess(st Store, policy map[PlatformName]Policy) *Access {
	a := &Access{store: st, policy: policy, grants: map[PlatformName]*shelf[grants]{}}
	for name := range policy {
		a.grants[name] = a.shelf(name)
	}
	return a
}

// verdict is what the authoriser says of a message.
type verdict uint8

const (
	allowed  verdict = iota
	ignored          // say nothing
	stranger         // may be given a code
)

// authorize makes the Principal of a message, or says why there is none.
func (a *Access) authorize(ctx context.Context, m Message) (Principal, verdict, error) {
	p := Principal{Platform: m.Key.Platform, ID: m.From.ID, Name: m.From.Name, chat: m.Key.Chat}
	pol, ok := a.policy[m.Key.Platform]
	if !ok || m.From.ID == "" && !pol.Open {
		return Principal{}, ignored, nil
	}
	g, err := a.read(ctx, m.Key.Platform)
	if err != nil {
		return Principal{}, ignored, err
	}
	p.Admin = pol.isAdmin(g, m.From.ID)
	p.roles = pol.named(m.From.Roles)
	switch {
	case p.Admin, pol.allows(g, m.From, m.Key.Chat):
		p.ok = true
		return p, allowed, nil
	case m.Private:
		return Principal{}, stranger, nil
	}
	return Principal{}, ignored, nil
}

// Still reports whether a person may still talk in a chat and whether they
// are an admin: asked again when something of theirs is used (I10). Roles are
// those they had when they wrote it; whether these still count is asked again.
//
// When the store cannot be read the answer is what the configuration alone
// allows, and an error if that is not enough: it is not known that they may not,
// so what they wrote must wait, not be refused (I1).
func (a *Access) Still(ctx context.Context, key Key, who Person) (may, admin bool, err error) {
	if who.At != "" { // written in another chat: that is where they must still be allowed
		if key, err = ParseKey(who.At); err != nil {
			return false, false, nil
		}
		who.ID = who.Account
	}
	pol, ok := a.policy[key.Platform]
	if !ok {
		return false, false, nil
	}
	g, err := a.read(ctx, key.Platform)
	if err != nil {
		g = &grants{}
	}
	admin = pol.isAdmin(g, who.ID)
	if may = admin || pol.allows(g, who, key.Chat); may {
		err = nil
	}
	return may, admin, err
}

func (p Policy) isAdmin(g *grants, id UserID) bool {
	if p.Open || slices.Contains(p.Admins, string(id)) {
		return true
	}
	_, ok := g.Admins[id]
	return ok
}

func (p Policy) allows(g *grants, who Person, chat ChatID) bool {
	if slices.Contains(p.AllowUsers, "*") || slices.Contains(p.AllowUsers, string(who.ID)) || slices.Contains(p.AllowOther, string(who.ID)) || slices.Contains(p.AllowChats, string(chat)) {
		return true
	}
	_, ok := g.Users[who.ID]
	return ok || len(p.named(who.Roles)) > 0
}

// named are those of a person's roles that the policy allows.
func (p Policy) named(roles []string) []string {
	var named []string
	for _, r := range roles {
		if slices.Contains(p.AllowRoles, r) {
			named = append(named, r)
		}
	}
	return named
}

// shelf holds the grants of a platform; of one without a policy nothing is kept.
func (a *Access) shelf(name PlatformName) *shelf[grants] {
	if s := a.grants[name]; s != nil {
		return s
	}
	return &shelf[grants]{store: a.store, name: "access:" + string(name)}
}

// read gives the grants of a platform, at most shelfFresh old. While the store is away
// an older answer beats none: nothing is accepted from anybody then.
func (a *Access) read(ctx context.Context, name PlatformName) (*grants, error) {
	return a.shelf(name).get(ctx)
}

// change edits the grants of a platform; f may run several times and returns
// false to leave them as they are.
func (a *Access) change(ctx context.Context, name PlatformName, f func(*grants) bool) error {
	return a.shelf(name).change(ctx, func(g *grants) bool {
		g.init()
		return f(g)
	})
}

func (g *grants) init() {
	if g.Users == nil {
		g.Users = map[UserID]string{}
	}
	if g.Admins == nil {
		g.Admins = map[UserID]string{}
	}
	if g.Codes == nil {
		g.Codes = map[string]Pair{}
	}
	if g.Tries == nil {
		g.Tries = map[UserID][]int64{}
	}
	now := time.Now().Unix()
	for c, p := range g.Codes {
		if p.Till < now {
			delete(g.Codes, c)
		}
	}
	g.Given = recent(g.Given, now)
	for id, t := range g.Tries {
		if g.Tries[id] = recent(t, now); len(g.Tries[id]) == 0 {
			delete(g.Tries, id)
		}
	}
}

// recent keeps the times of the last hour.
func recent(times []int64, now int64) []int64 {
	return slices.DeleteFunc(times, func(t int64) bool { return t < now-3600 })
}

// pair gives a stranger a code, or "" when they are not to be answered.
func (a *Access) pair(ctx context.Context, m Message) (code string, err error) {
	pol := a.policy[m.Key.Platform]
	err = a.change(ctx, m.Key.Platform, func(g *grants) bool {
		code = ""
		if pol.Pairing == PairingOff || pol.Pairing != PairingOn && (len(pol.AllowUsers) > 0 || len(pol.AllowRoles) > 0 || len(g.Users) > 0) {
			return false
		}
		for _, p := range g.Codes {
			if p.User == m.From.ID {
				code = p.Code
				return false
			}
		}
		if len(g.Given) >= pairPerHour {
			return false
		}
		now := time.Now()
		code = newCode(8)
		g.Codes[code] = Pair{Code: code, User: m.From.ID, Name: cleanName(m.From.Name), Till: now.Add(pairLife).Unix()}
		g.Given = append(g.Given, now.Unix())
		return true
	})
	return code, err
}

// newCode gives n characters without look-alikes from crypto/rand.
func newCode(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	enc := base32.NewEncoding("ABCDEFGHJKLMNPQRSTUVWXYZ23456789").WithPadding(base32.NoPadding)
	return enc.EncodeToString(b)[:n]
}

// Pairs lists a platform's pending requests.
func (a *Access) Pairs(ctx context.Context, name PlatformName) ([]Pair, error) {
	var pairs []Pair
	err := a.change(ctx, name, func(g *grants) bool {
		pairs = nil
		for _, p := range g.Codes {
			pairs = append(pairs, p)
		}
		return false
	})
	slices.SortFunc(pairs, func(x, y Pair) int { return strings.Compare(x.Code, y.Code) })
	return pairs, err
}

// Approve lets the person with this code in. ok is false for an unknown or
// expired code.
func (a *Access) Approve(ctx context.Context, name PlatformName, code string) (p Pair, ok bool, err error) {
	err = a.change(ctx, name, func(g *grants) bool {
		p, ok = g.Codes[strings.ToUpper(strings.TrimSpace(code))]
		if ok {
			g.Users[p.User] = p.Name
			delete(g.Codes, p.Code)
		}
		return ok
	})
	return p, ok, err
}

// Revoke takes back what was granted to a person at run time.
func (a *Access) Revoke(ctx context.Context, name PlatformName, id UserID) (ok bool, err error) {
	err = a.change(ctx, name, func(g *grants) bool {
		_, u := g.Users[id]
		_, ad := g.Admins[id]
		delete(g.Users, id)
		delete(g.Admins, id)
		ok = u || ad
		return ok
	})
	return ok, err
}

// AdminLink makes the one-time code that makes its opener an admin, or "" when
// the platform has an admin already.
func (a *Access) AdminLink(ctx context.Context, name PlatformName) (code string, err error) {
	pol := a.policy[name]
	err = a.change(ctx, name, func(g *grants) bool {
		code = ""
		if len(pol.Admins) > 0 || len(g.Admins) > 0 || pol.Open {
			return false
		}
		code = newCode(20)
		g.Link, g.LinkTo = hashCode(code), time.Now().Add(pairLife).Unix()
		return true
	})
	return code, err
}

func hashCode(code string) string {
	h := sha256.Sum256([]byte(code))
	return hex.EncodeToString(h[:])
}

// redeem makes the sender an admin if code is the valid one-time code.
func (a *Access) redeem(ctx context.Context, on PlatformName, who Person, private bool, code string) (ok bool, err error) {
	if code == "" || !private || who.ID == "" {
		return false, nil
	}
	err = a.change(ctx, on, func(g *grants) bool {
		ok = false
		now := time.Now().Unix()
		if g.Link == "" || g.LinkTo < now || len(g.Tries[who.ID]) >= pairTries {
			return false
		}
		if subtle.ConstantTimeCompare([]byte(g.Link), []byte(hashCode(code))) != 1 {
			g.Tries[who.ID] = append(g.Tries[who.ID], now)
			return true
		}
		ok = true
		g.Admins[who.ID] = cleanName(who.Name)
		g.Link, g.LinkTo = "", 0
		return true
	})
	return ok, err
}

// cleanName makes a platform's name fit to show: one line, no control or
// format characters, at most 40 runes (I8).
func cleanName(s string) string { return CleanLine(s, 40) }
