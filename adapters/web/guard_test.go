package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	goodBody = `{"id":"aaaaaaaa-1","text":"hello"}`
	postPath = "/api/sessions/chat-one/messages"
	readPath = "/api/sessions/chat-one"
)

// Every way of asking that must not reach the hub. Each row differs from a
// request that passes (the first) in one thing.
func TestRefused(t *testing.T) {
	tests := []struct {
		name   string
		method string
		path   string
		body   string
		head   []string
		want   int
	}{
		{"post", "POST", postPath, goodBody, nil, 200},
		{"get", "GET", readPath, "", nil, 200},
		{"localhost", "GET", readPath, "", []string{"Host", "localhost:8080"}, 200},
		{"localhost in capitals", "GET", readPath, "", []string{"Host", "LOCALHOST:8080"}, 200},
		{"v6 loopback", "GET", readPath, "", []string{"Host", "[::1]:8080"}, 200},
		{"v6 loopback without port", "GET", readPath, "", []string{"Host", "[::1]"}, 200},
		{"another loopback address", "GET", readPath, "", []string{"Host", "127.9.9.9"}, 200},
		{"no Sec-Fetch-Site (curl)", "GET", readPath, "", []string{"Sec-Fetch-Site", ""}, 200},
		{"typed address", "GET", readPath, "", []string{"Sec-Fetch-Site", "none"}, 200},
		{"page from a link", "GET", "/", "", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{"JSON with charset", "POST", postPath, goodBody, []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"post without Origin (curl)", "POST", postPath, goodBody, []string{"Origin", ""}, 200},

		{"rebound name", "GET", readPath, "", []string{"Host", "evil.example:8080"}, 403},
		{"rebound name, page", "GET", "/", "", []string{"Host", "evil.example"}, 403},
		{"name that begins like loopback", "GET", readPath, "", []string{"Host", "127.0.0.1.evil.example"}, 403},
		{"name that ends in localhost", "GET", readPath, "", []string{"Host", "evil.localhost"}, 403},
		{"localhost with a dot", "GET", readPath, "", []string{"Host", "localhost."}, 403},
		{"other address", "GET", readPath, "", []string{"Host", "192.168.1.5:8080"}, 403},
		{"any address", "GET", readPath, "", []string{"Host", "0.0.0.0:8080"}, 403},
		{"short loopback", "GET", readPath, "", []string{"Host", "127.1"}, 403},
		{"user info in Host", "GET", readPath, "", []string{"Host", "127.0.0.1@evil.example"}, 403},
		{"foreign origin", "POST", postPath, goodBody, []string{"Origin", "http://evil.example"}, 403},
		{"foreign port", "POST", postPath, goodBody, []string{"Origin", "http://127.0.0.1:9999"}, 403},
		{"null origin", "POST", postPath, goodBody, []string{"Origin", "null"}, 403},
		{"foreign origin reads", "GET", readPath, "", []string{"Origin", "http://127.0.0.1:9999"}, 403},
		{"foreign origin, page", "GET", "/", "", []string{"Origin", "http://evil.example"}, 403},
		{"extension origin", "POST", postPath, goodBody, []string{"Origin", "chrome-extension://127.0.0.1:8080"}, 403},
		{"cross-site", "POST", postPath, goodBody, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"same-site is another port", "POST", postPath, goodBody, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"cross-site reads", "GET", readPath, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"same-site reads events", "GET", readPath + "/events", "", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"cross-site lists", "GET", "/api/sessions", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"cross-site posts to the page", "POST", "/", goodBody, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"form", "POST", postPath, "id=aaaaaaaa-1&text=hello", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"plain text", "POST", postPath, goodBody, []string{"Content-Type", "text/plain"}, 415},
		{"no type", "POST", postPath, goodBody, []string{"Content-Type", ""}, 415},
		{"JSON look-alike", "POST", postPath, goodBody, []string{"Content-Type", "text/plain; application/json"}, 415},
		{"too big", "POST", postPath, `{"id":"aaaaaaaa-1","text":"` + strings.Repeat("x", bodyMost) + `"}`, nil, 413},
		{"not JSON", "POST", postPath, "hello", nil, 400},
		{"empty", "POST", postPath, "", nil, 400},
		{"two documents", "POST", postPath, goodBody + goodBody, nil, 400},
		{"unknown field", "POST", postPath, `{"id":"aaaaaaaa-1","text":"hello","from":"root"}`, nil, 400},
		{"no id", "POST", postPath, `{"text":"hello"}`, nil, 400},
		{"short id", "POST", postPath, `{"id":"a","text":"hello"}`, nil, 400},
		{"id with a colon", "POST", postPath, `{"id":"aaaaaaaa:1","text":"hello"}`, nil, 400},
		{"bad reply", "POST", postPath, `{"id":"aaaaaaaa-1","text":"hello","reply_to":"../x"}`, nil, 400},
		{"no text", "POST", postPath, `{"id":"aaaaaaaa-1","text":" \n"}`, nil, 400},
		{"short chat", "GET", "/api/sessions/abc", "", nil, 400},
		{"chat in capitals", "GET", "/api/sessions/CHAT-ONE", "", nil, 400},
		{"chat with a colon", "GET", "/api/sessions/chat-one:x", "", nil, 400},
		{"chat too long", "GET", "/api/sessions/" + strings.Repeat("a", 41), "", nil, 400},
		{"put", "PUT", readPath, goodBody, nil, 405},
		{"preflight", "OPTIONS", postPath, "", []string{"Access-Control-Request-Method", "POST", "Sec-Fetch-Site", "cross-site"}, 403},
		{"unknown path", "GET", "/api/none", "", nil, 404},
		{"embedded folder", "GET", "/page/app.js", "", nil, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hub := newFakeHub()
			a := newTestAdapter(t, hub, "")
			w := ask(a, tt.method, tt.path, tt.body, tt.head...)
			if w.Code != tt.want {
				t.Errorf("got %d %s; want %d", w.Code, w.Body, tt.want)
			}
			if n := len(hub.messages()); tt.want != 200 && n != 0 {
				t.Errorf("a refused request delivered %d messages", n)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("CORS header; want none")
			}
			if got := w.Header().Get("Content-Security-Policy"); got != policy {
				t.Errorf("CSP %q; want %q", got, policy)
			}
			for k, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
				if got := w.Header().Get(k); got != want {
					t.Errorf("%s: got %q; want %q", k, got, want)
				}
			}
		})
	}
}

// I10: the authoriser has the last word, and no answer of it means no.
func TestNotIdentified(t *testing.T) {
	for _, path := range []string{readPath, "/api/sessions", readPath + "/events"} {
		hub := newFakeHub()
		hub.refuse = true
		if w := ask(newTestAdapter(t, hub, ""), "GET", path, ""); w.Code != http.StatusForbidden {
			t.Errorf("%s: got %d; want 403", path, w.Code)
		}
		hub.refuse, hub.fault = false, errStore
		w := ask(newTestAdapter(t, hub, ""), "GET", path, "")
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), errStore.Error()) {
			t.Errorf("%s: got %d %s; want 503 without the inner error (I13)", path, w.Code, w.Body)
		}
	}
	hub := newFakeHub()
	hub.refuse = true
	if w := ask(newTestAdapter(t, hub, ""), "POST", postPath, goodBody); w.Code != 403 || len(hub.messages()) != 0 {
		t.Errorf("post: got %d and %d delivered; want 403 and none", w.Code, len(hub.messages()))
	}
}

func TestToken(t *testing.T) {
	now := time.Now()
	other := newTestAdapter(t, newFakeHub(), strings.Repeat("y", 40))
	self := newTestAdapter(t, newFakeHub(), testToken)
	tests := []struct {
		name string
		head []string
		want int
	}{
		{"bearer", []string{"Authorization", "Bearer " + testToken}, 200},
		{"bearer in small letters", []string{"Authorization", "bearer " + testToken}, 200},
		{"bearer under any name", []string{"Authorization", "Bearer " + testToken, "Host", "chat.example"}, 200},
		{"cookie", []string{"Cookie", cookieName + "=" + self.cookie(now)}, 200},
		{"none", nil, 401},
		{"none under another name", []string{"Host", "chat.example"}, 401},
		{"wrong", []string{"Authorization", "Bearer " + strings.Repeat("x", 38)}, 401},
		{"prefix", []string{"Authorization", "Bearer " + testToken[:37]}, 401},
		{"longer", []string{"Authorization", "Bearer " + testToken + "x"}, 401},
		{"empty", []string{"Authorization", "Bearer "}, 401},
		{"basic", []string{"Authorization", "Basic " + testToken}, 401},
		{"wrong bearer beside a good cookie", []string{"Authorization", "Bearer x", "Cookie", cookieName + "=" + self.cookie(now)}, 401},
		{"cookie of another token", []string{"Cookie", cookieName + "=" + other.cookie(now)}, 401},
		{"cookie with the token", []string{"Cookie", cookieName + "=" + testToken}, 401},
		{"old cookie", []string{"Cookie", cookieName + "=" + self.cookie(now.Add(-31*24*time.Hour))}, 401},
		{"cookie from the future", []string{"Cookie", cookieName + "=" + self.cookie(now.Add(time.Hour))}, 401},
		{"good cookie, foreign page", []string{"Cookie", cookieName + "=" + self.cookie(now), "Sec-Fetch-Site", "cross-site"}, 403},
		{"bearer, foreign origin", []string{"Authorization", "Bearer " + testToken, "Origin", "http://evil.example"}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{readPath, "/api/sessions", "/api/commands"} {
				if w := ask(self, "GET", path, "", tt.head...); w.Code != tt.want {
					t.Errorf("GET %s: got %d %s; want %d", path, w.Code, w.Body, tt.want)
				}
			}
			head := append([]string{"Origin", ""}, tt.head...)
			if w := ask(self, "POST", postPath, goodBody, head...); w.Code != tt.want {
				t.Errorf("POST: got %d %s; want %d", w.Code, w.Body, tt.want)
			}
		})
	}
	if w := ask(self, "GET", "/", "", "Host", "chat.example"); w.Code != 200 || strings.Contains(w.Body.String(), testToken) {
		t.Errorf("page: got %d; want 200 without the token in it", w.Code)
	}
}

func TestLogin(t *testing.T) {
	a := newTestAdapter(t, newFakeHub(), testToken)
	w := ask(a, "POST", loginPath, `{"token":"`+testToken+`"}`)
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 {
		t.Fatalf("got %d and %d cookies; want 200 and one", w.Code, len(cookies))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/api" || c.Secure {
		t.Errorf("got %+v; want HttpOnly, SameSite=Strict, Path=/api and over plain http not Secure", c)
	}
	if strings.Contains(c.Value, testToken) {
		t.Error("the cookie holds the token itself")
	}
	if w := ask(a, "GET", readPath, "", "Cookie", c.Name+"="+c.Value); w.Code != 200 {
		t.Errorf("with the cookie: got %d; want 200", w.Code)
	}
	w = ask(a, "POST", loginPath, `{"token":"`+testToken+`"}`, "X-Forwarded-Proto", "https")
	if !w.Result().Cookies()[0].Secure {
		t.Error("behind TLS: the cookie is not Secure")
	}
	w = ask(a, "POST", "/api/logout", `{}`, "Cookie", c.Name+"="+c.Value)
	if cs := w.Result().Cookies(); w.Code != 200 || len(cs) != 1 || cs[0].MaxAge >= 0 {
		t.Errorf("logout: got %d %v; want an expired cookie", w.Code, cs)
	}
	for i := range triesMost + 1 {
		want := http.StatusUnauthorized
		if i == triesMost {
			want = http.StatusTooManyRequests
		}
		w := ask(a, "POST", loginPath, `{"token":"guess"}`)
		if w.Code != want || len(w.Result().Cookies()) != 0 {
			t.Fatalf("guess %d: got %d; want %d and no cookie", i+1, w.Code, want)
		}
	}
	if w := ask(a, "GET", readPath, "", "Authorization", "Bearer "+testToken); w.Code != 200 {
		t.Errorf("bearer while guesses are refused: got %d; want 200", w.Code)
	}
	if w := ask(a, "POST", loginPath, `{"token":"`+testToken+`"}`, "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("login by a foreign page: got %d; want 403", w.Code)
	}
}

func TestNewRefuses(t *testing.T) {
	hub := newFakeHub()
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"no hub", Options{Listen: "127.0.0.1:0"}, wordsNoHub},
		{"no listen", Options{Hub: hub}, wordsNoListen},
		{"no port", Options{Hub: hub, Listen: "127.0.0.1"}, wordsBadListen("127.0.0.1")},
		{"all interfaces", Options{Hub: hub, Listen: ":8080"}, wordsNeedToken},
		{"any address", Options{Hub: hub, Listen: "0.0.0.0:8080"}, wordsNeedToken},
		{"a name", Options{Hub: hub, Listen: "chat.example:8080"}, wordsNeedToken},
		{"short token", Options{Hub: hub, Listen: ":8080", Token: "secret"}, wordsShortToken},
		{"short token on loopback", Options{Hub: hub, Listen: "localhost:8080", Token: "secret"}, wordsShortToken},
	} {
		if _, err := New(tt.o); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v; want %s", tt.name, err, tt.want)
		}
	}
	for _, o := range []Options{{Listen: "localhost:0"}, {Listen: "[::1]:0"}, {Listen: ":0", Token: testToken}} {
		o.Hub = hub
		if _, err := New(o); err != nil {
			t.Errorf("%s: %v; want none", o.Listen, err)
		}
	}
}
