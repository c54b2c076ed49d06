package discord

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"

	"coxswain/adapters/markup"
	"coxswain/session"
)

const (
	// textMost is Discord's limit of a message.
	textMost = 2000
	// partMost leaves room for the words a send may put in front.
	partMost  = textMost - 80
	labelMost = 80  // of a button
	dataMost  = 100 // of a button's data
	rowMost   = 5   // buttons in a row, and rows
)

// A payload is one message as the outbox keeps it. Fields are only ever added:
// a stored one outlives the build that wrote it.
type payload struct {
	Text    string            `json:"text"` // Discord's Markdown
	ReplyTo session.MessageID `json:"reply_to,omitempty"`
	Rows    []row             `json:"rows,omitempty"`
	Silent  bool              `json:"silent,omitempty"`
}

type row struct {
	Type       int      `json:"type"` // 1
	Components []button `json:"components"`
}

type button struct {
	Type     int    `json:"type"` // 2
	Style    int    `json:"style"`
	Label    string `json:"label"`
	CustomID string `json:"custom_id"`
}

// An outMessage is a message on the wire. The library's own type knows no
// nonce.
type outMessage struct {
	Content    string     `json:"content"`
	Nonce      string     `json:"nonce,omitempty"`
	Enforce    bool       `json:"enforce_nonce,omitempty"`
	Mentions   mentions   `json:"allowed_mentions"`
	Reference  *reference `json:"message_reference,omitempty"`
	Components any        `json:"components,omitempty"` // []row; an empty one takes the buttons away
	Flags      int        `json:"flags,omitempty"`
}

// mentions says whom a message may ping: nobody, whatever it says (D20).
type mentions struct {
	Parse []string `json:"parse"` // null would not do
}

var nobody = mentions{Parse: []string{}}

type reference struct {
	MessageID string `json:"message_id"`
	FailIfNot bool   `json:"fail_if_not_exists"` // false: the message may be gone by now (D2)
}

const flagSilent = 1 << 12

// nonceOf identifies a part to Discord, which takes 25 characters. Discord
// knows nonces of one bot, not of one channel, so the session is in it: ids of
// parts are unique within one only.
func nonceOf(key session.Key, part string) string {
	sum := sha256.Sum256([]byte(key.String() + "\n" + part))
	return base32.StdEncoding.EncodeToString(sum[:])[:24]
}

// Name is the platform's name.
func (a *Adapter) Name() session.PlatformName { return Name }

// Parts cuts an answer into messages. The reply stands on the first, the
// buttons below the last.
func (a *Adapter) Parts(o session.Outgoing) [][]byte {
	pieces := markup.DiscordMarkdown(o.Markdown, partMost)
	out := make([][]byte, 0, len(pieces))
	for i, text := range pieces {
		p := payload{Text: text, Silent: o.Silent}
		if i == 0 {
			p.ReplyTo = o.ReplyTo
		}
		if i == len(pieces)-1 {
			p.Rows = buttons(o.Key, o.Buttons)
		}
		data, err := json.Marshal(p)
		if err != nil {
			panic("discord: payload does not encode: " + err.Error()) // strings and numbers always do
		}
		out = append(out, data)
	}
	return out
}

// buttons lays buttons out in rows. Those Discord would refuse the whole
// message for are left out.
func buttons(key session.Key, list []session.Button) []row {
	var rows []row
	seen := map[string]bool{}
	for _, b := range list {
		data := ownerData(key, b.Data)
		label := cutUnits(strings.TrimSpace(b.Text), labelMost)
		if label == "" || b.Data == "" || len(data) > dataMost || seen[data] {
			continue
		}
		seen[data] = true
		if len(rows) == 0 || len(rows[len(rows)-1].Components) == rowMost {
			if len(rows) == rowMost {
				break
			}
			rows = append(rows, row{Type: 1})
		}
		last := &rows[len(rows)-1]
		last.Components = append(last.Components, button{2, 2, label, data})
	}
	return rows
}

// In sessions of one person within a channel, a button must lead to that
// person's session whoever presses it: its data begins with whose it is. Who
// pressed is judged apart from it.
const ownerMark, ownerEnd = "@", ";"

func ownerData(key session.Key, data string) string {
	if key.User == "" {
		return data
	}
	return ownerMark + string(key.User) + ownerEnd + data
}

func cutOwner(data string) (user session.UserID, rest string, ok bool) {
	s, ok := strings.CutPrefix(data, ownerMark)
	if !ok {
		return "", data, false
	}
	u, rest, ok := strings.Cut(s, ownerEnd)
	return session.UserID(u), rest, ok && u != ""
}

// target is the channel of a session, empty if the key is none of ours.
func target(key session.Key) string {
	id := string(key.Chat)
	if key.Thread != "" {
		id = string(key.Thread)
	}
	if key.Platform != Name || !isID(id) {
		return ""
	}
	return id
}
