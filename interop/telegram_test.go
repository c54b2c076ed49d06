//go:build interop

package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/telegramtest"
)

const (
	ann   = 7
	group = -1001234567890
)

// telegram is the fake on a socket, and grammY with one bot, a.
func telegram(t *testing.T) (*telegramtest.Server, *client, string) {
	t.Helper()
	t.Parallel()
	s := telegramtest.New()
	s.AddUser(telegramtest.User{ID: ann, FirstName: "Ann", Username: "ann"})
	s.AddChat(telegramtest.Chat{ID: ann})
	s.AddChat(telegramtest.Chat{ID: group, Title: "Harbour"})
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	t.Cleanup(hs.CloseClientConnections)
	c := start(t, "telegram.mjs")
	c.do("make", value{"name": "a", "url": hs.URL, "token": telegramtest.Token})
	return s, c, hs.URL
}

var allKinds = []string{"message", "edited_message", "callback_query", "message_reaction"}

func polling(t *testing.T, c *client) {
	t.Helper()
	c.do("start", value{"kinds": allKinds})
	c.event("polling", nil)
}

func until(t *testing.T, s *telegramtest.Server, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Wait(ctx, cond); err != nil {
		t.Fatal(err)
	}
}

// call is one method as grammY sends it.
func call(c *client, method string, payload value) value {
	c.t.Helper()
	return c.do("call", value{"method": method, "payload": payload})
}

// grammyError wants a GrammyError with these fields.
func grammyError(c *client, method string, payload value, code int, description string) value {
	c.t.Helper()
	e := c.refused("call", value{"method": method, "payload": payload})
	same(c.t, e, value{"name": "GrammyError", "ok": false, "error_code": code, "method": method})
	if !strings.HasPrefix(e.str("description"), description) {
		c.t.Errorf("%s: %q; want %q", method, e.str("description"), description)
	}
	return e
}

func TestTelegramMe(t *testing.T) {
	_, c, url := telegram(t)
	me := c.do("init", nil)
	same(t, me, value{"id": telegramtest.BotID, "is_bot": true, "username": telegramtest.Username})
	for _, f := range []string{"can_join_groups", "can_read_all_group_messages", "supports_inline_queries", "can_connect_to_business",
		"has_main_web_app", "has_topics_enabled", "allows_users_to_create_topics", "can_manage_bots", "supports_join_request_queries"} {
		if _, is := me[f].(bool); !is { // UserFromGetMe
			t.Errorf("getMe: %s is %v; grammY's types want true or false", f, me[f])
		}
	}
	c.do("make", value{"name": "wrong", "url": url, "token": "1:wrong"})
	e := c.refused("init", value{"bot": "wrong"})
	same(t, e, value{"name": "GrammyError", "error_code": 401, "description": "Unauthorized", "method": "getMe"})
	grammyError(c, "noSuchMethod", nil, 404, "Not Found")
}

// Updates come in order, whole, and are confirmed by the next poll alone: a
// bot that dies before gets them again.
func TestTelegramPolling(t *testing.T) {
	s, c, url := telegram(t)
	polling(t, c)
	first := s.Say(ann, ann, "/start 🚢 @cox_test_bot hello")
	u := c.event("update", nil)
	same(t, u, value{"kind": "message", "text": "/start 🚢 @cox_test_bot hello"})
	if got := u.list("entities"); len(got) != 2 || got[0].str("text") != "/start" || got[1].str("text") != "@cox_test_bot" {
		t.Errorf("entities %v: offsets are UTF-16", got)
	}
	body := u.at("body")
	same(t, body, value{"message_id": first})
	same(t, body.at("chat"), value{"id": ann, "type": "private", "first_name": "Ann"})
	same(t, body.at("from"), value{"id": ann, "is_bot": false, "first_name": "Ann", "username": "ann"})
	until(t, s, func() bool { n, offset := s.Pending(); return n == 0 && offset == u.num("id")+1 })

	c.do("hold", value{})
	s.Say(group, ann, "one")
	c.event("update", with(value{"text": "one"}))
	s.Say(group, ann, "two")
	s.Edit(group, ann, s.Say(group, ann, "three"), "third")
	if n, _ := s.Pending(); n != 4 {
		t.Errorf("%d updates are not confirmed; want 4", n)
	}
	// Another bot takes over without a word of confirmation.
	c.do("make", value{"name": "b", "url": url, "token": telegramtest.Token})
	c.do("start", value{"bot": "b", "kinds": allKinds})
	var got []string
	for range 4 {
		u := c.event("update", with(value{"bot": "b"}))
		got = append(got, u.str("kind")+" "+u.str("text"))
	}
	if want := []string{"message one", "message two", "message three", "edited_message third"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	until(t, s, func() bool { n, _ := s.Pending(); return n == 0 })
	c.do("stop", value{"bot": "b"})
	c.event("stopped", with(value{"bot": "b"}))
}

// The kinds asked for last stand until others are asked for; by default
// reactions are not among them.
func TestTelegramKinds(t *testing.T) {
	s, c, _ := telegram(t)
	s.React(ann, 1, ann, "👍")
	s.Say(ann, ann, "hello")
	c.do("start", value{}) // grammY asks for [], the default
	c.event("update", with(value{"text": "hello"}))
	if left := c.waiting("update"); len(left) != 0 {
		t.Errorf("came uncalled for: %v", left)
	}
}

func TestTelegramTwoPollers(t *testing.T) {
	s, c, url := telegram(t)
	polling(t, c)
	s.Say(ann, ann, "first")
	c.event("update", with(value{"text": "first"}))
	until(t, s, func() bool { n, _ := s.Pending(); return n == 0 }) // its next poll is out
	c.do("make", value{"name": "b", "url": url, "token": telegramtest.Token})
	c.do("start", value{"bot": "b", "kinds": allKinds})
	e := c.event("ended", with(value{"bot": "a"}))
	same(t, e, value{"name": "GrammyError", "error_code": 409, "method": "getUpdates",
		"description": "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"})
	s.Say(ann, ann, "who hears?")
	c.event("update", with(value{"bot": "b", "text": "who hears?"}))
}

func TestTelegramSend(t *testing.T) {
	s, c, _ := telegram(t)
	id := s.Say(group, ann, "question")
	text := "🚢 bold code"
	m := call(c, "sendMessage", value{"chat_id": group, "text": text, "disable_notification": true,
		"entities":         []any{value{"type": "bold", "offset": 3, "length": 4}, value{"type": "code", "offset": 8, "length": 4}},
		"reply_parameters": value{"message_id": id}})
	same(t, m, value{"text": text})
	same(t, m.at("chat"), value{"id": group, "type": "supergroup", "title": "Harbour"})
	same(t, m.at("from"), value{"id": telegramtest.BotID, "is_bot": true})
	if e := m.list("entities"); len(e) != 2 || e[0].str("type") != "bold" || e[1].num("offset") != 8 {
		t.Errorf("entities %v", e)
	}
	to := m.at("reply_to_message")
	same(t, to, value{"message_id": id, "text": "question"})
	same(t, to.at("from"), value{"id": ann})
	got, ok := s.Message(group, int(m.num("message_id")))
	if !ok || got.Text != text || got.ReplyTo != id || !got.Silent || len(got.Entities) != 2 {
		t.Errorf("the fake has %+v", got)
	}
	if m.num("date") == 0 {
		t.Error("no date")
	}
	grammyError(c, "sendMessage", value{"chat_id": group, "text": "x", "reply_parameters": value{"message_id": 999}}, 400, "Bad Request: message to be replied not found")
	m = call(c, "sendMessage", value{"chat_id": group, "text": "x", "reply_parameters": value{"message_id": 999, "allow_sending_without_reply": true}})
	if m.has("reply_to_message") {
		t.Errorf("a reply to nothing: %v", m)
	}
	call(c, "sendMessage", value{"chat_id": group, "text": strings.Repeat("x", 4096)})
	grammyError(c, "sendMessage", value{"chat_id": group, "text": strings.Repeat("🚢", 2049)}, 400, "Bad Request: message is too long")
	grammyError(c, "sendMessage", value{"chat_id": group, "text": " "}, 400, "Bad Request: message text is empty")
	grammyError(c, "sendMessage", value{"chat_id": 12345, "text": "x"}, 400, "Bad Request: chat not found")
	grammyError(c, "sendMessage", value{"chat_id": group, "text": "x", "entities": []any{value{"type": "bold", "offset": 0, "length": 9}}}, 400, "Bad Request: can't parse entities")
	for _, a := range []string{"typing", "upload_document", "record_voice"} {
		call(c, "sendChatAction", value{"chat_id": group, "action": a})
	}
	grammyError(c, "sendChatAction", value{"chat_id": group, "action": "sleeping"}, 400, "Bad Request: wrong parameter action in request")
	call(c, "deleteMessage", value{"chat_id": group, "message_id": m.num("message_id")})
	grammyError(c, "deleteMessage", value{"chat_id": group, "message_id": m.num("message_id")}, 400, "Bad Request: message to delete not found")
}

func TestTelegramEdit(t *testing.T) {
	s, c, _ := telegram(t)
	id := call(c, "sendMessage", value{"chat_id": ann, "text": "work"}).num("message_id")
	at := value{"chat_id": ann, "message_id": id, "text": "working", "entities": []any{value{"type": "italic", "offset": 0, "length": 7}}}
	m := call(c, "editMessageText", at)
	same(t, m, value{"message_id": id, "text": "working"})
	if m.num("edit_date") == 0 { // Message.edit_date
		t.Errorf("an edited message without edit_date: %v", m)
	}
	e := grammyError(c, "editMessageText", at, 400, "Bad Request: message is not modified")
	same(t, e.at("payload"), value{"chat_id": ann, "text": "working"})
	grammyError(c, "editMessageText", value{"chat_id": ann, "message_id": 999, "text": "x"}, 400, "Bad Request: message to edit not found")
	theirs := s.Say(ann, ann, "mine")
	grammyError(c, "editMessageText", value{"chat_id": ann, "message_id": theirs, "text": "x"}, 400, "Bad Request: message can't be edited")
	if got, _ := s.Message(ann, int(id)); got.Text != "working" || got.Edits != 1 || len(got.Entities) != 1 {
		t.Errorf("the fake has %+v", got)
	}
}

func TestTelegramButtons(t *testing.T) {
	s, c, _ := telegram(t)
	polling(t, c)
	m := c.do("sendButtons", value{"chat": ann}) // two of data, one of a link
	id := int(m.num("message_id"))
	if got, _ := s.Message(ann, id); len(got.Keyboard) != 2 || got.Keyboard[0][0].Data != "yes:1" {
		t.Errorf("the fake has %+v", got)
	}
	q := s.Press(ann, id, ann, "yes:1")
	u := c.event("update", with(value{"kind": "callback_query"}))
	same(t, u.at("body"), value{"id": q, "data": "yes:1"})
	same(t, u.at("body").at("message"), value{"message_id": id, "text": "May I?"})
	same(t, u.at("body").at("from"), value{"id": ann})
	if left := s.Unanswered(); len(left) != 1 {
		t.Errorf("%v wait for an answer; want the press", left)
	}
	same(t, call(c, "answerCallbackQuery", value{"callback_query_id": q, "text": "ok"}), value{"result": true})
	if left := s.Unanswered(); len(left) != 0 {
		t.Errorf("not answered: %v", left)
	}
	grammyError(c, "answerCallbackQuery", value{"callback_query_id": "gone"}, 400, "Bad Request: query is too old")
	call(c, "editMessageReplyMarkup", value{"chat_id": ann, "message_id": id, "reply_markup": value{"inline_keyboard": []any{}}})
	if got, _ := s.Message(ann, id); len(got.Keyboard) != 0 {
		t.Errorf("the keyboard stays: %+v", got)
	}
	s.Delete(ann, id)
	s.Press(ann, id, ann, "no:1") // what is inaccessible has date 0
	u = c.event("update", with(value{"kind": "callback_query"}))
	same(t, u.at("body").at("message"), value{"message_id": id, "date": 0})
	long := value{"inline_keyboard": []any{[]any{value{"text": "x", "callback_data": strings.Repeat("é", 33)}}}}
	grammyError(c, "sendMessage", value{"chat_id": ann, "text": "x", "reply_markup": long}, 400, "Bad Request: BUTTON_DATA_INVALID")
}

func TestTelegramReactions(t *testing.T) {
	s, c, _ := telegram(t)
	polling(t, c)
	id := s.Say(group, ann, "look")
	react := func(list ...any) value { return value{"chat_id": group, "message_id": id, "reaction": list} }
	eyes, thumb := value{"type": "emoji", "emoji": "👀"}, value{"type": "emoji", "emoji": "👍"}
	call(c, "setMessageReaction", react(eyes))
	call(c, "setMessageReaction", react(thumb))
	if m, _ := s.Message(group, id); m.Reaction != "👍" {
		t.Errorf("reaction %q", m.Reaction)
	}
	call(c, "setMessageReaction", react())
	if m, _ := s.Message(group, id); m.Reaction != "" {
		t.Errorf("reaction %q; want none", m.Reaction)
	}
	grammyError(c, "setMessageReaction", react(eyes, thumb), 400, "Bad Request: REACTIONS_TOO_MANY")
	grammyError(c, "setMessageReaction", react(value{"type": "emoji", "emoji": "🚢"}), 400, "Bad Request: REACTION_INVALID")
	s.React(group, id, ann, "🔥")
	u := c.event("update", with(value{"kind": "message_reaction"}))
	same(t, u.at("body"), value{"message_id": id})
	same(t, u.at("body").at("user"), value{"id": ann})
	if n := u.at("body").list("new_reaction"); len(n) != 1 || n[0].str("emoji") != "🔥" || n[0].str("type") != "emoji" {
		t.Errorf("reactions %v", n)
	}
}

func TestTelegramErrors(t *testing.T) {
	s, c, _ := telegram(t)
	send := value{"chat_id": group, "text": "x"}
	s.Fault(telegramtest.Fault{Method: "sendMessage", Code: 429, Description: "Too Many Requests: retry after 3", RetryAfter: 3})
	same(t, grammyError(c, "sendMessage", send, 429, "Too Many Requests").at("parameters"), value{"retry_after": 3})
	s.AddChat(telegramtest.Chat{ID: -5, MigratedTo: group})
	same(t, grammyError(c, "sendMessage", value{"chat_id": -5, "text": "x"}, 400, "Bad Request: group chat was upgraded").at("parameters"),
		value{"migrate_to_chat_id": group})
	s.AddChat(telegramtest.Chat{ID: 8, Blocked: true})
	e := grammyError(c, "sendMessage", value{"chat_id": 8, "text": "x"}, 403, "Forbidden: bot was blocked by the user")
	if len(e.at("parameters")) != 0 {
		t.Errorf("parameters %v", e)
	}
	s.Fault(telegramtest.Fault{Method: "sendMessage", HTML: 502})
	same(t, c.refused("call", value{"method": "sendMessage", "payload": send}), value{"name": "HttpError"})
	before := len(s.Messages(group))
	s.Fault(telegramtest.Fault{Method: "sendMessage", LoseReply: true})
	same(t, c.refused("call", value{"method": "sendMessage", "payload": send}), value{"name": "HttpError"})
	if n := len(s.Messages(group)); n != before+1 {
		t.Errorf("%d messages more; want the one whose answer was lost", n-before)
	}
	call(c, "sendMessage", send)

	// A poller waits as long as it is told, and goes on.
	s.Fault(telegramtest.Fault{Method: "getUpdates", Code: 429, Description: "Too Many Requests: retry after 1", RetryAfter: 1})
	s.Say(ann, ann, "still there?")
	began := time.Now()
	polling(t, c)
	c.event("update", with(value{"text": "still there?"}))
	if d := time.Since(began); d < time.Second {
		t.Errorf("the poller waited %v; retry_after is a second", d)
	}
}

// The limits' own words, which clients show people and some read.
func TestTelegramFlood(t *testing.T) {
	s, c, _ := telegram(t)
	s.Flood = true
	for range 4 {
		call(c, "sendMessage", value{"chat_id": ann, "text": "x"})
	}
	e := grammyError(c, "sendMessage", value{"chat_id": ann, "text": "x"}, 429, "Too Many Requests: retry after ")
	wait := e.at("parameters").num("retry_after")
	if want := "Too Many Requests: retry after 3"; wait != 3 || e.str("description") != want {
		t.Errorf("%v; want %q", e, want)
	}
}

func TestTelegramFiles(t *testing.T) {
	s, c, url := telegram(t)
	s.AddFile("doc1", []byte("the file"))
	v := c.do("download", value{"url": url, "token": telegramtest.Token, "file_id": "doc1"})
	same(t, v, value{"status": 200, "text": "the file"})
	same(t, v.at("file"), value{"file_id": "doc1", "file_size": 8})
	if !v.at("file").has("file_unique_id") {
		t.Error("no file_unique_id")
	}
	same(t, c.refused("download", value{"url": url, "token": telegramtest.Token, "file_id": "none"}), value{"error_code": 400})
	s.AddFile("big", make([]byte, 20<<20+1))
	grammyError(c, "getFile", value{"file_id": "big"}, 400, "Bad Request: file is too big")

	// Uploads are named parts that a field points at with attach://.
	caption := value{"type": "bold", "offset": 0, "length": 3}
	m := c.do("upload", value{"chat": ann, "method": "sendDocument", "name": "log.txt", "text": base64.StdEncoding.EncodeToString([]byte("lines")),
		"caption": "the log", "caption_entities": []any{caption}})
	same(t, m, value{"caption": "the log"})
	same(t, m.at("document"), value{"file_name": "log.txt", "file_size": 5})
	if m.has("text") || len(m.list("caption_entities")) != 1 {
		t.Errorf("a document is told of with text, or without its caption's entities: %v", m)
	}
	got, _ := s.Message(ann, int(m.num("message_id")))
	if got.Kind != "document" || got.FileName != "log.txt" || !bytes.Equal(got.Data, []byte("lines")) || got.Text != "the log" {
		t.Errorf("the fake has %+v", got)
	}
	v = c.do("download", value{"url": url, "token": telegramtest.Token, "file_id": m.at("document").str("file_id")})
	same(t, v, value{"status": 200, "text": "lines"})
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nrest"))
	m = c.do("upload", value{"chat": ann, "method": "sendPhoto", "name": "p.png", "text": png})
	if p := m.list("photo"); len(p) == 0 || p[0].str("file_id") == "" {
		t.Errorf("photo %v", m)
	}
	m = c.do("upload", value{"chat": ann, "method": "sendVoice", "name": "v.ogg", "text": base64.StdEncoding.EncodeToString([]byte("OggS"))})
	if !m.at("voice").has("file_id") {
		t.Errorf("voice %v", m)
	}
	e := c.refused("upload", value{"chat": ann, "method": "sendPhoto", "name": "p.png", "text": base64.StdEncoding.EncodeToString([]byte("no picture"))})
	same(t, e, value{"name": "GrammyError", "error_code": 400, "description": "Bad Request: IMAGE_PROCESS_FAILED"})
}

func TestTelegramTopicsAndDrafts(t *testing.T) {
	s, c, _ := telegram(t)
	s.AddChat(telegramtest.Chat{ID: -1002, Forum: true, Topics: map[int]bool{5: true, 6: false}, Manages: true})
	m := call(c, "sendMessage", value{"chat_id": -1002, "text": "x", "message_thread_id": 5})
	same(t, m, value{"message_thread_id": 5, "is_topic_message": true})
	same(t, m.at("chat"), value{"is_forum": true})
	grammyError(c, "sendMessage", value{"chat_id": -1002, "text": "x", "message_thread_id": 6}, 400, "Bad Request: TOPIC_CLOSED")
	grammyError(c, "sendMessage", value{"chat_id": -1002, "text": "x", "message_thread_id": 7}, 400, "Bad Request: message thread not found")
	call(c, "reopenForumTopic", value{"chat_id": -1002, "message_thread_id": 6})
	call(c, "sendMessage", value{"chat_id": -1002, "text": "x", "message_thread_id": 6})
	call(c, "sendMessageDraft", value{"chat_id": ann, "draft_id": 1, "text": "half an ans"})
	grammyError(c, "sendMessageDraft", value{"chat_id": ann, "draft_id": 0, "text": "x"}, 400, "Bad Request")
	grammyError(c, "sendMessageDraft", value{"chat_id": group, "draft_id": 1, "text": "x"}, 400, "Bad Request")
	call(c, "setMyCommands", value{"commands": []any{value{"command": "stop", "description": "stop it"}}})
	grammyError(c, "setMyCommands", value{"commands": []any{value{"command": "Stop!", "description": "x"}}}, 400, "Bad Request: BOT_COMMAND_INVALID")
	if !strings.Contains(string(s.Commands()), `"stop"`) {
		t.Errorf("commands %s", s.Commands())
	}
	m = call(c, "sendRichMessage", value{"chat_id": ann, "rich_message": value{"markdown": "**done**"}})
	if m.num("message_id") == 0 || m.has("text") || !m.has("rich_message") {
		t.Errorf("a rich message is told of as %v", m)
	}
}

// A webhook takes what is pushed; polls are refused while it stands; what it
// does not take stays.
func TestTelegramWebhook(t *testing.T) {
	s, c, _ := telegram(t)
	set := value{"url": "https://example.com/hook", "secret_token": "s3cret", "allowed_updates": []string{"message"}}
	call(c, "setWebhook", set)
	grammyError(c, "getUpdates", value{"allowed_updates": []string{"message"}}, 409, "Conflict: can't use getUpdates method while webhook is active")
	grammyError(c, "setWebhook", value{"url": "http://example.com", "allowed_updates": []string{"message"}}, 400, "Bad Request: bad webhook")
	same(t, call(c, "getWebhookInfo", nil), value{"url": "https://example.com/hook", "pending_update_count": 0, "has_custom_certificate": false})

	at, err := url.Parse(c.do("hook", value{"secret": "another"}).str("url"))
	if err != nil {
		t.Fatal(err)
	}
	push := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Push(ctx, proxy(at))
		}()
		return func() { cancel(); <-done }
	}
	s.Say(ann, ann, "hello hook")
	stop := push()
	until(t, s, func() bool { return call(c, "getWebhookInfo", nil).has("last_error_message") }) // grammY answered 401
	stop()
	if n, _ := s.Pending(); n != 1 || len(c.waiting("update")) != 0 {
		t.Errorf("%d updates wait; want the refused one", n)
	}
	at2, err := url.Parse(c.do("hook", value{"secret": "s3cret"}).str("url"))
	if err != nil {
		t.Fatal(err)
	}
	at = at2
	stop = push()
	defer stop()
	same(t, c.event("update", nil), value{"kind": "message", "text": "hello hook"})
	s.Say(ann, ann, "and more")
	c.event("update", with(value{"text": "and more"}))
	until(t, s, func() bool { n, _ := s.Pending(); return n == 0 })

	call(c, "setWebhook", value{"url": "", "allowed_updates": []string{"message"}}) // an empty URL takes it away
	if u := s.Webhook(); u != "" {
		t.Errorf("the webhook is %q", u)
	}
	call(c, "setWebhook", set)
	call(c, "deleteWebhook", value{})
	same(t, call(c, "getWebhookInfo", nil), value{"url": ""})
}

// proxy carries requests to another server.
func proxy(to *url.URL) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}
