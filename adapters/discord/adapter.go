package discord

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"coxswain/adapters/loopguard"
	"coxswain/session"
)

// Name is the platform's name in session keys.
const Name session.PlatformName = "discord"

// Errors that end Run for good: trying again would not help (D15, D24). Other
// platforms go on.
var (
	ErrToken   = errors.New(wordsBadToken)
	ErrIntents = errors.New(wordsNoIntent)
	ErrRefused = errors.New(wordsBadShard)
)

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

// A Command is one slash command.
type Command struct {
	Name  string // without the slash; names Discord does not take are left out
	Short string // one line
	// Args is what stands behind it in a usage line: TEXT, [queue|interrupt|steer];
	// in brackets it may be left out. Empty = nothing.
	Args string
}

// Options are what an Adapter needs. Token, Door, Docs and Save are required.
type Options struct {
	// Token gives the bot's token; it is asked before every call and login, so
	// that a new one works at once. The bot's id, its first part, is read in New.
	Token func() string
	// APIURL is the scheme and host of REST; empty = https://discord.com. The
	// address of the socket is asked for there.
	APIURL string
	Door   Door
	Docs   Docs
	// Save stores a file in the session's inbox and gives its path inside the
	// workspace. name is one file name without separators.
	Save func(ctx context.Context, key session.Key, name string, r io.Reader) (path string, size int64, err error)
	// Open opens a file of the session's workspace for sending and says its size
	// in bytes. Nil = files cannot be sent: people are told where the file is.
	Open func(ctx context.Context, key session.Key, path string) (io.ReadCloser, int64, error)
	// Files says whether somebody may put load on the gateway, before the message
	// is delivered: have files loaded and threads opened; nil = everybody who
	// speaks to the bot. Without it anyone who can write to the bot can fill the
	// disk.
	Files func(ctx context.Context, m session.Message) bool
	// Spent says whether the button of a press that was delivered may be taken
	// away; nil = always. Somebody may have pressed it who may not.
	Spent func(ctx context.Context, m session.Message) (bool, error)
	// Threads: what mentions the bot in a guild's text channel gets a thread, and
	// a session, of its own. /thread asks for one in any case.
	Threads bool
	// Bots are the ids of bots and webhooks that may speak to the bot, by
	// mentioning it and at most 20 times a minute; others are not heard.
	Bots []string
	// Commands are registered as slash commands; what follows one is one text.
	Commands []Command
	// RequireMention: in guild channels only messages that mention the bot or
	// reply to it speak to it, and all in threads it opened or was mentioned in.
	RequireMention bool
	// HTTPClient's transport is used for REST and files; nil = one made here.
	HTTPClient *http.Client
	Log        *slog.Logger // nil = discard
	// GroupSessions is "shared" (default: one session per channel or thread) or
	// "user" (one per person in it).
	GroupSessions string
	// Observes says whether messages of a channel that do not speak to the bot are
	// kept; nil = never.
	Observes func(session.Key) bool
	// Seat runs intake, the connection to the gateway, while no other process has
	// one for this bot, and ends its context before another does; it may run it
	// again. nil = there is no other. All else is done without it.
	Seat func(ctx context.Context, intake func(context.Context) error) error
}

// An Adapter is one bot on Discord. All methods may be called from any
// goroutine; Run by one at a time.
type Adapter struct {
	o       Options
	id      string // the bot's user id
	app     atomic.Pointer[string]
	rest    *discordgo.Session // never opened: for REST alone
	files   *http.Client       // never carries the token
	log     *slog.Logger
	perUser bool
	timing  timing

	flight   atomic.Pointer[flight] // of the newest Run
	pace     pacer
	invalid  budget // calls that were refused
	guilds   guilds
	places   places
	threads  threads
	seen     recent[seenMessage] // messages that were taken
	cursors  cursors
	shut     marks          // channels that refuse what the bot writes
	moved    marks          // threads that do, while their channels may not
	told     marks          // channels whose closing was told of
	spoke    recent[string] // who spoke to the bot last, by channel
	asks     recent[*ask]
	waits    recent[waiting] // by message
	menus    recent[string]  // asks of commands used on messages, by message
	loops    loopguard.Guard
	noSigns  marks
	lost     firsts
	reacted  recent[string] // signs by message
	lists    lists
	pressed  chan pressed     // buttons to be taken away
	spent    recent[[]string] // what was taken away, by message; the fader's
	shows    shows
	state    state
	warnOnce sync.Once
	logins   budget
	// registering: this process has begun to see to the slash commands.
	registering atomic.Bool
}

// timing holds the times that tests make short.
type timing struct {
	open   time.Duration // a session must be ready within this
	ack    time.Duration // without a heartbeat ack for this long it is deaf
	lock   time.Duration // a lock held for this long is held for ever
	tick   time.Duration // how often that is looked at
	steady time.Duration // a connection that lasted this long resets the back-off
	end    time.Duration // for a session to close
	least  time.Duration // first wait before connecting again
	most   time.Duration
	flush  time.Duration // how often cursors are stored
	retry  time.Duration // first wait when the door or store does not take something

	lowLogins time.Duration // how often it is asked whether there are logins again

	quiet  time.Duration // without any event for this long the connection is made anew
	grace  time.Duration // an answer to a slash command comes within this, if it comes
	barred time.Duration // how often it is looked whether a closed channel is open again

	typingAfter, typingEvery, bubbleAfter, editEvery time.Duration
}

// Discord's heartbeats are 41 s apart, and one missed ack means the connection
// is dead by its documents; two and some allow for a slow one. It shows typing
// for 10 s.
var realTiming = timing{
	open: 15 * time.Second, ack: 100 * time.Second, lock: 20 * time.Second, tick: 5 * time.Second,
	steady: time.Minute, end: 3 * time.Second, least: time.Second, most: 2 * time.Minute,
	flush: 2 * time.Second, retry: 200 * time.Millisecond, quiet: 30 * time.Minute, grace: 10 * time.Second, barred: 20 * time.Second, lowLogins: 10 * time.Minute,
	typingAfter: time.Second, typingEvery: 8 * time.Second, bubbleAfter: 3 * time.Second, editEvery: 1500 * time.Millisecond,
}

var (
	_ session.Platform = (*Adapter)(nil)
	_ session.Guide    = (*Adapter)(nil)
)

// New makes an adapter; it calls nothing yet.
func New(o Options) (*Adapter, error) {
	switch {
	case o.Token == nil || o.Door == nil || o.Docs == nil || o.Save == nil:
		return nil, errors.New("discord: Token, Door, Docs and Save are required")
	case o.GroupSessions != "" && o.GroupSessions != "shared" && o.GroupSessions != "user":
		return nil, fmt.Errorf("discord: sessions.group is %q: want shared or user", o.GroupSessions)
	}
	id, err := BotID(o.Token())
	if err != nil {
		return nil, err
	}
	if o.APIURL == "" {
		o.APIURL = "https://discord.com"
	}
	base, err := url.Parse(o.APIURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("discord: api_url %q: want scheme and host, like https://discord.com", o.APIURL)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Adapter{o: o, id: id, log: o.Log.With("platform", "discord"), perUser: o.GroupSessions == "user", timing: realTiming,
		pressed: make(chan pressed, fadesMost)}
	a.state.s.LoginsLeft = -1
	rt := http.RoundTripper(newTransport())
	if o.HTTPClient != nil && o.HTTPClient.Transport != nil {
		rt = o.HTTPClient.Transport
	}
	a.files = &http.Client{Transport: rt}
	if a.rest, err = a.newSession(&transport{next: rt, scheme: base.Scheme, host: base.Host, token: o.Token}); err != nil {
		return nil, err
	}
	return a, nil
}

// BotID reads the bot's id from its token: the first part is it in base64.
func BotID(token string) (string, error) {
	head, _, ok := strings.Cut(strings.TrimPrefix(token, "Bot "), ".")
	id, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(head, "="))
	if _, bad := strconv.ParseUint(string(id), 10, 64); !ok || err != nil || bad != nil {
		return "", errors.New("discord: the token does not look like one of a bot: " + wordsBadToken)
	}
	return string(id), nil
}

// Run connects and gives what comes in to the door until ctx ends. When it
// returns, no cursor stands beyond a message that the door has not taken (I1).
// The error is ErrToken, ErrIntents or ErrRefused, or nil when ctx ended.
//
// Live views go on after Run has returned, so that turns may be drained; Close
// ends them.
func (a *Adapter) Run(ctx context.Context) error {
	a.shows.begin(ctx)
	if a.o.Seat != nil {
		return a.o.Seat(ctx, a.receive)
	}
	return a.receive(ctx)
}

// receive is Run without what is shown. Another process may have received before
// it: what this one knows of an earlier time is dropped.
func (a *Adapter) receive(ctx context.Context) error {
	a.cursors.forget()
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	f := newFlight(a, ctx)
	a.flight.Store(f)
	var beside sync.WaitGroup
	defer func() {
		cancel()
		f.wait()
		beside.Wait()
		cleanup, done := context.WithTimeout(context.WithoutCancel(outer), 3*time.Second)
		defer done()
		a.flush(cleanup, true)
		a.guilds.forget() // nobody would tell that one is back
		a.state.set(func(s *Status) { s.Connected = false })
	}()
	if !a.untilDone(ctx, "read cursors", func() error { return a.loadMemos(ctx) }) {
		return nil
	}
	beside.Go(func() { a.flushing(ctx) })
	beside.Go(func() { a.fading(ctx) })
	return a.supervise(ctx, f)
}

// Close ends the live views, each with a last edit, within ctx. Call it after
// the turns are drained; Show does nothing afterwards.
func (a *Adapter) Close(ctx context.Context) error { return a.shows.close(ctx) }

// Status is the connection as operators see it.
type Status struct {
	Connected   bool      `json:"connected"`
	Username    string    `json:"username,omitempty"`
	LastEvent   time.Time `json:"last_event,omitzero"` // of any kind
	Err         string    `json:"err,omitempty"`       // what is wrong now and what to do
	Delivered   int64     `json:"delivered"`           // messages the door took
	Ignored     int64     `json:"ignored"`             // events that mean nothing here
	Undecodable int64     `json:"undecodable"`         // events that could not be read
	Retries     int64     `json:"retries"`             // times the store or the door did not take something at first
	Logins      int64     `json:"logins"`              // new sessions; Discord allows 1000 a day
	Resumes     int64     `json:"resumes"`
	Replaced    int64     `json:"replaced"` // sessions thrown away
	Leaked      int64     `json:"leaked"`   // of them: those that could not be ended
	Missed      int64     `json:"missed"`   // backlogs longer than what is read again
	Refused     int64     `json:"refused"`  // calls refused in the last ten minutes; 10,000 bar the address
	// LoginsLeft is what Discord said at the last login; -1 = it was not asked.
	LoginsLeft int64 `json:"logins_left"`
}

// Status may be called at any time.
func (a *Adapter) Status() Status {
	refused := int64(a.invalid.within(invalidTime))
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	a.state.s.Refused = refused
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

// beside runs work beside the lanes of the newest Run.
func (a *Adapter) beside(work func(context.Context)) {
	if f := a.flight.Load(); f != nil {
		f.goBeside(work)
	}
}

// untilDone tries f until it succeeds. False when ctx ended first.
func (a *Adapter) untilDone(ctx context.Context, step string, f func() error) bool {
	for wait := (&backoff{a.timing.retry, 10 * time.Second}); ; {
		err := f()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		a.state.set(func(s *Status) { s.Retries++ })
		d := wait.next()
		if e, ok := errors.AsType[*apiError](err); ok {
			d = max(d, e.wait)
		}
		a.log.Warn("not taken, trying again", "step", step, "err", err, "in", d.Round(time.Millisecond))
		if !pause(ctx, d) {
			return false
		}
	}
}
