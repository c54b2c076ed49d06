package telegram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

func goodHook() *Webhook {
	return &Webhook{URL: "https://bot.example/telegram", Secret: "s3cret_-"}
}

// polledOnly are rows that are about polling, each with the reason.
var polledOnly = map[string]string{
	"T27": "no offset, so no id to lose", "T28": "no second poller", "T29": "TestWebhookRevoked",
	"a network that was away for hours is an absence":              "nobody knows whether the network is away when updates come by themselves",
	"forward and its comment are one input":                        "Telegram pushes the updates of a chat one by one: the comment does not know what follows",
	"stop does not wait for a file before it":                      "for the same reason /stop comes when the file is loaded",
	"presses are answered at once, also below what cannot be seen": "two of them are of one chat",
	"session goes on when the group becomes a supergroup":          "the two chats are pushed side by side",
}

// The rows hold as well when updates are pushed.
func TestRowsOverWebhook(t *testing.T) {
	for _, r := range platformRows {
		if polledOnly[r.id] != "" || polledOnly[r.name] != "" {
			continue
		}
		set := r.set
		set.pushed = true
		t.Run(r.id+" "+r.name, func(t *testing.T) { gated(t, set, r.play) })
	}
}

// ask makes one request of the webhook and gives the status.
func (w *world) ask(method, secret, body string) int {
	r := httptest.NewRequestWithContext(w.ctx, method, "/telegram", strings.NewReader(body))
	if secret != "" {
		r.Header.Set(hookSecret, secret)
	}
	rec := httptest.NewRecorder()
	w.a.Handler().ServeHTTP(rec, r)
	return rec.Code
}

func update1(id, msg int, chat int64, text string) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":1790000000,"from":{"id":%d,"first_name":"Ann"},"chat":{"id":%d,"type":"private"},"text":%q}}`, id, msg, ann, chat, text)
}

// Who has not the secret gets nothing in, and learns nothing.
func TestWebhookGuards(t *testing.T) {
	play(t, Options{Webhook: goodHook()}, func(w *world) {
		good := update1(1, 1, ann, "hello")
		for _, c := range []struct {
			name, method, secret, body string
			want                       int
		}{
			{"no secret", "POST", "", good, 401},
			{"wrong secret", "POST", "s3cret_+", good, 401},
			{"longer secret", "POST", "s3cret_-x", good, 401},
			{"secret, GET", "GET", "s3cret_-", "", 405},
			{"body over the limit", "POST", "s3cret_-", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		} {
			if got := w.ask(c.method, c.secret, c.body); got != c.want {
				t.Errorf("%s: %d; want %d", c.name, got, c.want)
			}
		}
		if ms := w.got(); len(ms) != 0 {
			t.Errorf("took %+v", ms)
		}
		if got := w.ask("POST", "s3cret_-", good); got != 200 || w.one().Text != "hello" {
			t.Errorf("a good one: %d", got)
		}
		// T36: what cannot be read is kept, and not sent again for ever.
		for _, bad := range []string{"nonsense", `{"update_id":7,"message":{"message_id":"x"}}`, `{"message":{"message_id":1}}`} {
			if got := w.ask("POST", "s3cret_-", bad); got != 200 || !strings.Contains(w.docs.get("quarantine"), strings.ReplaceAll(bad, `"`, `\"`)) {
				t.Errorf("%s: %d, kept %s", bad, got, w.docs.get("quarantine"))
			}
		}
		w.stop()
		if got := w.ask("POST", "s3cret_-", update1(2, 2, ann, "too late")); got != 503 || len(w.got()) != 0 {
			t.Errorf("after the end: %d", got)
		}
	})
}

// I1: 200 only when the door has it; 503 in time when it has not; the same
// update sent again meanwhile is the same one.
func TestWebhookAnswersWhenTaken(t *testing.T) {
	play(t, Options{Webhook: goodHook()}, func(w *world) {
		var refuse atomic.Bool
		refuse.Store(true)
		w.door.set(func(d *door) {
			d.fail = func(session.Message) error {
				if refuse.Load() {
					return errors.New("store is down")
				}
				return nil
			}
		})
		began := time.Now()
		if got := w.ask("POST", "s3cret_-", update1(1, 1, ann, "hello")); got != 503 || time.Since(began) > time.Minute {
			t.Errorf("%d after %v; want 503 before Telegram gives up", got, time.Since(began))
		}
		status := make(chan int, 3)
		for range 3 {
			go func() { status <- w.ask("POST", "s3cret_-", update1(1, 1, ann, "hello")) }()
		}
		w.settle(5 * time.Second)
		if len(status) != 0 || len(w.got()) != 0 {
			t.Errorf("%d answered while the store is down", len(status))
		}
		refuse.Store(false)
		w.settle(15 * time.Second)
		for range 3 {
			if got := <-status; got != 200 {
				t.Errorf("answered %d", got)
			}
		}
		if m := w.one(); m.Text != "hello" {
			t.Errorf("took %+v", m)
		}
	})
}

// Telegram sends the updates of a chat one after another; what fails comes
// again and holds up its own chat alone. Nothing is lost, nothing out of order.
func TestWebhookOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Webhook: goodHook()})
		var n atomic.Int64
		w.door.set(func(d *door) {
			d.fail = func(m session.Message) error {
				if m.From.ID == "7001" && n.Add(1)%3 != 0 {
					return errors.New("store is down")
				}
				return nil
			}
		})
		w.run()
		push, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.api.Push(push, w.a.Handler()) }()
		for i := range 20 {
			w.api.Say(ann, ann, fmt.Sprint("a", i))
			w.api.Say(bob, bob, fmt.Sprint("b", i))
		}
		synctest.Wait()
		if got := len(w.got()); got < 20 {
			t.Errorf("%d taken at once; want all of the other chat", got)
		}
		w.settle(30 * time.Minute)
		w.got()
		if n, _ := w.api.Pending(); n != 0 || w.door.count() != 40 {
			t.Errorf("%d left, %d taken; want 0, 40", n, w.door.count())
		}
		var last int
		for _, m := range w.door.everything() {
			if m.From.ID == "7001" {
				var i int
				if _, err := fmt.Sscanf(m.Text, "a%d", &i); err != nil || i != last {
					t.Errorf("%q came when a%d was due", m.Text, last)
				}
				last++
			}
		}
		stop()
		<-done
		w.stop()
		w.close()
	})
}

// Of two requests for one chat at one time the later one waits for the first.
func TestWebhookTwoAtOnce(t *testing.T) {
	play(t, Options{Webhook: goodHook()}, func(w *world) {
		hold := make(chan struct{})
		w.door.set(func(d *door) { d.hold = hold })
		done := make(chan int, 3)
		for i := range 3 {
			go func() { done <- w.ask("POST", "s3cret_-", update1(1+i, 1+i, ann, fmt.Sprint("m", i))) }()
			synctest.Wait()
		}
		close(hold)
		if got := texts(w.got()); got != "m0 m1 m2" {
			t.Errorf("took %q", got)
		}
		for range 3 {
			if got := <-done; got != 200 {
				t.Errorf("answered %d", got)
			}
		}
	})
}

// The webhook is set when it is not what it should be, and only then.
func TestWebhookIsSetWhenChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Webhook: goodHook()})
		sets := func() int { return len(w.api.Calls("setWebhook")) }
		w.api.Fault(telegramtest.Fault{Method: "setWebhook", Code: 429, RetryAfter: 20, Description: "Too Many Requests: retry after 20"})
		w.run()
		w.settle(time.Minute)
		if s := w.a.Status(); sets() != 2 || !s.Connected || s.Err != "" || w.api.Webhook() != "https://bot.example/telegram" {
			t.Errorf("set %d times, status %+v", sets(), s)
		}
		c := w.api.Calls("setWebhook")[1]
		if c.String("secret_token") != "s3cret_-" || fmt.Sprint(c.Params["allowed_updates"]) != fmt.Sprint(allowed) || c.Params["drop_pending_updates"] != nil {
			t.Errorf("set %+v", c.Params)
		}
		w.stop()
		w.run()
		w.settle(time.Hour)
		if sets() != 2 {
			t.Errorf("set %d times after a restart; want no more", sets())
		}
		w.api.SetWebhook(true) // another program took it
		w.settle(10 * time.Minute)
		if sets() != 3 || w.api.Webhook() != "https://bot.example/telegram" {
			t.Errorf("set %d times after another took it; want 3", sets())
		}
		w.stop()
		w.a.hook.Secret = "another"
		w.run()
		w.settle(time.Minute)
		w.stop()
		if sets() != 4 {
			t.Errorf("set %d times after the secret changed; want 4", sets())
		}
		if strings.Contains(w.logs.String(), "s3cret_-") || strings.Contains(w.docs.get("webhook"), "another") {
			t.Error("the secret is told")
		}
	})
}

// Back to polling: the own webhook is taken away, and what waits is kept.
func TestWebhookBackToPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Webhook: goodHook()})
		w.run()
		w.settle(time.Minute)
		w.stop()
		w.api.Say(ann, ann, "between")
		w.remake(Options{Docs: w.docs})
		began := time.Now()
		w.run()
		if m := w.one(); m.Text != "between" || m.Received.Sub(began) != 0 || w.api.Webhook() != "" {
			t.Errorf("took %+v, webhook %q", m, w.api.Webhook())
		}
		w.stop()
		w.api.SetWebhook(true) // now it is somebody else's (T28)
		w.run()
		w.settle(time.Minute)
		if n := len(w.api.Calls("deleteWebhook")); n != 1 || w.a.Status().Err != wordsWebhook {
			t.Errorf("deleted %d times, status %+v", n, w.a.Status())
		}
		w.stop()
	})
}

// What Telegram says of deliveries that fail is told. It takes no gateway out of
// service: behind a balancer that asks /readyz nothing could be delivered then.
func TestWebhookTrouble(t *testing.T) {
	play(t, Options{Webhook: goodHook()}, func(w *world) {
		push, stop := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.api.Push(push, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }))
		}()
		w.api.Say(ann, ann, "hello")
		w.settle(11 * time.Minute)
		if s := w.a.Status(); !s.Connected || !strings.Contains(s.Err, "Wrong response from the webhook: Bad Gateway") {
			t.Errorf("status %+v", s)
		}
		stop()
		<-done
	})
}

// T29 with a webhook.
func TestWebhookRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Webhook: goodHook()})
		w.api.Revoke()
		w.run()
		w.settle(time.Minute)
		w.stop()
		if !errors.Is(w.err, ErrToken) {
			t.Errorf("Run: %v", w.err)
		}
	})
}

func TestWebhookRefusesSettings(t *testing.T) {
	for _, c := range []struct{ url, secret, want string }{
		{"https://bot.example/x", "", "webhook.secret is empty"},
		{"https://bot.example/x", "has blanks in it", "webhook.secret"},
		{"https://bot.example/x", strings.Repeat("x", 257), "webhook.secret"},
		{"http://bot.example/x", "good", "https"},
		{"bot.example", "good", "https"},
		{"https://bot.example:9999/", "good", "8443"},
	} {
		o := Options{Token: func() string { return telegramtest.Token }, Door: &door{}, Docs: &docs{}, Save: (&inbox{}).save, Webhook: &Webhook{URL: c.url, Secret: c.secret}}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v; want %q in it", c.url, c.secret, err, c.want)
		}
	}
}

// Over a real socket, with the adapter's own server; Run ends it.
func TestWebhookOverSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := goodHook()
	h.Listener = l
	w := newWorld(t, Options{Webhook: h})
	w.start()
	if err := w.api.Wait(t.Context(), func() bool { return len(w.api.Calls("setWebhook")) == 1 }); err != nil {
		t.Fatal(err)
	}
	post := func(secret string) (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+l.Addr().String()+"/telegram", strings.NewReader(update1(1, 1, ann, "hello")))
		if err != nil {
			return 0, err
		}
		r.Header.Set(hookSecret, secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	if got, err := post("wrong"); got != 401 || err != nil {
		t.Errorf("%d, %v; want 401", got, err)
	}
	if got, err := post("s3cret_-"); got != 200 || err != nil || w.door.count() != 1 {
		t.Errorf("%d, %v, %d taken; want 200, 1", got, err, w.door.count())
	}
	stuck, status := make(chan struct{}), make(chan int, 1)
	w.door.set(func(d *door) { d.hold, d.enter = make(chan struct{}), func() { close(stuck) } })
	go func() {
		got, err := post("s3cret_-")
		if err != nil {
			got = -1
		}
		status <- got
	}()
	<-stuck
	began := time.Now()
	w.stop()
	if got := <-status; got != 503 || time.Since(began) > 4*time.Second {
		t.Errorf("a request that waits at the end: %d after %v; want 503 at once", got, time.Since(began))
	}
	if _, err := post("s3cret_-"); err == nil {
		t.Error("answered after the end")
	}
	if w.err != nil {
		t.Errorf("Run: %v", w.err)
	}
}
