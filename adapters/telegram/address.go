package telegram

import (
	"context"
	"strings"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"coxswain/session"
)

// address finds out from the entities whether the text speaks to the bot
// (ours) or is a command for another one (other), and takes the bot's own name
// off a command. Entities are what Telegram understood the text to be: a name
// inside code, or a part of a longer word, is none (T10, T11).
//
// The bot's name is asked for only when the text has a name to compare it to.
func (a *Adapter) address(ctx context.Context, m *session.Message, entities []models.MessageEntity) (ours, other bool, err error) {
	text := m.Text // offsets count from the text as it came
	for _, e := range entities {
		switch e.Type {
		case models.MessageEntityTypeTextMention:
			if e.User != nil && e.User.ID == a.id {
				ours = true
			}
		case models.MessageEntityTypeMention:
			name, err := a.username(ctx)
			if err != nil {
				return false, false, err
			}
			if strings.EqualFold(slice(text, e.Offset, e.Length), "@"+name) {
				ours = true
			}
		case models.MessageEntityTypeBotCommand:
			if e.Offset != 0 {
				continue
			}
			word := slice(text, 0, e.Length)
			cmd, to, named := strings.Cut(word, "@")
			if !named {
				continue
			}
			name, err := a.username(ctx)
			if err != nil {
				return false, false, err
			}
			if !strings.EqualFold(to, name) {
				return false, true, nil
			}
			m.Text = cmd + strings.TrimPrefix(text, word)
			ours = true
		}
	}
	return ours, false, nil
}

func commandAtStart(entities []models.MessageEntity) bool {
	for _, e := range entities {
		if e.Type == models.MessageEntityTypeBotCommand && e.Offset == 0 {
			return true
		}
	}
	return false
}

// isCommand reports whether the text of a read message is a command.
func isCommand(text string) bool { return strings.HasPrefix(text, "/") }

// slice cuts by UTF-16 units, the measure of entities; what lies outside the
// text is not there.
func slice(s string, offset, length int) string {
	start, end, n := -1, len(s), 0
	for i, r := range s {
		if n >= offset && start < 0 {
			start = i
		}
		if n >= offset+length {
			end = i
			break
		}
		n += utf16.RuneLen(r)
	}
	if start < 0 {
		return ""
	}
	return s[start:end]
}
