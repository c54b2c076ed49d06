package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"coxswain/session"
)

// Name is the platform's name in session keys.
const Name session.PlatformName = "web"

// person is who everybody on the web chat is: there is one token, or the
// loopback interface, and no accounts.
var person = session.Person{ID: "web", Name: "you"}

// A Hub is what the web chat needs of the session package; *session.Hub is it.
type Hub interface {
	Deliver(ctx context.Context, m session.Message) error
	Identify(ctx context.Context, key session.Key, who session.Person, private bool) (session.Principal, bool, error)
	Read(ctx context.Context, p session.Principal, key session.Key, gen, after int64) (session.Transcript, error)
	List(ctx context.Context, platform session.PlatformName) ([]session.Listing, error)
	View(key session.Key) (session.View, bool)
}

// A Command is offered for completion when a message begins with a slash.
type Command struct {
	Name string `json:"name"` // without the slash
	Args string `json:"args,omitempty"`
	Help string `json:"help"`
}

// Options are what an Adapter needs. Listen and Hub are required.
type Options struct {
	// Listen is host:port. A host that is not loopback needs a Token.
	Listen string
	// Token lets people in, at least 32 characters. Empty: everybody who can
	// reach the loopback interface is let in, and only its names are served.
	Token string
	Hub   Hub
	// Store keeps what the page shows beside the sessions (see memo.go). nil: that
	// is in memory only and ends with the process.
	Store Store
	// Open opens files that the agent sends; nil: their links lead nowhere.
	Open Opener
	// Short reports that the process is short of memory: then messages are answered
	// 503 but for /stop, and the page sends them again. nil: never.
	Short    func() bool
	Commands []Command
	Log      *slog.Logger // nil = discard
}

// An Adapter is the web chat. All methods may be called from any goroutine;
// Run once.
type Adapter struct {
	listen   string
	token    string
	hub      Hub
	store    Store // may be nil
	open     Opener
	short    func() bool
	commands []Command
	log      *slog.Logger
	boot     string // names this process: what is in memory only began with it

	rooms   rooms
	tries   tries
	streams atomic.Int64
	ending  chan struct{} // closed when streams must end
	end     sync.Once
}

var (
	_ session.Platform = (*Adapter)(nil)
	_ session.Thorough = (*Adapter)(nil)
	_ session.Reader   = (*Adapter)(nil)
)

// tokenLeast is the shortest token: 32 bytes, so that guessing is hopeless.
const tokenLeast = 32

// New makes a web chat; it opens nothing yet.
func New(o Options) (*Adapter, error) {
	if o.Hub == nil {
		return nil, errors.New(wordsNoHub)
	}
	if o.Listen == "" {
		return nil, errors.New(wordsNoListen)
	}
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", wordsBadListen(o.Listen), err)
	case o.Token == "" && !isLoopback(host):
		return nil, errors.New(wordsNeedToken)
	case o.Token != "" && len(o.Token) < tokenLeast:
		return nil, errors.New(wordsShortToken)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Commands == nil {
		o.Commands = []Command{}
	}
	return &Adapter{
		listen: o.Listen, token: o.Token, hub: o.Hub, store: o.Store, open: o.Open, short: o.Short, commands: o.Commands, log: o.Log,
		boot: strings.ToLower(rand.Text()[:10]), ending: make(chan struct{}),
	}, nil
}

// Listen opens the listener. Its error is fit to be shown to an operator.
func (a *Adapter) Listen() (net.Listener, error) {
	ln, err := net.Listen("tcp", a.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w", wordsInUse(a.listen), err)
	}
	if err != nil {
		return nil, fmt.Errorf("web: open %s: %w", a.listen, err)
	}
	return ln, nil
}

// Limits of the server. Nobody who has not been let in costs more than this.
const (
	headerTime = 5 * time.Second
	headerMost = 16 << 10
	readTime   = 30 * time.Second // a whole request; lifted for streams
	writeTime  = 30 * time.Second // a whole answer; a stream has writeEach instead
	idleTime   = 2 * time.Minute
	endTime    = 5 * time.Second // for requests under way when Run must end
)

// Run serves until ctx ends. Then streams are ended, requests under way get
// five seconds, and Run returns nil. It owns ln.
func (a *Adapter) Run(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler: a.Handler(), ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: headerMost, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	srv.RegisterOnShutdown(a.endStreams)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		a.endStreams()
		return fmt.Errorf("web: serve: %w", err)
	case <-ctx.Done():
	}
	cleanup, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer stop()
	err := srv.Shutdown(cleanup)
	if err != nil {
		err = srv.Close() // whoever still reads loses the connection and asks again
	}
	<-served
	if err != nil {
		return fmt.Errorf("web: close: %w", err)
	}
	return nil
}

func (a *Adapter) endStreams() { a.end.Do(func() { close(a.ending) }) }

// payload is a part as this platform stores it.
type payload struct {
	Text    string            `json:"text,omitempty"`
	ReplyTo session.MessageID `json:"reply_to,omitempty"`
	Buttons []session.Button  `json:"buttons,omitempty"`
	Silent  bool              `json:"silent,omitempty"`
	Files   []session.File    `json:"files,omitempty"`
}

// Name implements session.Platform.
func (a *Adapter) Name() session.PlatformName { return Name }

// Parts implements session.Platform. A page has no limit on length, so a text
// is one part. A final answer is a row already; its part carries no text and
// only says that the answer has reached this end.
func (a *Adapter) Parts(o session.Outgoing) [][]byte {
	if o.Kind == session.PartSay {
		return nil // the page shows the row
	}
	p := payload{Text: o.Markdown, ReplyTo: o.ReplyTo, Buttons: o.Buttons, Silent: o.Silent}
	if o.Kind == session.PartFinal {
		p.Text = ""
	}
	data, err := json.Marshal(p)
	if err != nil {
		panic("web: a payload does not encode: " + err.Error())
	}
	return [][]byte{data}
}

// Send implements session.Platform: it leaves word for open pages and keeps the
// part for those that read later; nil means that the store has it. The same
// part again, a repeat whose outcome was not known, is the same reply (I9). An
// answer to a question is for its asker alone, who may have gone.
func (a *Adapter) Send(ctx context.Context, p session.Part) (session.MessageID, error) {
	var d payload
	if err := json.Unmarshal(p.Data, &d); err != nil {
		return "", &session.SendError{Outcome: session.SendRefused, Err: fmt.Errorf("web: decode part: %w", err)}
	}
	it := item{
		Kind: string(p.Kind), ID: p.ID, Text: d.Text, ReplyTo: d.ReplyTo, Buttons: d.Buttons,
		Silent: d.Silent, Files: named(d.Files), Turn: p.Turn, At: time.Now().UnixMilli(),
	}
	if len(it.Files) > 0 {
		it.Lane = p.Session()
	}
	here := a.rooms.of(p.Key)
	if id, ok := askedBy(p.ID); ok {
		here.answer(id, it)
		return session.MessageID(p.ID), nil
	}
	here.reply(it)
	if p.Kind != session.PartFinal {
		if err := a.keep(ctx, p.Key, func(*room) {}); err != nil {
			return "", &session.SendError{Outcome: session.SendNot, Err: fmt.Errorf("web: %w", err)}
		}
	}
	return session.MessageID(p.ID), nil
}

// Show implements session.Platform. A stream asks the hub for the view when it
// is ready to write, so v only says that there is one and whether rows have
// changed with it.
func (a *Adapter) Show(v session.View) { a.rooms.of(v.Key).show(v) }

// ShowsEveryCall implements session.Thorough: the page has calls folded.
func (a *Adapter) ShowsEveryCall() {}

// Changed implements session.Reader: pages that have the conversation open read
// what another gateway wrote to it.
func (a *Adapter) Changed(chat session.Key) { a.rooms.changed(chat) }

// Sign implements session.Platform. Every state is shown, also of inputs that
// did not wait. That a message was dropped is kept with its text.
func (a *Adapter) Sign(ctx context.Context, key session.Key, f session.Fate) error {
	a.rooms.of(key).sign(f)
	if f.State == session.FateDropped {
		return a.dropped(ctx, key, f)
	}
	return nil
}
