package telegram

import (
	"encoding/json"
	"slices"

	"github.com/go-telegram/bot/models"
)

// The parts of updates that are read here. Values the API may add to (origins,
// member states, kinds of media) stay text or are left out, so that a new one
// cannot make an update unreadable; the library's own update type refuses them.

type update struct {
	ID       int64     `json:"update_id"`
	Message  *message  `json:"message"`
	Edited   *message  `json:"edited_message"`
	Post     *message  `json:"channel_post"` // it may have no From
	PostEdit *message  `json:"edited_channel_post"`
	Callback *callback `json:"callback_query"`
	Member   *member   `json:"my_chat_member"`
	Stopped  *stopped  `json:"stopped_message_generation"`
	Reaction *reacted  `json:"message_reaction"`
}

// said gives the new message of an update, nil if there is none.
func (u *update) said() *message {
	if u.Message != nil {
		return u.Message
	}
	return u.Post
}

// edit gives the message that was edited, nil if none was.
func (u *update) edit() *message {
	if u.Edited != nil {
		return u.Edited
	}
	return u.PostEdit
}

// chat gives the chat an update belongs to, 0 if to none.
func (u *update) chat() int64 {
	switch {
	case u.said() != nil:
		return u.said().Chat.ID
	case u.edit() != nil:
		return u.edit().Chat.ID
	case u.Callback != nil && u.Callback.Message != nil:
		return u.Callback.Message.Chat.ID
	case u.Member != nil:
		return u.Member.Chat.ID
	case u.Stopped != nil:
		return u.Stopped.Chat.ID
	case u.Reaction != nil:
		return u.Reaction.Chat.ID
	}
	return 0
}

type message struct {
	ID              int                    `json:"message_id"`
	Thread          int                    `json:"message_thread_id"`
	IsTopic         bool                   `json:"is_topic_message"`
	From            *models.User           `json:"from"`
	SenderChat      *models.Chat           `json:"sender_chat"`
	Signature       string                 `json:"author_signature"`
	Chat            models.Chat            `json:"chat"`
	Date            int64                  `json:"date"`
	EditDate        int64                  `json:"edit_date"`
	Origin          *origin                `json:"forward_origin"`
	AutoForward     bool                   `json:"is_automatic_forward"`
	ReplyTo         *message               `json:"reply_to_message"`
	External        *external              `json:"external_reply"`
	Quote           *quote                 `json:"quote"`
	ViaBot          *models.User           `json:"via_bot"`
	Album           string                 `json:"media_group_id"`
	Markup          json.RawMessage        `json:"reply_markup"`
	Text            string                 `json:"text"`
	Entities        []models.MessageEntity `json:"entities"`
	Caption         string                 `json:"caption"`
	CaptionEntities []models.MessageEntity `json:"caption_entities"`

	Photo     []file `json:"photo"`
	Document  *file  `json:"document"`
	Animation *file  `json:"animation"`
	Audio     *file  `json:"audio"`
	Voice     *file  `json:"voice"`
	Video     *file  `json:"video"`
	VideoNote *file  `json:"video_note"`
	Sticker   *file  `json:"sticker"`

	Location *models.Location `json:"location"`
	Venue    *models.Venue    `json:"venue"`
	Contact  *models.Contact  `json:"contact"`
	Dice     *models.Dice     `json:"dice"`
	Poll     *poll            `json:"poll"`

	// Kinds that are told of but not read.
	Story     present `json:"story"`
	Checklist present `json:"checklist"`
	PaidMedia present `json:"paid_media"`
	Game      present `json:"game"`
	Giveaway  present `json:"giveaway"`
	Invoice   present `json:"invoice"`

	// Service messages that mean something here.
	MigrateTo     int64   `json:"migrate_to_chat_id"`
	MigrateFrom   int64   `json:"migrate_from_chat_id"`
	TopicCreated  present `json:"forum_topic_created"`
	TopicReopened present `json:"forum_topic_reopened"`
}

// sender gives whose message it is among those of its chat. Posts of a channel
// are one sender's.
func (m *message) sender() sender {
	if m.From == nil {
		return sender{chat: m.Chat.ID}
	}
	return sender{m.Chat.ID, m.From.ID}
}

// ownPost reports whether Telegram has put a channel's own post into its
// discussion group. Nobody else's words, though it is a forward.
func (m *message) ownPost() bool {
	return m.AutoForward && m.SenderChat != nil && m.Origin != nil && m.Origin.Chat != nil && m.Origin.Chat.ID == m.SenderChat.ID
}

// words gives the text or the caption, with its entities.
func (m *message) words() (string, []models.MessageEntity) {
	if m.Text != "" {
		return m.Text, m.Entities
	}
	return m.Caption, m.CaptionEntities
}

// topic gives the thread of a message in a topic. Outside forums a reply chain
// carries a thread id too, which must not come back; topic 1 is General, which
// has no id for sending (T18).
func (m *message) topic() int {
	if !m.IsTopic || m.Thread == generalTopic {
		return 0
	}
	return m.Thread
}

const generalTopic = 1

type origin struct {
	Type       string       `json:"type"`
	User       *models.User `json:"sender_user"`
	UserName   string       `json:"sender_user_name"`
	SenderChat *models.Chat `json:"sender_chat"`
	Chat       *models.Chat `json:"chat"`
}

// from reports whether a user is the origin.
func (o *origin) from(user int64) bool { return o != nil && o.User != nil && o.User.ID == user }

// An external is a message of another chat or topic that was replied to.
type external struct {
	Origin *origin `json:"origin"`
}

// name says where a forwarded message comes from. It is never empty.
func (o *origin) name() string {
	switch {
	case o.User != nil:
		return personName(o.User)
	case o.UserName != "":
		return o.UserName
	case o.SenderChat != nil && o.SenderChat.Title != "":
		return o.SenderChat.Title
	case o.Chat != nil && o.Chat.Title != "":
		return o.Chat.Title
	}
	return "unknown"
}

// present tells that a field is there, whatever it holds.
type present bool

func (p *present) UnmarshalJSON(b []byte) error {
	*p = string(b) != "null"
	return nil
}

type quote struct {
	Text string `json:"text"`
}

// A file is any downloadable thing: a photo size, a document, a voice message.
type file struct {
	ID     string `json:"file_id"`
	Unique string `json:"file_unique_id"`
	Name   string `json:"file_name"`
	Size   int64  `json:"file_size"`
	Emoji  string `json:"emoji"`
}

type poll struct {
	Question string `json:"question"`
	Options  []struct {
		Text string `json:"text"`
	} `json:"options"`
}

type callback struct {
	ID      string      `json:"id"`
	From    models.User `json:"from"`
	Message *message    `json:"message"` // too old to see: only chat and message_id
	Data    string      `json:"data"`
}

type member struct {
	Chat models.Chat `json:"chat"`
	New  struct {
		Status string `json:"status"`
	} `json:"new_chat_member"`
}

// A stopped tells that the person pressed Stop on a draft (Bot API 10.3).
type stopped struct {
	Chat  models.Chat `json:"chat"`
	Draft int64       `json:"draft_id"`
}

// A reacted tells that a person changed their reactions on a message.
type reacted struct {
	Chat    models.Chat  `json:"chat"`
	Message int          `json:"message_id"`
	User    *models.User `json:"user"` // nil: an anonymous admin or a channel
	Old     []reaction   `json:"old_reaction"`
	New     []reaction   `json:"new_reaction"`
}

// A reaction is compared, not understood: kinds of them are added.
type reaction struct {
	Type   string `json:"type"`
	Emoji  string `json:"emoji"`
	Custom string `json:"custom_emoji_id"`
}

// added reports whether there is a reaction that was not there before.
func (r *reacted) added() bool {
	return slices.ContainsFunc(r.New, func(x reaction) bool { return !slices.Contains(r.Old, x) })
}

// Accounts of Telegram itself that stand in for others in messages (T13, T14).
const (
	idChannelForwarder = 777000     // forwards channel posts into the discussion group
	idAnonymousAdmin   = 1087968824 // an admin who writes as the group
	idSendAsChannel    = 136817688  // a person who writes as a channel
)

func personName(u *models.User) string {
	switch {
	case u.FirstName != "" && u.LastName != "":
		return u.FirstName + " " + u.LastName
	case u.FirstName != "" || u.LastName != "":
		return u.FirstName + u.LastName
	case u.Username != "":
		return u.Username
	}
	return "unknown"
}
