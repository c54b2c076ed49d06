package discord

import (
	"encoding/json"
	"strconv"
	"time"
)

// The parts of Discord's objects that matter here. The library's types refuse a
// whole message for one component they do not know.

type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
}

type member struct {
	User  *user    `json:"user"`
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
}

type channel struct {
	ID       string `json:"id"`
	Type     int    `json:"type"`
	Name     string `json:"name"`
	GuildID  string `json:"guild_id"`
	ParentID string `json:"parent_id"`
	OwnerID  string `json:"owner_id"`
	Last     string `json:"last_message_id"`
}

// Channel types: threads are 10 to 12, forums 15 and 16.
const (
	typeText       = 0
	typeDM         = 1
	typeNews       = 5
	typeThreadLow  = 10
	typeThreadHigh = 12
	typeForum      = 15
	typeMedia      = 16
)

func (c channel) thread() bool { return c.Type >= typeThreadLow && c.Type <= typeThreadHigh }
func (c channel) forum() bool  { return c.Type == typeForum || c.Type == typeMedia }

type attachment struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	URL         string `json:"url"`

	kind string   // of file, set when read
	in   *message // whose it is
}

// Message types that people write (D9).
const (
	typeDefault = 0
	typeReply   = 19
)

const (
	flagVoice  = 1 << 13
	refForward = 1
)

type message struct {
	ID          string       `json:"id"`
	ChannelID   string       `json:"channel_id"`
	GuildID     string       `json:"guild_id"`
	Type        int          `json:"type"`
	Flags       int          `json:"flags"`
	Content     string       `json:"content"`
	Author      *user        `json:"author"`
	Member      *member      `json:"member"`
	WebhookID   string       `json:"webhook_id"`
	Edited      string       `json:"edited_timestamp"`
	Mentions    []user       `json:"mentions"`
	Attachments []attachment `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll *struct {
		Question pollText `json:"question"`
		Answers  []struct {
			Media pollText `json:"poll_media"`
		} `json:"answers"`
	} `json:"poll"`
	Reference *struct {
		Type      int    `json:"type"`
		MessageID string `json:"message_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Asked      *struct {
		ID string `json:"id"`
	} `json:"interaction_metadata"` // of an answer to an interaction
	Snapshots []struct {
		Message message `json:"message"`
	} `json:"message_snapshots"`
	Embeds     []json.RawMessage `json:"embeds"`
	Components []json.RawMessage `json:"components"`
	Reactions  []struct {
		Me    bool `json:"me"`
		Emoji struct {
			Name string `json:"name"`
		} `json:"emoji"`
	} `json:"reactions"`
}

type pollText struct {
	Text string `json:"text"`
}

// Interaction types.
const (
	interactionCommand   = 2
	interactionComponent = 3
)

type interaction struct {
	ID        string   `json:"id"`
	AppID     string   `json:"application_id"`
	Type      int      `json:"type"`
	Token     string   `json:"token"`
	GuildID   string   `json:"guild_id"`
	ChannelID string   `json:"channel_id"`
	Channel   *channel `json:"channel"`
	Member    *member  `json:"member"`
	User      *user    `json:"user"`
	Message   *message `json:"message"`
	Data      struct {
		Name     string   `json:"name"`
		Type     int      `json:"type"` // of a command
		CustomID string   `json:"custom_id"`
		Values   []string `json:"values"` // chosen from a select menu
		Target   string   `json:"target_id"`
		Resolved struct {
			Messages map[string]*message `json:"messages"`
		} `json:"resolved"`
		Options []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

// id gives the data of a button, or of the choice from a menu.
func (i *interaction) id() string {
	if i.Data.CustomID == menuData && len(i.Data.Values) == 1 {
		return i.Data.Values[0]
	}
	return i.Data.CustomID
}

// Command types.
const (
	commandSlash   = 1
	commandMessage = 3
)

type reaction struct {
	UserID    string  `json:"user_id"`
	ChannelID string  `json:"channel_id"`
	MessageID string  `json:"message_id"`
	GuildID   string  `json:"guild_id"`
	AuthorID  string  `json:"message_author_id"`
	Member    *member `json:"member"`
	Emoji     struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"emoji"`
}

// discordEpoch is the first millisecond of Discord's ids.
const discordEpoch = 1420070400000

// idTime is when an id was made, by Discord's clock; zero if it is none.
func idTime(id string) time.Time {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n>>22 + discordEpoch)
}

func idAt(t time.Time) string {
	return strconv.FormatInt(max(t.UnixMilli()-discordEpoch, 0)<<22, 10)
}

// isID reports whether s is an id of Discord's.
func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// before compares ids by age.
func before(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
