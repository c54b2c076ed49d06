package discordtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// identify logs a client in and reads up to the first guild.
func identify(t *testing.T, url string, intents int) (c *client, session any) {
	t.Helper()
	c = dial(t, url)
	c.write(`{"op":2,"d":{"token":"Bot %s","intents":%d}}`, Token, intents)
	_, _, ready := c.read()
	c.read()
	return c, ready["session_id"]
}

func TestLimitsAndHeaders(t *testing.T) {
	s, url := start(t)
	s.Limit, s.Window = 2, 10*time.Second
	post := func(n int) *http.Response {
		body := fmt.Sprintf(`{"content":"x","nonce":"n%d","enforce_nonce":true,"allowed_mentions":{"parse":[]}}`, n)
		req, _ := http.NewRequestWithContext(t.Context(), "POST", url+"/api/v9/channels/1/messages", strings.NewReader(body))
		req.Header.Set("Authorization", "Bot "+Token)
		req.Header.Set("User-Agent", "DiscordBot (test, 1)")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	for i, want := range []struct {
		status int
		left   string
	}{{200, "1"}, {200, "0"}, {429, "0"}} {
		r := post(i)
		if got := r.Header.Get("X-RateLimit-Remaining"); r.StatusCode != want.status || got != want.left || r.Header.Get("X-RateLimit-Reset-After") == "" {
			t.Errorf("send %d: %d, %q left; want %+v", i, r.StatusCode, got, want)
		}
	}
	if len(s.Messages("1")) != 2 || s.Invalid() != 1 {
		t.Errorf("%d messages, %d invalid; want 2 and 1", len(s.Messages("1")), s.Invalid())
	}
	if status, o := do(t, "GET", url+"/api/v10/gateway/bot", ""); status != 200 || o["session_start_limit"] == nil {
		t.Errorf("gateway/bot: %d %v", status, o)
	}
}

func TestInteractionClock(t *testing.T) {
	s, url := start(t)
	act := func(token, body string) int {
		s.mu.Lock()
		id := s.asked[token].id
		s.mu.Unlock()
		status, _ := do(t, "POST", url+"/api/v9/interactions/"+id+"/"+token+"/callback", body)
		return status
	}
	hook := url + "/api/v9/webhooks/" + AppID + "/"
	answer := `{"content":"x","allowed_mentions":{"parse":[]}}`
	a := s.Slash("1", "7", "status", "")
	if status := act(a, `{"type":5,"data":{"flags":64}}`); status != 204 {
		t.Errorf("ack: %d", status)
	}
	if status, _ := do(t, "PATCH", hook+a+"/messages/@original", answer); status != 200 || len(s.Private(a)) != 1 || len(s.Messages("1")) != 0 {
		t.Errorf("answer: %d, private %v", status, s.Private(a))
	}
	s.Age(a, 16*time.Minute)
	if status, o := do(t, "POST", hook+a, answer); status != 401 || o["code"] != 50027.0 {
		t.Errorf("after 16 min: %d %v", status, o)
	}
	late := s.Slash("1", "7", "status", "")
	s.Age(late, 4*time.Second)
	if status := act(late, `{"type":5}`); status != 404 {
		t.Errorf("after 4 s: %d", status)
	}
	if status, _ := do(t, "PATCH", hook+late+"/messages/@original", answer); status != 404 {
		t.Errorf("never acked: %d", status)
	}
	b := s.Slash("1", "7", "stop", "")
	act(b, `{"type":5}`)
	if status, _ := do(t, "DELETE", hook+b+"/messages/@original", ""); status != 204 || !s.Dismissed(b) {
		t.Errorf("dismiss: %d", status)
	}
	// The first message behind an ack is the answer that is thought about, seen by
	// whom the ack said; only once that is gone it may be seen by others.
	alone := `{"content":"alone","flags":64,"allowed_mentions":{"parse":[]}}`
	c := s.Slash("1", "7", "stop", "")
	act(c, `{"type":5}`)
	do(t, "POST", hook+c, alone)
	if all := s.Messages("1"); len(all) != 1 || len(s.Private(c)) != 0 {
		t.Errorf("all see %v, one sees %v; want it seen as the ack said", all, s.Private(c))
	}
	do(t, "POST", hook+b, alone)
	if p := s.Private(b); len(p) != 1 || len(s.Messages("1")) != 1 {
		t.Errorf("one sees %v", p)
	}
}

func TestThreads(t *testing.T) {
	s, url := start(t)
	s.AddChannel(Channel{ID: "2", Guild: "9", Type: TypeForum})
	id := s.Say("1", "7", "a task")
	path := url + "/api/v9/channels/1/messages/" + id + "/threads"
	if status, o := do(t, "POST", path, `{"name":"a task"}`); status != 200 || o["id"] != id || o["parent_id"] != "1" {
		t.Errorf("%d %v", status, o)
	}
	if status, o := do(t, "POST", path, `{"name":"again"}`); status != 400 || o["code"] != 160004.0 {
		t.Errorf("twice: %d %v", status, o)
	}
	if status, o := do(t, "POST", url+"/api/v9/channels/2/messages", `{"content":"x","allowed_mentions":{"parse":[]}}`); status != 400 {
		t.Errorf("into a forum: %d %v", status, o)
	}
	status, o := do(t, "POST", url+"/api/v9/channels/2/threads", `{"name":"p","message":{"content":"x","allowed_mentions":{"parse":[]}}}`)
	if post, _ := o["id"].(string); status != 200 || len(s.Messages(post)) != 1 || s.Messages(post)[0].ID != post {
		t.Errorf("post: %d %v", status, o)
	}
}

// A zombie's session can be resumed, and what it missed comes then; a client
// that says good-bye has none.
func TestZombieAndGoodbye(t *testing.T) {
	s, url := start(t)
	_, session := identify(t, url, intentMessages|intentReactions)
	s.Mute(false)
	m := s.Say("1", "7", "unheard")
	s.React("1", m, "7", "👍")
	c := dial(t, url)
	c.write(`{"op":6,"d":{"token":"Bot %s","session_id":"%s","seq":2}}`, Token, session)
	for _, want := range []string{"MESSAGE_CREATE", "MESSAGE_REACTION_ADD", "RESUMED"} {
		if _, kind, _ := c.read(); kind != want {
			t.Errorf("%s; want %s", kind, want)
		}
	}
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	if !s.Until(t.Context(), func() bool { return s.Connected() == 0 }) {
		t.Fatal("still connected")
	}
	c = dial(t, url)
	c.write(`{"op":6,"d":{"token":"Bot %s","session_id":"%s","seq":2}}`, Token, session)
	if op, _, _ := c.read(); op != 9 {
		t.Errorf("op %d after a good-bye; want 9", op)
	}
}

func TestGuildsComeAndGo(t *testing.T) {
	s, url := start(t)
	c, _ := identify(t, url, intentMessages)
	s.Outage("9", true)
	s.Say("1", "7", "unheard")
	if status, _ := do(t, "GET", url+"/api/v9/channels/1", ""); status != 503 {
		t.Errorf("out: %d", status)
	}
	s.Outage("9", false)
	s.Kick("9", true)
	if status, _ := do(t, "GET", url+"/api/v9/channels/1", ""); status != 403 {
		t.Errorf("kicked: %d", status)
	}
	s.Kick("9", false)
	for _, want := range []struct {
		kind string
		out  bool
	}{{"GUILD_DELETE", true}, {"GUILD_CREATE", false}, {"GUILD_DELETE", false}, {"GUILD_CREATE", false}} {
		if _, kind, d := c.read(); kind != want.kind || (d["unavailable"] == true) != want.out {
			t.Errorf("%s %v; want %+v", kind, d["unavailable"], want)
		}
	}
}
