//go:build interop

package interop

import (
	"testing"
)

// shape wants the fields that the client's types say are always there, if only
// as null.
func shape(t *testing.T, what string, v value, fields ...string) {
	t.Helper()
	for _, f := range fields {
		if _, ok := v[f]; !ok {
			t.Errorf("%s has no %s: %v", what, f, v)
		}
	}
}

// What discord-api-types says every such object has.
func TestDiscordShapes(t *testing.T) {
	s, c := discord(t)
	login(t, c, "a")
	event := func(kind string) value {
		t.Helper()
		return c.event("raw", with(value{"t": kind})).at("d")
	}
	user := []string{"id", "username", "discriminator", "global_name", "avatar"}
	member := []string{"roles", "joined_at", "deaf", "mute", "flags"}
	message := []string{"id", "channel_id", "author", "content", "timestamp", "edited_timestamp", "tts", "mention_everyone", "mentions",
		"mention_roles", "attachments", "embeds", "pinned", "type", "components"}

	ready := event("READY")
	shape(t, "READY", ready, "v", "user", "guilds", "session_id", "resume_gateway_url", "application")
	shape(t, "the bot", ready.at("user"), user...)
	g := event("GUILD_CREATE")
	shape(t, "a guild", g, "id", "name", "owner_id", "roles", "emojis", "stickers", "features", "joined_at", "large", "member_count",
		"members", "channels", "threads", "voice_states", "presences", "stage_instances", "guild_scheduled_events")
	shape(t, "a channel", g.list("channels")[0], "id", "type", "name", "position")
	shape(t, "a member", g.list("members")[0], append(member, "user")...)
	for _, r := range g.list("roles") {
		shape(t, "a role", r, "id", "name", "color", "colors", "hoist", "position", "permissions", "managed", "mentionable", "flags")
		shape(t, "a role's colors", r.at("colors"), "primary_color", "secondary_color", "tertiary_color")
	}
	id := s.Say(general, bob, "hi")
	m := event("MESSAGE_CREATE")
	shape(t, "a message", m, append(message, "guild_id", "member")...)
	shape(t, "an author", m.at("author"), user...)
	shape(t, "an author's member", m.at("member"), member...)
	s.React(general, id, bob, "👍")
	r := event("MESSAGE_REACTION_ADD")
	shape(t, "a reaction", r, "user_id", "channel_id", "message_id", "emoji", "burst", "type", "member")
	shape(t, "who reacted", r.at("member"), append(member, "user")...)
	c.do("react", value{"channel": general, "message": id, "emoji": "👀"})
	path := "/channels/" + general + "/messages/" + id
	get := func(path string) value { return c.do("raw", value{"method": "get", "path": path}) }
	m = get(path)
	for _, r := range m.list("reactions") {
		shape(t, "a message's reaction", r, "count", "count_details", "me", "me_burst", "burst_colors", "emoji")
	}
	if again := get(path); again.str("timestamp") != m.str("timestamp") {
		t.Errorf("a message of %s is one of %s when asked for again", m.str("timestamp"), again.str("timestamp"))
	}
	s.Slash(general, bob, "ask", "x")
	i := event("INTERACTION_CREATE")
	shape(t, "an interaction", i, "id", "application_id", "type", "data", "guild_id", "channel", "channel_id", "member", "token", "version",
		"app_permissions", "locale", "entitlements", "authorizing_integration_owners", "attachment_size_limit")
	shape(t, "who used it", i.at("member"), append(member, "user", "permissions")...)
	dm := get("/channels/" + c.do("dm", value{"user": bob}).str("id"))
	shape(t, "a private channel", dm, "id", "type", "recipients")
	if name, ok := dm["name"]; ok && name != nil {
		t.Errorf("a private channel is called %q; it has no name", name)
	}
	th := c.do("raw", value{"method": "post", "path": path + "/threads", "body": value{"name": "task"}})
	shape(t, "a thread", th, "id", "type", "name", "parent_id", "owner_id", "thread_metadata")
	shape(t, "its metadata", th.at("thread_metadata"), "archived", "locked", "auto_archive_duration", "archive_timestamp")
}
