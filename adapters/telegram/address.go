package telegram

import (
	"context"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
)

// address finds out from the entities whether the text speaks to the bot
// (ours) or is a command for another one (other), and takes the bot's own name
// off a command and off both ends of a text: it is no part of what is said. A
// command behind the name is one, and one that is the menu's needs no name where
// privacy mode lets no other reach the bot. Entities are what Telegram understood the text to be: a name
// inside code, or a part of a longer word, is none (T10, T11).
//
// The bot's name is asked for only when the text has a name to compare it to.
func (a *Adapter) address(ctx context.Context, m *session.Message, entities []models.MessageEntity) (ours, other bool, err error) {
	text := m.Text // offsets count from the text as it came
	start, end := 0, markup.Units(text)
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
			if !strings.EqualFold(slice(text, e.Offset, e.Length), "@"+name) {
				continue
			}
			ours = true
			if blank(slice(text, 0, e.Offset)) {
				start = e.Offset + e.Length
			} else if blank(slice(text, e.Offset+e.Length, end)) {
				end = e.Offset
			}
		case models.MessageEntityTypeBotCommand:
			if !blank(slice(text, start, e.Offset-start)) {
				continue
			}
			word := slice(text, e.Offset, e.Length)
			cmd, to, named := strings.Cut(word, "@")
			if named {
				name, err := a.username(ctx)
				if err != nil {
					return false, false, err
				}
				if !strings.EqualFold(to, name) {
					return false, true, nil
				}
			}
			ours = ours || named || a.isBareCommand(cmd)
			m.Text = cmd + slice(text, e.Offset+e.Length, end-e.Offset-e.Length)
			return ours, false, nil
		}
	}
	m.Text = text
	said := slice(text, start, end-start)
	if start > 0 {
		said = strings.TrimLeft(said, ",:")
	}
	if said = strings.TrimSpace(said); said != "" { // else the name is all there is
		m.Text = said
	}
	if isCommand(m.Text) {
		// Telegram has not marked a command here, so it is none. It trims
		// messages: no one's text begins with a blank.
		m.Text = " " + m.Text
	}
	return ours, false, nil
}

// isBareCommand reports whether a command that names no bot is for this one: it is
// in the menu, and in privacy mode Telegram hands on only those that can be (T11).
func (a *Adapter) isBareCommand(word string) bool {
	s := a.Status()
	return s.Username != "" && !s.SeesAll && (slices.Contains(a.shorts, word) || slices.ContainsFunc(a.commands, func(c Command) bool { return "/"+c.Name == word }))
}

// blank reports whether nothing but white space stands in s.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

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
