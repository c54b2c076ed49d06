package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// A tap is a page's end of a stream, in memory.
type tap struct {
	head http.Header
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	buf  bytes.Buffer
	code int
	jam  chan struct{} // while not nil, writes wait for it
}

func (p *tap) Header() http.Header { return p.head }
func (p *tap) WriteHeader(c int)   { p.code = c }
func (p *tap) Flush()              {}
func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	jam := p.jam
	p.mu.Unlock()
	if jam != nil {
		<-jam
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

// listen opens a stream inside a bubble.
func listen(t *testing.T, a *Adapter, lastID string) *tap {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &tap{head: http.Header{}, stop: stop, done: make(chan struct{})}
	r := httptest.NewRequest("GET", readPath+"/events", nil).WithContext(ctx)
	r.Host = "localhost:8080"
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	go func() {
		defer close(p.done)
		a.Handler().ServeHTTP(p, r)
	}()
	return p
}

type sse struct{ id, name, data string }

// events gives what came since the last call, once all is quiet.
func (p *tap) events() []sse {
	synctest.Wait()
	p.mu.Lock()
	text := p.buf.String()
	p.buf.Reset()
	p.mu.Unlock()
	var out []sse
	for _, block := range strings.Split(text, "\n\n") {
		var e sse
		for _, line := range strings.Split(block, "\n") {
			name, v, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				e.id = v
			case "event":
				e.name = v
			case "data":
				e.data = v
			case "":
				e.name = "comment"
			}
		}
		if e.name != "" && block != "" {
			out = append(out, e)
		}
	}
	return out
}

func names(es []sse) string {
	var out []string
	for _, e := range es {
		out = append(out, e.name)
	}
	return strings.Join(out, " ")
}

func (p *tap) close() {
	p.stop()
	<-p.done
}

func liveText(hub *fakeHub, a *Adapter, text string) {
	hub.edit(testKey, func(l *session.Transcript, v *session.View) {
		l.Turn = 3
		v.Turn, v.Phase, v.Step, v.Steps, v.Text = 3, steer.PhaseShowing, 2, 60, text
	})
	v, _ := hub.View(testKey)
	a.Show(v)
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newFakeHub()
		a := newTestAdapter(t, hub, "")
		p := listen(t, a, "")
		defer p.close()
		if got := names(p.events()); got != "hello state rows" || p.head.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("got %s as %s; want hello, the state and a hint to read", got, p.head.Get("Content-Type"))
		}
		time.Sleep(time.Second)
		liveText(hub, a, "Hel")
		time.Sleep(time.Second)
		es := p.events()
		if names(es) != "state rows" {
			t.Fatalf("got %v", es)
		}
		var s state
		if err := json.Unmarshal([]byte(es[0].data), &s); err != nil || !s.Whole || *s.Text != "Hel" || s.Phase != "showing" || s.Step != 2 || s.Steps != 60 {
			t.Errorf("got %s; want the whole view", es[0].data)
		}
		// Deltas, and only whole characters of them.
		liveText(hub, a, "Hello w\xc3")
		time.Sleep(time.Second)
		liveText(hub, a, "Hello wörld")
		time.Sleep(time.Second)
		es = p.events()
		if names(es) != "state state" || !strings.Contains(es[0].data, `"add":"lo w"`) || !strings.Contains(es[1].data, `"add":"örld"`) || strings.Contains(es[1].data, "tools") {
			t.Errorf("got %v; want two deltas and no hint: no rows changed", es)
		}
		// A text that begins anew replaces.
		liveText(hub, a, "Other")
		time.Sleep(time.Second)
		if es = p.events(); len(es) != 1 || !strings.Contains(es[0].data, `"text":"Other"`) {
			t.Errorf("got %v; want the text anew", es)
		}
		// A tool's end goes with rows.
		hub.edit(testKey, func(_ *session.Transcript, v *session.View) {
			v.Tools = []session.ToolView{{Call: "call00001", Name: "shell", Step: 2, State: session.ToolDone, Took: 1.5}}
		})
		v, _ := hub.View(testKey)
		a.Show(v)
		time.Sleep(time.Second)
		if es = p.events(); names(es) != "state rows" || !strings.Contains(es[0].data, `"took":1.5`) {
			t.Errorf("got %v; want the tool and a hint", es)
		}
		if err := a.Sign(t.Context(), testKey, session.Fate{Ticket: 7, Msgs: []session.MessageID{"m"}, State: session.FateSteered, Step: 3}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if es = p.events(); names(es) != "fate rows" || !strings.Contains(es[0].data, `"state":"steered"`) || !strings.Contains(es[0].data, `"step":3`) {
			t.Errorf("got %v; want the fate", es)
		}
		// The turn is over and its view gone.
		hub.edit(testKey, func(_ *session.Transcript, v *session.View) { *v = session.View{} })
		a.Show(session.View{Key: testKey, Turn: 3, Done: true})
		time.Sleep(time.Second)
		if es = p.events(); names(es) != "state rows" || !strings.Contains(es[0].data, `"turn":0,`) || !strings.Contains(es[0].data, `"idle"`) {
			t.Errorf("got %v; want idle", es)
		}
		time.Sleep(21 * time.Second)
		if es = p.events(); names(es) != "beat beat" {
			t.Errorf("got %v; want two heartbeats", es)
		}
	})
}

func reply(t *testing.T, a *Adapter, i int, kind session.PartKind) {
	t.Helper()
	data := a.Parts(session.Outgoing{Key: testKey, Kind: kind, Markdown: fmt.Sprintf("text %d", i), Buttons: []session.Button{{Text: "Run 1", Data: "run:1"}}})
	if len(data) != 1 {
		t.Fatalf("got %d parts; want one: a page has no limit", len(data))
	}
	id, err := a.Send(t.Context(), session.Part{Key: testKey, PartNew: session.PartNew{ID: fmt.Sprintf("r:%d/1", i), Kind: kind, Turn: 3, Data: data[0]}})
	if err != nil || id != session.MessageID(fmt.Sprintf("r:%d/1", i)) {
		t.Fatalf("send: got %q, %v", id, err)
	}
}

// I9: each reply comes once, also over a cut connection; a repeat whose outcome
// was unknown is not shown again.
func TestStreamReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestAdapter(t, newFakeHub(), "")
		p := listen(t, a, "")
		p.events()
		reply(t, a, 1, session.PartReply)
		reply(t, a, 2, session.PartNotice)
		reply(t, a, 2, session.PartNotice)
		time.Sleep(time.Second)
		es := p.events()
		if names(es) != "reply reply rows" || !strings.Contains(es[0].data, `"text":"text 1"`) || !strings.Contains(es[0].data, `"data":"run:1"`) || !strings.Contains(es[1].data, `"kind":"notice"`) {
			t.Fatalf("got %v; want two replies", es)
		}
		last := es[1].id
		p.close()
		reply(t, a, 3, session.PartFinal)
		p = listen(t, a, last)
		es = p.events()
		if names(es) != "hello reply state rows" || !strings.Contains(es[1].data, `"kind":"final"`) || strings.Contains(es[1].data, "text 3") {
			t.Errorf("got %v; want the reply missed, and no text of a final: it is a row", es)
		}
		p.close()
		// The id of another process counts nothing here.
		p = listen(t, a, "otherboot."+strings.TrimPrefix(last, a.boot+"."))
		if es = p.events(); names(es) != "hello reply reply reply state rows" {
			t.Errorf("after a restart: got %v; want all there are", es)
		}
		p.close()
		for i := range keepReplies + 20 {
			reply(t, a, 100+i, session.PartReply)
		}
		memo, _ := a.rooms.of(testKey).memo(0)
		if len(memo) != keepReplies || memo[len(memo)-1].Text != fmt.Sprintf("text %d", 100+keepReplies+19) {
			t.Errorf("kept %d; want the newest %d", len(memo), keepReplies)
		}
	})
}

// Show, Sign and Send never wait for a page that does not read, and what such
// a page gets in the end is the newest.
func TestStreamSlowPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newFakeHub()
		a := newTestAdapter(t, hub, "")
		p := listen(t, a, "")
		defer p.close()
		p.events()
		time.Sleep(time.Second)
		jam := make(chan struct{})
		p.mu.Lock()
		p.jam = jam
		p.mu.Unlock()
		for i := range 1000 {
			liveText(hub, a, strings.Repeat("x", i))
			a.Sign(t.Context(), testKey, session.Fate{Ticket: int64(i), State: session.FateQueued})
			synctest.Wait()
		}
		a.Sign(t.Context(), testKey, session.Fate{Ticket: 999, State: session.FateAnswered})
		p.mu.Lock()
		p.jam = nil
		p.mu.Unlock()
		close(jam)
		time.Sleep(time.Second)
		es := p.events()
		// One state was on its way when the page jammed, one is the newest.
		states, fates := 0, 0
		for _, e := range es {
			states += strings.Count(e.name, "state")
			fates += strings.Count(e.name, "fate")
		}
		if states != 2 || fates > fatesMost+1 {
			t.Errorf("got %d states and %d fates; want 2 states and a bounded number of fates", states, fates)
		}
		if e := es[len(es)-1]; e.name != "rows" {
			t.Errorf("the last is %v; want a hint to read again", e)
		}
		found := false
		for _, e := range es {
			found = found || e.name == "fate" && strings.Contains(e.data, `"ticket":999,`) && strings.Contains(e.data, "answered")
		}
		if !found {
			t.Error("the newest fate is not among them")
		}
	})
}

func TestStreamsBounded(t *testing.T) {
	for name, quiet := range map[string]time.Duration{"waiting": time.Second, "having just written": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newTestAdapter(t, newFakeHub(), "")
				var open []*tap
				for range streamsMost {
					open = append(open, listen(t, a, ""))
				}
				synctest.Wait()
				if w := ask(a, "GET", readPath+"/events", ""); w.Code != 503 {
					t.Errorf("one too many: got %d; want 503", w.Code)
				}
				open[0].close()
				p := listen(t, a, "")
				if got := names(p.events()); got != "hello state rows" {
					t.Errorf("after one closed: got %q", got)
				}
				// The end of Run ends them all, at once.
				time.Sleep(quiet)
				a.endStreams()
				synctest.Wait()
				for i, p := range append(open, p) {
					select {
					case <-p.done:
					default:
						t.Fatalf("stream %d is still open", i)
					}
				}
			})
		})
	}
}

// Conversations nobody looks at are forgotten, those with a page never.
func TestRoomsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestAdapter(t, newFakeHub(), "")
		p := listen(t, a, "")
		defer p.close()
		reply(t, a, 1, session.PartReply)
		for i := range 3 * keepRooms {
			time.Sleep(time.Millisecond)
			a.rooms.of(session.Key{Platform: Name, Chat: session.ChatID(fmt.Sprintf("other-%d", i))})
		}
		if n := len(a.rooms.open); n > keepRooms+1 {
			t.Errorf("%d rooms kept; want at most %d and the open one", n, keepRooms)
		}
		if memo, _ := a.rooms.of(testKey).memo(0); len(memo) != 1 {
			t.Error("the open conversation was forgotten")
		}
	})
}

// TestStreamOfAnother: what another gateway wrote is a hint to read, for the pages
// of that conversation, or for all when nobody knows of which.
func TestStreamOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestAdapter(t, newFakeHub(), "")
		p := listen(t, a, "")
		defer p.close()
		p.events()
		other := testKey
		other.Chat += "x"
		for _, c := range []struct {
			key  session.Key
			want string
		}{{other, ""}, {testKey, "rows"}, {session.Key{}, "rows"}} {
			time.Sleep(time.Second)
			a.Changed(c.key)
			if got := names(p.events()); got != c.want {
				t.Errorf("a change of %v: got %q; want %q", c.key, got, c.want)
			}
		}
		if n := len(a.rooms.open); n != 1 {
			t.Errorf("%d rooms are kept; want the one that a page has open", n)
		}
	})
}
