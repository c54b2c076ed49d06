package discord

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

// intents: message content is privileged and must be turned on in the portal.
const intents = discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages | discordgo.IntentMessageContent |
	discordgo.IntentsGuildMessageReactions | discordgo.IntentsDirectMessageReactions

// A link is one session of the library and the connection under it, which is
// kept so that a session that hangs in a read can be made to end.
type link struct {
	a      *Adapter
	ctx    context.Context // of Run
	flight *flight
	s      *discordgo.Session
	dead   atomic.Bool   // thrown away: its events count no more
	ready  atomic.Bool   // READY or RESUMED has come since the last open
	gone   chan struct{} // holds a token when the connection has ended
	heard  atomic.Int64  // when the last event came, Unix ns

	// Of the reading goroutine: the newest message before READY, the channels that
	// were read since their cursors then, and how many more from the newest.
	horizon string
	read    map[string]bool
	fresh   int
	missing map[string]bool // guilds of READY that have not told yet
	upTo    string          // the newest message that guilds told of

	mu   sync.Mutex
	conn net.Conn
}

func (a *Adapter) newLink(ctx context.Context, f *flight) (*link, error) {
	s, err := a.newSession(a.rest.Client.Transport)
	if err != nil {
		return nil, err
	}
	l := &link{a: a, ctx: ctx, flight: f, s: s, gone: make(chan struct{}, 1)}
	s.Identify.Intents = intents
	s.Dialer = &websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: 10 * time.Second, NetDialContext: l.dial}
	s.AddHandler(l.event)
	s.AddHandler(func(*discordgo.Session, *discordgo.Disconnect) {
		select {
		case l.gone <- struct{}{}:
		default:
		}
	})
	return l, nil
}

func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
	if l.dead.Load() {
		c.Close()
	}
	return c, nil
}

// cut ends the connection under the session, whatever the session does.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

var errStuck = errors.New("discord: the session is stuck")

// open opens the session, or resumes it when it was open before, within the
// deadline that the library does not have. After errStuck it can only be thrown
// away (D23).
func (l *link) open(ctx context.Context) error {
	l.ready.Store(false)
	select {
	case <-l.gone: // of the connection before
	default:
	}
	done := make(chan error, 1)
	go func() { done <- l.s.Open() }()
	t := time.NewTimer(l.a.timing.open)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
	case <-ctx.Done():
	}
	// A read that waits ends with the connection; a lock that waits for itself
	// does not.
	l.cut()
	t.Reset(l.a.timing.end)
	select {
	case <-done:
	case <-t.C:
		l.a.state.set(func(s *Status) { s.Leaked++ })
	}
	return errStuck
}

// why a watch ended.
type ending uint8

const (
	endGone  ending = iota // the connection has ended
	endStuck               // it is deaf or locked up
	endDone                // ctx ended
)

// watch returns when the open session needs something done.
func (l *link) watch(ctx context.Context) ending {
	opened, locked := time.Now(), time.Time{}
	l.heard.Store(opened.UnixNano())
	tick := time.NewTicker(l.a.timing.tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return endDone
		case <-l.gone:
			return endGone
		case now := <-tick.C:
			if !l.s.TryRLock() {
				if locked.IsZero() {
					locked = now
				}
				if now.Sub(locked) > l.a.timing.lock {
					return endStuck
				}
				continue
			}
			ack := l.s.LastHeartbeatAck
			l.s.RUnlock()
			locked = time.Time{}
			switch {
			case l.flight.full.Load(): // our own doing: nothing is read meanwhile
				continue
			case now.Sub(ack) > l.a.timing.ack:
				return endStuck
			case !l.ready.Load() && now.Sub(opened) > l.a.timing.open:
				return endStuck // Op 9 and then nothing
			case now.Sub(time.Unix(0, l.heard.Load())) > l.a.timing.quiet:
				// Heartbeats are answered and nothing comes: a quiet night, or deaf.
				// A new connection tells, and costs no login.
				l.heard.Store(now.UnixNano())
				l.cut()
			}
		}
	}
}

// throw ends a session as far as that is possible. closed means that it was
// never open or has closed by itself.
func (l *link) throw(closed bool) {
	l.dead.Store(true)
	l.cut()
	if closed {
		return
	}
	// Its reader sees the cut and closes the session, unless that is locked up.
	t := time.NewTimer(l.a.timing.end)
	defer t.Stop()
	select {
	case <-l.gone:
	case <-t.C:
		l.a.state.set(func(s *Status) { s.Leaked++ })
	}
}

// leave says good-bye, so that the bot is shown offline at once.
func (l *link) leave() {
	l.dead.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.s.Close()
	}()
	t := time.NewTimer(l.a.timing.end)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		l.cut()
		l.a.state.set(func(s *Status) { s.Leaked++ })
	}
}
