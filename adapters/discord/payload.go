package discord

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
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
	// buttonsMost buttons are shown as such; more are a select menu, of which
	// Discord takes 25 choices.
	buttonsMost = 2 * rowMost
	choicesMost = 25
	menuData    = "menu" // the data of a menu; what was chosen comes beside it
)

// A payload is one message as the outbox keeps it. Fields are only ever added:
// a stored one outlives the build that wrote it.
type payload struct {
	Text    string            `json:"text"` // Discord's Markdown
	ReplyTo session.MessageID `json:"reply_to,omitempty"`
	Rows    []row             `json:"rows,omitempty"`
	Silent  bool              `json:"silent,omitempty"`
	File    *session.File     `json:"file,omitempty"`
	// Ask is the interaction it answers, empty = none: it is given to who asked, as
	// long as Discord lets it be answered.
	Ask string `json:"ask,omitempty"`
	// Alone says that nobody else is to see it, also where all see what was asked.
	Alone bool `json:"alone,omitempty"`
}

type row struct {
	Type       int      `json:"type"` // 1
	Components []button `json:"components"`
}

// A button is one, or a select menu of many.
type button struct {
	Type     int      `json:"type"` // 2, a menu 3
	Style    int      `json:"style,omitempty"`
	Label    string   `json:"label,omitempty"`
	CustomID string   `json:"custom_id"`
	Hint     string   `json:"placeholder,omitempty"`
	Options  []choice `json:"options,omitempty"`

	first bool // it begins a row
}

type choice struct {
	Label string `json:"label"`
	Value string `json:"value"`
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
	list := pieces(o.Markdown, o.Silent)
	if o.Kind == session.PartReply || o.Alone { // a turn's own words are everybody's
		ask := o.Interaction
		if id, ok := askOf(o.ReplyTo); ok && ask == "" {
			ask = id
		}
		for i := range list {
			list[i].Ask, list[i].Alone = ask, o.Alone
		}
	}
	return encode(o, list)
}

// pieces cuts a text into messages.
func pieces(markdown string, silent bool) []payload {
	var list []payload
	for _, text := range markup.DiscordMarkdown(markdown, partMost) {
		list = append(list, payload{Text: text, Silent: silent})
	}
	return list
}

// encode writes the messages of o down, with its reply and buttons on them.
func encode(o session.Outgoing, list []payload) [][]byte {
	out := make([][]byte, 0, len(list))
	for i, p := range list {
		if i == 0 {
			p.ReplyTo = o.ReplyTo
		}
		if i == len(list)-1 {
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

// buttons lays buttons out in rows, many of them as a menu. Those Discord would
// refuse the whole message for are left out.
func buttons(key session.Key, list []session.Button) []row {
	var all []button
	seen := map[string]bool{}
	for _, b := range list {
		data := ownerData(key, b.Data)
		label := cutUnits(strings.TrimSpace(b.Text), labelMost)
		if label == "" || b.Data == "" || len(data) > dataMost || seen[data] || len(all) == choicesMost {
			continue
		}
		seen[data] = true
		all = append(all, button{Type: 2, Style: 2, Label: label, CustomID: data, first: b.Row})
	}
	apart := mayStandApart(all)
	if len(all) > buttonsMost {
		menu := button{Type: 3, CustomID: menuData, Hint: wordsChoose}
		for _, b := range all {
			menu.Options = append(menu.Options, choice{b.Label, b.CustomID})
		}
		return []row{{Type: 1, Components: []button{menu}}}
	}
	var rows []row
	for len(all) > 0 {
		n := min(len(all), rowMost)
		if apart {
			n = 1 + slices.IndexFunc(all[1:], func(b button) bool { return b.first })
			if n == 0 {
				n = len(all)
			}
		}
		rows = append(rows, row{Type: 1, Components: all[:n]})
		all = all[n:]
	}
	return rows
}

// mayStandApart reports whether each row that is asked for can be one: then the
// buttons of one message go together when one of them was pressed.
func mayStandApart(all []button) bool {
	rows, n := 1, 0
	for i, b := range all {
		if b.first && i > 0 {
			rows, n = rows+1, 0
		}
		if n++; n > rowMost || rows > rowMost {
			return false
		}
	}
	return true
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
