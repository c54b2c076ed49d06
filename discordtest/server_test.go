package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*Server, string) {
	s := New()
	s.AddUser(User{ID: "7", Username: "ann"})
	s.AddChannel(Channel{ID: "1", Guild: "9"})
	url, stop := s.Start()
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections() })
	t.Cleanup(stop)
	return s, url
}

func do(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+Token)
	req.Header.Set("User-Agent", "DiscordBot (test, 1)")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var o map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&o)
	return resp.StatusCode, o
}

func TestSendIsStrict(t *testing.T) {
	s, url := start(t)
	rest := `"allowed_mentions":{"parse":[]},"nonce":"n%d","enforce_nonce":true`
	for i, c := range []struct {
		body         string
		status, code int
	}{
		{`"content":"x"`, 200, 0},
		{`"content":""`, 400, 50006},
		{`"content":"` + strings.Repeat("é", 2000) + `"`, 200, 0},
		{`"content":"` + strings.Repeat("é", 2001) + `"`, 400, 50035},
		{`"content":"x","flags":64`, 400, 50035},
		{`"content":"x","message_reference":{"message_id":"5"}`, 400, 50035},
		{`"content":"x","message_reference":{"message_id":"5","fail_if_not_exists":false}`, 200, 0},
		{`"content":"x","components":[{"type":1,"components":[]}]`, 400, 50035},
		{`"content":"x","components":[{"type":1,"components":[{"type":2,"style":2,"label":"a","custom_id":"b"}]}]`, 200, 0},
		{`"content":"x","components":[{"type":1,"components":[{"type":3,"custom_id":"b","options":[{"label":"a","value":"v"}]}]}]`, 200, 0},
		{`"content":"x","components":[{"type":1,"components":[{"type":3,"custom_id":"b","options":[]}]}]`, 400, 50035},
	} {
		status, o := do(t, "POST", url+"/api/v9/channels/1/messages", `{`+c.body+`,`+fmt.Sprintf(rest, i)+`}`)
		if code, _ := o["code"].(float64); status != c.status || int(code) != c.code {
			t.Errorf("%.80s: %d %v; want %d %d", c.body, status, o, c.status, c.code)
		}
	}
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems %q", p)
	}
	for _, body := range []string{
		`{"content":"x","nonce":"` + strings.Repeat("n", 26) + `","allowed_mentions":{"parse":[]}}`,
		`{"content":"x","enforce_nonce":true,"allowed_mentions":{"parse":[]}}`,
	} {
		if status, _ := do(t, "POST", url+"/api/v9/channels/1/messages", body); status != 400 {
			t.Errorf("%s: %d; want 400", body, status)
		}
	}
	do(t, "POST", url+"/api/v9/channels/1/messages", `{"content":"x","allowed_mentions":{"parse":null}}`)
	if p := s.Problems(); len(p) != 2 {
		t.Errorf("problems %q; want the open mentions and the missing nonce", p)
	}
	if status, _ := do(t, "POST", url+"/api/v9/channels/2/messages", `{}`); status != 404 {
		t.Errorf("unknown channel: %d", status)
	}
}

func TestNonceGivesTheSameMessage(t *testing.T) {
	s, url := start(t)
	body := `{"content":"%s","nonce":"n","enforce_nonce":true,"allowed_mentions":{"parse":[]}}`
	_, a := do(t, "POST", url+"/api/v9/channels/1/messages", fmt.Sprintf(body, "one"))
	_, b := do(t, "POST", url+"/api/v9/channels/1/messages", fmt.Sprintf(body, "two"))
	if a["id"] != b["id"] || len(s.Messages("1")) != 1 {
		t.Errorf("%v and %v", a["id"], b["id"])
	}
	s.ForgetNonces()
	do(t, "POST", url+"/api/v9/channels/1/messages", fmt.Sprintf(body, "two"))
	if len(s.Messages("1")) != 2 {
		t.Errorf("messages %+v", s.Messages("1"))
	}
}

// A client of the gateway.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func dial(t *testing.T, url string) *client {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(url, "http")+"/?v=9&encoding=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	c := &client{t, ws}
	if op, _, _ := c.read(); op != 10 {
		t.Fatalf("first op %d; want Hello", op)
	}
	return c
}

func (c *client) read() (op int, kind string, d map[string]any) {
	c.t.Helper()
	var f struct {
		Op int
		T  string
		D  json.RawMessage
	}
	if err := c.ws.ReadJSON(&f); err != nil {
		c.t.Fatal(err)
	}
	_ = json.Unmarshal(f.D, &d)
	return f.Op, f.T, d
}

func (c *client) write(format string, args ...any) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)); err != nil {
		c.t.Fatal(err)
	}
}

func TestGateway(t *testing.T) {
	s, url := start(t)
	c := dial(t, url)
	c.write(`{"op":2,"d":{"token":"Bot %s","intents":%d}}`, Token, intentMessages)
	_, kind, ready := c.read()
	if kind != "READY" {
		t.Fatalf("%s; want READY", kind)
	}
	if _, kind, _ = c.read(); kind != "GUILD_CREATE" {
		t.Errorf("%s; want GUILD_CREATE", kind)
	}
	c.write(`{"op":1,"d":2}`)
	if op, _, _ := c.read(); op != 11 {
		t.Errorf("op %d; want an ack", op)
	}
	// Without the intent, contents are those that mention the bot.
	s.Say("1", "7", "secret")
	s.Say("1", "7", "<@"+BotID+"> hello")
	if _, _, d := c.read(); d["content"] != "" {
		t.Errorf("content %q without the intent", d["content"])
	}
	if _, _, d := c.read(); d["content"] == "" {
		t.Error("a mention is blank")
	}
	c.ws.Close()
	if !s.Until(t.Context(), func() bool { return s.Connected() == 0 }) {
		t.Fatal("still connected")
	}
	s.Say("1", "7", "<@"+BotID+"> missed")
	c = dial(t, url)
	c.write(`{"op":6,"d":{"token":"Bot %s","session_id":"%s","seq":3}}`, Token, ready["session_id"])
	for _, want := range []string{"MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"} {
		if _, kind, _ := c.read(); kind != want {
			t.Errorf("%s; want %s", kind, want)
		}
	}
	c = dial(t, url)
	c.write(`{"op":6,"d":{"token":"Bot %s","session_id":"nobody","seq":3}}`, Token)
	if op, _, _ := c.read(); op != 9 {
		t.Errorf("op %d; want 9", op)
	}
}

func TestCloseCodes(t *testing.T) {
	s, url := start(t)
	s.NoContent = true
	good := fmt.Sprintf(`{"op":2,"d":{"token":"Bot %s","intents":0}}`, Token)
	for want, say := range map[int][]string{
		4001: {`{"op":99,"d":{}}`},
		4002: {`{"op"`},
		4003: {`{"op":3,"d":{}}`},
		4004: {`{"op":2,"d":{"token":"wrong","intents":0}}`},
		4005: {good, good},
		4008: slices.Repeat([]string{`{"op":1,"d":0}`}, 121),
		4014: {fmt.Sprintf(`{"op":2,"d":{"token":"Bot %s","intents":%d}}`, Token, intentContent)},
	} {
		c := dial(t, url)
		for _, line := range say {
			c.write("%s", line)
		}
		var err error
		for err == nil {
			_, _, err = c.ws.ReadMessage()
		}
		if !websocket.IsCloseError(err, want) {
			t.Errorf("%v; want %d", err, want)
		}
	}
}
