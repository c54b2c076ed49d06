package session

import "time"

// A Message is one inbound platform event after the adapter decoded it. It is
// passed whole and by value; nothing rebuilds it field by field.
type Message struct {
	Key     Key
	ID      MessageID // the platform's id of the message
	Kind    MessageKind
	From    Person
	Private bool // a chat of one person with the bot
	// Addressed reports that the message speaks to the bot: always in private,
	// in groups by mention, command suffix or reply to the bot.
	Addressed bool
	// Dedupe is the platform identity of the event, unique in the key's lane:
	// m:<chat>:<msg>, e:<chat>:<msg>:<date>:<hash>, i:<interaction>, u:<update>
	// (I2).
	Dedupe string
	// MsgDedupe is the mark of the message ID itself, if the event is a command that
	// was used on it: what that makes is this message, as if it had spoken to the
	// bot. Empty = the event is the message.
	MsgDedupe   string
	Text        string // what the person wrote; a command keeps its slash
	Forwarded   string // not empty: forwarded text of this origin, data and never a command (T7)
	Quote       string // the quoted text of the message replied to
	ReplyTo     MessageID
	ReplyToBot  bool
	Attachments []Attachment
	// Group names messages that are one input: an album, a split paste, a
	// forward with its comment (T4-T6). Empty: stands alone.
	Group string
	// A message whose Group is that of an open input by the same author becomes
	// a part of it; otherwise it begins an input of its own.
	// OpenFor keeps the input open for more parts of its Group, counted from
	// this part (T4: 0.8 s after the last). Zero: complete.
	OpenFor  time.Duration
	Button   string    // Kind Press: the key of the pressed button
	Sent     time.Time // the platform's date; zero if it has none
	Received time.Time // when the adapter got it
	// Interaction is what the adapter needs to answer a press or a slash
	// command; opaque here.
	Interaction string
}

// MessageKind says what happened.
type MessageKind uint8

// Kinds of inbound events.
const (
	KindText   MessageKind = iota // a new message
	KindEdit                      // an earlier message now reads so
	KindDelete                    // an earlier message is gone
	KindPress                     // a button was pressed
	// A reaction was set on the message ID: a gesture. By its author it drops a
	// message that waits, by the turn's owner it lets another's in. It never
	// approves anything.
	KindReact
)

// A Person is who wrote, as the platform says. Names are untrusted text (I8).
type Person struct {
	ID   UserID `json:"id"`
	Name string `json:"name,omitempty"`
	// Roles are ids of roles or groups the platform says the person has where
	// the message was written (Discord). Those that the policy names are kept
	// with an input, for authority is asked again when it is used.
	Roles []string `json:"roles,omitempty"`
	// Account and At say who that is and in which chat they wrote, of a person who
	// wrote in another chat than their session's own; authority is asked for there.
	// At is a Key's text; ID is then who they are in the session.
	Account UserID `json:"account,omitempty"`
	At      string `json:"at,omitempty"`

	rest Rest
}

// Known is the account behind a person of a session: its platform and its id
// there.
func (p Person) Known(session Key) (PlatformName, UserID) {
	if at, err := ParseKey(p.At); err == nil {
		return at.Platform, p.Account
	}
	return session.Platform, p.ID
}

// An Attachment is a file that came with a message; the adapter has saved it
// in the session's inbox, or says why not.
type Attachment struct {
	Kind string `json:"kind"`           // photo, document, voice, …
	Name string `json:"name,omitempty"` // for people; untrusted
	Path string `json:"path,omitempty"` // inside the workspace
	Size int64  `json:"size,omitempty"` // bytes
	Note string `json:"note,omitempty"` // why it could not be had
	// Image names a copy that does not change, kept for the model to see when
	// the input was put in a row; MIME is its type.
	Image string `json:"image,omitempty"`
	MIME  string `json:"mime,omitempty"`

	rest Rest
}

// An Input is what the store keeps of an accepted message: one or more parts
// that count as one (T4-T6).
type Input struct {
	Ticket int64       `json:"ticket,omitempty"` // set when read back
	From   Person      `json:"from"`
	Admin  bool        `json:"admin,omitempty"`  // when it was accepted; checked again at use (I10)
	Shared bool        `json:"shared,omitempty"` // written where several people write
	Parts  []InputPart `json:"parts"`
	// Explicit is the verb of /queue, /steer or /interrupt, or empty.
	Explicit string `json:"explicit,omitempty"`
	Edited   bool   `json:"edited,omitempty"` // an edit of the running turn's own message
	Late     bool   `json:"late,omitempty"`   // came in a backlog
	// Retry is the turn whose inputs are sent again; the input has no text of
	// its own then.
	Retry int64 `json:"retry,omitempty"`

	rest Rest
}

// An InputPart is one platform message of an input.
type InputPart struct {
	ID          MessageID    `json:"id"`
	Text        string       `json:"text,omitempty"`
	Forwarded   string       `json:"forwarded,omitempty"`
	Quote       string       `json:"quote,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	Sent        int64        `json:"sent,omitempty"` // Unix ms by the platform's clock

	rest Rest
}

// A Principal is an authorised person in one chat: the only thing handlers
// take (I10). It is made by the authoriser alone.
type Principal struct {
	Platform PlatformName
	ID       UserID
	Name     string
	Admin    bool
	roles    []string // those that the policy allows
	chat     ChatID   // where this authority holds
	ok       bool
	at       Key    // not zero: the chat, when it is not the session's own
	account  UserID // with at: who they are there
}

// person is the principal as stored with what they wrote.
func (p Principal) person() Person {
	who := Person{ID: p.ID, Name: cleanName(p.Name), Roles: p.roles, Account: p.account}
	if p.at != (Key{}) {
		who.At = p.at.String()
	}
	return who
}

// May reports whether the principal was authorised for the chat of key.
func (p Principal) May(key Key) bool {
	return p.ok && p.Platform == key.Platform && p.chat == key.Chat &&
		(key.User == "" || key.User == p.ID || p.Admin) // with sessions.group: user one's own
}
