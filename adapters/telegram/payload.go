package telegram

import (
	"encoding/json"
	"strings"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
)

const (
	// textMost is Telegram's limit of a message in UTF-16 units.
	textMost = 4096
	// partMost leaves room for the words a send may put in front.
	partMost = textMost - 96
	// entitiesMost: Telegram drops what is over 100 without a word.
	entitiesMost = 100
	// dataMost is Telegram's limit of a button's data in bytes.
	dataMost = 64
)

// A payload is one message as the outbox keeps it. Fields are only ever added:
// a stored one outlives the build that wrote it.
type payload struct {
	Text     string                 `json:"text"`
	Entities []models.MessageEntity `json:"entities,omitempty"`
	ReplyTo  session.MessageID      `json:"reply_to,omitempty"`
	Keyboard *keyboard              `json:"keyboard,omitempty"`
	Silent   bool                   `json:"silent,omitempty"`
	File     *session.File          `json:"file,omitempty"` // Text is its caption
	Rich     string                 `json:"rich,omitempty"` // Markdown, if the server takes it; else Text
}

// The library's button type sends an empty copy_text with every button.
type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// Name is the platform's name.
func (a *Adapter) Name() session.PlatformName { return Name }

// Parts cuts an answer into messages. The reply stands on the first, the
// buttons below the last.
//
// The answer to a press is made before the door has taken the press: that it has
// words is remembered until then.
func (a *Adapter) Parts(o session.Outgoing) [][]byte {
	if o.Interaction != "" {
		a.presses.tell(o.Interaction)
	}
	return encodeAll(o, a.payloads(o))
}

// payloads makes the messages of a text.
func (a *Adapter) payloads(o session.Outgoing) []payload {
	pieces := fewSpans(markup.Split(markup.Parse(o.Markdown), partMost))
	out := make([]payload, 0, len(pieces))
	for _, t := range pieces {
		p := payload{Text: t.Plain, Entities: entities(t), Silent: o.Silent}
		if a.rich {
			p.Rich = richText(o.Markdown, pieces)
		}
		out = append(out, p)
	}
	return out
}

func encodeAll(o session.Outgoing, list []payload) [][]byte {
	out := make([][]byte, 0, len(list))
	for i, p := range list {
		if i == 0 {
			p.ReplyTo = o.ReplyTo
		}
		if i == len(list)-1 {
			p.Keyboard = buttons(o.Key, o.Buttons)
		}
		data, err := json.Marshal(p)
		if err != nil {
			panic("telegram: payload does not encode: " + err.Error()) // strings and numbers always do
		}
		out = append(out, data)
	}
	return out
}

// fewSpans cuts pieces with too many spans in two until none has.
func fewSpans(pieces []markup.Text) []markup.Text {
	var out []markup.Text
	for _, t := range pieces {
		if len(t.Spans) <= entitiesMost || markup.Units(t.Plain) < 64 {
			out = append(out, t)
			continue
		}
		out = append(out, fewSpans(markup.Split(t, markup.Units(t.Plain)/2+1))...)
	}
	return out
}

func entities(t markup.Text) []models.MessageEntity {
	if len(t.Spans) == 0 {
		return nil
	}
	out := make([]models.MessageEntity, 0, len(t.Spans))
	for _, s := range t.Spans {
		e := models.MessageEntity{Offset: s.Off, Length: s.Len}
		switch s.Kind {
		case markup.Bold:
			e.Type = models.MessageEntityTypeBold
		case markup.Italic:
			e.Type = models.MessageEntityTypeItalic
		case markup.Strike:
			e.Type = models.MessageEntityTypeStrikethrough
		case markup.Code:
			e.Type = models.MessageEntityTypeCode
		case markup.Pre:
			e.Type, e.Language = models.MessageEntityTypePre, s.Lang
		case markup.Link:
			e.Type, e.URL = models.MessageEntityTypeTextLink, s.URL
		case markup.Quote:
			e.Type = models.MessageEntityTypeBlockquote
		case markup.ExpandableQuote:
			e.Type = models.MessageEntityTypeExpandableBlockquote
		default:
			continue // a kind Telegram has nothing for: the text stands without it
		}
		out = append(out, e)
	}
	return out
}

// rowUnits is how much text a row of buttons holds on a narrow phone.
const rowUnits = 28

func buttons(key session.Key, list []session.Button) *keyboard {
	var rows [][]button
	room := 0
	for _, b := range list {
		if b.Text == "" || b.Data == "" || len(b.Data) > dataMost {
			continue // Telegram would refuse the whole message for it
		}
		n := markup.Units(b.Text) + 4
		if b.Row || n > room || len(rows[len(rows)-1]) == 4 {
			rows, room = append(rows, nil), rowUnits
		}
		room -= n
		last := &rows[len(rows)-1]
		*last = append(*last, button{b.Text, ownerData(key, b.Data)})
	}
	if len(rows) == 0 {
		return nil
	}
	return &keyboard{rows}
}

// In sessions of one person within a group, a button must lead to that
// person's session whoever presses it: its data begins with whose it is. Who
// pressed is judged apart from it.
const ownerMark, ownerEnd = "@", ";"

func ownerData(key session.Key, data string) string {
	if key.User == "" {
		return data
	}
	if s := ownerMark + string(key.User) + ownerEnd + data; len(s) <= dataMost {
		return s
	}
	return data
}

func cutOwner(data string) (user session.UserID, rest string, ok bool) {
	s, ok := strings.CutPrefix(data, ownerMark)
	if !ok {
		return "", data, false
	}
	u, rest, ok := strings.Cut(s, ownerEnd)
	return session.UserID(u), rest, ok && u != ""
}

// prefixed puts words in front of a text and moves its entities along.
func prefixed(words string, p payload) payload {
	n := markup.Units(words)
	if p.Rich != "" {
		p.Rich = words + "\n\n" + p.Rich
	}
	p.Text = words + p.Text
	moved := make([]models.MessageEntity, len(p.Entities))
	for i, e := range p.Entities {
		e.Offset += n
		moved[i] = e
	}
	p.Entities = moved
	return p
}
