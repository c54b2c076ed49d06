package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"coxswain/adapters/loopguard"
	"coxswain/session"
)

// Name is the platform's name in session keys.
const Name session.PlatformName = "telegram"

// ErrToken ends Run: Telegram refuses the token. Other platforms go on (T29).
var ErrToken = errors.New(wordsBadToken)

// A Door takes what came in. When Deliver returns nil a crash cannot lose the
// message any more; until then it is given again. session.Hub is it.
type Door interface {
	Deliver(ctx context.Context, m session.Message) error
}

// Docs keeps the adapter's few small documents; session.Store is it.
type Docs interface {
	Doc(ctx context.Context, name string) (data []byte, version int64, err error)
	PutDoc(ctx context.Context, name string, version int64, data []byte) error
}

// A Command is an entry of the command menu.
type Command struct {
	Name  string // without the slash; only a-z, 0-9 and _ make it into the menu
	Short string // one line
}

// Options are what an Adapter needs. Token, Door, Docs and Save are required.
type Options struct {
	// Token gives the bot's token; it is asked before every call, so that a new
	// one works at once. The bot's id, its part before ':', is read in New.
	Token func() string
	// APIURL is the scheme and host of the API; empty = https://api.telegram.org.
	APIURL string
	Door   Door
	Docs   Docs
	// Save stores a file in the session's inbox and gives its path inside the
	// workspace. name is one file name without separators, made from what the
	// sender called the file.
	Save func(ctx context.Context, key session.Key, name string, r io.Reader) (path string, size int64, err error)
	// Files says whether the files of a message are loaded, before it is
	// delivered; nil = of every message. Without it anyone who can write to the
	// bot can fill the disk.
	Files func(ctx context.Context, m session.Message) bool
	// Open opens a file of a session's workspace that is to be sent, and gives its
	// size; nil = no files can be sent. Paths come from tools: Open must not
	// follow one out of the workspace.
	Open func(ctx context.Context, key session.Key, path string) (r io.ReadCloser, size int64, err error)
	// Session is the session that is spoken to in a chat, for Open; nil = the one
	// with the chat's key.
	Session func(chat session.Key) session.Key
	// Hear gives the words of a voice or video note that was saved; nil = they
	// stay files. It needs Open.
	Hear  func(ctx context.Context, name string, audio io.Reader) (string, error)
	Short func() bool // memory is short (spare.go); nil: never
	// Rich sends tables as rich messages where the server knows them (Bot API
	// 10.1). Clients that do not know them show a request to update in their
	// place; default off.
	Rich bool
	// Commands is the menu people see beside the input field. Shorts are other
	// names of them, with the slash, that are not in it.
	Commands []Command
	Shorts   []string
	// HTTPClient, nil = one made for long polls. A client with a Timeout below
	// 65 s cuts polls short.
	HTTPClient *http.Client
	Log        *slog.Logger // nil = discard
	// GroupSessions is "shared" (default: one session per chat or topic) or
	// "user" (one per person in it).
	GroupSessions string
	// Channels are the ids of channels that may speak: their posts, what Telegram
	// forwards of them into a discussion group, and what is written under their
	// name. Each is an author, ChatUser of its id; others are passed over.
	Channels []int64
	// Bots are the ids of bots that may speak to this one, by naming it and at
	// most loopguard.Most times in loopguard.Span; others are passed over.
	Bots []int64
	// Webhook, not nil, has updates pushed; nil = they are polled for.
	Webhook *Webhook
	// Seat runs intake, the polling, while no other process polls this bot, and
	// ends its context before another does; it may run it again. nil = there is no
	// other. All else is done without it.
	Seat func(ctx context.Context, intake func(context.Context) error) error
}

// An Adapter is one bot on Telegram. All methods may be called from any
// goroutine; Run by one at a time.
type Adapter struct {
	api      api
	id       int64 // the bot's
	door     Door
	docs     Docs
	save     func(ctx context.Context, key session.Key, name string, r io.Reader) (string, int64, error)
	files    func(ctx context.Context, m session.Message) bool
	open     func(ctx context.Context, key session.Key, path string) (io.ReadCloser, int64, error)
	shorts   []string
	session  func(chat session.Key) session.Key
	hear     func(ctx context.Context, name string, audio io.Reader) (string, error)
	short    func() bool
	rich     bool
	commands []Command
	log      *slog.Logger
	perUser  bool
	channels []int64
	bots     []int64
	hook     *Webhook
	seat     func(ctx context.Context, intake func(context.Context) error) error
	flight   atomic.Pointer[flight] // while updates are pushed

	pace    pacer
	aliases aliases
	chats   chatMemo
	seen    seen
	own     seen // what was sent to channels
	loops   loopguard.Guard
	presses presses
	lacks   lacking
	me      greeting
	state   state
	shows   shows
	signs   signs
	clock   clock
	away    absence
	hurry   hurry
	loads   chan struct{}  // one place for each file being loaded
	beside  sync.WaitGroup // what Run has begun beside the poll
}

var _ session.Platform = (*Adapter)(nil)

// New makes an adapter; it calls nothing yet.
func New(o Options) (*Adapter, error) {
	switch {
	case o.Token == nil || o.Door == nil || o.Docs == nil || o.Save == nil:
		return nil, errors.New("telegram: Token, Door, Docs and Save are required")
	case o.GroupSessions != "" && o.GroupSessions != "shared" && o.GroupSessions != "user":
		return nil, fmt.Errorf("telegram: sessions.group is %q: want shared or user", o.GroupSessions)
	}
	id, err := BotID(o.Token())
	if err != nil {
		return nil, err
	}
	if o.APIURL == "" {
		o.APIURL = "https://api.telegram.org"
	}
	if u, err := url.Parse(o.APIURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("telegram: api_url %q: want scheme and host, like https://api.telegram.org", o.APIURL)
	}
	if o.Webhook != nil {
		if err := o.Webhook.Validate(); err != nil {
			return nil, err
		}
	}
	if o.HTTPClient == nil {
		o.HTTPClient = newClient()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Adapter{
		id:   id,
		door: o.Door, docs: o.Docs, save: o.Save, files: o.Files, open: o.Open, session: o.Session, hear: o.Hear, short: o.Short, rich: o.Rich, commands: o.Commands, shorts: o.Shorts,
		log: o.Log.With("platform", "telegram"), perUser: o.GroupSessions == "user", hook: o.Webhook, seat: o.Seat,
		channels: slices.Clone(o.Channels), bots: slices.Clone(o.Bots),
	}
	a.loads = make(chan struct{}, loadsMost)
	a.api = api{base: strings.TrimRight(o.APIURL, "/"), token: o.Token, http: o.HTTPClient, clock: &a.clock}
	return a, nil
}

// BotID reads the bot's id from its token.
func BotID(token string) (int64, error) {
	head, _, ok := strings.Cut(token, ":")
	id, err := strconv.ParseInt(head, 10, 64)
	if !ok || err != nil || id <= 0 {
		return 0, errors.New("telegram: the token does not look like 123456:ABC…: " + wordsBadToken)
	}
	return id, nil
}

// newClient makes a client without a timeout of its own: calls carry theirs.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: pollWait + 15*time.Second,
		// A send over a connection the server has just closed has an unknown
		// outcome. Telegram closes idle ones after a minute or so; be first.
		IdleConnTimeout:     25 * time.Second,
		MaxIdleConnsPerHost: 16,
		ForceAttemptHTTP2:   true,
	}}
}

// Run polls, or is pushed to, until ctx ends and gives what comes in to the
// door. The first poll goes out at once; the bot's name and the command menu are seen to beside it.
// When it returns, nothing it delivered is unconfirmed by its fault and no
// update is confirmed that the door has not taken (I1). The error is ErrToken,
// or nil when ctx ended.
//
// Live views go on after Run has returned, so that turns may be drained; Close
// ends them.
func (a *Adapter) Run(ctx context.Context) error {
	a.shows.begin(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer a.beside.Wait()
	defer cancel()
	a.beside.Go(func() { a.greet(ctx) })
	a.beside.Go(func() { a.menu(ctx) })
	a.beside.Go(func() { a.keepAlive(ctx) })
	var err error
	switch {
	case a.hook != nil:
		err = a.receive(ctx)
	case a.seat != nil:
		err = a.seat(ctx, a.sit)
	default:
		err = a.poll(ctx)
	}
	a.state.set(func(s *Status) { s.Connected = false })
	return err
}

// sit polls on a seat. Others have polled before: what is remembered of when
// this process did would call their time an absence, and they may have been told
// that a group moved.
func (a *Adapter) sit(ctx context.Context) error {
	a.away.forget()
	a.aliases.forget()
	a.state.set(func(s *Status) { s.LastPoll, s.Err = time.Time{}, "" })
	err := a.poll(ctx)
	a.state.set(func(s *Status) { s.Connected = false })
	return err
}

// Close ends the live views, each with a last edit, within ctx. Call it after
// the turns are drained; Show does nothing afterwards.
func (a *Adapter) Close(ctx context.Context) error { return a.shows.close(ctx) }

// Status is the connection as operators see it.
type Status struct {
	Connected   bool      `json:"connected"` // the newest poll was answered, or the webhook is set
	Username    string    `json:"username,omitempty"`
	SeesAll     bool      `json:"sees_all_group_messages"` // false: privacy mode is on, or not known yet (T37)
	LastPoll    time.Time `json:"last_poll,omitzero"`      // when a poll was last answered, or the webhook last looked at
	LastUpdate  time.Time `json:"last_update,omitzero"`    // when an update last came
	Err         string    `json:"err,omitempty"`           // what is wrong now and what to do
	Hint        string    `json:"hint,omitempty"`          // what works, but less than people may think (T37)
	Delivered   int64     `json:"delivered"`               // messages the door took
	Ignored     int64     `json:"ignored"`                 // updates that mean nothing here
	Undecodable int64     `json:"undecodable"`             // updates kept raw (T36)
	Retries     int64     `json:"retries"`                 // times the store or the door did not take something at first
}

// Status may be called at any time.
func (a *Adapter) Status() Status {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.state.s
}

type state struct {
	mu sync.Mutex
	s  Status
}

func (s *state) set(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.s)
}

// A greeting is what getMe said, asked once.
type greeting struct {
	mu   sync.Mutex
	name string
}

// username gives the bot's name, asking the API for it if it is not known yet.
func (a *Adapter) username(ctx context.Context) (string, error) {
	a.me.mu.Lock()
	defer a.me.mu.Unlock()
	if a.me.name != "" {
		return a.me.name, nil
	}
	var u models.User
	if err := a.api.call(ctx, "getMe", struct{}{}, &u); err != nil {
		return "", err
	}
	if u.Username == "" {
		return "", errors.New("telegram getMe: the bot has no username")
	}
	a.me.name = u.Username
	hint := ""
	if !u.CanReadAllGroupMessages {
		hint = wordsPrivacyHint
	}
	a.state.set(func(s *Status) { s.Username, s.SeesAll, s.Hint = u.Username, u.CanReadAllGroupMessages, hint })
	if hint != "" {
		a.log.Info(wordsPrivacyHint, "bot", u.Username)
	}
	return u.Username, nil
}

func (a *Adapter) greet(ctx context.Context) {
	for wait := newBackoff(time.Second, time.Minute); ; {
		_, err := a.username(ctx)
		if err == nil || unauthorized(err) || ctx.Err() != nil {
			return // a refused token is the poll's to tell
		}
		if !pause(ctx, wait.next()) {
			return
		}
	}
}

// menu sets the command menu when it is not what was last set: the API limits
// how often it may be set, so a restart must not do it again.
func (a *Adapter) menu(ctx context.Context) {
	var list []models.BotCommand
	for _, c := range a.commands {
		if menuName(c.Name) && c.Short != "" && len(list) < 100 { // 100: Telegram's limit
			list = append(list, models.BotCommand{Command: c.Name, Description: cutUnits(c.Short, 256)}) // 256: Telegram's limit
		}
	}
	if len(list) == 0 {
		return
	}
	sum := sha256.New()
	for _, c := range list {
		fmt.Fprintf(sum, "%q %q\n", c.Command, c.Description)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	name := a.docName("menu")
	for wait := newBackoff(2*time.Second, 5*time.Minute); ctx.Err() == nil; {
		have, version, err := a.docs.Doc(ctx, name)
		if err == nil && string(have) == want {
			return
		}
		if err == nil {
			err = a.api.call(ctx, "setMyCommands", &bot.SetMyCommandsParams{Commands: list}, nil)
		}
		if err == nil {
			err = a.docs.PutDoc(ctx, name, version, []byte(want))
		}
		if err == nil || errors.Is(err, session.ErrStale) || unauthorized(err) {
			return // stale: another replica has set it
		}
		d := wait.next()
		if e, ok := errors.AsType[*apiError](err); ok {
			if e.code >= 400 && e.code < 500 && e.code != http.StatusTooManyRequests {
				a.log.Warn("command menu refused", "err", err)
				return
			}
			d = max(d, e.retryAfter)
		}
		if !pause(ctx, d) {
			return
		}
	}
}

func menuName(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' {
			return false
		}
	}
	return true
}
