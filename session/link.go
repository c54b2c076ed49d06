package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Links join accounts of several platforms into one person (/link): a session that
// was moved to another platform knows its owner there. Links give no authority:
// who may talk, and who is an admin, stays a matter of each platform's settings
// (I10). All methods may be called from any goroutine.
type Links struct{ shelf shelf[links] }

// links is the stored document.
type links struct {
	People [][]account `json:"people,omitempty"` // each with two accounts or more
	Codes  []linkCode  `json:"codes,omitempty"`
	Log    []linked    `json:"log,omitempty"`   // what was done, newest last
	Tries  []linkTry   `json:"tries,omitempty"` // wrong codes within the hour

	rest Rest
}

// An account is somebody on one platform, and the private chat in which they said
// so.
type account struct {
	Platform PlatformName `json:"platform"`
	ID       UserID       `json:"id"`
	Name     string       `json:"name,omitempty"` // cleaned
	Chat     Key          `json:"chat"`

	rest Rest
}

type linkCode struct {
	Hash string  `json:"hash"`
	Of   account `json:"of"`
	Till int64   `json:"till"` // Unix s

	rest Rest
}

// linked is one line of the audit.
type linked struct {
	At   int64  `json:"at"` // Unix s
	Did  string `json:"did"`
	Who  string `json:"who"`            // PLATFORM:ID
	With string `json:"with,omitempty"` // the same
	By   string `json:"by"`             // the command's dedupe mark
	// Left are the others, of an unlink: they are told, also when it comes again.
	Left []account `json:"left,omitempty"`

	rest Rest
}

type linkTry struct {
	Who string `json:"who"`
	At  int64  `json:"at"` // Unix s

	rest Rest
}

const (
	linkLogMost  = 200
	linkCodeMost = 100 // that wait at one time: the oldest goes
	linkAccounts = 8   // of one person
)

// NewLinks makes the links kept in a store.
func NewLinks(st Store) *Links { return &Links{shelf: shelf[links]{store: st, name: "links"}} }

func (a account) String() string { return string(a.Platform) + ":" + string(a.ID) }

func (a account) is(b account) bool { return a.Platform == b.Platform && a.ID == b.ID }

// of gives the accounts of whoever has a, a itself among them.
func (l *links) of(a account) []account {
	for _, p := range l.People {
		if slices.ContainsFunc(p, a.is) {
			return p
		}
	}
	return []account{a}
}

// as is who a person of one platform is in sessions of another: their account
// there if they have one, else one that nobody there has.
func (l *Links) as(ctx context.Context, in, on PlatformName, id UserID) (UserID, error) {
	if in == on {
		return id, nil
	}
	has, err := l.shelf.get(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range has.of(account{Platform: on, ID: id}) {
		if a.Platform == in {
			return a.ID, nil
		}
	}
	return awayUser(on, id), nil
}

// accounts are all accounts of a person.
func (l *Links) accounts(ctx context.Context, a account) ([]account, error) {
	has, err := l.shelf.get(ctx)
	if err != nil {
		return nil, err
	}
	return has.of(a), nil
}

// note writes a line of the audit.
func (l *links) note(now time.Time, did string, who, with account, by string) {
	e := linked{At: now.Unix(), Did: did, Who: who.String(), By: by}
	if with.ID != "" {
		e.With = with.String()
	}
	l.Log = append(l.Log, e)
	l.Log = l.Log[max(0, len(l.Log)-linkLogMost):]
}

// did is what a command of an account has done, nil if it was not carried out.
func (l *links) did(what string, who account, by string) *linked {
	for i, e := range l.Log {
		if e.Did == what && e.By == by && e.Who == who.String() {
			return &l.Log[i]
		}
	}
	return nil
}

// offer keeps a code for an account: the newest is the one that counts.
func (l *links) offer(now time.Time, of account, code string) {
	l.Codes = slices.DeleteFunc(l.Codes, func(c linkCode) bool { return c.Till < now.Unix() || c.Of.is(of) })
	l.Codes = append(l.Codes, linkCode{Hash: hashCode(code), Of: of, Till: now.Add(pairLife).Unix()})
	l.Codes = l.Codes[max(0, len(l.Codes)-linkCodeMost):]
}

// What redeem answers.
type redeemed uint8

const (
	linkDone  redeemed = iota
	linkAgain          // the same command had done it
	linkWrong
	linkTooOften
	linkSelf // a code of the same account
	linkFull
)

// redeem joins the account that gave a code with the one that types it.
func (l *links) redeem(now time.Time, a account, code, by string) (with account, r redeemed) {
	if l.did("link", a, by) != nil {
		return account{}, linkAgain
	}
	l.Tries = slices.DeleteFunc(l.Tries, func(t linkTry) bool { return t.At < now.Add(-time.Hour).Unix() })
	wrong := 0
	for _, t := range l.Tries {
		wrong += boolInt(t.Who == a.String())
	}
	if wrong >= pairTries {
		return account{}, linkTooOften
	}
	at := slices.IndexFunc(l.Codes, func(c linkCode) bool { return c.Hash == hashCode(code) && c.Till >= now.Unix() })
	if at < 0 {
		l.Tries = append(l.Tries, linkTry{Who: a.String(), At: now.Unix()})
		return account{}, linkWrong
	}
	with = l.Codes[at].Of
	if with.is(a) {
		return with, linkSelf
	}
	one, two := l.of(with), l.of(a)
	all := slices.Clone(one)
	for _, b := range two {
		if !slices.ContainsFunc(all, b.is) {
			all = append(all, b)
		}
	}
	if len(all) > linkAccounts {
		return with, linkFull
	}
	l.Codes = slices.Delete(l.Codes, at, at+1)
	l.People = slices.DeleteFunc(l.People, func(p []account) bool {
		return slices.ContainsFunc(p, with.is) || slices.ContainsFunc(p, a.is)
	})
	l.People = append(l.People, all)
	l.note(now, "link", a, with, by)
	return with, linkDone
}

// part takes an account out of its person, and gives the others.
func (l *links) part(now time.Time, a account, by string) []account {
	rest := slices.DeleteFunc(slices.Clone(l.of(a)), a.is)
	if len(rest) == 0 {
		return nil
	}
	l.People = slices.DeleteFunc(l.People, func(p []account) bool { return slices.ContainsFunc(p, a.is) })
	if len(rest) > 1 {
		l.People = append(l.People, rest)
	}
	l.note(now, "unlink", a, account{}, by)
	l.Log[len(l.Log)-1].Left = rest
	return rest
}

// me is the account of a principal that writes in chat.
func me(p Principal, chat Key) account {
	a := account{Platform: p.Platform, ID: p.ID, Name: cleanName(p.Name), Chat: chat}
	if p.at != (Key{}) {
		a.ID = p.account
	}
	return a
}

// cmdLink gives a code, or joins with the account that was given one.
func (h *Hub) cmdLink(ctx context.Context, p Principal, m Message, args string) error {
	if !m.Private {
		return h.reply(ctx, m, textLinkPrivate)
	}
	if took, err := h.Store.Seen(ctx, m.Key, "r:"+m.Dedupe); err != nil || took {
		return err // another code would make the one that was shown void
	}
	w := m.written(p)
	a := me(p, w.Key)
	if args == "" {
		// Delivered again before its answer was stored, it gives another code.
		code := newCode(10)
		if err := h.Links.shelf.change(ctx, func(l *links) bool { l.offer(time.Now(), a, code); return true }); err != nil {
			return err
		}
		return h.reply(ctx, m, textLinkCode(code))
	}
	var with account
	var r redeemed
	code := strings.ToUpper(strings.TrimSpace(args))
	err := h.Links.shelf.change(ctx, func(l *links) bool {
		with, r = l.redeem(time.Now(), a, code, w.Dedupe)
		return r == linkDone || r == linkWrong
	})
	if err != nil {
		return err
	}
	switch r {
	case linkAgain, linkDone:
	case linkTooOften:
		return h.reply(ctx, m, textLinkOften)
	case linkSelf:
		return h.reply(ctx, m, textLinkSelf)
	case linkFull:
		return h.reply(ctx, m, textLinkFull)
	default:
		return h.reply(ctx, m, textLinkWrong)
	}
	if r == linkDone {
		h.Log.WarnContext(ctx, "accounts were linked", "account", a.String(), "with", with.String())
	}
	// Both are told: who did not ask for it sees it and undoes it.
	all, err := h.Links.accounts(ctx, a)
	if err != nil {
		return err
	}
	for _, other := range all {
		if err := h.tell(ctx, a, other, "link:"+w.Dedupe, textLinkedWith(a.Platform, a.Name)); err != nil {
			return err
		}
	}
	return h.reply(ctx, m, textLinked(all))
}

// cmdUnlink takes the account that types it out of its person.
func (h *Hub) cmdUnlink(ctx context.Context, p Principal, m Message, _ string) error {
	w := m.written(p)
	a := me(p, w.Key)
	var rest []account
	again := false
	err := h.Links.shelf.change(ctx, func(l *links) bool {
		if e := l.did("unlink", a, w.Dedupe); e != nil {
			again, rest = true, e.Left
			return false
		}
		again = false
		rest = l.part(time.Now(), a, w.Dedupe)
		return len(rest) > 0
	})
	if err != nil {
		return err
	}
	if len(rest) == 0 && !again {
		return h.reply(ctx, m, textNotLinked)
	}
	if !again {
		h.Log.WarnContext(ctx, "an account was unlinked", "account", a.String())
	}
	if err := h.takeHome(ctx, a, rest); err != nil {
		return err
	}
	for _, other := range rest {
		if err := h.tell(ctx, a, other, "unlink:"+w.Dedupe, textUnlinkedFrom(a.Platform, a.Name)); err != nil {
			return err
		}
	}
	return h.reply(ctx, m, textUnlinked)
}

// tell writes to another account of a person, in its private chat, once.
func (h *Hub) tell(ctx context.Context, a, other account, dedupe, text string) error {
	if other.is(a) {
		return nil
	}
	return h.notice(ctx, h.Routes.Current(other.Chat), dedupe, text)
}

// notice writes into a session's chat, once.
func (h *Hub) notice(ctx context.Context, lane Key, dedupe, text string) error {
	_, err := h.Store.Post(ctx, Post{Key: lane, Dedupe: dedupe, Outs: h.parts(Outgoing{Key: lane, Kind: PartNotice, Markdown: text}, 0, dedupe)})
	if err != nil {
		return fmt.Errorf("store notice: %w", err)
	}
	h.Outbox.Nudge(lane, nil)
	return nil
}
