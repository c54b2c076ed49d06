//go:build interop

package interop

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
)

const (
	guild   = "900000000000000001"
	general = "900000000000000002"
	bob     = "900000000000000007"
)

// discord is the fake on a socket, and a discord.js client, a, that is not
// logged in.
func discord(t *testing.T) (*discordtest.Server, *client) {
	t.Helper()
	t.Parallel()
	c := start(t, "discord.mjs")
	s := join(t, c, "a", nil)
	return s, c
}

// join makes a fake and a client of that name for it in the process.
func join(t *testing.T, c *client, name string, set func(*discordtest.Server), more ...value) *discordtest.Server {
	t.Helper()
	s := discordtest.New()
	if set != nil {
		set(s)
	}
	s.AddUser(discordtest.User{ID: bob, Username: "bob", GlobalName: "Bob"})
	s.AddChannel(discordtest.Channel{ID: general, Guild: guild, Name: "general"})
	url, stop := s.Start()
	t.Cleanup(stop)
	with := value{"name": name, "url": url}
	for _, m := range more {
		for k, v := range m {
			with[k] = v
		}
	}
	c.do("open", with)
	return s
}

func login(t *testing.T, c *client, name string) {
	t.Helper()
	c.do("login", value{"client": name, "token": discordtest.Token})
	c.event("ready", with(value{"client": name}))
}

func eventually(t *testing.T, s *discordtest.Server, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !s.Until(ctx, cond) {
		t.Fatalf("never: %s", what)
	}
}

// apiError wants a DiscordAPIError with these.
func apiError(c *client, do string, with value, status, code int) value {
	c.t.Helper()
	e := c.refused(do, with)
	same(c.t, e, value{"name": "DiscordAPIError", "status": status, "code": code})
	return e
}

func TestDiscordLogin(t *testing.T) {
	s, c := discord(t)
	s.AddChannel(discordtest.Channel{ID: "900000000000000003", Guild: guild, Name: "topic", Type: discordtest.TypeThread, Parent: general, Owner: bob})
	same(t, c.refused("login", value{"token": "wrong.token.here"}), value{"name": "DiscordjsError", "code": "TokenInvalid"})
	login(t, c, "a")
	me := c.do("me", value{})
	same(t, me, value{"id": discordtest.BotID, "name": discordtest.Username, "bot": true, "app": discordtest.AppID, "guilds": []any{guild}})
	if n := len(me.list("channels")); n != 2 {
		t.Errorf("%d channels; want the text channel and the thread: %v", n, me)
	}
	ready := c.event("raw", with(value{"t": "READY"}))
	same(t, ready, value{"s": 1})
	same(t, ready.at("d"), value{"v": 10}) // the version it was opened with
	may := c.do("may", value{"channel": general})
	same(t, may, value{"send": true, "me": discordtest.BotID, "everyone": guild}) // GUILD_CREATE has roles and the bot's own member
	if len(c.waiting("error")) > 0 || len(c.waiting("shardError")) > 0 {
		t.Errorf("errors: %v %v", c.waiting("error"), c.waiting("shardError"))
	}
	// A budget of logins that is used up stops the client before it identifies.
	x := join(t, c, "none", nil)
	x.SetLogins(0)
	if e := c.refused("login", value{"client": "none", "token": discordtest.Token}); !strings.Contains(e.str("message"), "Not enough sessions remaining") {
		t.Errorf("login: %v", e)
	}
}

func TestDiscordMessages(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	id := s.Say(general, bob, "hello <@"+discordtest.BotID+"> 🚢")
	s.Say(general, bob, "two")
	got := c.event("message", nil)
	same(t, got, value{"id": id, "content": "hello <@" + discordtest.BotID + "> 🚢", "channel": general, "guild": guild, "type": 0,
		"mentions": []any{discordtest.BotID}, "edited": nil, "system": false})
	same(t, got.at("author"), value{"id": bob, "name": "bob", "bot": false, "tag": "bob"})
	same(t, c.event("message", nil), value{"content": "two"})

	m := c.do("send", value{"channel": general, "body": value{"content": "**hi**", "nonce": "n-1", "enforceNonce": true}})
	same(t, m, value{"content": "**hi**", "nonce": "n-1"})
	same(t, m.at("author"), value{"id": discordtest.BotID})
	same(t, c.event("message", with(value{"id": m["id"]})), value{"content": "**hi**", "nonce": "n-1"}) // MESSAGE_CREATE repeats the nonce
	again := c.do("send", value{"channel": general, "body": value{"content": "**hi**", "nonce": "n-1", "enforceNonce": true}})
	same(t, again, value{"id": m["id"]})
	r := c.do("reply", value{"channel": general, "message": id, "body": value{"content": "to you"}})
	same(t, r, value{"reference": id, "type": 19}) // a reply is of type 19
	c.event("message", with(value{"id": r["id"]}))

	e := c.do("edit", value{"channel": general, "message": m["id"], "body": value{"content": "edited"}})
	same(t, e, value{"content": "edited"})
	if !e.has("edited") { // PATCH answers with edited_timestamp and MESSAGE_UPDATE goes out
		t.Errorf("an edited message without the time of its edit: %v", e)
	}
	same(t, c.event("edited", with(value{"id": m["id"]})), value{"content": "edited"})
	before := c.do("fetch", value{"channel": general, "message": id})
	same(t, before, value{"content": "hello <@" + discordtest.BotID + "> 🚢"})

	c.do("react", value{"channel": general, "message": id, "emoji": "👀"})
	c.event("reaction", with(value{"emoji": "👀", "user": discordtest.BotID, "message": id})) // the gateway tells of its own too
	same(t, c.do("fetch", value{"channel": general, "message": id}), value{"reactions": []any{[]any{"👀", 1, true}}})
	c.do("unreact", value{"channel": general, "message": id, "emoji": "👀"})
	c.event("unreaction", with(value{"emoji": "👀", "user": discordtest.BotID, "message": id}))
	if m := c.do("raw", value{"method": "get", "path": "/channels/" + general + "/messages/" + id}); len(m.list("reactions")) != 0 {
		t.Errorf("the reaction stays: %v", m)
	}
	s.React(general, id, bob, "👍")
	c.event("reaction", with(value{"emoji": "👍", "user": bob, "message": id}))

	s.Edit(general, id, "changed")
	if e := c.event("edited", with(value{"id": id, "content": "changed"})); !e.has("edited") {
		t.Errorf("an edit without its time: %v", e)
	}
	two := s.Messages(general)[1].ID
	s.Delete(general, two)
	c.event("deleted", with(value{"id": two}))
	c.do("delete", value{"channel": general, "message": r["id"]})
	c.event("deleted", with(value{"id": r["id"]}))
	s.Delete(general, id, m.str("id"))
	c.event("bulk", nil)
	c.do("typing", value{"channel": general})

	var ids []string
	for _, text := range []string{"a", "b", "c", "d"} {
		ids = append(ids, s.Say(general, bob, text))
	}
	contents := func(q value) (out []string) {
		for _, m := range c.do("history", value{"channel": general, "query": q}).list("list") {
			out = append(out, m.str("content"))
		}
		slices.Sort(out)
		return out
	}
	for _, q := range []struct {
		query value
		want  []string
	}{
		{value{"limit": 2, "cache": false}, []string{"c", "d"}}, // the newest
		{value{"limit": 2, "after": ids[0], "cache": false}, []string{"b", "c"}},
		{value{"limit": 2, "before": ids[3], "cache": false}, []string{"b", "c"}},
		{value{"limit": 3, "around": ids[1], "cache": false}, []string{"a", "b", "c"}},
	} {
		if got := contents(q.query); !slices.Equal(got, q.want) {
			t.Errorf("history %v: %q; want %q", q.query, got, q.want)
		}
	}
	if p := s.Problems(); len(p) > 0 {
		t.Errorf("the fake complains: %q", p)
	}
}

func TestDiscordErrors(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	send := func(text string) value { return value{"channel": general, "body": value{"content": text}} }
	e := apiError(c, "send", send(strings.Repeat("x", 2001)), 400, 50035)
	if !strings.Contains(e.str("message"), "content[") { // it names the field and its error's code
		t.Errorf("message %q", e.str("message"))
	}
	apiError(c, "fetch", value{"channel": general, "message": "900000000000000099"}, 404, 10008)
	apiError(c, "place", value{"channel": "900000000000000098"}, 404, 10003)
	theirs := s.Say(general, bob, "mine")
	apiError(c, "edit", value{"channel": general, "message": theirs, "body": value{"content": "x"}}, 403, 50005)
	s.AddChannel(discordtest.Channel{ID: general, Guild: guild, Name: "general", NoSend: 50013, NoReactions: true})
	apiError(c, "send", send("x"), 403, 50013)
	apiError(c, "react", value{"channel": general, "message": theirs, "emoji": "👀"}, 403, 50013)
	s.AddChannel(discordtest.Channel{ID: general, Guild: guild, Name: "general"})
	apiError(c, "send", send("   "), 400, 50006)
	apiError(c, "reply", value{"channel": general, "message": theirs, "body": value{"content": "x", "components": []any{value{"type": 1, "components": []any{}}}}}, 400, 50035)
	s.Fault(discordtest.Fault{Method: "POST", Path: "messages", HTML: 502})
	same(t, c.refused("send", send("x")), value{"name": "HTTPError", "status": 502})
	before := len(s.Bot(general))
	s.Fault(discordtest.Fault{Method: "POST", Path: "messages", LoseReply: true})
	c.refused("send", send("lost"))
	if n := len(s.Bot(general)); n != before+1 {
		t.Errorf("%d messages more; want the one whose answer was lost", n-before)
	}
	row := value{"type": 1, "components": []any{
		value{"type": 2, "style": 2, "label": "Stop", "custom_id": "stop:1"}, value{"type": 2, "style": 5, "label": "Log", "url": "https://example.com/log"}}}
	same(t, c.do("send", value{"channel": general, "body": value{"content": "choose", "components": []any{row}}}), value{"buttons": []any{"stop:1", nil}})
}

// The client paces itself by the headers, so it never meets a 429; when it
// meets one all the same, it waits as long as it is told.
func TestDiscordRateLimits(t *testing.T) {
	t.Parallel()
	c := start(t, "discord.mjs")
	s := join(t, c, "a", func(s *discordtest.Server) { s.Limit, s.Window = 2, 700*time.Millisecond })
	login(t, c, "a")
	began := time.Now()
	c.do("burst", value{"channel": general, "texts": []string{"1", "2", "3", "4", "5"}})
	if d := time.Since(began); d < 1300*time.Millisecond {
		t.Errorf("5 messages took %v; 2 in 700 ms go", d)
	}
	var got []string
	for _, m := range s.Bot(general) {
		got = append(got, m.Content)
	}
	if want := "1 2 3 4 5"; strings.Join(got, " ") != want {
		t.Errorf("got %v; want %s", got, want)
	}
	if n := s.Invalid(); n != 0 {
		t.Errorf("%d answers 429: the headers did not hold the client back", n)
	}
	same(t, c.event("limited", nil), value{"global": false, "limit": 2})

	x := join(t, c, "b", nil)
	login(t, c, "b")
	for _, f := range []discordtest.Fault{
		{Method: "POST", Path: "messages", Status: http.StatusTooManyRequests, RetryAfter: 0.4},
		{Method: "POST", Path: "messages", Status: http.StatusTooManyRequests, RetryAfter: 1, Global: true},
		{Method: "POST", Path: "messages", Status: http.StatusTooManyRequests, RetryAfter: 0.4, Shared: true},
	} {
		x.Fault(f)
		began := time.Now()
		c.do("send", value{"client": "b", "channel": general, "body": value{"content": "after all"}})
		if d := time.Since(began).Seconds(); d < f.RetryAfter-0.05 {
			t.Errorf("the client waited %.2f s; retry_after is %v", d, f.RetryAfter)
		}
	}
	if n := x.Invalid(); n != 2 {
		t.Errorf("%d invalid requests; shared limits do not count", n)
	}

	// One that wants to be told gets a RateLimitError with what the answer says.
	y := join(t, c, "c", nil, value{"rest": value{"rejectOnRateLimit": []string{"/"}}})
	login(t, c, "c")
	y.Fault(discordtest.Fault{Method: "POST", Path: "messages", Status: http.StatusTooManyRequests, RetryAfter: 2, Shared: true})
	e := c.refused("send", value{"client": "c", "channel": general, "body": value{"content": "x"}})
	same(t, e, value{"name": "RateLimitError", "global": false, "scope": "shared", "retryAfter": 2000})
}

func TestDiscordDirect(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	dm := c.do("dm", value{"user": bob})
	same(t, dm, value{"type": discordtest.TypeDM, "recipient": bob}) // APIDMChannel.recipients
	if s.DM(bob) != dm.str("id") {
		t.Errorf("the fake has %q; the client %v", s.DM(bob), dm)
	}
	m := c.do("send", value{"channel": dm["id"], "body": value{"content": "in private"}})
	same(t, m, value{"channel": dm["id"], "guild": nil})
	s.Say(dm.str("id"), bob, "and back")
	same(t, c.event("message", with(value{"content": "and back"})), value{"guild": nil, "channel": dm["id"]})
	s.AddChannel(discordtest.Channel{ID: dm.str("id"), Type: discordtest.TypeDM, NoSend: 50007})
	apiError(c, "send", value{"channel": dm["id"], "body": value{"content": "x"}}, 403, 50007)
}

func TestDiscordFiles(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	at := s.AddFile("notes.txt", []byte("from bob"))
	s.Post(discordtest.Message{Channel: general, Author: discordtest.User{ID: bob}, Content: "see", Extra: map[string]any{"attachments": []any{
		map[string]any{"id": "1", "filename": "notes.txt", "size": 8, "url": at, "proxy_url": at, "content_type": "text/plain"}}}})
	files := c.event("message", nil).list("files")
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	same(t, files[0], value{"name": "notes.txt", "size": 8, "type": "text/plain", "url": at})
	same(t, c.do("download", value{"url": files[0].str("url")}), value{"status": 200, "text": "from bob"})
	// Uploads are multipart: payload_json and files[n].
	m := c.do("upload", value{"channel": general, "content": "the log", "name": "log.txt", "text": "lines"})
	files = m.list("files")
	if len(files) != 1 {
		t.Fatalf("uploaded, and told of as %v", m)
	}
	same(t, files[0], value{"name": "log.txt", "size": 5})
	same(t, c.do("download", value{"url": files[0].str("url")}), value{"status": 200, "text": "lines"})
	if p := s.Problems(); len(p) > 0 {
		t.Errorf("the fake complains: %q", p)
	}
}

func TestDiscordThreads(t *testing.T) {
	s, c := discord(t)
	forum := "900000000000000004"
	s.AddChannel(discordtest.Channel{ID: forum, Guild: guild, Name: "posts", Type: discordtest.TypeForum})
	login(t, c, "a")
	id := s.Say(general, bob, "a task")
	th := c.do("thread", value{"channel": general, "message": id, "name": "task"})
	same(t, th, value{"id": id, "parent": general, "name": "task", "type": discordtest.TypeThread, "archived": false, "locked": false})
	if th.num("archivedAt") == 0 || th.num("autoArchive") == 0 { // thread_metadata.archive_timestamp, auto_archive_duration
		t.Errorf("a thread without times: %v", th)
	}
	same(t, c.event("thread", nil), value{"id": id, "fresh": true})
	same(t, c.do("fetch", value{"channel": general, "message": id}), value{"thread": true}) // the starter has its thread, and flag 1<<5
	m := c.do("send", value{"channel": id, "body": value{"content": "in it"}})
	same(t, m, value{"channel": id})
	e := c.refused("thread", value{"channel": general, "message": id, "name": "again"}) // the client itself knows
	if e.str("code") != "MessageExistingThread" && e.num("code") != 160004 {
		t.Errorf("a second thread: %v", e)
	}
	same(t, c.do("archive", value{"channel": id, "on": true}), value{"archived": true})
	same(t, c.event("threadchanged", nil), value{"id": id, "archived": true}) // THREAD_UPDATE
	apiError(c, "edit", value{"channel": id, "message": m["id"], "body": value{"content": "x"}}, 400, 50083)
	apiError(c, "react", value{"channel": id, "message": m["id"], "emoji": "👀"}, 400, 50083)
	c.do("send", value{"channel": id, "body": value{"content": "awake"}}) // a send opens it
	same(t, c.event("threadchanged", nil), value{"id": id, "archived": false})
	t1, _ := s.Channel(id)
	t1.Archived, t1.Locked = true, true
	s.AddChannel(t1)
	apiError(c, "send", value{"channel": id, "body": value{"content": "x"}}, 400, 160005)

	post := c.do("thread", value{"channel": forum, "name": "a post", "body": value{"content": "its text"}})
	same(t, post, value{"parent": forum, "name": "a post"})
	same(t, c.do("fetch", value{"channel": post["id"], "message": post["id"]}), value{"content": "its text"})
	alone := c.do("thread", value{"channel": general, "name": "alone"})
	same(t, alone, value{"parent": general, "type": discordtest.TypeThread})
	theirs := s.Thread(general, s.Say(general, bob, "theirs"), bob, "of bob", "")
	same(t, c.event("thread", with(value{"id": theirs})), value{"name": "of bob"})
	s.Say(theirs, bob, "inside")
	same(t, c.event("message", with(value{"content": "inside"})), value{"channel": theirs})
}

func TestDiscordInteractions(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	list := c.do("commands", value{"list": []any{value{"name": "ask", "description": "ask it", "options": []any{
		value{"type": 3, "name": "text", "description": "what", "required": true}}}, value{"name": "Drop", "type": 3}}}).list("list")
	if len(list) != 2 { // APIApplicationCommand.id, application_id, version
		t.Errorf("commands %v", list)
	}
	for _, l := range list {
		if !l.has("id") || l.str("app") != discordtest.AppID {
			t.Errorf("a command without id or application: %v", l)
		}
	}

	// A slash command, deferred, then answered.
	token := s.Slash(general, bob, "ask", "why?")
	i := c.event("interaction", nil)
	same(t, i, value{"token": token, "type": 2, "command": "ask", "text": "why?", "user": bob, "member": bob, "channel": general, "guild": guild, "inGuild": true})
	c.do("defer", value{"token": token})
	if kind, _ := s.Answer(token); kind != 5 {
		t.Errorf("the fake has an answer of type %d", kind)
	}
	same(t, c.do("fetchAnswer", value{"token": token}), value{"content": "", "flags": 1 << 7, "type": 20}) // LOADING
	m := c.do("editAnswer", value{"token": token, "body": value{"content": "because"}})
	same(t, m, value{"content": "because", "type": 20})
	if m.num("flags")&(1<<7) != 0 {
		t.Errorf("it still loads: %v", m)
	}
	if _, text := s.Answer(token); text != "because" {
		t.Errorf("the fake has %q", text)
	}
	c.do("editAnswer", value{"token": token, "body": value{"content": "because!"}})
	f := c.do("followUp", value{"token": token, "body": value{"content": "and more"}})
	same(t, f, value{"content": "and more", "channel": general})
	same(t, c.do("fetchAnswer", value{"token": token}), value{"content": "because!"})
	c.do("deleteAnswer", value{"token": token})
	apiError(c, "fetchAnswer", value{"token": token}, 404, 10008)

	// What only one sees; what comes with the answer; what comes too late.
	token = s.Slash(general, bob, "ask", "")
	c.event("interaction", with(value{"token": token}))
	c.do("defer", value{"token": token, "private": true})
	c.do("editAnswer", value{"token": token, "body": value{"content": "psst"}})
	if p := s.Private(token); len(p) != 1 || p[0].Content != "psst" {
		t.Errorf("private %+v", p)
	}
	token = s.Slash(general, bob, "ask", "")
	c.event("interaction", with(value{"token": token}))
	same(t, c.do("deferShown", value{"token": token}), value{"content": "", "type": 20}) // with_response=true
	token = s.Slash(general, bob, "ask", "")
	c.event("interaction", with(value{"token": token}))
	s.Age(token, 4*time.Second)
	apiError(c, "answer", value{"token": token, "body": value{"content": "x"}}, 404, 10062)
	token = s.Slash(general, bob, "ask", "")
	c.event("interaction", with(value{"token": token}))
	c.do("answer", value{"token": token, "body": value{"content": "at once"}})
	s.Age(token, 16*time.Minute)
	e := c.refused("editAnswer", value{"token": token, "body": value{"content": "x"}})
	same(t, e, value{"name": "DiscordAPIError", "status": 401, "code": 50027})

	// A button and a menu below a message: the answer changes that message.
	row := value{"type": 1, "components": []any{value{"type": 2, "style": 2, "label": "Stop", "custom_id": "stop:1"}}}
	on := c.do("send", value{"channel": general, "body": value{"content": "choose", "components": []any{row}}}).str("id")
	token = s.Press(general, on, bob, "stop:1")
	same(t, c.event("interaction", with(value{"token": token})), value{"type": 3, "custom": "stop:1", "button": true, "on": on, "user": bob})
	c.do("deferUpdate", value{"token": token})
	same(t, c.do("editAnswer", value{"token": token, "body": value{"content": "chosen", "components": []any{}}}), value{"id": on, "content": "chosen", "buttons": []any{}})
	same(t, c.event("edited", with(value{"id": on})), value{"content": "chosen"})
	token = s.Press(general, on, bob, "stop:1")
	c.event("interaction", with(value{"token": token}))
	c.do("update", value{"token": token, "body": value{"content": "stopped"}})
	same(t, c.do("fetch", value{"channel": general, "message": on}), value{"content": "stopped"})
	same(t, c.do("fetchAnswer", value{"token": token}), value{"id": on, "content": "stopped"})
	token = s.Pick(general, on, bob, "menu", "drop:3")
	same(t, c.event("interaction", with(value{"token": token})), value{"select": true, "values": []any{"drop:3"}})
	c.do("deferUpdate", value{"token": token})
	target := s.Say(general, bob, "a message")
	token = s.Menu(general, bob, "Drop", target)
	same(t, c.event("interaction", with(value{"token": token})), value{"command": "Drop", "target": "a message"})
	c.do("answer", value{"token": token, "body": value{"content": "dropped"}})
	if kind, text := s.Answer(token); kind != 4 || text != "dropped" {
		t.Errorf("the fake has %d %q", kind, text)
	}
	// In a private chat there is a user and no member.
	dm := c.do("dm", value{"user": bob}).str("id")
	token = s.Slash(dm, bob, "ask", "")
	same(t, c.event("interaction", with(value{"token": token})), value{"user": bob, "member": nil, "guild": nil, "channel": dm})
	c.do("defer", value{"token": token})
}
