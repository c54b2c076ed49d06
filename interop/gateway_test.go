//go:build interop

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"coxswain/discordtest"
)

// heard takes messages until one says last, and gives all their texts.
func heard(c *client, name, last string) (out []string) {
	c.t.Helper()
	for {
		text := c.event("message", with(value{"client": name})).str("content")
		out = append(out, text)
		if text == last {
			return out
		}
	}
}

// A cut connection is resumed: what was missed comes once, in order, then
// RESUMED, with one login in all.
func TestDiscordResume(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	s.Say(general, bob, "before")
	for _, how := range []struct {
		name string
		cut  func()
	}{
		{"cut", func() { s.Drop(0) }},
		{"op 7", func() { s.Op7() }},
		{"4000", func() { s.Drop(4000) }},
		{"4009", func() { s.Drop(4009) }},
		{"1001", func() { s.Drop(1001) }},
	} {
		how.cut()
		eventually(t, s, how.name+": the connection is gone", func() bool { return s.Connected() == 0 })
		s.Say(general, bob, how.name+" missed 1")
		s.Say(general, bob, how.name+" missed 2")
		r := c.event("resumed", nil)
		if r.num("replayed") < 2 {
			t.Errorf("%s: %d events were replayed; want 2 and RESUMED", how.name, r.num("replayed"))
		}
		s.Say(general, bob, how.name+" after")
		want := []string{how.name + " missed 1", how.name + " missed 2", how.name + " after"}
		got := heard(c, "a", how.name+" after")
		if got[0] == "before" {
			got = got[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: heard %q; want %q", how.name, got, want)
		}
	}
	var seq int64
	ready := 0
	for _, p := range c.waiting("raw") {
		if p.str("t") == "READY" {
			ready++
		}
		if p.num("s") != seq+1 {
			t.Errorf("event %d (%s) came after %d", p.num("s"), p.str("t"), seq)
		}
		seq = p.num("s")
	}
	if ready != 1 {
		t.Errorf("%d logins; want 1", ready)
	}
}

// A session that is no more is answered with Op 9; the client logs in anew, and
// what it missed does not come.
func TestDiscordInvalidSession(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	for _, how := range []struct {
		name string
		end  func()
	}{
		{"forgotten", func() {
			s.Next(discordtest.Script{RefuseResume: true})
			s.Drop(0)
		}},
		{"op 9", s.Op9},
		{"4007", func() { s.Drop(4007) }},
		{"1000", func() { s.Drop(1000) }},
	} {
		how.end()
		eventually(t, s, how.name+": the connection is gone", func() bool { return s.Connected() == 0 })
		s.Say(general, bob, how.name+" missed")
		c.event("ready", nil)
		s.Say(general, bob, how.name+" after")
		if got := heard(c, "a", how.name+" after"); !slices.Equal(got, []string{how.name + " after"}) {
			t.Errorf("%s: heard %q", how.name, got)
		}
	}
	if got := c.waiting("resumed"); len(got) != 0 {
		t.Errorf("resumed %v", got)
	}
}

// Close codes at the login: the fatal ones stop the client, the others do not.
func TestDiscordCloseCodes(t *testing.T) {
	t.Parallel()
	c := start(t, "discord.mjs")
	for code, words := range map[int]string{4004: "Authentication failed", 4010: "Invalid shard", 4011: "Sharding is required",
		4012: "Used an invalid API version", 4013: "Used invalid intents", 4014: "Used disallowed intents"} {
		name := fmt.Sprint("fatal", code)
		s := join(t, c, name, nil)
		s.Next(discordtest.Script{Close: code})
		if e := c.refused("login", value{"client": name, "token": discordtest.Token}); !strings.Contains(e.str("message"), words) {
			t.Errorf("%d: %v; want %q", code, e, words)
		}
	}
	s := join(t, c, "intent", func(s *discordtest.Server) { s.NoContent = true })
	if e := c.refused("login", value{"client": "intent", "token": discordtest.Token}); !strings.Contains(e.str("message"), "disallowed intents") {
		t.Errorf("message content, not granted: %v", e)
	}
	if s.Connected() != 0 {
		t.Error("connected all the same")
	}
	wait := map[string]func() (value, value){}
	for _, code := range []int{4000, 4001, 4002, 4003, 4005, 4007, 4008, 4009} {
		name := fmt.Sprint("other", code)
		s := join(t, c, name, nil)
		s.Next(discordtest.Script{Close: code})
		wait[name] = c.begin("login", value{"client": name, "token": discordtest.Token})
	}
	for name, w := range wait {
		if _, no := w(); no != nil {
			t.Errorf("%s: %v", name, no)
		}
		c.event("ready", with(value{"client": name}))
	}
}

// Without acks the client leaves the connection for dead and resumes.
func TestDiscordZombie(t *testing.T) {
	t.Parallel()
	c := start(t, "discord.mjs")
	s := join(t, c, "a", func(s *discordtest.Server) { s.Interval = 300 * time.Millisecond })
	login(t, c, "a")
	c.event("ack", nil) // heartbeats are answered
	c.event("ack", nil)
	if s.Dials() != 1 {
		t.Errorf("%d connections; want 1", s.Dials())
	}
	s.Mute(false)
	s.Say(general, bob, "into the void")
	c.event("zombie", nil)
	c.event("resumed", nil)
	if got := heard(c, "a", "into the void"); len(got) != 1 {
		t.Errorf("heard %q", got)
	}
	c.event("ack", nil)
	if s.Dials() != 2 {
		t.Errorf("%d connections; want 2", s.Dials())
	}
}

// Op 7 before READY, silence instead of it, events that come twice.
func TestDiscordOddConnections(t *testing.T) {
	t.Parallel()
	c := start(t, "discord.mjs")
	s := join(t, c, "a", nil)
	s.Next(discordtest.Script{Op7First: true})
	login(t, c, "a")
	if s.Dials() != 2 {
		t.Errorf("%d connections; want 2", s.Dials())
	}
	s.Say(general, bob, "one")
	heard(c, "a", "one")
	s.Next(discordtest.Script{Replay: 1})
	s.Drop(0)
	c.event("resumed", nil)
	s.Say(general, bob, "two")
	if got := heard(c, "a", "two"); !slices.Equal(got, []string{"two"}) { // discord.js knows the message
		t.Errorf("heard %q", got)
	}
	n := 0
	for _, p := range c.waiting("raw") {
		if p.str("t") == "MESSAGE_CREATE" && p.at("d").str("content") == "one" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("the event was sent %d times; want a replay too many", n)
	}
	// The client says good-bye: its session is over.
	c.do("destroy", value{})
	eventually(t, s, "the session ends", func() bool { return s.Connected() == 0 })
}

// Op 1 asks for a heartbeat out of turn.
func TestDiscordHeartbeatAsked(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	server, ok := any(s).(interface{ Op1() })
	if !ok {
		t.Fatal("the fake has no Op1: Discord may ask for a heartbeat at any time")
	}
	server.Op1()
	if ack := c.event("ack", nil); ack.num("ms") > 10_000 { // it counts from its own heartbeat
		t.Errorf("an ack, and no heartbeat before it: %v", ack)
	}
}

func TestDiscordGuilds(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	s.Outage(guild, true)
	c.event("outage", with(value{"id": guild}))
	s.Outage(guild, false)
	c.event("back", with(value{"id": guild}))
	s.Say(general, bob, "again")
	heard(c, "a", "again")
	s.Kick(guild, true)
	c.event("kicked", with(value{"id": guild}))
	s.Kick(guild, false)
	s.Say(general, bob, "let in again")
	heard(c, "a", "let in again")
	c.do("gatewaySend", value{"frame": value{"op": 3, "d": value{"since": nil, "activities": []any{}, "status": "online", "afk": false}}})
	s.Say(general, bob, "still here")
	heard(c, "a", "still here")
}
