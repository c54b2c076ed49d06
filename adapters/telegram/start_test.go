package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/telegramtest"
)

// The first poll does not wait for getMe or the menu.
func TestFirstPollAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Commands: []Command{{"stop", "stops"}}})
		w.api.Fault(telegramtest.Fault{Method: "getMe", Hang: true, Times: -1})
		w.api.Fault(telegramtest.Fault{Method: "setMyCommands", Hang: true, Times: -1})
		w.api.Say(ann, ann, "hello")
		began := time.Now()
		w.run()
		if m := w.one(); m.Received.Sub(began) != 0 {
			t.Errorf("received after %v; want at once", m.Received.Sub(began))
		}
		w.stop()
	})
}

// The menu is set once for each list of commands, over restarts too.
func TestMenuOnlyWhenChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cmds := []Command{{"stop", "stops the task"}, {"Bad-Name", "x"}, {"help", strings.Repeat("x", 300)}}
		w := newWorld(t, Options{Commands: cmds})
		w.api.Fault(telegramtest.Fault{Method: "setMyCommands", Code: 429, RetryAfter: 60, Description: "Too Many Requests: retry after 60"})
		w.run()
		w.settle(10 * time.Minute)
		w.stop()
		if n := len(w.api.Calls("setMyCommands")); n != 2 {
			t.Errorf("set %d times; want 2: refused, then set", n)
		}
		var menu []map[string]string
		if err := json.Unmarshal(w.api.Commands(), &menu); err != nil || len(menu) != 2 {
			t.Errorf("menu %v, %v; want the two with good names", menu, err)
		}
		w.run()
		w.settle(time.Minute)
		w.stop()
		if n := len(w.api.Calls("setMyCommands")); n != 2 {
			t.Errorf("set %d times after a restart; want no more", n)
		}
		w.a.commands = append(cmds, Command{"new", "a new session"})
		w.run()
		w.settle(time.Minute)
		w.stop()
		if n := len(w.api.Calls("setMyCommands")); n != 3 {
			t.Errorf("set %d times after a change; want 3", n)
		}
	})
}

// I13: the token is in no error, log line or document, whatever goes wrong.
func TestTokenIsNowhere(t *testing.T) {
	refuse := func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("proxy: %s is not to be had", r.URL)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{HTTPClient: &http.Client{Transport: roundTripper(refuse)}})
		w.run()
		w.settle(time.Minute)
		_, err := w.send(w.part(ann, "hello"))
		if err == nil {
			t.Fatal("sent")
		}
		w.stop()
		secret := telegramtest.Token[7:]
		for _, s := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%+v", errors.Unwrap(errors.Unwrap(err))), w.logs.String(), fmt.Sprintf("%+v", w.a.Status())} {
			if strings.Contains(s, secret) {
				t.Errorf("the token is in %q", s)
			}
		}
		if !strings.Contains(err.Error(), "is not to be had") {
			t.Errorf("error says %q", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// I13: what people write is in no log at info.
func TestNoTextInLogs(t *testing.T) {
	play(t, Options{}, func(w *world) {
		w.api.Say(ann, ann, "hunter2")
		w.api.Update(`{"message":{"message_id":"x","text":"hunter2"}}`)
		w.got()
		for line := range strings.Lines(w.logs.String()) {
			if strings.Contains(line, "hunter2") && !strings.Contains(line, "level=DEBUG") {
				t.Errorf("log line %q", line)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := Options{Token: func() string { return telegramtest.Token }, Door: &door{}, Docs: &docs{}, Save: (&inbox{}).save}
	for name, change := range map[string]func(*Options){
		"no door":   func(o *Options) { o.Door = nil },
		"no token":  func(o *Options) { o.Token = nil },
		"bad token": func(o *Options) { o.Token = func() string { return "secretsecret" } },
		"bad url":   func(o *Options) { o.APIURL = "localhost:1234" },
		"bad group": func(o *Options) { o.GroupSessions = "all" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Errorf("good: %v", err)
	}
}
